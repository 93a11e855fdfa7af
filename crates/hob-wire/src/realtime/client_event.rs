//! One event of a client: sound, or a command for the session.
//! An unknown type and a wrong field are errors that name the field and the client's `event_id`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::realtime::{
    ItemPlace, RealtimeCommand, RealtimeFault, RealtimeSettings, SessionKind,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::item::SentItem;
use super::merge::{changed, nested};
use super::realtime_fault;
use super::response::SentResponse;
use super::session::chosen_model;
use crate::WireError;
use crate::fields::Fields;
use crate::request_value::{Name, RequestValue};

/// Bytes of sound in one `input_audio_buffer.append`.
pub const SOUND_BYTES_MAX: usize = 15 << 20;

/// What a client sends.
#[derive(Clone, PartialEq)]
pub enum ClientInput {
    /// Bytes of sound, cut anywhere.
    Sound(Vec<u8>),
    Command {
        command: RealtimeCommand,
        /// The client's own id of the event.
        event_id: Option<String>,
    },
}

/// Keeps sound and texts out of logs.
impl std::fmt::Debug for ClientInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientInput::Sound(bytes) => write!(f, "Sound({} bytes)", bytes.len()),
            ClientInput::Command { event_id, .. } => write!(f, "Command({event_id:?})"),
        }
    }
}

/// The query of `GET /v1/realtime`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RealtimeQueryFields {
    /// The chat model or alias. Default: the server's default, also for `gpt-realtime`.
    model: Option<Name>,
    /// `transcription`: the session transcribes and never answers.
    intent: Option<RealtimeIntent>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RealtimeIntent {
    Transcription,
}

/// The settings of a session that is opened with this query.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_realtime_query(
    pairs: &[(String, String)],
    defaults: RealtimeSettings,
) -> Result<RealtimeSettings, WireError> {
    let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
    let members = pairs.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let sent: RealtimeQueryFields = Fields::of(members.collect()).read()?;
    let kind = sent.intent.map(|RealtimeIntent::Transcription| SessionKind::Transcription);
    let model = chosen_model(sent.model.map(|name| name.0), defaults.model.as_ref());
    Ok(RealtimeSettings {
        model: model.or(defaults.model),
        kind: kind.unwrap_or(defaults.kind),
        ..defaults
    })
}

/// An event of a client. `type` decides which other fields count.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RealtimeClientEvent {
    r#type: EventType,
    /// For `session.update`: a change of the settings. What it leaves out stays, and `null` clears.
    session: Option<Map<String, Value>>,
    /// For `input_audio_buffer.append`: sound in base64, at most 15 MiB of it.
    audio: Option<String>,
    /// For `conversation.item.create`.
    item: Option<SentItem>,
    /// For `conversation.item.create`: the item before the new one, or `root`. Default: the last one.
    previous_item_id: Option<Name>,
    /// For `conversation.item.retrieve`, `truncate` and `delete`.
    item_id: Option<Name>,
    /// For `conversation.item.truncate`: the part that was heard.
    content_index: Option<u32>,
    /// For `conversation.item.truncate`: so much of it was heard.
    #[serde(default, deserialize_with = "milliseconds")]
    audio_end_ms: Option<u64>,
    /// For `response.create`.
    #[schemars(with = "Option<SentResponse>")]
    response: Option<Map<String, Value>>,
    /// For `response.cancel`. Default: the running response of the conversation.
    response_id: Option<Name>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[schemars(inline)]
enum EventType {
    #[serde(rename = "session.update")]
    SessionUpdate,
    /// The older name of `session.update` for a transcription session.
    #[serde(rename = "transcription_session.update")]
    TranscriptionUpdate,
    #[serde(rename = "input_audio_buffer.append")]
    Append,
    #[serde(rename = "input_audio_buffer.commit")]
    Commit,
    #[serde(rename = "input_audio_buffer.clear")]
    Clear,
    #[serde(rename = "conversation.item.create")]
    Create,
    #[serde(rename = "conversation.item.retrieve")]
    Retrieve,
    #[serde(rename = "conversation.item.truncate")]
    Truncate,
    #[serde(rename = "conversation.item.delete")]
    Delete,
    #[serde(rename = "response.create")]
    Respond,
    #[serde(rename = "response.cancel")]
    Cancel,
    #[serde(rename = "output_audio_buffer.clear")]
    ClearOutput,
}

/// The client's own name for an event, which errors repeat.
#[derive(Deserialize)]
struct EventId {
    event_id: Option<Name>,
}

