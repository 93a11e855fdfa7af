//! Runs of chats that go on after their client has left, for teams with `on_disconnect = "detach"`.
//! When the server ends, they are as after a crash, and can be resumed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::future::BoxFuture;
use hob_agents::RunState;
use hob_core::{Chat, ChatEvent, Task as _, Trace, locked};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};

use super::stored_run::{CANCEL_LIMIT, LOOK_PAUSE};

/// Runs without a client at the same time.
const RUNS_MAX: usize = 8;

/// The runs that go on without a client. They end with the last clone of this value.
#[derive(Clone, Debug, Default)]
pub(crate) struct DetachedRuns(Arc<Mutex<DetachedTasks>>);

#[derive(Debug, Default)]
struct DetachedTasks {
    tasks: JoinSet<()>,
    /// By the folders of the runs.
    stops: BTreeMap<PathBuf, AbortHandle>,
}

impl DetachedRuns {
    /// Goes on with the run of this folder. Where there is no room for it, it is dropped, and can be resumed.
    pub(super) fn keep(&self, folder: &Path, drive: BoxFuture<'static, io::Result<RunState>>) {
        // Without a runtime, the server has ended.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut runs = locked(&self.0);
        while runs.tasks.try_join_next().is_some() {}
        runs.stops.retain(|_, stop| !stop.is_finished());
        if runs.tasks.len() >= RUNS_MAX {
            return;
        }
        let work = async move {
            if let Err(error) = drive.await {
                tracing::error!(%error, "a run without a client cannot be stored; it can be resumed");
            }
        };
        let stop = runs.tasks.spawn_on(work, &runtime);
        runs.stops.insert(folder.to_owned(), stop);
    }

    /// Stops the work on the run of this folder, if it goes on here, and waits until it is over.
    pub(super) fn stop(&self, folder: &Path) {
        let Some(stop) = locked(&self.0).stops.remove(folder) else { return };
        stop.abort();
        let begun = Instant::now();
        while !stop.is_finished() && begun.elapsed() < CANCEL_LIMIT {
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// Stops the work on all runs. Called before models end: otherwise, the runs would store that their models failed.
    pub(crate) async fn end(&self) {
        let mut tasks = std::mem::take(&mut locked(&self.0).tasks);
        tasks.shutdown().await;
    }
}

/// The tokens of a run that its request has not counted when the client leaves.
#[derive(Debug)]
pub(super) struct UncountedTokens {
    trace: Trace,
    /// Tokens of the run that are counted.
    counted: AtomicU64,
}

impl UncountedTokens {
    /// For a request with this trace. Earlier requests have counted the tokens `before`.
    pub(super) fn of(trace: &Trace, before: u64) -> UncountedTokens {
        UncountedTokens { trace: trace.clone(), counted: AtomicU64::new(before) }
    }

    /// The request counts an event as its reader takes it.
    pub(super) fn sent(&self, event: &ChatEvent) {
        self.counted.fetch_add(Chat::work_of((), event).0 as u64, Ordering::Relaxed);
    }

    /// The client has left, and the run will use no more tokens. Counts each token once, however often it is called.
    pub(super) fn spend(&self, run: &RunState) {
        // The client did not ask for what hob made early.
        let late = self.trace.read(|data| (!data.is_unneeded).then(|| data.late_tokens.clone()));
        let Some(late) = late else { return };
        let tokens = run.used.tokens();
        let counted = self.counted.fetch_max(tokens, Ordering::Relaxed);
        late.spend(tokens.saturating_sub(counted));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use hob_agents::Team;
    use hob_core::trace::LateTokens;
    use tokio::sync::oneshot;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    /// The receiver is closed when the run "runs/1" works no more.
    fn one_endless_run() -> (DetachedRuns, oneshot::Receiver<()>) {
        let runs = DetachedRuns::default();
        let (held, work) = oneshot::channel();
        let drive = async move {
            let _held = held;
            std::future::pending::<io::Result<RunState>>().await
        };
        runs.keep(Path::new("runs/1"), drive.boxed());
        (runs, work)
    }

    #[tokio::test]
    async fn a_run_that_is_stopped_works_no_more() {
        let (runs, mut work) = one_endless_run();
        let stop = async |folder: &'static str| {
            let runs = runs.clone();
            let stopping = tokio::task::spawn_blocking(move || runs.stop(Path::new(folder)));
            stopping.await.expect("stopped");
        };
        stop("runs/2").await;
        assert_eq!(work.try_recv(), Err(TryRecvError::Empty), "another run");
        stop("runs/1").await;
        assert_eq!(work.try_recv(), Err(TryRecvError::Closed));
    }

    #[tokio::test]
    async fn no_run_works_when_the_server_has_ended() {
        let (runs, mut work) = one_endless_run();
        runs.end().await;
        assert_eq!(work.try_recv(), Err(TryRecvError::Closed));
    }

    #[test]
    fn each_token_counts_once_and_only_if_the_request_does() {
        let text = "entry = \"a\"\n[[agent]]\nname = \"a\"\nmodel = \"m\"\n";
        let team = Team::parse(text, "t").expect("a team");
        let mut run = RunState::new(team, "run-1".to_owned(), "Task".to_owned());
        run.used.prompt_tokens = 9;
        let (trace, spent) = (Trace::default(), Arc::new(AtomicU64::new(0)));
        let sum = Arc::clone(&spent);
        let late = LateTokens::new(move |tokens| {
            sum.fetch_add(tokens, Ordering::Relaxed);
        });
        trace.note(|data| data.late_tokens = late);
        let uncounted = UncountedTokens::of(&trace, 2);
        uncounted.sent(&ChatEvent::Text("a".to_owned()));
        for (is_unneeded, expected) in [(true, 0), (false, 6), (false, 6)] {
            trace.note(|data| data.is_unneeded = is_unneeded);
            uncounted.spend(&run);
            assert_eq!(spent.load(Ordering::Relaxed), expected);
        }
    }
}
