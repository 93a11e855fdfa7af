//! Reads the letter of a choice, and yes or no.
//! A letter needs a sign that it is one: the word "A" alone opens many sentences.

use std::sync::LazyLock;

use regex::Regex;

use super::statements::{AnswerText, first_sentence, folded};

/// At the start of a statement: `(B)`, `B.`, `option B`, `B` alone, `B because`.
static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^[\s\[]*(?:(?:(?i:the )?(?i:option|choice|answer|letter)) )?",
        r"(?:\(([A-Za-z])\)|([A-Za-z])\)|([A-Z])(?:[.:,\]\s]*$|[.:,\]]\s|\s*[—–-]\s",
        r"|\s+(?:because|since|as|is correct|is right)\b))",
    ))
    .ok()
});

/// After a letter: another one, as in `A, B and D`, `(A) or (B)`.
static NEXT_LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^\)?(?:,\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+)",
        r"\(?([A-Z])\)?(?:[,.:\]]|\s+(?:and|or|are)\b|\s*$)",
    ))
    .ok()
});

/// Anywhere in a line: `option B`, `(B)`.
static MENTION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?i:option|choice) \(?([A-Z])\b|\(([A-Z])\)").ok());

/// The index of the option that the answer chooses.
pub(crate) fn choice(answer: &AnswerText, options: &[String]) -> Option<usize> {
    let options: Vec<String> = options.iter().map(|option| folded(option)).collect();
    let statements = answer.stated();
    let stated = statements.iter().find_map(|statement| chosen(statement, &options));
    let lines = || [answer.last_line(), answer.text().lines().next().unwrap_or_default()];
    stated
        .or_else(|| lines().iter().find_map(|line| chosen(line, &options)))
        .or_else(|| lines().iter().find_map(|line| mentioned(line, &options)))
}

/// What a statement chooses: the option's own text, or a letter.
fn chosen(statement: &str, options: &[String]) -> Option<usize> {
    let equal = |text: &str| {
        let text = folded(text);
        options.iter().position(|option| !option.is_empty() && *option == text)
    };
    equal(statement).or_else(|| equal(first_sentence(statement))).or_else(|| {
        let captures = LETTER.as_ref()?.captures(statement)?;
        let letter = captures.iter().skip(1).flatten().next()?;
        let rest = &statement[letter.end()..];
        index(letter.as_str(), options.len()).filter(|_| !continues_list(rest, options.len()))
    })
}

/// Whether the letter of another option follows. A list of options chooses none.
fn continues_list(rest: &str, count: usize) -> bool {
    let next = NEXT_LETTER.as_ref().and_then(|letter| letter.captures(rest));
    next.is_some_and(|next| index(&next[1], count).is_some())
}

/// The one option that a line names. Two different options do not count as a choice.
fn mentioned(line: &str, options: &[String]) -> Option<usize> {
    let captures = MENTION.iter().flat_map(|mention| mention.captures_iter(line));
    let letters = captures
        .filter_map(|found| index(found.iter().skip(1).flatten().next()?.as_str(), options.len()));
    only(letters).or_else(|| {
        let line = format!(" {} ", words(&folded(line)));
        let named = |option: &&String| line.contains(&format!(" {} ", words(option)));
        only(options.iter().enumerate().filter(|(_, option)| named(option)).map(|(at, _)| at))
    })
}

/// The words of a text with single spaces, so that a comma behind an option hides nothing.
fn words(text: &str) -> String {
    let words = text.split(|sign: char| !sign.is_alphanumeric() && sign != '-' && sign != '\'');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn only(mut found: impl Iterator<Item = usize>) -> Option<usize> {
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

fn index(letter: &str, count: usize) -> Option<usize> {
    let letter = letter.bytes().next()?.to_ascii_uppercase();
    Some(usize::from(letter.wrapping_sub(b'A'))).filter(|at| *at < count)
}

/// Yes or no: of the last statement, or else the first word of the last line or of the text.
pub(crate) fn yes_no(answer: &AnswerText) -> Option<bool> {
    let text = answer.text();
    let stated = answer.stated().into_iter().find_map(first_word);
    stated.or_else(|| first_word(answer.last_line())).or_else(|| first_word(text))
}

fn first_word(text: &str) -> Option<bool> {
    let text = text.trim_start_matches(|sign: char| !sign.is_alphanumeric());
    let end = text.find(|sign: char| !sign.is_alphanumeric()).unwrap_or(text.len());
    match text[..end].to_lowercase().as_str() {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}
