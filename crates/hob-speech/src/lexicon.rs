//! Pronunciations of the user: a word, and how it is said, in other words or as IPA.
//! A lexicon is checked as a whole before anything is spoken with it.

use std::collections::{BTreeMap, HashMap};

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::accent::Accent;
use crate::alphabet::is_heard;
use crate::ipa::{is_ipa, to_misaki};
use crate::scripts::is_vowel_sign;

/// Maximum number of words.
pub const LEXICON_WORDS_MAX: usize = 1_000;

/// Maximum characters of a word.
const WORD_CHARS_MAX: usize = 64;

/// Maximum characters of a pronunciation.
const SAID_CHARS_MAX: usize = 256;

/// Maximum number of words that one word becomes.
const PARTS_MAX: usize = 64;

/// Maximum number of words through which a respelling leads.
const STEPS_MAX: usize = 16;

/// Words and their pronunciations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lexicon {
    written: BTreeMap<String, String>,
    words: HashMap<String, Vec<SaidPart>>,
}

/// A part of a pronunciation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SaidPart {
    Words(String),
    Ipa(String),
}

/// Why a lexicon is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LexiconError {
    #[error("it has {words} words, and at most {LEXICON_WORDS_MAX} are allowed")]
    TooMany { words: usize },
    #[error(
        "'{word}' is longer than {WORD_CHARS_MAX} characters, or its pronunciation is longer than {SAID_CHARS_MAX}"
    )]
    TooLong { word: String },
    #[error(
        "'{word}' is not one word; write a word without spaces and without punctuation around it"
    )]
    NotOneWord { word: String },
    #[error(
        "'{word}' is said as '{said}'; write words of letters, such as \"sequel\", or IPA, such as \"/ˈsiːkwəl/\""
    )]
    Unreadable { word: String, said: String },
    #[error(
        "'{symbol}' in the pronunciation of '{word}' is not IPA; stress is written as ˈ or ˌ, and length as ː"
    )]
    NotIpa { word: String, symbol: char },
    #[error("the pronunciation of a word leads back to it: {}", path.join(" → "))]
    Loop { path: Vec<String> },
    #[error("'{word}' becomes more than {PARTS_MAX} words, or leads through more than {STEPS_MAX}")]
    Swells { word: String },
}

impl Lexicon {
    /// A pronunciation between slashes is IPA. Others are words, which may be in the lexicon too.
    ///
    /// # Errors
    /// See [`LexiconError`].
    pub fn new(written: BTreeMap<String, String>) -> Result<Lexicon, LexiconError> {
        if written.len() > LEXICON_WORDS_MAX {
            return Err(LexiconError::TooMany { words: written.len() });
        }
        written.iter().try_for_each(|(word, said)| check(word, said))?;
        let mut words = HashMap::with_capacity(written.len());
        for word in written.keys() {
            let mut parts = Vec::new();
            expand(&written, word, &mut Vec::new(), &mut parts)?;
            words.insert(plain(word), joined(parts));
        }
        Ok(Lexicon { written, words })
    }

