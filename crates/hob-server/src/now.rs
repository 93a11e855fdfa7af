//! What runs now, what ended lately, and what the last hour took: in memory, and bounded.
//! A request pays for it with a lock when it begins and one when it ends; a token costs one atomic.

mod hour;
mod routes;
mod running;
mod views;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hob_core::trace::Way;

use self::hour::Hour;
pub(crate) use self::routes::{NOW, routes};
pub(crate) use self::running::Running;
use crate::keys::Caller;
use crate::ledger::RequestRecord;

/// Twice as many as connections are let in. What is beyond runs as well, and is not seen.
const RUNNING_MAX: usize = 1024;

/// Requests that ended, and can still be asked about.
const ENDED_MAX: usize = 100;

/// See the file's head. No lock is held while anything is waited for.
#[derive(Debug, Default)]
pub(crate) struct Now {
    running: Mutex<BTreeMap<u64, Arc<Running>>>,
    /// The latest is the last.
    ended: Mutex<VecDeque<Arc<Ended>>>,
    hour: Mutex<Hour>,
}

/// A request that is done, however it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    running: Arc<Running>,
    way: Way,
    entry: RequestRecord,
}

impl Now {
    pub(crate) fn enter(&self, running: &Arc<Running>) {
        let mut all = locked(&self.running);
        if all.len() < RUNNING_MAX {
            all.insert(running.id, Arc::clone(running));
        }
    }

    /// Whether a model was asked for this request, lately or now: it has a line of its own in the log.
    pub(crate) fn has(&self, id: u64) -> bool {
        locked(&self.ended).iter().rev().any(|ended| ended.running.id == id)
            || locked(&self.running).contains_key(&id)
    }

    /// It ended: what it was is in `entry`, which is complete.
    pub(crate) fn leave(&self, running: &Arc<Running>, way: Way, entry: &RequestRecord) {
        locked(&self.hour).add(Instant::now(), entry);
        let ended = Ended { running: Arc::clone(running), way, entry: entry.clone() };
        let mut all = locked(&self.ended);
        if all.len() >= ENDED_MAX {
            all.pop_front();
        }
        all.push_back(Arc::new(ended));
        drop(all);
        // Only now, so that whoever asks for one request finds it in one of the two.
        locked(&self.running).remove(&running.id);
    }

    /// Of this caller; the oldest first.
    fn running(&self, caller: &Caller) -> Vec<Arc<Running>> {
        let all = locked(&self.running);
        all.values().filter(|one| caller.sees(one.key.as_deref())).cloned().collect()
    }

    /// Of this caller; the latest first.
    fn ended(&self, caller: &Caller) -> Vec<Arc<Ended>> {
        let all = locked(&self.ended);
        let theirs = all.iter().rev().filter(|one| caller.sees(one.running.key.as_deref()));
        theirs.cloned().collect()
    }
}

/// What is behind these locks is whole between any two statements, so a panic elsewhere is no reason
/// to stop looking.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Received;

    fn running(id: u64) -> Arc<Running> {
        let received = Received { id, at: Instant::now(), hops: 0, is_bench: false };
        Arc::new(Running::new(received, "chat", &RequestRecord::default(), Default::default()))
    }

    #[test]
    fn neither_those_that_run_nor_those_that_ended_grow_without_end() {
        let (now, anybody) = (Now::default(), Caller::default());
        let all: Vec<Arc<Running>> = (0..2000).map(running).collect();
        for one in &all {
            now.enter(one);
        }
        assert_eq!(now.running(&anybody).len(), RUNNING_MAX);
        for one in &all {
            now.leave(one, Way::default(), &RequestRecord::default());
        }
        assert!(now.running(&anybody).is_empty());
        let kept: Vec<u64> = now.ended(&anybody).iter().map(|one| one.running.id).collect();
        assert_eq!((kept.len(), kept[0], kept[99]), (ENDED_MAX, 1999, 1900));
    }
}
