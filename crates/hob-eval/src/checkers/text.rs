//! Checkers of words: a pattern, and phrases that must or must not occur.
//! Patterns are compiled within a size limit, and match in time that grows with the text.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::answer_text;
use crate::reading::mention::plain;

/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Signs that end a clause, and words that begin the next one.
const CLAUSE_ENDS: [char; 9] = [',', ';', ':', '.', '!', '?', '(', ')', '—'];
const CLAUSE_STARTS: [&str; 7] = ["but", "so", "because", "since", "therefore", "then", "and"];
/// Words of a clause that are read, on each side of a phrase.
const CLAUSE_WORDS: usize = 8;
/// Words before a phrase that deny it, or only report what others say.
const DENIALS: [&str; 18] = [
    "not",
    "no",
    "nor",
    "never",
    "neither",
    "false",
    "wrong",
    "untrue",
    "incorrect",
    "avoid",
    "myth",
    "misconception",
    "rather than",
    "instead of",
    "claim that",
    "statement that",
    "idea that",
    "assumption that",
];
/// Verbs after a phrase that may begin its rejection: "… is a myth".
const VERBS: [&str; 6] = ["is", "are", "was", "would", "seems", "goes"];
/// Words after such a verb that reject the phrase. The beginning of a word is enough.
const REJECTIONS: [&str; 12] = [
    "not",
    "wrong",
    "false",
    "untrue",
    "incorrect",
    "myth",
    "misconception",
    "misleading",
    "too",
    "oversimpl",
    "overstate",
    "exaggerat",
];

/// A regular expression that must match the visible answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    pub regex: String,
    #[serde(default)]
    pub ignore_case: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{regex}' is not a regular expression that hob takes: {reason}")]
pub struct PatternError {
    regex: String,
    reason: String,
}

fn compile(regex: &str, ignore_case: bool) -> Result<Regex, PatternError> {
    let built = RegexBuilder::new(regex)
        .size_limit(PATTERN_BYTES_MAX)
        .case_insensitive(ignore_case)
        .multi_line(true)
        .build();
    built.map_err(|error| PatternError { regex: regex.to_owned(), reason: error.to_string() })
}

impl Pattern {
    /// # Errors
    /// The expression is wrong or too large.
    pub fn validate(&self) -> Result<(), PatternError> {
        compile(&self.regex, self.ignore_case).map(drop)
    }

    pub(crate) fn grade(&self, content: &str) -> Grade {
        match compile(&self.regex, self.ignore_case) {
            Err(error) => Grade::malformed(error.to_string()),
            Ok(regex) if regex.is_match(answer_text(content).text()) => {
                Grade::correct(format!("it matches '{}'", self.regex))
            }
            Ok(_) => Grade::wrong(format!("it does not match '{}'", self.regex)),
        }
    }
}

/// Things that an answer should say, and traps that it must not fall into; each is a regular expression without case.
/// A trap does not count where it is quoted or denied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Phrases {
    pub required: Vec<String>,
    pub forbidden: Vec<String>,
}

impl Phrases {
    pub(crate) fn is_empty(&self) -> bool {
        self.required.is_empty() && self.forbidden.is_empty()
    }

    /// # Errors
    /// An expression is wrong or too large.
    pub fn validate(&self) -> Result<(), PatternError> {
        self.required.iter().chain(&self.forbidden).try_for_each(|one| compile(one, true).map(drop))
    }

    pub(crate) fn grade(&self, content: &str) -> Grade {
        let answer = answer_text(content);
        let text = answer.text();
        let says = |phrase: &&String| compile(phrase, true).is_ok_and(|regex| regex.is_match(text));
        let missing: Vec<&String> = self.required.iter().filter(|phrase| !says(phrase)).collect();
        let share = match self.required.len() {
            0 => 1.0,
            all => (all - missing.len()) as f64 / all as f64,
        };
        let quotations = quotations(text);
        let states = |phrase: &&String| {
            let is_stated = |found: Range<usize>| {
                !is_quoted(text, &quotations, &found) && !is_denied(text, &found)
            };
            compile(phrase, true)
                .is_ok_and(|regex| regex.find_iter(text).any(|found| is_stated(found.range())))
        };
        if let Some(trap) = self.forbidden.iter().find(states) {
            return Grade::wrong(format!("it says '{trap}', which is a mistake"));
        }
        match missing.first() {
            None => Grade::correct("it says all that is required, and no mistake"),
            Some(first) => Grade::partial(share, format!("it does not say '{first}'")),
        }
    }
}

