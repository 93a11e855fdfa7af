//! The beginning of an attempt: how long it may take, and what becomes of it while a model is being loaded.
//! The same for every kind of model; what an attempt is after that is not.

use std::time::Duration;

use futures::future::BoxFuture;
use hob_core::{ModelError, Trace};
use tokio::time::{Instant, sleep, timeout_at};

use super::alias::Alias;
use super::asking::Turn;
use super::guarded::Times;
use crate::options::WhileLoading;
use crate::slots::Slot;

/// Between two looks at a model that is being loaded.
const LOADING_LOOK: Duration = Duration::from_millis(100);

impl<M: Send + Sync + ?Sized> Alias<M> {
    /// The times of an attempt that begins now. Whoever has `work` to do first is silent for so long.
    pub(super) fn times(&self, turn: &Turn<'_, M>, work: Duration, ends: Instant) -> Times {
        let leg = turn.leg;
        let first_token = leg.clocks.first_token.unwrap_or(Duration::from_secs(60));
        Times {
            asked: Instant::now(),
            first_token: first_token.max(work),
            idle: leg.clocks.idle.unwrap_or(Duration::from_secs(30)),
            total: self.total(),
            rest: self.options.rest,
            trial: turn.trial,
            ends,
        }
    }

    /// Lets a model begin, and waits for its loading where that is wished for.
    pub(super) async fn open<'a, T>(
        &self,
        (turn, trace): (&Turn<'_, M>, &Trace),
        times: &mut Times,
        ask: impl Fn() -> BoxFuture<'a, Result<T, ModelError>>,
    ) -> Result<(T, Option<Slot>), ModelError> {
        let leg = turn.leg;
        let silent = |times: &Times| ModelError::upstream(&leg.target.name, times.silent());
        // Waiting for a place is no silence of the target's.
        let waits = Instant::now();
        let slot = timeout_at(times.ends, leg.target.place()).await;
        trace.note(|way| way.queued = waits.elapsed());
        let slot = slot.unwrap_or_else(|_| Err(silent(times)));
        let slot =
            slot.inspect_err(|error| leg.target.failed(error, turn.trial, self.options.rest))?;
        let began = Instant::now();
        let opened = loop {
            // Each try has its own time; loading has a clock for all of them.
            times.asked = Instant::now();
            let opened = timeout_at(times.first_by(), ask()).await;
            match opened.unwrap_or_else(|_| Err(silent(times))) {
                Err(error) if may_come(&error) && self.waits_for_loading(turn, began) => {
                    sleep(LOADING_LOOK).await;
                }
                opened => break opened,
            }
        };
        let opened =
            opened.inspect_err(|error| leg.target.failed(error, turn.trial, self.options.rest))?;
        Ok((opened, slot))
    }

    fn waits_for_loading(&self, turn: &Turn<'_, M>, since: Instant) -> bool {
        let load = self.options.clocks.load.unwrap_or(Duration::from_secs(300));
        turn.while_loading == WhileLoading::Wait && since.elapsed() < load
    }
}

/// Whether a model that cannot answer now is on its way into memory.
pub(super) fn may_come(error: &ModelError) -> bool {
    matches!(error, ModelError::Loading { .. } | ModelError::NoRoom { retry_after: Some(_), .. })
}
