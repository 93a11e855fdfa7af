//! Runs of chats that go on after their client has left, for teams with `on_disconnect = "detach"`.
//! When the server ends, they are as after a crash, and can be resumed.

use std::io;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use hob_agents::RunState;
use hob_core::locked;
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
