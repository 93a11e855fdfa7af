//! The whole answer as one `chat.completion`, folded from the events of all its choices.
//! `content` is a string unless there are calls: Open WebUI's title jobs read it unguarded.

use hob_core::chat::{Completion, TokenLogprob};
use hob_core::{ChatEvent, UnknownFields};
use schemars::JsonSchema;
use serde::Serialize;

use super::CallShape;
use super::extra::{add_members, add_to_choice};
use super::logprobs::{ChatLogprobs, logprobs};
use super::usage::{AnswerNote, ChatTimings, ChatUsage, Ended, OutputKinds, PromptShare};
use crate::error::json;
use crate::openai_answer::{AnswerHead, CollectedAnswer};

/// An answer that is being collected.
pub struct ChatAnswer {
    head: AnswerHead,
    shape: CallShape,
    choices: Vec<Choice>,
    ended: Ended,
}

hob_core::debug_fields!(ChatAnswer: head, choices.len());

#[derive(Default)]
struct Choice {
    text: String,
    reasoning: String,
    calls: Vec<Call>,
    logprobs: Vec<TokenLogprob>,
    completion: Option<Completion>,
    extra: Option<UnknownFields>,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl ChatAnswer {
    pub fn new(head: AnswerHead, choices: u32, shape: CallShape) -> ChatAnswer {
        let choices = (0..choices).map(|_| Choice::default()).collect();
        ChatAnswer { head, shape, choices, ended: Ended::default() }
    }
}

impl CollectedAnswer for ChatAnswer {
    fn add(&mut self, index: u32, event: ChatEvent) {
        let Some(choice) = self.choices.get_mut(index as usize) else { return };
        match event {
            ChatEvent::Reasoning(piece) => choice.reasoning.push_str(&piece),
            ChatEvent::Text(piece) => choice.text.push_str(&piece),
            ChatEvent::Status { .. } | ChatEvent::TurnEnd { .. } => {}
            ChatEvent::Extra(fields) => choice.extra = Some(fields),
            ChatEvent::Logprobs(tokens) => choice.logprobs.extend(tokens),
            ChatEvent::ToolCall { id, name, .. } => {
                choice.calls.push(Call { id, name, arguments: String::new() });
            }
            ChatEvent::ToolArguments { index, piece } => {
                if let Some(call) = choice.calls.get_mut(index as usize) {
                    call.arguments.push_str(&piece);
                }
            }
            ChatEvent::Done(completion) => {
                let share = if index == 0 { PromptShare::First } else { PromptShare::Repeated };
                self.ended.add(share, &completion);
                choice.completion = Some(completion);
            }
        }
    }

    fn queue_ms(&self) -> f64 {
        self.ended.queue_ms()
    }

    fn to_json(&self) -> String {
        let choices = self.choices.iter().zip(0..).map(|(choice, index)| choice.shape(index, self));
        let mut answer = json(&ChatCompletion {
            id: format!("chatcmpl-{}", self.head.id),
            object: "chat.completion",
            created: self.head.created_unix_s,
            model: &self.head.model,
            choices: choices.collect(),
            usage: self.ended.usage(),
            system_fingerprint: self.head.fingerprint,
            timings: self.ended.timings(),
        });
        for (choice, behind) in self.choices.iter().zip((0..self.choices.len()).rev()) {
            if let Some(extra) = &choice.extra {
                add_to_choice(&mut answer, behind, extra);
            }
        }
        // Servers say the same in each of several answers.
        if let Some(extra) = self.choices.iter().find_map(|choice| choice.extra.as_ref()) {
            add_members(&mut answer, "}", &extra.answer);
        }
        answer
    }
}

impl Choice {
    fn shape(&self, index: u32, answer: &ChatAnswer) -> ChatChoice<'_> {
        let kinds = OutputKinds { text: !self.text.is_empty(), calls: !self.calls.is_empty() };
        let completion = self.completion.as_ref();
        let calls = match answer.shape {
            CallShape::ToolCalls => self.calls.iter().map(Call::shape).collect(),
            CallShape::FunctionCall => Vec::new(),
        };
        let function_call = match answer.shape {
            CallShape::ToolCalls => None,
            CallShape::FunctionCall => self.calls.first().map(Call::function),
        };
        let content = (kinds.text || !kinds.calls).then_some(self.text.as_str());
        let reasoning = (!self.reasoning.is_empty()).then_some(self.reasoning.as_str());
        ChatChoice {
            index,
            message: AnswerMessage {
                role: "assistant",
                content,
                refusal: None,
                reasoning_content: reasoning,
                tool_calls: calls,
                function_call,
            },
            logprobs: logprobs(&self.logprobs),
            finish_reason: completion.map(|completion| kinds.finish(completion, answer.shape)),
            hob: completion.and_then(|completion| kinds.note(completion)),
        }
    }
}

impl Call {
    fn shape(&self) -> AnswerCall<'_> {
        AnswerCall { id: &self.id, kind: "function", function: self.function() }
    }

    /// A function without arguments is called with none, which is an object too.
    fn function(&self) -> AnswerFunction<'_> {
        let arguments = if self.arguments.is_empty() { "{}" } else { &self.arguments };
        AnswerFunction { name: &self.name, arguments }
    }
}

/// A whole answer of `POST /v1/chat/completions`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ChatCompletion<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<ChatChoice<'a>>,
    usage: ChatUsage,
    system_fingerprint: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<ChatTimings>,
}

/// One of the answers.
#[derive(JsonSchema, Serialize)]
struct ChatChoice<'a> {
    index: u32,
    message: AnswerMessage<'a>,
    logprobs: Option<ChatLogprobs<'a>>,
    /// `stop`, `length`, `tool_calls`, `function_call` or `content_filter`.
    finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hob: Option<AnswerNote>,
}

/// A message of the assistant.
#[derive(JsonSchema, Serialize)]
struct AnswerMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// What the model thought.
    #[schemars(with = "String")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<AnswerCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<AnswerFunction<'a>>,
}

/// A call that the model makes.
#[derive(JsonSchema, Serialize)]
struct AnswerCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: AnswerFunction<'a>,
}

/// The function of a call.
#[derive(JsonSchema, Serialize)]
struct AnswerFunction<'a> {
    name: &'a str,
    /// A JSON object, as text.
    arguments: &'a str,
}
