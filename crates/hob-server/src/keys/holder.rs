//! The holder of a key, and what it has used: requests, concurrent answers and tokens. One lock
//! protects all of them, so that two simultaneous requests cannot both take the last of a limit.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hob_core::locked;

use super::daily_tokens::DailyTokens;
use super::refusal::KeyRefusal;
use super::window::Window;
use super::{KeyOptions, since_1970};
use crate::ledger::RequestRecord;

/// The holder of one key. Requests with the key carry it among their extensions.
pub(crate) struct KeyHolder {
    pub(super) key: KeyOptions,
    /// Shared by the holders of this name in all configurations.
    used: Arc<Mutex<KeyUse>>,
}

/// Counted also without a limit, because a limit may be added while answers run.
#[derive(Debug)]
struct KeyUse {
    requests: Window,
    in_flight: u32,
    tokens: DailyTokens,
}

impl KeyHolder {
    /// `spent` tokens were spent on the day of `today`. `now` is the same time by the other clock.
    pub(super) fn new(
        key: &KeyOptions,
        spent: u64,
        (now, today): (Instant, Duration),
    ) -> KeyHolder {
        let (requests, tokens) = (Window::new(now), DailyTokens::new(spent, today));
        let used = KeyUse { requests, in_flight: 0, tokens };
        KeyHolder { key: key.clone(), used: Arc::new(Mutex::new(used)) }
    }

    /// The holder of the same name in another configuration.
    pub(super) fn with_limits(&self, key: &KeyOptions) -> KeyHolder {
        KeyHolder { key: key.clone(), used: Arc::clone(&self.used) }
    }

    /// Admits a request to a model. The request counts only if no other limit rejects it, so that
    /// waiting for a free answer does not use up requests.
    pub(super) fn acquire(self: &Arc<Self>) -> Result<RateLimitGuard, KeyRefusal> {
        let mut used = locked(&self.used);
        self.check_tokens(&mut used)?;
        self.check_place(&used)?;
        let taken = Instant::now();
        self.count_request(&mut used, taken)?;
        used.in_flight += 1;
        drop(used);
        Ok(RateLimitGuard {
            holder: Arc::clone(self),
            taken: Some(taken),
            has_begun: false,
            has_place: true,
            reserved: 0,
        })
    }

    /// Admits a part of a session that has a slot. Only parts that answer count as requests.
    pub(super) fn acquire_part(
        self: &Arc<Self>,
        is_answer: bool,
    ) -> Result<RateLimitGuard, KeyRefusal> {
        let mut used = locked(&self.used);
        self.check_tokens(&mut used)?;
        let taken = is_answer.then(Instant::now);
        if let Some(now) = taken {
            self.count_request(&mut used, now)?;
        }
        drop(used);
        let holder = Arc::clone(self);
        Ok(RateLimitGuard { holder, taken, has_begun: false, has_place: false, reserved: 0 })
    }

    /// Admits a request that only loads or unloads a model.
    pub(super) fn take_request(&self) -> Result<(), KeyRefusal> {
        self.count_request(&mut locked(&self.used), Instant::now())
    }

    /// Admits a request that starts or continues a run of a team, which goes on after the request.
    pub(super) fn take_run(&self) -> Result<(), KeyRefusal> {
        let mut used = locked(&self.used);
        self.check_tokens(&mut used)?;
        self.count_request(&mut used, Instant::now())
    }

    /// Records tokens that were used.
    pub(super) fn spend(&self, tokens: u64) {
        locked(&self.used).tokens.spend(tokens, since_1970());
    }

    fn check_tokens(&self, used: &mut KeyUse) -> Result<(), KeyRefusal> {
        let Some(per_day) = self.key.tokens_per_day else { return Ok(()) };
        let now = since_1970();
        let checked = used.tokens.check(per_day, now);
        checked.map_err(|midnight_in| KeyRefusal::Spent { per_day, midnight_in })?;
        if used.tokens.left(per_day, now) == 0 {
            return Err(KeyRefusal::Reserved { per_day });
        }
        Ok(())
    }

    fn check_place(&self, used: &KeyUse) -> Result<(), KeyRefusal> {
        match self.key.concurrency {
            Some(at_once) if used.in_flight >= at_once.get() => {
                Err(KeyRefusal::TooMany { at_once })
            }
            _ => Ok(()),
        }
    }

    fn count_request(&self, used: &mut KeyUse, now: Instant) -> Result<(), KeyRefusal> {
        // Without a limit, no request is too fast.
        let per_minute = self.key.requests_per_minute.unwrap_or(NonZeroU32::MAX);
        let taken = used.requests.take(per_minute, now);
        taken.map_err(|retry_after| KeyRefusal::TooFast { per_minute, retry_after })
    }
}

hob_core::debug_fields!(KeyHolder: key);