/// Reads one event. `settings` are those in force.
///
/// # Errors
/// The event cannot be understood. The fault is the answer to the client.
pub fn parse_client_event(
    text: &[u8],
    settings: &RealtimeSettings,
) -> Result<ClientInput, RealtimeFault> {
    let mut fields = Fields::parse(text).map_err(|error| realtime_fault(&error, None))?;
    let id: EventId = fields.read().map_err(|error| realtime_fault(&error, None))?;
    let event_id = id.event_id.map(|id| id.0);
    let input = fields.read().and_then(|event| read(event, settings));
    match input {
        Ok(Input::Sound(bytes)) => Ok(ClientInput::Sound(bytes)),
        Ok(Input::Command(command)) => Ok(ClientInput::Command { command, event_id }),
        Err(error) => Err(realtime_fault(&error, event_id)),
    }
}

enum Input {
    Sound(Vec<u8>),
    Command(RealtimeCommand),
}

fn read(event: RealtimeClientEvent, settings: &RealtimeSettings) -> Result<Input, WireError> {
    Ok(Input::Command(match event.r#type {
        EventType::Append => {
            let audio = event.audio.ok_or_else(|| WireError::missing("audio"))?;
            return sound(&audio).map(Input::Sound);
        }
        EventType::SessionUpdate | EventType::TranscriptionUpdate => {
            let mut change = event.session.ok_or_else(|| WireError::missing("session"))?;
            if event.r#type == EventType::TranscriptionUpdate {
                change.insert("type".to_owned(), "transcription".into());
            }
            let settings = changed(settings, change);
            RealtimeCommand::Update(Box::new(settings.map_err(|error| error.within("session"))?))
        }
        EventType::Commit => RealtimeCommand::CommitInput,
        EventType::Clear => RealtimeCommand::ClearInput,
        EventType::Create => {
            let item = event.item.ok_or_else(|| WireError::missing("item"))?;
            let item = Box::new(item.item().map_err(|error| error.within("item"))?);
            RealtimeCommand::CreateItem { item, place: place(event.previous_item_id) }
        }
        EventType::Retrieve => RealtimeCommand::RetrieveItem { id: item_id(event.item_id)? },
        EventType::Truncate => RealtimeCommand::TruncateItem {
            id: item_id(event.item_id)?,
            content_index: event.content_index.unwrap_or_default() as usize,
            audio_end_ms: event.audio_end_ms.ok_or_else(|| WireError::missing("audio_end_ms"))?,
        },
        EventType::Delete => RealtimeCommand::DeleteItem { id: item_id(event.item_id)? },
        EventType::Respond => {
            let sent = Value::Object(nested(event.response.unwrap_or_default()));
            let sent = SentResponse::deserialize(RequestValue(sent));
            let options = sent.and_then(|sent| sent.options(settings));
            let options = options.map_err(|error| error.within("response"))?;
            RealtimeCommand::CreateResponse(Box::new(options))
        }
        EventType::Cancel => {
            RealtimeCommand::CancelResponse { id: event.response_id.map(|id| id.0) }
        }
        EventType::ClearOutput => RealtimeCommand::ClearOutput,
    }))
}

fn sound(audio: &str) -> Result<Vec<u8>, WireError> {
    // Four characters are three bytes.
    let bytes = audio.len() / 4 * 3;
    if bytes > SOUND_BYTES_MAX {
        let reason = format!("has {bytes} bytes of sound and the limit is {SOUND_BYTES_MAX}");
        return Err(WireError::invalid("audio", reason));
    }
    let decoded = STANDARD.decode(audio);
    decoded.map_err(|error| WireError::invalid("audio", format!("is not valid base64: {error}")))
}

fn place(previous: Option<Name>) -> ItemPlace {
    match previous {
        None => ItemPlace::Last,
        Some(Name(id)) if id == "root" => ItemPlace::First,
        Some(Name(id)) => ItemPlace::After(id),
    }
}

fn item_id(sent: Option<Name>) -> Result<String, WireError> {
    sent.map(|id| id.0).ok_or_else(|| WireError::missing("item_id"))
}

/// A time, as a whole number that is not negative.
fn milliseconds<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let sent = Option::<i64>::deserialize(value)?;
    let negative = |ms| serde::de::Error::custom(format_args!("must not be negative, and is {ms}"));
    sent.map(|ms| u64::try_from(ms).map_err(|_| negative(ms))).transpose()
}
