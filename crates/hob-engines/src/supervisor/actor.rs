//! The supervisor's one task: it owns the worker process and moves between cold, loading, ready
//! and down. Everything else only reads the status that it publishes.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, interval, sleep};

use super::backoff::Waits;
use super::keep_alive::KeepAliveCell;
use super::link::{FrameSource, LinkError};
use super::process::Process;
use super::session::Session;
use super::{Phase, Status, SupervisorOptions, WorkerCommand};
use crate::worker::protocol::{PROTOCOL_VERSION, Report};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Load,
    Unload,
    Stop,
}

/// Less than this part of a model says nothing about the rest.
const LOADED_PART_MIN: f32 = 0.05;

/// A wish that ends a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Unload,
    Stop,
}

/// Why a worker is no longer served.
enum Parting {
    Wished(Wish),
    /// It closed the socket: it has died, and how is yet to be seen.
    Vanished,
    /// It must go, for this reason.
    Unfit(String),
}

/// A worker that ended against our wish.
struct Lost {
    reason: String,
    /// For how long it had been ready.
    up: Option<Duration>,
}

pub(super) struct Actor {
    command: WorkerCommand,
    options: SupervisorOptions,
    commands: mpsc::Receiver<Command>,
    status: watch::Sender<Status>,
    keep_alive: Arc<KeepAliveCell>,
    waits: Waits,
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
        Actor { command, options, commands, status, keep_alive, waits }
    }

    /// Returns when it is told to stop, or when nobody is left to tell it anything.
    pub(super) async fn run(mut self) {
        while self.rest().await == Command::Load {
            match self.keep_running().await {
                Wish::Stop => break,
                Wish::Unload => self.publish_attempt(Phase::Cold),
            }
        }
        self.publish(Phase::Stopped);
    }

    /// Cold, until somebody wants the model or wants no more of it.
    async fn rest(&mut self) -> Command {
        loop {
            match self.next_command().await {
                Command::Unload => {}
                command => return command,
            }
        }
    }

    async fn keep_running(&mut self) -> Wish {
        loop {
            let lost = match self.attempt().await {
                Ok(wish) => return wish,
                Err(lost) => lost,
            };
            tracing::warn!(engine = self.options.engine, "the worker was lost: {}", lost.reason);
            if let Some(wish) = self.back_off(lost).await {
                return wish;
            }
        }
    }

    /// Waits before the next attempt; a wish to load ends the wait.
    async fn back_off(&mut self, lost: Lost) -> Option<Wish> {
        let wait = self.waits.after(lost.up);
        let ready_at = Instant::now() + wait + self.load_estimate();
        match lost.up {
            Some(_) => self.publish(Phase::Loading { ready_at }),
            None => self.publish_attempt(Phase::Down { reason: lost.reason }),
        }
        tokio::select! {
            () = sleep(wait) => None,
            command = self.commands.recv() => wish(command),
        }
    }

    /// One life of one worker, from its start to its reaped end.
    async fn attempt(&mut self) -> Result<Wish, Lost> {
        let started = Instant::now();
        self.publish_loading(started);
        let spawned = Process::spawn(self.options.engine, &self.command);
        let (process, socket) = spawned.map_err(|error| Lost {
            reason: format!("{} cannot be started: {error}", self.command.program.display()),
            up: None,
        })?;
        let (reader, writer) = UnixStream::into_split(socket);
        let mut source = FrameSource::new(reader);
        match self.until_ready(&mut source, started).await {
            Ok(about) => {
                let streams_max = self.options.streams_max;
                let (session, to_write) = Session::new(about, process.pid(), streams_max);
                let ready_since = self.publish_ready(&session, started);
                let parting = self.serve(&session, source, writer, to_write).await;
                session.close();
                let (ended, detail) = self.part(process, parting, Some(ready_since)).await;
                session.lose(&detail);
                ended
            }
            Err(parting) => {
                drop((source, writer));
                self.part(process, parting, None).await.0
            }
        }
    }

    /// Reads until the worker says that it is ready, and returns what it says of itself.
    async fn until_ready(
        &mut self,
        source: &mut FrameSource,
        started: Instant,
    ) -> Result<Vec<u8>, Parting> {
        let limit = sleep(self.options.load_limit);
        tokio::pin!(limit);
        loop {
            tokio::select! {
                report = next_report(source) => match report? {
                    Report::Hello { version: PROTOCOL_VERSION } => {}
                    Report::Hello { version } => return Err(other_version(version)),
                    Report::Loaded { part } => self.publish_loaded(started, part),
                    Report::Ready { about, .. } => return Ok(about),
                    Report::LoadFailed { reason } => return Err(Parting::Unfit(reason)),
                    other => return Err(Parting::Unfit(format!("it began with {other:?}"))),
                },
                () = &mut limit => {
                    let seconds = self.options.load_limit.as_secs_f32();
                    return Err(Parting::Unfit(format!("it did not load within {seconds} s")));
                }
                command = self.commands.recv() => if let Some(wish) = wish(command) {
                    return Err(Parting::Wished(wish));
                }
            }
        }
    }

    /// Carries frames between the worker and its streams until one of them has to go.
    async fn serve(
        &mut self,
        session: &Session,
        mut source: FrameSource,
        writer: OwnedWriteHalf,
        to_write: mpsc::Receiver<crate::frame::Frame>,
    ) -> Parting {
        let writing = session.write_all(writer, to_write);
        tokio::pin!(writing);
        let mut ticks = interval(self.options.ping_every);
        let mut pulse = Pulse::new();
        loop {
            tokio::select! {
                frame = source.next() => match frame {
                    Ok(frame) => {
                        pulse.unanswered_since = None;
                        session.route(frame);
                    }
                    Err(error) => return error.into(),
                },
                _ = &mut writing => return Parting::Vanished,
                command = self.commands.recv() => if let Some(wish) = wish(command) {
                    return Parting::Wished(wish);
                },
                _ = ticks.tick() => if let Some(parting) = pulse.beat(session, &self.options, &self.keep_alive) {
                    return parting;
                }
            }
        }
    }

    /// Ends the process, and says why for the supervisor and for the streams that were open.
    async fn part(
        &self,
        process: Process,
        parting: Parting,
        ready_since: Option<Instant>,
    ) -> (Result<Wish, Lost>, String) {
        let up = ready_since.map(|since| since.elapsed());
        match parting {
            Parting::Wished(wish) => {
                process.end(self.options.stop_limit).await;
                (Ok(wish), "it was unloaded".to_owned())
            }
            Parting::Vanished => {
                let reason = process.end(self.options.stop_limit).await;
                (Err(Lost { reason: reason.clone(), up }), reason)
            }
            Parting::Unfit(reason) => {
                process.end(Duration::ZERO).await;
                (Err(Lost { reason: reason.clone(), up }), reason)
            }
        }
    }

    async fn next_command(&mut self) -> Command {
        self.commands.recv().await.unwrap_or(Command::Stop)
    }

    fn load_estimate(&self) -> Duration {
        self.status.borrow().load_estimate
    }

    fn publish(&self, phase: Phase) {
        self.status.send_modify(|status| status.phase = phase);
    }

    fn publish_attempt(&self, phase: Phase) {
        self.status.send_modify(|status| {
            status.phase = phase;
            status.attempts += 1;
        });
    }

    /// A model that is down stays so until it is ready: another attempt is no promise.
    fn publish_loading(&self, started: Instant) {
        if !matches!(self.status.borrow().phase, Phase::Down { .. }) {
            self.publish(Phase::Loading { ready_at: started + self.load_estimate() });
        }
    }

    /// What is there tells how long the rest will take.
    fn publish_loaded(&self, started: Instant, part: f32) {
        if (LOADED_PART_MIN..=1.0).contains(&part)
            && matches!(self.status.borrow().phase, Phase::Loading { .. })
        {
            let whole = started.elapsed().div_f32(part);
            self.publish(Phase::Loading { ready_at: started + whole });
        }
    }

    fn publish_ready(&self, session: &Arc<Session>, started: Instant) -> Instant {
        let now = Instant::now();
        self.status.send_modify(|status| {
            status.load_estimate = now - started;
            status.load_took = Some(now - started);
        });
        self.publish_attempt(Phase::Ready(Arc::clone(session)));
        now
    }
}

