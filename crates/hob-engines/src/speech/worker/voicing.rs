//! The state of one request inside the worker: its text, its current utterance, and how much was sent.
//! It is independent of other requests.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hob_core::{Speed, WordTiming};
use hob_speech::SpokenUnit;

use crate::speech::protocol::Begin;
use crate::speech::scheduler::NextWindow;

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

/// The streams of a worker by their numbers, without those that compute a window now.
pub(super) type OpenStreams<Text, Utterance> = BTreeMap<u32, Voicing<Text, Utterance>>;

/// A stream that computes a window: it is out of the open streams, and its utterance is out of `voicing`.
#[derive(Debug)]
pub(super) struct Speaking<Text, Utterance> {
    pub(super) turn: NextWindow,
    pub(super) voicing: Voicing<Text, Utterance>,
    pub(super) utterance: Utterance,
}

impl<Text, Utterance> Speaking<Text, Utterance> {
    /// Takes a stream out of `streams`. A stream without an utterance stays in it.
    pub(super) fn take(
        streams: &mut OpenStreams<Text, Utterance>,
        turn: NextWindow,
    ) -> Option<Speaking<Text, Utterance>> {
        let Entry::Occupied(mut open) = streams.entry(turn.stream) else {
            return None;
        };
        let utterance = open.get_mut().utterance.take()?;
        Some(Speaking { turn, voicing: open.remove(), utterance })
    }

    /// Takes two streams out of `streams`, or neither.
    pub(super) fn take_pair(
        streams: &mut OpenStreams<Text, Utterance>,
        [first, second]: [NextWindow; 2],
    ) -> Option<[Speaking<Text, Utterance>; 2]> {
        let first = Speaking::take(streams, first)?;
        match Speaking::take(streams, second) {
            Some(second) => Some([first, second]),
            None => {
                let Speaking { turn, voicing, utterance } = first;
                let voicing = Voicing { utterance: Some(utterance), ..voicing };
                streams.insert(turn.stream, voicing);
                None
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use hob_core::{Language, SpeechPace};

    use super::*;

    /// A stream with this utterance.
    fn voicing(utterance: Option<&'static str>) -> Voicing<(), &'static str> {
        let begin = Begin {
            language: Language::AmericanEnglish,
            speed: Speed::NORMAL,
            pace: SpeechPace::Live,
            credit: 1,
            voice: "af_plain".to_owned(),
            lexicon: BTreeMap::new(),
            dictionary: None,
        };
        Voicing { utterance, ..Voicing::new(begin, ()) }
    }

    /// The utterances that are taken, and those that stay with their streams.
    fn check(pair: [u32; 2], taken: Option<[&str; 2]>, left: &[(u32, Option<&'static str>)]) {
        let mut streams = OpenStreams::from([
            (1, voicing(Some("one"))),
            (2, voicing(Some("two"))),
            (3, voicing(None)),
        ]);
        let turns = pair.map(|stream| NextWindow { stream, window_s: 2.0 });
        let speaking = Speaking::take_pair(&mut streams, turns);
        assert_eq!(speaking.map(|pair| pair.map(|speaking| speaking.utterance)), taken, "{pair:?}");
        let open: Vec<_> =
            streams.iter().map(|(stream, voicing)| (*stream, voicing.utterance)).collect();
        assert_eq!(open, left, "{pair:?}");
    }

    #[test]
    fn a_pair_is_taken_whole_or_not_at_all() {
        let all = [(1, Some("one")), (2, Some("two")), (3, None)];
        check([1, 2], Some(["one", "two"]), &[(3, None)]);
        check([2, 1], Some(["two", "one"]), &[(3, None)]);
        // Without an utterance, without a stream, and twice the same stream.
        check([1, 3], None, &all);
        check([3, 1], None, &all);
        check([1, 4], None, &all);
        check([1, 1], None, &all);
    }
}
