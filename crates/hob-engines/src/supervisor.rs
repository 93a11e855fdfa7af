//! The supervisor keeps one worker process alive while its model is needed, and reports its state.
//! It knows processes and frames. It does not know what a model's reports mean; the model's client does.

mod actor;
mod backoff;
mod command;
mod device_fault;
mod keep_alive;
mod link;
mod model_worker;
mod options;
mod placer;
mod process;
pub(crate) mod session;
mod status;
mod stderr;
mod watchdog;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::fit::Pool;
use hob_core::load_times::retry_after;
use hob_core::{KeepAlive, MemoryBroker, MemoryUse, ModelError, ModelState, PoolUse};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::worker::protocol::WorkerStats;
use actor::Actor;
pub use backoff::Backoff;
use command::Command;
use keep_alive::KeepAliveCell;
pub use model_worker::ModelWorker;
pub use options::SupervisorOptions;
pub use placer::{PlacedWorker, Placer};
pub use process::{WorkerCommand, worker_environment};
use session::{NotOpened, OpenStream, StreamReport, WorkerSession};
use status::{Phase, Status};

/// Maximum commands that wait for the supervisor's task. A sender waits when there are more.
const COMMANDS_MAX: usize = 8;

/// How many loads of its model one request waits for. Between a load and the request's stream, the model may have to make room for another one.
const LOADS_AWAITED_MAX: usize = 3;

/// A request for a model that is not loaded waits for the load if the load is expected to take no longer than this. Otherwise
/// the request is refused with the expected time.
const LOAD_WAIT_MAX: Duration = Duration::from_secs(30);

/// Least remaining load time that clients are given, so that they do not ask too often.
const READY_IN_MIN: Duration = Duration::from_millis(100);

/// One model's worker process, started when wanted, restarted when lost, ended when dropped.
pub struct Supervisor {
    engine: &'static str,
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<Status>,
    keep_alive: Arc<KeepAliveCell>,
    room: Option<Arc<dyn MemoryBroker>>,
    predicted_bytes: Option<u64>,
    /// The one task that owns the process.
    actor: JoinSet<()>,
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor")
            .field("engine", &self.engine)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Starts the supervisor's task, but no process. Must be called inside a tokio runtime.
    pub fn start(command: WorkerCommand, options: SupervisorOptions) -> Supervisor {
        let (commands, commanded) = mpsc::channel(COMMANDS_MAX);
        let (publish, status) = watch::channel(Status::new(options.load_guess));
        let (engine, room) = (options.engine, options.room.clone());
        let predicted_bytes = options.predicted_bytes;
        let mut actor = JoinSet::new();
        let keep_alive = Arc::new(KeepAliveCell::new(options.idle_unload));
        let actors = Arc::clone(&keep_alive);
        actor.spawn(Actor::new(command, options, commanded, publish, actors).run());
        Supervisor { engine, commands, status, keep_alive, room, predicted_bytes, actor }
    }

    /// Loads the model if it is not loaded. It does not wait for the delay of a restart.
    ///
    /// # Errors
    /// Why this attempt failed. The supervisor tries again, after growing waits. While other models hold
    /// the memory, it waits for them as long as requests need this model.
    pub async fn load(&self) -> Result<(), ModelError> {
        let mut status = self.status.clone();
        let (before, loads) = {
            let status = status.borrow();
            (status.attempts, status.loads)
        };
        self.command(Command::Load).await;
        let ended = status.wait_for(|status| match &status.phase {
            Phase::Ready(session) => session.is_open(),
            Phase::Stopped | Phase::Waiting { .. } => true,
            _ => status.attempts > before,
        });
        let Ok(status) = ended.await.map(|status| status.clone()) else {
            return Err(self.lost("it was shut down".to_owned()));
        };
        match (&status.phase, status.refusal.clone()) {
            (Phase::Ready(_), _) => Ok(()),
            // It was loaded, and was unloaded for another model before this task ran.
            _ if status.loads > loads => Ok(()),
            (Phase::Waiting { shortage }, _) => Err(status.no_room(shortage.clone())),
            (Phase::Down { reason }, _) => Err(self.lost(format!("it does not start: {reason}"))),
            (Phase::Stopped, _) => Err(self.lost("it was shut down".to_owned())),
            (_, Some(refusal)) => Err(refusal),
            (Phase::Cold | Phase::Leaving | Phase::Loading { .. }, None) => {
                Err(self.lost("it was unloaded while loading".to_owned()))
            }
        }
    }

