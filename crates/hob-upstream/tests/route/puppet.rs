//! A model that follows a script, request by request. The last act repeats for ever.
//! It records its requests, and whether its answer was dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::chat::{Completion, FinishReason, Timings, Usage};
use hob_core::{
    Admission, Chat, ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, EmbedRequest,
    Embeddings, Fault, ModelError, ModelState, RegisteredModel, Registry,
};
use tokio::time::sleep;

/// The local models of a gateway.
pub(crate) fn locals(puppets: &[Arc<Puppet>]) -> Registry {
    let mut registry = Registry::default();
    puppets.iter().for_each(|puppet| registry.add(puppet.local()));
    registry
}

/// What a model does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends these words, and ends.
    Say(&'static [&'static str]),
    /// Sends thinking first.
    Think(&'static str, &'static [&'static str]),
    /// Rejects the request.
    Refuse(ModelError),
    /// Waits, then acts.
    After(Duration, Box<Act>),
    /// Sends these words and fails.
    Break(&'static [&'static str], Fault),
    /// Sends these words and then nothing.
    Stall(&'static [&'static str]),
    /// Ends without sending anything.
    Nothing,
    /// Never resolves.
    Hang,
}

#[derive(Debug)]
pub(crate) struct Puppet {
    pub(crate) name: String,
    acts: Mutex<Vec<Act>>,
    requests: Mutex<Vec<ChatRequest>>,
    dropped: Arc<AtomicUsize>,
    state: Mutex<ModelState>,
    card: ChatCard,
}

impl Puppet {
    pub(crate) fn new(name: &str, mut acts: Vec<Act>) -> Arc<Puppet> {
        acts.reverse();
        Arc::new(Puppet {
            name: name.to_owned(),
            acts: Mutex::new(acts),
            requests: Mutex::default(),
            dropped: Arc::default(),
            state: Mutex::new(ModelState::Ready),
            card: ChatCard { calls_tools: !name.starts_with("plain"), ..ChatCard::default() },
        })
    }

    pub(crate) fn local(self: &Arc<Puppet>) -> Arc<RegisteredModel<Chat>> {
        let model = Arc::clone(self) as Arc<dyn ChatModel>;
        Arc::new(RegisteredModel::new(&self.name, model, Admission::new(8, 0.0)))
    }

    pub(crate) fn asked(&self) -> usize {
        self.requests.lock().expect("requests").len()
    }

    pub(crate) fn last(&self) -> ChatRequest {
        self.requests.lock().expect("requests").last().cloned().expect("it was asked")
    }

    pub(crate) fn is(&self, state: ModelState) {
        *self.state.lock().expect("state") = state;
    }

    /// Answers that were dropped before their end.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    fn next(&self) -> Act {
        let mut acts = self.acts.lock().expect("acts");
        if acts.len() > 1 { acts.pop().expect("an act") } else { acts[0].clone() }
    }

    async fn act(&self, mut act: Act) -> Result<ChatStream, ModelError> {
        while let Act::After(time, then) = act {
            sleep(time).await;
            act = *then;
        }
        let fault = |fault| Err(ModelError::upstream(&self.name, fault));
        let said = |words: &[&str]| {
            let words: Vec<_> =
                words.iter().map(|word| Ok(ChatEvent::Text((*word).to_owned()))).collect();
            stream::iter(words)
        };
        let events: ChatStream = match act {
            Act::Say(words) => said(words).chain(stream::iter([Ok(done())])).boxed(),
            Act::Think(thought, words) => {
                let thought = stream::iter([Ok(ChatEvent::Reasoning(thought.to_owned()))]);
                thought.chain(said(words)).chain(stream::iter([Ok(done())])).boxed()
            }
            Act::Refuse(error) => return Err(error),
            Act::Break(words, broken) => said(words).chain(stream::iter([fault(broken)])).boxed(),
            Act::Stall(words) => {
                let guard = Letting(Arc::clone(&self.dropped));
                let never = stream::once(async move {
                    std::future::pending::<()>().await;
                    drop(guard);
                    Ok(done())
                });
                said(words).chain(never).boxed()
            }
            Act::Nothing => stream::iter([Ok(done())]).boxed(),
            Act::After(..) | Act::Hang => std::future::pending().await,
        };
        Ok(events)
    }
}

struct Letting(Arc<AtomicUsize>);

impl Drop for Letting {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn done() -> ChatEvent {
    let usage = Usage { prompt_tokens: 3, completion_tokens: 2, ..Usage::default() };
    ChatEvent::Done(Completion { finish: FinishReason::Stop, usage, timings: Timings::default() })
}

impl ChatModel for Puppet {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn state(&self) -> ModelState {
        self.state.lock().expect("state").clone()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        self.requests.lock().expect("requests").push(request);
        let act = self.next();
        self.act(act).boxed()
    }

    fn continues(&self, _request: &ChatRequest) -> bool {
        !self.name.starts_with("anew")
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        let act = self.next();
        async move {
            match act {
                Act::Refuse(error) => Err(error),
                _ => {
                    let vectors = vec![vec![1.0]; request.inputs.len()];
                    Ok(Embeddings { vectors, prompt_tokens: 1 })
                }
            }
        }
        .boxed()
    }
}
