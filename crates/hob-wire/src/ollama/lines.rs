//! Events of a chat model as Ollama's lines, or gathered into its one object.
//! Tool calls leave whole, because Ollama's clients read objects. A server may send more arguments of an earlier call
//! after a later one has begun, so a call whose arguments are no complete object waits for the end of the answer.
//! A call that is not complete at the end was cut off. It becomes text, because no client could read it as a call.

use std::time::{Duration, SystemTime};

use hob_core::ChatEvent;
use hob_core::chat::{Completion, FinishReason, Prompt, Role, TokenLogprob};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::context;
use super::request::OllamaDelivery;
use super::time::{nanoseconds, rfc3339};
use crate::chat::{ChosenToken, chosen};
use crate::error::json;

/// The route whose format the answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OllamaShape {
    /// `message`, of `/api/chat`.
    Chat,
    /// `response`, of `/api/generate`.
    Generate,
}

/// An answer on its way.
pub struct OllamaAnswer {
    shape: OllamaShape,
    model: String,
    delivery: OllamaDelivery,
    content: AnswerContent,
    /// Calls that have not left, in their order.
    calls: Vec<Call>,
    /// For [`OllamaShape::Generate`] of a conversation: its turns, the last of which is this answer.
    turns: Option<Vec<(Role, String)>>,
}

hob_core::debug_fields!(OllamaAnswer: shape, model, delivery);

/// The content of one line, or of the whole answer if it is not streamed.
#[derive(Default)]
struct AnswerContent {
    text: String,
    thinking: String,
    calls: Vec<Call>,
    logprobs: Vec<TokenLogprob>,
}

struct Call {
    id: String,
    index: u32,
    name: String,
    arguments: String,
}

/// A line of an answer, or a whole answer, of `POST /api/chat` and `POST /api/generate`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaLine<'a> {
    model: &'a str,
    created_at: String,
    #[serde(flatten)]
    text: OllamaText<'a>,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    done_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Vec<u32>>,
    #[serde(flatten)]
    took: Option<OllamaTimes>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logprobs: Vec<ChosenToken<'a>>,
}

/// The text of a line: `message` for `/api/chat`, `response` for `/api/generate`.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
enum OllamaText<'a> {
    Chat {
        message: OllamaAnswerMessage<'a>,
    },
    Generate {
        response: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        thinking: &'a str,
    },
}

/// A message of the assistant.
#[derive(JsonSchema, Serialize)]
struct OllamaAnswerMessage<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OllamaAnswerCall<'a>>,
}

/// A call that the model makes.
#[derive(JsonSchema, Serialize)]
struct OllamaAnswerCall<'a> {
    id: &'a str,
    function: OllamaFunction<'a>,
}

/// The function of a call.
#[derive(JsonSchema, Serialize)]
struct OllamaFunction<'a> {
    index: u32,
    name: &'a str,
    arguments: Map<String, Value>,
}

/// Times in nanoseconds, left out where the server that answered did not report them.
#[derive(JsonSchema, Serialize)]
struct OllamaTimes {
    total_duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_duration: Option<u64>,
    prompt_eval_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_eval_duration: Option<u64>,
    eval_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_duration: Option<u64>,
}

/// The answer to a request without a prompt: the model is in memory.
pub fn ollama_loaded(shape: OllamaShape, model: &str, at: SystemTime) -> String {
    line(model, at, shape, &AnswerContent::default(), Some((("load", None), None)))
}

/// The answer to a request without a prompt and with a `keep_alive` of zero: the model is not in memory any more.
pub fn ollama_unloaded(shape: OllamaShape, model: &str, at: SystemTime) -> String {
    line(model, at, shape, &AnswerContent::default(), Some((("unload", None), None)))
}

impl OllamaAnswer {
    pub fn new(shape: OllamaShape, model: &str, delivery: OllamaDelivery) -> OllamaAnswer {
        let (model, content) = (model.to_owned(), AnswerContent::default());
        OllamaAnswer { shape, model, delivery, content, calls: Vec::new(), turns: None }
    }

    /// Ends an answer of `/api/generate` with the `context` by which the next request continues it.
    #[must_use]
    pub fn remembering(mut self, prompt: &Prompt) -> OllamaAnswer {
        if let (OllamaShape::Generate, Prompt::Chat(conversation)) = (self.shape, prompt) {
            let turns = conversation.messages.iter().map(|turn| (turn.role, turn.text.clone()));
            self.turns = Some(turns.chain([(Role::Assistant, String::new())]).collect());
        }
        self
    }

    /// The lines that an event makes, each with its line break; often none. `at` is now, and
    /// `since` the time since the request came.
    pub fn take(&mut self, event: ChatEvent, at: SystemTime, since: Duration) -> String {
        let done = self.note(event);
        let mut lines = String::new();
        let is_streamed = self.delivery == OllamaDelivery::Lines;
        if is_streamed && !self.content.is_empty() {
            lines = self.line(at, None);
            self.content = AnswerContent::default();
        }
        if let Some(completion) = done {
            lines +=
                &self.line(at, Some((reason(completion.finish), Some(took(completion, since)))));
        }
        lines
    }

