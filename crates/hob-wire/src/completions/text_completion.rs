//! Continued texts as `text_completion`s: one object, or one object for each piece.
//! Both have one shape, so a piece is an answer that holds little.

use hob_core::ChatEvent;
use hob_core::chat::{Completion, FinishReason, TokenLogprob, TokenText};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::chat::{ChatTimings, ChatUsage, DONE, Ended, PromptShare, UsageChunk, clamped, lossy};
use crate::error::json;
use crate::openai_answer::{AnswerChunks, AnswerHead, CollectedAnswer};
use crate::sse::event;

/// Answers that are being collected.
pub struct CompletionAnswer {
    head: AnswerHead,
    choices: Vec<Choice>,
    /// Answers to each prompt.
    each: u32,
    ended: Ended,
}

/// Turns events into chunks.
pub struct CompletionChunks {
    answer: CompletionAnswer,
    usage: UsageChunk,
    open: usize,
}

hob_core::debug_fields!(CompletionAnswer: head, choices.len());

hob_core::debug_fields!(CompletionChunks: open);

#[derive(Default)]
struct Choice {
    /// What was not sent yet; for an answer that is collected, all of it.
    text: String,
    logprobs: Vec<TokenLogprob>,
    /// Characters before the first token in `logprobs`.
    offset: usize,
    finish: Option<&'static str>,
}

impl CompletionAnswer {
    /// `prefixes` has what the answers to each prompt begin with.
    pub fn new(head: AnswerHead, prefixes: &[String], each: u32) -> CompletionAnswer {
        let choice = |prefix: &String| Choice {
            offset: prefix.chars().count(),
            text: prefix.clone(),
            ..Choice::default()
        };
        let choices = prefixes.iter().flat_map(|prefix| (0..each).map(move |_| choice(prefix)));
        CompletionAnswer { head, choices: choices.collect(), each, ended: Ended::default() }
    }
}

impl CompletionAnswer {
    /// Reports the prompts' tokens too, so that the first token is the prompt's first.
    #[must_use]
    pub fn with_prompt_tokens(mut self) -> CompletionAnswer {
        self.choices.iter_mut().for_each(|choice| choice.offset = 0);
        self
    }
}

impl CollectedAnswer for CompletionAnswer {
    fn add(&mut self, index: u32, event: ChatEvent) {
        let Some(choice) = self.choices.get_mut(index as usize) else { return };
        match event {
            // What is continued has no template: a thought is a part of the text like any other.
            ChatEvent::Text(piece) | ChatEvent::Reasoning(piece) => choice.text.push_str(&piece),
            ChatEvent::Logprobs(tokens) => choice.logprobs.extend(tokens),
            ChatEvent::Status { .. }
            | ChatEvent::Extra(_)
            | ChatEvent::TurnEnd { .. }
            | ChatEvent::ToolCall { .. }
            | ChatEvent::ToolArguments { .. } => {}
            ChatEvent::Done(completion) => self.done(index, &completion),
        }
    }

    fn queue_ms(&self) -> f64 {
        self.ended.queue_ms()
    }

    fn to_json(&self) -> String {
        let choices = self.choices.iter().zip(0..).map(|(choice, index)| choice.shape(index));
        let (usage, timings) = (Some(Some(self.ended.usage())), self.ended.timings());
        self.shape(choices.collect(), usage, timings)
    }
}

impl CompletionAnswer {
    fn done(&mut self, index: u32, completion: &Completion) {
        let is_first = index.is_multiple_of(self.each.max(1));
        let share = if is_first { PromptShare::First } else { PromptShare::Repeated };
        self.ended.add(share, completion);
        if let Some(choice) = self.choices.get_mut(index as usize) {
            choice.finish = Some(match completion.finish {
                FinishReason::Length => "length",
                FinishReason::ContentFilter => "content_filter",
                FinishReason::Stop | FinishReason::ToolCalls | FinishReason::BudgetSpent(_) => {
                    "stop"
                }
            });
        }
    }

    fn shape(
        &self,
        choices: Vec<TextChoice<'_>>,
        usage: Option<Option<ChatUsage>>,
        timings: Option<ChatTimings>,
    ) -> String {
        json(&TextCompletion {
            id: format!("cmpl-{}", self.head.id),
            object: "text_completion",
            created: self.head.created_unix_s,
            model: &self.head.model,
            system_fingerprint: self.head.fingerprint,
            choices,
            usage,
            timings,
        })
    }
}

