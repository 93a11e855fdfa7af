//! Cuts the first clause off an answer that a model is still writing, so that it is heard early.
//! All later text passes through: the speech model joins it to sentences, and strips Markdown.

use hob_core::is_full_stop;

/// Characters of a first clause, at least. Voices sound bad if they say less alone.
const CHARS_MIN: usize = 12;
/// Letters and digits of a first clause, at least: about ten tokens of a voice. A CJK character counts twice.
const LETTERS_MIN: usize = 10;
/// Without punctuation, the first clause is cut at a space before this many characters.
const CHARS_MAX: usize = 60;
/// Without punctuation and spaces, the first clause is cut after this many letters and digits: 60 CJK characters.
const LETTERS_MAX: usize = 120;
/// Letters and digits of an abbreviation or of a list's number, at most: "Dr.", "p.m.", "12.".
const ABBREVIATION_MAX: usize = 3;
/// Abbreviations that are longer or look like a word, and that text always follows. In small letters.
const WORDLIKE_ABBREVIATIONS: [&str; 15] = [
    "approx", "ca", "capt", "cllr", "cmdr", "dott", "eg", "ie", "messrs", "mlle", "pres", "prof",
    "profa", "supt", "viz",
];

/// Text for the voice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpokenPiece {
    /// To be said at once.
    FirstClause(String),
    /// To be said when it makes a sentence.
    More(String),
}

/// The state of one answer's text.
#[derive(Debug, Default)]
pub(crate) struct ClauseCutter {
    held: String,
    scan: Scan,
    has_begun: bool,
}

/// What is known of the characters before the byte `at`.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    chars: usize,
    letters: usize,
    last_space: Option<usize>,
}

impl ClauseCutter {
    pub(crate) fn push(&mut self, text: &str) -> Vec<SpokenPiece> {
        if self.has_begun {
            return vec![SpokenPiece::More(text.to_owned())];
        }
        self.held.push_str(text);
        let Some(end) = self.scan.first_clause(&self.held) else {
            return Vec::new();
        };
        self.has_begun = true;
        let rest = self.held.split_off(end);
        let first = SpokenPiece::FirstClause(std::mem::take(&mut self.held));
        let more = (!rest.is_empty()).then_some(SpokenPiece::More(rest));
        [first].into_iter().chain(more).collect()
    }

    /// The text has ended: what is still held.
    pub(crate) fn finish(&mut self) -> Option<SpokenPiece> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then_some(SpokenPiece::More(held))
    }
}

impl Scan {
    /// The byte after the first clause of `text`, which may have grown since the last call.
    fn first_clause(&mut self, text: &str) -> Option<usize> {
        while let Some(c) = text[self.at..].chars().next() {
            let (at, end) = (self.at, self.at + c.len_utf8());
            let (chars, letters) = (self.chars + 1, self.letters + weight(c));
            let is_long = chars >= CHARS_MIN && letters >= LETTERS_MIN;
            if is_long && ends_clause(text, at, c) {
                return Some(end);
            }
            let is_place = is_long && c.is_whitespace() && !text[..at].ends_with('.');
            let last_space = if is_place { Some(at) } else { self.last_space };
            if chars >= CHARS_MAX && last_space.is_some() {
                return last_space;
            }
            if letters >= LETTERS_MAX {
                return Some(end);
            }
            // The character after the last one may make it the end of a clause.
            if end == text.len() {
                return None;
            }
            *self = Scan { at: end, chars, letters, last_space };
        }
        None
    }
}

fn weight(c: char) -> usize {
    match c {
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => 2,
        _ => usize::from(c.is_alphanumeric()),
    }
}

/// A point or colon counts only before a space, because addresses, abbreviations and times contain them. A point after
/// what may be an abbreviation does not count.
fn ends_clause(text: &str, at: usize, c: char) -> bool {
    let before_space = text[at + c.len_utf8()..].starts_with(char::is_whitespace);
    let after_digit = text[..at].ends_with(|before: char| before.is_ascii_digit());
    match c {
        '，' | '、' | '；' | '：' => true,
        ',' | ';' | '!' | '?' => before_space || !after_digit,
        '.' => before_space && !may_be_abbreviation(&text[..at]),
        ':' => before_space,
        _ => is_full_stop(c),
    }
}

