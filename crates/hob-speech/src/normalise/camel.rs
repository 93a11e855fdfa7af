//! Names that are several words without spaces: "getUserName", "HTTPServer", "#ThrowbackThursday".
//! A capital inside begins a word. Names of people and brands ("McDonald", "iPhone") stay whole.

use std::ops::Range;

/// Where capitals inside a word begin new words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Humps {
    /// Only in words that no name of a person or a brand looks like.
    Identifier,
    /// In all words but those of names: for tags and user names.
    Tag,
}

/// Small letters behind the capitals of an acronym that are an ending, not a word: "DJing".
const ENDINGS: [&str; 4] = ["ing", "ers", "ish", "ism"];

/// The words of a name, if there are several.
pub(super) fn words(text: &str, humps: Humps) -> Option<Vec<Range<usize>>> {
    if !text.bytes().all(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    let starts: Vec<usize> = (1..text.len()).filter(|at| begins(text.as_bytes(), *at)).collect();
    let first = &text[..*starts.first()?];
    let is_lower = first.bytes().all(|b| b.is_ascii_lowercase());
    let is_acronym = first.bytes().all(|b| b.is_ascii_uppercase());
    let is_split = match humps {
        Humps::Identifier => (is_lower && first.len() > 1) || is_acronym,
        Humps::Tag => !(matches!(first, "Mc" | "Mac") || is_lower && first.len() == 1),
    };
    let ends = starts.iter().copied().chain([text.len()]);
    let from = [0].into_iter().chain(starts.iter().copied());
    is_split.then(|| from.zip(ends).map(|(from, end)| from..end).collect())
}

/// Whether a word begins here: a capital behind a small letter, or the last capital before three small letters.
fn begins(text: &[u8], at: usize) -> bool {
    let small = text[at + 1..].iter().take_while(|b| b.is_ascii_lowercase()).count();
    let is_ending = ENDINGS.iter().any(|ending| text[at + 1..] == *ending.as_bytes());
    text[at].is_ascii_uppercase()
        && (text[at - 1].is_ascii_lowercase() || (small >= 3 && !is_ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_begin_words_but_not_in_names() {
        let cut = |text: &'static str, humps| -> Vec<&str> {
            words(text, humps).unwrap_or_default().into_iter().map(|range| &text[range]).collect()
        };
        assert_eq!(cut("getUserName", Humps::Identifier), ["get", "User", "Name"]);
        assert_eq!(cut("parseXmlFile", Humps::Identifier), ["parse", "Xml", "File"]);
        assert_eq!(cut("HTTPServer", Humps::Identifier), ["HTTP", "Server"]);
        assert_eq!(cut("OAuth", Humps::Identifier), ["O", "Auth"]);
        assert_eq!(cut("ThrowbackThursday", Humps::Tag), ["Throwback", "Thursday"]);
        for name in ["iPhone", "McDonald", "GitHub", "PhDs", "DJing", "CEOs", "word", "", "X"] {
            assert_eq!(words(name, Humps::Identifier), None, "{name}");
        }
        assert_eq!(words("McDonald", Humps::Tag), None);
        assert_eq!(words("iPhone", Humps::Tag), None);
    }
}
