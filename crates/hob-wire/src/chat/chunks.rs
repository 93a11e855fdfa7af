//! The answer as server-sent `chat.completion.chunk`s, in the order in which clients rely on: the role
//! first, then what is said, the reason for the end, what it took if that was asked for, `[DONE]`.

use hob_core::chat::{Completion, StatusProgress, TokenLogprob};
use hob_core::{ChatEvent, UnknownFields};
use schemars::JsonSchema;
use serde::Serialize;

use super::extra::{add_members, add_to_choice};
use super::logprobs::{ChatLogprobs, logprobs};
use super::text_chunk::{TextChunk, TextField};
use super::usage::{AnswerNote, ChatTimings, ChatUsage, Ended, OutputKinds, PromptShare};
use super::{CallShape, UsageChunk};
use crate::error::json;
use crate::openai_answer::{AnswerChunks, AnswerHead};
use crate::sse::{event, push_event};

/// The end of every stream that is complete.
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// Turns events into chunks. Nothing is kept but what the end needs.
pub struct ChatChunks {
    head: AnswerHead,
    /// With OpenAI's prefix.
    id: String,
    shape: CallShape,
    usage: UsageChunk,
    choices: Vec<Choice>,
    ended: Ended,
    open: usize,
}

hob_core::debug_fields!(ChatChunks: open);

#[derive(Default)]
struct Choice {
    state: ChoiceState,
    has_text: bool,
    /// For each call, whether any of its arguments were sent.
    calls: Vec<Arguments>,
    /// Tokens of the text that comes next.
    logprobs: Vec<TokenLogprob>,
    /// For its last chunk.
    extra: Option<UnknownFields>,
    /// Its chunks with nothing but text, from the first one on: one for each [`TextField`].
    text_chunks: [Option<TextChunk>; 2],
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
            id: format!("chatcmpl-{}", head.id),
            head,
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
        let is_apart = matches!(event, ChatEvent::Status { .. } | ChatEvent::TurnEnd { .. });
        if choice.state == ChoiceState::Silent && !is_apart {
            choice.state = ChoiceState::Begun;
            self.chunk(&mut out, ChunkChoice::of(index, ChatDelta::role()));
        }
        match event {
            ChatEvent::TurnEnd { .. } => {}
            ChatEvent::Status { text, progress } => out.push_str(&status(&text, progress)),
            ChatEvent::Reasoning(piece) => self.reasoning(&mut out, index, &piece),
            ChatEvent::Text(piece) => self.text(&mut out, index, &piece),
            ChatEvent::Logprobs(tokens) => self.choice(index).logprobs.extend(tokens),
            ChatEvent::ToolCall { id, name, .. } => self.call(&mut out, index, &id, &name),
            ChatEvent::ToolArguments { index: call, piece } => {
                self.arguments(&mut out, index, call, &piece);
            }
            ChatEvent::Extra(fields) => self.choice(index).extra = Some(fields),
            ChatEvent::Done(completion) => self.done(&mut out, index, &completion),
        }
        out
    }

    fn end(&mut self) -> String {
        let mut out = String::new();
        if self.usage == UsageChunk::Wanted {
            self.write(&mut out, &[], None, Some(Some(self.ended.usage())));
        }
        out.push_str(DONE);
        out
    }
}

impl ChatChunks {
    fn reasoning(&mut self, out: &mut String, index: u32, piece: &str) {
        if !piece.is_empty() {
            self.only_text(out, index, TextField::Reasoning, piece);
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
        if tokens.is_empty() {
            self.only_text(out, index, TextField::Content, piece);
            return;
        }
        let delta = ChatDelta::text(TextField::Content, piece);
        let shape = ChunkChoice { logprobs: logprobs(&tokens), ..ChunkChoice::of(index, delta) };
        self.chunk(out, shape);
    }

    /// A chunk that differs from the choice's other chunks of this kind in its text only.
    fn only_text(&mut self, out: &mut String, index: u32, field: TextField, piece: &str) {
        let known = self.choice(index).text_chunks[field as usize].take();
        let chunk = known.unwrap_or_else(|| {
            let mut empty = String::new();
            self.chunk(&mut empty, ChunkChoice::of(index, ChatDelta::text(field, "")));
            TextChunk::around(&empty)
        });
        chunk.write(out, piece);
        self.choice(index).text_chunks[field as usize] = Some(chunk);
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
            CallShape::ToolCalls => ChatDelta { tool_calls: Some([call]), ..ChatDelta::default() },
            CallShape::FunctionCall if call.index == 0 => {
                ChatDelta { function_call: Some(call.function), ..ChatDelta::default() }
            }
            CallShape::FunctionCall => return,
        };
        self.chunk(out, ChunkChoice::of(index, delta));
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
        let kinds = OutputKinds { text: choice.has_text, calls: !calls.is_empty() };
        let (tokens, extra) = (std::mem::take(&mut choice.logprobs), choice.extra.take());
        let shape = ChunkChoice {
            logprobs: logprobs(&tokens),
            finish_reason: Some(kinds.finish(completion, self.shape)),
            hob: kinds.note(completion),
            ..ChunkChoice::of(index, ChatDelta::default())
        };
        self.chunk(out, shape);
        if let Some(extra) = extra {
            add_to_choice(out, 0, &extra);
            add_members(out, "}\n\n", &extra.answer);
        }
    }

