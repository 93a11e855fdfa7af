//! What a chat worker is told and what it says, beyond what every worker is and does.
//! A request comes in pieces, because a long conversation is larger than a frame may be.

use std::time::Duration;

use hob_core::chat::{
    ChatEvent, ChatRequest, Completion, Conversation, Effort, EmbedInput, EmbedRequest,
    FinishReason, Image, JsonText, KeepAlive, Message, OutputFormat, Prompt, Reading, Role,
    Sampling, Thinking, Timings, TokenLogprob, TokenText, Tool, ToolCall, ToolChoice, Usage,
};
use hob_core::{ModelError, Trace};

use super::codec::{Coded, coded_enum, coded_struct, decode, encode};
use crate::frame::{Fields, Frame, FrameError};
use crate::worker::protocol::{MODEL_KINDS, Order};

const PIECE: u8 = MODEL_KINDS;
const END: u8 = MODEL_KINDS + 1;
const ACCEPTED: u8 = MODEL_KINDS + 16;
const EVENT: u8 = MODEL_KINDS + 17;
const REFUSED: u8 = MODEL_KINDS + 18;
const EMBEDDED: u8 = MODEL_KINDS + 19;
const COMPILING: u8 = MODEL_KINDS + 20;
const COMPILED: u8 = MODEL_KINDS + 21;

/// Bytes of a request in one frame.
pub const PIECE_BYTES_MAX: usize = 256 << 10;

/// Bytes of a whole request; the server's own limit of a body is far below.
pub const REQUEST_BYTES_MAX: usize = 64 << 20;

/// What is asked of the worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    Chat {
        request: Box<ChatRequest>,
        /// Events that may be sent before more credit comes.
        credit: u32,
    },
    Embed {
        request: EmbedRequest,
    },
}

/// To a chat worker.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatOrder {
    Any(Order),
    /// More bytes of the stream's task.
    Piece {
        stream: u32,
        bytes: Vec<u8>,
    },
    /// The task is complete.
    End {
        stream: u32,
    },
}

/// From a chat worker, about one stream.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatReport {
    /// The prompt fits; the answer will come.
    Accepted {
        stream: u32,
        /// Keywords of the request's schemas that the answer is not held to.
        ignored: Vec<String>,
    },
    /// The request's grammar is being compiled. One at a time: a worker that ends now ends of it.
    Compiling {
        stream: u32,
    },
    Compiled {
        stream: u32,
    },
    Event {
        stream: u32,
        event: ChatEvent,
    },
    Refused {
        stream: u32,
        refusal: Refusal,
    },
    /// The whole answer to [`Task::Embed`], one vector a frame.
    Embedded {
        stream: u32,
        vector: Vector,
    },
}

/// Why a task is not begun.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    TooLong { needed: u32, available: u32 },
    NoTemplate,
    Field { field: String, reason: String },
    Busy { retry_after_ms: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    pub values: Vec<f32>,
    pub tokens: u32,
}

/// What the model says of itself when it is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    pub context_tokens: u32,
    /// Requests that are worked on at once.
    pub parallel: u32,
    pub vram_bytes: u64,
}

/// Fields that a refusal may name; an error names them by static text.
const FIELDS: [&str; 8] = [
    "messages",
    "prompt",
    "input",
    "tools",
    "tool_choice",
    "response_format",
    "max_tokens",
    "suffix",
];

impl Refusal {
    /// As every model says it.
    pub fn into_error(self) -> ModelError {
        match self {
            Refusal::TooLong { needed, available } => ModelError::TooLong { needed, available },
            Refusal::NoTemplate => ModelError::NoTemplate,
            Refusal::Field { field, reason } => {
                let known = FIELDS.into_iter().find(|known| *known == field);
                ModelError::InvalidField { field: known.unwrap_or("messages"), reason }
            }
            Refusal::Busy { retry_after_ms } => {
                ModelError::Busy { retry_after: Duration::from_millis(retry_after_ms) }
            }
        }
    }
}

impl Task {
    /// The frames that carry the task.
    pub fn to_frames(&self, stream: u32) -> Vec<Frame> {
        let bytes = encode(self);
        let pieces = bytes.chunks(PIECE_BYTES_MAX);
        let pieces = pieces.map(|piece| Frame::new(PIECE, stream, piece.to_vec()));
        pieces.chain([Frame::new(END, stream, Vec::new())]).collect()
    }

    /// # Errors
    /// The bytes are no task's.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Task, FrameError> {
        decode(Frame::new(END, 0, bytes).fields())
    }
}

impl ChatOrder {
    /// # Errors
    /// The kind is unknown or its payload malformed.
    pub fn from_frame(frame: &Frame) -> Result<ChatOrder, FrameError> {
        if let Some(order) = Order::from_frame(frame)? {
            return Ok(ChatOrder::Any(order));
        }
        let stream = frame.stream;
        match frame.kind {
            PIECE => Ok(ChatOrder::Piece { stream, bytes: frame.payload.clone() }),
            END => frame.fields().end().map(|()| ChatOrder::End { stream }),
            kind => Err(FrameError::UnknownKind { kind }),
        }
    }
}

