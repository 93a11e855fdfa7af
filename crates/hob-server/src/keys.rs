//! API keys: who may ask, for which models, and how much. A key is known by its SHA-256 only, so that
//! neither memory nor a log holds one that could be used.

mod budget;
mod caller;
mod digest;
mod holder;
mod refusal;
mod window;

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use subtle::{Choice, ConditionallySelectable};

pub(crate) use self::caller::{Caller, without_version};
pub use self::digest::{EmptyKey, KeyDigest, NotADigest};
pub(crate) use self::holder::{KeyHolder, RateLimitGuard};
pub(crate) use self::refusal::KeyRefusal;
use crate::ledger::Ledger;

/// A key that this hob lets in, and what may be done with it.
#[derive(Clone)]
pub struct KeyOptions {
    /// What metrics, the ledger and its owner call it; no secret.
    pub name: String,
    pub digest: KeyDigest,
    /// The names that may be asked for, the first of them for requests that name none; `None`:
    /// all. Where a name leads is not asked. The lists that need no key show everybody who comes
    /// without one everything: this says what may be used, and hides nothing.
    pub aliases: Option<Vec<String>>,
    pub requests_per_minute: Option<NonZeroU32>,
    /// Answers at once, each from its request until its client has all of it or has left.
    pub concurrency: Option<NonZeroU32>,
    /// Of prompts and answers, from midnight to midnight UTC. Speech has no tokens, so each
    /// character of a text that is read aloud counts as one. While an answer runs, the tokens that it may take are
    /// kept for it, 2,048 where it has no limit of its own, and none is let in that has none left. One that its client gave up
    /// counts the tokens that came, and not its prompt, which nobody had counted by then.
    pub tokens_per_day: Option<NonZeroU64>,
}

impl KeyOptions {
    /// A key without any limits.
    pub fn new(name: impl Into<String>, digest: KeyDigest) -> KeyOptions {
        KeyOptions {
            name: name.into(),
            digest,
            aliases: None,
            requests_per_minute: None,
            concurrency: None,
            tokens_per_day: None,
        }
    }
}

impl fmt::Debug for KeyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyOptions").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Keys that could not be told apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyClash {
    #[error("two keys are called '{name}'; their tokens and rows would be counted as one's")]
    SameName { name: String },
    #[error("'{first}' and '{second}' are the same key; make another for one of them")]
    SameKey { first: String, second: String },
}

/// Whether each key can be told from every other.
///
/// # Errors
/// The first [`KeyClash`].
pub fn check_keys(keys: &[KeyOptions]) -> Result<(), KeyClash> {
    for (place, second) in keys.iter().enumerate() {
        for first in &keys[..place] {
            if first.name == second.name {
                return Err(KeyClash::SameName { name: first.name.clone() });
            }
            if bool::from(first.digest.is(&second.digest)) {
                let (first, second) = (first.name.clone(), second.name.clone());
                return Err(KeyClash::SameKey { first, second });
            }
        }
    }
    Ok(())
}

/// Every key of this hob. None of them: nobody is asked for one.
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<Arc<KeyHolder>>);

impl Keys {
    /// What was spent today is read from the ledger, if there is one: to start hob again is no way
    /// to new tokens. A key that was there before and has not changed keeps what is left of its limits.
    pub(crate) fn renewed(options: &[KeyOptions], before: &Keys, ledger: Option<&Ledger>) -> Keys {
        let (now, today) = (Instant::now(), since_1970());
        let has_budget = options.iter().any(|key| key.tokens_per_day.is_some());
        let spent = ledger.filter(|_| has_budget).map(|ledger| spent_on_day_of(today, ledger));
        let spent = spent.unwrap_or_default();
        let holder = |key: &KeyOptions| {
            if let Some(kept) = before.0.iter().find(|known| known.is_of(key)) {
                return Arc::clone(kept);
            }
            let spent = spent.get(&key.name).copied().unwrap_or(0);
            Arc::new(KeyHolder::new(key, spent, (now, today)))
        };
        Keys(options.iter().map(holder).collect())
    }

    pub(crate) fn are_asked_for(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whose key this is. Takes the same time whichever it is, and wherever the first difference
    /// is: every key is looked at, and their digests tell nothing of the keys.
    pub(crate) fn holder(&self, presented: &[u8]) -> Option<&Arc<KeyHolder>> {
        let presented = KeyDigest::of_bytes(presented);
        let mut place = u32::MAX;
        for (known, holder) in (0..).zip(&self.0) {
            let is_same: Choice = holder.digest.is(&presented);
            place.conditional_assign(&known, is_same);
        }
        self.0.get(place as usize)
    }
}

/// By the names of keys.
fn spent_on_day_of(now: Duration, ledger: &Ledger) -> BTreeMap<String, u64> {
    let midnight = budget::midnight_before(now);
    ledger.tokens_since(midnight.as_millis() as u64).unwrap_or_else(|error| {
        tracing::warn!(%error, "what keys spent today cannot be read; their tokens begin anew");
        BTreeMap::new()
    })
}

/// By the clock that says which day it is.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, key: &str) -> KeyOptions {
        KeyOptions::new(name, KeyDigest::of(key).expect("a key"))
    }

    fn made(options: &[KeyOptions]) -> Keys {
        Keys::renewed(options, &Keys::default(), None)
    }

    #[test]
    fn each_key_has_its_holder_and_others_have_none() {
        let keys = made(&[key("a", "first"), key("b", "My API Key"), key("c", "third")]);
        let rows = [
            ("first", Some("a")),
            ("My API Key", Some("b")),
            ("third", Some("c")),
            ("My API Kez", None),
            ("My API Key ", None),
            ("My API", None),
            ("", None),
        ];
        for (presented, name) in rows {
            let holder = keys.holder(presented.as_bytes()).map(|holder| holder.name.as_str());
            assert_eq!(holder, name, "{presented:?}");
        }
        assert!(keys.are_asked_for() && !made(&[]).are_asked_for());
        assert!(made(&[]).holder(b"first").is_none());
    }

    #[test]
    fn keys_that_cannot_be_told_apart_are_named() {
        assert_eq!(check_keys(&[key("a", "first"), key("b", "second")]), Ok(()));
        for (keys, message) in [
            (
                [key("a", "first"), key("a", "second")],
                "two keys are called 'a'; their tokens and rows would be counted as one's",
            ),
            (
                [key("a", "first"), key("b", "first")],
                "'a' and 'b' are the same key; make another for one of them",
            ),
        ] {
            assert_eq!(check_keys(&keys).expect_err(message).to_string(), message);
        }
    }

    #[test]
    fn nothing_that_is_printed_has_a_key_in_it() {
        let options = key("laptop", "first");
        let keys = made(std::slice::from_ref(&options));
        assert_eq!(format!("{options:?}"), "KeyOptions { name: \"laptop\", .. }");
        assert_eq!(format!("{:?}", options.digest), "KeyDigest(…)");
        assert_eq!(format!("{keys:?}"), "Keys([KeyHolder { name: \"laptop\", .. }])");
    }
}
