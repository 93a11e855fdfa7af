//! `/api/chat` and `/api/generate`: from a body to a request for an answer, or to load or unload the model.
//! Both stream unless `stream` is false.

use std::time::Duration;

use hob_core::chat::{Conversation, Message, Prompt, Reading, Role, Thinking};
use hob_core::{ChatRequest, KeepAlive};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::context;
use super::images::{images, refuse};
use super::messages::{OllamaMessage, messages};
use super::options::{FormatField, OllamaOptions, format, options};
use crate::WireError;
use crate::chat::{EffortOrBool, effort_of, logprobs_wanted, tools, with_needed_thinking};
use crate::fields::Fields;
use crate::keep_alive::{KeepAliveField, keep_alive};
use crate::request_value::Name;

/// A parsed request. Its names are not yet checked against a model.
#[derive(Clone, Debug, PartialEq)]
pub struct OllamaRequest {
    /// `None`: the default chat model.
    pub model: Option<String>,
    pub action: OllamaAction,
    pub delivery: OllamaDelivery,
    /// `num_ctx`: the context length that the client requests.
    pub context_tokens: Option<u32>,
    /// Fields without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

/// A request without a prompt is about memory only.
#[derive(Clone, Debug, PartialEq)]
pub enum OllamaAction {
    Answer(Box<ChatRequest>),
    Load(Option<KeepAlive>),
    Unload,
}

/// How the answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OllamaDelivery {
    /// A line of JSON for each piece.
    Lines,
    /// One JSON object.
    Whole,
}

impl OllamaDelivery {
    /// By the field `stream`.
    pub(super) fn of(stream: Option<bool>) -> OllamaDelivery {
        if stream == Some(false) { OllamaDelivery::Whole } else { OllamaDelivery::Lines }
    }

    fn reading(self) -> Reading {
        match self {
            OllamaDelivery::Lines => Reading::Streamed,
            OllamaDelivery::Whole => Reading::Whole,
        }
    }
}

/// The fields of `POST /api/chat` and `POST /api/generate`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OllamaFields {
    /// An alias, or a chat model with or without its tag. Default: the default chat model.
    model: Option<Name>,
    /// Another name of `model`, for older clients.
    name: Option<Name>,
    /// `false` sends one JSON object. Default: `true`, lines of JSON.
    stream: Option<bool>,
    /// How long the model stays in memory after the answer: seconds, or a duration such as `5m`. Below zero: for ever.
    #[serde(default, deserialize_with = "keep_alive")]
    #[schemars(with = "Option<KeepAliveField>")]
    keep_alive: Option<KeepAlive>,
    /// Sampling and sizes, as Ollama names them.
    #[schemars(with = "Option<OllamaOptions>")]
    options: Option<Map<String, Value>>,
    /// `json`, or a JSON Schema that the answer follows.
    format: Option<FormatField>,
    /// `true`, `false` or a level of thinking.
    think: Option<EffortOrBool>,
    /// Without effect: hob never shortens a prompt.
    truncate: Option<bool>,
    /// Without effect: hob never forgets the beginning of a conversation.
    shift: Option<bool>,
}

/// The fields of `POST /api/chat` alone.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OllamaChatFields {
    /// The conversation, at most 10,000 messages. Without messages, the request only loads the model.
    messages: Option<Vec<OllamaMessage>>,
}

