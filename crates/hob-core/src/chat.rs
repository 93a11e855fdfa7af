//! Chat: messages in, events out. The embedded engine and upstreams implement this.
//! JSON that a request carries (schemas, arguments) passes through unparsed, as [`JsonText`].

mod completion;
mod debug;
mod key_limit;

use std::fmt;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

pub use crate::lifecycle::KeepAlive;
use crate::{ModelError, ModelState, Trace, enum_table};

pub use completion::{BudgetUnit, Completion, FinishReason, SpentBudget, Timings, Usage};

/// Bytes of text for each token in most languages, for estimates.
pub const BYTES_PER_TOKEN: usize = 4;

/// A model that answers. The rules of [`crate::SpeechModel`] hold: the future rejects, failures are
/// items of the stream, and dropping stops the work.
pub trait ChatModel: Send + Sync {
    /// What is known without loading the model.
    fn card(&self) -> &ChatCard;

    /// Whether a team of agents may answer: also one that is a target of this alias, or a model of another server. The card
    /// does not know these, because it is made once.
    fn is_team(&self) -> bool {
        self.card().is_team
    }

    /// What the model would do with a request now. A model that is never loaded is always ready.
    fn state(&self) -> ModelState {
        ModelState::Ready
    }

    /// Resolves when the prompt is known to fit. Nothing has been computed by then.
    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>>;

    /// Whether the model continues [`ChatRequest::partial`], instead of starting over.
    fn continues(&self, _request: &ChatRequest) -> bool {
        false
    }

    /// One vector for each input, in order.
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>>;
}

pub type ChatStream = BoxStream<'static, Result<ChatEvent, ModelError>>;

/// Properties of a chat model, from its file's header or from its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatCard {
    /// Tokens that a prompt and its answer may hold together.
    pub context_tokens: u32,
    /// Longest context that the model was trained with.
    pub trained_context_tokens: u32,
    /// From the header: `llama`, `qwen3`, …
    pub architecture: String,
    pub parameters: u64,
    /// `Q4_1`, `F16`, …
    pub quantization: String,
    pub file_bytes: u64,
    /// SHA-256 of the file, in hexadecimal, where it is known.
    pub digest: Option<String>,
    /// Modification time of the file, in seconds since 1970.
    pub modified_unix_s: u64,
    /// The Jinja template of conversations. Without one the model only continues texts.
    pub template: Option<String>,
    /// Accepts tools, in its template's form or described in a system message.
    pub calls_tools: bool,
    /// May think before it answers: its template mentions thinking, or it is a team or a model of another server.
    pub thinks: bool,
    /// The vocabulary has tokens for fill-in-the-middle.
    pub infills: bool,
    /// Accepts images.
    pub sees: bool,
    /// A team of agents answers.
    pub is_team: bool,
    /// Made for embeddings: its file says how the vectors of a text become one.
    pub is_embedder: bool,
    /// Has recurrent layers, whose state cannot be cut back to an earlier token.
    pub is_recurrent: bool,
    /// Accepts parameters that hob does not know, or rejects them itself ([`ChatRequest::extra`]).
    pub takes_unknown: bool,
    /// With [`ChatRequest::echo`] and `logprobs`, reports the tokens of a text prompt, too.
    pub scores_prompts: bool,
}

/// A request to a chat model.
#[derive(Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ChatRequest {
    pub prompt: Prompt,
    pub sampling: Sampling,
    /// Limit for the answer, thinking included. `None`: until the model stops or the context is full.
    pub tokens_max: Option<u32>,
    /// The caller's key allows no more tokens for the answer, whatever an alias sets.
    pub key_tokens_max: Option<u32>,
    /// The answer ends before the first of these texts.
    pub stop: Vec<String>,
    pub output: OutputFormat,
    /// Like [`Tool::strict`], for the schema of `output`.
    pub strict: bool,
    pub thinking: Thinking,
    /// Requests log probabilities, with this many alternatives for each token (0 to 20).
    pub logprobs: Option<u8>,
    /// For continued prompts: the answer begins with the prompt. The API handler repeats a text prompt;
    /// the model turns token ids into text, and with `logprobs` puts the prompt's tokens first.
    pub echo: bool,
    pub keep_alive: Option<KeepAlive>,
    pub reading: Reading,
    /// The text so far of an answer that broke off. Only for models that can continue it
    /// ([`ChatModel::continues`]); they send only what follows.
    pub partial: Option<String>,
    /// A JSON object with parameters that hob does not know, for servers that may know them.
    pub extra: Option<JsonText>,
    /// What the request is for, from a client that uses hob as Pipelines.
    pub job: Option<PipelineJob>,
    /// Asks whether the user's last message is complete. hob's own models then send [`ChatEvent::TurnEnd`] first, if they
    /// can. Other models ignore it.
    pub judges_turn: bool,
    /// Not sent to other processes.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace: Trace,
}

