//! API keys: which models a key may use, and how much. hob stores only a key's SHA-256, so that
//! neither memory nor a log contains a usable key.

mod caller;
mod daily_tokens;
mod digest;
mod holder;
mod refusal;
mod window;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use subtle::{Choice, ConditionallySelectable};

pub(crate) use self::caller::{Caller, tagged, without_version};
pub use self::digest::{EmptyKey, KeyDigest, NotADigest};
pub(crate) use self::holder::{KeyHolder, RateLimitGuard};
pub(crate) use self::refusal::KeyRefusal;
use crate::ledger::Ledger;

/// An API key and its limits.
#[derive(Clone)]
pub struct KeyOptions {
    /// Its name in metrics and in the ledger; not secret.
    pub name: String,
    pub digest: KeyDigest,
    /// The models and aliases that the key may use, by any of their names. A request that names no model uses the first of
    /// them that is no team. `None`: all. Targets behind a name are not checked. Lists that need no key still show
    /// all names to clients without a key: this setting restricts use and hides nothing.
    pub aliases: Option<Vec<String>>,
    pub requests_per_minute: Option<NonZeroU32>,
    /// Answers at the same time. Each counts from its request until the client has received all of it or has left.
    pub concurrency: Option<NonZeroU32>,
    /// Tokens of prompts and answers, from midnight to midnight UTC. Speech has no tokens, so each
    /// character of a spoken text counts as one. While an answer runs, hob reserves the tokens that it may use
    /// (2,048 without a limit of its own). A request is rejected if no tokens are left. If its client leaves early,
    /// an answer counts the tokens sent so far, without its prompt, which was not counted yet. An answer
    /// of a team counts all tokens of its run.
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

hob_core::debug_fields!(KeyOptions: name);

/// Two keys that cannot be distinguished, or a key that is not a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyClash {
    #[error("two keys are called '{name}'; rename one, because hob counts requests by this name")]
    SameName { name: String },
    #[error("'{first}' and '{second}' are the same key; make another for one of them")]
    SameKey { first: String, second: String },
    #[error(
        "'{name}' is the default key of Pipelines, which is public; make another with `openssl rand -hex 16`"
    )]
    Public { name: String },
}

/// Checks that all keys differ, and that none is public.
///
/// # Errors
/// The first [`KeyClash`].
pub fn check_keys(keys: &[KeyOptions]) -> Result<(), KeyClash> {
    for (place, second) in keys.iter().enumerate() {
        if second.digest.is_default() {
            return Err(KeyClash::Public { name: second.name.clone() });
        }
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

/// Maximum number of removed keys whose use is remembered.
const REMOVED_MAX: usize = 1000;

/// All keys of this hob. Without any, requests need no key.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    holders: Vec<Arc<KeyHolder>>,
    /// The holders of removed keys, the latest first. A name that comes back keeps what it has used.
    removed: Vec<Arc<KeyHolder>>,
}

impl Keys {
    /// Makes the holders of these keys. A name that existed before keeps what it has used, whatever its limits are now. The
    /// tokens that a new name has spent today are read from the ledger, if there is one, so that a restart does not reset the
    /// budget.
    pub(crate) fn renewed(options: &[KeyOptions], before: &Keys, ledger: Option<&Ledger>) -> Keys {
        let (now, today) = (Instant::now(), since_1970());
        let all_before = || before.holders.iter().chain(&before.removed);
        let known = |name: &str| all_before().find(|holder| holder.key.name == name);
        let has_new = options.iter().any(|key| known(&key.name).is_none());
        let spent = ledger.filter(|_| has_new).map(|ledger| spent_on_day_of(today, ledger));
        let spent = spent.unwrap_or_default();
        let holder = |key: &KeyOptions| {
            Arc::new(match known(&key.name) {
                Some(known) => known.with_limits(key),
                None => {
                    let spent = spent.get(&key.name).copied().unwrap_or(0);
                    KeyHolder::new(key, spent, (now, today))
                }
            })
        };
        let is_removed =
            |holder: &&Arc<KeyHolder>| options.iter().all(|key| key.name != holder.key.name);
        let removed = all_before().filter(is_removed).take(REMOVED_MAX).cloned().collect();
        Keys { holders: options.iter().map(holder).collect(), removed }
    }

    pub(crate) fn are_required(&self) -> bool {
        !self.holders.is_empty()
    }

    /// The holder of this key. The search takes the same time for every input: it compares all digests, and a digest
    /// reveals nothing about its key.
    pub(crate) fn holder(&self, presented: &KeyDigest) -> Option<&Arc<KeyHolder>> {
        let mut place = u32::MAX;
        for (known, holder) in (0..).zip(&self.holders) {
            let is_same: Choice = holder.key.digest.is(presented);
            place.conditional_assign(&known, is_same);
        }
        self.holders.get(place as usize)
    }

    /// The holder with this name, which is not a secret.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<KeyHolder>> {
        self.holders.iter().find(|holder| holder.key.name == name)
    }
}

