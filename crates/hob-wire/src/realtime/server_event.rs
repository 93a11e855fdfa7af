//! Events of a session as JSON, in the client's dialect. Every event gets an id of its own.
//! Trap: the content of an item is `output_audio` or `output_text`, and the part of an event is `audio` or `text`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::realtime::{ContentRef, OutputPart, RealtimeEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RealtimeDialect;
use super::item::ShownItem;
use super::response::{RealtimeError, ShownResponse};
use super::secret::session_object_of;
use crate::error::json;

/// Writes the events of one session.
#[derive(Debug)]
pub struct RealtimeWriter {
    dialect: RealtimeDialect,
    session_id: String,
    events: u64,
}

/// An event of the server.
#[derive(JsonSchema, Serialize)]
pub(crate) struct RealtimeServerEvent {
    event_id: String,
    #[serde(flatten)]
    body: ServerEventBody,
}

#[derive(JsonSchema, Serialize)]
#[serde(tag = "type")]
#[schemars(inline)]
enum ServerEventBody {
    #[serde(rename = "session.created")]
    SessionCreated(SessionEvent),
    #[serde(rename = "session.updated")]
    SessionUpdated(SessionEvent),
    #[serde(rename = "input_audio_buffer.speech_started")]
    SpeechStarted { item_id: String, audio_start_ms: u64 },
    #[serde(rename = "input_audio_buffer.speech_stopped")]
    SpeechStopped { item_id: String, audio_end_ms: u64 },
    #[serde(rename = "input_audio_buffer.timeout_triggered")]
    TimeoutTriggered { item_id: String, audio_start_ms: u64, audio_end_ms: u64 },
    #[serde(rename = "input_audio_buffer.committed")]
    Committed { item_id: String, previous_item_id: Option<String> },
    #[serde(rename = "input_audio_buffer.cleared")]
    Cleared {},
    #[serde(rename = "conversation.item.added")]
    ItemAdded(ItemEvent),
    #[serde(rename = "conversation.item.done")]
    ItemDone(ItemEvent),
    /// In the older dialect, instead of `added` and `done`.
    #[serde(rename = "conversation.item.created")]
    ItemCreated(ItemEvent),
    #[serde(rename = "conversation.item.retrieved")]
    ItemRetrieved { item: ShownItem },
    #[serde(rename = "conversation.item.truncated")]
    ItemTruncated { item_id: String, content_index: usize, audio_end_ms: u64 },
    #[serde(rename = "conversation.item.deleted")]
    ItemDeleted { item_id: String },
    #[serde(rename = "conversation.item.input_audio_transcription.delta")]
    TranscriptDelta { item_id: String, content_index: usize, delta: String },
    /// What the user probably said after the deltas. The next event about the item replaces it. An addition of hob, for
    /// sessions with `"include": ["hob.interim_text"]`.
    #[serde(rename = "hob.interim_text")]
    InterimText { item_id: String, content_index: usize, text: String },
    #[serde(rename = "conversation.item.input_audio_transcription.completed")]
    TranscriptCompleted {
        item_id: String,
        content_index: usize,
        transcript: String,
        usage: TranscriptUsage,
    },
    #[serde(rename = "conversation.item.input_audio_transcription.failed")]
    TranscriptFailed { item_id: String, content_index: usize, error: RealtimeError },
    #[serde(rename = "response.created")]
    ResponseCreated { response: ShownResponse },
    #[serde(rename = "response.output_item.added")]
    OutputItemAdded(OutputItemEvent),
    #[serde(rename = "response.output_item.done")]
    OutputItemDone(OutputItemEvent),
    #[serde(rename = "response.content_part.added")]
    PartAdded(PartEvent),
    #[serde(rename = "response.content_part.done")]
    PartDone(PartEvent),
    #[serde(rename = "response.output_text.delta")]
    TextDelta(DeltaEvent),
    #[serde(rename = "response.text.delta")]
    BetaTextDelta(DeltaEvent),
    #[serde(rename = "response.output_text.done")]
    TextDone(TextDoneEvent),
    #[serde(rename = "response.text.done")]
    BetaTextDone(TextDoneEvent),
    #[serde(rename = "response.output_audio_transcript.delta")]
    SpokenTextDelta(DeltaEvent),
    #[serde(rename = "response.audio_transcript.delta")]
    BetaSpokenTextDelta(DeltaEvent),
    #[serde(rename = "response.output_audio_transcript.done")]
    SpokenTextDone(SpokenTextDoneEvent),
    #[serde(rename = "response.audio_transcript.done")]
    BetaSpokenTextDone(SpokenTextDoneEvent),
    /// The delta is sound in base64.
    #[serde(rename = "response.output_audio.delta")]
    AudioDelta(DeltaEvent),
    #[serde(rename = "response.audio.delta")]
    BetaAudioDelta(DeltaEvent),
    #[serde(rename = "response.output_audio.done")]
    AudioDone(PlaceOfContent),
    #[serde(rename = "response.audio.done")]
    BetaAudioDone(PlaceOfContent),
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta {
        response_id: String,
        item_id: String,
        output_index: usize,
        call_id: String,
        delta: String,
    },
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone {
        response_id: String,
        item_id: String,
        output_index: usize,
        call_id: String,
        name: String,
        arguments: String,
    },
    #[serde(rename = "response.done")]
    ResponseDone { response: ShownResponse },
    /// How long the answer to a turn took until it became audible, and where the time went. An addition of hob, for
    /// sessions with `"include": ["hob.turn_stages"]`.
    #[serde(rename = "hob.turn_stages")]
    TurnStages { response_id: String, stages_ms: TurnStagesMs },
    #[serde(rename = "error")]
    Error { error: RealtimeError },
}

