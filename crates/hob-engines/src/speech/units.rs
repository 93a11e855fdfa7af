//! The interface between the speech worker and text processing: text in, spoken units out, one at a time.
//! It is a trait, so tests can give the worker scripted units.

use std::path::PathBuf;

use hob_core::Language;
use hob_speech::{Lexicon, Phonemizer, Reader, SpokenUnit};

/// Turns the texts of several requests into units. The texts do not affect each other.
pub trait UnitSource {
    /// One request's text that has arrived and is not yet turned into units.
    type Text;

    /// Loads a language before its first request.
    fn warm(&mut self, language: Language);

    /// Reads a language with the dictionary in this folder from now on.
    fn use_dictionary(&mut self, language: Language, folder: PathBuf);

    /// Begins a text, with the pronunciations of its user.
    fn open(&mut self, language: Language, lexicon: Lexicon) -> Self::Text;

    /// Adds text, cut anywhere between characters. An empty piece means that the writer pauses, so all text so
    /// far is spoken now.
    fn push(&mut self, text: &mut Self::Text, piece: &str);

    /// Marks the end of the text.
    fn finish(&mut self, text: &mut Self::Text);

    /// The next unit. None if the text so far is not enough for one, if no text is left, or if reading failed.
    fn next_unit(&mut self, text: &mut Self::Text) -> Option<SpokenUnit>;

    /// Why the last call of [`UnitSource::next_unit`] failed, once.
    fn take_failure(&mut self) -> Option<String> {
        None
    }

    /// Whether the text has ended and all its units were returned.
    fn is_done(&self, text: &Self::Text) -> bool;
}

impl UnitSource for Phonemizer {
    type Text = Reader;

    fn warm(&mut self, language: Language) {
        Phonemizer::warm(self, language);
    }

    fn use_dictionary(&mut self, language: Language, folder: PathBuf) {
        Phonemizer::use_dictionary(self, language, folder);
    }

    fn open(&mut self, language: Language, lexicon: Lexicon) -> Reader {
        Reader::new(language).with_lexicon(lexicon)
    }

    fn push(&mut self, text: &mut Reader, piece: &str) {
        text.push(piece);
    }

    fn finish(&mut self, text: &mut Reader) {
        text.finish();
    }

    fn next_unit(&mut self, text: &mut Reader) -> Option<SpokenUnit> {
        text.next_unit(self)
    }

    fn take_failure(&mut self) -> Option<String> {
        Phonemizer::take_failure(self)
    }

    fn is_done(&self, text: &Reader) -> bool {
        text.is_done()
    }
}

#[cfg(test)]
mod tests {
    use hob_speech::PhonemizerOptions;

    use super::*;

    /// The units of `texts`, which are read unit by unit in alternation, each with its lexicon.
    fn units(texts: &[(&str, &Lexicon)]) -> Vec<Vec<SpokenUnit>> {
        let mut source = Phonemizer::new(PhonemizerOptions::default());
        source.warm(Language::AmericanEnglish);
        let mut open: Vec<Reader> = texts
            .iter()
            .map(|(_, own)| source.open(Language::AmericanEnglish, (*own).clone()))
            .collect();
        for (reader, (text, _)) in open.iter_mut().zip(texts) {
            UnitSource::push(&mut source, reader, text);
            UnitSource::finish(&mut source, reader);
        }
        let mut units = vec![Vec::new(); texts.len()];
        while open.iter().any(|reader| !UnitSource::is_done(&source, reader)) {
            for (reader, units) in open.iter_mut().zip(&mut units) {
                units.extend(UnitSource::next_unit(&mut source, reader));
            }
        }
        units
    }

    #[test]
    fn texts_read_in_turns_have_the_same_units_as_alone() {
        let first = "The quick brown fox jumps over the lazy dog. Then it sleeps in the warm sun.";
        let second = "Doctor Smith lives at number 12, next to the old church by the river.";
        let none = &Lexicon::default();
        let together = units(&[(first, none), (second, none)]);
        let apart = [units(&[(first, none)]).concat(), units(&[(second, none)]).concat()];
        assert_eq!(together, apart);
        assert!(together.iter().all(|units| !units.is_empty()));
    }

    #[test]
    fn a_language_keeps_its_dictionary_and_one_tagger() {
        let (phonemizer, bytes) = crate::memory::measured(|| {
            let mut phonemizer = Phonemizer::new(PhonemizerOptions::default());
            phonemizer.warm(Language::AmericanEnglish);
            phonemizer
        });
        // The dictionary takes 24 MB, the tagger 6 MB, and the patterns a few. misaki's unused tagger would take 28 MB more.
        assert!((25_000_000..50_000_000).contains(&bytes), "{bytes} bytes");
        drop(phonemizer);
    }

    #[test]
    fn each_text_has_its_own_pronunciations() {
        let rows = [("SQL".to_owned(), "sequel".to_owned())];
        let (own, none) = (&Lexicon::new(rows.into()).expect("a lexicon"), &Lexicon::default());
        let phonemes = |text: (&str, &Lexicon)| units(&[text]).concat()[0].phonemes.clone();
        let said = units(&[("Use SQL.", own), ("Use SQL.", none)]);
        assert_eq!(said[0][0].phonemes, phonemes(("Use sequel.", none)));
        assert_eq!(said[1][0].phonemes, phonemes(("Use SQL.", none)));
        assert_ne!(said[0], said[1]);
    }
}
