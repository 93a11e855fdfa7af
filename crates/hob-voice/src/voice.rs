//! The voice of one message: its text goes to the speech model clause by clause, and comes back as sound.
//! The client gets the text of a clause just before its sound.

use std::time::{Duration, Instant};

use hob_core::WordTiming;
use hob_core::realtime::{ContentRef, RealtimeEvent};

use crate::clause::{ClauseCutter, SpokenPiece};
use crate::interface::SessionEffect;
use crate::marks::{Audible, faint_beginning};
use crate::spoken::SpokenText;

/// Sound of one event, at least and at most.
const DELTA_MS_MIN: usize = 20;
const DELTA_MS_MAX: usize = 100;
/// Faint sound before the first word that is left out, at most. On a machine that is fast enough, the first window of hob's
/// voices lasts at least 34 ms longer than the next one takes, and hob's players begin at least 15 ms late.
const LEFT_OUT_MS_MAX: usize = 40;

#[derive(Debug)]
pub(crate) struct Voice {
    pub(crate) stream: u64,
    pub(crate) spoken: SpokenText,
    /// The speech model has all text.
    pub(crate) text_ended: bool,
    /// The stream has ended, by its own end or by a failure.
    pub(crate) has_ended: bool,
    at: ContentRef,
    cutter: ClauseCutter,
    /// The speech model was given the first clause before the response began.
    first_is_said: bool,
    /// Bytes of the text that the client has.
    shown: usize,
    /// Samples that are too few for an event.
    unsent: Vec<f32>,
    audible: Audible,
    /// When the first sample was sent.
    began: Option<Instant>,
    /// When the client plays the first audible sample.
    pub(crate) audible_at: Option<Instant>,
}

impl Voice {
    pub(crate) fn new(stream: u64, at: ContentRef) -> Voice {
        Voice {
            stream,
            spoken: SpokenText::new(),
            text_ended: false,
            has_ended: false,
            at,
            cutter: ClauseCutter::default(),
            first_is_said: false,
            shown: 0,
            unsent: Vec::new(),
            audible: Audible::default(),
            began: None,
            audible_at: None,
        }
    }

    /// A voice that has the first clause of the text that will be written.
    pub(crate) fn with_first_clause(stream: u64, at: ContentRef) -> Voice {
        Voice { first_is_said: true, ..Voice::new(stream, at) }
    }

    pub(crate) fn shown_text(&self) -> &str {
        &self.spoken.text[..self.shown]
    }

    /// The speech model has the first clause, and has not said anything.
    pub(crate) fn is_about_to_begin(&self) -> bool {
        !self.spoken.text.is_empty() && self.spoken.samples == 0 && !self.has_ended
    }

    pub(crate) fn write(&mut self, text: &str, effects: &mut Vec<SessionEffect>) {
        for piece in self.cutter.push(text) {
            self.say(piece, effects);
        }
    }

    pub(crate) fn end_text(&mut self, effects: &mut Vec<SessionEffect>) {
        if let Some(piece) = self.cutter.finish() {
            self.say(piece, effects);
        }
        self.text_ended = true;
        effects.push(SessionEffect::EndText { stream: self.stream });
    }

    pub(crate) fn take_words(&mut self, words: Vec<WordTiming>, effects: &mut Vec<SessionEffect>) {
        let length = self.spoken.text.len();
        let words = words.into_iter().filter(|word| word.span.end <= length);
        self.spoken.words.extend(words);
        let end = self.spoken.words.iter().map(|word| word.span.end).max().unwrap_or(0);
        self.show(self.spoken.with_punctuation(end), effects);
    }

    pub(crate) fn take_samples(
        &mut self,
        samples: &[f32],
        now: Instant,
        effects: &mut Vec<SessionEffect>,
    ) {
        self.unsent.extend_from_slice(samples);
        if self.spoken.samples == 0 {
            self.leave_out_faint_beginning();
        }
        let min = self.samples_of(DELTA_MS_MIN);
        while self.unsent.len() >= min {
            let count = self.unsent.len().min(self.samples_of(DELTA_MS_MAX));
            self.send(count, now, effects);
        }
    }

    /// All sound has arrived.
    pub(crate) fn end_sound(&mut self, now: Instant, effects: &mut Vec<SessionEffect>) {
        self.has_ended = true;
        if !self.unsent.is_empty() {
            self.send(self.unsent.len(), now, effects);
        }
        self.spoken.is_complete = true;
        self.show(self.spoken.text.len(), effects);
    }

    /// Drops sound before the first word that is too faint to be heard: a listener would only wait for it to pass.
    fn leave_out_faint_beginning(&mut self) {
        let left = self.samples_of(LEFT_OUT_MS_MAX).saturating_sub(self.spoken.left_out);
        let faint = faint_beginning(&self.unsent, left, self.spoken.sample_rate_hz);
        self.unsent.drain(..faint);
        self.spoken.left_out += faint;
    }

    fn say(&mut self, piece: SpokenPiece, effects: &mut Vec<SessionEffect>) {
        let stream = self.stream;
        let (text, is_first) = match piece {
            SpokenPiece::FirstClause(text) => (text, true),
            SpokenPiece::More(text) => (text, false),
        };
        self.spoken.text.push_str(&text);
        if is_first && self.first_is_said {
            return;
        }
        effects.push(SessionEffect::Say { stream, text });
        if is_first {
            effects.push(SessionEffect::Say { stream, text: String::new() });
        }
    }

    fn send(&mut self, count: usize, now: Instant, effects: &mut Vec<SessionEffect>) {
        // A voice without times of words: the text goes ahead of its sound.
        if self.spoken.words.is_empty() {
            self.show(self.spoken.text.len(), effects);
        }
        let began = *self.began.get_or_insert(now);
        self.spoken.samples += count as u64;
        let samples: Vec<f32> = self.unsent.drain(..count).collect();
        let (at, sample_rate_hz) = (self.at.clone(), self.spoken.sample_rate_hz);
        if self.audible_at.is_none()
            && let Some(position) = self.audible.hear(&samples, sample_rate_hz)
        {
            let offset = Duration::from_secs_f64(position as f64 / f64::from(sample_rate_hz));
            self.audible_at = Some(now.max(began + offset));
        }
        effects.push(SessionEffect::Send(RealtimeEvent::AudioDelta {
            at,
            samples,
            sample_rate_hz,
        }));
    }

    /// Shows the text up to the byte `end`.
    fn show(&mut self, end: usize, effects: &mut Vec<SessionEffect>) {
        let Some(delta) = self.spoken.text.get(self.shown..end).filter(|text| !text.is_empty())
        else {
            return;
        };
        let (at, delta) = (self.at.clone(), delta.to_owned());
        self.shown = end;
        effects.push(SessionEffect::Send(RealtimeEvent::SpokenTextDelta { at, delta }));
    }

    fn samples_of(&self, ms: usize) -> usize {
        (self.spoken.sample_rate_hz as usize * ms / 1_000).max(1)
    }
}
