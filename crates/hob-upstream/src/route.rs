//! An alias as a model: of chat here, and beside it of speech and of transcription. Each says what an
//! attempt is and when it has really begun; asking one target after the other is the same for all.

mod alias;
mod asking;
mod attempt;
mod candidates;
mod continuing;
mod guarded;
mod leg;
mod opening;
mod speech;
mod transcript;
mod tried;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::chat::Reading;
use hob_core::routing::{Consequence, Next, RouteView, more_telling};
use hob_core::{
    ChatCard, ChatModel, ChatRequest, ChatStream, EmbedRequest, Embeddings, ModelError, ModelState,
};
use tokio::time::{Instant, timeout_at};

use crate::options::AliasOptions;
use asking::Turn;
use attempt::ChatQuestion;
use candidates::beginning;
use continuing::Continuing;

pub(crate) use alias::Alias;
pub(crate) use leg::Leg;
pub(crate) use speech::SpeechRoute;
pub(crate) use transcript::TranscriptRoute;

/// A name that several targets answer to, which chat.
#[derive(Debug)]
pub struct Route {
    alias: Arc<Alias<dyn ChatModel>>,
    card: ChatCard,
}

impl Route {
    pub(crate) fn new(options: AliasOptions, legs: Vec<Leg<dyn ChatModel>>) -> Route {
        let card = card(&legs);
        Route { alias: Arc::new(Alias::new(options, legs)), card }
    }

    pub fn name(&self) -> &str {
        self.alias.name()
    }

    /// Who would answer now, in the order in which they would be asked.
    pub fn view(&self) -> RouteView {
        self.alias.view_of(beginning(&ChatRequest::default()))
    }

    async fn answer(&self, request: ChatRequest) -> Result<ChatStream, ModelError> {
        let ends = Instant::now() + self.alias.total();
        let legs = self.alias.ordered(self.candidates(&request)?, beginning(&request));
        let question = ChatQuestion::new(&self.alias, &request, ends);
        let asked = self.alias.ask(legs, &question).await;
        let mut begun = asked.or_else(|error| question.take_empty().ok_or(error))?;
        Ok(match begun.take_asked() {
            Some(by) => Continuing::new(Arc::clone(&self.alias), *by, begun, ends).into_stream(),
            None => begun.into_stream(),
        })
    }

    async fn vectors(&self, request: EmbedRequest) -> Result<Embeddings, ModelError> {
        let ends = Instant::now() + self.alias.total();
        let legs = self.alias.ordered(self.embedders()?, beginning(&ChatRequest::default()));
        let legs = self.alias.awake(legs, ends).await?;
        let mut last = None;
        for leg in legs {
            if leg.target.rests_for().is_some() {
                continue;
            }
            let asked = Instant::now();
            request.trace.asking(&leg.target.name, leg.is_warm());
            let times = self.alias.times(&Turn::alone(leg), Duration::ZERO, ends);
            let embed = async {
                let _slot = leg.target.place().await?;
                leg.model.embed(request.clone()).await
            };
            let made = timeout_at(times.first_by(), embed).await;
            let silent = || Err(ModelError::upstream(&leg.target.name, times.silent()));
            match made.unwrap_or_else(|_| silent()) {
                // What it does with vectors says little of how it chats, so nothing is remembered.
                Ok(made) => {
                    let now = Instant::now();
                    let after = now.duration_since(asked);
                    request.trace.answers(&leg.target.name, now.into_std(), after);
                    return Ok(made);
                }
                Err(error) => {
                    request.trace.failed(&leg.target.name, &error, asked.elapsed());
                    let next = Consequence::of(&error).next;
                    last = Some(more_telling(last, error));
                    if next == Next::None {
                        break;
                    }
                }
            }
        }
        Err(self.alias.unanswered(&request.trace, last))
    }
}

/// What an alias can do is what any of its targets can.
fn card(legs: &[Leg<dyn ChatModel>]) -> ChatCard {
    let mut card = ChatCard::default();
    for leg in legs {
        let its = leg.model.card();
        let can =
            |name: &str| leg.capabilities.as_ref().is_none_or(|can| can.iter().any(|c| c == name));
        card.context_tokens = card.context_tokens.max(leg.context_tokens().unwrap_or(0));
        card.trained_context_tokens = card.context_tokens;
        card.calls_tools |= its.calls_tools && can("tools");
        card.sees |= its.sees && can("images");
        card.thinks |= its.thinks;
        card.fills_in |= its.fills_in;
        card.takes_unknown |= its.takes_unknown;
        card.template =
            card.template.take().or_else(|| its.template.as_ref().map(|_| String::new()));
        if card.architecture.is_empty() {
            card.architecture.clone_from(&its.architecture);
        }
        if card.file_bytes == 0 && its.file_bytes > 0 {
            card = of_file(card, its);
        }
    }
    if card.modified_unix_s == 0 {
        card.modified_unix_s = now_unix_s();
    }
    card
}

/// With what is known of the first target's file here: Ollama's clients list its size and its age.
fn of_file(card: ChatCard, its: &ChatCard) -> ChatCard {
    ChatCard {
        architecture: its.architecture.clone(),
        parameters: its.parameters,
        quantization: its.quantization.clone(),
        file_bytes: its.file_bytes,
        digest: its.digest.clone(),
        modified_unix_s: its.modified_unix_s,
        ..card
    }
}

/// An alias of other servers' models is as old as this configuration.
fn now_unix_s() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl ChatModel for Route {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn state(&self) -> ModelState {
        self.alias.state()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        debug_assert!(matches!(request.reading, Reading::Streamed | Reading::Whole));
        self.answer(request).boxed()
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        self.vectors(request).boxed()
    }
}
