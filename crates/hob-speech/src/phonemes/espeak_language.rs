//! A language that is read through espeak-ng: a normalised sentence → the model's symbols, clause by clause.
//! espeak-ng joins and separates words, so its words are matched with the user's before they get their place.

use std::ops::Range;
use std::path::Path;

use super::Sounds;
use crate::alphabet::is_heard;
use crate::espeak::{CLAUSE_BYTES_MAX, Espeak, EspeakError};
use crate::ipa::foreign_to_misaki;
use crate::reading::{Reading, Voicing};
use crate::spoken::SpokenWord;

/// A boundary between two words moves at most this many symbols to one of espeak-ng's own.
const SNAP_MAX: usize = 2;

#[derive(Debug)]
pub(super) struct EspeakLanguage {
    espeak: Espeak,
}

/// One word for espeak-ng, and the word of the reading to which it belongs.
struct Token<'a> {
    said: &'a str,
    word: usize,
}

/// What was said so far.
struct Speaking<'a> {
    reading: &'a Reading,
    sounds: Sounds,
    /// The word of the reading that owns the last entry of the sounds' words.
    last_word: Option<usize>,
}

impl EspeakLanguage {
    pub(super) fn new(program: &Path, voice: &str) -> EspeakLanguage {
        EspeakLanguage { espeak: Espeak::for_clauses(program, voice) }
    }

    /// The sounds of a sentence. Punctuation ends a clause, because espeak-ng answers a clause at a time.
    pub(super) fn sounds(&mut self, reading: &Reading) -> Result<Sounds, EspeakError> {
        let mut speaking = Speaking { reading, sounds: Sounds::default(), last_word: None };
        let mut clause: Vec<Token<'_>> = Vec::new();
        let mut end = 0;
        for (index, word) in reading.words.iter().enumerate() {
            let between = &reading.text[end..word.said.start];
            let own = matches!(word.voicing, Voicing::Phonemes(_));
            if own || !between.trim().is_empty() {
                self.speak(&mut speaking, &std::mem::take(&mut clause))?;
            }
            if clause.is_empty() {
                speaking.sounds.push(between);
            }
            let said = &reading.text[word.said.clone()];
            match &word.voicing {
                Voicing::Phonemes(phonemes) => speaking.say(phonemes, index),
                Voicing::Words => {
                    clause.extend(said.split(' ').map(|said| Token { said, word: index }));
                }
                Voicing::Letters => {
                    let letters = said.char_indices().filter(|(_, c)| c.is_alphanumeric());
                    let letter = |(at, c): (usize, char)| &said[at..at + c.len_utf8()];
                    clause.extend(letters.map(letter).map(|said| Token { said, word: index }));
                }
            }
            end = word.said.end;
        }
        self.speak(&mut speaking, &clause)?;
        speaking.sounds.push(&reading.text[end..]);
        speaking.sounds.trim_end();
        Ok(speaking.sounds)
    }

    fn speak(
        &mut self,
        speaking: &mut Speaking<'_>,
        clause: &[Token<'_>],
    ) -> Result<(), EspeakError> {
        let clause: Vec<&Token<'_>> = clause.iter().filter(|token| is_word(token.said)).collect();
        for (at, line) in lines(&clause).into_iter().enumerate() {
            if at > 0 {
                speaking.sounds.space();
            }
            let said: Vec<&str> = line.iter().map(|token| token.said).collect();
            let words = self.words(&said.join(" "))?;
            if words.len() == line.len() {
                for (at, (token, word)) in line.iter().zip(&words).enumerate() {
                    if at > 0 {
                        speaking.sounds.space();
                    }
                    speaking.say(word, token.word);
                }
                continue;
            }
            let mut lengths: Vec<usize> = Vec::with_capacity(line.len());
            for token in line {
                let alone = self.words(token.said)?;
                lengths.push(alone.iter().map(|word| word.chars().count()).sum());
            }
            let symbols: Vec<char> = words.join(" ").chars().collect();
            for (token, share) in line.iter().zip(shares(&symbols, &lengths)) {
                if symbols[..share.start].ends_with(&[' ']) {
                    speaking.sounds.space();
                }
                speaking.say(&symbols[share].iter().collect::<String>(), token.word);
            }
        }
        Ok(())
    }

    /// espeak-ng's words in the model's symbols.
    fn words(&mut self, line: &str) -> Result<Vec<String>, EspeakError> {
        let ipa = self.ask(&one_line(line))?;
        let words = foreign_to_misaki(&ipa);
        Ok(words.split_whitespace().filter(|word| is_heard(word)).map(str::to_owned).collect())
    }

    /// Asks a second time after a failure. The next sentence may try again, because nothing else reads this language.
    fn ask(&mut self, line: &str) -> Result<String, EspeakError> {
        let answer = self.espeak.line(line).or_else(|_| self.espeak.line(line));
        if answer.is_err() {
            self.espeak.forgive();
        }
        answer
    }
}

impl Speaking<'_> {
    /// Appends symbols that belong to this word of the reading.
    fn say(&mut self, symbols: &str, word: usize) {
        let start = self.sounds.symbols.len();
        self.sounds.push(symbols);
        let end = self.sounds.symbols.len();
        if start == end {
            return;
        }
        match self.sounds.words.last_mut() {
            Some(last) if self.last_word == Some(word) => last.phonemes.end = end,
            _ => {
                let span = self.reading.words[word].span.clone();
                self.sounds.words.push(SpokenWord { span, phonemes: start..end });
            }
        }
        self.last_word = Some(word);
    }
}

