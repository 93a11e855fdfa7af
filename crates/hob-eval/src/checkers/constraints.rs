//! Rules for a text that a program can check: counts, words, letters, case, beginnings and ends.
//! The score is the share of the rules that hold.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TextLanguage;
use crate::Grade;
use crate::reading::{tail, without_thoughts};

/// How many of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountRule {
    AtLeast(usize),
    AtMost(usize),
    Exactly(usize),
}

impl CountRule {
    fn holds(self, count: usize) -> bool {
        match self {
            CountRule::AtLeast(least) => count >= least,
            CountRule::AtMost(most) => count <= most,
            CountRule::Exactly(exact) => count == exact,
        }
    }

    /// `at least 3`
    pub fn words(self) -> String {
        match self {
            CountRule::AtLeast(count) => format!("at least {count}"),
            CountRule::AtMost(count) => format!("at most {count}"),
            CountRule::Exactly(count) => format!("exactly {count}"),
        }
    }
}

/// One rule for the visible text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum TextRule {
    Words {
        count: CountRule,
    },
    Sentences {
        count: CountRule,
    },
    Paragraphs {
        count: CountRule,
    },
    /// Lines that begin with `-`, `*`, `•` or a number.
    Bullets {
        count: CountRule,
    },
    /// A word, without case, as a whole word.
    Word {
        word: String,
        count: CountRule,
    },
    NoWord {
        word: String,
    },
    NoLetter {
        letter: char,
    },
    NoCommas,
    Lowercase,
    Uppercase,
    StartsWith {
        text: String,
    },
    EndsWith {
        text: String,
    },
    /// The whole text is in double quotes.
    Quoted,
    /// A title in `<<…>>`.
    Title,
    /// Words in square brackets.
    Placeholders {
        count: CountRule,
    },
    /// The whole answer is one JSON object.
    JsonOnly,
    /// These words occur in this order, without case, as whole words.
    Order {
        words: Vec<String>,
    },
    /// The language of the text.
    Language {
        language: TextLanguage,
    },
}

impl TextRule {
    /// Whether the rule holds. `text` is what a user sees, with its markup.
    pub fn holds(&self, text: &str) -> bool {
        let text = text.trim();
        let lower = text.to_lowercase();
        match self {
            TextRule::Words { count } => {
                count.holds(text.split_whitespace().filter(is_word).count())
            }
            TextRule::Sentences { count } => count.holds(sentences(text)),
            TextRule::Paragraphs { count } => {
                count.holds(text.split("\n\n").filter(|part| !part.trim().is_empty()).count())
            }
            TextRule::Bullets { count } => {
                count.holds(text.lines().filter(|line| is_bullet(line)).count())
            }
            TextRule::Word { word, count } => {
                count.holds(occurrences(&lower, &word.to_lowercase()))
            }
            TextRule::NoWord { word } => occurrences(&lower, &word.to_lowercase()) == 0,
            TextRule::NoLetter { letter } => !lower.contains(&letter.to_lowercase().to_string()),
            TextRule::NoCommas => !text.contains(','),
            TextRule::Lowercase => !text.chars().any(char::is_uppercase),
            TextRule::Uppercase => !text.chars().any(char::is_lowercase),
            TextRule::StartsWith { text: start } => lower.starts_with(&start.to_lowercase()),
            TextRule::EndsWith { text: end } => lower.ends_with(&end.to_lowercase()),
            TextRule::Quoted => text.len() > 1 && text.starts_with('"') && text.ends_with('"'),
            TextRule::Title => text.split_once("<<").is_some_and(|(_, rest)| rest.contains(">>")),
            TextRule::Placeholders { count } => count.holds(placeholders(text)),
            TextRule::JsonOnly => {
                let inner = text.strip_prefix("```json").or(text.strip_prefix("```"));
                let inner = inner.and_then(|inner| inner.strip_suffix("```")).unwrap_or(text);
                serde_json::from_str::<Value>(inner.trim()).is_ok_and(|value| value.is_object())
            }
            TextRule::Language { language } => TextLanguage::of(text) == Some(*language),
            TextRule::Order { words } => {
                let mut from = 0;
                words.iter().all(|word| {
                    let word = word.to_lowercase();
                    let at = whole_words(&lower, &word).find(|at| *at >= from);
                    at.inspect(|at| from = at + word.len()).is_some()
                })
            }
        }
    }

