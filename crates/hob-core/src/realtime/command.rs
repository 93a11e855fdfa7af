//! What a client asks of its session. Sound is not a command: it arrives as samples.
//! A command that fails changes nothing.

use super::{OutputModality, RealtimeItem, RealtimeSettings, SoundEncoding};
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
    /// The user heard so much of a spoken item, and no more.
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
    /// The client plays nothing of what it has received.
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

/// A response that the client asks for. `None`: as the session's settings say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseOptions {
    /// The response is not part of the conversation, and may run at the same time as another one.
    pub is_out_of_band: bool,
    /// Replaces the conversation.
    pub input: Option<Vec<ResponseInput>>,
    pub instructions: Option<String>,
    pub output: Option<OutputModality>,
    pub voice: Option<String>,
    pub output_encoding: Option<SoundEncoding>,
    pub tools: Option<Vec<Tool>>,
    pub tool_choice: Option<ToolChoice>,
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