    fn chunk(&self, out: &mut String, choice: ChunkChoice<'_>) {
        let is_last = choice.finish_reason.is_some() && self.open == 0;
        let timings = self.ended.timings().filter(|_| is_last);
        let usage = (self.usage == UsageChunk::Wanted).then_some(None);
        self.write(out, &[choice], timings, usage);
    }

    fn write(
        &self,
        out: &mut String,
        choices: &[ChunkChoice<'_>],
        timings: Option<ChatTimings>,
        usage: Option<Option<ChatUsage>>,
    ) {
        let AnswerHead { created_unix_s: created, ref model, fingerprint, .. } = self.head;
        push_event(
            out,
            &json(&ChatCompletionChunk {
                id: &self.id,
                object: "chat.completion.chunk",
                created,
                model,
                system_fingerprint: fingerprint,
                choices,
                timings,
                usage,
            }),
        );
    }

    /// The index was looked up when the event came in.
    fn choice(&mut self, index: u32) -> &mut Choice {
        &mut self.choices[index as usize]
    }
}

/// A line about what a team does, between the chunks of its answer. Only clients of Pipelines get it: others look for
/// `choices` in each event.
#[derive(JsonSchema, Serialize)]
pub(crate) struct StatusChunk<'a> {
    event: StatusEvent<'a>,
}

/// The event of Open WebUI that shows a line above the answer.
#[derive(JsonSchema, Serialize)]
struct StatusEvent<'a> {
    /// Always `status`.
    r#type: &'static str,
    data: StatusData<'a>,
}

/// The line.
#[derive(JsonSchema, Serialize)]
struct StatusData<'a> {
    description: &'a str,
    /// `true` in the last one.
    done: bool,
}

fn status(description: &str, progress: StatusProgress) -> String {
    let data = StatusData { description, done: progress == StatusProgress::Done };
    event(&json(&StatusChunk { event: StatusEvent { r#type: "status", data } }))
}

/// An event of a streamed answer of `POST /v1/chat/completions`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ChatCompletionChunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    /// Empty in the chunk that holds the usage.
    choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<ChatTimings>,
    /// Only with `stream_options.include_usage`: null in each chunk but the last, which has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<ChatUsage>>,
}

/// More of one of the answers.
#[derive(JsonSchema, Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: ChatDelta<'a>,
    logprobs: Option<ChatLogprobs<'a>>,
    finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hob: Option<AnswerNote>,
}

/// What a chunk adds.
#[derive(Default, JsonSchema, Serialize)]
struct ChatDelta<'a> {
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

/// More of a call.
#[derive(JsonSchema, Serialize)]
struct CallDelta<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: FunctionDelta<'a>,
}

/// More of a call's function. Arguments of all chunks, joined, are a JSON object.
#[derive(JsonSchema, Serialize)]
struct FunctionDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

impl<'a> ChunkChoice<'a> {
    fn of(index: u32, delta: ChatDelta<'a>) -> ChunkChoice<'a> {
        ChunkChoice { index, delta, logprobs: None, finish_reason: None, hob: None }
    }
}

impl<'a> ChatDelta<'a> {
    fn role() -> ChatDelta<'static> {
        ChatDelta { role: Some("assistant"), content: Some(""), ..ChatDelta::default() }
    }

    fn text(field: TextField, piece: &'a str) -> ChatDelta<'a> {
        match field {
            TextField::Content => ChatDelta { content: Some(piece), ..ChatDelta::default() },
            TextField::Reasoning => {
                ChatDelta { reasoning_content: Some(piece), ..ChatDelta::default() }
            }
        }
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
