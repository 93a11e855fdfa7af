//! Requests in flight, requests that ended recently, and statistics of the last hour: in memory, and bounded.
//! A request takes one lock when it begins and one when it ends; a token costs one atomic operation.

mod last_hour;
mod request;
mod views;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use hob_core::locked;
use hob_core::trace::TraceData;
use hob_wire::AliasView;

use self::last_hour::LastHour;
pub(crate) use self::request::{Endpoint, InFlightRequest};
pub(crate) use self::views::queue;
use crate::keys::Caller;
use crate::ledger::RequestRecord;

/// Twice the default limit of connections. Further requests run, but are not shown.
const IN_FLIGHT_MAX: usize = 1024;

/// Ended requests that are kept.
const ENDED_MAX: usize = 100;

/// See the head of this file. No lock is held across an await.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    running: Mutex<BTreeMap<u64, Arc<InFlightRequest>>>,
    /// Oldest first.
    ended: Mutex<VecDeque<Arc<EndedRequest>>>,
    last_hour: Mutex<LastHour>,
}

/// A request that has ended.
#[derive(Debug)]
pub(crate) struct EndedRequest {
    request: Arc<InFlightRequest>,
    trace: TraceData,
    record: RequestRecord,
}

impl InFlight {
    pub(crate) fn enter(&self, request: &Arc<InFlightRequest>) {
        let mut all = locked(&self.running);
        if all.len() < IN_FLIGHT_MAX {
            all.insert(request.id, Arc::clone(request));
        }
    }

    /// Whether this request needs a model, or did recently. Such a request has its own log line.
    pub(crate) fn has(&self, id: u64) -> bool {
        // In this order no request is missed that ends between the two, and those that run need no search.
        locked(&self.running).contains_key(&id)
            || locked(&self.ended).iter().rev().any(|ended| ended.request.id == id)
    }

    /// Moves a request that has ended, with its complete record.
    pub(crate) fn leave(
        &self,
        request: &Arc<InFlightRequest>,
        trace: TraceData,
        record: &RequestRecord,
    ) {
        locked(&self.last_hour).add(Instant::now(), record);
        let ended = EndedRequest { request: Arc::clone(request), trace, record: record.clone() };
        let ended = Arc::new(ended);
        let mut all = locked(&self.ended);
        let oldest = if all.len() >= ENDED_MAX { all.pop_front() } else { None };
        all.push_back(ended);
        drop(all);
        // Removed last, so that a request is always in one of the two lists.
        locked(&self.running).remove(&request.id);
        // Freed without the lock, so that no other request waits for it.
        drop(oldest);
    }

    /// Removes a request that does not count (`TraceData::is_unneeded`): it is not listed as ended.
    pub(crate) fn forget(&self, request: &InFlightRequest) {
        locked(&self.running).remove(&request.id);
    }

    /// The running requests of this caller, oldest first.
    pub(crate) fn running(&self, caller: &Caller) -> Vec<Arc<InFlightRequest>> {
        let all = locked(&self.running);
        all.values().filter(|one| caller.sees(one.key.as_deref())).cloned().collect()
    }

    /// The ended requests of this caller, latest first.
    pub(crate) fn ended(&self, caller: &Caller) -> Vec<Arc<EndedRequest>> {
        let all = locked(&self.ended);
        let theirs = all.iter().rev().filter(|one| caller.sees(one.request.key.as_deref()));
        theirs.cloned().collect()
    }

    /// Statistics of this caller's requests in the last hour, by name.
    pub(crate) fn last_hour(&self, caller: &Caller) -> Vec<AliasView> {
        let seen = locked(&self.last_hour).seen(Instant::now(), |key| caller.sees(key));
        seen.into_iter().map(|(name, statistics)| statistics.into_view(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(id: u64) -> Arc<InFlightRequest> {
        Arc::new(InFlightRequest::for_test(id, Endpoint::CHAT))
    }

    #[test]
    fn neither_running_nor_ended_requests_grow_without_end() {
        let (now, anybody) = (InFlight::default(), Caller::default());
        let all: Vec<Arc<InFlightRequest>> = (0..2000).map(running).collect();
        for one in &all {
            now.enter(one);
        }
        assert_eq!(now.running(&anybody).len(), IN_FLIGHT_MAX);
        for one in &all {
            now.leave(one, TraceData::default(), &RequestRecord::default());
        }
        assert!(now.running(&anybody).is_empty());
        let kept: Vec<u64> = now.ended(&anybody).iter().map(|one| one.request.id).collect();
        assert_eq!((kept.len(), kept[0], kept[99]), (ENDED_MAX, 1999, 1900));
    }
}
