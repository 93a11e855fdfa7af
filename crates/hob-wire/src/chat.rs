//! `POST /v1/chat/completions`: from a body to what a model can take, and from its events to answers.
//! Lenient in, strict out: what nobody knows is tolerated and named, what has the wrong type is refused.

mod answer;
mod chunks;
mod logprobs;
mod messages;
mod output;
mod sampling;
mod shapes;
mod thinking;
mod tools;

use std::fmt;

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, Prompt, Reading};
use serde_json::Value;

use crate::WireError;
use crate::fields::{Fields, wrong_type};
use crate::keep_alive::keep_alive;

pub use answer::ChatAnswer;
pub use chunks::ChatChunks;
pub(crate) use chunks::DONE;
pub(crate) use logprobs::{Chosen, chosen, clamped, lossy};
pub(crate) use messages::{CALLS_MAX, MESSAGES_MAX, arguments};
pub(crate) use output::output;
pub(crate) use sampling::{count, sampling, stop, tokens_max};
pub(crate) use shapes::{Ended, PromptShare, TimingsShape, UsageShape};
pub(crate) use thinking::switch;
pub(crate) use tools::tools;

/// Answers to one request.
const CHOICES_MAX: i64 = 8;

/// Alternatives for each token.
const TOP_LOGPROBS_MAX: i64 = 20;

/// What was asked for; nothing of it is checked against a model yet.
#[derive(Clone, Debug, PartialEq)]
pub struct WireChat {
    /// `None`: the default chat model.
    pub model: Option<String>,
    pub request: ChatRequest,
    /// Answers wanted, each of its own: 1 to 8.
    pub choices: u32,
    pub delivery: ChatDelivery,
    pub calls: CallShape,
    /// Parameters without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
    /// Parameters that hob does not know, and whose effect is up to who answers.
    pub unknown: Vec<String>,
    /// `loading_status`: while the model is being loaded, the stream says so in its thinking.
    pub tells_loading: bool,
}

/// How an answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatDelivery {
    /// One JSON object.
    Whole,
    /// Server-sent events.
    Events(UsageChunk),
}

impl ChatDelivery {
    pub(crate) fn reading(self) -> Reading {
        match self {
            ChatDelivery::Whole => Reading::Whole,
            ChatDelivery::Events(_) => Reading::Streamed,
        }
    }
}

/// Whether a stream says at its end how many tokens it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageChunk {
    Wanted,
    /// Many readers index `choices[0]` of every chunk, and that one has none.
    Unwanted,
}

/// How an answer says what the model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallShape {
    ToolCalls,
    /// As before there were tools: one call, without an id.
    FunctionCall,
}

/// What all pieces of an answer say alike.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerHead {
    /// Unique among answers; the wire puts its own prefix before it.
    pub id: String,
    pub created_unix_s: u64,
    /// The name that was asked for.
    pub model: String,
    /// What answered, in a version that changes when answers might.
    pub fingerprint: &'static str,
}

impl fmt::Debug for AnswerHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerHead")
            .field("id", &self.id)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_chat(body: &[u8]) -> Result<WireChat, WireError> {
    let mut fields = Fields::parse(body)?;
    let mut ignored = Vec::new();
    refuse_sound(&mut fields)?;
    let messages = messages::messages(&mut fields)?;
    let offer = tools::tools(&mut fields, &mut ignored)?;
    let (thinking, template_arguments) = thinking::thinking(&mut fields, &messages, &mut ignored)?;
    let conversation = Conversation {
        messages,
        tools: offer.tools,
        tool_choice: offer.choice,
        parallel_tool_calls: offer.parallel,
        template_arguments,
    };
    let (output, strict) = output(&mut fields)?;
    let request = ChatRequest {
        prompt: Prompt::Chat(conversation),
        sampling: sampling(&mut fields, &mut ignored)?,
        tokens_max: chat_tokens_max(&mut fields)?,
        stop: stop(&mut fields)?,
        output,
        strict,
        thinking,
        logprobs: logprobs_wanted(&mut fields, &mut ignored)?,
        keep_alive: keep_alive(&mut fields)?,
        ..ChatRequest::default()
    };
    let delivery = delivery(&mut fields, &mut ignored)?;
    let (model, choices) = (fields.name("model")?, choices(&mut fields)?);
    let tells_loading = fields.flag("loading_status")?.unwrap_or(false);
    let request = ChatRequest { reading: delivery.reading(), extra: fields.rest(), ..request };
    let (calls, unknown) = (offer.shape, fields.into_unknown());
    Ok(WireChat { model, request, choices, delivery, calls, ignored, unknown, tells_loading })
}

pub(crate) fn choices(fields: &mut Fields) -> Result<u32, WireError> {
    Ok(count(fields, "n", 1..=CHOICES_MAX)?.unwrap_or(1))
}

pub(crate) fn delivery(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<ChatDelivery, WireError> {
    let streams = fields.flag("stream")?.unwrap_or(false);
    let mut usage = UsageChunk::Unwanted;
    if let Some(mut options) = fields.object("stream_options")? {
        if options.flag("include_usage")?.unwrap_or(false) {
            usage = UsageChunk::Wanted;
        }
        ignored.extend(options.into_unknown().iter().map(|name| format!("stream_options.{name}")));
    }
    Ok(if streams { ChatDelivery::Events(usage) } else { ChatDelivery::Whole })
}

/// The newer name wins.
fn chat_tokens_max(fields: &mut Fields) -> Result<Option<u32>, WireError> {
    let newer = tokens_max(fields, "max_completion_tokens")?;
    let older = tokens_max(fields, "max_tokens")?;
    Ok(newer.or(older))
}

pub(crate) fn logprobs_wanted(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Option<u8>, WireError> {
    let wanted = fields.flag("logprobs")?.unwrap_or(false);
    let top = count(fields, "top_logprobs", 0..=TOP_LOGPROBS_MAX)?;
    if !wanted && top.is_some_and(|top| top > 0) {
        ignored.push("top_logprobs".to_owned());
    }
    Ok(wanted.then_some(top.unwrap_or(0) as u8))
}

/// An answer that is to be heard is none that is to be read.
fn refuse_sound(fields: &mut Fields) -> Result<(), WireError> {
    for modality in fields.list("modalities")?.unwrap_or_default() {
        match modality {
            Value::String(name) if name == "text" => {}
            Value::String(_) => {
                return Err(WireError::Invalid {
                    field: "modalities",
                    reason: "can only be 'text': chat models here write; \
                             /v1/audio/speech reads aloud"
                        .to_owned(),
                });
            }
            other => return Err(wrong_type("modalities", "a list of strings", &other)),
        }
    }
    Ok(())
}
