//! The seam between the speech worker and text processing: text in, spoken units out, lazily.
//! A trait of its own so that the worker is tested with units that a test wrote.

use hob_core::Language;
use hob_speech::{Phonemizer, Reader, SpokenUnit};

/// Makes units of the texts of several requests, which share nothing.
pub trait UnitSource {
    /// One request's text, as far as it has arrived and was not yet made into units.
    type Text;

    /// Gets ready for a language ahead of its first request.
    fn warm(&mut self, language: Language);

    fn open(&mut self, language: Language) -> Self::Text;

    /// More of the text, cut anywhere between characters. An empty piece says that the writer
    /// pauses: what has come is to be said now.
    fn push(&mut self, text: &mut Self::Text, piece: &str);

    /// No more text will come.
    fn finish(&mut self, text: &mut Self::Text);

    /// The next unit; none when what has arrived does not make one yet, or nothing is left.
    fn next_unit(&mut self, text: &mut Self::Text) -> Option<SpokenUnit>;

    /// Whether the text is finished and every unit was given out.
    fn is_done(&self, text: &Self::Text) -> bool;
}

impl UnitSource for Phonemizer {
    type Text = Reader;

    fn warm(&mut self, language: Language) {
        Phonemizer::warm(self, language);
    }

    fn open(&mut self, language: Language) -> Reader {
        Reader::new(language)
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

    fn is_done(&self, text: &Reader) -> bool {
        text.is_done()
    }
}

#[cfg(test)]
mod tests {
    use hob_speech::PhonemizerOptions;

    use super::*;

    /// The units of `texts`, pushed and made in turns.
    fn units(texts: &[&str]) -> Vec<Vec<SpokenUnit>> {
        let mut source = Phonemizer::new(PhonemizerOptions::default());
        source.warm(Language::AmericanEnglish);
        let mut open: Vec<Reader> =
            texts.iter().map(|_| source.open(Language::AmericanEnglish)).collect();
        for (reader, text) in open.iter_mut().zip(texts) {
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
    fn texts_that_take_turns_are_read_as_if_alone() {
        let first = "The quick brown fox jumps over the lazy dog. Then it sleeps in the warm sun.";
        let second = "Doctor Smith lives at number 12, next to the old church by the river.";
        let together = units(&[first, second]);
        assert_eq!(together, [units(&[first]).concat(), units(&[second]).concat()]);
        assert!(together.iter().all(|units| !units.is_empty()));
    }
}
