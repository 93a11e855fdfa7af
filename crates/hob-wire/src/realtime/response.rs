//! Responses as JSON: what a client asks for, and what the server reports about one.
//! A field that the client leaves out is as the session says.

use hob_core::realtime::{
    OutputModality, RealtimeFault, RealtimeResponse, RealtimeSettings, ResponseInput,
    ResponseOptions, ResponseStatus, StoppedBy,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RealtimeDialect;
use super::item::{SentItem, ShownItem};
use super::session::{
    FormatField, OutputAudioSettings, RealtimeReasoning, format_of, modality, thinking,
};
use super::tools::{RealtimeChoice, RealtimeTool, TokenLimit, choice_of, offer, tools_of};
use crate::WireError;
use crate::request_value::{Either, JsonKind, Name, RequestValue, check_count, each};
use crate::word::Word;

/// Items of a response's own input.
const INPUT_MAX: usize = 1_000;

/// Names and values of the client's.
const METADATA_MAX: usize = 16;

/// A response that the client asks for.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct SentResponse {
    /// `none`: the response is not part of the conversation and may run at the same time as another one. Default: `auto`.
    conversation: Option<Name>,
    /// Replaces the conversation: items, or `{"type": "item_reference", "id": …}`.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    input: Option<Vec<Value>>,
    instructions: Option<String>,
    /// `["audio"]` or `["text"]`.
    output_modalities: Option<Vec<Word<OutputModality>>>,
    audio: Option<SentResponseAudio>,
    tools: Option<Vec<RealtimeTool>>,
    tool_choice: Option<Either<String, RealtimeChoice>>,
    /// `false` allows one call in the answer. Default: as the session says.
    parallel_tool_calls: Option<bool>,
    max_output_tokens: Option<TokenLimit>,
    reasoning: Option<RealtimeReasoning>,
    /// At most 16 texts with names, which the response repeats.
    metadata: Option<Map<String, Value>>,
}

/// The sound of a response.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
struct SentResponseAudio {
    output: Option<OutputAudioSettings>,
}

/// An item of the conversation, by its id.
#[derive(Deserialize)]
struct ItemReference {
    id: Name,
}

impl JsonKind for SentResponse {}

impl SentResponse {
    /// # Errors
    /// A value is not possible. The error names its field within the response.
    pub(super) fn options(self, settings: &RealtimeSettings) -> Result<ResponseOptions, WireError> {
        let output = self.audio.unwrap_or_default().output.unwrap_or_default();
        let sound = output.checked().map_err(|error| error.within("audio.output"))?;
        let (tools, tool_choice) = match (self.tools, self.tool_choice) {
            (None, None) => (None, None),
            (Some(tools), None) => {
                let kept = Some(choice_of(&settings.tool_choice));
                // The session's choice may need a tool that the response does not have.
                let offered = offer(tools.clone(), kept).or_else(|_| offer(tools, None));
                let (tools, choice) = offered?;
                (Some(tools), Some(choice))
            }
            (tools, choice) => {
                let has_tools = tools.is_some();
                let tools = tools.unwrap_or_else(|| tools_of(&settings.tools));
                let (tools, choice) = offer(tools, choice)?;
                (has_tools.then_some(tools), Some(choice))
            }
        };
        Ok(ResponseOptions {
            is_out_of_band: self.conversation.is_some_and(|Name(name)| name == "none"),
            input: self.input.map(input).transpose()?,
            instructions: self.instructions,
            output: self.output_modalities.map(modality).transpose()?,
            voice: sound.voice,
            speech_model: sound.model,
            speed: sound.speed,
            output_encoding: sound.encoding,
            tools,
            tool_choice,
            parallel_tool_calls: self.parallel_tool_calls,
            tokens_max: self.max_output_tokens.map(|limit| limit.0),
            thinking: self.reasoning.map(|sent| thinking(Some(sent), settings.thinking)),
            metadata: self.metadata.map_or(Ok(Vec::new()), metadata)?,
        })
    }
}

fn input(sent: Vec<Value>) -> Result<Vec<ResponseInput>, WireError> {
    each("input", sent, ("items", INPUT_MAX), |value| {
        if value["type"] == "item_reference" {
            let reference = ItemReference::deserialize(RequestValue(value))?;
            return Ok(ResponseInput::Reference(reference.id.0));
        }
        let item = SentItem::deserialize(RequestValue(value)).and_then(SentItem::item);
        item.map(ResponseInput::Item)
    })
}

fn metadata(sent: Map<String, Value>) -> Result<Vec<(String, String)>, WireError> {
    check_count("metadata", sent.len(), ("names", METADATA_MAX))?;
    let one = |(name, value): (String, Value)| {
        let text = Option::<String>::deserialize(RequestValue(value));
        let text = text.map_err(|error| error.within(&name).within("metadata"))?;
        Ok((name, text.unwrap_or_default()))
    };
    sent.into_iter().map(one).collect()
}

