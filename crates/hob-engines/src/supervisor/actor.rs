//! The supervisor's one task. It owns the worker process and moves between cold, loading, ready and down.
//! All other code only reads the status that it publishes.

mod placing;
mod publish;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use hob_core::budget::Bytes;
use hob_core::{MemoryReservation, ModelError};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

use super::backoff::Waits;
use super::command::{Command, EndReason, EndRequest, end_request, reply};
use super::device_fault::DeviceFault;
use super::keep_alive::KeepAliveCell;
use super::link::FrameSource;
use super::process::Process;
use super::session::{LoadedModel, WorkerSession};
use super::watchdog::Watchdog;
use super::{Phase, Status, SupervisorOptions, WorkerCommand};
use crate::frame::{Frame, FrameKind};
use crate::worker::protocol::{PROTOCOL_VERSION, Report, hello_version};

/// A worker that reads no more has ended, or is about to. Its last frames are read for at most this long.
const LAST_FRAMES_MAX: Duration = Duration::from_secs(1);

/// How an attempt to run the worker ended.
enum AttemptEnd {
    Requested(EndRequest),
    Lost(Lost),
    /// There is no memory for it, and waiting does not help or no request waits any more.
    Refused(ModelError),
}

/// A worker that ended without a request to end it.
struct Lost {
    reason: String,
    /// For how long it had been ready.
    up: Option<Duration>,
    /// What its graphics card had to do with it.
    fault: Option<DeviceFault>,
}

pub(super) struct Actor {
    command: WorkerCommand,
    options: SupervisorOptions,
    commands: mpsc::Receiver<Command>,
    status: watch::Sender<Status>,
    keep_alive: Arc<KeepAliveCell>,
    waits: Waits,
    /// Gets `true` when the running process has ended.
    unload_reply: Option<oneshot::Sender<bool>>,
}

impl Actor {
    pub(super) fn new(
        command: WorkerCommand,
        options: SupervisorOptions,
        commands: mpsc::Receiver<Command>,
        status: watch::Sender<Status>,
        keep_alive: Arc<KeepAliveCell>,
    ) -> Actor {
        let waits = Waits::new(options.backoff);
        Actor { command, options, commands, status, keep_alive, waits, unload_reply: None }
    }

    /// Runs until a command stops it, or until the supervisor is dropped.
    pub(super) async fn run(mut self) {
        while self.is_wanted().await {
            match self.keep_running().await {
                Ok(EndRequest::Stop) => break,
                Ok(EndRequest::Unload) => self.publish_unloaded(),
                Err(refusal) => self.publish_refusal(refusal),
            }
            self.report_unloaded();
        }
        self.publish(Phase::Stopped);
    }

    /// Waits until a request needs the model. False: the supervisor stops.
    async fn is_wanted(&mut self) -> bool {
        loop {
            match self.commands.recv().await {
                Some(Command::Load) => return true,
                Some(Command::Stop) | None => return false,
                Some(Command::Unload) => self.publish_nothing_unloaded(),
                Some(Command::UnloadIfIdle(answer)) => reply(answer, true),
            }
        }
    }

    async fn keep_running(&mut self) -> Result<EndRequest, ModelError> {
        loop {
            let lost = match self.attempt().await {
                AttemptEnd::Requested(request) => return Ok(request),
                AttemptEnd::Refused(refusal) => return Err(refusal),
                AttemptEnd::Lost(lost) => lost,
            };
            let Some(lost) = self.unless_moved(lost) else { continue };
            tracing::warn!(engine = self.options.engine, "the worker was lost: {}", lost.reason);
            if let Some(request) = self.back_off(lost).await {
                return Ok(request);
            }
        }
    }

    /// Waits before the next attempt. A command to load ends the wait.
    async fn back_off(&mut self, lost: Lost) -> Option<EndRequest> {
        let wait = self.waits.after(lost.up);
        let ready_at = Instant::now() + wait + self.load_expected();
        match lost.up {
            Some(_) => self.publish(Phase::Loading { ready_at }),
            None => self.publish_attempt(Phase::Down { reason: lost.reason }),
        }
        let waited = sleep(wait);
        tokio::pin!(waited);
        loop {
            tokio::select! {
                () = &mut waited => return None,
                command = self.commands.recv() => match command {
                    Some(Command::UnloadIfIdle(answer)) => reply(answer, true),
                    command => return end_request(command),
                },
            }
        }
    }