impl CompletionChunks {
    /// `prefixes` has what the answers to each prompt begin with.
    pub fn new(
        head: AnswerHead,
        prefixes: &[String],
        each: u32,
        usage: UsageChunk,
    ) -> CompletionChunks {
        let answer = CompletionAnswer::new(head, prefixes, each);
        let open = answer.choices.len();
        CompletionChunks { answer, usage, open }
    }

    /// Does what [`CompletionAnswer::with_prompt_tokens`] does.
    #[must_use]
    pub fn with_prompt_tokens(self) -> CompletionChunks {
        CompletionChunks { answer: self.answer.with_prompt_tokens(), ..self }
    }
}

impl AnswerChunks for CompletionChunks {
    fn event(&mut self, index: u32, event: ChatEvent) -> String {
        self.answer.add(index, event);
        let Some(choice) = self.answer.choices.get_mut(index as usize) else {
            return String::new();
        };
        if choice.text.is_empty() && choice.finish.is_none() {
            return String::new();
        }
        self.open -= usize::from(choice.finish.is_some());
        let said = std::mem::take(choice);
        choice.offset = said.offset + said.chars_of_tokens();
        let is_last = said.finish.is_some() && self.open == 0;
        let usage = (self.usage == UsageChunk::Wanted).then_some(None);
        let timings = self.answer.ended.timings().filter(|_| is_last);
        crate::sse::event(&self.answer.shape(vec![said.shape(index)], usage, timings))
    }

    fn end(&mut self) -> String {
        let mut out = String::new();
        if self.usage == UsageChunk::Wanted {
            let usage = Some(Some(self.answer.ended.usage()));
            out = event(&self.answer.shape(Vec::new(), usage, None));
        }
        out + DONE
    }
}

impl Choice {
    fn shape(&self, index: u32) -> TextChoice<'_> {
        let logprobs = (!self.logprobs.is_empty()).then(|| self.logprobs());
        TextChoice { text: &self.text, index, logprobs, finish_reason: self.finish }
    }

    fn chars_of_tokens(&self) -> usize {
        self.logprobs.iter().map(|token| lossy(&token.token).chars().count()).sum()
    }

    fn logprobs(&self) -> TextLogprobs {
        let mut shape = TextLogprobs::default();
        let mut offset = self.offset;
        for token in &self.logprobs {
            let text = lossy(&token.token).into_owned();
            shape.text_offset.push(offset);
            offset += text.chars().count();
            shape.tokens.push(text);
            let is_known = !token.logprob.is_nan();
            shape.token_logprobs.push(is_known.then(|| clamped(token.logprob)));
            shape.top_logprobs.push(is_known.then(|| likeliest(&token.top)));
        }
        shape
    }
}

/// Parts of characters may look alike as text. Among tokens with the same text, the likeliest is kept.
fn likeliest(top: &[(TokenText, f32)]) -> Map<String, Value> {
    let mut named = Map::new();
    for (text, logprob) in top {
        named.entry(lossy(text)).or_insert_with(|| Value::from(clamped(*logprob)));
    }
    named
}

/// A whole answer of `POST /v1/completions`, or an event of a streamed one.
#[derive(JsonSchema, Serialize)]
pub(crate) struct TextCompletion<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    choices: Vec<TextChoice<'a>>,
    /// The tokens of a whole answer. In a stream only with `include_usage`: null in each chunk but the last, which has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<ChatUsage>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<ChatTimings>,
}

/// One of the answers, or more of it.
#[derive(JsonSchema, Serialize)]
struct TextChoice<'a> {
    text: &'a str,
    index: u32,
    logprobs: Option<TextLogprobs>,
    /// `stop`, `length` or `content_filter`.
    finish_reason: Option<&'static str>,
}

/// Log probabilities of an answer's tokens: one entry of each list for each token.
#[derive(Default, JsonSchema, Serialize)]
struct TextLogprobs {
    tokens: Vec<String>,
    /// Null for the first token of a prompt, which follows no other.
    token_logprobs: Vec<Option<f32>>,
    top_logprobs: Vec<Option<Map<String, Value>>>,
    text_offset: Vec<usize>,
}
