//! Who is worked on at once, and which prompts are remembered: what requests share in a scripted server.
//! Whoever finds no place waits, as at a server that computes one answer after the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Prompts that are remembered.
const PROMPTS_MAX: usize = 64;
const SETTLE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Places {
    working: Mutex<u32>,
    freed: Condvar,
    was_asked: AtomicBool,
    prompts: Mutex<VecDeque<Vec<u64>>>,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    places: &'a Places,
    /// Who was worked on already.
    pub(super) beside: u32,
    /// Nobody had a place before.
    pub(super) is_first: bool,
}

impl Places {
    /// Waits until fewer than `slots` are worked on; 0 is without limit.
    pub(super) fn take(&self, slots: u32) -> Place<'_> {
        let mut working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        while slots > 0 && *working >= slots {
            working = self.freed.wait(working).unwrap_or_else(PoisonError::into_inner);
        }
        let beside = *working;
        *working += 1;
        let is_first = !self.was_asked.swap(true, Ordering::Relaxed);
        Place { places: self, beside, is_first }
    }

    /// Waits until nobody is worked on, but not for long: a client has an answer's last byte before the
    /// server has noted that it wrote it.
    pub(super) fn settle(&self) {
        let working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = |working: &mut u32| *working > 0;
        // What is not over by then is left out.
        let _settled = self.freed.wait_timeout_while(working, SETTLE_MAX, is_busy);
    }

    pub(super) fn forget(&self) {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.was_asked.store(false, Ordering::Relaxed);
    }
}

impl Place<'_> {
    /// How much of this prompt's beginning was heard before; it is remembered from now on.
    pub(super) fn cached(&self, words: &[u64]) -> u32 {
        let mut prompts = self.places.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &Vec<u64>| known.iter().zip(words).take_while(|(a, b)| a == b).count();
        let cached = prompts.iter().map(same).max().unwrap_or(0);
        if prompts.len() == PROMPTS_MAX {
            prompts.pop_front();
        }
        prompts.push_back(words.to_vec());
        // One token is always computed: its logits are the answer's beginning.
        u32::try_from(cached.min(words.len().saturating_sub(1))).unwrap_or(u32::MAX)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.places.working.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.places.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_that_was_heard_is_cached() {
        let places = Places::default();
        let place = places.take(0);
        assert_eq!(place.cached(&[1, 2, 3, 4]), 0);
        assert_eq!(place.cached(&[1, 2, 9]), 2);
        assert_eq!(place.cached(&[1, 2, 3, 4]), 3, "the last is computed all the same");
        assert_eq!(place.cached(&[9, 2, 3]), 0);
        places.forget();
        assert_eq!(place.cached(&[1, 2, 3, 4]), 0);
    }

    #[test]
    fn who_finds_no_place_waits_for_one() {
        let places = Places::default();
        let first = places.take(1);
        assert!((first.beside, first.is_first) == (0, true));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| places.take(1).beside);
            drop(first);
            assert_eq!(second.join().unwrap(), 0);
        });
        let _one = places.take(0);
        assert_eq!(places.take(0).beside, 1);
    }
}