    /// Runs one worker as soon as there is memory for it.
    async fn attempt(&mut self) -> AttemptEnd {
        self.publish_begun();
        match self.find_room().await {
            Ok(place) => {
                self.run_worker(place).await.map_or_else(AttemptEnd::Lost, AttemptEnd::Requested)
            }
            Err(not_started) => not_started,
        }
    }

    /// From its start to its reaped end.
    async fn run_worker(&mut self, place: Option<MemoryReservation>) -> Result<EndRequest, Lost> {
        let started = Instant::now();
        self.publish_loading(started);
        let command = self.placed_command();
        let spawned = Process::spawn(self.options.engine, &command);
        let (process, socket) = spawned.map_err(|error| Lost {
            reason: format!("{} cannot be started: {error}", command.program.display()),
            up: None,
            fault: None,
        })?;
        let (reader, writer) = UnixStream::into_split(socket);
        let mut source = FrameSource::new(reader);
        let mut watchdog = Watchdog::new();
        match self.until_ready(&mut source, started, &mut watchdog).await {
            Ok(model) => {
                let streams_max = self.options.streams_max;
                let (session, to_write) =
                    WorkerSession::new(self.options.engine, model, process.pid(), streams_max);
                let ready_since = self.publish_ready(&session, started);
                // A model that has no place on cards took nothing of them, whatever other programs took meanwhile.
                let measuring = measure(place.filter(|_| self.options.placer.is_some()));
                let link = Link { source, writer, to_write, measuring };
                let reason = self.serve(&session, link, watchdog).await;
                self.close(&session, &reason);
                let (ended, detail) = self.end(process, reason, Some(ready_since)).await;
                session.lose(&detail);
                ended
            }
            Err(reason) => {
                drop((source, writer));
                self.end(process, reason, None).await.0
            }
        }
    }

    /// Reads until the worker reports that it is ready, and returns what it reports about the model.
    async fn until_ready(
        &mut self,
        source: &mut FrameSource,
        started: Instant,
        watchdog: &mut Watchdog,
    ) -> Result<LoadedModel, EndReason> {
        let limit = sleep(self.options.load_limit);
        tokio::pin!(limit);
        let mut has_greeted = false;
        loop {
            tokio::select! {
                frame = watchdog.next_frame(source, &self.options) => {
                    let frame = frame?;
                    if !has_greeted {
                        check_version(&frame)?;
                        has_greeted = true;
                        continue;
                    }
                    match Report::from_frame(&frame) {
                        Ok(Report::Alive) => {}
                        Ok(Report::Loaded(part)) => self.publish_loaded(started, part),
                        Ok(Report::Ready { vram_bytes, about }) => {
                            return Ok(LoadedModel { vram_bytes, about });
                        }
                        Ok(Report::LoadFailed(reason)) => return Err(EndReason::Unfit(reason)),
                        Ok(Report::NoDeviceRoom { reason, shortage }) => {
                            return Err(EndReason::NoDeviceRoom { reason, shortage });
                        }
                        Ok(other) => return Err(unexpected(&format!("{other:?}"))),
                        Err(error) => return Err(unexpected(&error.to_string())),
                    }
                },

                () = &mut limit => {
                    let seconds = self.options.load_limit.as_secs_f32();
                    return Err(EndReason::Unfit(format!("it did not load within {seconds} s")));
                }
                command = self.commands.recv() => if let Some(request) = end_request(command) {
                    return Err(EndReason::Requested(request));
                },
            }
        }
    }

    /// Carries frames between the worker and its streams until the worker has to end.
    async fn serve(
        &mut self,
        session: &WorkerSession,
        link: Link,
        mut watchdog: Watchdog,
    ) -> EndReason {
        let Link { mut source, writer, to_write, mut measuring } = link;
        let writing = session.write_all(writer, to_write);
        tokio::pin!(writing);
        let mut ticks = interval(self.options.ping_every);
        loop {
            tokio::select! {
                frame = watchdog.next_frame(&mut source, &self.options) => match frame {
                    Ok(frame) if is_heartbeat(&frame) => {}
                    Ok(frame) => {
                        watchdog.engine_answered();
                        session.route(frame);
                    }
                    Err(reason) => return reason,
                },
                _ = &mut writing => {
                    // What the worker said before it ended is still in the socket.
                    let rest = route_rest(&mut source, session);
                    let _read_or_late = timeout(LAST_FRAMES_MAX, rest).await;
                    return EndReason::Vanished;
                }
                Some(Ok(taken)) = measuring.join_next() => self.publish_taken(taken),
                command = self.commands.recv() => {
                    if let Some(request) = self.obey(command, session) {
                        return EndReason::Requested(request);
                    }
                }
                _ = ticks.tick() => {
                    let reason = watchdog.check(session, &self.options, &self.keep_alive);
                    if let Some(reason) = reason {
                        return reason;
                    }
                }
            }
        }
    }

