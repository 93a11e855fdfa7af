//! Runs of chats that go on after their client has left, for teams with `on_disconnect = "detach"`.
//! When the server ends, they are as after a crash, and can be resumed.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use hob_agents::RunState;
use hob_core::trace::LateTokens;
use hob_core::{Chat, ChatEvent, Task as _, Trace, locked};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Runs without a client at the same time.
const RUNS_MAX: usize = 8;

/// The runs that go on without a client. They end with the last clone of this value.
#[derive(Clone, Debug, Default)]
pub(super) struct DetachedRuns(Arc<Mutex<JoinSet<()>>>);

impl DetachedRuns {
    /// Goes on with a run. Where there is no room for it, it is dropped, and can be resumed.
    pub(super) fn keep(&self, drive: BoxFuture<'static, io::Result<RunState>>) {
        // Without a runtime, the server has ended.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut runs = locked(&self.0);
        while runs.try_join_next().is_some() {}
        if runs.len() >= RUNS_MAX {
            return;
        }
        let work = async move {
            if let Err(error) = drive.await {
                tracing::error!(%error, "a run without a client cannot be stored; it can be resumed");
            }
        };
        runs.spawn_on(work, &runtime);
    }
}

/// The tokens of a run that its request has not counted when the client leaves.
#[derive(Debug)]
pub(super) struct UncountedTokens {
    late: LateTokens,
    /// Tokens of the run that are counted.
    counted: AtomicU64,
}

impl UncountedTokens {
    /// For a request with this trace. Earlier requests have counted the tokens `before`.
    pub(super) fn of(trace: &Trace, before: u64) -> UncountedTokens {
        let late = trace.read(|data| data.late_tokens.clone());
        UncountedTokens { late, counted: AtomicU64::new(before) }
    }

    /// The request counts an event as its reader takes it.
    pub(super) fn sent(&self, event: &ChatEvent) {
        self.counted.fetch_add(Chat::work_of((), event).0 as u64, Ordering::Relaxed);
    }

    /// The client has left, and the run will use no more tokens. Counts each token once, however often it is called.
    pub(super) fn spend(&self, run: &RunState) {
        let tokens = run.used.tokens();
        let counted = self.counted.fetch_max(tokens, Ordering::Relaxed);
        self.late.spend(tokens.saturating_sub(counted));
    }
}