impl ChatReport {
    pub fn to_frame(&self) -> Frame {
        match self {
            ChatReport::Accepted { stream, ignored } => {
                Frame::new(ACCEPTED, *stream, encode(ignored))
            }
            ChatReport::Compiling { stream } => Frame::new(COMPILING, *stream, Vec::new()),
            ChatReport::Compiled { stream } => Frame::new(COMPILED, *stream, Vec::new()),
            ChatReport::Event { stream, event } => Frame::new(EVENT, *stream, encode(event)),
            ChatReport::Refused { stream, refusal } => {
                Frame::new(REFUSED, *stream, encode(refusal))
            }
            ChatReport::Embedded { stream, vector } => {
                Frame::new(EMBEDDED, *stream, encode(vector))
            }
        }
    }

    /// # Errors
    /// The kind is unknown or its payload malformed.
    pub fn from_frame(frame: &Frame) -> Result<ChatReport, FrameError> {
        let stream = frame.stream;
        let fields = frame.fields();
        Ok(match frame.kind {
            ACCEPTED => ChatReport::Accepted { stream, ignored: decode(fields)? },
            COMPILING => fields.end().map(|()| ChatReport::Compiling { stream })?,
            COMPILED => fields.end().map(|()| ChatReport::Compiled { stream })?,
            EVENT => ChatReport::Event { stream, event: decode(fields)? },
            REFUSED => ChatReport::Refused { stream, refusal: decode(fields)? },
            EMBEDDED => ChatReport::Embedded { stream, vector: decode(fields)? },
            kind => return Err(FrameError::UnknownKind { kind }),
        })
    }
}

impl About {
    pub fn to_payload(&self) -> Vec<u8> {
        encode(self)
    }

    /// None when the bytes are none of [`About::to_payload`].
    pub fn from_payload(payload: &[u8]) -> Option<About> {
        decode(Frame::new(END, 0, payload.to_vec()).fields()).ok()
    }
}

coded_enum!(Task { 0 Chat { request, credit }, 1 Embed { request } });
coded_enum!(Refusal {
    0 TooLong { needed, available },
    1 NoTemplate,
    2 Field { field, reason },
    3 Busy { retry_after_ms },
});
coded_struct!(Vector { values, tokens });
coded_struct!(About { context_tokens, parallel, vram_bytes });
coded_struct!(ChatRequest {
    prompt,
    sampling,
    tokens_max,
    stop,
    output,
    strict,
    thinking,
    logprobs,
    echo,
    keep_alive,
    reading,
    partial,
    extra,
    trace,
});
coded_enum!(Reading { 0 Streamed, 1 Whole });

/// Stays with whoever sent the request.
impl Coded for Trace {
    fn put(&self, _: &mut Vec<u8>) {}

    fn take(_: &mut Fields<'_>) -> Result<Trace, FrameError> {
        Ok(Trace::default())
    }
}

coded_enum!(Prompt {
    0 Chat(conversation),
    1 Text(text),
    2 Tokens(tokens),
    3 Infill { prefix, suffix },
});
coded_struct!(Conversation {
    messages,
    tools,
    tool_choice,
    parallel_tool_calls,
    template_arguments,
});
coded_struct!(Message { role, text, name, tool_calls, tool_call_id, images });
coded_struct!(Image { at, url, detail });
coded_enum!(Role { 0 System, 1 User, 2 Assistant, 3 Tool });
coded_struct!(ToolCall { id, name, arguments });
coded_struct!(Tool { name, description, parameters, strict });
coded_enum!(ToolChoice { 0 Auto, 1 None, 2 Required, 3 Named(name) });
coded_struct!(Sampling {
    temperature,
    top_p,
    top_k,
    min_p,
    repeat_penalty,
    presence_penalty,
    frequency_penalty,
    seed,
    logit_bias,
    ignore_eos,
});
coded_enum!(OutputFormat {
    0 Text,
    1 JsonObject,
    2 JsonSchema(schema),
    3 Regex(pattern),
    4 Lark(grammar),
});
coded_struct!(Thinking { effort, tokens_max });
coded_enum!(Effort { 0 None, 1 Minimal, 2 Low, 3 Medium, 4 High, 5 XHigh, 6 Max });
coded_enum!(KeepAlive { 0 For(time), 1 Forever });
coded_enum!(ChatEvent {
    0 Reasoning(text),
    1 Text(text),
    2 Logprobs(logprobs),
    3 ToolCall { index, id, name },
    4 ToolArguments { index, piece },
    5 Done(completion),
});
coded_struct!(TokenLogprob { token, logprob, top });
coded_struct!(Completion { finish, usage, timings });
coded_enum!(FinishReason { 0 Stop, 1 Length, 2 ToolCalls, 3 ContentFilter });
coded_struct!(Usage { prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens });
coded_struct!(Timings { load_ms, queue_ms, prompt_ms, predicted_ms });
coded_struct!(EmbedRequest { inputs, dimensions, keep_alive, trace });
coded_enum!(EmbedInput { 0 Text(text), 1 Tokens(tokens) });

impl Coded for JsonText {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_str().to_owned().put(out);
    }

    fn take(from: &mut Fields<'_>) -> Result<JsonText, FrameError> {
        String::take(from).map(JsonText::parsed)
    }
}

impl Coded for TokenText {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(from: &mut Fields<'_>) -> Result<TokenText, FrameError> {
        Coded::take(from).map(TokenText)
    }
}

impl Coded for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        (u64::try_from(self.as_millis()).unwrap_or(u64::MAX)).put(out);
    }

    fn take(from: &mut Fields<'_>) -> Result<Duration, FrameError> {
        u64::take(from).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests;
