//! The account of one chat answer: what it took and how it ended, for metrics, log and admission.
//! Counts only: nothing of what was asked or answered is kept.

use std::sync::Arc;
use std::time::Duration;

use hob_core::Permit;
use hob_core::chat::Usage;

use crate::failure::Refusal;
use crate::metrics::{Metrics, Outcome};
use crate::requests::Received;

/// What is known of an answer from its beginning to its end; dropping it writes it down.
pub(crate) struct Account {
    metrics: Arc<Metrics>,
    received: Received,
    model: String,
    permit: Option<Permit>,
    /// Time spent waiting for the model, and not for the client.
    waited: Duration,
    ttft: Option<Duration>,
    /// Events seen, which are about as many tokens, until a choice says how many it had.
    guessed_tokens: u32,
    usage: Usage,
    outcome: Outcome,
}

impl Account {
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        received: Received,
        model: &str,
        permit: Permit,
    ) -> Account {
        Account {
            metrics,
            received,
            model: model.to_owned(),
            permit: Some(permit),
            waited: Duration::ZERO,
            ttft: None,
            guessed_tokens: 0,
            usage: Usage::default(),
            outcome: Outcome::Abandoned,
        }
    }

    /// From the request's headers to the first event.
    pub(crate) fn ttft(&self) -> Duration {
        self.ttft.unwrap_or_default()
    }

    pub(crate) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// The first event is in hand.
    pub(crate) fn begun(&mut self) {
        let ttft = self.received.at.elapsed();
        self.metrics.first_token(&self.model, ttft);
        self.ttft = Some(ttft);
    }

    pub(crate) fn made_token(&mut self) {
        self.guessed_tokens += 1;
        self.made(1);
    }

    /// A choice is complete. Each counts its prompt, which all but the first find in the cache.
    pub(crate) fn done(&mut self, usage: &Usage) {
        self.usage.prompt_tokens += usage.prompt_tokens;
        self.usage.cached_tokens += usage.cached_tokens;
        self.usage.completion_tokens += usage.completion_tokens;
        self.usage.reasoning_tokens += usage.reasoning_tokens;
        let missed = self.usage.completion_tokens.saturating_sub(self.guessed_tokens);
        self.guessed_tokens += missed;
        self.made(missed);
    }

    pub(crate) fn complete(&mut self) {
        self.outcome = Outcome::Complete;
        if let Some(permit) = self.permit.take() {
            permit.finished(self.waited);
        }
    }

    pub(crate) fn failed(&mut self, refusal: &Refusal) {
        self.outcome = Outcome::Failed;
        if refusal.status().is_server_error() {
            tracing::warn!(id = self.received.id, model = self.model, error = %refusal, "chat failed");
        }
    }

    fn made(&mut self, tokens: u32) {
        if let Some(permit) = &mut self.permit {
            permit.made(f64::from(tokens));
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        // What was refused before it began stands among the requests, with its status.
        if self.ttft.is_none() && self.outcome == Outcome::Failed {
            return;
        }
        self.metrics.chat_answer(&self.model, self.outcome, &self.usage);
        let ttft_ms = self.ttft.map(|ttft| ttft.as_millis() as u64);
        let ms = self.received.at.elapsed().as_millis() as u64;
        let (id, model, outcome) = (self.received.id, &self.model, self.outcome.name());
        let Usage { prompt_tokens, cached_tokens, completion_tokens, .. } = self.usage;
        tracing::info!(
            id,
            model,
            outcome,
            prompt_tokens,
            cached_tokens,
            completion_tokens,
            ttft_ms,
            ms,
            "chat"
        );
    }
}
