//! A chat model whose every event the test chooses, and a server with this model and a voice.
//! Tests that do not need single events use the scripted model of `hob-core`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use hob_core::chat::{Completion, FinishReason, Timings, Usage};
use hob_core::scripted::ScriptedChat;
use hob_core::{
    Admission, Chat, ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, EmbedRequest,
    Embeddings, ModelError, ModelState, RegisteredModel,
};
use hob_server::ServerOptions;
use tokio::sync::{mpsc, watch};

use crate::client::{Client, no_hang};
use crate::server::Server;

pub(crate) type Event = Result<ChatEvent, ModelError>;

/// The test's end of one answer. `closed()` resolves when the server has dropped its end.
pub(crate) type EventSender = mpsc::Sender<Event>;

pub(crate) struct StagedChat {
    card: ChatCard,
    state: ModelState,
    staged: Mutex<VecDeque<mpsc::Receiver<Event>>>,
    asked: watch::Sender<Vec<ChatRequest>>,
}

impl StagedChat {
    pub(crate) fn new() -> StagedChat {
        StagedChat {
            card: card(),
            state: ModelState::Ready,
            staged: Mutex::default(),
            asked: watch::Sender::default(),
        }
    }

    pub(crate) fn with_state(self, state: ModelState) -> StagedChat {
        StagedChat { state, ..self }
    }

    /// The next request gets what is sent into the returned end. A request without a staged answer waits forever.
    pub(crate) fn stage(&self) -> EventSender {
        let (sender, receiver) = mpsc::channel(1);
        self.staged.lock().expect("no test panics here").push_back(receiver);
        sender
    }

    /// Resolves when `count` requests have arrived.
    pub(crate) async fn asked(&self, count: usize) -> Vec<ChatRequest> {
        let mut asked = self.asked.subscribe();
        let asked = no_hang(asked.wait_for(|asked| asked.len() >= count)).await;
        asked.expect("the model lives").clone()
    }
}

impl ChatModel for StagedChat {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn state(&self) -> ModelState {
        self.state.clone()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        self.asked.send_modify(|asked| asked.push(request));
        let staged = self.staged.lock().expect("no test panics here").pop_front();
        async {
            let Some(mut receiver) = staged else { return std::future::pending().await };
            Ok(stream::poll_fn(move |context| receiver.poll_recv(context)).boxed())
        }
        .boxed()
    }

    /// Computes a text of seven tokens, and then never ends.
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        request.trace.note(|data| data.embedded_tokens += 7);
        std::future::pending().boxed()
    }
}

/// A model with chat, tool calls and thinking.
pub(crate) fn card() -> ChatCard {
    ChatCard {
        context_tokens: 8192,
        template: Some("…".to_owned()),
        calls_tools: true,
        thinks: true,
        ..ChatCard::default()
    }
}

pub(crate) fn text(piece: &str) -> Event {
    Ok(ChatEvent::Text(piece.to_owned()))
}

/// The end of an answer with this many tokens. The prompt had 12 tokens, 4 of them from the cache.
pub(crate) fn done(completion_tokens: u32) -> Event {
    Ok(ChatEvent::Done(Completion {
        finish: FinishReason::Stop,
        usage: Usage {
            prompt_tokens: 12,
            cached_tokens: 4,
            completion_tokens,
            reasoning_tokens: 0,
        },
        timings: Timings {
            load_ms: 0.0,
            queue_ms: 7.0,
            prompt_ms: 2.0,
            predicted_ms: 4.0,
            ..Timings::default()
        },
    }))
}

/// Sends a comment after every 10 ms without an event.
pub(crate) fn talkative() -> ServerOptions {
    ServerOptions { keep_alive_every: Duration::from_millis(10), ..ServerOptions::default() }
}

/// An answer to `request` whose head the client has read. Its first text is "Hel".
pub(crate) async fn begun(
    server: &Server,
    model: &StagedChat,
    request: Vec<u8>,
) -> (EventSender, Client) {
    let sender = model.stage();
    let mut client = server.send(request).await;
    sender.send(text("Hel")).await.expect("a reader");
    client.head().await;
    (sender, client)
}

pub(crate) fn chat_lost() -> ModelError {
    ModelError::WorkerLost { engine: "chat", detail: "killed by signal 9".to_owned() }
}

/// A scripted model that gives these answers in order.
pub(crate) fn scripted(
    answers: impl IntoIterator<Item = Result<Vec<Event>, ModelError>>,
) -> Arc<ScriptedChat> {
    Arc::new(ScriptedChat::new(answers))
}

/// A server whose voice is `kokoro` and whose chat model is `smol`, or `assistant`.
pub(crate) async fn serve_chat(model: Arc<impl ChatModel + 'static>) -> Server {
    serve_chat_with(model, ServerOptions::default()).await
}

pub(crate) async fn serve_chat_with(
    model: Arc<impl ChatModel + 'static>,
    options: ServerOptions,
) -> Server {
    Server::start_models(options, |registry| {
        registry.add(RegisteredModel::<Chat>::new("smol", model, Admission::new(2, 0.1)));
        registry.add_alias("assistant", "smol");
    })
    .await
}

/// A server whose chat model is a [`StagedChat`], and that model.
pub(crate) async fn serve_staged(options: ServerOptions) -> (Server, Arc<StagedChat>) {
    let model = Arc::new(StagedChat::new());
    (serve_chat_with(Arc::clone(&model), options).await, model)
}