    /// Ends the process if no stream is open, and returns when its memory is free. Returns false if the model
    /// is in use or loading. It never ends a stream: streams are opened under the same lock.
    pub async fn unload_if_idle(&self) -> bool {
        let (answer, answered) = oneshot::channel();
        self.command(Command::UnloadIfIdle(answer)).await;
        // A supervisor that has stopped has no process.
        answered.await.unwrap_or(true)
    }

    /// Ends the process and its open streams, and returns when its memory is free. The next load may have begun by then.
    pub async fn unload(&self) {
        let before = self.status.borrow().unloads;
        self.command(Command::Unload).await;
        let is_done =
            |status: &Status| status.unloads > before || matches!(status.phase, Phase::Stopped);
        self.until(is_done).await;
    }

    /// Ends the process permanently, and returns when it has ended.
    pub async fn shutdown(&self) {
        self.command(Command::Stop).await;
        self.until(|status| matches!(status.phase, Phase::Stopped)).await;
    }

    pub fn state(&self) -> ModelState {
        let status = self.status.borrow();
        match &status.phase {
            Phase::Cold | Phase::Leaving => ModelState::Cold,
            Phase::Waiting { .. } => ModelState::Loading { ready_in: status.load_times.expected() },
            Phase::Loading { ready_at } => ModelState::Loading { ready_in: ready_in(*ready_at) },
            Phase::Ready(_) => ModelState::Ready,
            Phase::Down { reason } => ModelState::Down { reason: reason.clone() },
            Phase::Stopped => ModelState::Down { reason: "it was shut down".to_owned() },
        }
    }

    /// The process, while the model is loaded.
    pub fn pid(&self) -> Option<u32> {
        self.session().and_then(|session| session.pid)
    }

