//! Answers to questions that a text does not answer, contradicts, or presumes wrongly.
//! Words that deny and words that contradict are read in the clause where they stand.

use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::mention::{denied, names, places, plain, says, shortened};
use crate::reading::{tail, without_thoughts};

/// What a text says of the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "case", rename_all = "snake_case", deny_unknown_fields)]
pub enum AbsentExpected {
    /// The text does not say. Numbers that are not among the known ones are invented.
    NotSaid {
        /// Values of the text that look like an answer.
        invented: Vec<String>,
        /// All other numbers of the text: an answer may repeat them.
        #[serde(default)]
        known: Vec<String>,
    },
    /// The text says both.
    Contradicts { values: [String; 2] },
    /// The question presumes this wrong value; the text has the right one.
    WrongPremise { presumed: String, right: String },
    /// The text answers it.
    Said { value: String },
}

/// Words that deny, and stems of what is denied in the same clause: "does not give", "nothing is written".
const DENYING: [&str; 8] = ["not", "no", "nor", "nothing", "never", "neither", "without", "none"];
const DENIED: [&str; 38] = [
    "say", "said", "stat", "mention", "specif", "provid", "give", "includ", "contain", "indicat",
    "tell", "inform", "know", "determin", "answer", "disclos", "clear", "found", "find", "appear",
    "detail", "data", "cover", "reveal", "explain", "address", "record", "writ", "part", "availab",
    "possib", "list", "discuss", "describ", "such", "there", "identif", "name",
];
/// Words that say by themselves that something is not there.
const MISSING: [&str; 10] = [
    "unknown",
    "unclear",
    "unspecif",
    "unstated",
    "undisclos",
    "unanswer",
    "lack",
    "omit",
    "silent",
    "missing",
];
const CONTRADICTIONS: [&str; 9] = [
    "contradict",
    "inconsisten",
    "conflict",
    "discrepan",
    "disagree",
    "differ",
    "ambig",
    "unclear",
    "both",
];
/// Words that set one value against another where they stand between the two.
const CONTRASTS: [&str; 11] = [
    "but",
    "while",
    "however",
    "whereas",
    "although",
    "though",
    "yet",
    "elsewhere",
    "also",
    "vs",
    "versus",
];
const REJECTIONS: [&str; 6] = ["incorrect", "wrong", "mistaken", "false", "premise", "contrary"];
/// How many words after a presumed value can deny it: "Jonas Pell did not".
const DENIAL_AFTER_WORDS: usize = 3;

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn begins(word: &str, stems: &[&str]) -> bool {
    stems.iter().any(|stem| word.starts_with(stem))
}

/// Whether a plain text says that something is not there.
fn says_missing(text: &str) -> bool {
    let clauses = text.split([',', ';', ':', '.', '\n']);
    let denies = |clause| {
        let mut rest = words(clause).skip_while(|word| !DENYING.contains(word));
        rest.next().is_some() && rest.any(|word| begins(word, &DENIED))
    };
    words(text).any(|word| begins(word, &MISSING)) || clauses.into_iter().any(denies)
}

/// Whether a plain text says that these values contradict each other.
fn says_contradiction(text: &str, values: &[String; 2]) -> bool {
    let claimed = |stem: &&str| text.match_indices(*stem).any(|(at, _)| !denied(text, at));
    let [one, other] = values.each_ref().map(|value| places(text, &plain(value)).next());
    let between = match (one, other) {
        (Some(one), Some(other)) => &text[one.min(other)..one.max(other)],
        _ => "",
    };
    CONTRADICTIONS.iter().any(claimed) || words(between).any(|word| CONTRASTS.contains(&word))
}

/// Whether a plain text says that the value in a question is wrong.
fn rejects(text: &str, presumed: &str) -> bool {
    let presumed = plain(presumed);
    let not_after = |at: usize| {
        let rest = &text[at + presumed.len()..];
        let clause = rest.split([',', ';', ':', '.', '\n']).next().unwrap_or_default();
        let mut after = words(clause).take(DENIAL_AFTER_WORDS);
        after.any(|word| word == "not" || word == "never")
    };
    let claimed = |stem: &&str| text.match_indices(*stem).any(|(at, _)| !denied(text, at));
    REJECTIONS.iter().any(claimed) || places(text, &presumed).any(not_after)
}

/// A number that is not among these. A mark of a list, such as "1." at the start of a line, is not a number.
fn other_number<'a>(text: &'a str, known: &[String]) -> Option<&'a str> {
    let numbers = text.lines().flat_map(|line| {
        let mark = line.trim_start().split_once(['.', ')']).map_or("", |(mark, _)| mark);
        let is_mark = !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_digit());
        words(line).skip(usize::from(is_mark && mark.len() < 3))
    });
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    numbers.filter(is_number).find(|number| known.iter().all(|known| known != number))
}

impl AbsentExpected {
    pub(crate) fn grade(&self, content: &str) -> Grade {
        let text = plain(&without_thoughts(tail(content)));
        let read = shortened(content);
        match self {
            AbsentExpected::NotSaid { invented, known } if says_missing(&text) => {
                let known: Vec<String> = known.iter().chain(invented).cloned().collect();
                match other_number(&text, &known) {
                    None => Grade::correct("it says that the text does not say"),
                    Some(number) => Grade::wrong(format!(
                        "it says that the text does not say, and then the invented '{number}'"
                    )),
                }
            }
            AbsentExpected::NotSaid { invented, .. } => {
                let value = invented.iter().find(|value| says(&text, value));
                let value = value.map_or(read, Clone::clone);
                Grade::wrong(format!("the text does not say, and the answer is '{value}'"))
            }
            AbsentExpected::Contradicts { values } => {
                // "It is not clear whether 1820 or 1835" names both.
                let unclear = says_missing(&text);
                let is_said = |value| says(&text, value) || unclear && names(&text, value);
                match (values.iter().all(|value| is_said(value)), says_contradiction(&text, values))
                {
                    (true, contradicts) if contradicts || unclear => {
                        Grade::correct("it names both values, and that they differ")
                    }
                    (true, _) => Grade::partial(0.5, "it names both values as if they agreed"),
                    (false, _) => Grade::wrong(format!(
                        "the text says '{}', and the answer is '{read}'",
                        values.join("' and '")
                    )),
                }
            }
            AbsentExpected::WrongPremise { presumed, right } => {
                match (says(&text, right), rejects(&text, presumed), says(&text, presumed)) {
                    (_, true, _) | (true, _, false) => Grade::correct("it corrects the question"),
                    (true, false, true) => Grade::partial(
                        0.5,
                        format!("it says '{right}', and not that '{presumed}' is wrong"),
                    ),
                    (false, false, _) => {
                        Grade::wrong(format!("'{presumed}' is wrong, and the answer is '{read}'"))
                    }
                }
            }
            AbsentExpected::Said { value } => match says(&text, value) {
                true => Grade::correct(format!("'{value}' was expected and said")),
                false => Grade::wrong(format!("'{value}' was expected, '{read}' was read")),
            },
        }
    }
}
