//! A chat model that repeats the last message, so that a test sees which conversation an answer belongs to.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use hob_core::chat::Prompt;
use hob_core::{
    ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, EmbedRequest, Embeddings, ModelError,
};

use super::Deaths;
use crate::chat_model::{card, chat_lost, done};

/// Messages of a prompt that the model takes.
const MESSAGES_MAX: usize = 8;

pub(super) struct Parrot {
    card: ChatCard,
    deaths: Arc<Deaths>,
}

impl Parrot {
    pub(super) fn new(deaths: Arc<Deaths>) -> Parrot {
        Parrot { card: card(), deaths }
    }
}

impl ChatModel for Parrot {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        let Prompt::Chat(conversation) = request.prompt else {
            unreachable!("a session asks with a conversation")
        };
        if conversation.messages.len() > MESSAGES_MAX {
            let needed = conversation.messages.len() as u32;
            let error = ModelError::TooLong { needed, available: MESSAGES_MAX as u32 };
            return async { Err(error) }.boxed();
        }
        let last = conversation.messages.last().map(|message| message.text.clone());
        let text = Ok(ChatEvent::Text(last.unwrap_or_default()));
        let dies = self.deaths.chat.swap(false, Ordering::Relaxed);
        let end = if dies { Err(chat_lost()) } else { done(1) };
        async move { Ok(stream::iter([text, end]).boxed()) }.boxed()
    }

    fn embed(&self, _request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        async { Err(ModelError::NotBuilt { engine: "embeddings" }) }.boxed()
    }
}
