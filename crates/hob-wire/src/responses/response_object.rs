//! The answer of `POST /v1/responses`: one object, and the events that build it in a stream.
//! Every event carries a number and, where a part ends, the whole part: clients read either.

use std::mem::take;

use hob_core::ChatEvent;
use hob_core::chat::{Completion, FinishReason, Timings, TokenLogprob, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use super::ResponseSettings;
use super::item::{ResponseItem, ResponseItemBody, ResponsePart};
use crate::ErrorBody;
use crate::chat::{AnswerNote, ChosenToken, Ended, PromptShare, chosen};
use crate::error::json;
use crate::openai_answer::{AnswerChunks, AnswerHead, CollectedAnswer};

/// A response that is being made.
#[derive(Clone)]
pub struct ResponseAnswer {
    head: AnswerHead,
    /// With OpenAI's prefix.
    id: String,
    settings: ResponseSettings,
    /// The number of the next event.
    sequence: u64,
    items: Vec<ResponseItem>,
    /// How many of the items say how far the model's loading is: none, or the first.
    loading_items: usize,
    /// The item to which text is being added, and what it is.
    open: Option<(usize, TextKind)>,
    /// For each call, its place among the items.
    calls: Vec<usize>,
    /// Tokens of the text that comes next.
    logprobs: Vec<TokenLogprob>,
    ended: Ended,
    finish: Option<FinishReason>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Message,
    Reasoning,
}

impl TextKind {
    /// The names of the events with more text and with all of it.
    fn events(self) -> (&'static str, &'static str) {
        match self {
            TextKind::Message => ("response.output_text.delta", "response.output_text.done"),
            TextKind::Reasoning => {
                ("response.reasoning_text.delta", "response.reasoning_text.done")
            }
        }
    }

    fn body(self) -> ResponseItemBody {
        match self {
            TextKind::Message => {
                ResponseItemBody::Message { role: "assistant", content: Vec::new() }
            }
            TextKind::Reasoning => ResponseItemBody::Reasoning { summary: [], content: Vec::new() },
        }
    }

    fn part(self) -> ResponsePart {
        match self {
            TextKind::Message => ResponsePart::output_text(String::new()),
            TextKind::Reasoning => ResponsePart::ReasoningText { text: String::new() },
        }
    }
}

/// A response of a model.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ResponseObject<'a> {
    id: &'a str,
    object: &'static str,
    /// Seconds since 1970.
    created_at: u64,
    /// `in_progress`, `completed`, `incomplete` or `failed`.
    status: &'static str,
    error: Option<ResponseError<'a>>,
    incomplete_details: Option<IncompleteDetails>,
    model: &'a str,
    output: &'a [ResponseItem],
    /// Absent until the response is complete.
    usage: Option<ResponseUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hob: Option<AnswerNote>,
    #[serde(flatten)]
    settings: &'a ResponseSettings,
}

/// Why a response failed.
#[derive(JsonSchema, Serialize)]
struct ResponseError<'a> {
    code: &'a str,
    message: &'a str,
}

/// Why a response is incomplete.
#[derive(Clone, Copy, JsonSchema, Serialize)]
struct IncompleteDetails {
    /// `max_output_tokens` or `content_filter`.
    reason: &'static str,
}

/// Tokens of a response.
#[derive(JsonSchema, Serialize)]
struct ResponseUsage {
    input_tokens: u32,
    input_tokens_details: InputDetails,
    output_tokens: u32,
    output_tokens_details: OutputDetails,
    total_tokens: u32,
}

/// Tokens of the prompt.
#[derive(JsonSchema, Serialize)]
struct InputDetails {
    /// Found in the cache.
    cached_tokens: u32,
    /// Always 0: nothing is paid for here, and OpenAI's clients need the field.
    cache_write_tokens: u32,
}

/// Tokens of the answer.
#[derive(JsonSchema, Serialize)]
struct OutputDetails {
    /// Spent on thinking.
    reasoning_tokens: u32,
}

