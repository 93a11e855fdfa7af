//! What requests share in the mock server: slots, the count of running requests, and the prompts that it remembers.
//! A request without a free slot waits, as at a server that computes one answer after the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use hob_core::locked;

/// Number of prompts that are remembered.
const PROMPTS_MAX: usize = 64;
const SETTLE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct MockSlots {
    running: Mutex<u32>,
    freed: Condvar,
    had_request: AtomicBool,
    prompts: Mutex<VecDeque<Vec<u64>>>,
}

/// One running request. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct MockSlot<'a> {
    slots: &'a MockSlots,
    /// Requests that were already running.
    pub(super) others: u32,
    /// This is the server's first request.
    pub(super) is_first: bool,
}

impl MockSlots {
    /// Waits until fewer than `limit` requests are running; 0 is no limit.
    pub(super) fn take(&self, limit: u32) -> MockSlot<'_> {
        let mut running = locked(&self.running);
        while limit > 0 && *running >= limit {
            running = self.freed.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        let others = *running;
        *running += 1;
        let is_first = !self.had_request.swap(true, Ordering::Relaxed);
        MockSlot { slots: self, others, is_first }
    }

    /// Waits up to a second until no request is running. A client has an answer's last byte before the server has
    /// noted that it wrote it.
    pub(super) fn settle(&self) {
        let running = locked(&self.running);
        let is_busy = |running: &mut u32| *running > 0;
        // A request that still runs after the limit is left out.
        let _settled = self.freed.wait_timeout_while(running, SETTLE_MAX, is_busy);
    }

    pub(super) fn forget(&self) {
        locked(&self.prompts).clear();
        self.had_request.store(false, Ordering::Relaxed);
    }
}

impl MockSlot<'_> {
    /// The number of tokens at this prompt's start that an earlier prompt had, and remembers this prompt.
    pub(super) fn cached(&self, words: &[u64]) -> u32 {
        let mut prompts = locked(&self.slots.prompts);
        let same = |known: &Vec<u64>| known.iter().zip(words).take_while(|(a, b)| a == b).count();
        let cached = prompts.iter().map(same).max().unwrap_or(0);
        if prompts.len() == PROMPTS_MAX {
            prompts.pop_front();
        }
        prompts.push_back(words.to_vec());
        // A server computes at least the last token: its logits give the answer's first token.
        u32::try_from(cached.min(words.len().saturating_sub(1))).unwrap_or(u32::MAX)
    }
}

impl Drop for MockSlot<'_> {
    fn drop(&mut self) {
        *locked(&self.slots.running) -= 1;
        self.slots.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_start_of_two_prompts_is_cached() {
        let slots = MockSlots::default();
        let slot = slots.take(0);
        assert_eq!(slot.cached(&[1, 2, 3, 4]), 0);
        assert_eq!(slot.cached(&[1, 2, 9]), 2);
        assert_eq!(slot.cached(&[1, 2, 3, 4]), 3, "the last token is always computed");
        assert_eq!(slot.cached(&[9, 2, 3]), 0);
        slots.forget();
        assert_eq!(slot.cached(&[1, 2, 3, 4]), 0);
    }

    #[test]
    fn a_request_without_a_free_slot_waits() {
        let slots = MockSlots::default();
        let first = slots.take(1);
        assert!((first.others, first.is_first) == (0, true));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| slots.take(1).others);
            drop(first);
            assert_eq!(second.join().unwrap(), 0);
        });
        let _one = slots.take(0);
        assert_eq!(slots.take(0).others, 1);
    }
}
