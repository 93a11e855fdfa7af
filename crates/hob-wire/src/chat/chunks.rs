//! The answer as server-sent `chat.completion.chunk`s, in the order in which clients rely on: the role
//! first, then what is said, the reason for the end, what it took if that was asked for, `[DONE]`.

use std::fmt;

use hob_core::ChatEvent;
use hob_core::chat::{Completion, TokenLogprob};
use serde::Serialize;

use super::logprobs::{Logprobs, logprobs};
use super::shapes::{Ended, Note, PromptShare, Said};
use super::{AnswerHead, CallShape, UsageChunk};
use crate::answers::AnswerChunks;
use crate::error::json;
use crate::sse::event;

/// The end of every stream that is complete.
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// Turns events into chunks. Nothing is kept but what the end needs.
pub struct ChatChunks {
    /// Everything before the choices, which is the same in each chunk.
    head: String,
    shape: CallShape,
    usage: UsageChunk,
    choices: Vec<Choice>,
    ended: Ended,
    open: usize,
}

impl fmt::Debug for ChatChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatChunks").field("open", &self.open).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Choice {
    state: ChoiceState,
    has_text: bool,
    /// For each call, whether any of its arguments were sent.
    calls: Vec<Arguments>,
    /// Of the text that comes next.
    logprobs: Vec<TokenLogprob>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ChoiceState {
    #[default]
    Silent,
    Begun,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arguments {
    None,
    Some,
}

impl ChatChunks {
    pub fn new(head: AnswerHead, choices: u32, shape: CallShape, usage: UsageChunk) -> ChatChunks {
        ChatChunks {
            head: head_of(&head),
            shape,
            usage,
            choices: (0..choices).map(|_| Choice::default()).collect(),
            ended: Ended::default(),
            open: choices as usize,
        }
    }
}

impl AnswerChunks for ChatChunks {
    fn event(&mut self, index: u32, event: ChatEvent) -> String {
        let Some(choice) = self.choices.get_mut(index as usize) else { return String::new() };
        let mut out = String::new();
        if choice.state == ChoiceState::Silent {
            choice.state = ChoiceState::Begun;
            self.chunk(&mut out, ChoiceShape::of(index, Delta::role()));
        }
        match event {
            ChatEvent::Reasoning(piece) => self.reasoning(&mut out, index, &piece),
            ChatEvent::Text(piece) => self.text(&mut out, index, &piece),
            ChatEvent::Logprobs(tokens) => self.choice(index).logprobs.extend(tokens),
            ChatEvent::ToolCall { id, name, .. } => self.call(&mut out, index, &id, &name),
            ChatEvent::ToolArguments { index: call, piece } => {
                self.arguments(&mut out, index, call, &piece);
            }
            ChatEvent::Done(completion) => self.done(&mut out, index, &completion),
        }
        out
    }

    fn end(&mut self) -> String {
        let mut out = String::new();
        if self.usage == UsageChunk::Wanted {
            let (usage, head) = (json(&self.ended.usage()), &self.head);
            out.push_str(&event(&format!("{head}],\"usage\":{usage}}}")));
        }
        out.push_str(DONE);
        out
    }
}

impl ChatChunks {
    fn reasoning(&self, out: &mut String, index: u32, piece: &str) {
        if !piece.is_empty() {
            let delta = Delta { reasoning_content: Some(piece), ..Delta::default() };
            self.chunk(out, ChoiceShape::of(index, delta));
        }
    }

    fn text(&mut self, out: &mut String, index: u32, piece: &str) {
        let choice = self.choice(index);
        choice.has_text |= !piece.is_empty();
        let tokens = std::mem::take(&mut choice.logprobs);
        // A token that ends in the middle of a character has a probability and no text yet.
        if piece.is_empty() && tokens.is_empty() {
            return;
        }
        let delta = Delta { content: Some(piece), ..Delta::default() };
        let shape = ChoiceShape { logprobs: logprobs(&tokens), ..ChoiceShape::of(index, delta) };
        self.chunk(out, shape);
    }

    fn call(&mut self, out: &mut String, index: u32, id: &str, name: &str) {
        let calls = &mut self.choice(index).calls;
        calls.push(Arguments::None);
        let call = calls.len() as u32 - 1;
        let function = FunctionDelta { name: Some(name), arguments: "" };
        self.call_chunk(out, index, CallDelta::begin(call, id, function));
    }

    fn arguments(&mut self, out: &mut String, index: u32, call: u32, piece: &str) {
        let Some(arguments) = self.choice(index).calls.get_mut(call as usize) else { return };
        if !piece.is_empty() {
            *arguments = Arguments::Some;
            self.call_chunk(out, index, CallDelta::more(call, piece));
        }
    }

    /// Only the first call has a place where there are no tools.
    fn call_chunk(&self, out: &mut String, index: u32, call: CallDelta<'_>) {
        let delta = match self.shape {
            CallShape::ToolCalls => Delta { tool_calls: Some([call]), ..Delta::default() },
            CallShape::FunctionCall if call.index == 0 => {
                Delta { function_call: Some(call.function), ..Delta::default() }
            }
            CallShape::FunctionCall => return,
        };
        self.chunk(out, ChoiceShape::of(index, delta));
    }

    fn done(&mut self, out: &mut String, index: u32, completion: &Completion) {
        let calls = self.choice(index).calls.clone();
        for (call, arguments) in (0..).zip(&calls) {
            if *arguments == Arguments::None {
                self.call_chunk(out, index, CallDelta::more(call, "{}"));
            }
        }
        let share = if index == 0 { PromptShare::First } else { PromptShare::Repeated };
        self.ended.add(share, completion);
        self.open = self.open.saturating_sub(1);
        let choice = self.choice(index);
        let said = Said { text: choice.has_text, calls: !calls.is_empty() };
        let tokens = std::mem::take(&mut choice.logprobs);
        let shape = ChoiceShape {
            logprobs: logprobs(&tokens),
            finish_reason: Some(said.finish(completion, self.shape)),
            hob: said.note(completion),
            ..ChoiceShape::of(index, Delta::default())
        };
        self.chunk(out, shape);
    }

    fn chunk(&self, out: &mut String, choice: ChoiceShape<'_>) {
        let is_last = choice.finish_reason.is_some() && self.open == 0;
        out.push_str("data: ");
        out.push_str(&self.head);
        out.push_str(&json(&choice));
        out.push(']');
        if let Some(timings) = self.ended.timings().filter(|_| is_last) {
            out.push_str(",\"timings\":");
            out.push_str(&json(&timings));
        }
        if self.usage == UsageChunk::Wanted {
            out.push_str(",\"usage\":null");
        }
        out.push_str("}\n\n");
    }

    /// The index was looked up when the event came in.
    fn choice(&mut self, index: u32) -> &mut Choice {
        &mut self.choices[index as usize]
    }
}

/// Written once, not for every token.
fn head_of(head: &AnswerHead) -> String {
    format!(
        r#"{{"id":"chatcmpl-{}","object":"chat.completion.chunk","created":{},"model":{},"system_fingerprint":{},"choices":["#,
        head.id,
        head.created_unix_s,
        json(&head.model),
        json(&head.fingerprint),
    )
}

#[derive(Serialize)]
struct ChoiceShape<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: Option<Logprobs<'a>>,
    finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hob: Option<Note>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[CallDelta<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionDelta<'a>>,
}

#[derive(Serialize)]
struct CallDelta<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: FunctionDelta<'a>,
}

#[derive(Serialize)]
struct FunctionDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

impl<'a> ChoiceShape<'a> {
    fn of(index: u32, delta: Delta<'a>) -> ChoiceShape<'a> {
        ChoiceShape { index, delta, logprobs: None, finish_reason: None, hob: None }
    }
}

impl Delta<'_> {
    fn role() -> Delta<'static> {
        Delta { role: Some("assistant"), content: Some(""), ..Delta::default() }
    }
}

impl<'a> CallDelta<'a> {
    fn begin(index: u32, id: &'a str, function: FunctionDelta<'a>) -> CallDelta<'a> {
        CallDelta { index, id: Some(id), kind: Some("function"), function }
    }

    fn more(index: u32, arguments: &'a str) -> CallDelta<'a> {
        let function = FunctionDelta { name: None, arguments };
        CallDelta { index, id: None, kind: None, function }
    }
}