    fn note(&mut self, event: ChatEvent) -> Option<Completion> {
        match event {
            ChatEvent::Reasoning(piece) => self.content.thinking += &piece,
            ChatEvent::Text(piece) => {
                self.content.text += &piece;
                if let Some((_, answer)) = self.turns.as_mut().and_then(|turns| turns.last_mut()) {
                    *answer += &piece;
                }
            }
            ChatEvent::Status { .. } | ChatEvent::Extra(_) | ChatEvent::TurnEnd { .. } => {}
            ChatEvent::Logprobs(tokens) => self.content.logprobs.extend(tokens),
            ChatEvent::ToolCall { index, id, name } => {
                let complete = self.calls.iter().take_while(|call| call.is_complete()).count();
                self.content.calls.extend(self.calls.drain(..complete));
                self.calls.push(Call { id, index, name, arguments: String::new() });
            }
            ChatEvent::ToolArguments { index, piece } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.index == index) {
                    call.arguments += &piece;
                }
            }
            ChatEvent::Done(completion) => {
                self.calls.drain(..).for_each(|call| self.content.finish(call));
                return Some(completion);
            }
        }
        None
    }

    fn line(&self, at: SystemTime, end: Option<(&'static str, Option<OllamaTimes>)>) -> String {
        let turns = self.turns.as_ref().filter(|_| end.is_some());
        let context =
            turns.map(|turns| context::of(turns.iter().map(|(role, text)| (*role, text.as_str()))));
        line(&self.model, at, self.shape, &self.content, end.map(|end| (end, context))) + "\n"
    }
}

impl AnswerContent {
    fn is_empty(&self) -> bool {
        let is_wordless = self.text.is_empty() && self.thinking.is_empty();
        is_wordless && self.calls.is_empty() && self.logprobs.is_empty()
    }

    /// Adds a call to which no argument follows.
    fn finish(&mut self, mut call: Call) {
        if call.arguments.trim().is_empty() {
            call.arguments = "{}".to_owned();
        }
        if call.is_complete() {
            self.calls.push(call);
        } else {
            self.text += &format!("\n{} {}", call.name, call.arguments);
        }
    }
}

impl Call {
    /// Whether the arguments are a whole object, so that none can follow.
    fn is_complete(&self) -> bool {
        self.object().is_some()
    }

    fn object(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(&self.arguments).ok()
    }
}

/// How an answer ended: the reason and the times, and the `context` for the next request.
type End = ((&'static str, Option<OllamaTimes>), Option<Vec<u32>>);

fn line(
    model: &str,
    at: SystemTime,
    shape: OllamaShape,
    content: &AnswerContent,
    end: Option<End>,
) -> String {
    let done = end.is_some();
    let (end, context) = end.map_or((None, None), |(end, context)| (Some(end), context));
    let (done_reason, took) = end.map_or((None, None), |(reason, took)| (Some(reason), took));
    let (text, logprobs) = (text_of(shape, content), content.logprobs.iter().map(chosen).collect());
    let created_at = rfc3339(at);
    json(&OllamaLine { model, created_at, text, done, done_reason, context, took, logprobs })
}

fn text_of(shape: OllamaShape, content: &AnswerContent) -> OllamaText<'_> {
    let AnswerContent { text, thinking, calls, .. } = content;
    match shape {
        OllamaShape::Generate => OllamaText::Generate { response: text, thinking },
        OllamaShape::Chat => {
            let tool_calls = calls.iter().map(wire_call).collect();
            let message =
                OllamaAnswerMessage { role: "assistant", content: text, thinking, tool_calls };
            OllamaText::Chat { message }
        }
    }
}

fn wire_call(call: &Call) -> OllamaAnswerCall<'_> {
    let arguments = call.object().unwrap_or_default();
    let function = OllamaFunction { index: call.index, name: &call.name, arguments };
    OllamaAnswerCall { id: &call.id, function }
}

/// Ollama has no reason of its own for an answer that ends with calls or with a team's budget, or is held back.
fn reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop
        | FinishReason::ToolCalls
        | FinishReason::ContentFilter
        | FinishReason::BudgetSpent(_) => "stop",
        FinishReason::Length => "length",
    }
}

fn took(completion: Completion, since: Duration) -> OllamaTimes {
    let Completion { usage, timings, .. } = completion;
    let span = |ms: f64| timings.are_known().then(|| nanoseconds(ms));
    OllamaTimes {
        total_duration: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
        load_duration: span(timings.load_ms),
        prompt_eval_count: usage.prompt_tokens,
        prompt_eval_duration: span(timings.prompt_ms),
        eval_count: usage.completion_tokens,
        eval_duration: span(timings.predicted_ms),
    }
}
