//! Chat: messages in, events out. The seam that the embedded engine and upstreams fill.
//! JSON that a request carries (schemas, arguments) passes through unread, as [`JsonText`].

mod shown;

use std::fmt;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

pub use crate::lifecycle::KeepAlive;
use crate::{ModelError, ModelState, Trace};

/// A model that answers. The rules of [`crate::SpeechModel`] hold: refusals by the future, failures
/// as items, dropping stops the work.
pub trait ChatModel: Send + Sync {
    /// What is known of it without loading it.
    fn card(&self) -> &ChatCard;

    /// What the model would do with a request now.
    fn state(&self) -> ModelState;

    /// Resolves once the prompt is known to fit; nothing was computed by then.
    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>>;

    /// Whether it would go on with [`ChatRequest::partial`], and not begin anew.
    fn continues(&self, _request: &ChatRequest) -> bool {
        false
    }

    /// One vector for each input, in order.
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>>;
}

pub type ChatStream = BoxStream<'static, Result<ChatEvent, ModelError>>;

/// What a chat model is, by its file's header or by what its server says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatCard {
    /// Tokens that a prompt and its answer may hold together.
    pub context_tokens: u32,
    /// Tokens that the model was trained with.
    pub trained_context_tokens: u32,
    /// As the header says: `llama`, `qwen3`, …
    pub architecture: String,
    pub parameters: u64,
    /// `Q4_1`, `F16`, …
    pub quantization: String,
    pub file_bytes: u64,
    /// SHA-256 of the file, in hexadecimal, where it is known.
    pub digest: Option<String>,
    /// Of the file, in seconds since 1970.
    pub modified_unix_s: u64,
    /// The Jinja template of conversations; without one the model only continues texts.
    pub template: Option<String>,
    /// It takes tools, in its template's form or described in a system message.
    pub calls_tools: bool,
    /// The template, or the weights, think before they answer.
    pub thinks: bool,
    /// The vocabulary has marks for text to be filled in between two others.
    pub fills_in: bool,
    /// It takes pictures.
    pub sees: bool,
    /// It takes, or refuses itself, parameters that hob does not know ([`ChatRequest::extra`]).
    pub takes_unknown: bool,
}

/// What is asked of a chat model.
#[derive(Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ChatRequest {
    pub prompt: Prompt,
    pub sampling: Sampling,
    /// Of the answer, thinking included. None: until the model ends, or the context is full.
    pub tokens_max: Option<u32>,
    /// The answer ends before the first of these.
    pub stop: Vec<String>,
    pub output: OutputFormat,
    /// As [`Tool::strict`], for the schema of `output`.
    pub strict: bool,
    pub thinking: Thinking,
    /// Log probabilities wanted, with this many alternatives for each token (0 to 20).
    pub logprobs: Option<u8>,
    /// Of prompts that are continued: the answer begins with the prompt. A text prompt is repeated by
    /// whoever asks; token ids become text here, and with `logprobs` the prompt's tokens come first.
    pub echo: bool,
    pub keep_alive: Option<KeepAlive>,
    pub reading: Reading,
    /// What was said of the answer before it broke off. Only for models that go on with it
    /// ([`ChatModel::continues`]): what they say is what follows.
    pub partial: Option<String>,
    /// A JSON object: parameters that hob does not know, for servers that may.
    pub extra: Option<JsonText>,
    /// Stays in the process that made the request.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace: Trace,
}

/// What whoever asked does with an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reading {
    /// Reads it as it comes: what was read cannot be taken back.
    #[default]
    Streamed,
    /// Takes it when it is complete, so that one which breaks off can be made again elsewhere.
    Whole,
}

/// What the model reads.
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Prompt {
    /// Rendered with the model's own template.
    Chat(Conversation),
    /// Continued as it stands.
    Text(String),
    /// Continued as it stands; ids of the model's own vocabulary.
    Tokens(Vec<u32>),
    /// What stands between the two is wanted.
    Infill { prefix: String, suffix: String },
}

impl Default for Prompt {
    fn default() -> Prompt {
        Prompt::Chat(Conversation::default())
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Conversation {
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    pub tool_choice: ToolChoice,
    /// More than one call in one answer.
    pub parallel_tool_calls: bool,
    /// A JSON object whose members the template sees as variables.
    pub template_arguments: Option<JsonText>,
}

#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Message {
    pub role: Role,
    pub text: String,
    /// Who speaks, among several of one role.
    pub name: Option<String>,
    /// What the assistant called.
    pub tool_calls: Vec<ToolCall>,
    /// Which call a tool's message answers.
    pub tool_call_id: Option<String>,
    /// In the order in which they stand in the text.
    pub images: Vec<Image>,
}

/// A picture within a message.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Image {
    /// Byte of the text before which it stands.
    pub at: usize,
    /// An `http:`, `https:` or `data:` address.
    pub url: String,
    /// `low`, `high` or `auto`, where somebody said so.
    pub detail: Option<String>,
}

