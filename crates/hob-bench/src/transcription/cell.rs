//! Measures one cell: all clips of a set on one server, for one or more users at the same time.
//! A run's word errors are those of all its clips together, so a long clip counts more than a short one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hob_core::count_text;
use jiff::Timestamp;

use super::normalise::normalised_chars;
use super::{Clip, ClipSet, WordErrors, normalised_words, request};
use crate::client_check::{CheckLoad, ClientCheck};
use crate::drive::{Arrivals, DriveResult, Exchange};
use crate::record::{Connection, Record, RecordKind, RecordedWorkload};
use crate::runs::{BenchError, CellSummary, RecordContext, Reply, Run, Runs, WARMUP_RUNS_MAX};
use crate::session::MeasuringSession;
use crate::speech::Streaming;
use crate::terms::{Metric, known};
use crate::timeline::{RequestFault, TranscriptTimeline, millis, transcript};
use crate::workbench::{Asker, OtherServer};

/// Room for an answer.
const ANSWER_BYTES: usize = 16 << 10;
/// Seconds of sound in a set, and the warm-up runs that are then enough.
const WARMUPS: [(f64, usize); 2] = [(120.0, 1), (20.0, 2)];

/// A started server may list its models before it has loaded them. Its refusals are not figures.
const LOAD_MAX: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One combination of clips, delivery, users and server.
#[derive(Clone, Debug)]
pub(super) struct TranscriptionCell {
    pub(super) set: Arc<ClipSet>,
    /// The set's hash.
    pub(super) sha256: String,
    pub(super) streaming: Streaming,
    /// Each waits for its answer.
    users: usize,
    /// How often each user sends the whole set in a run.
    rounds: usize,
    /// The index of the server.
    server: usize,
}

impl TranscriptionCell {
    pub(super) fn new(
        set: Arc<ClipSet>,
        streaming: Streaming,
        (users, rounds): (usize, usize),
    ) -> TranscriptionCell {
        let sha256 = set.sha256();
        TranscriptionCell { set, sha256, streaming, users, rounds, server: 0 }
    }
}

/// A transcription model on one server, or on two that are measured alternately.
#[derive(Debug)]
pub(super) struct TranscriptionSession<'a> {
    askers: Vec<Asker<'a>>,
    /// Context of the second server.
    other: Option<RecordContext>,
}

impl<'a> TranscriptionSession<'a> {
    pub(super) fn new(asker: Asker<'a>, other: Option<&OtherServer>) -> TranscriptionSession<'a> {
        let second = other.map(|other| Asker { target: other.target.clone(), ..asker.clone() });
        let askers = [asker].into_iter().chain(second).collect();
        let other = other.map(|other| other.context.clone());
        TranscriptionSession { askers, other }
    }

    pub(super) fn on_each_server(&self, cell: TranscriptionCell) -> Vec<TranscriptionCell> {
        (0..self.askers.len()).map(|server| TranscriptionCell { server, ..cell.clone() }).collect()
    }
}

impl MeasuringSession for TranscriptionSession<'_> {
    type Cell = TranscriptionCell;

    fn name(&self, cell: &TranscriptionCell) -> String {
        let streamed = if cell.streaming == Streaming::Requested { ", streamed" } else { "" };
        let users = count_text(cell.users, "user");
        format!("{} × {users}{streamed}", cell.set.workload_name())
    }

    fn measure_run(
        &mut self,
        cell: &TranscriptionCell,
        _client_check: Option<&ClientCheck>,
    ) -> Result<Run, BenchError> {
        let asker = &self.askers[cell.server];
        let clips = cell.set.clips.iter();
        let requests: Vec<Bytes> =
            clips.map(|clip| request::bytes(&asker.target, clip, cell.streaming)).collect();
        let count = requests.len() * cell.users * cell.rounds;
        let jobs: Vec<Bytes> = requests.into_iter().cycle().take(count).collect();
        let arrivals = Arrivals::Closed { users: cell.users };
        let begun = Instant::now();
        loop {
            let run = decoded(&asker.drive(jobs.clone(), arrivals, ANSWER_BYTES)?, cell);
            let is_over = begun.elapsed() > LOAD_MAX || asker.stop.load(Ordering::Relaxed);
            let mut faults = run.replies.iter().filter_map(|reply| reply.fault.as_deref());
            if is_over || !faults.any(says_loading) {
                return Ok(run);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn leading(&self, _cell: &TranscriptionCell) -> &'static [Metric] {
        &[Metric::FinalTextMs, Metric::FirstPartialMs]
    }

    fn pace(&self, cell: &TranscriptionCell, warm: &Run) -> Option<CheckLoad> {
        Some(CheckLoad::with_medians(cell.users, warm.figure(Metric::FinalTextMs)?, None))
    }

    fn summarise<'r>(
        &mut self,
        cell: &TranscriptionCell,
        runs: &'r Runs,
        started: Timestamp,
    ) -> CellSummary<'r> {
        let workload = RecordedWorkload {
            shape: Some(cell.set.workload_name()),
            prompts_sha256: Some(cell.sha256.clone()),
            ..RecordedWorkload::closed_loop(cell.users, Connection::Reused)
        };
        CellSummary::new(RecordKind::Stt, workload, runs, started, self.leading(cell))
    }

