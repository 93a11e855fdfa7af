//! What a session tells its client. Every event gets its own id when it is written.
//! `hob-wire` writes it in the dialect of the client.

use super::{OutputModality, RealtimeItem, RealtimeSettings, SoundEncoding};

/// One event for the client.
#[derive(Clone, Debug, PartialEq)]
pub enum RealtimeEvent {
    SessionCreated(Box<RealtimeSettings>),
    SessionUpdated(Box<RealtimeSettings>),
    /// `audio_start_ms` counts from the session's first sample. The silence that is kept before speech counts as speech here.
    SpeechStarted {
        item_id: String,
        audio_start_ms: u64,
    },
    SpeechStopped {
        item_id: String,
        audio_end_ms: u64,
    },
    /// Nothing was said for the idle timeout.
    IdleTimeout {
        item_id: String,
        audio_start_ms: u64,
        audio_end_ms: u64,
    },
    InputCommitted {
        item_id: String,
        previous_item_id: Option<String>,
    },
    InputCleared,
    /// Followed by `ItemDone`, at once or when its response has ended.
    ItemAdded {
        item: RealtimeItem,
        previous_item_id: Option<String>,
    },
    ItemDone {
        item: RealtimeItem,
        previous_item_id: Option<String>,
    },
    ItemRetrieved {
        item: RealtimeItem,
    },
    ItemTruncated {
        item_id: String,
        content_index: usize,
        audio_end_ms: u64,
    },
    ItemDeleted {
        item_id: String,
    },
    /// More of what the user said.
    TranscriptDelta {
        item_id: String,
        delta: String,
    },
    /// What the user probably said after the deltas. The next event about the item replaces it.
    InterimText {
        item_id: String,
        text: String,
    },
    TranscriptCompleted {
        item_id: String,
        transcript: String,
        sound_s: f64,
    },
    TranscriptFailed {
        item_id: String,
        fault: RealtimeFault,
    },
    ResponseCreated(RealtimeResponse),
    OutputItemAdded {
        response_id: String,
        output_index: usize,
        item: RealtimeItem,
    },
    OutputItemDone {
        response_id: String,
        output_index: usize,
        item: RealtimeItem,
    },
    PartAdded {
        at: ContentRef,
        part: OutputPart,
    },
    PartDone {
        at: ContentRef,
        part: OutputPart,
    },
    TextDelta {
        at: ContentRef,
        delta: String,
    },
    TextDone {
        at: ContentRef,
        text: String,
    },
    /// The text that the next sound says.
    SpokenTextDelta {
        at: ContentRef,
        delta: String,
    },
    SpokenTextDone {
        at: ContentRef,
        transcript: String,
    },
    /// Mono samples in -1..=1 at the speech model's rate. The writer converts them to the response's encoding.
    AudioDelta {
        at: ContentRef,
        samples: Vec<f32>,
        sample_rate_hz: u32,
    },
    AudioDone {
        at: ContentRef,
    },
    ArgumentsDelta {
        at: ContentRef,
        call_id: String,
        delta: String,
    },
    ArgumentsDone {
        at: ContentRef,
        call_id: String,
        name: String,
        arguments: String,
    },
    /// Follows every `ResponseCreated`, exactly once.
    ResponseDone(RealtimeResponse),
    /// The client's request failed. The session goes on.
    Failed(RealtimeFault),
}

/// Where a piece of output belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentRef {
    pub response_id: String,
    pub item_id: String,
    pub output_index: usize,
    pub content_index: usize,
}

/// A part of an output item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPart {
    Text(String),
    Audio { transcript: String },
}

/// A response so far.
#[derive(Clone, Debug, PartialEq)]
pub struct RealtimeResponse {
    pub id: String,
    pub status: ResponseStatus,
    pub output: Vec<RealtimeItem>,
    pub modality: OutputModality,
    pub encoding: SoundEncoding,
    pub voice: Option<String>,
    pub tokens_max: Option<u32>,
    pub is_out_of_band: bool,
    pub metadata: Vec<(String, String)>,
    /// Set when the response has ended. Zeros if it was stopped before the model counted.
    pub usage: Option<ResponseUsage>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ResponseStatus {
    InProgress,
    Completed,
    Cancelled(StoppedBy),
    /// The token limit was reached.
    Incomplete,
    /// The model's server withheld the rest.
    Withheld,
    Failed(RealtimeFault),
}

/// Who ended a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppedBy {
    /// The user began to speak.
    Speech,
    Client,
}

/// Tokens of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseUsage {
    pub input_tokens: u32,
    pub cached_tokens: u32,
    pub output_tokens: u32,
}

/// Why something failed, in the words for the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealtimeFault {
    /// `invalid_request_error` or `server_error`.
    pub kind: String,
    pub code: Option<String>,
    pub message: String,
    /// The field that is wrong.
    pub param: Option<String>,
    /// The `event_id` of the client's event.
    pub client_event_id: Option<String>,
}
