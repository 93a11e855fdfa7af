//! A chat worker as a `ChatModel`: requests go out in frames, events come back, and a stream that is
//! dropped is cancelled. A model that is not in memory is loaded for whoever asks first.

use std::future::poll_fn;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use hob_core::chat::{EmbedRequest, Embeddings};
use hob_core::{
    ChatCard, ChatModel, ChatRequest, ChatStream, KeepAlive, MemoryUse, ModelError, ModelLifecycle,
    ModelState,
};
use tokio::time::timeout_at;

use super::answer::Answer;
use super::protocol::{About, ChatReport, Task};
use super::suspects::{Compiling, Fingerprint, Suspects};
use crate::supervisor::session::Ticket;
use crate::supervisor::{Supervisor, SupervisorOptions, WorkerCommand};
use crate::worker::protocol::{Failure, Report, WorkerStats};

pub(super) const ENGINE: &str = "chat";

/// A request looks so often whether the model that it waited for is its own now: others may be faster,
/// and put theirs into its place.
const LOADS_MAX: usize = 3;

#[derive(Clone, Debug)]
pub struct ChatWorkerOptions {
    pub supervisor: SupervisorOptions,
    /// Events that a slow reader may leave unread before its answer pauses.
    pub unread_events_max: u32,
    /// A request for a model that is not in memory waits for its load if that is expected to take
    /// no longer; otherwise it is told when to come back.
    pub load_wait_max: Duration,
}

impl Default for ChatWorkerOptions {
    fn default() -> ChatWorkerOptions {
        ChatWorkerOptions {
            supervisor: SupervisorOptions {
                load_limit: Duration::from_secs(600),
                stall_limit: Duration::from_secs(120),
                ..SupervisorOptions::new(ENGINE)
            },
            unread_events_max: 1024,
            load_wait_max: Duration::from_secs(30),
        }
    }
}

/// A chat model in a worker process.
#[derive(Debug)]
pub struct ChatWorker {
    card: ChatCard,
    supervisor: Supervisor,
    options: ChatWorkerOptions,
    suspects: Suspects,
}

impl ChatWorker {
    /// Starts the supervisor, and no process yet. Called inside a tokio runtime.
    pub fn start(card: ChatCard, command: WorkerCommand, options: ChatWorkerOptions) -> ChatWorker {
        let supervisor = Supervisor::start(command, options.supervisor.clone());
        ChatWorker { card, supervisor, options, suspects: Suspects::default() }
    }

    /// Ends the process for good, and returns when it is gone.
    pub async fn shutdown(&self) {
        self.supervisor.shutdown().await;
    }

    /// The worker's process, while the model is loaded.
    pub fn pid(&self) -> Option<u32> {
        self.supervisor.pid()
    }

    /// What the worker does now, by its own account, between two steps.
    ///
    /// # Errors
    /// The model is not loaded, or the worker ended before it answered.
    pub async fn stats(&self) -> Result<WorkerStats, ModelError> {
        self.supervisor.stats().await
    }

    /// What the worker said of itself when it was ready.
    pub fn about(&self) -> Option<About> {
        About::from_payload(&self.supervisor.about()?)
    }

    /// A stream in the worker, and how long the model took to be there for it.
    async fn open(&self) -> Result<(Ticket, Duration), ModelError> {
        let asked = Instant::now();
        let until = asked + self.options.load_wait_max;
        for load in 0..LOADS_MAX {
            match self.supervisor.open() {
                Ok((_, ticket)) if load == 0 => return Ok((ticket, Duration::ZERO)),
                Ok((_, ticket)) => return Ok((ticket, asked.elapsed())),
                Err(ModelError::Loading { retry_after })
                    if retry_after <= self.options.load_wait_max =>
                {
                    match timeout_at(until.into(), self.supervisor.load()).await {
                        Ok(loaded) => loaded?,
                        // Others are loaded before it: it is told when to come back after all.
                        Err(_) => break,
                    }
                }
                Err(refused) => return Err(refused),
            }
        }
        let (_, ticket) = self.supervisor.open()?;
        Ok((ticket, asked.elapsed()))
    }

    async fn begin(&self, request: ChatRequest) -> Result<ChatStream, ModelError> {
        if let Some(wish) = request.keep_alive {
            self.supervisor.keep_alive(wish);
        }
        let fingerprint = Fingerprint::of(&request);
        fingerprint.map_or(Ok(()), |fingerprint| self.suspects.check(fingerprint))?;
        let (mut ticket, loading) = self.open().await?;
        let credit = self.options.unread_events_max;
        let trace = request.trace.clone();
        let request = Box::new(request);
        self.send(&ticket, &Task::Chat { request, credit }).await;
        let ignored = self.accepted(&mut ticket, fingerprint).await?;
        trace.note(|way| way.dropped.extend(ignored));
        Ok(Answer::new(ticket, loading).boxed())
    }