/// An event of a streamed response. `type` decides which other fields it has.
#[derive(Default, JsonSchema, Serialize)]
pub(crate) struct ResponseEvent<'a> {
    r#type: &'static str,
    /// Counted from 0.
    sequence_number: u64,
    /// For events of the whole response.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<ResponseObject<'a>>,
    /// The place of the item among the response's items.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a ResponseItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_id: Option<&'a str>,
    /// The place of the part in its item.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'a ResponsePart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Vec<ChosenToken<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a str>,
}

hob_core::debug_fields!(ResponseAnswer: head);

impl ResponseAnswer {
    pub fn new(head: AnswerHead, settings: ResponseSettings) -> ResponseAnswer {
        ResponseAnswer {
            id: format!("resp_{}", head.id),
            head,
            settings,
            sequence: 0,
            items: Vec::new(),
            loading_items: 0,
            open: None,
            calls: Vec::new(),
            logprobs: Vec::new(),
            ended: Ended::default(),
            finish: None,
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The items of the answer so far.
    pub fn items(&self) -> &[ResponseItem] {
        &self.items
    }

    /// Says how far the model's loading is, as thinking in an item of its own. Only before the first event.
    pub fn loading(&mut self, said: &str) -> String {
        self.loading_items = 1;
        let mut out = self.begin();
        self.text(&mut out, TextKind::Reasoning, said);
        out
    }

    /// The response as it is stored.
    #[must_use]
    pub fn without_loading(&self) -> ResponseAnswer {
        let mut stored = self.clone();
        stored.items = stored.items.split_off(stored.loading_items);
        stored.loading_items = 0;
        stored
    }

    /// The events of a complete response, each text in one piece. Without those up to the number `after`.
    pub fn replay(&self, after: Option<u64>) -> String {
        let mut replayed = ResponseAnswer::new(self.head.clone(), self.settings.clone());
        let (mut events, mut call) = (String::new(), 0);
        for event in self.items.iter().flat_map(|item| item.events(&mut call)) {
            events += &replayed.take(event);
        }
        let finish = self.finish.unwrap_or(FinishReason::Stop);
        let (usage, timings) = (*self.ended.tokens(), Timings::default());
        events += &replayed.take(ChatEvent::Done(Completion { finish, usage, timings }));
        events += &replayed.end();
        let left_out = after.map_or(0, |after| after.saturating_add(1));
        let left_out = usize::try_from(left_out).unwrap_or(usize::MAX);
        events.split_inclusive("\n\n").skip(left_out).collect()
    }

    /// The last event of a response that broke off.
    pub fn failed(&mut self, error: &ErrorBody) -> String {
        let mut out = self.begin();
        let sequence_number = self.next_number();
        let error =
            ResponseError { code: error.code.unwrap_or("server_error"), message: &error.message };
        let response = ResponseObject { status: "failed", error: Some(error), ..self.object() };
        let failed = ResponseEvent { sequence_number, ..ResponseEvent::of("response.failed") };
        write(&mut out, &ResponseEvent { response: Some(response), ..failed });
        out
    }

    fn incomplete_reason(&self) -> Option<&'static str> {
        match self.finish {
            Some(FinishReason::Length) => Some("max_output_tokens"),
            Some(FinishReason::ContentFilter) => Some("content_filter"),
            Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::BudgetSpent(_))
            | None => None,
        }
    }

