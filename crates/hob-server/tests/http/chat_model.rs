//! A chat model whose every event is given by the test, and a server that has it beside a voice.
//! What a test does not have to give piece by piece comes from `hob-core`'s scripted model instead.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use hob_core::chat::{Completion, FinishReason, Timings, Usage};
use hob_core::scripted::ScriptedChat;
use hob_core::{
    Admission, ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, ChatTarget, EmbedRequest,
    Embeddings, ModelError, ModelState,
};
use hob_server::ServerOptions;
use tokio::sync::{mpsc, watch};

use crate::client::{Client, no_hang};
use crate::model::StagedSpeech;
use crate::server::{Server, registry_with_voice};

pub(crate) type Event = Result<ChatEvent, ModelError>;

/// The test's end of one answer. `closed()` resolves when the server has dropped its end.
pub(crate) type Pen = mpsc::Sender<Event>;

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

    /// The next request gets what is sent into the returned end; one that finds nothing staged
    /// waits for ever.
    pub(crate) fn stage(&self) -> Pen {
        let (pen, paper) = mpsc::channel(1);
        self.staged.lock().expect("no test panics here").push_back(paper);
        pen
    }

    /// Resolves when so many requests have come.
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
            let Some(paper) = staged else { return std::future::pending().await };
            let next = async |mut paper: mpsc::Receiver<Event>| Some((paper.recv().await?, paper));
            Ok(stream::unfold(paper, next).boxed())
        }
        .boxed()
    }

    /// Computes a text of seven tokens, and then takes for ever.
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        request.trace.note(|way| way.embedded_tokens += 7);
        std::future::pending().boxed()
    }
}

/// A model that chats, calls and thinks.
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

/// The end of an answer of so many tokens to a prompt of 12, of which 4 were known.
pub(crate) fn done(completion_tokens: u32) -> Event {
    Ok(ChatEvent::Done(Completion {
        finish: FinishReason::Stop,
        usage: Usage {
            prompt_tokens: 12,
            cached_tokens: 4,
            completion_tokens,
            reasoning_tokens: 0,
        },
        timings: Timings { load_ms: 0.0, queue_ms: 7.0, prompt_ms: 2.0, predicted_ms: 4.0 },
    }))
}

/// Says that it lives after every silence of 10 ms.
pub(crate) fn talkative() -> ServerOptions {
    ServerOptions { keep_alive_every: Duration::from_millis(10), ..ServerOptions::default() }
}

/// An answer to `request` of which the client has the head: its first text is "Hel".
pub(crate) async fn begun(server: &Server, model: &StagedChat, request: Vec<u8>) -> (Pen, Client) {
    let pen = model.stage();
    let mut client = server.client().await;
    client.send(request).await;
    pen.send(text("Hel")).await.expect("a reader");
    client.head().await;
    (pen, client)
}

pub(crate) fn chat_lost() -> ModelError {
    ModelError::WorkerLost { engine: "chat", detail: "killed by signal 9".to_owned() }
}

/// A scripted model that gives each of these answers in turn.
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
    let speech = Arc::new(StagedSpeech::new());
    let admission = Admission::new(2, 0.1);
    let mut registry = registry_with_voice(&speech, Admission::new(2, 0.5));
    registry.add_chat(ChatTarget {
        name: "smol".to_owned(),
        model,
        lifecycle: None,
        admission: admission.clone(),
        clocks: hob_core::Clocked::ByAsker,
    });
    registry.add_alias("assistant", "smol");
    Server::start_registry(registry, options, speech, admission).await
}