    /// The entries as they were given.
    pub fn written(&self) -> &BTreeMap<String, String> {
        &self.written
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How a word is said. A word that was given in lower case is also found with capitals.
    pub(crate) fn get(&self, word: &str) -> Option<&[SaidPart]> {
        let word = plain(word);
        let found = self.words.get(&word).or_else(|| self.words.get(&word.to_lowercase()));
        found.map(Vec::as_slice)
    }
}

/// The word as the text has it: each letter composed with its marks, and without the marks that are not read.
fn plain(word: &str) -> String {
    let is_read = |c: &char| !is_combining_mark(*c) || c.is_alphabetic() || is_vowel_sign(*c);
    word.nfc().filter(is_read).collect::<String>().replace('’', "'")
}

fn check(word: &str, said: &str) -> Result<(), LexiconError> {
    let owned = || word.to_owned();
    if word.chars().count() > WORD_CHARS_MAX || said.chars().count() > SAID_CHARS_MAX {
        return Err(LexiconError::TooLong { word: owned() });
    }
    if !is_one_word(word) {
        return Err(LexiconError::NotOneWord { word: owned() });
    }
    let is_heard = match ipa(said) {
        Some(ipa) => {
            if let Some(symbol) = ipa.chars().find(|symbol| !is_ipa(*symbol)) {
                return Err(LexiconError::NotIpa { word: owned(), symbol });
            }
            is_heard(&to_misaki(ipa, Accent::American))
        }
        None => !said.trim().is_empty() && said.split_whitespace().all(is_plain_word),
    };
    let unreadable = || LexiconError::Unreadable { word: owned(), said: said.to_owned() };
    is_heard.then_some(()).ok_or_else(unreadable)
}

/// "SQL", "don't", "Node.js", "C++", "नमस्ते".
fn is_one_word(word: &str) -> bool {
    let is_end = |c: char| c.is_alphanumeric() || is_combining_mark(c) || matches!(c, '+' | '#');
    let is_inner = |c: char| is_end(c) || matches!(c, '\'' | '’' | '-' | '.' | '&' | '/');
    word.starts_with(char::is_alphanumeric) && word.ends_with(is_end) && word.chars().all(is_inner)
}

/// What stands between the slashes.
fn ipa(said: &str) -> Option<&str> {
    said.trim().strip_prefix('/')?.strip_suffix('/')
}

fn is_plain_word(word: &str) -> bool {
    let is_inner =
        |c: char| c.is_alphabetic() || is_combining_mark(c) || matches!(c, '\'' | '’' | '-');
    word.starts_with(char::is_alphabetic) && word.chars().all(is_inner)
}

/// Adds what is said for `word`: its pronunciation, or the word itself. `path` has the words that led to it.
fn expand(
    written: &BTreeMap<String, String>,
    word: &str,
    path: &mut Vec<String>,
    parts: &mut Vec<SaidPart>,
) -> Result<(), LexiconError> {
    let lower = word.to_lowercase();
    let found = written.get_key_value(word).or_else(|| written.get_key_value(&lower));
    match found {
        None => parts.push(SaidPart::Words(word.to_owned())),
        Some((key, said)) => {
            if let Some(from) = path.iter().position(|passed| passed == key) {
                let path = path[from..].iter().chain([key]).cloned().collect();
                return Err(LexiconError::Loop { path });
            }
            path.push(key.clone());
            if path.len() > STEPS_MAX {
                return Err(LexiconError::Swells { word: path[0].clone() });
            }
            match ipa(said) {
                Some(ipa) => parts.push(SaidPart::Ipa(ipa.to_owned())),
                None => said
                    .split_whitespace()
                    .try_for_each(|word| expand(written, word, path, parts))?,
            }
            path.pop();
        }
    }
    if parts.len() > PARTS_MAX {
        let word = path.first().map_or(word, String::as_str).to_owned();
        return Err(LexiconError::Swells { word });
    }
    Ok(())
}

/// Words that follow each other become one part.
fn joined(parts: Vec<SaidPart>) -> Vec<SaidPart> {
    let mut joined: Vec<SaidPart> = Vec::new();
    for part in parts {
        match (joined.last_mut(), &part) {
            (Some(SaidPart::Words(words)), SaidPart::Words(word)) => {
                words.push(' ');
                words.push_str(word);
            }
            _ => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon(rows: &[(&str, &str)]) -> Result<Lexicon, LexiconError> {
        Lexicon::new(rows.iter().map(|(word, said)| ((*word).into(), (*said).into())).collect())
    }

    fn refused(rows: &[(&str, &str)], reason: &str) {
        let error = lexicon(rows).expect_err("a mistake").to_string();
        assert!(error.contains(reason), "{rows:?}: {error}");
    }

    #[test]
    fn a_respelling_may_use_other_words_of_the_lexicon() {
        let rows = [("SQL", "sequel"), ("MySQL", "my SQL database"), ("database", "/dˈeɪtəbeɪs/")];
        let lexicon = lexicon(&rows).expect("a lexicon");
        let words = |text: &str| SaidPart::Words(text.to_owned());
        let said = [words("my sequel"), SaidPart::Ipa("dˈeɪtəbeɪs".to_owned())];
        assert_eq!(lexicon.get("MySQL"), Some(&said[..]));
        assert_eq!(lexicon.get("SQL"), Some(&[words("sequel")][..]));
        assert_eq!(lexicon.get("sql"), None, "a word with capitals is found as it is written");
        assert_eq!(lexicon.get("Database"), Some(&said[1..]), "a word in lower case in any way");
    }

    #[test]
    fn mistakes_are_named() {
        refused(&[("a", "b"), ("b", "c d"), ("d", "a")], "leads back to it: a → b → d → a");
        refused(&[("hob", "hob")], "leads back to it: hob → hob");
        refused(&[("hob", "the Hob")], "leads back to it: hob → hob");
        refused(&[("New York", "x")], "'New York' is not one word");
        refused(&[("etc.", "x")], "'etc.' is not one word");
        refused(&[("", "x")], "'' is not one word");
        refused(&[("hob", "")], "write words of letters");
        refused(&[("hob", "//")], "write words of letters");
        refused(&[("hob", "/ˈ/")], "write words of letters");
        refused(&[("hob", "h0b")], "write words of letters");
        refused(&[("hob", "/h0b/")], "'0' in the pronunciation of 'hob' is not IPA");
        let long = "x".repeat(257);
        refused(&[("hob", long.as_str())], "is longer than");
        refused(&[(&long[..65], "x")], "is longer than");
        let double = "b ".repeat(40);
        refused(&[("a", double.as_str()), ("b", "c c")], "'a' becomes more than 64 words");
        let chain: Vec<String> = ('a'..='z').map(String::from).collect();
        let chain: Vec<(&str, &str)> =
            chain.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
        refused(&chain, "leads through more than 16");
        let many: Vec<String> = (0..=LEXICON_WORDS_MAX).map(|at| format!("x{at}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|word| (word.as_str(), "x")).collect();
        refused(&many, "it has 1001 words");
    }
}
