//! One cell of speech as it is run: the same text, by so many users at once, and what is kept of it.
//! The bytes of the sound are hashed as evidence, and forgotten.

use std::time::Duration;

use bytes::Bytes;

use super::{Asking, Speaker, Text};
use crate::calibrate::{Calibration, Pace};
use crate::drive::{Driven, Exchange};
use crate::record::{Kind, sha256_hex};
use crate::runs::{BenchError, Block, Reply, Subject};
use crate::terms::Metric;
use crate::timeline::{Arrived, Fault, Sound, SoundFault, SoundFormat, sound, stalls};

/// Of a server that sends everything in one piece.
const GAP_MS_ASSUMED: f64 = 20.0;

/// One row of what is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub kind: Kind,
    pub text: Text,
    pub format: SoundFormat,
    pub voice: String,
    pub asking: Asking,
    /// Each waits for its answer.
    pub users: usize,
    /// Requests of each user in a run.
    pub rounds: usize,
}

impl Cell {
    /// What has to be sure: how fast it is made, or when it comes.
    pub fn leading(&self) -> &'static [Metric] {
        match self.kind {
            Kind::Stream => &[Metric::TtfaMs, Metric::WallMs],
            _ => &[Metric::WallMs, Metric::TtfaMs],
        }
    }

    /// The known server writes words and no sound. For the client that is the same: a stamp is taken before anybody
    /// looks at the bytes, so what it gets wrong of a first token at this pace, by so many users, it gets wrong of a
    /// first sound.
    pub(crate) fn pace(&self, warm: &Block) -> Option<Pace> {
        let ttfa_ms = warm.figure(Metric::TtfaMs)?;
        let gap_ms = warm.figure(Metric::IcgMs).unwrap_or(GAP_MS_ASSUMED);
        Some(Pace::like(self.users, ttfa_ms, gap_ms))
    }

    /// As it is told of.
    pub fn name(&self) -> String {
        let Cell { text, format, voice, users, .. } = self;
        let asked = match self.asking {
            Asking::AsIs | Asking::Streamed => "",
            Asking::Whole => ", whole",
        };
        format!("{} as {} by {voice} × {users}{asked}", text.name, format.name())
    }
}

/// A cell of a speaker, asked again and again.
#[derive(Debug)]
pub(crate) struct Spoken<'s, 'a> {
    speaker: &'s Speaker<'a>,
    cell: &'s Cell,
    /// None until something was heard.
    pub(crate) evidence: Option<Evidence>,
}

/// Of the first request of the last run.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(super) sha256: String,
    pub(super) bytes: u64,
    pub(super) rate_hz: u32,
    pub(super) arrivals: Vec<Arrived>,
}

impl Subject for Spoken<'_, '_> {
    fn block(&mut self, _calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        let Cell { text, format, voice, asking, users, rounds, .. } = self.cell;
        let form = self.speaker.form(voice, *format, *asking);
        let jobs: Vec<Bytes> =
            (0..users * rounds).map(|number| form.bytes(text.words, number)).collect();
        let driven = self.speaker.drive(jobs, *users, *text)?;
        Ok(self.decoded(&driven))
    }

    fn leading(&self) -> &[Metric] {
        self.cell.leading()
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        self.cell.pace(warm)
    }
}

impl<'s, 'a> Spoken<'s, 'a> {
    pub(crate) fn new(speaker: &'s Speaker<'a>, cell: &'s Cell) -> Spoken<'s, 'a> {
        Spoken { speaker, cell, evidence: None }
    }

    fn decoded(&mut self, driven: &Driven) -> Block {
        let (mut replies, mut ends, mut audio_s) = (Vec::new(), Vec::new(), 0.0);
        self.evidence = None;
        for exchange in &driven.exchanges {
            let heard = sound(exchange, self.cell.format, self.speaker.pcm_rate_hz);
            if let Ok(sound) = &heard {
                audio_s += sound.audio_s;
                ends.push(exchange.sent + Duration::from_secs_f64(sound.last_ms / 1e3));
                self.evidence.get_or_insert_with(|| Evidence::of(sound));
            }
            replies.push(reply(exchange, heard, self.cell.text.chars()));
        }
        let begun = driven.exchanges.iter().map(|exchange| exchange.sent).min();
        let span_s = begun.zip(ends.into_iter().max()).map(|(from, to)| (to - from).as_secs_f64());
        let together =
            span_s.filter(|span_s| *span_s > 0.0).map(|s| (Metric::RealTimeX, audio_s / s));
        Block { together: together.into_iter().collect(), ..Block::of(driven, replies) }
    }
}

impl Evidence {
    fn of(sound: &Sound) -> Evidence {
        let Sound { body, rate_hz, arrivals, .. } = sound;
        let bytes = body.len() as u64;
        Evidence { sha256: sha256_hex(body), bytes, rate_hz: *rate_hz, arrivals: arrivals.clone() }
    }
}

fn reply(exchange: &Exchange, heard: Result<Sound, SoundFault>, chars: usize) -> Reply {
    let reply = Reply::of(exchange);
    let sound = match heard {
        Ok(sound) => sound,
        Err(fault) => {
            let was_stopped = fault == SoundFault::Answer(Fault::Stopped);
            return Reply { fault: Some(fault.to_string()), was_stopped, ..reply };
        }
    };
    let late_ms = exchange.sent.saturating_sub(exchange.sched).as_secs_f64() * 1e3;
    let mut figures = sound.by_name();
    figures.insert(Metric::CharsS, chars as f64 / (sound.last_ms / 1e3));
    figures.insert(Metric::DispatchMs, late_ms);
    figures.extend(exchange.connect.map(|took| (Metric::ConnectMs, took.as_secs_f64() * 1e3)));
    Reply { figures, stalls: stalls(&sound.gaps_ms), gaps_ms: sound.gaps_ms, ..reply }
}
