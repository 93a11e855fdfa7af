//! Finds where an answer states its result: a LaTeX box, "Answer: …", "The answer is …", a heading "Answer".
//! The last statement comes first, because a model that corrects itself does so later.

use std::sync::LazyLock;

use regex::Regex;

use super::markup::{Plain, plain};

/// Statements that are looked at. A person does not look further back either.
const STATEMENTS_MAX: usize = 32;
/// Bytes of one statement that are read.
const STATEMENT_BYTES_MAX: usize = 2000;

static MARKER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?im)\b(?:answer|solution|(?:correct|right|best) (?:option|choice))"?"#,
        r"(?:[ \t]*\([^)\n]{0,40}\)|[ \t]+(?:to|of|for|in)[ \t][^\n.:=]{1,60}?)?",
        r"[ \t]*(?:\b(?:is|are|was|would be|should be|equals)\b|[:=→])[ \t]*:?",
        r"|^[ \t]*(?:(?:the|my) )?(?:(?:final|correct) )?(?:answer|solution)[ \t]*$",
        r"|\b(?:correction:|actually,? (?:it|that)(?: is|['’]s)\b)",
    ))
    .ok()
});

/// Words that name an intermediate figure as often as the last one. They count in the last line only.
static WEAK_MARKER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:result|total|sum)[ \t]*(?:\b(?:is|are|equals)\b|[:=→])").ok()
});

static PLEASANTRY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:let me know|i hope|hope (?:this|that)|feel free|would you like|if you)\b")
        .ok()
});

/// An answer without markup.
#[derive(Debug)]
pub(crate) struct AnswerText {
    plain: Plain,
}

/// One place where an answer states its result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement<'a> {
    /// The statement to the end of its line: a unit can stand behind a box.
    pub(super) line: &'a str,
    /// The inside of the box, or the line.
    pub(super) whole: &'a str,
}

impl AnswerText {
    pub(crate) fn new(visible: &str) -> AnswerText {
        AnswerText { plain: plain(visible) }
    }

    pub(crate) fn text(&self) -> &str {
        self.plain.text.trim()
    }

    /// Lines with text, the last first, without closing words such as "Let me know if …".
    pub(super) fn lines_from_end(&self) -> impl Iterator<Item = &str> {
        self.plain
            .text
            .lines()
            .rev()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .skip_while(|line| PLEASANTRY.as_ref().is_some_and(|words| words.is_match(line)))
    }

    pub(crate) fn last_line(&self) -> &str {
        self.lines_from_end().next().unwrap_or_default()
    }

    /// The texts that state the result, the last first.
    pub(crate) fn stated(&self) -> Vec<&str> {
        self.statements().into_iter().map(|statement| statement.whole).collect()
    }

    /// The last statement first.
    pub(super) fn statements(&self) -> Vec<Statement<'_>> {
        let text = self.plain.text.as_str();
        let mut found: Vec<(usize, Statement<'_>)> = Vec::new();
        for marker in MARKER.iter().flat_map(|marker| marker.find_iter(text)) {
            let line = after(text, marker.end());
            if !line.is_empty() && !is_denied(line) {
                found.push((marker.end(), Statement { line, whole: line }));
            }
        }
        for inside in &self.plain.boxed {
            let whole = shortened(text[inside.clone()].trim());
            let line = shortened(first_line(&text[inside.start..]));
            found.push((inside.start, Statement { line, whole }));
        }
        found.sort_by_key(|(at, _)| *at);
        if found.is_empty() {
            let line = self.last_line();
            let marker = WEAK_MARKER.as_ref().and_then(|marker| marker.find_iter(line).last());
            let rest = marker.map(|marker| shortened(line[marker.end()..].trim()));
            found.extend(rest.map(|line| (0, Statement { line, whole: line })));
        }
        found.into_iter().rev().take(STATEMENTS_MAX).map(|(_, statement)| statement).collect()
    }
}

/// `The answer is NOT 41` states no result.
fn is_denied(line: &str) -> bool {
    line.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("not "))
}

/// The rest of a marker's line, or the next line with text where the marker ends its line.
fn after(text: &str, end: usize) -> &str {
    let rest = &text[end..];
    let line = first_line(rest);
    let line = if line.is_empty() { first_line(rest.trim_start()) } else { line };
    shortened(line)
}

fn first_line(text: &str) -> &str {
    text.split('\n').next().unwrap_or_default().trim()
}

fn shortened(line: &str) -> &str {
    &line[..line.floor_char_boundary(STATEMENT_BYTES_MAX)]
}

/// The line up to the end of its first sentence. A full stop inside a number ends nothing.
pub(super) fn first_sentence(line: &str) -> &str {
    let ends = [". ", "! ", "? ", "; "].iter().filter_map(|end| line.find(end));
    &line[..ends.min().unwrap_or(line.len())]
}

/// A text for comparison: lower case, plain quotes and dashes, single spaces, no articles, no punctuation at
/// the ends.
pub(crate) fn folded(text: &str) -> String {
    let plain: String = text.chars().flat_map(char::to_lowercase).map(fold).collect();
    let trimmed = plain.trim_matches(|sign: char| {
        sign.is_whitespace() || (sign.is_ascii_punctuation() && !matches!(sign, '%' | '+' | '#'))
    });
    // A sign such as `<` can be the whole answer, also in quotes and before a full stop.
    let is_around = |sign: char| sign.is_whitespace() || matches!(sign, '"' | '\'' | '.');
    let forms = [trimmed, plain.trim_matches(is_around), plain.as_str()];
    let trimmed = forms.into_iter().find(|form| !form.is_empty()).unwrap_or_default();
    let words = || trimmed.split_whitespace();
    let article = |word: &&str| matches!(*word, "a" | "an" | "the");
    let kept: Vec<&str> = words().filter(|word| !article(word)).collect();
    if kept.is_empty() { words().collect::<Vec<_>>().join(" ") } else { kept.join(" ") }
}

fn fold(sign: char) -> char {
    match sign {
        '‘' | '’' | '′' => '\'',
        '“' | '”' | '„' | '«' | '»' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '−' => '-',
        '\u{a0}' | '\u{2009}' | '\u{202f}' => ' ',
        // Full-width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(sign as u32 - 0xfee0).unwrap_or(sign),
        other => other,
    }
}