    fn object(&self) -> ResponseObject<'_> {
        let details = self.incomplete_reason();
        let status = match (self.finish, details) {
            (None, _) => "in_progress",
            (Some(_), None) => "completed",
            (Some(_), Some(_)) => "incomplete",
        };
        ResponseObject {
            id: &self.id,
            object: "response",
            created_at: self.head.created_unix_s,
            status,
            error: None,
            incomplete_details: details.map(|reason| IncompleteDetails { reason }),
            model: &self.head.model,
            output: &self.items,
            usage: self.finish.map(|_| usage(self.ended.tokens())),
            hob: self.finish.and_then(AnswerNote::of_budget),
            settings: &self.settings,
        }
    }

    fn next_number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence - 1
    }

    /// The events before all others, unless they were sent.
    fn begin(&mut self) -> String {
        let mut out = String::new();
        if self.sequence == 0 {
            self.whole(&mut out, "response.created");
            self.whole(&mut out, "response.in_progress");
        }
        out
    }

    fn whole(&mut self, out: &mut String, kind: &'static str) {
        let sequence_number = self.next_number();
        let response = Some(self.object());
        write(out, &ResponseEvent { sequence_number, response, ..ResponseEvent::of(kind) });
    }

    /// An event about the item at `index`.
    fn about_item(
        &mut self,
        out: &mut String,
        index: usize,
        event: impl FnOnce(&ResponseItem) -> ResponseEvent<'_>,
    ) {
        let sequence_number = self.next_number();
        let event = event(&self.items[index]);
        write(out, &ResponseEvent { sequence_number, output_index: Some(index), ..event });
    }

    fn whole_item(&mut self, out: &mut String, index: usize, kind: &'static str) {
        self.about_item(out, index, |item| ResponseEvent {
            item: Some(item),
            ..ResponseEvent::of(kind)
        });
    }

    /// An event with the first part of an item, which is its only one.
    fn whole_part(&mut self, out: &mut String, index: usize, kind: &'static str) {
        self.about_item(out, index, |item| ResponseEvent {
            item_id: Some(&item.id),
            content_index: Some(0),
            part: item.part(),
            ..ResponseEvent::of(kind)
        });
    }

    fn add_item(&mut self, out: &mut String, body: ResponseItemBody) -> usize {
        let index = self.items.len();
        let mut item = ResponseItem { id: String::new(), status: "in_progress", body };
        // The other items have the same ids with and without the loading.
        let number = index.checked_sub(self.loading_items);
        let number = number.map_or_else(|| "loading".to_owned(), |number| number.to_string());
        item.set_default_id(&format!("{}_{number}", self.head.id));
        self.items.push(item);
        self.whole_item(out, index, "response.output_item.added");
        index
    }

    fn end_item(&mut self, out: &mut String, index: usize) {
        let is_whole = self.incomplete_reason().is_none();
        self.items[index].status = if is_whole { "completed" } else { "incomplete" };
        self.whole_item(out, index, "response.output_item.done");
    }

    fn text(&mut self, out: &mut String, kind: TextKind, piece: &str) {
        // A token that ends in the middle of a character has a probability and no text yet.
        if piece.is_empty() && (kind == TextKind::Reasoning || self.logprobs.is_empty()) {
            return;
        }
        let index = match self.open {
            Some((index, open)) if open == kind => index,
            _ => self.open_text(out, kind),
        };
        let tokens = take(&mut self.logprobs);
        let logprobs = tokens.iter().map(chosen).collect();
        let sequence_number = self.next_number();
        write(
            out,
            &ResponseEvent {
                sequence_number,
                output_index: Some(index),
                item_id: Some(&self.items[index].id),
                content_index: Some(0),
                delta: Some(piece),
                logprobs: (kind == TextKind::Message).then_some(logprobs),
                ..ResponseEvent::of(kind.events().0)
            },
        );
        if let Some((text, all)) = self.items[index].text_mut() {
            text.push_str(piece);
            all.into_iter().for_each(|all| all.extend(tokens.iter().cloned()));
        }
    }

    fn open_text(&mut self, out: &mut String, kind: TextKind) -> usize {
        self.close_text(out);
        let index = self.add_item(out, kind.body());
        self.items[index].push_part(kind.part());
        self.whole_part(out, index, "response.content_part.added");
        self.open = Some((index, kind));
        index
    }

    fn close_text(&mut self, out: &mut String) {
        let Some((index, kind)) = self.open.take() else { return };
        self.about_item(out, index, |item| ResponseEvent {
            item_id: Some(&item.id),
            content_index: Some(0),
            text: item.part().and_then(ResponsePart::text),
            logprobs: item.part().and_then(ResponsePart::logprobs),
            ..ResponseEvent::of(kind.events().1)
        });
        self.whole_part(out, index, "response.content_part.done");
        self.end_item(out, index);
    }

    fn call(&mut self, out: &mut String, call_id: String, name: String) {
        self.close_text(out);
        let arguments = String::new();
        let index = self.add_item(out, ResponseItemBody::FunctionCall { call_id, name, arguments });
        self.calls.push(index);
    }

    fn arguments(&mut self, out: &mut String, call: u32, piece: &str) {
        let Some(&index) = self.calls.get(call as usize) else { return };
        if piece.is_empty() {
            return;
        }
        if let ResponseItemBody::FunctionCall { arguments, .. } = &mut self.items[index].body {
            arguments.push_str(piece);
        }
        let sequence_number = self.next_number();
        let delta = ResponseEvent {
            sequence_number,
            output_index: Some(index),
            item_id: Some(&self.items[index].id),
            delta: Some(piece),
            ..ResponseEvent::of("response.function_call_arguments.delta")
        };
        write(out, &delta);
    }

    /// A function without arguments is called with none, which is an object too.
    fn end_call(&mut self, out: &mut String, index: usize) {
        if let ResponseItemBody::FunctionCall { arguments, .. } = &mut self.items[index].body
            && arguments.is_empty()
        {
            arguments.push_str("{}");
        }
        self.about_item(out, index, |item| {
            let (name, arguments) = item.call().unzip();
            ResponseEvent {
                item_id: Some(&item.id),
                name,
                arguments,
                ..ResponseEvent::of("response.function_call_arguments.done")
            }
        });
        self.end_item(out, index);
    }

    fn take(&mut self, event: ChatEvent) -> String {
        let mut out = self.begin();
        if self.items.len() == self.loading_items {
            self.close_text(&mut out);
        }
        match event {
            ChatEvent::Reasoning(piece) => self.text(&mut out, TextKind::Reasoning, &piece),
            ChatEvent::Text(piece) => self.text(&mut out, TextKind::Message, &piece),
            ChatEvent::Status { .. } | ChatEvent::Extra(_) | ChatEvent::TurnEnd { .. } => {}
            ChatEvent::Logprobs(tokens) => self.logprobs.extend(tokens),
            ChatEvent::ToolCall { id, name, .. } => self.call(&mut out, id, name),
            ChatEvent::ToolArguments { index, piece } => self.arguments(&mut out, index, &piece),
            ChatEvent::Done(completion) => {
                // An empty answer is an answer: clients look for its message.
                let has_message = self.items.iter().any(ResponseItem::is_message);
                if !has_message && self.calls.is_empty() {
                    self.open_text(&mut out, TextKind::Message);
                }
                self.finish = Some(completion.finish);
                self.ended.add(PromptShare::First, &completion);
                self.close_text(&mut out);
                for index in take(&mut self.calls) {
                    self.end_call(&mut out, index);
                }
            }
        }
        out
    }
}

