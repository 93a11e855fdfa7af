//! The supervisor's one task: it owns the worker process and moves between cold, loading, ready
//! and down. Everything else only reads the status that it publishes.

mod command;
mod publish;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use hob_core::{MemoryReservation, ModelError};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, interval, sleep};

use super::backoff::Waits;
use super::keep_alive::KeepAliveCell;
use super::link::{FrameSource, LinkError};
use super::process::Process;
use super::pulse::Pulse;
use super::session::Session;
use super::{Phase, Status, SupervisorOptions, WorkerCommand};
use crate::worker::protocol::{PROTOCOL_VERSION, Report};
pub(super) use command::{Command, Wish};
use command::{tell, wish};
use waiting::NoPlace;

/// Why a worker is no longer served.
pub(super) enum Parting {
    Wished(Wish),
    /// It closed the socket: it has died, and how is yet to be seen.
    Vanished,
    /// It must go, for this reason.
    Unfit(String),
}

/// Why an attempt ended against our wish.
enum Setback {
    Lost(Lost),
    /// There is no room, and waiting for it does not help, or nobody waits any more.
    Refused(ModelError),
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
    /// Is told when the process that runs now has ended.
    leaving_for: Option<oneshot::Sender<bool>>,
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
        Actor { command, options, commands, status, keep_alive, waits, leaving_for: None }
    }

    /// Returns when it is told to stop, or when nobody is left to tell it anything.
    pub(super) async fn run(mut self) {
        while self.is_wanted().await {
            match self.keep_running().await {
                Ok(Wish::Stop) => break,
                Ok(Wish::Unload) => self.publish_unloaded(),
                Err(refusal) => self.publish_refusal(refusal),
            }
            self.told_gone();
        }
        self.publish(Phase::Stopped);
    }

    /// Cold, until somebody wants the model or wants no more of it.
    async fn is_wanted(&mut self) -> bool {
        loop {
            match self.commands.recv().await {
                Some(Command::Load) => return true,
                Some(Command::Stop) | None => return false,
                Some(Command::Unload) => {}
                Some(Command::UnloadIfIdle(answer)) => tell(answer, true),
            }
        }
    }

    async fn keep_running(&mut self) -> Result<Wish, ModelError> {
        loop {
            let lost = match self.attempt().await {
                Ok(wish) => return Ok(wish),
                Err(Setback::Refused(refusal)) => return Err(refusal),
                Err(Setback::Lost(lost)) => lost,
            };
            tracing::warn!(engine = self.options.engine, "the worker was lost: {}", lost.reason);
            if let Some(wish) = self.back_off(lost).await {
                return Ok(wish);
            }
        }
    }

    /// Waits before the next attempt; a wish to load ends the wait.
    async fn back_off(&mut self, lost: Lost) -> Option<Wish> {
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
                    Some(Command::UnloadIfIdle(answer)) => tell(answer, true),
                    command => return wish(command),
                },
            }
        }
    }

    /// One life of one worker, as soon as there is room for it.
    async fn attempt(&mut self) -> Result<Wish, Setback> {
        self.publish_begun();
        match self.find_room().await {
            Ok(place) => self.run_worker(place).await.map_err(Setback::Lost),
            Err(NoPlace::Wished(wish)) => Ok(wish),
            Err(NoPlace::Refused(refusal)) => Err(Setback::Refused(refusal)),
        }
    }

    /// From its start to its reaped end.
    async fn run_worker(&mut self, place: Option<MemoryReservation>) -> Result<Wish, Lost> {
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
                // What it takes can be seen from now on.
                drop(place);
                let parting = self.serve(&session, source, writer, to_write).await;
                self.close(&session, &parting);
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
                },
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
                        pulse.answered();
                        session.route(frame);
                    }
                    Err(error) => return error.into(),
                },
                _ = &mut writing => return Parting::Vanished,
                command = self.commands.recv() => if let Some(wish) = self.heed(command, session) {
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

    /// What a command means to a worker that serves.
    fn heed(&mut self, command: Option<Command>, session: &Session) -> Option<Wish> {
        match command {
            Some(Command::UnloadIfIdle(answer)) if session.leave_if_idle() => {
                self.leaving_for = Some(answer);
                Some(Wish::Unload)
            }
            Some(Command::UnloadIfIdle(answer)) => {
                tell(answer, false);
                None
            }
            command => wish(command),
        }
    }

    /// Whoever comes after a wish to unload is given another worker, and after a loss an error.
    fn close(&self, session: &Session, parting: &Parting) {
        match parting {
            Parting::Wished(Wish::Unload) => {
                session.leave();
                self.publish(Phase::Leaving);
            }
            Parting::Wished(Wish::Stop) | Parting::Vanished | Parting::Unfit(_) => session.close(),
        }
    }

    /// Whoever waited for the process to end hears that it has.
    fn told_gone(&mut self) {
        if let Some(answer) = self.leaving_for.take() {
            tell(answer, true);
        }
    }

    fn load_expected(&self) -> Duration {
        self.status.borrow().load_times.expected()
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
