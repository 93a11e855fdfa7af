//! A chat model that repeats the last message, so that a test sees which conversation an answer belongs to.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use hob_core::chat::Prompt;
use hob_core::{
    ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, EmbedRequest, Embeddings, ModelError,
    ModelState,
};

use crate::chat_model::{card, done};

pub(super) struct Parrot(ChatCard);

impl Default for Parrot {
    fn default() -> Parrot {
        Parrot(card())
    }
}

impl ChatModel for Parrot {
    fn card(&self) -> &ChatCard {
        &self.0
    }

    fn state(&self) -> ModelState {
        ModelState::Ready
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        let Prompt::Chat(conversation) = request.prompt else {
            unreachable!("a session asks with a conversation")
        };
        let last = conversation.messages.last().map(|message| message.text.clone());
        let text = Ok(ChatEvent::Text(last.unwrap_or_default()));
        async move { Ok(stream::iter([text, done(1)]).boxed()) }.boxed()
    }

    fn embed(&self, _request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        async { Err(ModelError::NotBuilt { engine: "embeddings" }) }.boxed()
    }
}