/// The stages of a turn in milliseconds, from the end of the user's speech to the first audible sample of the answer.
/// Each begins where the one before ends, so they add up to the whole.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(inline)]
pub struct TurnStagesMs {
    /// Until the server was sure that the user had finished.
    pub endpoint: f64,
    /// Until the text of the speech was complete.
    pub stt: f64,
    /// Until the chat model's first text.
    pub llm_ttfat: f64,
    /// Until there was enough text to speak.
    pub sentence: f64,
    /// Until the first audible sample was synthesised.
    pub tts_ttfa: f64,
    /// Until that sample was handed to the socket.
    pub transport: f64,
}

/// The event that tells the client the times of a turn. It is written when its last stage is known, which is after
/// the events that a [`RealtimeWriter`] has written meanwhile.
pub fn turn_stages_event(response_id: &str, stages_ms: TurnStagesMs) -> String {
    let event_id = format!("event_stages_{}", response_id.trim_start_matches("resp_"));
    let body = ServerEventBody::TurnStages { response_id: response_id.to_owned(), stages_ms };
    json(&RealtimeServerEvent { event_id, body })
}

/// The whole session, with an id.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct SessionEvent {
    session: Map<String, Value>,
}

/// An item and the item before it.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct ItemEvent {
    item: ShownItem,
    previous_item_id: Option<String>,
}

/// An item of a response.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct OutputItemEvent {
    response_id: String,
    output_index: usize,
    item: ShownItem,
}

/// A content part: its response, its item, and its place in both.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct PlaceOfContent {
    response_id: String,
    item_id: String,
    output_index: usize,
    content_index: usize,
}

/// A part of an item that begins or is complete.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct PartEvent {
    #[serde(flatten)]
    at: PlaceOfContent,
    part: ShownOutputPart,
}

/// A part of an item, without its sound.
#[derive(JsonSchema, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ShownOutputPart {
    Text { text: String },
    Audio { transcript: String },
}

/// The next piece of a content part.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct DeltaEvent {
    #[serde(flatten)]
    at: PlaceOfContent,
    delta: String,
}

/// The whole text of a content part.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct TextDoneEvent {
    #[serde(flatten)]
    at: PlaceOfContent,
    text: String,
}

/// The whole text of spoken content.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct SpokenTextDoneEvent {
    #[serde(flatten)]
    at: PlaceOfContent,
    transcript: String,
}

