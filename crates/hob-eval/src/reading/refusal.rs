//! Recognises an answer that only declines: it is short, begins with a refusal, and states nothing.
//! A refusal inside a longer answer is not one.

use std::sync::LazyLock;

use regex::Regex;

/// A refusal with an explanation is longer than an answer, and an answer that mentions one is longer still.
const WORDS_MAX: usize = 80;

static DECLINES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\W*(?:(?:i(?:'|’)?m|i am) (?:very |really |so )?sorry\b.{0,40}?\bi (?:can(?:'|’)?t|cannot|can not|am unable|am not able|won(?:'|’)?t)|sorry,? (?:but )?i (?:can(?:'|’)?t|cannot|am unable)|i (?:can(?:'|’)?t|cannot|can not|won(?:'|’)?t) (?:help|assist|answer|provide|do|fulfil|comply|discuss|give)|i(?:'|’)?m (?:unable|not able) to (?:help|assist|answer|provide|fulfil|comply)|as an ai\b.{0,60}?\bi (?:can(?:'|’)?t|cannot|am unable|do not|don(?:'|’)?t))",
    )
    .ok()
});

pub(crate) fn declines(visible: &str) -> bool {
    visible.split_whitespace().take(WORDS_MAX + 1).count() <= WORDS_MAX
        && DECLINES.as_ref().is_some_and(|declines| declines.is_match(visible))
}