    /// The process's resident memory. Known on Linux only.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.pid().and_then(process::resident_bytes)
    }

    /// Sets how long the model stays loaded after its last request.
    pub fn keep_alive(&self, keep_alive: KeepAlive) {
        self.keep_alive.set(keep_alive);
    }

    /// The model's memory, open requests and load time, as far as they are known.
    pub fn memory_use(&self) -> MemoryUse {
        let session = self.session();
        let expires_in = session
            .as_deref()
            .and_then(|session| self.keep_alive.expires_at(session))
            .map(|at| at.saturating_duration_since(Instant::now()));
        let resident_bytes = self.resident_bytes();
        let status = self.status.borrow();
        let vram_bytes = session.as_deref().map_or(0, |session| match status.taken.is_empty() {
            true => session.model.vram_bytes,
            false => status.taken.values().sum(),
        });
        let taken = |pool| match pool {
            Pool::Ram => resident_bytes,
            card @ Pool::Vram(_) => status.taken.get(&card).copied().filter(|_| session.is_some()),
        };
        let pool_use = |(&pool, &predicted_bytes): (&Pool, &u64)| PoolUse {
            pool,
            predicted_bytes,
            taken_bytes: taken(pool),
        };
        MemoryUse {
            resident_bytes,
            predicted_bytes: status.predicted.get(&Pool::Ram).copied().or(self.predicted_bytes),
            vram_bytes,
            pools: status.predicted.iter().map(pool_use).collect(),
            placement_note: status.placement_note.clone(),
            in_flight: session.as_deref().map_or(0, WorkerSession::in_flight),
            expires_at: expires_in.and_then(|time| SystemTime::now().checked_add(time)),
            load_took: status.load_took,
        }
    }

    /// Why the model is not where it was to be loaded, and where it is. `None`: it is there, or was not loaded.
    pub(crate) fn placement_note(&self) -> Option<String> {
        self.status.borrow().placement_note.clone()
    }

    /// Since when no stream is open, while the model is loaded.
    pub fn idle_for(&self) -> Option<Duration> {
        Some(self.session()?.idle_since()?.elapsed())
    }

    /// Streams that are open.
    pub fn in_flight(&self) -> usize {
        self.session().map_or(0, |session| session.in_flight())
    }

    /// The worker's own statistics, taken between two steps of its engine.
    ///
    /// # Errors
    /// The model is not loaded, or the worker ended before it answered.
    pub async fn stats(&self) -> Result<WorkerStats, ModelError> {
        let (_, mut stream) = self.open()?;
        stream.ping().await;
        match stream.report::<()>().await? {
            StreamReport::Stats(stats) => Ok(stats),
            other => Err(stream.unexpected(&other)),
        }
    }

    /// Opens a stream in a worker that is ready. A cold model begins to load.
    pub(crate) fn open(&self) -> Result<(Arc<WorkerSession>, OpenStream), ModelError> {
        let status = self.status.borrow().clone();
        match &status.phase {
            Phase::Ready(session) => self.open_in(session, &status),
            Phase::Cold => {
                if let Some(room) = &self.room {
                    room.check_room()?;
                }
                Err(self.start_load(&status))
            }
            Phase::Leaving => Err(self.start_load(&status)),
            Phase::Waiting { shortage } => {
                drop(self.start_load(&status));
                Err(status.no_room(shortage.clone()))
            }
            Phase::Loading { ready_at } => {
                let left = ready_at.saturating_duration_since(Instant::now());
                Err(ModelError::Loading { retry_after: retry_after(left) })
            }
            Phase::Down { reason } => Err(self.lost(format!("it does not start: {reason}"))),
            Phase::Stopped => Err(self.lost("it was shut down".to_owned())),
        }
    }

    /// Opens a stream, and returns how long it waited for the model to load. It waits if the expected load
    /// time is at most [`LOAD_WAIT_MAX`]. Otherwise it fails with that time (decision 6).
    pub(crate) async fn open_loaded(
        &self,
    ) -> Result<(Arc<WorkerSession>, OpenStream, Duration), ModelError> {
        let started = Instant::now();
        for load in 0..LOADS_AWAITED_MAX {
            match self.open() {
                Ok((session, stream)) => {
                    let waited = if load == 0 { Duration::ZERO } else { started.elapsed() };
                    return Ok((session, stream, waited));
                }
                Err(ModelError::Loading { retry_after }) if retry_after <= LOAD_WAIT_MAX => {
                    match timeout_at(started + LOAD_WAIT_MAX, self.load()).await {
                        Ok(loaded) => loaded?,
                        // Other models load first. The client gets the expected time after all.
                        Err(_) => break,
                    }
                }
                Err(refused) => return Err(refused),
            }
        }
        let (session, stream) = self.open()?;
        Ok((session, stream, started.elapsed()))
    }

    fn open_in(
        &self,
        session: &Arc<WorkerSession>,
        status: &Status,
    ) -> Result<(Arc<WorkerSession>, OpenStream), ModelError> {
        if self.room.as_ref().is_some_and(|room| !room.admit_request()) {
            // Another model loads first, and then this one.
            let both = status.load_times.expected() * 2;
            return Err(ModelError::Loading { retry_after: retry_after(both) });
        }
        match session.open() {
            Ok(stream) => Ok((Arc::clone(session), stream)),
            Err(NotOpened::Full) => Err(ModelError::Busy { retry_after: Duration::from_secs(1) }),
            Err(NotOpened::Leaving) => Err(self.start_load(status)),
            Err(NotOpened::Lost(detail)) => Err(self.lost(detail)),
        }
    }

    /// Starts a load, or renews the wait for memory. Returns the error that says when to try again.
    fn start_load(&self, status: &Status) -> ModelError {
        // A full queue already holds a command, and the client's next attempt sends another.
        drop(self.commands.try_send(Command::Load));
        ModelError::Loading { retry_after: status.load_times.retry_after() }
    }

    fn lost(&self, detail: String) -> ModelError {
        ModelError::WorkerLost { engine: self.engine, detail }
    }

    fn session(&self) -> Option<Arc<WorkerSession>> {
        match &self.status.borrow().phase {
            Phase::Ready(session) => Some(Arc::clone(session)),
            _ => None,
        }
    }

    async fn command(&self, command: Command) {
        // The send fails only after the supervisor has stopped, which its status says.
        drop(self.commands.send(command).await);
    }

    async fn until(&self, is_reached: impl Fn(&Status) -> bool) {
        // The wait fails only after the actor has ended, which is a stop too.
        drop(self.status.clone().wait_for(is_reached).await);
    }
}

impl Drop for Supervisor {
    /// Lets the actor see the closed command channel, so that it ends the process in order. If the runtime
    /// shuts down earlier, it drops the actor, which kills the process.
    fn drop(&mut self) {
        self.actor.detach_all();
    }
}

fn ready_in(ready_at: Instant) -> Duration {
    ready_at.saturating_duration_since(Instant::now()).max(READY_IN_MIN)
}
