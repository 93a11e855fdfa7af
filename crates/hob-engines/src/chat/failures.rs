//! Remembers what failed lately. hob refuses it when it comes again, because another attempt would take the time of others,
//! memory until the worker ends, or the next worker.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Maximum failures that are remembered. The oldest is forgotten first.
const FAILURES_MAX: usize = 64;

/// Failures of requests, or of parts of requests, which are known by their hashes.
#[derive(Debug)]
pub(super) struct RecentFailures<E> {
    kept_for: Duration,
    failures: VecDeque<(u64, Instant, E)>,
}

impl<E: Clone> RecentFailures<E> {
    pub(super) fn new(kept_for: Duration) -> RecentFailures<E> {
        RecentFailures { kept_for, failures: VecDeque::new() }
    }

    /// How the same failed before.
    pub(super) fn known(&mut self, asked: &impl Serialize) -> Option<E> {
        self.failures.retain(|(_, since, _)| since.elapsed() < self.kept_for);
        if self.failures.is_empty() {
            return None;
        }
        let asked = hash(asked)?;
        let known = self.failures.iter().find(|(hash, ..)| *hash == asked);
        known.map(|(.., error)| error.clone())
    }

    pub(super) fn remember(&mut self, failed: &impl Serialize, error: E) {
        let Some(hash) = hash(failed) else { return };
        self.failures.retain(|(known, ..)| *known != hash);
        self.failures.push_back((hash, Instant::now(), error));
        if self.failures.len() > FAILURES_MAX {
            self.failures.pop_front();
        }
    }

    pub(super) fn forget(&mut self, asked: &impl Serialize) {
        let hash = hash(asked);
        self.failures.retain(|(known, ..)| Some(*known) != hash);
    }
}

fn hash(value: &impl Serialize) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    postcard::to_allocvec(value).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_64_failures_are_known_for_their_time() {
        let mut failures = RecentFailures::new(Duration::MAX);
        (0..=64).chain([64]).for_each(|number| failures.remember(&number, "too large"));
        for (number, expected) in
            [(0, None), (1, Some("too large")), (64, Some("too large")), (65, None)]
        {
            assert_eq!(failures.known(&number), expected, "{number}");
        }
        failures.kept_for = Duration::ZERO;
        assert_eq!(failures.known(&64), None, "its time is over");
    }
}
