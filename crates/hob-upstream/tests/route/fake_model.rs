//! A model with prepared answers, one for each request. The last one repeats for ever.
//! It records its requests, and whether its answer was dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::chat::{Completion, EmbedInput, FinishReason, Timings, Usage};
use hob_core::{
    Admission, Chat, ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, EmbedRequest,
    Embeddings, Fault, ModelError, ModelState, RegisteredModel, Registry,
};
use tokio::time::sleep;

/// Concurrent requests of each model.
pub(crate) const REQUESTS_MAX: usize = 8;

/// The local models of a gateway.
pub(crate) fn locals(fakes: &[Arc<FakeModel>]) -> Registry {
    let mut registry = Registry::default();
    fakes.iter().for_each(|fake| registry.add(fake.local()));
    registry
}

/// What a fake model does with one request.
#[derive(Clone, Debug)]
pub(crate) enum FakeAnswer {
    /// Sends these words, and ends.
    Say(&'static [&'static str]),
    /// Sends thinking first.
    Think(&'static str, &'static [&'static str]),
    /// Rejects the request.
    Refuse(ModelError),
    /// Waits before it answers.
    After(Duration, Box<FakeAnswer>),
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
pub(crate) struct FakeModel {
    pub(crate) name: String,
    answers: Mutex<Vec<FakeAnswer>>,
    requests: Mutex<Vec<ChatRequest>>,
    dropped: Arc<AtomicUsize>,
    state: Mutex<ModelState>,
    card: ChatCard,
}

impl FakeModel {
    pub(crate) fn new(name: &str, mut answers: Vec<FakeAnswer>) -> Arc<FakeModel> {
        answers.reverse();
        let is_able = !name.starts_with("plain");
        Arc::new(FakeModel {
            name: name.to_owned(),
            answers: Mutex::new(answers),
            requests: Mutex::default(),
            dropped: Arc::default(),
            state: Mutex::new(ModelState::Ready),
            card: ChatCard {
                calls_tools: is_able,
                infills: is_able,
                takes_unknown: is_able,
                ..ChatCard::default()
            },
        })
    }

    pub(crate) fn local(self: &Arc<FakeModel>) -> Arc<RegisteredModel<Chat>> {
        let model = Arc::clone(self) as Arc<dyn ChatModel>;
        Arc::new(RegisteredModel::new(&self.name, model, Admission::new(REQUESTS_MAX, 0.0)))
    }

    /// Number of requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.requests.lock().expect("requests").len()
    }

    pub(crate) fn last(&self) -> ChatRequest {
        self.requests.lock().expect("requests").last().cloned().expect("it was asked")
    }

    pub(crate) fn set_state(&self, state: ModelState) {
        *self.state.lock().expect("state") = state;
    }

    /// Answers that were dropped before their end.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    fn next(&self) -> FakeAnswer {
        let mut answers = self.answers.lock().expect("answers");
        if answers.len() > 1 { answers.pop().expect("an answer") } else { answers[0].clone() }
    }

    async fn answer(&self, mut answer: FakeAnswer) -> Result<ChatStream, ModelError> {
        while let FakeAnswer::After(time, then) = answer {
            sleep(time).await;
            answer = *then;
        }
        let fault = |fault| Err(ModelError::upstream(&self.name, fault));
        let said = |words: &[&str]| {
            let words: Vec<_> =
                words.iter().map(|word| Ok(ChatEvent::Text((*word).to_owned()))).collect();
            stream::iter(words)
        };
        let events: ChatStream = match answer {
            FakeAnswer::Say(words) => said(words).chain(stream::iter([Ok(done())])).boxed(),
            FakeAnswer::Think(thought, words) => {
                let thought = stream::iter([Ok(ChatEvent::Reasoning(thought.to_owned()))]);
                thought.chain(said(words)).chain(stream::iter([Ok(done())])).boxed()
            }
            FakeAnswer::Refuse(error) => return Err(error),
            FakeAnswer::Break(words, broken) => {
                said(words).chain(stream::iter([fault(broken)])).boxed()
            }
            FakeAnswer::Stall(words) => {
                let guard = CountsDrop(Arc::clone(&self.dropped));
                let never = stream::once(async move {
                    std::future::pending::<()>().await;
                    drop(guard);
                    Ok(done())
                });
                said(words).chain(never).boxed()
            }
            FakeAnswer::Nothing => stream::iter([Ok(done())]).boxed(),
            FakeAnswer::After(..) | FakeAnswer::Hang => std::future::pending().await,
        };
        Ok(events)
    }
}

/// Counts one when it is dropped, with the answer that holds it.
struct CountsDrop(Arc<AtomicUsize>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn done() -> ChatEvent {
    let usage = Usage { prompt_tokens: 3, completion_tokens: 2, ..Usage::default() };
    ChatEvent::Done(Completion { finish: FinishReason::Stop, usage, timings: Timings::default() })
}

impl ChatModel for FakeModel {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn state(&self) -> ModelState {
        self.state.lock().expect("state").clone()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        let judged = request.judges_turn.then_some(Ok(ChatEvent::TurnEnd { probability: 0.5 }));
        self.requests.lock().expect("requests").push(request);
        let answer = self.answer(self.next());
        async move { answer.await.map(|events| stream::iter(judged).chain(events).boxed()) }.boxed()
    }

    fn continues(&self, _request: &ChatRequest) -> bool {
        !self.name.starts_with("restarts")
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        let answer = self.next();
        async move {
            if let FakeAnswer::After(time, _) = answer {
                sleep(time).await;
            }
            match answer {
                FakeAnswer::Refuse(error) => Err(error),
                FakeAnswer::Hang => std::future::pending().await,
                _ => {
                    let vectors = vec![vec![1.0]; request.inputs.len()];
                    let tokens: usize = request.inputs.iter().map(EmbedInput::tokens_guess).sum();
                    Ok(Embeddings { vectors, prompt_tokens: tokens as u32 })
                }
            }
        }
        .boxed()
    }
}
