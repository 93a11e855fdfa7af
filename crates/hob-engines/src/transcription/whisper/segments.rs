//! Cuts the text of a pass into segments: at its own times, or at the ends of its sentences.
//! A text without times gets those of its words, so asking for times does not change how it is decoded.

use hob_core::{Language, Segment, is_full_stop};
use hob_speech::is_sentence_end;

use super::Whisper;
use super::passes::Pass;
use super::tokens::TIMESTAMP_S;
use super::words::PlacedWord;

/// Marks that end a sentence if a space follows. A full stop may also belong to an abbreviation ("p.m.").
const ENDS_BEFORE_SPACE: [char; 2] = ['?', '!'];
/// Marks that may follow the full stop of another script, and belong to its sentence.
const CLOSING: [char; 11] = ['!', '?', '”', '’', '」', '』', '）', '】', '》', '〉', '»'];
/// A shorter sentence, in seconds, is in one segment with the next one.
const SENTENCE_S_MIN: f64 = 1.0;
/// Tokens after a full stop that decide whether it ends a sentence.
const TOKENS_AHEAD: usize = 16;

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

    /// Cuts a text that has no times at the ends of its sentences. `words` are its words, and `language` is the code of
    /// its language.
    pub(super) fn sentences(
        &self,
        pass: &Pass,
        words: &[PlacedWord],
        language: &str,
        sound_s: f64,
    ) -> Vec<Segment> {
        let language = language_with_rules(language);
        let mut segments: Vec<Segment> = Vec::new();
        let (mut from, mut end_s) = (0, 0.0_f64);
        for to in 1..=pass.tokens.len() {
            let (before, after) = (&pass.tokens[from..to], &pass.tokens[to..]);
            if !after.is_empty() && !self.ends_sentence(before, after, language) {
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

    /// Whether the tokens `before` end a sentence, if those `after` follow.
    fn ends_sentence(&self, before: &[u32], after: &[u32], language: Language) -> bool {
        let bytes: Vec<u8> =
            before.iter().flat_map(|token| self.tokens.bytes(*token)).copied().collect();
        // A character may be cut between tokens.
        let Ok(text) = std::str::from_utf8(&bytes) else { return false };
        let ahead = || self.tokens.text(&after[..after.len().min(TOKENS_AHEAD)]);
        if text.trim_end_matches(CLOSING).ends_with(is_full_stop) {
            // "？！" and "。”" are not cut.
            return !ahead().starts_with(|c: char| is_full_stop(c) || CLOSING.contains(&c));
        }
        let begins_with_space = |token: &u32| self.tokens.bytes(*token).first() == Some(&b' ');
        if !after.first().is_some_and(begins_with_space) {
            return false;
        }
        if !text.ends_with('.') {
            return text.ends_with(ENDS_BEFORE_SPACE);
        }
        is_sentence_end(text, &ahead(), language)
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

/// Finds the language with the abbreviations of a text in this one. It is English, if hob knows none of them.
fn language_with_rules(code: &str) -> Language {
    let is_meant = |language: &Language| language.tag().split('-').next() == Some(code);
    Language::ALL.into_iter().find(is_meant).unwrap_or(Language::AmericanEnglish)
}
