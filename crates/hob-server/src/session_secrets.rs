//! Short-lived secrets that open sessions. hob keeps only their SHA-256, in memory.
//! A restart forgets them; clients then ask for another.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hob_core::locked;
use hob_core::realtime::RealtimeSettings;
use uuid::Uuid;

use crate::keys::KeyDigest;

/// Secrets of one key. Beyond this, the one of them that expires first is dropped: no key ends the secrets of another.
const SECRETS_MAX: usize = 1_024;

#[derive(Default)]
pub(crate) struct Secrets(Mutex<Vec<Secret>>);

/// A secret, without its value.
#[derive(Clone)]
pub(crate) struct Secret {
    digest: KeyDigest,
    expires_at: Instant,
    /// The name of the key that asked for it, whose limits count.
    pub(crate) key: Option<String>,
    pub(crate) settings: RealtimeSettings,
}

impl Secrets {
    /// The value of a new secret.
    pub(crate) fn add(
        &self,
        valid: Duration,
        key: Option<String>,
        settings: RealtimeSettings,
    ) -> String {
        // Each has 74 random bits.
        let value = format!("ek_{}{}", Uuid::now_v7().simple(), Uuid::now_v7().simple());
        let digest = KeyDigest::of_bytes(value.as_bytes());
        let mut all = self.current();
        let own: Vec<usize> = (0..all.len()).filter(|place| all[*place].key == key).collect();
        if own.len() >= SECRETS_MAX
            && let Some(first) = own.into_iter().min_by_key(|place| all[*place].expires_at)
        {
            all.swap_remove(first);
        }
        all.push(Secret { digest, expires_at: Instant::now() + valid, key, settings });
        value
    }

    pub(crate) fn find(&self, value: &[u8]) -> Option<Secret> {
        let digest = KeyDigest::of_bytes(value);
        let all = self.current();
        all.iter().find(|secret| bool::from(secret.digest.is(&digest))).cloned()
    }

    /// Without those that have expired.
    fn current(&self) -> MutexGuard<'_, Vec<Secret>> {
        let mut all = locked(&self.0);
        let now = Instant::now();
        all.retain(|secret| secret.expires_at > now);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_until_it_expires_and_their_number_is_bounded() {
        let secrets = Secrets::default();
        let settings = RealtimeSettings::default;
        let gone = secrets.add(Duration::ZERO, None, settings());
        assert!(secrets.find(gone.as_bytes()).is_none());
        let first = secrets.add(Duration::from_secs(20), None, settings());
        let other = secrets.add(Duration::from_secs(10), Some("laptop".to_owned()), settings());
        let found = secrets.find(other.as_bytes()).expect("a secret");
        assert_eq!(found.key.as_deref(), Some("laptop"));
        for _ in 0..SECRETS_MAX {
            secrets.add(Duration::from_secs(100), None, settings());
        }
        assert!(secrets.find(first.as_bytes()).is_none(), "it would have expired first");
        assert!(secrets.find(other.as_bytes()).is_some(), "it belongs to another key");
        assert_eq!(secrets.current().len(), SECRETS_MAX + 1);
    }
}