/// What a transcript counts as: seconds of sound.
#[derive(JsonSchema, Serialize)]
#[schemars(inline)]
struct TranscriptUsage {
    r#type: &'static str,
    seconds: f64,
}

impl RealtimeWriter {
    /// The session's id is in its events.
    pub fn new(session_id: String, dialect: RealtimeDialect) -> RealtimeWriter {
        RealtimeWriter { dialect, session_id, events: 0 }
    }

    /// The text of an event. `None`: the client's dialect has no such event, or it is sound, which
    /// [`RealtimeWriter::sound`] writes.
    pub fn event(&mut self, event: RealtimeEvent) -> Option<String> {
        let body = self.body(event)?;
        Some(self.write(body))
    }

    /// The event of sound in the response's encoding.
    pub fn sound(&mut self, at: ContentRef, bytes: &[u8]) -> String {
        let event = DeltaEvent { at: at.into(), delta: STANDARD.encode(bytes) };
        let body = self.either(ServerEventBody::AudioDelta, ServerEventBody::BetaAudioDelta, event);
        self.write(body)
    }

    /// The event under its name in the client's dialect.
    fn either<E>(
        &self,
        ga: fn(E) -> ServerEventBody,
        beta: fn(E) -> ServerEventBody,
        event: E,
    ) -> ServerEventBody {
        match self.dialect {
            RealtimeDialect::Ga => ga(event),
            RealtimeDialect::Beta => beta(event),
        }
    }

    fn write(&mut self, body: ServerEventBody) -> String {
        self.events += 1;
        let event_id =
            format!("event_{}_{}", self.session_id.trim_start_matches("sess_"), self.events);
        json(&RealtimeServerEvent { event_id, body })
    }