    /// Waits until the request is read in; returns the keywords of its schemas that are left out.
    async fn accepted(
        &self,
        ticket: &mut Ticket,
        fingerprint: Option<Fingerprint>,
    ) -> Result<Vec<String>, ModelError> {
        let (suspects, session) = (&self.suspects, ticket.session());
        let mut compiling = Compiling { suspects, fingerprint, session, is_compiling: false };
        loop {
            match self.report(ticket).await.map_err(|error| compiling.blamed(error))? {
                Said::Chat(ChatReport::Compiling { .. }) => compiling.is_compiling = true,
                Said::Chat(ChatReport::Compiled { .. }) => compiling.is_compiling = false,
                Said::Chat(ChatReport::Accepted { ignored, .. }) => return Ok(ignored),
                other => return Err(unexpected(other)),
            }
        }
    }

    async fn vectors(&self, request: EmbedRequest) -> Result<Embeddings, ModelError> {
        if let Some(wish) = request.keep_alive {
            self.supervisor.keep_alive(wish);
        }
        let (mut ticket, _) = self.open().await?;
        let trace = request.trace.clone();
        self.send(&ticket, &Task::Embed { request }).await;
        let mut embeddings = Embeddings { vectors: Vec::new(), prompt_tokens: 0 };
        loop {
            match self.report(&mut ticket).await? {
                Said::Chat(ChatReport::Embedded { vector, .. }) => {
                    embeddings.prompt_tokens += vector.tokens;
                    trace.note(|way| way.embedded_tokens += vector.tokens);
                    embeddings.vectors.push(vector.values);
                }
                Said::Done => return Ok(embeddings),
                other => return Err(unexpected(other)),
            }
        }
    }

    async fn send(&self, ticket: &Ticket, task: &Task) {
        for frame in task.to_frames(ticket.stream) {
            // A worker that is gone is seen by whoever waits for its answer, with the reason.
            if ticket.outgoing().send(frame).await.is_err() {
                return;
            }
        }
    }

    async fn report(&self, ticket: &mut Ticket) -> Result<Said, ModelError> {
        let frame = poll_fn(|cx| ticket.poll_frame(cx)).await;
        said(&frame.map_err(|cut| self.supervisor.cut(cut))?)
    }
}

/// What a frame says that is no failure.
#[derive(Debug)]
pub(super) enum Said {
    Chat(ChatReport),
    Done,
}

pub(super) fn said(frame: &crate::frame::Frame) -> Result<Said, ModelError> {
    let unreadable = |detail: String| ModelError::EngineFailed { engine: ENGINE, detail };
    match Report::from_frame(frame).map_err(|error| unreadable(error.to_string()))? {
        Some(Report::Done { .. }) => Ok(Said::Done),
        Some(Report::Failed { failure: Failure::Engine(detail), .. }) => Err(unreadable(detail)),
        Some(other) => Err(unreadable(format!("its stream said {other:?}"))),
        None => match ChatReport::from_frame(frame) {
            Ok(ChatReport::Refused { refusal, .. }) => Err(refusal.into_error()),
            Ok(report) => Ok(Said::Chat(report)),
            Err(error) => Err(unreadable(error.to_string())),
        },
    }
}

/// Says which, and not what: the text in it is somebody's.
fn unexpected(said: Said) -> ModelError {
    let detail = match said {
        Said::Done => "its stream ended before its answer",
        Said::Chat(_) => "its stream said something that does not belong there",
    };
    ModelError::EngineFailed { engine: ENGINE, detail: detail.to_owned() }
}

impl ChatModel for ChatWorker {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn state(&self) -> ModelState {
        self.supervisor.state()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        self.begin(request).boxed()
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        self.vectors(request).boxed()
    }
}

impl ModelLifecycle for ChatWorker {
    fn state(&self) -> ModelState {
        self.supervisor.state()
    }

    fn load(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        self.supervisor.load().boxed()
    }

    fn unload(&self) -> BoxFuture<'_, ()> {
        self.supervisor.unload().boxed()
    }

    fn unload_if_idle(&self) -> BoxFuture<'_, bool> {
        self.supervisor.unload_if_idle().boxed()
    }

    fn idle_for(&self) -> Option<Duration> {
        self.supervisor.idle_for()
    }

    fn keep_alive(&self, wish: KeepAlive) {
        self.supervisor.keep_alive(wish);
    }

    fn memory_use(&self) -> MemoryUse {
        let vram_bytes = self.about().map_or(0, |about| about.vram_bytes);
        MemoryUse { vram_bytes, ..self.supervisor.memory_use() }
    }
}

#[cfg(test)]
mod tests;