fn is_word(said: &str) -> bool {
    said.chars().any(char::is_alphanumeric)
}

/// The clause in pieces that espeak-ng answers in one line each.
fn lines<'a, 'b>(clause: &'b [&'a Token<'a>]) -> Vec<&'b [&'a Token<'a>]> {
    let mut lines = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, token) in clause.iter().enumerate() {
        if bytes > 0 && bytes + 1 + token.said.len() > CLAUSE_BYTES_MAX {
            lines.push(&clause[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += 1 + token.said.len();
    }
    if start < clause.len() {
        lines.push(&clause[start..]);
    }
    lines
}

/// Keeps what is part of a word, so that one line gets one answer.
fn one_line(line: &str) -> String {
    let keep = |c: char| {
        let inside = matches!(c, '\'' | '’' | '-' | '\u{200d}' | '\u{200c}');
        let sign = unicode_normalization::char::is_combining_mark(c);
        if c.is_alphanumeric() || inside || sign { c } else { ' ' }
    };
    let mut bytes = 0;
    let fits = |c: &char| {
        bytes += c.len_utf8();
        bytes <= CLAUSE_BYTES_MAX
    };
    line.chars().map(keep).take_while(fits).collect()
}

/// The part of `symbols` for each word, by the number of symbols that the word has alone.
fn shares(symbols: &[char], lengths: &[usize]) -> Vec<Range<usize>> {
    let heard: Vec<usize> = (0..symbols.len()).filter(|at| symbols[*at] != ' ').collect();
    let total = lengths.iter().sum::<usize>().max(1);
    let (mut start, mut before) = (0, 0);
    let share = |length: &usize| {
        before += length;
        let end = snapped(symbols, &heard, heard.len() * before / total);
        let end = end.max(start + 1).min(heard.len());
        let range = heard.get(start).map_or(0..0, |first| *first..heard[end - 1] + 1);
        start = end;
        range
    };
    lengths.iter().map(share).collect()
}

/// The beginning of a word of espeak-ng near `at`, which counts the symbols that are heard. Otherwise `at`.
fn snapped(symbols: &[char], heard: &[usize], at: usize) -> usize {
    if at >= heard.len() {
        return heard.len();
    }
    let near = at.saturating_sub(SNAP_MAX).max(1)..(at + SNAP_MAX + 1).min(heard.len());
    let begins = near.filter(|near| symbols[heard[*near] - 1] == ' ');
    begins.min_by_key(|near| near.abs_diff(at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell script in espeak-ng's place: it says each line as it is, except that it joins "que" with the next word.
    fn joining_espeak() -> EspeakLanguage {
        let script = "while read -r line; do echo \"$line\" | sed 's/que /que/'; done";
        let espeak = Espeak::with_arguments(Path::new("sh"), &["-c", script]);
        EspeakLanguage { espeak }
    }

    fn words(sounds: &Sounds) -> Vec<(Range<usize>, String)> {
        let symbols = |word: &SpokenWord| sounds.symbols[word.phonemes.clone()].iter().collect();
        sounds.words.iter().map(|word| (word.span.clone(), symbols(word))).collect()
    }

    fn owned(words: &[(Range<usize>, &str)]) -> Vec<(Range<usize>, String)> {
        words.iter().map(|(span, word)| (span.clone(), (*word).to_owned())).collect()
    }

    #[test]
    fn each_word_keeps_its_place_and_its_punctuation() {
        let mut reading = Reading::default();
        reading.open('“');
        reading.say(1..3, "dos mil");
        reading.mark(',');
        reading.pronounce(4..7, "sol", "sˈol");
        reading.say(8..9, "son");
        reading.mark('”');
        reading.mark('?');
        let sounds = joining_espeak().sounds(&reading).expect("said");
        assert_eq!(sounds.symbols.iter().collect::<String>(), "“dos mil, sˈol son”?");
        let expect = owned(&[(1..3, "dos mil"), (4..7, "sˈol"), (8..9, "son")]);
        assert_eq!(words(&sounds), expect);
    }

    #[test]
    fn words_that_espeak_joins_share_its_word() {
        let mut reading = Reading::default();
        reading.say(0..3, "lo");
        reading.say(4..7, "que");
        reading.say(8..12, "dices");
        let sounds = joining_espeak().sounds(&reading).expect("said");
        assert_eq!(sounds.symbols.iter().collect::<String>(), "lo quedices");
        assert_eq!(words(&sounds), owned(&[(0..3, "lo"), (4..7, "que"), (8..12, "dices")]));
    }

    #[test]
    fn long_clauses_are_asked_in_lines() {
        let tokens: Vec<Token<'_>> = (0..400).map(|word| Token { said: "palabra", word }).collect();
        let clause: Vec<&Token<'_>> = tokens.iter().collect();
        let lines = lines(&clause);
        assert_eq!(lines.iter().map(|line| line.len()).sum::<usize>(), 400);
        assert!(lines.iter().all(|line| line.len() * 8 <= CLAUSE_BYTES_MAX + 1));
        assert!(one_line(&"é".repeat(1000)).len() <= CLAUSE_BYTES_MAX);
        assert_eq!(one_line("a. b; कि"), "a  b  कि");
    }

    #[test]
    fn a_program_that_fails_twice_is_an_error() {
        let mut reading = Reading::default();
        reading.say(0..4, "hola");
        let mut missing = EspeakLanguage::new(Path::new("no-such-program"), "es");
        assert!(matches!(missing.sounds(&reading), Err(EspeakError::NotStarted { .. })));
        assert!(matches!(missing.sounds(&reading), Err(EspeakError::NotStarted { .. })));
    }
}
