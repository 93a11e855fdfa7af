//! Recognises an answer that only declines: short, opens with a refusal, and states nothing else.
//! An apology before an answer is not a refusal.

use std::sync::LazyLock;

use regex::Regex;

use super::statements::AnswerText;

/// Bytes of a refusal. A longer text says more than no.
const REFUSAL_BYTES_MAX: usize = 700;

static REFUSAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)^(?:unfortunately,? |(?:as|being) an? (?:ai|artificial|language)[^.]{0,60}, )?",
        r"(?:i(?:['’]m| am) (?:very |so |really |truly )?sorry|sorry|i apologi[sz]e|apologies)?",
        r"[,.! ]*(?:but )?(?:unfortunately,? )?",
        r"(?:i(?: just| simply)? (?:can ?not|can['’]?t|won['’]?t|will not|must decline|decline|refuse)",
        r"|i(?:['’]m| am) (?:unable|not able|not allowed|not permitted|not comfortable|not going))\b",
        r"[^.!?]{0,40}\b(?:help|assist|answer|provide|fulfil+|comply|continue|do that|discuss|engage",
        r"|support|share|create|generate|respond|proceed|participate|complete|decline|have (?:personal )?opinions)",
    ))
    .ok()
});

static MORE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)[0-9]|```|\bhowever\b|\bthat said\b|\bbut here\b").ok());

/// Does the answer as a whole decline?
pub(crate) fn declines(visible: &str) -> bool {
    let text = visible.trim();
    if text.len() > REFUSAL_BYTES_MAX || MORE.as_ref().is_some_and(|more| more.is_match(text)) {
        return false;
    }
    let answer = AnswerText::new(text);
    let refuses = REFUSAL.as_ref().is_some_and(|refusal| refusal.is_match(answer.text()));
    refuses && answer.stated().is_empty()
}
