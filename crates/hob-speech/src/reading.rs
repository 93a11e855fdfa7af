//! A sentence as it is said: plain words and punctuation, with their bytes in the user's text.
//! The normaliser produces it and the phonemizer reads it.

use std::ops::Range;

/// Words and punctuation in one line of text, as a person would read them aloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) text: String,
    pub(crate) words: Vec<ReadWord>,
    /// The next word follows without a space, because an opening mark precedes it.
    opened: bool,
}

/// One word of the user's text and the words that it is read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadWord {
    /// Bytes of the user's text.
    pub(crate) span: Range<usize>,
    /// Bytes of [`Reading::text`].
    pub(crate) said: Range<usize>,
    pub(crate) voicing: Voicing,
}

/// How the words become sounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Voicing {
    /// From dictionary and rules.
    Words,
    /// Letter by letter, by the letters' names.
    Letters,
    /// The user wrote the phonemes.
    Phonemes(String),
}

impl Reading {
    /// Reads `span` as these words; an empty string says nothing.
    pub(crate) fn say(&mut self, span: Range<usize>, words: &str) {
        self.push(span, words, Voicing::Words);
    }

    /// Reads `span` letter by letter.
    pub(crate) fn spell(&mut self, span: Range<usize>, letters: &str) {
        self.push(span, letters, Voicing::Letters);
    }

    pub(crate) fn pronounce(&mut self, span: Range<usize>, word: &str, phonemes: &str) {
        self.push(span, word, Voicing::Phonemes(phonemes.to_owned()));
    }

    /// Adds punctuation after a word. A mark at the beginning or after another mark is not heard; of two marks, the
    /// one that ends a sentence stays.
    pub(crate) fn mark(&mut self, mark: char) {
        if mark == '—' {
            return self.dash();
        }
        match self.text.chars().last() {
            None => {}
            Some('“' | '(') => {}
            Some(last) if last == mark => {}
            Some(',' | ';' | ':') if !matches!(mark, '”' | ')') => self.replace_last(mark),
            Some('.' | '!' | '?' | '…') if !matches!(mark, '”' | ')' | '?' | '!') => {}
            Some('.' | '…') if matches!(mark, '?' | '!') => self.replace_last(mark),
            Some(_) => self.text.push(mark),
        }
    }

    /// Adds an opening bracket or quotation mark.
    pub(crate) fn open(&mut self, mark: char) {
        self.space();
        self.text.push(mark);
        self.opened = true;
    }

    /// Ends the sentence. Headings and list items mostly have no full stop, but are heard as sentences.
    pub(crate) fn close(&mut self) {
        if self.text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | ';' | ':' | ')'))
        {
            self.mark('.');
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn dash(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(['—', '“', '(']) {
            self.text.push_str(" —");
        }
    }

    fn replace_last(&mut self, mark: char) {
        self.text.pop();
        self.text.push(mark);
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.opened {
            self.text.push(' ');
        }
        self.opened = false;
    }

    fn push(&mut self, span: Range<usize>, words: &str, voicing: Voicing) {
        if words.is_empty() {
            return;
        }
        self.space();
        let start = self.text.len();
        self.text.push_str(words);
        self.words.push(ReadWord { span, said: start..self.text.len(), voicing });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_marks_and_spans_line_up() {
        let mut reading = Reading::default();
        reading.mark(',');
        reading.open('“');
        reading.say(1..3, "five dollars");
        reading.mark(',');
        reading.mark('”');
        reading.mark('—');
        reading.spell(9..12, "GPU");
        reading.mark(',');
        reading.mark('.');
        reading.mark(',');
        assert_eq!(reading.text, "“five dollars,” — GPU.");
        let said: Vec<&str> =
            reading.words.iter().map(|word| &reading.text[word.said.clone()]).collect();
        assert_eq!(said, ["five dollars", "GPU"]);
    }
}
