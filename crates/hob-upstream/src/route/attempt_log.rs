//! The attempts of one request so far, parallel ones included: how many there were, which targets were
//! asked, and which failure says most.

use std::sync::Mutex;

use hob_core::routing::more_informative;
use hob_core::{ModelError, Task, locked};

use super::candidate::Candidate;

#[derive(Default)]
pub(super) struct AttemptLog(Mutex<Attempts>);

#[derive(Default)]
struct Attempts {
    started: u32,
    /// Targets that were asked. Whether to retry one is decided when it fails, and nowhere else.
    targets: Vec<String>,
    /// The failure that says most.
    reported: Option<ModelError>,
    /// Only targets with a larger context than this are worth asking.
    larger_than: Option<u32>,
}

impl AttemptLog {
    /// Takes one of so many attempts, if one is left.
    pub(super) fn begin(&self, attempts_max: u32) -> bool {
        let mut attempts = locked(&self.0);
        let may_begin = attempts.started < attempts_max;
        attempts.started += u32::from(may_begin);
        may_begin
    }

    pub(super) fn has_left(&self, attempts_max: u32) -> bool {
        locked(&self.0).started < attempts_max
    }

    /// Whether this target is worth asking. Each target is worth it once, so this call marks it as asked.
    pub(super) fn claim_target<T: Task>(&self, candidate: &Candidate<T>) -> bool {
        let mut attempts = locked(&self.0);
        let is_larger = match (attempts.larger_than, candidate.context_tokens()) {
            (Some(least), Some(context)) => context > least,
            (Some(_), None) | (None, _) => true,
        };
        let is_worth = is_larger && !attempts.targets.contains(&candidate.target.name);
        if is_worth {
            attempts.targets.push(candidate.target.name.clone());
        }
        is_worth
    }

    /// This target may be asked again when no other one has answered.
    pub(super) fn postpone<T: Task>(&self, candidate: &Candidate<T>) {
        locked(&self.0).targets.retain(|target| *target != candidate.target.name);
    }

    pub(super) fn failed(&self, error: ModelError) {
        let mut attempts = locked(&self.0);
        attempts.reported = Some(more_informative(attempts.reported.take(), error));
    }

    pub(super) fn needs_more_than(&self, tokens: u32) {
        let mut attempts = locked(&self.0);
        attempts.larger_than = attempts.larger_than.max(Some(tokens));
    }

    /// The failure to report.
    pub(super) fn take_error(&self) -> Option<ModelError> {
        locked(&self.0).reported.take()
    }
}
