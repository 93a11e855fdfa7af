//! Chat: messages in, events out. The seam that the embedded engine and upstreams will fill.
//! Until then a scripted model answers, so that what stands on it can be built and tested.

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::ModelError;

/// A model that answers. The rules of [`crate::SpeechModel`] hold: refusals by the future, failures
/// as items, dropping stops the work.
pub trait ChatModel: Send + Sync {
    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>>;
}

pub type ChatStream = BoxStream<'static, Result<ChatEvent, ModelError>>;

#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    pub messages: Vec<Message>,
    pub tokens_max: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatEvent {
    Text(String),
    /// Thinking, apart from the answer.
    Reasoning(String),
    Done(FinishReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    Stop,
    Length,
}