/// A response as the server reports it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ShownResponse {
    id: String,
    object: &'static str,
    /// `in_progress`, `completed`, `cancelled`, `incomplete` or `failed`.
    status: &'static str,
    status_details: Option<ResponseStatusDetails>,
    output: Vec<ShownItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_modalities: Option<Vec<Word<OutputModality>>>,
    /// `output_modalities` in the older dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    modalities: Option<Vec<Word<OutputModality>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<ShownResponseAudio>,
    max_output_tokens: TokenLimit,
    /// Null for a response that is not part of the conversation.
    conversation_id: Option<&'static str>,
    /// The names and values of the client's.
    metadata: Option<Map<String, Value>>,
    /// Null until the response has ended. Zeros if it was stopped before the model counted.
    usage: Option<RealtimeUsage>,
}

/// Why a response ended as it did.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct ResponseStatusDetails {
    /// The status again.
    r#type: &'static str,
    /// `turn_detected`, `client_cancelled`, `max_output_tokens` or `content_filter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RealtimeError>,
}

/// What failed.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct RealtimeError {
    /// `invalid_request_error` or `server_error`.
    r#type: String,
    code: Option<String>,
    message: String,
    /// The field at fault, as a path.
    param: Option<String>,
    /// The `event_id` of the client's event.
    event_id: Option<String>,
}

/// The sound of a response.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct ShownResponseAudio {
    output: ShownResponseOutput,
}

/// How the sound of a response travels.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct ShownResponseOutput {
    /// hob writes an object.
    format: FormatField,
    voice: Option<String>,
}

/// Tokens of a response. They are tokens of text, because the chat model reads and writes text.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct RealtimeUsage {
    total_tokens: u32,
    input_tokens: u32,
    output_tokens: u32,
    input_token_details: RealtimeInputTokens,
    output_token_details: RealtimeOutputTokens,
}

/// Tokens of the prompt, by their kind.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct RealtimeInputTokens {
    cached_tokens: u32,
    text_tokens: u32,
    audio_tokens: u32,
}

/// Tokens of the answer, by their kind.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct RealtimeOutputTokens {
    text_tokens: u32,
    audio_tokens: u32,
}

/// The name of the only conversation of a session.
const CONVERSATION: &str = "conv_1";

impl ShownResponse {
    pub(super) fn of(response: RealtimeResponse, dialect: RealtimeDialect) -> ShownResponse {
        let (status, status_details) = status(response.status);
        let item = |item| ShownItem::of(item, dialect);
        let modalities = match (response.modality, dialect) {
            (OutputModality::Audio, RealtimeDialect::Beta) => {
                vec![Word(OutputModality::Audio), Word(OutputModality::Text)]
            }
            (output, _) => vec![Word(output)],
        };
        let (output_modalities, modalities) = match dialect {
            RealtimeDialect::Ga => (Some(modalities), None),
            RealtimeDialect::Beta => (None, Some(modalities)),
        };
        let output =
            ShownResponseOutput { format: format_of(response.encoding), voice: response.voice };
        let metadata = response.metadata.into_iter().map(|(name, text)| (name, text.into()));
        let metadata: Map<String, Value> = metadata.collect();
        ShownResponse {
            id: response.id,
            object: "realtime.response",
            status,
            status_details,
            output: response.output.into_iter().map(item).collect(),
            output_modalities,
            modalities,
            audio: (response.modality == OutputModality::Audio)
                .then_some(ShownResponseAudio { output }),
            max_output_tokens: TokenLimit(response.tokens_max),
            conversation_id: (!response.is_out_of_band).then_some(CONVERSATION),
            metadata: (!metadata.is_empty()).then_some(metadata),
            usage: response.usage.map(|usage| RealtimeUsage {
                total_tokens: usage.input_tokens + usage.output_tokens,
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                input_token_details: RealtimeInputTokens {
                    cached_tokens: usage.cached_tokens,
                    text_tokens: usage.input_tokens,
                    audio_tokens: 0,
                },
                output_token_details: RealtimeOutputTokens {
                    text_tokens: usage.output_tokens,
                    audio_tokens: 0,
                },
            }),
        }
    }
}

fn status(status: ResponseStatus) -> (&'static str, Option<ResponseStatusDetails>) {
    let details = |r#type, reason| ResponseStatusDetails { r#type, reason, error: None };
    let details = match status {
        ResponseStatus::InProgress => return ("in_progress", None),
        ResponseStatus::Completed => details("completed", None),
        ResponseStatus::Cancelled(StoppedBy::Speech) => details("cancelled", Some("turn_detected")),
        ResponseStatus::Cancelled(StoppedBy::Client) => {
            details("cancelled", Some("client_cancelled"))
        }
        ResponseStatus::Incomplete => details("incomplete", Some("max_output_tokens")),
        ResponseStatus::Withheld => details("incomplete", Some("content_filter")),
        ResponseStatus::Failed(fault) => {
            ResponseStatusDetails { error: Some(fault.into()), ..details("failed", None) }
        }
    };
    (details.r#type, Some(details))
}

impl From<RealtimeFault> for RealtimeError {
    fn from(fault: RealtimeFault) -> RealtimeError {
        RealtimeError {
            r#type: fault.kind,
            code: fault.code,
            message: fault.message,
            param: fault.param,
            event_id: fault.client_event_id,
        }
    }
}
