//! The account of one chat answer: the tokens it took, beside what every answer's account says.
//! Counts only: nothing of what was asked or answered is kept.

use hob_core::chat::{Completion, Usage};

use crate::account::Account;
use crate::ledger::{Outcome, RequestRecord};

/// Dropping it writes it down.
pub(crate) struct ChatAccount {
    pub(crate) answer: Account,
    /// Events seen, which are about as many tokens, until a choice says how many it had.
    guessed_tokens: u32,
    usage: Usage,
}

impl ChatAccount {
    pub(crate) fn new(answer: Account) -> ChatAccount {
        ChatAccount { answer, guessed_tokens: 0, usage: Usage::default() }
    }

    /// The first event is in hand.
    pub(crate) fn begun(&mut self) {
        if let Some(ttft) = self.answer.begun() {
            self.answer.metrics.first_token(&self.answer.label, ttft);
        }
    }

    pub(crate) fn made_token(&mut self) {
        self.guessed_tokens += 1;
        self.answer.made(1.0);
    }

    /// A choice is complete. Each counts its prompt, which all but the first find in the cache; of
    /// the times, the first one's are kept, and the longest answer's.
    pub(crate) fn done(&mut self, completion: &Completion) {
        let Completion { usage, timings, .. } = completion;
        self.usage.prompt_tokens += usage.prompt_tokens;
        self.usage.cached_tokens += usage.cached_tokens;
        self.usage.completion_tokens += usage.completion_tokens;
        self.usage.reasoning_tokens += usage.reasoning_tokens;
        let entry = &mut self.answer.entry;
        if timings.are_known() {
            entry.load_ms.get_or_insert(timings.load_ms);
            entry.queue_ms.get_or_insert(timings.queue_ms);
            let longest = entry.predicted_ms.unwrap_or(0.0).max(timings.predicted_ms);
            entry.predicted_ms = Some(longest);
        }
        let missed = self.usage.completion_tokens.saturating_sub(self.guessed_tokens);
        self.guessed_tokens += missed;
        self.answer.made(f64::from(missed));
    }
}

impl Drop for ChatAccount {
    fn drop(&mut self) {
        let usage = self.usage;
        let entry = &mut self.answer.entry;
        entry.prompt_tokens = usage.prompt_tokens;
        entry.cached_tokens = usage.cached_tokens;
        entry.completion_tokens = usage.completion_tokens.max(self.guessed_tokens);
        entry.reasoning_tokens = usage.reasoning_tokens;
        let Account { metrics, label: model, entry: RequestRecord { outcome, .. }, .. } =
            &self.answer;
        // What was refused before it began stands among the requests, with its status.
        if self.answer.first().is_none() && *outcome == Outcome::Failed {
            return;
        }
        metrics.chat_answer(model, *outcome, &usage);
    }
}