/// One of the holder's concurrent answers, from before the request's body is read until the answer has ended or
/// its client has left. Dropping it frees the answer, and also the request if no model was used or it does not count.
#[derive(Debug)]
pub(crate) struct RateLimitGuard {
    holder: Arc<KeyHolder>,
    /// When the request was counted. `None`: a part of a session that is no answer, and counts as no request.
    taken: Option<Instant>,
    has_begun: bool,
    /// Whether the answer itself is one of the concurrent answers, and not a part of a session that is one.
    has_place: bool,
    /// Tokens of the day's budget that are reserved for the answer.
    reserved: u64,
}

impl RateLimitGuard {
    /// The model is about to be used: from now on the request counts.
    pub(crate) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// The request does not count after all.
    pub(crate) fn give_request_back(&mut self) {
        self.has_begun = false;
    }

    /// Reserves tokens of the day for the answer, so that concurrent answers cannot spend the same tokens. Returns
    /// the most that the answer may use; `None`: no limit.
    pub(crate) fn reserve(&mut self, wanted: u64) -> Result<Option<u64>, KeyRefusal> {
        let holder = Arc::clone(&self.holder);
        let Some(per_day) = holder.key.tokens_per_day else { return Ok(None) };
        let mut used = locked(&holder.used);
        holder.check_tokens(&mut used)?;
        let now = since_1970();
        let most = used.tokens.left(per_day, now);
        self.reserved += used.tokens.reserve(wanted, per_day, now);
        Ok(Some(most))
    }

    /// Records the tokens of an answer that has ended.
    pub(crate) fn spend(&self, entry: &RequestRecord) {
        self.holder.spend(entry.tokens());
    }
}

impl Drop for RateLimitGuard {
    fn drop(&mut self) {
        let mut used = locked(&self.holder.used);
        used.in_flight -= u32::from(self.has_place);
        used.tokens.release(self.reserved);
        if let (false, Some(taken)) = (self.has_begun, self.taken) {
            used.requests.give_back(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::super::KeyDigest;
    use super::*;

    fn holder(limit: impl FnOnce(&mut KeyOptions)) -> Arc<KeyHolder> {
        let mut key = KeyOptions::new("laptop", KeyDigest::of("secret").expect("a key"));
        limit(&mut key);
        Arc::new(KeyHolder::new(&key, 0, (Instant::now(), since_1970())))
    }

    fn row(prompt_tokens: u32, completion_tokens: u32) -> RequestRecord {
        RequestRecord { prompt_tokens, completion_tokens, ..RequestRecord::default() }
    }

    #[test]
    fn a_slot_is_free_again_when_its_turn_is_over() {
        let at_once = NonZeroU32::new(2).expect("some");
        let holder = holder(|key| key.concurrency = Some(at_once));
        let guards = [holder.acquire().expect("the first"), holder.acquire().expect("the last")];
        assert_eq!(holder.acquire().expect_err("none left"), KeyRefusal::TooMany { at_once });
        assert_eq!(holder.take_request(), Ok(()), "it takes no slot");
        drop(guards);
        assert!(holder.acquire().is_ok());
    }

    #[test]
    fn a_request_without_a_free_answer_does_not_count() {
        let holder = holder(|key| {
            key.concurrency = NonZeroU32::new(1);
            key.requests_per_minute = NonZeroU32::new(2);
        });
        let mut guard = holder.acquire().expect("the first");
        guard.begin();
        for _ in 0..10 {
            assert_eq!(holder.acquire().expect_err("no slot").code(), "concurrency_limit_exceeded");
        }
        drop(guard);
        for _ in 0..10 {
            drop(holder.acquire().expect("a request that asks no model counts for nothing"));
        }
        let mut guard = holder.acquire().expect("the second");
        guard.begin();
        drop(guard);
        assert_eq!(holder.acquire().expect_err("too fast").code(), "rate_limit_exceeded");
    }

    #[test]
    fn an_answer_that_is_not_needed_gives_back_its_request_and_no_other() {
        let holder = holder(|key| key.requests_per_minute = NonZeroU32::new(1));
        let used = |is_answer| {
            let mut guard = holder.acquire_part(is_answer)?;
            guard.begin();
            Ok::<_, KeyRefusal>(guard)
        };
        used(true).expect("an early answer").give_request_back();
        drop(used(true).expect("the answer"));
        used(false).expect("an early voice").give_request_back();
        assert_eq!(used(true).expect_err("the second").code(), "rate_limit_exceeded");
    }

    #[test]
    fn tokens_are_spent_when_answers_end() {
        let holder = holder(|key| key.tokens_per_day = NonZeroU64::new(100));
        let guards = [(); 2].map(|()| holder.acquire().expect("nothing is spent"));
        guards[0].spend(&row(60, 39));
        assert!(holder.acquire().is_ok(), "one is left");
        guards[1].spend(&row(60, 40));
        assert_eq!(holder.acquire().expect_err("spent").code(), "budget_exceeded");
    }

    #[test]
    fn without_limits_nothing_is_refused() {
        let holder = holder(|_| {});
        let guards: Vec<RateLimitGuard> =
            (0..1000).map(|_| holder.acquire().expect("a guard")).collect();
        guards[0].spend(&row(u32::MAX, u32::MAX));
        assert!(holder.acquire().is_ok());
    }
}
