//! The supervisor: keeps one worker process alive while it is wanted, and says honestly when not.
//! Knows processes and frames; what a worker's streams mean is the business of the model's client.

mod actor;
mod backoff;
mod keep_alive;
mod link;
mod options;
mod process;
mod pulse;
pub(crate) mod session;
mod status;
mod stderr;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::load_times::retry_after;
use hob_core::{KeepAlive, MemoryBroker, MemoryUse, ModelError, ModelState};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::worker::protocol::{Order, Report, WorkerStats};
use actor::{Actor, Command};
pub use backoff::Backoff;
use keep_alive::KeepAliveCell;
pub use options::SupervisorOptions;
pub use process::WorkerCommand;
use session::{NotOpened, Session, Ticket};
use status::{Phase, Status};

/// Commands that wait for the supervisor's task; beyond them whoever commands waits.
const COMMANDS_MAX: usize = 8;

/// A worker that should be ready any moment is still not asked for more often than this.
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
    /// Starts the supervisor's task, and no process yet. Called inside a tokio runtime.
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

    /// Loads the model if it is not loaded, at once even when a restart is waiting for its time.
    ///
    /// # Errors
    /// Why this attempt failed; the supervisor goes on trying, with growing waits. Where others have
    /// the memory, it goes on waiting for them, as long as it is asked for the model.
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
            // It was there, and has made room for another one before anybody could see it.
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

    /// Ends the process if no stream is open in it, and returns when all its memory is given back;
    /// false: it is in use, or is being loaded for somebody. Streams are opened under the lock that
    /// this looks under, so that none is cut off.
    pub async fn unload_if_idle(&self) -> bool {
        let (answer, answered) = oneshot::channel();
        self.command(Command::UnloadIfIdle(answer)).await;
        // A supervisor that has stopped has no process.
        answered.await.unwrap_or(true)
    }

    /// Ends the process, and with it the streams that are open. All memory is given back.
    pub async fn unload(&self) {
        self.command(Command::Unload).await;
        self.until(|phase| matches!(phase, Phase::Cold | Phase::Stopped)).await;
    }

    /// Ends the process for good, and returns when it is gone.
    pub async fn shutdown(&self) {
        self.command(Command::Stop).await;
        self.until(|phase| matches!(phase, Phase::Stopped)).await;
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

    /// What the worker said of itself when it was ready, while the model is loaded.
    pub(crate) fn about(&self) -> Option<Vec<u8>> {
        self.session().map(|session| session.about.clone())
    }

    /// The process's resident memory, where the system tells (Linux).
    pub fn resident_bytes(&self) -> Option<u64> {
        self.pid().and_then(process::resident_bytes)
    }

    /// How long the model stays after its last request, from now on.
    pub fn keep_alive(&self, wish: KeepAlive) {
        self.keep_alive.set(wish);
    }

    /// Memory, requests and times of the model, as far as they are known.
    pub fn memory_use(&self) -> MemoryUse {
        let session = self.session();
        let expires_in = session
            .as_deref()
            .and_then(|session| self.keep_alive.expires_at(session))
            .map(|at| at.saturating_duration_since(Instant::now()));
        MemoryUse {
            resident_bytes: self.resident_bytes(),
            predicted_bytes: self.predicted_bytes,
            vram_bytes: 0,
            in_flight: session.as_deref().map_or(0, Session::in_flight),
            expires_at: expires_in.and_then(|time| SystemTime::now().checked_add(time)),
            load_took: self.status.borrow().load_took,
        }
    }

    /// Since when no stream is open, while the model is loaded.
    pub fn idle_for(&self) -> Option<Duration> {
        Some(self.session()?.idle_since()?.elapsed())
    }

    /// Streams that are open.
    pub fn in_flight(&self) -> usize {
        self.session().map_or(0, |session| session.in_flight())
    }

    /// What the worker does now, by its own account, between two windows.
    ///
    /// # Errors
    /// The model is not loaded, or the worker ended before it answered.
    pub async fn stats(&self) -> Result<WorkerStats, ModelError> {
        let (_, mut ticket) = self.open()?;
        let ping = Order::Ping { stream: ticket.stream }.to_frame();
        // A worker that is gone is seen below, with the reason.
        let _ = ticket.outgoing().send(ping).await;
        let frame = poll_fn(|cx| ticket.poll_frame(cx)).await;
        let frame = frame.map_err(|cut| self.cut(cut))?;
        match Report::from_frame(&frame) {
            Ok(Some(Report::Stats { stats, .. })) => Ok(stats),
            other => Err(self.failed(format!("it answered a ping with {other:?}"))),
        }
    }

    /// Opens a stream in a worker that is ready. A model that is cold is set to loading.
    pub(crate) fn open(&self) -> Result<(Arc<Session>, Ticket), ModelError> {
        let status = self.status.borrow().clone();
        match &status.phase {
            Phase::Ready(session) => self.open_in(session, &status),
            Phase::Cold => {
                if let Some(room) = &self.room {
                    room.look()?;
                }
                Err(self.wanted(&status))
            }
            Phase::Leaving => Err(self.wanted(&status)),
            Phase::Waiting { shortage } => {
                self.wanted(&status);
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

    fn open_in(
        &self,
        session: &Arc<Session>,
        status: &Status,
    ) -> Result<(Arc<Session>, Ticket), ModelError> {
        if self.room.as_ref().is_some_and(|room| !room.begin()) {
            // The other one's load, and then its own.
            let both = status.load_times.expected() * 2;
            return Err(ModelError::Loading { retry_after: retry_after(both) });
        }
        match session.open() {
            Ok(ticket) => Ok((Arc::clone(session), ticket)),
            Err(NotOpened::Full) => Err(ModelError::Busy { retry_after: Duration::from_secs(1) }),
            Err(NotOpened::Leaving) => Err(self.wanted(status)),
            Err(NotOpened::Lost(detail)) => Err(self.lost(detail)),
        }
    }

    /// Has it loaded, or waited for on.
    fn wanted(&self, status: &Status) -> ModelError {
        // A full queue holds a command already, and the next request comes here again.
        let _ = self.commands.try_send(Command::Load);
        ModelError::Loading { retry_after: status.load_times.retry_after() }
    }

    pub(crate) fn cut(&self, cut: session::Cut) -> ModelError {
        cut_error(self.engine, cut)
    }

    fn lost(&self, detail: String) -> ModelError {
        ModelError::WorkerLost { engine: self.engine, detail }
    }

    fn failed(&self, detail: String) -> ModelError {
        ModelError::EngineFailed { engine: self.engine, detail }
    }

    fn session(&self) -> Option<Arc<Session>> {
        match &self.status.borrow().phase {
            Phase::Ready(session) => Some(Arc::clone(session)),
            _ => None,
        }
    }

    async fn command(&self, command: Command) {
        // A supervisor that has stopped shows so in its status.
        let _ = self.commands.send(command).await;
    }

    async fn until(&self, is_reached: impl Fn(&Phase) -> bool) {
        // An actor that is gone has stopped too.
        let _ = self.status.clone().wait_for(|status| is_reached(&status.phase)).await;
    }
}

impl Drop for Supervisor {
    /// Lets the actor see that nobody commands any more; it then ends the process in good order.
    /// A runtime that shuts down before drops the actor, which kills the process.
    fn drop(&mut self) {
        self.actor.detach_all();
    }
}

/// What a stream's end without a last frame means to whoever reads it.
pub(crate) fn cut_error(engine: &'static str, cut: session::Cut) -> ModelError {
    match cut {
        session::Cut::Lost(detail) => ModelError::WorkerLost { engine, detail },
        session::Cut::Overrun => {
            let detail = "it sent more than it had credit for".to_owned();
            ModelError::EngineFailed { engine, detail }
        }
    }
}

fn ready_in(ready_at: Instant) -> Duration {
    ready_at.saturating_duration_since(Instant::now()).max(READY_IN_MIN)
}
