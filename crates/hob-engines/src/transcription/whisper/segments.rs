//! Cuts the text of a pass into segments: at its own times, or at the ends of its sentences.
//! A text without times gets those of its words, so asking for times does not change how it is decoded.

use hob_core::Segment;
use hob_speech::is_full_stop;

use super::Whisper;
use super::passes::Pass;
use super::tokens::TIMESTAMP_S;
use super::words::PlacedWord;

/// Marks that end a sentence if a space follows.
const ENDS_BEFORE_SPACE: [char; 3] = ['.', '?', '!'];
/// A shorter sentence, in seconds, and what may be an abbreviation ("Mr."), is in one segment with the next one.
const SENTENCE_S_MIN: f64 = 1.0;

impl Whisper {
    /// Cuts the text at its times. Without times it is one segment.
    pub(super) fn segments(&self, pass: &Pass, sound_s: f64) -> Vec<Segment> {
        let first_time = self.tokens.first_timestamp();
        let seconds = |token: u32| (f64::from(token - first_time) * TIMESTAMP_S).min(sound_s);
        let mut segments: Vec<Segment> = Vec::new();
        let (mut start_s, mut text) = (0.0, Vec::new());
        for token in &pass.tokens {
            if *token >= first_time {
                let end_s = seconds(*token);
                segments.extend(self.segment(pass, std::mem::take(&mut text), (start_s, end_s)));
                start_s = end_s;
            } else {
                text.push(*token);
            }
        }
        segments.extend(self.segment(pass, text, (start_s, sound_s)));
        segments
    }

    /// Cuts a text that has no times at the ends of its sentences. `words` are its words.
    pub(super) fn sentences(
        &self,
        pass: &Pass,
        words: &[PlacedWord],
        sound_s: f64,
    ) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let (mut from, mut end_s) = (0, 0.0_f64);
        for to in 1..=pass.tokens.len() {
            if to < pass.tokens.len() && !self.ends_sentence(&pass.tokens[from..=to]) {
                continue;
            }
            let inside = |word: &&PlacedWord| (from..to).contains(&word.first_token);
            let mut inside = words.iter().filter(inside).map(|placed| &placed.word);
            let first = inside.next();
            let last = inside.next_back().or(first);
            let start_s = first.map_or(end_s, |word| word.start_s.min(sound_s));
            let spoken_until_s = last.map_or(start_s, |word| word.end_s.min(sound_s));
            let is_last = to == pass.tokens.len();
            let is_short = spoken_until_s - start_s < SENTENCE_S_MIN;
            // A mark after the last word, such as a note of music, has no time of its own.
            let has_more = words.iter().any(|placed| placed.first_token >= to);
            if !is_last && (is_short || !has_more) {
                continue;
            }
            let text = pass.tokens[from..to].to_vec();
            segments.extend(self.segment(pass, text, (start_s, spoken_until_s)));
            (from, end_s) = (to, spoken_until_s);
        }
        segments
    }

    /// Whether the last token begins a sentence after the others.
    fn ends_sentence(&self, tokens: &[u32]) -> bool {
        let Some((next, before)) = tokens.split_last() else { return false };
        let bytes: Vec<u8> =
            before.iter().flat_map(|token| self.tokens.bytes(*token)).copied().collect();
        // A character may be cut between tokens.
        let Ok(text) = std::str::from_utf8(&bytes) else { return false };
        let begins_with_space = self.tokens.bytes(*next).first() == Some(&b' ');
        text.ends_with(is_full_stop) || begins_with_space && text.ends_with(ENDS_BEFORE_SPACE)
    }

    /// `None` if there are no words.
    fn segment(
        &self,
        pass: &Pass,
        tokens: Vec<u32>,
        (start_s, end_s): (f64, f64),
    ) -> Option<Segment> {
        let text = self.tokens.text(&tokens);
        (!text.trim().is_empty()).then(|| Segment {
            text,
            start_s,
            end_s: end_s.max(start_s),
            tokens,
            temperature: pass.temperature,
            avg_logprob: pass.avg_logprob,
            compression_ratio: pass.compression,
            no_speech_prob: pass.no_speech,
            ..Segment::default()
        })
    }
}
