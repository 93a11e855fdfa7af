//! A chat worker as a `ChatModel`. Each request opens a stream in the worker, and dropping the answer
//! cancels it. The first request for a model that is not loaded loads it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::chat::{ChatEvent, EmbedRequest, Embeddings, OutputFormat, Reading};
use hob_core::{ChatCard, ChatModel, ChatRequest, ChatStream, ModelError, ModelState, locked};

use super::failures::RecentFailures;
use super::protocol::{ChatOrder, ChatReport, constraints_of};
use crate::supervisor::session::{OpenStream, StreamReport, WorkerSession};
use crate::supervisor::{ModelWorker, Supervisor, SupervisorOptions, WorkerCommand};

pub(super) const ENGINE: &str = "chat";

/// Events that a slow reader may leave unread before its answer pauses.
const UNREAD_EVENTS_MAX: u32 = 1024;

/// How long hob refuses a grammar that crashed a worker.
const CRASHED_TIME: Duration = Duration::from_secs(600);

/// A chat model in a worker process.
pub type ChatWorker = ModelWorker<ChatClient>;

/// The part of a [`ChatWorker`] that its requests need in addition to the process.
#[derive(Debug)]
pub struct ChatClient {
    card: ChatCard,
    /// Constraints that a worker began to compile and has not finished. If the worker is lost, they crashed it.
    compiling: Mutex<RecentFailures<Arc<WorkerSession>>>,
}

impl ChatClient {
    fn new(card: ChatCard) -> ChatClient {
        ChatClient { card, compiling: Mutex::new(RecentFailures::new(CRASHED_TIME)) }
    }

    /// # Errors
    /// These constraints crashed a worker. They would crash the next one, too.
    fn check(&self, constraints: &ChatRequest) -> Result<(), ModelError> {
        let session = locked(&self.compiling).known(constraints);
        if !session.is_some_and(|session| session.is_lost()) {
            return Ok(());
        }
        let field = match &constraints.output {
            OutputFormat::Text => "tools",
            output => output.field(),
        };
        let minutes = CRASHED_TIME.as_secs() / 60;
        let reason = format!(
            "crashed the chat worker during compilation; hob rejects it for {minutes} minutes, so change it before you retry"
        );
        Err(ModelError::InvalidField { field, reason })
    }

    /// Waits until the worker accepts the request. Returns the schema keywords that it ignores.
    async fn accepted(
        &self,
        stream: &mut OpenStream,
        constraints: &ChatRequest,
    ) -> Result<Vec<String>, ModelError> {
        loop {
            match report(stream).await {
                Ok(StreamReport::Model(ChatReport::Compiling)) => {
                    locked(&self.compiling).remember(constraints, stream.session());
                }
                Ok(StreamReport::Model(ChatReport::Compiled)) => {
                    locked(&self.compiling).forget(constraints);
                }
                Ok(StreamReport::Model(ChatReport::Accepted { ignored })) => return Ok(ignored),
                Ok(other) => return Err(stream.unexpected(&other)),
                Err(error) => return self.check(constraints).and(Err(error)),
            }
        }
    }
}

impl ModelWorker<ChatClient> {
    /// Starts the supervisor, but no process. Must be called inside a tokio runtime.
    pub fn start(card: ChatCard, command: WorkerCommand, options: SupervisorOptions) -> ChatWorker {
        let supervisor = Supervisor::start(command, options);
        ModelWorker { supervisor, client: ChatClient::new(card) }
    }

    /// Options with this engine's name. A large model takes minutes to load from a slow disk, and for one step on a busy CPU.
    pub fn options() -> SupervisorOptions {
        let slow = Duration::from_secs(600);
        SupervisorOptions { load_limit: slow, stall_limit: slow, ..SupervisorOptions::new(ENGINE) }
    }

    /// Opens a stream, and returns how long it waited for the model to load.
    async fn open(&self) -> Result<(OpenStream, Duration), ModelError> {
        let opened = self.supervisor.open_loaded().await;
        opened.map(|(_, stream, loading)| (stream, loading))
    }

    async fn begin(&self, request: ChatRequest) -> Result<ChatStream, ModelError> {
        if let Some(keep_alive) = request.keep_alive {
            self.supervisor.keep_alive(keep_alive);
        }
        let constraints = constraints_of(&request);
        self.client.check(&constraints)?;
        let (mut stream, loading) = self.open().await?;
        let credit = match request.reading {
            Reading::Paced => Reading::EVENTS_AHEAD_MAX,
            Reading::Streamed | Reading::Whole => UNREAD_EVENTS_MAX,
        };
        let trace = request.trace.clone();
        let request = Box::new(request);
        stream.orders().send(&ChatOrder::Chat { request, credit }).await?;
        let ignored = self.client.accepted(&mut stream, &constraints).await?;
        trace.note(|data| {
            // Replaces the list and does not extend it: each choice of an answer reports the same names.
            data.dropped = ignored;
            data.placement_note = self.supervisor.placement_note();
        });
        Ok(events(stream, loading))
    }

    async fn vectors(&self, request: EmbedRequest) -> Result<Embeddings, ModelError> {
        if let Some(keep_alive) = request.keep_alive {
            self.supervisor.keep_alive(keep_alive);
        }
        let (mut stream, _) = self.open().await?;
        let trace = request.trace.clone();
        trace.note(|data| data.placement_note = self.supervisor.placement_note());
        stream.orders().send(&ChatOrder::Embed(request)).await?;
        let mut embeddings = Embeddings { vectors: Vec::new(), prompt_tokens: 0 };
        loop {
            match report(&mut stream).await? {
                StreamReport::Model(ChatReport::Embedded(vector)) => {
                    embeddings.prompt_tokens += vector.tokens;
                    trace.note(|data| data.embedded_tokens += vector.tokens);
                    embeddings.vectors.push(vector.values);
                }
                StreamReport::Done => return Ok(embeddings),
                other => return Err(stream.unexpected(&other)),
            }
        }
    }
}

/// The next report that is not a refusal.
async fn report(stream: &mut OpenStream) -> Result<StreamReport<ChatReport>, ModelError> {
    match stream.report().await? {
        StreamReport::Model(ChatReport::Refused(refusal)) => Err(refusal.into_error()),
        report => Ok(report),
    }
}

/// The events of an answer. An event is returned to the worker as credit when the next one is asked for, not when it is read:
/// for a reader that stops after an event, the worker computes one step less.
fn events(stream: OpenStream, loading: Duration) -> ChatStream {
    stream::try_unfold((stream, 0), move |(mut open, read)| async move {
        if read > 0 {
            open.credit(read);
        }
        match report(&mut open).await? {
            StreamReport::Model(ChatReport::Event(event)) => {
                Ok(Some((with_loading(event, loading), (open, 1))))
            }
            StreamReport::Done => Ok(None),
            other => Err(open.unexpected(&other)),
        }
    })
    .boxed()
}

/// Adds the load time, which the worker cannot measure.
fn with_loading(mut event: ChatEvent, loading: Duration) -> ChatEvent {
    if let ChatEvent::Done(completion) = &mut event {
        completion.timings.load_ms = loading.as_secs_f64() * 1e3;
    }
    event
}

impl ChatModel for ModelWorker<ChatClient> {
    fn card(&self) -> &ChatCard {
        &self.client.card
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

#[cfg(test)]
mod tests;
