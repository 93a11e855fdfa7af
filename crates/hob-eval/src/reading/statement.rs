//! The places of an answer where its result stands: a box, a line after "Answer:", a last line.
//! They come in the order in which a reader would believe them.

use std::sync::LazyLock;

use regex::Regex;

use super::markup::plain;
use super::{tail, without_thoughts};

/// "Answer: …", "The final answer is …", "Result = …" up to the end of the line.
static STATED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?im)(?:\b(?:final |correct |my )?(?:answer|result|solution|conclusion)(?: is| was|:| =)+|\btherefore,?|\bthus,?|\bso,? the [a-z ]{1,30} is)[ \t]*:?[ \t]*([^\n]+)",
    )
    .ok()
});

/// An answer without thoughts and markup.
pub(crate) fn visible_text(content: &str) -> String {
    plain(&without_thoughts(tail(content))).text
}

/// Statements of the result, the most credible first: boxes, marked statements, and the last line, each the last first.
pub(crate) fn statements(content: &str) -> Vec<String> {
    let page = plain(&without_thoughts(tail(content)));
    let mut found: Vec<String> =
        page.boxed.iter().rev().map(|range| page.text[range.clone()].to_owned()).collect();
    if let Some(stated) = STATED.as_ref() {
        let mut lines: Vec<String> = stated
            .captures_iter(&page.text)
            .filter_map(|captures| Some(captures.get(1)?.as_str().to_owned()))
            .filter(|line| !line.trim().is_empty())
            .collect();
        lines.reverse();
        // A chain of "therefore" has its result at the end.
        found.extend(lines);
    }
    let mut lines = page.text.lines().map(str::trim).filter(|line| !line.is_empty());
    found.extend(lines.next_back().map(str::to_owned));
    found
}

/// Lower case, without articles, and without punctuation at the ends. Spaces are single.
pub(crate) fn folded(text: &str) -> String {
    let lower: String = text.chars().flat_map(char::to_lowercase).map(simple).collect();
    let words = lower.split_whitespace().filter(|word| !matches!(*word, "the" | "a" | "an"));
    let joined = words.collect::<Vec<_>>().join(" ");
    let is_edge = |sign: char| {
        sign.is_whitespace()
            || matches!(
                sign,
                '.' | ',' | ';' | ':' | '!' | '?' | '"' | '\'' | '(' | ')' | '`' | '*'
            )
    };
    joined.trim_matches(is_edge).to_owned()
}

/// Typographic signs as a keyboard has them.
fn simple(sign: char) -> char {
    match sign {
        '‘' | '’' | 'ʼ' => '\'',
        '“' | '”' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2009}' | '\u{202f}' => ' ',
        other => other,
    }
}