    fn body(&self, event: RealtimeEvent) -> Option<ServerEventBody> {
        use ServerEventBody as Body;
        let dialect = self.dialect;
        let session = |settings: &_| SessionEvent {
            session: session_object_of(settings, &self.session_id, dialect),
        };
        let shown = |item| ShownItem::of(item, dialect);
        // Speech of the user is the only part of its item.
        let content_index = 0;
        Some(match event {
            RealtimeEvent::SessionCreated(set) => Body::SessionCreated(session(&set)),
            RealtimeEvent::SessionUpdated(set) => Body::SessionUpdated(session(&set)),
            RealtimeEvent::SpeechStarted { item_id, audio_start_ms } => {
                Body::SpeechStarted { item_id, audio_start_ms }
            }
            RealtimeEvent::SpeechStopped { item_id, audio_end_ms } => {
                Body::SpeechStopped { item_id, audio_end_ms }
            }
            RealtimeEvent::IdleTimeout { item_id, audio_start_ms, audio_end_ms } => {
                Body::TimeoutTriggered { item_id, audio_start_ms, audio_end_ms }
            }
            RealtimeEvent::InputCommitted { item_id, previous_item_id } => {
                Body::Committed { item_id, previous_item_id }
            }
            RealtimeEvent::InputCleared => Body::Cleared {},
            RealtimeEvent::ItemAdded { item, previous_item_id } => {
                let event = ItemEvent { item: shown(item), previous_item_id };
                // Clients that know both would add the item twice.
                self.either(Body::ItemAdded, Body::ItemCreated, event)
            }
            RealtimeEvent::ItemDone { .. } if dialect == RealtimeDialect::Beta => return None,
            RealtimeEvent::ItemDone { item, previous_item_id } => {
                Body::ItemDone(ItemEvent { item: shown(item), previous_item_id })
            }
            RealtimeEvent::ItemRetrieved { item } => Body::ItemRetrieved { item: shown(item) },
            RealtimeEvent::ItemTruncated { item_id, content_index, audio_end_ms } => {
                Body::ItemTruncated { item_id, content_index, audio_end_ms }
            }
            RealtimeEvent::ItemDeleted { item_id } => Body::ItemDeleted { item_id },
            RealtimeEvent::TranscriptDelta { item_id, delta } => {
                Body::TranscriptDelta { item_id, content_index, delta }
            }
            RealtimeEvent::InterimText { item_id, text } => {
                Body::InterimText { item_id, content_index, text }
            }
            RealtimeEvent::TranscriptCompleted { item_id, transcript, sound_s } => {
                let usage = TranscriptUsage { r#type: "duration", seconds: sound_s };
                Body::TranscriptCompleted { item_id, content_index, transcript, usage }
            }
            RealtimeEvent::TranscriptFailed { item_id, fault } => {
                Body::TranscriptFailed { item_id, content_index, error: fault.into() }
            }
            RealtimeEvent::ResponseCreated(response) => {
                Body::ResponseCreated { response: ShownResponse::of(response, dialect) }
            }
            RealtimeEvent::ResponseDone(response) => {
                Body::ResponseDone { response: ShownResponse::of(response, dialect) }
            }
            RealtimeEvent::Failed(fault) => Body::Error { error: fault.into() },
            RealtimeEvent::AudioDelta { .. } => return None,
            other => self.output(other)?,
        })
    }

    /// Events of a response's output.
    fn output(&self, event: RealtimeEvent) -> Option<ServerEventBody> {
        use ServerEventBody as Body;
        Some(match event {
            RealtimeEvent::OutputItemAdded { response_id, output_index, item } => {
                let item = ShownItem::of(item, self.dialect);
                Body::OutputItemAdded(OutputItemEvent { response_id, output_index, item })
            }
            RealtimeEvent::OutputItemDone { response_id, output_index, item } => {
                let item = ShownItem::of(item, self.dialect);
                Body::OutputItemDone(OutputItemEvent { response_id, output_index, item })
            }
            RealtimeEvent::PartAdded { at, part } => {
                Body::PartAdded(PartEvent { at: at.into(), part: part.into() })
            }
            RealtimeEvent::PartDone { at, part } => {
                Body::PartDone(PartEvent { at: at.into(), part: part.into() })
            }
            RealtimeEvent::TextDelta { at, delta } => {
                let event = DeltaEvent { at: at.into(), delta };
                self.either(Body::TextDelta, Body::BetaTextDelta, event)
            }
            RealtimeEvent::TextDone { at, text } => {
                let event = TextDoneEvent { at: at.into(), text };
                self.either(Body::TextDone, Body::BetaTextDone, event)
            }
            RealtimeEvent::SpokenTextDelta { at, delta } => {
                let event = DeltaEvent { at: at.into(), delta };
                self.either(Body::SpokenTextDelta, Body::BetaSpokenTextDelta, event)
            }
            RealtimeEvent::SpokenTextDone { at, transcript } => {
                let event = SpokenTextDoneEvent { at: at.into(), transcript };
                self.either(Body::SpokenTextDone, Body::BetaSpokenTextDone, event)
            }
            RealtimeEvent::AudioDone { at } => {
                self.either(Body::AudioDone, Body::BetaAudioDone, at.into())
            }
            RealtimeEvent::ArgumentsDelta { at, call_id, delta } => Body::ArgumentsDelta {
                response_id: at.response_id,
                item_id: at.item_id,
                output_index: at.output_index,
                call_id,
                delta,
            },
            RealtimeEvent::ArgumentsDone { at, call_id, name, arguments } => Body::ArgumentsDone {
                response_id: at.response_id,
                item_id: at.item_id,
                output_index: at.output_index,
                call_id,
                name,
                arguments,
            },
            _ => return None,
        })
    }
}

impl From<ContentRef> for PlaceOfContent {
    fn from(at: ContentRef) -> PlaceOfContent {
        let ContentRef { response_id, item_id, output_index, content_index } = at;
        PlaceOfContent { response_id, item_id, output_index, content_index }
    }
}

impl From<OutputPart> for ShownOutputPart {
    fn from(part: OutputPart) -> ShownOutputPart {
        match part {
            OutputPart::Text(text) => ShownOutputPart::Text { text },
            OutputPart::Audio { transcript } => ShownOutputPart::Audio { transcript },
        }
    }
}
