//! `POST /v1/chat/completions`: from a body to what a model can take, and from its events to answers.
//! Unknown fields are tolerated and named; a field of the wrong type is an error that names it.

mod chunks;
mod completion;
mod extra;
mod logprobs;
mod messages;
mod output;
mod sampling;
mod text_chunk;
mod thinking;
mod tools;
mod usage;

use hob_core::chat::{Conversation, PipelineJob, Prompt, Reading};
use hob_core::{ChatRequest, KeepAlive};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::messages::ChatMessage;
use crate::WireError;
use crate::fields::Fields;
use crate::keep_alive::{KeepAliveField, keep_alive};
use crate::pipelines::is_chat_task;
use crate::request_value::{Name, count_within, token_limit};

pub use chunks::ChatChunks;
pub(crate) use chunks::{ChatCompletionChunk, DONE, StatusChunk};
pub use completion::ChatAnswer;
pub(crate) use completion::ChatCompletion;
pub(crate) use logprobs::{ChosenToken, chosen, clamped, lossy};
pub(crate) use messages::{CALLS_MAX, FunctionCall, MESSAGES_MAX, arguments, with_needed_thinking};
pub(crate) use output::{FlatFormat, OutputFields, flat_format, output};
pub(crate) use sampling::SamplingFields;
pub(crate) use thinking::{EffortOrBool, ThinkingFields, effort_of, thinking};
pub(crate) use tools::{Choice, ChoiceObject, FunctionField, ToolFields, flat_tools, tools};
pub(crate) use usage::{AnswerNote, ChatTimings, ChatUsage, Ended, PromptShare};

/// A parsed request. Its names are not yet checked against a model.
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
    /// The chunk with the tokens has no choices, and many readers index `choices[0]` of every chunk.
    Unwanted,
}

/// How an answer says what the model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallShape {
    ToolCalls,
    /// As before there were tools: one call, without an id.
    FunctionCall,
}

/// The fields of `POST /v1/chat/completions` that no other route shares.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ChatFields {
    /// The conversation, at most 10,000 messages.
    messages: Vec<ChatMessage>,
    /// Output tokens. Absent, zero or below: until the context is full.
    #[serde(default, deserialize_with = "token_limit")]
    max_completion_tokens: Option<u32>,
    /// An older name of `max_completion_tokens`.
    #[serde(default, deserialize_with = "token_limit")]
    max_tokens: Option<u32>,
    /// `["text"]`: models here write. `/v1/audio/speech` reads aloud.
    modalities: Option<Vec<String>>,
    /// `true`: while the model is loading, the stream says so in `reasoning_content`. Default: `false`.
    loading_status: Option<bool>,
    /// What Open WebUI wants: `chat`, or a job such as `title_generation`, which a team gives to a small model. `filter/inlet` adds it.
    x_hob_task: Option<String>,
    /// The chat of Open WebUI. `filter/inlet` adds it, and it has no effect.
    #[expect(dead_code, reason = "taken, so that no server behind hob gets it")]
    x_hob_chat: Option<String>,
}

/// Fields of chat and of completions.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct AnswerFields {
    /// An alias, a model of `/v1/models`, or `UPSTREAM/MODEL`. Default: the default chat model.
    model: Option<Name>,
    /// Number of answers, 1 to 8. Default: 1.
    #[serde(default, deserialize_with = "count_within::<_, 1, 8>")]
    #[schemars(range(min = 1, max = 8))]
    n: Option<u32>,
    /// `true` sends server-sent events. Default: `false`.
    stream: Option<bool>,
    /// `include_usage` adds a last chunk with the usage.
    #[schemars(with = "Option<StreamOptions>")]
    stream_options: Option<Map<String, Value>>,
    /// How long the model stays in memory after the answer: seconds, or a duration such as `5m`. Below zero: for ever.
    #[serde(default, deserialize_with = "keep_alive")]
    #[schemars(with = "Option<KeepAliveField>")]
    pub(crate) keep_alive: Option<KeepAlive>,
}

