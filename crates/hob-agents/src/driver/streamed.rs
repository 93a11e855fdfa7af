//! An answer while it is streamed: its text, its calls, and what it costs if it is stopped.
//! A call that is written as text is held back, so that it is not shown as part of the answer.

use hob_core::chat::{ChatEvent, ChatRequest, JsonText, ToolCall};
use hob_core::routing::prompt_tokens_guess;
use hob_core::{Chat, Task as _, Trace};

use super::{ModelCall, Work};
use crate::event::DeltaKind;
use crate::machine::{CALL_BEGIN, ModelAnswer, count_stopped};
use crate::state::{StoppedAnswer, Used};

/// Maximum bytes of one answer: its thinking, text and calls.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Calls of one answer.
const CALLS_MAX: usize = 64;

/// An answer on its way.
pub(super) struct StreamedAnswer<'w, 'd> {
    work: &'w Work<'d>,
    /// Number of the call of the model.
    id: u64,
    model: String,
    trace: Trace,
    /// Tokens of the prompt, estimated by hob.
    prompt_tokens: u64,
    reasoning: String,
    text: String,
    /// Bytes of the text that were shown. A call that is written as text is not.
    shown: usize,
    calls: Vec<StreamedCall>,
    /// Bytes of thinking, text and calls so far.
    bytes: usize,
    /// Pieces that have arrived. Each has about one token.
    pieces: u64,
    has_begun: bool,
    /// The answer has come to its end, with the number of its tokens.
    is_whole: bool,
}

struct StreamedCall {
    index: u32,
    id: String,
    name: String,
    arguments: String,
}

impl StreamedCall {
    fn finished(self) -> ToolCall {
        ToolCall { id: self.id, name: self.name, arguments: JsonText::parsed(self.arguments) }
    }
}

impl<'w, 'd> StreamedAnswer<'w, 'd> {
    /// The answer to this request, before its first event.
    pub(super) fn of(work: &'w Work<'d>, call: &ModelCall, request: &ChatRequest) -> Self {
        StreamedAnswer {
            work,
            id: call.id,
            model: call.model.clone(),
            trace: request.trace.clone(),
            prompt_tokens: prompt_tokens_guess(&request.prompt) as u64,
            reasoning: String::new(),
            text: String::new(),
            shown: 0,
            calls: Vec::new(),
            bytes: 0,
            pieces: 0,
            has_begun: false,
            is_whole: false,
        }
    }

    /// Whether this is the first event.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// The model that answers, which an alias chose.
    pub(super) fn target(&self) -> String {
        self.trace.snapshot().target.unwrap_or_else(|| self.model.clone())
    }

    /// In US dollars, for a model that has a price.
    pub(super) fn cost(&self, prompt_tokens: u64, answer_tokens: u64) -> Option<f64> {
        let price = self.work.driver.models.price(&self.target());
        price.map(|price| price.cost(prompt_tokens, answer_tokens))
    }

    /// The thinking, the text and the calls of an answer that has come to its end.
    pub(super) fn finish(&mut self) -> ModelAnswer {
        self.is_whole = true;
        let calls = std::mem::take(&mut self.calls).into_iter();
        ModelAnswer {
            reasoning: std::mem::take(&mut self.reasoning),
            text: self.take_text(),
            calls: calls.map(StreamedCall::finished).collect(),
            ..ModelAnswer::default()
        }
    }

    /// Takes the text that has arrived so far.
    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Adds an event, and gives what can be shown of it.
    pub(super) fn take(&mut self, event: ChatEvent) -> Result<Option<(DeltaKind, String)>, String> {
        self.pieces += Chat::work_of((), &event).0 as u64;
        let shown = match event {
            ChatEvent::Reasoning(text) => {
                self.bytes += text.len();
                self.reasoning += &text;
                Some((DeltaKind::Reasoning, text))
            }
            ChatEvent::Text(text) => {
                self.bytes += text.len();
                self.text += &text;
                let end = self.shown + prose_end(&self.text[self.shown..]);
                let shown = self.text[self.shown..end].to_owned();
                self.shown = end;
                (!shown.is_empty()).then_some((DeltaKind::Text, shown))
            }
            ChatEvent::ToolCall { index, id, name } => {
                self.bytes += id.len() + name.len();
                self.calls.push(StreamedCall { index, id, name, arguments: String::new() });
                None
            }
            ChatEvent::ToolArguments { index, piece } => {
                self.bytes += piece.len();
                let call = self.calls.iter_mut().rfind(|call| call.index == index);
                call.ok_or("the server sent arguments of a call that it did not begin")?
                    .arguments += &piece;
                None
            }
            ChatEvent::Status { .. }
            | ChatEvent::Logprobs(_)
            | ChatEvent::Extra(_)
            | ChatEvent::TurnEnd { .. }
            | ChatEvent::Done(_) => None,
        };
        if self.bytes > ANSWER_BYTES_MAX || self.calls.len() > CALLS_MAX {
            return Err(format!(
                "the answer has more than {ANSWER_BYTES_MAX} bytes or {CALLS_MAX} calls"
            ));
        }
        Ok(shown)
    }

    /// Text at the end that was held back as the possible beginning of a call, unless it is a call.
    pub(super) fn held_back(&self) -> Option<String> {
        let held = &self.text[self.shown..];
        (!held.is_empty() && !held.starts_with(CALL_BEGIN)).then(|| held.to_owned())
    }
}

/// Counts the tokens of an answer that was stopped, whatever stopped it: a watchdog, the time of the budget, a broken
/// connection, or a person.
impl Drop for StreamedAnswer<'_, '_> {
    fn drop(&mut self) {
        if self.is_whole || !self.has_begun {
            return;
        }
        let (prompt_tokens, answer_tokens) = (self.prompt_tokens, self.pieces);
        let cost = self.cost(prompt_tokens, answer_tokens).unwrap_or_default();
        let used = Used { prompt_tokens, answer_tokens, cost, ..Used::default() };
        let target = self.target();
        let mut run = self.work.lock_run();
        count_stopped(run.state, StoppedAnswer { id: self.id, target, used });
        self.work.driver.host.counted(run.state);
    }
}

/// Where a call that is written as text begins, or may begin.
fn prose_end(text: &str) -> usize {
    text.find(CALL_BEGIN).unwrap_or_else(|| {
        let begun = (1..CALL_BEGIN.len()).rev().find(|len| text.ends_with(&CALL_BEGIN[..*len]));
        text.len() - begun.unwrap_or(0)
    })
}