    /// The rule as an instruction.
    pub fn instruction(&self) -> String {
        match self {
            TextRule::Words { count } => format!("Use {} words.", count.words()),
            TextRule::Sentences { count } => format!("Write {} sentences.", count.words()),
            TextRule::Paragraphs { count } => {
                format!("Write {} paragraphs, with an empty line between them.", count.words())
            }
            TextRule::Bullets { count } => {
                format!(
                    "Write {} bullet points, each on a line that begins with \"- \".",
                    count.words()
                )
            }
            TextRule::Word { word, count } => {
                format!("Use the word \"{word}\" {} times.", count.words())
            }
            TextRule::NoWord { word } => format!("Do not use the word \"{word}\"."),
            TextRule::NoLetter { letter } => {
                format!("Do not use the letter \"{letter}\" at all.")
            }
            TextRule::NoCommas => "Do not use commas.".to_owned(),
            TextRule::Lowercase => "Write everything in lowercase letters.".to_owned(),
            TextRule::Uppercase => "Write everything in capital letters.".to_owned(),
            TextRule::StartsWith { text } => format!("Begin your answer with \"{text}\"."),
            TextRule::EndsWith { text } => {
                format!("End your answer with \"{text}\", and write nothing after it.")
            }
            TextRule::Quoted => "Wrap your whole answer in double quotation marks.".to_owned(),
            TextRule::Title => {
                "Give it a title in double angle brackets, such as <<title>>.".to_owned()
            }
            TextRule::Placeholders { count } => {
                format!("Use {} placeholders in square brackets, such as [name].", count.words())
            }
            TextRule::JsonOnly => "Answer with one JSON object and nothing else.".to_owned(),
            TextRule::Language { language } => {
                format!("Write everything in {}.", language.name())
            }
            TextRule::Order { words } => {
                format!("Use these words in this order: {}.", words.join(", "))
            }
        }
    }
}

pub(crate) fn grade(constraints: &[TextRule], content: &str) -> Grade {
    let visible = without_thoughts(tail(content));
    if visible.trim().is_empty() {
        return Grade::malformed("there is no text");
    }
    let broken: Vec<&TextRule> =
        constraints.iter().filter(|constraint| !constraint.holds(&visible)).collect();
    match broken.first() {
        None => Grade::correct("every rule is kept"),
        Some(first) => Grade::partial(
            (constraints.len() - broken.len()) as f64 / constraints.len() as f64,
            format!("not kept: {}", first.instruction()),
        ),
    }
}

/// A dash between words is not a word.
fn is_word(word: &&str) -> bool {
    word.chars().any(char::is_alphanumeric)
}

/// Ends of sentences: a mark after a word, followed by a space or the end.
fn sentences(text: &str) -> usize {
    let mut count = 0;
    let mut has_word = false;
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        has_word |= sign.is_alphanumeric();
        let ends = matches!(sign, '.' | '!' | '?')
            && signs
                .peek()
                .is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '*' | ')' | '”'));
        if has_word && (ends || signs.peek().is_none()) {
            count += 1;
            has_word = false;
        }
    }
    count
}

fn is_bullet(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || line.starts_with("• ")
        || digits.len() < line.len() && (digits.starts_with(". ") || digits.starts_with(") "))
}

fn occurrences(text: &str, word: &str) -> usize {
    if word.is_empty() {
        return 0;
    }
    whole_words(text, word).count()
}