/// Tokens that were spent since the midnight before `now`, by the name of the key.
fn spent_on_day_of(now: Duration, ledger: &Ledger) -> BTreeMap<String, u64> {
    let midnight = daily_tokens::midnight_before(now);
    ledger.tokens_since(midnight.as_millis() as u64).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read the tokens that keys spent today; their budgets start at zero");
        BTreeMap::new()
    })
}

/// The wall clock, which decides which day it is.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::RequestRecord;

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
            let digest = KeyDigest::of_bytes(presented.as_bytes());
            let holder = keys.holder(&digest).map(|holder| holder.key.name.as_str());
            assert_eq!(holder, name, "{presented:?}");
        }
        assert!(keys.are_required() && !made(&[]).are_required());
        assert!(made(&[]).holder(&KeyDigest::of_bytes(b"first")).is_none());
    }

    #[test]
    fn a_name_keeps_what_it_has_used_when_its_limits_change() {
        let mut limited = key("a", "first");
        let before = made(std::slice::from_ref(&limited));
        let answer = |keys: &Keys| keys.named("a").expect("a holder").acquire();
        let mut first = answer(&before).expect("no limit");
        first.begin();
        limited.concurrency = NonZeroU32::new(1);
        limited.requests_per_minute = NonZeroU32::new(1);
        limited.tokens_per_day = NonZeroU64::new(10);
        let now = Keys::renewed(&[limited], &before, None);
        let refused = || answer(&now).expect_err("used up").code();
        assert_eq!(refused(), "concurrency_limit_exceeded");
        drop(first);
        assert_eq!(refused(), "rate_limit_exceeded");
        let spent = RequestRecord { completion_tokens: 10, ..RequestRecord::default() };
        answer(&before).expect("no limit").spend(&spent);
        assert_eq!(refused(), "budget_exceeded");
    }

    #[test]
    fn a_name_that_was_removed_and_comes_back_keeps_what_it_has_used() {
        let mut limited = key("a", "first");
        limited.concurrency = NonZeroU32::new(1);
        let before = made(std::slice::from_ref(&limited));
        let running = before.named("a").expect("a holder").acquire().expect("the first");
        let without = Keys::renewed(&[key("b", "second")], &before, None);
        assert!(without.named("a").is_none(), "it is no key");
        let again = Keys::renewed(&[limited], &without, None);
        let refused = again.named("a").expect("a holder").acquire().expect_err("one is running");
        assert_eq!(refused.code(), "concurrency_limit_exceeded");
        drop(running);
        assert!(again.named("a").expect("a holder").acquire().is_ok());
        assert!(again.removed.iter().map(|holder| &holder.key.name).eq(["b"]));
    }

    #[test]
    fn keys_that_clash_are_named() {
        assert_eq!(check_keys(&[key("a", "first"), key("b", "second")]), Ok(()));
        let public = check_keys(&[key("a", "first"), key("b", "0p3n-w3bu!")]);
        assert_eq!(public, Err(KeyClash::Public { name: "b".to_owned() }));
        for (keys, message) in [
            (
                [key("a", "first"), key("a", "second")],
                "two keys are called 'a'; rename one, because hob counts requests by this name",
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
    fn debug_output_contains_no_key() {
        let options = key("laptop", "first");
        let keys = made(std::slice::from_ref(&options));
        let shown = "KeyOptions { name: \"laptop\", .. }";
        assert_eq!(format!("{options:?}"), shown);
        assert_eq!(format!("{:?}", options.digest), "KeyDigest(…)");
        let holders = format!("[KeyHolder {{ key: {shown}, .. }}]");
        assert_eq!(format!("{keys:?}"), format!("Keys {{ holders: {holders}, removed: [] }}"));
    }
}