/// The insides of quotation marks, each in one line.
fn quotations(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    for (at, sign) in text.char_indices() {
        match (sign, open) {
            ('\n', _) => open = None,
            ('"', None) => open = Some((at, '"')),
            ('“', None) => open = Some((at, '”')),
            (sign, Some((start, end))) if sign == end => {
                found.push(start..at);
                open = None;
            }
            _ => {}
        }
    }
    found
}

/// Whether the phrase is quoted from another. A quotation that is a meaning is the answer's own: `it means "…"`.
fn is_quoted(text: &str, quotations: &[Range<usize>], found: &Range<usize>) -> bool {
    let before = quotations.partition_point(|quotation| quotation.start < found.start);
    let last = before.checked_sub(1).and_then(|place| quotations.get(place));
    let Some(quotation) = last.filter(|quotation| found.end <= quotation.end) else { return false };
    let mut words = text[..quotation.start].split_whitespace().rev().map(str::to_lowercase);
    let words = [words.next(), words.next()].map(Option::unwrap_or_default);
    !matches!(
        words.each_ref().map(String::as_str),
        ["means" | "meaning" | "called", _] | ["for", "stands" | "short"]
    )
}

/// Whether the phrase's clause denies it: "you cannot …", "it is not true that …", "… is a myth".
fn is_denied(text: &str, found: &Range<usize>) -> bool {
    // A phrase may begin with the sign that ends the clause before it.
    let start = text[found.clone()].find(char::is_alphanumeric).unwrap_or_default() + found.start;
    let line = text[..start].rsplit('\n').next().unwrap_or_default();
    let is_inside = |word: &&str| {
        !word.ends_with(CLAUSE_ENDS)
            && !CLAUSE_STARTS.iter().any(|start| word.eq_ignore_ascii_case(start))
    };
    let words = line.split_whitespace().rev().take(CLAUSE_WORDS);
    let mut before: Vec<&str> = words.take_while(is_inside).collect();
    before.reverse();
    let before = format!(" {} ", plain(&before.join(" ")));
    if DENIALS.iter().any(|denial| before.contains(&format!(" {denial} "))) {
        return true;
    }
    let line = text[found.end..].split('\n').next().unwrap_or_default();
    let mut after = line.split_whitespace().take(CLAUSE_WORDS);
    if !after.next().is_some_and(|word| VERBS.contains(&word)) {
        return false;
    }
    for word in after {
        let said = plain(word);
        if REJECTIONS.iter().any(|start| said.starts_with(start)) {
            return true;
        }
        if word.ends_with(CLAUSE_ENDS) {
            break;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Verdict, own_file};

    #[test]
    fn patterns_are_checked_before_they_are_used() {
        let pattern = |regex: &str| Pattern { regex: regex.to_owned(), ignore_case: true };
        assert_eq!(pattern("^total: \\d+$").grade("Sum\nTOTAL: 12\n").verdict, Verdict::Correct);
        assert_eq!(pattern("^total$").grade("subtotal").verdict, Verdict::Wrong);
        for wrong in ["(", "a{1000}{1000}{1000}", "(?=x)"] {
            assert!(pattern(wrong).validate().is_err(), "{wrong}");
            assert_eq!(pattern(wrong).grade("x").verdict, Verdict::Malformed);
        }
    }

    #[test]
    fn a_trap_is_wrong_whatever_else_is_said() {
        let phrases = Phrases {
            required: vec!["state space".to_owned(), "Vulkan".to_owned()],
            forbidden: vec!["switched sparse memory".to_owned()],
        };
        let rows = [
            ("SSM is a state space model; use Vulkan.", Verdict::Correct, 1.0),
            ("Use vulkan.", Verdict::Wrong, 0.5),
            ("SSM means Switched Sparse Memory, a state space model. Vulkan.", Verdict::Wrong, 0.0),
        ];
        for (text, verdict, score) in rows {
            let grade = phrases.grade(text);
            assert_eq!((grade.verdict, grade.score), (verdict, score), "{text}");
        }
    }

    #[test]
    fn a_trap_that_is_quoted_or_denied_does_not_count() {
        let phrases = Phrases {
            required: Vec::new(),
            forbidden: [
                "always use q8",
                "q4 is always (better|worse)",
                "use cuda",
                "sparse memory",
                "[.] install cuda",
            ]
            .map(str::to_owned)
            .to_vec(),
        };
        let rows = [
            ("The claim \"Q4 reduces quality, so always use Q8\" goes too far.", true),
            ("The advice “always use Q8” ignores the memory.", true),
            ("The claim that you should always use Q8 ignores the memory.", true),
            ("It is not true that Q4 is always worse.", true),
            ("It’s a myth that Q4 is always worse.", true),
            ("That Q4 is always worse is simply wrong.", true),
            ("There is no reason to always use Q8.", true),
            ("On this card you cannot use CUDA; take Vulkan.", true),
            ("You can't use CUDA here.", true),
            ("Rather than always use Q8, measure.", true),
            ("Always use Q8.", false),
            ("No, always use Q8.", false),
            ("Q4 is not good, so always use Q8.", false),
            ("Q4 is not good so always use Q8.", false),
            ("It is not small.\nAlways use Q8", false),
            ("Always use Q8, not Q4.", false),
            ("In short, Q4 is always worse.", false),
            ("That is not so. Install CUDA.", false),
            ("Instead use CUDA.", false),
            ("You cannot use CUDA. But then use CUDA.", false),
            ("SSM stands for \"switched sparse memory\".", false),
            ("SSM means \"switched sparse memory\".", false),
            ("Say \"yes\" and always use Q8 \"now\".", false),
        ];
        for (text, expected) in rows {
            let is_correct = phrases.grade(text).verdict == Verdict::Correct;
            assert_eq!(is_correct, expected, "{text}");
        }
    }

    /// A good and a bad answer to each question that comes with hob.
    #[test]
    fn shipped_questions_grade_good_and_bad_answers() {
        let text = include_str!("../../../../bench/eval/articles.jsonl");
        let items = own_file::parse("articles", text).expect("items");
        let answers = [
            (
                "Take a mixture-of-experts model such as Qwen3 30B A3B in Q4: only about 3 billion parameters are read for each token. The memory bandwidth of 50 GB/s limits the speed. You cannot use CUDA on AMD graphics, and only NVIDIA cards can use CUDA at all; use Vulkan, or the CPU.",
                "Use CUDA with a dense 70B model. The bandwidth of 50 GB/s is very high, so a mixture of experts brings nothing over Vulkan.",
            ),
            (
                "The claim \"so always use Q8\" is an oversimplification. It is not true that Q4 is always worse: Q4 takes half the memory and is faster, with a small loss. With little memory take a larger model in Q4.",
                "The claim is right in general. Q8 needs more memory and is slower at the same speed of the bus, but you should always use Q8.",
            ),
        ];
        assert_eq!(items.len(), answers.len());
        for (item, (good, bad)) in items.iter().zip(answers) {
            for (content, verdict) in [(good, Verdict::Correct), (bad, Verdict::Wrong)] {
                let answer = Answer { content: content.to_owned(), ..Answer::default() };
                let grade = crate::grade(item, &answer, None);
                assert_eq!(grade.verdict, verdict, "{}: {}", item.id, grade.why);
            }
        }
    }
}
