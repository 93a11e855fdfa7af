//! What came of a request's attempts so far, of all that are made at once too: how many there were, who was
//! asked, and which failure says most.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hob_core::ModelError;
use hob_core::routing::more_telling;

use super::leg::Leg;

#[derive(Default)]
pub(super) struct Tried(Mutex<Attempts>);

#[derive(Default)]
struct Attempts {
    begun: u32,
    /// Who was asked: what may help a second time is decided when a target fails, and nowhere else.
    targets: Vec<String>,
    /// The failure that says most.
    told: Option<ModelError>,
    /// Only targets that hold more than this are worth asking.
    larger_than: Option<u32>,
}

impl Tried {
    /// Takes one of so many attempts, if there is one left.
    pub(super) fn begin(&self, attempts_max: u32) -> bool {
        let mut attempts = self.attempts();
        let may_begin = attempts.begun < attempts_max;
        attempts.begun += u32::from(may_begin);
        may_begin
    }

    pub(super) fn has_left(&self, attempts_max: u32) -> bool {
        self.attempts().begun < attempts_max
    }

    /// Whether this target is still worth asking, which it is once.
    pub(super) fn takes<M: ?Sized>(&self, leg: &Leg<M>) -> bool {
        let mut attempts = self.attempts();
        let holds_more = match (attempts.larger_than, leg.context_tokens()) {
            (Some(least), Some(context)) => context > least,
            (Some(_), None) | (None, _) => true,
        };
        let is_worth = holds_more && !attempts.targets.contains(&leg.target.name);
        if is_worth {
            attempts.targets.push(leg.target.name.clone());
        }
        is_worth
    }

    /// It has another turn when nobody else has answered.
    pub(super) fn puts_off<M: ?Sized>(&self, leg: &Leg<M>) {
        self.attempts().targets.retain(|target| *target != leg.target.name);
    }

    pub(super) fn failed(&self, error: ModelError) {
        let mut attempts = self.attempts();
        attempts.told = Some(more_telling(attempts.told.take(), error));
    }

    pub(super) fn needs_more_than(&self, tokens: u32) {
        let mut attempts = self.attempts();
        attempts.larger_than = attempts.larger_than.max(Some(tokens));
    }

    pub(super) fn told(&self) -> Option<ModelError> {
        self.attempts().told.take()
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