impl Message {
    pub fn new(role: Role, text: impl Into<String>) -> Message {
        let text = text.into();
        let (tool_calls, images) = (Vec::new(), Vec::new());
        Message { role, text, name: None, tool_calls, tool_call_id: None, images }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    /// As templates and wires write it.
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// A JSON object.
    pub arguments: JsonText,
}

/// A function that the model may call.
#[derive(Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tool {
    pub name: String,
    pub description: Option<String>,
    /// The JSON schema of the arguments; none: an object without members.
    pub parameters: Option<JsonText>,
    /// Refuses the request where `parameters` cannot be enforced whole; otherwise the keywords that
    /// cannot be enforced are left out, and named in the answer's headers.
    pub strict: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    None,
    /// Some tool must be called.
    Required,
    /// This tool must be called.
    Named(String),
}

/// JSON that was parsed once, at the door, and is not looked into here.
#[derive(Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct JsonText(String);

impl JsonText {
    /// `text` is well-formed JSON: whoever makes one has parsed it.
    pub fn parsed(text: impl Into<String>) -> JsonText {
        JsonText(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What users wrote stays out of logs.
impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonText({} bytes)", self.0.len())
    }
}

/// How the next token is chosen; what is none is the model's default.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sampling {
    /// 0 takes the likeliest token; at most 2.
    pub temperature: Option<f32>,
    /// 0 to 1.
    pub top_p: Option<f32>,
    /// 0 means all.
    pub top_k: Option<u32>,
    /// 0 to 1.
    pub min_p: Option<f32>,
    /// Over 1 discourages what was said among the last 64 tokens.
    pub repeat_penalty: Option<f32>,
    /// -2 to 2, for tokens of the answer.
    pub presence_penalty: Option<f32>,
    /// -2 to 2, for tokens of the answer.
    pub frequency_penalty: Option<f32>,
    /// The same seed, request and model give the same answer when nothing runs beside it.
    pub seed: Option<u64>,
    /// Token ids of the model's vocabulary and what is added to their logits, -100 to 100.
    pub logit_bias: Vec<(u32, f32)>,
    /// True never chooses a token that ends the answer, so that the answer goes on to `tokens_max`.
    /// An answer in a form still ends where its form is complete.
    pub ignore_eos: Option<bool>,
}

/// What an answer must look like.
#[derive(Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum OutputFormat {
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// A JSON value of this schema.
    JsonSchema(JsonText),
    Regex(String),
    /// A grammar in llguidance's dialect of Lark.
    Lark(String),
}

/// How much a model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Thinking {
    /// None is the template's own default.
    pub effort: Option<Effort>,
    /// The block is closed after this many tokens, and the answer begins.
    pub tokens_max: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    pub const ALL: [Effort; 7] = [
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::XHigh,
        Effort::Max,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::XHigh => "xhigh",
            Effort::Max => "max",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ChatEvent {
    /// Thinking, apart from the answer.
    Reasoning(String),
    Text(String),
    /// The tokens of the text that comes next.
    Logprobs(Vec<TokenLogprob>),
    /// A call begins; calls are numbered from 0.
    ToolCall {
        index: u32,
        id: String,
        name: String,
    },
    /// More of the call's arguments, which are a JSON object when all are joined.
    ToolArguments {
        index: u32,
        piece: String,
    },
    /// The last event of an answer that is complete.
    Done(Completion),
}

/// How likely one token was.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TokenLogprob {
    pub token: TokenText,
    /// Natural logarithm of the probability, before temperature and top-p. Not a number for a
    /// prompt's first token, before which nothing stood.
    pub logprob: f32,
    /// The likeliest tokens at its place, likeliest first.
    pub top: Vec<(TokenText, f32)>,
}

/// A token's own bytes; not always UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TokenText(pub Vec<u8>);

/// How an answer ended, and what it took.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Completion {
    pub finish: FinishReason,
    pub usage: Usage,
    pub timings: Timings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum FinishReason {
    /// The model ended, or said a stop text.
    Stop,
    /// The answer has its limit of tokens, or the context is full.
    Length,
    /// It ended with calls.
    ToolCalls,
    /// Its server held the rest back.
    ContentFilter,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Usage {
    pub prompt_tokens: u32,
    /// Of the prompt, not computed again.
    pub cached_tokens: u32,
    /// Thinking included.
    pub completion_tokens: u32,
    pub reasoning_tokens: u32,
}

impl Usage {
    pub fn total_tokens(&self) -> u32 {
        self.prompt_tokens + self.completion_tokens
    }
}

/// Where the time of an answer went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timings {
    /// Until the model was in memory, if this request waited for that.
    pub load_ms: f64,
    /// Until its turn came.
    pub queue_ms: f64,
    /// Computing the prompt, until the first token was there.
    pub prompt_ms: f64,
    /// From the first token to the last.
    pub predicted_ms: f64,
}

impl Timings {
    /// Many servers do not say where the time went. Nothing that was measured is all zero.
    pub fn are_known(&self) -> bool {
        *self != Timings::default()
    }
}

/// Texts whose meaning is wanted as numbers.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EmbedRequest {
    pub inputs: Vec<EmbedInput>,
    /// Vectors are cut to this length, then given length 1 again.
    pub dimensions: Option<u32>,
    pub keep_alive: Option<KeepAlive>,
    /// Stays in the process that made the request.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace: Trace,
}

#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EmbedInput {
    Text(String),
    Tokens(Vec<u32>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// Each of Euclidean length 1.
    pub vectors: Vec<Vec<f32>>,
    pub prompt_tokens: u32,
}