/// Where the word begins.
fn whole_words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let joins = |sign: Option<char>| sign.is_some_and(char::is_alphanumeric);
    let places = text.match_indices(word).map(|(at, _)| at);
    places.filter(move |at| {
        !joins(text[..*at].chars().next_back()) && !joins(text[at + word.len()..].chars().next())
    })
}

fn placeholders(text: &str) -> usize {
    let parts = text.split('[').skip(1);
    parts
        .filter(|part| part.split_once(']').is_some_and(|(inside, _)| !inside.trim().is_empty()))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn each_rule_holds_where_it_should() {
        use CountRule::{AtLeast, AtMost, Exactly};
        use TextRule as C;
        let word = |word: &str, count| C::Word { word: word.to_owned(), count };
        let rows = [
            (C::Words { count: Exactly(3) }, "One – two three.", true),
            (C::Words { count: AtMost(2) }, "one two three", false),
            (C::Sentences { count: Exactly(2) }, "It is 3.5 m. Is it?", true),
            (C::Sentences { count: Exactly(1) }, "No end mark", true),
            (C::Paragraphs { count: Exactly(2) }, "a\n\nb\n", true),
            (C::Bullets { count: Exactly(2) }, "- a\n* b\nc", true),
            (C::Bullets { count: AtLeast(3) }, "1. a\n2) b\n", false),
            (word("cat", Exactly(2)), "Cat, cat. Catalog", true),
            (C::NoWord { word: "cat".to_owned() }, "a catalog", true),
            (C::NoLetter { letter: 'e' }, "A bad dog", true),
            (C::NoLetter { letter: 'e' }, "An Elk", false),
            (C::NoLetter { letter: 'Ä' }, "Ein Bär", false),
            (C::NoCommas, "a, b", false),
            (C::Lowercase, "abc 1.", true),
            (C::Lowercase, "Abc", false),
            (C::Uppercase, "ABC 1!", true),
            (C::StartsWith { text: "Dear".to_owned() }, "dear all", true),
            (C::EndsWith { text: "Bye.".to_owned() }, "ok bye.\n", true),
            (C::Quoted, "\"hello\"", true),
            (C::Quoted, "\"hello", false),
            (C::Title, "<<a>> b", true),
            (C::Placeholders { count: AtLeast(2) }, "[a] and [b]", true),
            (C::JsonOnly, "```json\n{\"a\": 1}\n```", true),
            (C::JsonOnly, "Here: {\"a\": 1}", false),
            (C::Order { words: vec!["a1".to_owned(), "b2".to_owned()] }, "A1 x B2", true),
            (C::Order { words: vec!["a1".to_owned(), "b2".to_owned()] }, "b2 a1", false),
            (C::Order { words: vec!["a1".to_owned(), "b2".to_owned()] }, "a1 b2s", false),
            (C::Order { words: vec!["a1".to_owned(), "b2".to_owned()] }, "xa1 a1, b2s b2.", true),
            (C::Language { language: TextLanguage::German }, "Es ist ein alter Turm.", true),
            (C::Language { language: TextLanguage::German }, "It is an old tower.", false),
        ];
        for (rule, text, expected) in rows {
            assert_eq!(rule.holds(text), expected, "{rule:?}: {text}");
        }
    }

    #[test]
    fn the_score_is_the_share_of_rules_and_thoughts_are_not_read() {
        let rules = [TextRule::NoCommas, TextRule::Lowercase];
        let rows = [
            ("all fine", Verdict::Correct, 1.0),
            ("<think>Hm, well</think>all fine", Verdict::Correct, 1.0),
            ("Not, fine", Verdict::Wrong, 0.0),
            ("not, fine", Verdict::Wrong, 0.5),
            ("<think>only a thought", Verdict::Malformed, 0.0),
        ];
        for (text, verdict, score) in rows {
            let found = grade(&rules, text);
            assert_eq!((found.verdict, found.score), (verdict, score), "{text}");
        }
    }
}