/// Whether a text ends with what may be an abbreviation without its last point. In case of doubt it is one: a first
/// clause that ends later costs less than "Drive Smith".
fn may_be_abbreviation(text: &str) -> bool {
    let word = text.rsplit(char::is_whitespace).next().unwrap_or(text);
    let lower = word.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    if WORDLIKE_ABBREVIATIONS.contains(&lower.as_str()) {
        return true;
    }
    // "it", "you"
    let is_word = word.len() > 1
        && word.chars().all(char::is_lowercase)
        && word.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    !is_word && word.chars().map(weight).sum::<usize>() <= ABBREVIATION_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let cut = |end: Option<usize>| end.map(|end| &text[..end]);
        assert_eq!(cut(Scan::default().first_clause(text)), expected, "{text}");
        let mut scan = Scan::default();
        let mut ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        let found = ends.find_map(|end| scan.first_clause(&text[..end]));
        assert_eq!(cut(found), expected, "{text}, a character at a time");
    }

    #[test]
    fn the_first_clause_ends_at_punctuation_after_twelve_characters() {
        check("Well, yes, of course, it is.", Some("Well, yes, of course,"));
        check("Good morning, Ann", Some("Good morning,"));
        check("It costs 1,000,000 euros", None);
        check("See http://example.org/a.html for", None);
        check("It is half past nine. And", Some("It is half past nine."));
        check("It is half past nine.", None);
        check("今日はいい天気。", None);
        check("今日はとてもいい天気です。", Some("今日はとてもいい天気です。"));
        check("आज मौसम बहुत अच्छा है। कल", Some("आज मौसम बहुत अच्छा है।"));
        check("هل كل شيء على ما يرام؟ نعم", Some("هل كل شيء على ما يرام؟"));
    }

    #[test]
    fn an_abbreviation_an_initial_and_a_number_of_a_list_end_no_clause() {
        check("I spoke to Dr. Smith about it. He", Some("I spoke to Dr. Smith about it."));
        check("I spoke to Dr. Smith, who", Some("I spoke to Dr. Smith,"));
        check("I spoke to Prof. Smith about it. He", Some("I spoke to Prof. Smith about it."));
        check("It weighs (approx. 5 kg) more. It", Some("It weighs (approx. 5 kg) more."));
        check("They met Mark. He", Some("They met Mark."));
        check("It opens at 5 p.m. on Monday. We", Some("It opens at 5 p.m. on Monday."));
        check("Some fruit, e.g. apples. They", Some("Some fruit, e.g. apples."));
        check("It was written by J. R. Tolkien. He", Some("It was written by J. R. Tolkien."));
        check("Here are three:\n1. Apples. They", Some("Here are three:"));
        check("Two ways to do it\n1. Walk there. 2.", Some("Two ways to do it\n1. Walk there."));
        check("안녕하세요. 오늘은 좋아요. 네", Some("안녕하세요. 오늘은 좋아요."));
        check(
            "the quick brown fox jumps over the lazy dog of the dear Dr. Smith",
            Some("the quick brown fox jumps over the lazy dog of the dear"),
        );
    }

    #[test]
    fn a_long_text_without_punctuation_is_cut_at_a_space() {
        check(
            "the quick brown fox jumps over the lazy dog and runs far away into the woods",
            Some("the quick brown fox jumps over the lazy dog and runs far"),
        );
    }

    #[test]
    fn a_long_text_without_spaces_is_cut_after_120_letters() {
        check(&"a".repeat(119), None);
        for (letter, count) in [("a", 120), ("ก", 120), ("天", 60)] {
            check(&letter.repeat(200), Some(&letter.repeat(count)));
        }
        check(&"—".repeat(200), None);
    }

    #[test]
    fn where_the_text_is_cut_into_pieces_changes_no_character() {
        let text = "Good morning, dear Ann! How are you?";
        for size in 1..text.len() {
            let mut cutter = ClauseCutter::default();
            let pieces: Vec<String> =
                text.as_bytes().chunks(size).map(|c| String::from_utf8_lossy(c).into()).collect();
            let mut said: Vec<_> = pieces.iter().flat_map(|piece| cutter.push(piece)).collect();
            said.extend(cutter.finish());
            let joined: String = said
                .iter()
                .map(|piece| match piece {
                    SpokenPiece::FirstClause(text) | SpokenPiece::More(text) => text.as_str(),
                })
                .collect();
            assert_eq!(joined, text);
            assert_eq!(said[0], SpokenPiece::FirstClause("Good morning,".to_owned()));
        }
    }
}
