//! One loaded accent of English: turns a normalised sentence into symbols, without dropping a word.
//! Its dictionary and tagger (misaki) take a tenth of a second to load, so this happens once and not per request.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use misaki_g2p::{G2P, Language, MToken};

use super::Sounds;
use super::align::token_ranges;
use crate::accent::Accent;
use crate::alphabet::{is_heard, is_phoneme};
use crate::letters;
use crate::reading::{ReadWord, Reading, Voicing};
use crate::spelling::spell;
use crate::spoken::SpokenWord;
use crate::unknown::UnknownWords;

/// What misaki writes for a word that it does not know.
const UNKNOWN: char = '❓';

pub(super) struct EnglishAccent {
    accent: Accent,
    misaki: G2P,
    unknown: UnknownWords,
}

hob_core::debug_fields!(EnglishAccent: accent);

/// A part of the sentence with its sounds: a token of misaki, or a word read alone.
struct Piece {
    range: Range<usize>,
    phonemes: String,
    space_after: bool,
}

impl EnglishAccent {
    pub(super) fn load(accent: Accent, espeak: Option<&Path>) -> EnglishAccent {
        let language = match accent {
            Accent::American => Language::EnglishUS,
            Accent::British => Language::EnglishGB,
        };
        let misaki = G2P::new(language);
        EnglishAccent { accent, misaki, unknown: UnknownWords::new(accent, espeak) }
    }

    pub(super) fn sounds(&mut self, reading: &Reading) -> Sounds {
        let pieces = self.sentence(&reading.text).unwrap_or_else(|| self.word_by_word(reading));
        self.assemble(reading, pieces)
    }

    /// Reads the sentence as a whole. `None` if misaki fails or its tokens do not spell the text.
    fn sentence(&mut self, text: &str) -> Option<Vec<Piece>> {
        let tokens = self.tokens(text)?;
        let ranges = token_ranges(text, tokens.iter().map(|t| (&*t.text, &*t.whitespace)))?;
        let pieces = tokens.iter().zip(ranges).map(|(token, range)| Piece {
            range,
            phonemes: self.token_phonemes(token),
            space_after: !token.whitespace.is_empty(),
        });
        Some(pieces.collect())
    }

