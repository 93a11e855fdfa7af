//! A language without spaces that is read with dictionaries: Japanese or Mandarin → the model's symbols.
//! The words of the dictionaries are matched with the user's characters. Foreign words are read by English.

use std::ops::Range;
use std::path::Path;

use hob_core::Language;

use super::Sounds;
use crate::accent::Accent;
use crate::japanese::{Japanese, kana_symbols, letter_kana};
use crate::mandarin::{Mandarin, Syllable};
use crate::reading::{ReadWord, Reading, Voicing};
use crate::spelling::spell;
use crate::spoken::SpokenWord;

/// From this many foreign words in a row on, they are a sentence of their own and no borrowed words.
const SENTENCE_WORDS_MIN: usize = 3;

/// Loaded dictionaries.
#[derive(Debug)]
pub(super) enum DictionaryLanguage {
    Japanese(Box<Japanese>),
    Mandarin(Box<Mandarin>),
}

/// Reads words in Latin letters.
pub(super) type English<'a> = &'a mut dyn FnMut(&Reading) -> Sounds;

/// A word as it is heard: its characters in a text of the language, and its symbols.
struct Heard {
    chars: Range<usize>,
    symbols: String,
    joins: bool,
}

/// Words of the reading that are read together.
#[derive(PartialEq)]
enum Run {
    Native,
    Foreign,
    Alone,
}

struct Speaking<'a> {
    reading: &'a Reading,
    sounds: Sounds,
    /// The words of the reading that own the last entry of the sounds' words.
    last: Range<usize>,
}

impl DictionaryLanguage {
    /// Loads the dictionaries from their folder.
    pub(super) fn load(language: Language, folder: &Path) -> Result<DictionaryLanguage, String> {
        let loaded = match language {
            Language::Japanese => Japanese::load(folder)
                .map(|japanese| DictionaryLanguage::Japanese(Box::new(japanese))),
            _ => Mandarin::load(folder)
                .map(|mandarin| DictionaryLanguage::Mandarin(Box::new(mandarin))),
        };
        loaded.map_err(|error| error.to_string())
    }

    /// The sounds of a sentence.
    pub(super) fn sounds(&self, reading: &Reading, english: English<'_>) -> Sounds {
        let mut speaking = Speaking { reading, sounds: Sounds::default(), last: 0..0 };
        let mut at = 0;
        let mut end = 0;
        while at < reading.words.len() {
            let word = &reading.words[at];
            let between = &reading.text[end..word.said.start];
            if between.trim().is_empty() {
                speaking.sounds.space();
            } else {
                speaking.sounds.push(between);
            }
            let length = run_length(reading, at);
            match run(reading, word) {
                Run::Native => self.native(&mut speaking, at..at + length),
                Run::Foreign => self.foreign(&mut speaking, at..at + length, english),
                Run::Alone => self.alone(&mut speaking, at),
            }
            end = reading.words[at + length - 1].said.end;
            at += length;
        }
        speaking.sounds.push(&reading.text[end..]);
        speaking.sounds.trim_end();
        speaking.sounds
    }

    fn native(&self, speaking: &mut Speaking<'_>, words: Range<usize>) {
        let mut text = String::new();
        let mut owners: Vec<usize> = Vec::new();
        for index in words {
            let said = &speaking.reading.text[speaking.reading.words[index].said.clone()];
            owners.extend(said.chars().map(|_| index));
            text.push_str(said);
        }
        let is_mandarin = matches!(self, DictionaryLanguage::Mandarin(_));
        // The gap before the first word was said with the marks.
        let mut last: Option<usize> = None;
        for Heard { chars, symbols, joins } in self.pronounced(&text) {
            let owned = owners.get(chars.start).zip(owners.get(chars.end.saturating_sub(1)));
            let Some((first, owner)) = owned else { continue };
            let is_stopped = speaking.sounds.symbols.ends_with(&['ʔ']) || symbols.starts_with('ʔ');
            let is_same_number = is_mandarin && last == Some(*first);
            if last.is_some() && !joins && !is_stopped && !is_same_number {
                speaking.sounds.space();
            }
            speaking.say(&symbols, *first..*owner + 1);
            last = Some(*owner);
        }
    }