/// Options of a stream.
#[derive(Deserialize, JsonSchema)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// Fields of log probabilities, of chat and of Ollama's routes.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct LogprobFields {
    /// `true` adds the log probability of each token. Default: `false`.
    logprobs: Option<bool>,
    /// Likeliest alternatives of each token, 0 to 20. Needs `logprobs`.
    #[serde(default, deserialize_with = "count_within::<_, 0, 20>")]
    #[schemars(range(min = 0, max = 20))]
    top_logprobs: Option<u32>,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_chat(body: &[u8]) -> Result<WireChat, WireError> {
    let mut fields = Fields::parse(body)?;
    let mut ignored = Vec::new();
    let sent: ChatFields = fields.read()?;
    refuse_sound(sent.modalities)?;
    let messages = messages::messages(sent.messages)?;
    let offer = tools::tools(fields.read()?, &mut ignored)?;
    let (thinking, template_arguments) =
        thinking::thinking(fields.read()?, &messages, &mut ignored)?;
    let conversation = Conversation {
        messages: with_needed_thinking(messages, &offer.tools),
        tools: offer.tools,
        tool_choice: offer.choice,
        parallel_tool_calls: offer.parallel,
        template_arguments,
    };
    let (output, strict) = output(fields.read()?)?;
    let mut sampling: SamplingFields = fields.read()?;
    let answer: AnswerFields = fields.read()?;
    let request = ChatRequest {
        prompt: Prompt::Chat(conversation),
        sampling: sampling.sampling(&mut ignored)?,
        // The newer name wins.
        tokens_max: sent.max_completion_tokens.or(sent.max_tokens),
        stop: sampling.stop()?,
        output,
        strict,
        thinking,
        logprobs: logprobs_wanted(&fields.read()?, &mut ignored),
        keep_alive: answer.keep_alive,
        ..ChatRequest::default()
    };
    let (choices, delivery) = (answer.choices(), answer.delivery(&mut ignored)?);
    let tells_loading = sent.loading_status.unwrap_or(false);
    let job = match sent.x_hob_task {
        Some(task) if !is_chat_task(&task) => Some(PipelineJob::Background),
        Some(_) => Some(PipelineJob::Chat),
        // Open WebUI sends an object to Pipelines, and a text to other servers.
        None => fields.has_object("user").then_some(PipelineJob::Unnamed),
    };
    let reading = delivery.reading();
    let request = ChatRequest { reading, extra: fields.rest(), job, ..request };
    let (model, calls, unknown) = (answer.into_model(), offer.shape, fields.into_unknown());
    Ok(WireChat { model, request, choices, delivery, calls, ignored, unknown, tells_loading })
}

impl AnswerFields {
    pub(crate) fn into_model(self) -> Option<String> {
        self.model.map(|name| name.0)
    }

    pub(crate) fn choices(&self) -> u32 {
        self.n.unwrap_or(1)
    }

    pub(crate) fn delivery(&self, ignored: &mut Vec<String>) -> Result<ChatDelivery, WireError> {
        const OPTIONS: &str = "stream_options";
        let mut usage = UsageChunk::Unwanted;
        if let Some(options) = self.stream_options.clone() {
            let mut fields = Fields::of(options);
            let sent: StreamOptions = fields.read().map_err(|error| error.within(OPTIONS))?;
            if sent.include_usage == Some(true) {
                usage = UsageChunk::Wanted;
            }
            ignored.extend(fields.into_unknown().iter().map(|name| format!("{OPTIONS}.{name}")));
        }
        let is_streamed = self.stream == Some(true);
        Ok(if is_streamed { ChatDelivery::Events(usage) } else { ChatDelivery::Whole })
    }
}

pub(crate) fn logprobs_wanted(sent: &LogprobFields, ignored: &mut Vec<String>) -> Option<u8> {
    let top = sent.top_logprobs.unwrap_or(0);
    if sent.logprobs == Some(true) {
        return Some(top as u8);
    }
    if top > 0 {
        ignored.push("top_logprobs".to_owned());
    }
    None
}

/// Chat models answer with text.
fn refuse_sound(modalities: Option<Vec<String>>) -> Result<(), WireError> {
    if modalities.unwrap_or_default().iter().all(|modality| modality == "text") {
        return Ok(());
    }
    let reason = "can only be 'text': chat models here write; /v1/audio/speech reads aloud";
    Err(WireError::invalid("modalities", reason))
}