impl AnswerChunks for ResponseAnswer {
    fn event(&mut self, _: u32, event: ChatEvent) -> String {
        self.take(event)
    }

    fn end(&mut self) -> String {
        let mut out = String::new();
        let is_whole = self.incomplete_reason().is_none();
        let kind = if is_whole { "response.completed" } else { "response.incomplete" };
        self.whole(&mut out, kind);
        out
    }
}

impl CollectedAnswer for ResponseAnswer {
    fn add(&mut self, _: u32, event: ChatEvent) {
        // An event costs little compared with its token, so both forms take one path.
        self.take(event);
    }

    fn queue_ms(&self) -> f64 {
        self.ended.queue_ms()
    }

    fn to_json(&self) -> String {
        json(&self.object())
    }
}

impl ResponseEvent<'_> {
    fn of(r#type: &'static str) -> Self {
        ResponseEvent { r#type, ..ResponseEvent::default() }
    }
}

fn usage(tokens: &Usage) -> ResponseUsage {
    ResponseUsage {
        input_tokens: tokens.prompt_tokens,
        input_tokens_details: InputDetails {
            cached_tokens: tokens.cached_tokens,
            cache_write_tokens: 0,
        },
        output_tokens: tokens.completion_tokens,
        output_tokens_details: OutputDetails { reasoning_tokens: tokens.reasoning_tokens },
        total_tokens: tokens.prompt_tokens.saturating_add(tokens.completion_tokens),
    }
}

/// OpenAI's clients read the type from the data, and others from the line before it.
fn write(out: &mut String, event: &ResponseEvent<'_>) {
    out.push_str("event: ");
    out.push_str(event.r#type);
    out.push_str("\ndata: ");
    out.push_str(&json(event));
    out.push_str("\n\n");
}