    /// Ends the process. Returns why, for the supervisor and for the streams that were open.
    async fn end(
        &self,
        process: Process,
        reason: EndReason,
        ready_since: Option<Instant>,
    ) -> (Result<EndRequest, Lost>, String) {
        let up = ready_since.map(|since| since.elapsed());
        let (reason, fault) = match reason {
            EndReason::Requested(request) => {
                process.end(self.options.stop_limit).await;
                return (Ok(request), "it was unloaded".to_owned());
            }
            EndReason::Vanished => {
                let ended = process.end(self.options.stop_limit).await;
                (ended.how, ended.fault)
            }
            EndReason::Unfit(reason) => (reason, process.end(Duration::ZERO).await.fault),
            EndReason::NoDeviceRoom { reason, shortage } => {
                process.end(Duration::ZERO).await;
                let (said, shortage) = (reason.clone(), Some(shortage));
                (reason, Some(DeviceFault::Full { said, shortage }))
            }
        };
        let reason = self.reason_of(reason, fault.as_ref());
        (Err(Lost { reason: reason.clone(), up, fault }), reason)
    }

    /// Follows a command while the worker serves. Returns the request to end it, if the command is one.
    fn obey(&mut self, command: Option<Command>, session: &WorkerSession) -> Option<EndRequest> {
        match command {
            Some(Command::UnloadIfIdle(answer)) if session.leave_if_idle() => {
                self.unload_reply = Some(answer);
                Some(EndRequest::Unload)
            }
            Some(Command::UnloadIfIdle(answer)) => {
                reply(answer, false);
                None
            }
            command => end_request(command),
        }
    }

    /// Requests that come after an unload get another worker. After a loss they get an error.
    fn close(&self, session: &WorkerSession, reason: &EndReason) {
        match reason {
            EndReason::Requested(EndRequest::Unload) => {
                session.leave();
                self.keep_alive.reset();
                self.publish(Phase::Leaving);
            }
            EndReason::Requested(EndRequest::Stop)
            | EndReason::Vanished
            | EndReason::Unfit(_)
            | EndReason::NoDeviceRoom { .. } => session.close(),
        }
    }

    /// Answers the command that asked for the unload, now that the process has ended.
    fn report_unloaded(&mut self) {
        if let Some(answer) = self.unload_reply.take() {
            reply(answer, true);
        }
    }

    fn load_expected(&self) -> Duration {
        self.status.borrow().load_times.expected()
    }
}

/// A worker's socket.
struct Link {
    source: FrameSource,
    writer: OwnedWriteHalf,
    to_write: mpsc::Receiver<Frame>,
    /// Measures what the load took of graphics cards, which blocks for a moment.
    measuring: JoinSet<Bytes>,
}

/// Ends the reservation when the memory that the load took is measured.
fn measure(place: Option<MemoryReservation>) -> JoinSet<Bytes> {
    let mut measuring = JoinSet::new();
    if let Some(place) = place {
        measuring.spawn_blocking(move || place.taken());
    }
    measuring
}

/// Hands over the frames that a worker wrote before it ended.
async fn route_rest(source: &mut FrameSource, session: &WorkerSession) {
    while let Ok(frame) = source.next().await {
        if !is_heartbeat(&frame) {
            session.route(frame);
        }
    }
}

/// Heartbeats come from a thread of their own, and say nothing about the engine.
fn is_heartbeat(frame: &Frame) -> bool {
    frame.kind == FrameKind::Common && Report::from_frame(frame) == Ok(Report::Alive)
}

fn check_version(frame: &Frame) -> Result<(), EndReason> {
    match hello_version(frame) {
        Ok(PROTOCOL_VERSION) => Ok(()),
        Ok(version) => Err(EndReason::Unfit(format!(
            "the worker speaks protocol {version} and this server {PROTOCOL_VERSION}, because hob was replaced \
             while it ran: restart hob"
        ))),
        Err(_) => Err(unexpected("a frame that is not the handshake")),
    }
}

fn unexpected(what: &str) -> EndReason {
    EndReason::Unfit(format!("it began with {what}"))
}