/// What a client that uses hob as Pipelines wants of a team. Such a client shows [`ChatEvent::Status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PipelineJob {
    Chat,
    /// A small job about a chat: its title, its tags or the next questions.
    Background,
    /// The client does not say which.
    Unnamed,
}

/// How the client reads the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reading {
    /// As a stream: text that was sent cannot be withdrawn.
    #[default]
    Streamed,
    /// As a stream whose reader pauses it, so that the cores are free for other work. hob's own models compute at most
    /// [`Reading::EVENTS_AHEAD_MAX`] events before the reader asks for them, and none if they compute only this answer.
    Paced,
    /// As one body: an answer that breaks off can be made again by another target.
    Whole,
}

impl Reading {
    /// With two, an answer that is computed with others misses no step while its reader asks for more.
    pub const EVENTS_AHEAD_MAX: u32 = 2;

    pub fn is_streamed(self) -> bool {
        self != Reading::Whole
    }
}

/// The input of the model.
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Prompt {
    /// Rendered with the model's own template.
    Chat(Conversation),
    /// Continued as it stands.
    Text(String),
    /// Token ids of the model's own vocabulary, continued as they stand.
    Tokens(Vec<u32>),
    /// Asks for the text between the two.
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
    /// Allows more than one call in one answer.
    pub parallel_tool_calls: bool,
    /// A JSON object whose members the template sees as variables.
    pub template_arguments: Option<JsonText>,
}

#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Message {
    pub role: Role,
    pub text: String,
    /// The speaker, among several with the same role.
    pub name: Option<String>,
    /// What the assistant thought before it wrote this.
    pub reasoning: Option<String>,
    /// Calls that the assistant made.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's message answers.
    pub tool_call_id: Option<String>,
    /// In the order of their positions in the text.
    pub images: Vec<Image>,
}

/// An image within a message.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Image {
    /// Byte of the text before which the image stands.
    pub at: usize,
    /// An `http:`, `https:` or `data:` address.
    pub url: String,
    /// `low`, `high` or `auto`, if the client set it.
    pub detail: Option<String>,
}

impl Message {
    pub fn new(role: Role, text: impl Into<String>) -> Message {
        let text = text.into();
        Message {
            role,
            text,
            name: None,
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            images: Vec::new(),
        }
    }
}

enum_table! {
    /// Who wrote a message. The names are those in templates and in APIs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub enum Role: name {
        System = "system",
        User = "user",
        Assistant = "assistant",
        Tool = "tool",
    }
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// A JSON object; in a call that a model has written, any text until it is checked.
    pub arguments: JsonText,
}

/// A function that the model may call.
#[derive(Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tool {
    pub name: String,
    pub description: Option<String>,
    /// The JSON schema of the arguments. `None`: an object without members.
    pub parameters: Option<JsonText>,
    /// Rejects the request if `parameters` cannot be enforced completely. Otherwise the engine ignores the keywords
    /// that it cannot enforce, and the answer's headers name them.
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

/// JSON that was parsed once, when it arrived. This crate does not read it.
#[derive(Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct JsonText(String);

impl JsonText {
    /// The caller guarantees that `text` is well-formed JSON.
    pub fn parsed(text: impl Into<String>) -> JsonText {
        JsonText(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Keeps user text out of logs.
impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonText({} bytes)", self.0.len())
    }
}

/// How the next token is chosen. `None` means the model's default.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sampling {
    /// 0 takes the most likely token; at most 2.
    pub temperature: Option<f32>,
    /// 0 to 1.
    pub top_p: Option<f32>,
    /// 0 means all.
    pub top_k: Option<u32>,
    /// 0 to 1.
    pub min_p: Option<f32>,
    /// Above 1 discourages tokens that occurred among the last 64.
    pub repeat_penalty: Option<f32>,
    /// -2 to 2, for tokens of the answer.
    pub presence_penalty: Option<f32>,
    /// -2 to 2, for tokens of the answer.
    pub frequency_penalty: Option<f32>,
    /// The same seed, request and model give the same answer if no other request is computed at the same time.
    pub seed: Option<u64>,
    /// Token ids of the model's vocabulary, and what is added to their logits (-100 to 100).
    pub logit_bias: Vec<(u32, f32)>,
    /// Never chooses a token that ends the answer, so the answer goes on to `tokens_max`.
    /// A structured answer still ends when its structure is complete.
    pub ignore_eos: Option<bool>,
}