    fn fill_in(
        &self,
        cell: &TranscriptionCell,
        runs: &Runs,
        record: &mut Record,
        _earlier: &[Record],
    ) {
        record.stt = Some(cell.section(runs));
    }

    fn warmups_max(&self, cell: &TranscriptionCell) -> usize {
        let enough = WARMUPS.iter().find(|(audio_s, _)| cell.set.audio_s() > *audio_s);
        enough.map_or(WARMUP_RUNS_MAX, |(_, runs)| *runs)
    }

    fn context(&self, cell: &TranscriptionCell) -> Option<&RecordContext> {
        self.other.as_ref().filter(|_| cell.server == 1)
    }
}

fn says_loading(fault: &str) -> bool {
    fault.contains("answered 503") && fault.to_lowercase().contains("loading")
}

/// The figures of a run.
fn decoded(driven: &DriveResult, cell: &TranscriptionCell) -> Run {
    let (mut words, mut chars) = (WordErrors::default(), WordErrors::default());
    let (mut replies, mut ends, mut audio_s) = (Vec::new(), Vec::new(), 0.0);
    for exchange in &driven.exchanges {
        let clip = &cell.set.clips[exchange.job % cell.set.clips.len()];
        let reply = Reply::from_exchange(exchange);
        replies.push(match transcript(exchange) {
            Ok(heard) => {
                let errors = errors(clip, &heard.text);
                errors[0].into_iter().for_each(|errors| words += errors);
                errors[1].into_iter().for_each(|errors| chars += errors);
                audio_s += clip.audio_s;
                ends.push(exchange.sent + Duration::from_secs_f64(heard.final_text_ms / 1e3));
                let is_streamed = cell.streaming == Streaming::Requested;
                let first_ms = heard.first_text_ms.filter(|_| is_streamed);
                let heard = TranscriptTimeline { first_text_ms: first_ms, ..heard };
                Reply { figures: figures(exchange, clip, &heard, errors), ..reply }
            }
            Err(fault) => reply.failed(&fault, fault == RequestFault::Stopped),
        });
    }
    let begun = driven.exchanges.iter().map(|exchange| exchange.sent).min();
    let span = begun.zip(ends.into_iter().max()).map(|(from, to)| (to - from).as_secs_f64());
    let speed = span.filter(|span_s| *span_s > 0.0).map(|span_s| audio_s / span_s);
    let words = Some(words).filter(|words| words.words > 0);
    let chars = Some(chars).filter(|chars| chars.words > 0);
    let all = rows([words, chars]).into_iter().chain([(Metric::RealTimeX, speed)]);
    Run { together: known(all), ..Run::from_drive(driven, replies) }
}

/// Errors in words and in characters; None for texts that are too long to be compared.
fn errors(clip: &Clip, heard: &str) -> [Option<WordErrors>; 2] {
    let heard = normalised_words(heard, &clip.language);
    let chars = normalised_chars(&heard, &clip.language);
    [WordErrors::between(&clip.words, &heard), WordErrors::between(&clip.chars(), &chars)]
}

fn figures(
    exchange: &Exchange,
    clip: &Clip,
    heard: &TranscriptTimeline,
    errors: [Option<WordErrors>; 2],
) -> BTreeMap<Metric, f64> {
    let times = [
        (Metric::TtfbMs, Some(heard.ttfb_ms)),
        (Metric::FinalTextMs, Some(heard.final_text_ms)),
        (Metric::FirstPartialMs, heard.first_text_ms),
        (Metric::AudioS, Some(clip.audio_s)),
        (Metric::Rtf, Some(heard.final_text_ms / 1e3 / clip.audio_s)),
        (Metric::DispatchMs, Some(millis(exchange.sent.saturating_sub(exchange.sched)))),
        (Metric::ConnectMs, exchange.connect.map(millis)),
    ];
    known(times.into_iter().chain(rows(errors)))
}

/// The figures of errors in words and in characters.
fn rows([words, chars]: [Option<WordErrors>; 2]) -> [(Metric, Option<f64>); 5] {
    let count = |count: fn(WordErrors) -> u64| words.map(|errors| count(errors) as f64);
    [
        (Metric::Wer, words.and_then(WordErrors::rate)),
        (Metric::Cer, chars.and_then(WordErrors::rate)),
        (Metric::WordsWrong, count(|errors| errors.wrong)),
        (Metric::WordsMissing, count(|errors| errors.missing)),
        (Metric::WordsAdded, count(|errors| errors.added)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_loads_its_model_is_not_a_server_that_fails() {
        let rows = [
            (503, "the model is still loading; try again in 4 s", true),
            (503, "Loading model", true),
            (503, "as the script says", false),
            (500, "loading failed", false),
        ];
        for (status, message, expected) in rows {
            let fault = RequestFault::Refused { status, message: message.to_owned() };
            assert_eq!(says_loading(&fault.to_string()), expected, "{fault}");
        }
    }
}