    fn pronounced(&self, text: &str) -> Vec<Heard> {
        match self {
            DictionaryLanguage::Japanese(japanese) => {
                let words = japanese.words(text).into_iter();
                words
                    .map(|word| {
                        let symbols = kana_symbols(&word.kana);
                        // A long vowel of its own belongs to the word before.
                        let symbols = if word.kana.starts_with('ー') {
                            format!("ː{symbols}")
                        } else {
                            symbols
                        };
                        Heard { chars: word.chars, symbols, joins: word.joins }
                    })
                    .collect()
            }
            DictionaryLanguage::Mandarin(mandarin) => {
                let mut at = 0;
                let words = mandarin.words(text).into_iter();
                words
                    .map(|syllables| {
                        let chars = at..at + syllables.len();
                        at = chars.end;
                        let symbols = syllables.iter().map(Syllable::symbols).collect();
                        Heard { chars, symbols, joins: false }
                    })
                    .collect()
            }
        }
    }

    /// Words in Latin letters. Japanese knows many of them by its own dictionary.
    fn foreign(&self, speaking: &mut Speaking<'_>, words: Range<usize>, english: English<'_>) {
        if let DictionaryLanguage::Japanese(japanese) = self
            && words.len() < SENTENCE_WORDS_MIN
        {
            let reading = speaking.reading;
            let said = |index: usize| &reading.text[reading.words[index].said.clone()];
            let kana: Option<Vec<String>> =
                words.clone().map(|index| japanese.latin(said(index))).collect();
            if let Some(kana) = kana {
                for (index, kana) in words.zip(kana) {
                    speaking.sounds.space();
                    speaking.say(&kana_symbols(&kana), index..index + 1);
                }
                return;
            }
        }
        let mut sentence = Reading::default();
        for index in words.clone() {
            let word = &speaking.reading.words[index];
            sentence.say(index..index + 1, &speaking.reading.text[word.said.clone()]);
        }
        let foreign = english(&sentence);
        // The spans of the sentence are positions among the words.
        let mut end = 0;
        for word in &foreign.words {
            let symbols = |range: Range<usize>| foreign.symbols[range].iter().collect::<String>();
            speaking.sounds.push(&symbols(end..word.phonemes.start));
            speaking.say(&symbols(word.phonemes.clone()), word.span.clone());
            end = word.phonemes.end;
        }
    }

    /// Letters by their names, or phonemes that are given.
    fn alone(&self, speaking: &mut Speaking<'_>, index: usize) {
        let word = &speaking.reading.words[index];
        let said = &speaking.reading.text[word.said.clone()];
        let symbols = match (&word.voicing, self) {
            (Voicing::Phonemes(phonemes), _) => phonemes.clone(),
            (_, DictionaryLanguage::Japanese(japanese)) => {
                let by_letter = || said.chars().filter_map(letter_kana).collect::<String>();
                kana_symbols(&japanese.latin(said).unwrap_or_else(by_letter))
            }
            (_, DictionaryLanguage::Mandarin(_)) => spell(said, Accent::American),
        };
        speaking.say(&symbols, index..index + 1);
    }
}

impl Speaking<'_> {
    /// Appends symbols that belong to these words of the reading.
    fn say(&mut self, symbols: &str, words: Range<usize>) {
        let start = self.sounds.symbols.len();
        self.sounds.push(symbols);
        let end = self.sounds.symbols.len();
        if start == end || words.is_empty() {
            return;
        }
        let span = |range: &Range<usize>| {
            let words = &self.reading.words;
            words[range.start].span.start..words[range.end - 1].span.end
        };
        match self.sounds.words.last_mut() {
            // Words that replace the same figures are one word of the user.
            Some(last) if self.last.end > words.start || last.span == span(&words) => {
                self.last.end = self.last.end.max(words.end);
                last.span = span(&self.last);
                last.phonemes.end = end;
            }
            _ => {
                self.sounds.words.push(SpokenWord { span: span(&words), phonemes: start..end });
                self.last = words;
            }
        }
    }
}

fn is_foreign(said: &str) -> bool {
    said.chars().next().is_some_and(|c| c.is_alphabetic() && u32::from(c) < 0x250)
}

fn run(reading: &Reading, word: &ReadWord) -> Run {
    match word.voicing {
        Voicing::Words if is_foreign(&reading.text[word.said.clone()]) => Run::Foreign,
        Voicing::Words => Run::Native,
        Voicing::Letters | Voicing::Phonemes(_) => Run::Alone,
    }
}

/// The number of words from `at` on that are read together: without marks in between, and of one kind.
fn run_length(reading: &Reading, at: usize) -> usize {
    let kind = run(reading, &reading.words[at]);
    let goes_on = |index: &usize| {
        let (before, word) = (&reading.words[*index - 1], &reading.words[*index]);
        let between = &reading.text[before.said.end..word.said.start];
        kind != Run::Alone && kind == run(reading, word) && between.trim().is_empty()
    };
    1 + (at + 1..reading.words.len()).take_while(goes_on).count()
}
