//! Finds a thought that leaked into the visible text, so that it is not graded as the answer.
//! Knows think tags, tags without a partner, and a "Thinking Process:" preamble.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

static TAG: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)<(/?)(?:think|thinking|thought|reasoning)>").ok());

static PREAMBLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^[\s*#_]*(?:here(?:'|’)?s (?:a|my) )?(?:thinking|thought) process\s*[*_]*:")
        .ok()
});

/// The beginning of the line after a preamble, with which the answer begins.
static CONCLUSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?im)^[ \t*#_]*(?:final |my )?(?:answer|response|output)[ *_]*:").ok()
});

/// How models begin to think. An answer speaks to the user, and not about the user.
static OPENING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^[\s*#_]*(?:(?:okay|ok|hmm+|alright|right|well|so|first)[,.…]*\s+)*(?:the user (?:is|asks?|asked|wants?|wanted|has|gave|says|said|needs?)\b|let me (?:think|figure)\b|i need to figure\b|we need to (?:answer|respond|produce|output)\b)",
    )
    .ok()
});

/// Whether the visible text contains a thought: between tags, behind a preamble, or from its first words on. The last
/// kind has no end that a program could find, so it is only reported, and not taken out.
pub fn shows_a_thought(content: &str) -> bool {
    let begins_as_one = || OPENING.as_ref().is_some_and(|opening| opening.is_match(content));
    leaked_thought(content).is_some() || begins_as_one()
}

/// The first thought in the visible text, without its tags.
pub fn leaked_thought(content: &str) -> Option<&str> {
    let first = thoughts(content).into_iter().next()?;
    let inner = &content[first];
    let tag = TAG.as_ref()?;
    let start = tag.find(inner).filter(|found| found.start() == 0).map_or(0, |found| found.end());
    let closing = tag.find_iter(inner).last().filter(|found| found.end() == inner.len());
    let end = closing.map_or(inner.len(), |found| found.start());
    Some(inner[start..end.max(start)].trim())
}

/// The visible text without its leaked thoughts.
pub(crate) fn without_thoughts(content: &str) -> String {
    let mut visible = String::new();
    let mut end = 0;
    for thought in thoughts(content) {
        visible.push_str(&content[end..thought.start]);
        end = thought.end;
    }
    visible.push_str(&content[end..]);
    visible
}

/// The thoughts with their tags, in order.
fn thoughts(content: &str) -> Vec<Range<usize>> {
    let mut found = tagged(content);
    // The answer starts after the last thought, and a preamble can stand there too.
    let start = found.last().map_or(0, |last| last.end);
    let rest = &content[start..];
    if PREAMBLE.as_ref().is_some_and(|preamble| preamble.is_match(rest)) {
        let conclusion = CONCLUSION.as_ref().and_then(|line| line.find_iter(rest).last());
        let end = conclusion.map_or(rest.len(), |line| line.start());
        found.push(start..start + end);
    }
    found
}

fn tagged(content: &str) -> Vec<Range<usize>> {
    let Some(tag) = TAG.as_ref() else { return Vec::new() };
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open = None;
    for captures in tag.captures_iter(content) {
        let Some(whole) = captures.get(0) else { continue };
        // In backticks the answer speaks about the tag.
        if content[..whole.start()].ends_with('`') {
            continue;
        }
        let closes = captures.get(1).is_some_and(|slash| !slash.is_empty());
        match (closes, open) {
            (false, None) => open = Some(whole.start()),
            (false, Some(_)) => {}
            (true, opened) => {
                // A template can write the opening tag into the prompt. Then only the closing tag is here.
                let start = opened.unwrap_or_else(|| found.last().map_or(0, |last| last.end));
                found.push(start..whole.end());
                open = None;
            }
        }
    }
    found.extend(open.map(|start| start..content.len()));
    found
}