/// The required form of an answer.
#[derive(Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum OutputFormat {
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// A JSON value that matches this schema.
    JsonSchema(JsonText),
    Regex(String),
    /// A grammar in llguidance's dialect of Lark.
    Lark(String),
}

impl OutputFormat {
    /// The request field that sets this form. Errors name it.
    pub fn field(&self) -> &'static str {
        match self {
            OutputFormat::Text | OutputFormat::JsonObject | OutputFormat::JsonSchema(_) => {
                "response_format"
            }
            OutputFormat::Regex(_) => "regex",
            OutputFormat::Lark(_) => "grammar",
        }
    }
}

/// How much a model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Thinking {
    /// `None`: the template's default.
    pub effort: Option<Effort>,
    /// hob closes the thinking block after this many tokens, and the answer begins.
    pub tokens_max: Option<u32>,
}

enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub enum Effort: name or UnknownEffort("a thinking effort") {
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        XHigh = "xhigh",
        Max = "max",
    }
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ChatEvent {
    /// How likely the user's last message is complete, from 0 to 1, if its last sentence mark is left out. It is no part of
    /// the answer. Only for requests with [`ChatRequest::judges_turn`].
    TurnEnd {
        probability: f32,
    },
    /// Thinking, apart from the answer.
    Reasoning(String),
    Text(String),
    /// The tokens of the text in the next event.
    Logprobs(Vec<TokenLogprob>),
    /// A call begins; calls are numbered from 0.
    ToolCall {
        index: u32,
        id: String,
        name: String,
    },
    /// More of the call's arguments. All pieces together are a JSON object.
    ToolArguments {
        index: u32,
        piece: String,
    },
    /// What a team does now, for clients that show it apart from the answer. Only for requests with a
    /// [`ChatRequest::job`].
    Status {
        text: String,
        progress: StatusProgress,
    },
    /// The last event of a complete answer.
    Done(Completion),
    /// Comes right before [`ChatEvent::Done`], for clients that speak the protocol of the server that answered.
    Extra(UnknownFields),
}

/// Fields of another server's answer that hob does not know. Each part is a JSON object, which may be empty.
///
/// They may hold the server's own names and ids, such as the `id` in Groq's `x_groq`. An alias does not hide these: every
/// answer names its target in `x-hob-target`, and the id finds the request in the server's log.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnknownFields {
    /// Next to the choices.
    pub answer: JsonText,
    /// Next to the message of a choice.
    pub choice: JsonText,
    /// Within the message.
    pub message: JsonText,
}

impl UnknownFields {
    /// Length of the JSON.
    pub fn bytes(&self) -> usize {
        [&self.answer, &self.choice, &self.message]
            .into_iter()
            .map(|part| part.as_str().len())
            .sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum StatusProgress {
    /// Another status follows.
    Running,
    Done,
}

/// How likely one token was.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TokenLogprob {
    pub token: TokenText,
    /// Natural logarithm of the probability, before temperature and top-p. NaN for the first token of a
    /// prompt, because no token precedes it.
    pub logprob: f32,
    /// The most likely tokens at this position, most likely first.
    pub top: Vec<(TokenText, f32)>,
}

/// The bytes of a token; not always valid UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TokenText(pub Vec<u8>);

/// Texts to turn into embedding vectors.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EmbedRequest {
    pub inputs: Vec<EmbedInput>,
    /// Vectors are cut to this length, then normalised again.
    pub dimensions: Option<u32>,
    pub keep_alive: Option<KeepAlive>,
    /// Not sent to other processes.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace: Trace,
}

#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EmbedInput {
    Text(String),
    Tokens(Vec<u32>),
}

impl EmbedInput {
    /// Estimates the tokens.
    pub fn tokens_guess(&self) -> usize {
        match self {
            EmbedInput::Text(text) => text.len().div_ceil(BYTES_PER_TOKEN),
            EmbedInput::Tokens(tokens) => tokens.len(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// Each has Euclidean length 1.
    pub vectors: Vec<Vec<f32>>,
    pub prompt_tokens: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effort_is_read_by_its_name() {
        assert!(Effort::ALL.iter().all(|effort| effort.name().parse::<Effort>() == Ok(*effort)));
        let unknown = "lots".parse::<Effort>().expect_err("no effort").to_string();
        let names = "none, minimal, low, medium, high, xhigh or max";
        assert_eq!(unknown, format!("'lots' is not a thinking effort (expected {names})"));
    }
}
