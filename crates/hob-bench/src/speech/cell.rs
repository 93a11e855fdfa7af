//! Measures one speech cell: the same text for one or more users at the same time.
//! The sound is hashed as evidence and not stored.

use std::time::Duration;

use bytes::Bytes;
use hob_core::count_text;

use super::{RequestParts, SpeechSession, StreamField, Text, VERSION};
use crate::client_check::{CheckLoad, ClientCheck};
use crate::drive::{DriveResult, Exchange};
use crate::record::{Connection, Record, RecordKind, RecordedWorkload, sha256_hex};
use crate::runs::{BenchError, CellSummary, Reply, Run, Runs};
use crate::session::MeasuringSession;
use crate::terms::Metric;
use crate::timeline::{ArrivalPoint, SoundFault, SoundFormat, SoundTimeline, sound, stalls};
use jiff::Timestamp;

/// One combination of text, format, voice and users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeechCell {
    pub kind: RecordKind,
    pub text: Text,
    pub format: SoundFormat,
    pub voice: String,
    pub stream: StreamField,
    /// Each waits for its answer.
    pub users: usize,
    /// Requests of each user in a run.
    pub rounds: usize,
}

/// The sound of the last run's first request.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(super) sha256: String,
    pub(super) bytes: u64,
    pub(super) rate_hz: u32,
    pub(super) arrivals: Vec<ArrivalPoint>,
}

impl MeasuringSession for SpeechSession<'_, '_> {
    type Cell = SpeechCell;

    fn name(&self, cell: &SpeechCell) -> String {
        let SpeechCell { text, format, voice, users, .. } = cell;
        let asked = match cell.stream {
            StreamField::Absent | StreamField::True => "",
            StreamField::False => ", whole",
        };
        let users = count_text(users, "user");
        format!("{} as {} by {voice} × {users}{asked}", text.name, format.name())
    }

    fn measure_run(
        &mut self,
        cell: &SpeechCell,
        _client_check: Option<&ClientCheck>,
    ) -> Result<Run, BenchError> {
        let SpeechCell { text, format, voice, stream, users, rounds, .. } = cell;
        let (target, format, stream) = (&self.asker.target, *format, *stream);
        let request = RequestParts { target, voice, format, stream };
        let jobs: Vec<Bytes> =
            (0..users * rounds).map(|number| request.bytes(text.words, number)).collect();
        let driven = self.drive(jobs, *users, *text)?;
        let (run, evidence) = decoded(&driven, cell, self.pcm_rate_hz);
        self.evidence.retain(|(other, _)| other != cell);
        self.evidence.extend(evidence.map(|evidence| (cell.clone(), evidence)));
        Ok(run)
    }

    /// Total time and first sound.
    fn leading(&self, cell: &SpeechCell) -> &'static [Metric] {
        match cell.kind {
            RecordKind::Stream => &[Metric::TtfaMs, Metric::WallMs],
            _ => &[Metric::WallMs, Metric::TtfaMs],
        }
    }

    /// The mock server sends text instead of sound. The client's errors are the same, because it takes time stamps before it parses
    /// the bytes.
    fn pace(&self, cell: &SpeechCell, warm: &Run) -> Option<CheckLoad> {
        let ttfa_ms = warm.figure(Metric::TtfaMs)?;
        Some(CheckLoad::with_medians(cell.users, ttfa_ms, warm.figure(Metric::IcgMs)))
    }

    fn summarise<'r>(
        &mut self,
        cell: &SpeechCell,
        runs: &'r Runs,
        started: Timestamp,
    ) -> CellSummary<'r> {
        let workload = RecordedWorkload {
            shape: Some(cell.text.name.to_owned()),
            version: Some(VERSION),
            prompts_sha256: Some(cell.text.sha256()),
            ..RecordedWorkload::closed_loop(cell.users, Connection::Reused)
        };
        CellSummary::new(cell.kind, workload, runs, started, self.leading(cell))
    }

    fn fill_in(&self, cell: &SpeechCell, runs: &Runs, record: &mut Record, earlier: &[Record]) {
        let evidence = self.evidence.iter().find(|(other, _)| other == cell);
        record.tts = Some(cell.section(runs, evidence.map(|(_, evidence)| evidence), earlier));
    }

    fn on_stored(&mut self, cell: &SpeechCell, record: &Record) {
        let place = self.evidence.iter().position(|(other, _)| other == cell);
        let evidence = place.map(|place| self.evidence.swap_remove(place).1);
        let arrivals = evidence.map(|evidence| evidence.arrivals).unwrap_or_default();
        if let Some(seen) = &mut self.seen {
            seen(record, &arrivals);
        }
    }
}

/// The figures of a run, and the sound of its first request.
fn decoded(driven: &DriveResult, cell: &SpeechCell, pcm_rate_hz: u32) -> (Run, Option<Evidence>) {
    let (mut replies, mut ends, mut audio_s, mut evidence) = (Vec::new(), Vec::new(), 0.0, None);
    for exchange in &driven.exchanges {
        let heard = sound(exchange, cell.format, pcm_rate_hz);
        if let Ok(sound) = &heard {
            audio_s += sound.audio_s;
            ends.push(exchange.sent + Duration::from_secs_f64(sound.last_ms / 1e3));
            evidence.get_or_insert_with(|| Evidence::of(sound));
        }
        replies.push(reply(exchange, heard, cell.text.chars()));
    }
    let begun = driven.exchanges.iter().map(|exchange| exchange.sent).min();
    let span_s = begun.zip(ends.into_iter().max()).map(|(from, to)| (to - from).as_secs_f64());
    let together = span_s.filter(|span_s| *span_s > 0.0).map(|s| (Metric::RealTimeX, audio_s / s));
    (Run { together: together.into_iter().collect(), ..Run::from_drive(driven, replies) }, evidence)
}

impl Evidence {
    fn of(sound: &SoundTimeline) -> Evidence {
        let SoundTimeline { body, rate_hz, arrivals, .. } = sound;
        let bytes = body.len() as u64;
        Evidence { sha256: sha256_hex(body), bytes, rate_hz: *rate_hz, arrivals: arrivals.clone() }
    }
}

fn reply(exchange: &Exchange, heard: Result<SoundTimeline, SoundFault>, chars: usize) -> Reply {
    let reply = Reply::from_exchange(exchange);
    let sound = match heard {
        Ok(sound) => sound,
        Err(fault) => return reply.failed(&fault, fault == SoundFault::STOPPED),
    };
    let late_ms = exchange.sent.saturating_sub(exchange.sched).as_secs_f64() * 1e3;
    let mut figures = sound.by_name();
    figures.insert(Metric::CharsS, chars as f64 / (sound.last_ms / 1e3));
    figures.insert(Metric::DispatchMs, late_ms);
    figures.extend(exchange.connect.map(|took| (Metric::ConnectMs, took.as_secs_f64() * 1e3)));
    Reply { figures, stalls: stalls(&sound.gaps_ms), gaps_ms: sound.gaps_ms, ..reply }
}