/// What a command means to a worker that runs or is about to.
fn wish(command: Option<Command>) -> Option<Wish> {
    match command {
        Some(Command::Load) => None,
        Some(Command::Unload) => Some(Wish::Unload),
        Some(Command::Stop) | None => Some(Wish::Stop),
    }
}

async fn next_report(source: &mut FrameSource) -> Result<Report, Parting> {
    let frame = source.next().await?;
    match Report::from_frame(&frame) {
        Ok(Some(report)) => Ok(report),
        Ok(None) => Err(Parting::Unfit(format!("it began with a frame of kind {}", frame.kind))),
        Err(error) => Err(Parting::Unfit(error.to_string())),
    }
}

fn other_version(version: u32) -> Parting {
    Parting::Unfit(format!(
        "the worker speaks protocol {version} and this server {PROTOCOL_VERSION}: hob was replaced \
         while it ran, and has to be restarted"
    ))
}

impl From<LinkError> for Parting {
    fn from(error: LinkError) -> Parting {
        match error {
            LinkError::Closed => Parting::Vanished,
            error => Parting::Unfit(error.to_string()),
        }
    }
}

/// Whether the worker answers, and whether anybody needs it.
struct Pulse {
    unanswered_since: Option<Instant>,
}

impl Pulse {
    fn new() -> Pulse {
        Pulse { unanswered_since: None }
    }

    fn beat(
        &mut self,
        session: &Session,
        options: &SupervisorOptions,
        keep_alive: &KeepAliveCell,
    ) -> Option<Parting> {
        if session.in_flight() == 0 {
            self.unanswered_since = None;
            let is_over = keep_alive.expires_at(session).is_some_and(|at| Instant::now() >= at);
            return is_over.then_some(Parting::Wished(Wish::Unload));
        }
        match self.unanswered_since {
            None => {
                // What finds no place to go out to the worker is as unanswered as what did.
                session.ping();
                self.unanswered_since = Some(Instant::now());
                None
            }
            Some(since) => (since.elapsed() >= options.stall_limit).then(|| {
                let seconds = options.stall_limit.as_secs_f32();
                Parting::Unfit(format!("it did not answer for {seconds} s"))
            }),
        }
    }
}