/// The fields of `POST /api/generate` alone.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OllamaGenerateFields {
    /// The text to answer. Without a text, the request only loads the model.
    prompt: Option<String>,
    /// Text after the answer. The model fills in between.
    suffix: Option<String>,
    /// The system message.
    system: Option<String>,
    /// `true` sends the prompt without the chat template. Default: `false`.
    raw: Option<bool>,
    /// The `context` of hob's last answer, to continue its conversation.
    context: Option<Vec<Value>>,
    /// Pictures in base64, at most 256.
    images: Option<Vec<String>>,
    /// Refused: hob renders the model's own template.
    template: Option<String>,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_chat(body: &[u8]) -> Result<OllamaRequest, WireError> {
    let mut fields = Fields::parse(body)?;
    let mut ignored = Vec::new();
    let offer = tools(fields.read()?, &mut ignored)?;
    let OllamaChatFields { messages: sent } = fields.read()?;
    let prompt = messages(sent)?.map(|messages| {
        Prompt::Chat(Conversation {
            messages: with_needed_thinking(messages, &offer.tools),
            tools: offer.tools,
            tool_choice: offer.choice,
            parallel_tool_calls: offer.parallel,
            template_arguments: None,
        })
    });
    finish(fields, prompt, ignored)
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_generate(body: &[u8]) -> Result<OllamaRequest, WireError> {
    let mut fields = Fields::parse(body)?;
    let mut ignored = Vec::new();
    let prompt = generate_prompt(fields.read()?, &mut ignored)?;
    finish(fields, prompt, ignored)
}

fn generate_prompt(
    sent: OllamaGenerateFields,
    ignored: &mut Vec<String>,
) -> Result<Option<Prompt>, WireError> {
    let present = |text: &String| !text.is_empty();
    if sent.template.is_some_and(|template| !template.is_empty()) {
        let reason = "cannot be replaced: hob renders the model's own; set 'raw' to write all of \
                      the prompt yourself";
        return Err(WireError::invalid("template", reason));
    }
    let prompt = sent.prompt.filter(present);
    let suffix = sent.suffix.filter(present);
    let system = sent.system.filter(present);
    let is_raw = sent.raw == Some(true);
    let before = context::read(sent.context)?;
    let images = images(sent.images, prompt.as_deref().map_or(0, str::len))?;
    if is_raw || suffix.is_some() {
        refuse(&images)?;
        ignored.extend(system.is_some().then(|| "system".to_owned()));
        ignored.extend((!before.is_empty()).then(|| "context".to_owned()));
    }
    Ok(match (prompt, suffix) {
        (None, None) if images.is_empty() => None,
        (prefix, Some(suffix)) => {
            Some(Prompt::Infill { prefix: prefix.unwrap_or_default(), suffix })
        }
        (Some(text), None) if is_raw => Some(Prompt::Text(text)),
        (text, None) => {
            let user = Message { images, ..Message::new(Role::User, text.unwrap_or_default()) };
            let messages = after(before, system).into_iter().chain([user]).collect();
            Some(Prompt::Chat(Conversation { messages, ..Conversation::default() }))
        }
    })
}

/// The turns before this one, under the system message that was named last.
fn after(mut before: Vec<Message>, system: Option<String>) -> Vec<Message> {
    if let Some(text) = system {
        before.retain(|message| message.role != Role::System);
        before.insert(0, Message::new(Role::System, text));
    }
    before
}

/// The fields that both routes share.
fn finish(
    mut fields: Fields,
    prompt: Option<Prompt>,
    mut ignored: Vec<String>,
) -> Result<OllamaRequest, WireError> {
    let sent: OllamaFields = fields.read()?;
    let options = options(sent.options, &mut ignored)?;
    let output = format(sent.format)?;
    ignored.extend((sent.truncate == Some(true)).then(|| "truncate".to_owned()));
    ignored.extend((sent.shift == Some(true)).then(|| "shift".to_owned()));
    let logprobs = logprobs_wanted(&fields.read()?, &mut ignored);
    let context_tokens = options.context_tokens;
    let delivery = OllamaDelivery::of(sent.stream);
    let action = match (prompt, sent.keep_alive) {
        (Some(prompt), keep_alive) => OllamaAction::Answer(Box::new(ChatRequest {
            prompt,
            sampling: options.sampling,
            tokens_max: options.tokens_max,
            stop: options.stop,
            output,
            thinking: Thinking { effort: sent.think.map(effort_of), tokens_max: None },
            logprobs,
            keep_alive,
            reading: delivery.reading(),
            ..ChatRequest::default()
        })),
        (None, Some(KeepAlive::For(Duration::ZERO))) => OllamaAction::Unload,
        (None, keep_alive) => OllamaAction::Load(keep_alive),
    };
    ignored.extend(fields.into_unknown());
    Ok(OllamaRequest {
        model: super::model_of(sent.model, sent.name),
        action,
        delivery,
        context_tokens,
        ignored,
    })
}
