//! The account of one answer: when it was asked for and begun, and how it ended, for metrics, log and
//! admission. What is counted besides (sound, tokens) is for those who hold one.

use std::sync::Arc;
use std::time::Duration;

use hob_core::Permit;

use crate::failure::Refusal;
use crate::metrics::{Metrics, Outcome};
use crate::requests::Received;

/// What is known of an answer from its beginning to its end.
pub(crate) struct Account {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) model: String,
    pub(crate) outcome: Outcome,
    received: Received,
    permit: Option<Permit>,
    /// Time spent waiting for the model, and not for the client.
    waited: Duration,
    first: Option<Duration>,
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
            model: model.to_owned(),
            outcome: Outcome::Abandoned,
            received,
            permit: Some(permit),
            waited: Duration::ZERO,
            first: None,
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.received.id
    }

    /// Since the request's headers.
    pub(crate) fn ms(&self) -> u64 {
        self.received.at.elapsed().as_millis() as u64
    }

    /// From the request's headers to the first of the answer, once that is in hand.
    pub(crate) fn first(&self) -> Option<Duration> {
        self.first
    }

    pub(crate) fn first_ms(&self) -> Option<u64> {
        self.first.map(|first| first.as_millis() as u64)
    }

    pub(crate) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// The first of the answer is in hand. Says after how long, and only the first time.
    pub(crate) fn begun(&mut self) -> Option<Duration> {
        if self.first.is_some() {
            return None;
        }
        self.first = Some(self.received.at.elapsed());
        self.first
    }

    /// Work done of what was admitted, in admission's measure.
    pub(crate) fn made(&mut self, work: f64) {
        if let Some(permit) = &mut self.permit {
            permit.made(work);
        }
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
            let (id, model) = (self.id(), &self.model);
            tracing::warn!(id, model, error = %refusal, "the answer failed");
        }
    }
}
