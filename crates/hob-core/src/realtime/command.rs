//! What a client requests from its session. Sound is not a command: it arrives as samples.
//! A command that fails changes nothing.

use super::{OutputModality, RealtimeItem, RealtimeSettings, SoundEncoding};
use crate::Speed;
use crate::chat::{Thinking, Tool, ToolChoice};

/// One request of the client.
#[derive(Clone, Debug, PartialEq)]
pub enum RealtimeCommand {
    /// The complete new settings.
    Update(Box<RealtimeSettings>),
    /// The turn ends here.
    CommitInput,
    /// Drops the sound that is not committed.
    ClearInput,
    CreateItem {
        item: Box<RealtimeItem>,
        place: ItemPlace,
    },
    RetrieveItem {
        id: String,
    },
    /// The user heard a spoken item only up to `audio_end_ms`. The rest is removed from the conversation.
    TruncateItem {
        id: String,
        content_index: usize,
        audio_end_ms: u64,
    },
    DeleteItem {
        id: String,
    },
    CreateResponse(Box<ResponseOptions>),
    /// `None`: the running response of the conversation.
    CancelResponse {
        id: Option<String>,
    },
    /// The client plays nothing more of what it has received. The running answer ends.
    ClearOutput,
}

/// Where a new item goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ItemPlace {
    #[default]
    Last,
    First,
    After(String),
}

/// A response that the client requests. Fields with `None` keep the session's settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseOptions {
    /// The response is not part of the conversation, and may run at the same time as another one.
    pub is_out_of_band: bool,
    /// What the model reads in place of the conversation.
    pub input: Option<Vec<ResponseInput>>,
    pub instructions: Option<String>,
    pub output: Option<OutputModality>,
    pub voice: Option<String>,
    pub speech_model: Option<String>,
    pub speed: Option<Speed>,
    pub output_encoding: Option<SoundEncoding>,
    pub tools: Option<Vec<Tool>>,
    pub tool_choice: Option<ToolChoice>,
    pub parallel_tool_calls: Option<bool>,
    /// `Some(None)`: no limit.
    pub tokens_max: Option<Option<u32>>,
    pub thinking: Option<Thinking>,
    /// Names and values of the client's, which the response repeats.
    pub metadata: Vec<(String, String)>,
}

/// One item of a response's own input.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseInput {
    Item(RealtimeItem),
    /// The id of an item of the conversation.
    Reference(String),
}
