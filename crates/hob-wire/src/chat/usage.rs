//! What an answer took, as OpenAI's and llama.cpp's readers know it.
//! Several choices are one answer: they share a prompt, and run side by side.

use hob_core::chat::{Completion, FinishReason, SpentBudget, Timings, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use super::CallShape;

/// The ends of an answer's choices so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    usage: Usage,
    timings: Timings,
}

/// Whether a choice's prompt is counted: choices of one prompt share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptShare {
    First,
    Repeated,
}

/// Tokens of an answer.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ChatUsage {
    prompt_tokens: u32,
    completion_tokens: u32,
    total_tokens: u32,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

/// Tokens of the prompt.
#[derive(JsonSchema, Serialize)]
struct PromptDetails {
    /// Found in the cache.
    cached_tokens: u32,
}

/// Tokens of the answer.
#[derive(JsonSchema, Serialize)]
struct CompletionDetails {
    /// Spent on thinking.
    reasoning_tokens: u32,
}

/// Times in llama.cpp's names. `load_ms` and `queue_ms` are hob's: they come before the prompt.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ChatTimings {
    cache_n: u32,
    /// Computed, and not found in the cache.
    prompt_n: u32,
    prompt_ms: f64,
    prompt_per_token_ms: f64,
    prompt_per_second: f64,
    predicted_n: u32,
    predicted_ms: f64,
    predicted_per_token_ms: f64,
    predicted_per_second: f64,
    load_ms: f64,
    queue_ms: f64,
    /// Guessed tokens that were computed together with another one. Left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_n: Option<u32>,
    /// Guessed tokens that were right.
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_n_accepted: Option<u32>,
}

impl Ended {
    pub(crate) fn add(&mut self, share: PromptShare, completion: &Completion) {
        let Completion { usage, timings, .. } = completion;
        let sum = &mut self.usage;
        if share == PromptShare::First {
            sum.prompt_tokens = sum.prompt_tokens.saturating_add(usage.prompt_tokens);
            sum.cached_tokens = sum.cached_tokens.saturating_add(usage.cached_tokens);
            self.timings.prompt_ms += timings.prompt_ms;
        }
        sum.completion_tokens = sum.completion_tokens.saturating_add(usage.completion_tokens);
        sum.reasoning_tokens = sum.reasoning_tokens.saturating_add(usage.reasoning_tokens);
        self.timings.predicted_ms = self.timings.predicted_ms.max(timings.predicted_ms);
        self.timings.load_ms = self.timings.load_ms.max(timings.load_ms);
        self.timings.queue_ms = self.timings.queue_ms.max(timings.queue_ms);
        let drafted = &mut self.timings.draft_tokens;
        *drafted = drafted.saturating_add(timings.draft_tokens);
        let accepted = &mut self.timings.accepted_tokens;
        *accepted = accepted.saturating_add(timings.accepted_tokens);
    }

    pub(crate) fn queue_ms(&self) -> f64 {
        self.timings.queue_ms
    }

    pub(crate) fn tokens(&self) -> &Usage {
        &self.usage
    }

    pub(crate) fn usage(&self) -> ChatUsage {
        let usage = &self.usage;
        ChatUsage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.prompt_tokens.saturating_add(usage.completion_tokens),
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached_tokens },
            completion_tokens_details: CompletionDetails {
                reasoning_tokens: usage.reasoning_tokens,
            },
        }
    }

    /// None: the server that answered did not report its times.
    pub(crate) fn timings(&self) -> Option<ChatTimings> {
        let (usage, timings) = (&self.usage, &self.timings);
        if !timings.are_known() {
            return None;
        }
        let prompt_n = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
        let predicted_n = usage.completion_tokens;
        let has_drafts = timings.draft_tokens > 0;
        Some(ChatTimings {
            cache_n: usage.cached_tokens,
            prompt_n,
            prompt_ms: timings.prompt_ms,
            prompt_per_token_ms: ratio(timings.prompt_ms, prompt_n.into()),
            prompt_per_second: ratio(f64::from(prompt_n) * 1000.0, timings.prompt_ms),
            predicted_n,
            predicted_ms: timings.predicted_ms,
            predicted_per_token_ms: ratio(timings.predicted_ms, predicted_n.into()),
            predicted_per_second: ratio(f64::from(predicted_n) * 1000.0, timings.predicted_ms),
            load_ms: timings.load_ms,
            queue_ms: timings.queue_ms,
            draft_n: has_drafts.then_some(timings.draft_tokens),
            draft_n_accepted: has_drafts.then_some(timings.accepted_tokens),
        })
    }
}

/// Zero when there is nothing to divide by: JSON has no infinity.
fn ratio(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}

/// A note on an answer that lacks something although it looks whole.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub(crate) struct AnswerNote {
    /// `thinking_used_the_whole_budget`: all tokens were spent on thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// The limit that a team's run has reached. The answer says what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetNote>,
}

/// A limit that a team's run has reached.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
struct BudgetNote {
    /// `turns`, `tokens`, `seconds` or `micro_usd` (millionths of a US dollar).
    unit: &'static str,
    limit: u64,
    /// When the limit was noticed; the last answer comes on top.
    used: u64,
}

const ONLY_THOUGHT: &str = "thinking_used_the_whole_budget";

impl AnswerNote {
    pub(crate) fn of_budget(finish: FinishReason) -> Option<AnswerNote> {
        let FinishReason::BudgetSpent(SpentBudget { unit, limit, used }) = finish else {
            return None;
        };
        let budget = Some(BudgetNote { unit: unit.name(), limit, used });
        Some(AnswerNote { budget, ..AnswerNote::default() })
    }
}

/// Whether a choice has text and tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutputKinds {
    pub(super) text: bool,
    pub(super) calls: bool,
}

impl OutputKinds {
    pub(super) fn note(self, completion: &Completion) -> Option<AnswerNote> {
        let only_thought = completion.finish == FinishReason::Length
            && completion.usage.reasoning_tokens > 0
            && !self.text
            && !self.calls;
        let thought = AnswerNote { note: Some(ONLY_THOUGHT), ..AnswerNote::default() };
        only_thought.then_some(thought).or_else(|| AnswerNote::of_budget(completion.finish))
    }

    /// An answer with calls that came to its end was ended by them.
    pub(super) fn finish(self, completion: &Completion, shape: CallShape) -> &'static str {
        match completion.finish {
            FinishReason::Length => "length",
            FinishReason::ContentFilter => "content_filter",
            FinishReason::BudgetSpent(_) => "stop",
            FinishReason::Stop if !self.calls => "stop",
            FinishReason::Stop | FinishReason::ToolCalls => match shape {
                CallShape::ToolCalls => "tool_calls",
                CallShape::FunctionCall => "function_call",
            },
        }
    }
}
