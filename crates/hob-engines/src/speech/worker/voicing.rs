//! The state of one request inside the worker: its text, its current utterance, and how much was sent.
//! It is independent of other requests.

use hob_core::{Speed, WordTiming};
use hob_speech::SpokenUnit;

use crate::speech::protocol::Begin;

/// Maximum pause. Silence is sent as samples, which take memory.
const PAUSE_S_MAX: f64 = 60.0;

/// A request that is being spoken; `Text` is the unit source's and `Utterance` the engine's.
#[derive(Debug)]
pub(super) struct Voicing<Text, Utterance> {
    pub(super) voice: String,
    pub(super) speed: Speed,
    pub(super) text: Text,
    pub(super) utterance: Option<Utterance>,
    /// Whether the text may contain another unit: text has arrived since the last unit was requested.
    pub(super) may_have_unit: bool,
    /// No more text will come.
    pub(super) text_has_ended: bool,
    /// Samples that may be sent. Negative if the last window was longer than the credit.
    credit: i64,
    samples_sent: u64,
    /// Silence before the next unit.
    pause_ms: u32,
    /// Units with words.
    units: u64,
}

impl<Text, Utterance> Voicing<Text, Utterance> {
    pub(super) fn new(begin: Begin, text: Text) -> Voicing<Text, Utterance> {
        Voicing {
            voice: begin.voice,
            speed: begin.speed,
            text,
            utterance: None,
            may_have_unit: false,
            text_has_ended: false,
            credit: begin.credit.into(),
            samples_sent: 0,
            pause_ms: 0,
            units: 0,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        (self.utterance.is_some() || self.may_have_unit) && self.credit > 0
    }

    pub(super) fn has_spoken(&self) -> bool {
        self.units > 0
    }

    pub(super) fn grant(&mut self, samples: u32) {
        self.credit += i64::from(samples);
    }

    pub(super) fn count_sent(&mut self, samples: usize) {
        self.samples_sent += samples as u64;
        self.credit -= samples as i64;
    }

    /// Counts a unit, and returns the samples of silence before it.
    pub(super) fn enter(&mut self, unit: &SpokenUnit, sample_rate_hz: u32) -> usize {
        self.units += 1;
        self.change_pause(unit.pause_after_ms, sample_rate_hz)
    }

    /// Takes a unit without words, and returns the samples of silence to send. Those before the first words are sent
    /// with them.
    pub(super) fn rest(&mut self, unit: &SpokenUnit, sample_rate_hz: u32) -> usize {
        if self.units > 0 {
            return self.change_pause(unit.pause_after_ms, sample_rate_hz);
        }
        self.pause_ms = self.pause_ms.saturating_add(unit.pause_after_ms);
        0
    }

    /// The samples of the pause that ends now. A faster speaking rate shortens pauses too.
    fn change_pause(&mut self, next_ms: u32, sample_rate_hz: u32) -> usize {
        let pause_ms = std::mem::replace(&mut self.pause_ms, next_ms);
        let pause_s = f64::from(pause_ms) / 1000.0 / f64::from(self.speed.rate());
        (pause_s.min(PAUSE_S_MAX) * f64::from(sample_rate_hz)).round() as usize
    }

    /// Converts times since the unit's first sample into times since the answer's first sample.
    pub(super) fn place(&self, words: &mut [WordTiming], sample_rate_hz: u32) {
        let sent_s = (self.samples_sent as f64 / f64::from(sample_rate_hz)) as f32;
        for word in words {
            word.change_times(|time_s| time_s + sent_s);
        }
    }
}