    /// Reads each word alone, and keeps the punctuation between them.
    fn word_by_word(&mut self, reading: &Reading) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut end = 0;
        for word in &reading.words {
            pieces.push(between(reading, end..word.said.start));
            for part in reading.text[word.said.clone()].split(' ') {
                let phonemes = self.word(part);
                pieces.push(Piece { range: word.said.clone(), phonemes, space_after: true });
            }
            if let Some(last) = pieces.last_mut() {
                last.space_after = false;
            }
            end = word.said.end;
        }
        pieces.push(between(reading, end..reading.text.len()));
        pieces
    }

    /// After a panic in the dictionary code, the sentence is read without parts of speech. The voice keeps working.
    fn tokens(&self, text: &str) -> Option<Vec<MToken>> {
        let result = catch_unwind(AssertUnwindSafe(|| self.misaki.g2p(text)));
        Some(result.ok()?.ok()?.1)
    }

    fn token_phonemes(&mut self, token: &MToken) -> String {
        let phonemes = token.phonemes.as_deref().unwrap_or("");
        let is_word = token.text.chars().any(char::is_alphanumeric);
        if is_word && (!is_heard(phonemes) || phonemes.contains(UNKNOWN)) {
            self.word_unknown(&token.text)
        } else {
            phonemes.trim_end().to_owned()
        }
    }

    /// Reads a word alone, known or unknown.
    fn word(&mut self, word: &str) -> String {
        self.known(word).unwrap_or_else(|| self.word_unknown(word))
    }

    fn known(&self, word: &str) -> Option<String> {
        let tokens = self.tokens(word)?;
        let phonemes: String = tokens.iter().filter_map(|t| t.phonemes.as_deref()).collect();
        (is_heard(&phonemes) && !phonemes.contains(UNKNOWN)).then_some(phonemes)
    }

    /// Splits a compound first: its parts may be known when the whole is not.
    fn word_unknown(&mut self, word: &str) -> String {
        let parts: Vec<&str> =
            word.split(['-', '.', '/', '_', ' ']).filter(|part| !part.is_empty()).collect();
        if parts.len() > 1 {
            let sounds: Vec<String> = parts.iter().map(|part| self.word(part)).collect();
            return sounds.join(" ");
        }
        let EnglishAccent { misaki, unknown, .. } = self;
        let lookup = |word: &str| {
            let result = catch_unwind(AssertUnwindSafe(|| misaki.g2p(word)));
            let phonemes = result.ok()?.ok()?.0;
            let known = !phonemes.contains(UNKNOWN) && !phonemes.trim().is_empty();
            known.then(|| phonemes.trim().to_owned())
        };
        let sounds = unknown.sounds(word, lookup);
        if sounds.is_empty() { letters::sounds("unknown", self.accent) } else { sounds }
    }

    fn assemble(&mut self, reading: &Reading, pieces: Vec<Piece>) -> Sounds {
        let mut sounds = Sounds::default();
        let mut at = 0;
        let mut last_word = None;
        for piece in pieces {
            while at < reading.words.len() && reading.words[at].said.end <= piece.range.start {
                at += 1;
            }
            let index = (at < reading.words.len()
                && reading.words[at].said.start < piece.range.end)
                .then_some(at);
            let start = sounds.symbols.len();
            match index.map(|index| &reading.words[index]) {
                Some(word) if word.voicing != Voicing::Words => {
                    if last_word != index {
                        sounds.push(&self.voiced(reading, word));
                    }
                }
                _ => sounds.push(&piece.phonemes),
            }
            if let Some(index) = index {
                sounds.credit(&reading.words[index], start, last_word == Some(index));
                last_word = Some(index);
            }
            if piece.space_after {
                sounds.space();
            }
        }
        sounds.trim_end();
        sounds
    }

    fn voiced(&self, reading: &Reading, word: &ReadWord) -> String {
        match &word.voicing {
            Voicing::Phonemes(phonemes) => phonemes.clone(),
            Voicing::Letters | Voicing::Words => {
                spell(&reading.text[word.said.clone()], self.accent)
            }
        }
    }
}

fn between(reading: &Reading, range: Range<usize>) -> Piece {
    let phonemes = reading.text[range.clone()].to_owned();
    Piece { range, phonemes, space_after: false }
}

impl Sounds {
    /// Appends only symbols that the model knows, and never two spaces in a row.
    pub(super) fn push(&mut self, phonemes: &str) {
        for symbol in phonemes.chars() {
            if symbol.is_whitespace() {
                self.space();
            } else if is_phoneme(symbol) {
                self.symbols.push(symbol);
            }
        }
    }

    pub(super) fn space(&mut self) {
        if self.symbols.last().is_some_and(|last| *last != ' ') {
            self.symbols.push(' ');
        }
    }

    pub(super) fn trim_end(&mut self) {
        while self.symbols.last() == Some(&' ') {
            self.symbols.pop();
        }
        let end = self.symbols.len();
        for word in &mut self.words {
            word.phonemes.end = word.phonemes.end.min(end);
        }
    }

    /// Notes that the symbols from `start` on belong to this word.
    fn credit(&mut self, word: &ReadWord, start: usize, goes_on: bool) {
        let end = self.symbols.len();
        match self.words.last_mut() {
            Some(last) if goes_on => last.phonemes.end = end,
            _ if end > start => {
                self.words.push(SpokenWord { span: word.span.clone(), phonemes: start..end });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_by_word_says_the_same_words_with_their_punctuation() {
        let mut accent = EnglishAccent::load(Accent::American, None);
        let mut reading = Reading::default();
        reading.say(0..5, "Hello");
        reading.mark(',');
        reading.open('“');
        reading.say(8..10, "five dollars");
        reading.spell(11..14, "GPU");
        reading.mark('.');
        let whole = accent.sounds(&reading);
        let pieces = accent.word_by_word(&reading);
        let apart = accent.assemble(&reading, pieces);
        assert_eq!(apart.symbols.iter().collect::<String>(), "həlˈO, “fˈIv dˈɑləɹz ʤˌipˌijˈu.");
        assert_eq!(apart, whole);
    }
}
