//! The figures of an answer: a line for people, a record for programs.
//! Rates leave out the first token: its time belongs to the prompt and is shown apart.

use std::fmt::Write as _;

use hob_core::chat::{Completion, FinishReason};
use serde_json::{Value, json};

use super::Reply;
use crate::printer::count_text;

/// hob does not learn which of these reasons an answer has.
const CUT_OFF: &str = "\
cut off: token limit reached (raise --max-tokens), context full (raise chat.context_tokens), \
or text that repeats itself (ask in other words)";

/// "41 tokens, 96 tokens/s, first token after 0.12 s, prompt 45 tokens (30 cached)".
pub(crate) fn figures(reply: &Reply) -> Option<String> {
    let completion = reply.completion?;
    let usage = completion.usage;
    let mut line = count_text(usage.completion_tokens, "token");
    // Writing to a String cannot fail, here and below.
    if usage.reasoning_tokens > 0 {
        let _infallible = write!(line, " ({} of thinking)", usage.reasoning_tokens);
    }
    if let Some(rate) = tokens_per_second(&completion) {
        let _infallible = write!(line, ", {rate:.*} tokens/s", decimals(rate));
    }
    if let Some(first) = reply.first_token {
        let _infallible = write!(line, ", first token after {:.2} s", first.as_secs_f64());
    }
    let _infallible = write!(line, ", prompt {}", count_text(usage.prompt_tokens, "token"));
    if usage.cached_tokens > 0 {
        let _infallible = write!(line, " ({} cached)", usage.cached_tokens);
    }
    Some(line)
}

/// A warning if the answer is not as good as it could be.
pub(crate) fn warning(reply: &Reply) -> Option<&'static str> {
    let completion = reply.completion?;
    match (completion.finish, reply.text.is_empty()) {
        (FinishReason::Length, true) if completion.usage.reasoning_tokens > 0 => {
            Some("all tokens were used for thinking; raise --max-tokens or lower --effort")
        }
        (FinishReason::Length, _) => Some(CUT_OFF),
        (FinishReason::ContentFilter, _) => Some("withheld by the model's server"),
        (FinishReason::BudgetSpent(_), _) => Some("the budget of the team is used up"),
        (FinishReason::Stop | FinishReason::ToolCalls, _) => None,
    }
}

fn decimals(rate: f64) -> usize {
    if rate < 10.0 { 1 } else { 0 }
}

fn tokens_per_second(completion: &Completion) -> Option<f64> {
    let intervals = completion.usage.completion_tokens.checked_sub(1).filter(|count| *count > 0)?;
    let seconds = completion.timings.predicted_ms / 1000.0;
    (seconds > 0.0).then(|| f64::from(intervals) / seconds)
}

/// An answer for programs: `hob chat --json`. `None` if the answer is incomplete.
pub(crate) fn record(model: &str, reply: &Reply) -> Option<Value> {
    let completion = reply.completion?;
    let Completion { finish, usage, timings } = completion;
    let finish_reason = match finish {
        FinishReason::Stop | FinishReason::BudgetSpent(_) => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
    };
    Some(json!({
        "model": model,
        "text": reply.text,
        "reasoning": reply.reasoning,
        "finish_reason": finish_reason,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.completion_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "total_tokens": usage.total_tokens(),
        },
        "timings": {
            "load_ms": timings.load_ms,
            "queue_ms": timings.queue_ms,
            "prompt_ms": timings.prompt_ms,
            "predicted_ms": timings.predicted_ms,
            // Measured here, so the way to the server and back is included.
            "first_token_ms": reply.first_token.map(|time| time.as_secs_f64() * 1000.0),
            "tokens_per_second": tokens_per_second(&completion),
        },
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::chat::{Timings, Usage};

    use super::*;

    fn reply(finish: FinishReason, usage: Usage, predicted_ms: f64) -> Reply {
        let timings = Timings { predicted_ms, ..Timings::default() };
        let first_token = Some(Duration::from_millis(120));
        let completion = Some(Completion { finish, usage, timings });
        Reply { first_token, completion, ..Reply::default() }
    }

    #[test]
    fn figures_say_only_what_was_measured() {
        let usage = |prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens| Usage {
            prompt_tokens,
            cached_tokens,
            completion_tokens,
            reasoning_tokens,
        };
        let rows = [
            (
                usage(45, 30, 41, 0),
                400.0,
                "41 tokens, 100 tokens/s, first token after 0.12 s, prompt 45 tokens (30 cached)",
            ),
            (
                usage(45, 0, 21, 12),
                4000.0,
                "21 tokens (12 of thinking), 5.0 tokens/s, first token after 0.12 s, prompt 45 tokens",
            ),
            (usage(1, 0, 1, 0), 0.0, "1 token, first token after 0.12 s, prompt 1 token"),
        ];
        for (usage, predicted_ms, expected) in rows {
            let reply = reply(FinishReason::Stop, usage, predicted_ms);
            assert_eq!(figures(&reply).as_deref(), Some(expected));
        }
        assert_eq!(figures(&Reply::default()), None, "an answer that broke off");
    }

    #[test]
    fn an_answer_that_was_cut_off_is_marked() {
        let thought = Usage { reasoning_tokens: 5, ..Usage::default() };
        let rows = [
            (FinishReason::Length, thought, "", Some("all tokens were used for thinking")),
            (FinishReason::Length, thought, "Hi", Some("cut off")),
            (FinishReason::Length, Usage::default(), "", Some("cut off")),
            (FinishReason::ContentFilter, thought, "Hi", Some("withheld")),
            (FinishReason::Stop, thought, "Hi", None),
        ];
        for (finish, usage, text, expected) in rows {
            let reply = Reply { text: text.to_owned(), ..reply(finish, usage, 1.0) };
            let marked = warning(&reply);
            assert_eq!(marked.is_some(), expected.is_some(), "{text:?} {marked:?}");
            assert!(marked.unwrap_or_default().starts_with(expected.unwrap_or_default()));
        }
    }
}
