//! Reads the answer of a server that speaks OpenAI's protocol or a variant of it.
//! The reader adds what the server left out, and corrects what it sent twice or in its own way.

use hob_core::chat::{Completion, Timings, Usage};
use hob_core::{ChatEvent, Fault};
use serde_json::Value;

use super::calls::CallPiece;
use super::chunk::{Choice, Chunk, Delta, WireFunction, WireTimings, WireUsage};
use super::extra::{ExtraFields, FieldPlace};
use super::fault::reported;
use super::finish::{Ending, finish_of};
use super::lenient::error_in;
use super::logprobs::tokens_of;
use super::text_frame::{TextFrame, TextRole};
use super::{AnswerRepairs, CallReader, PieceError, ThoughtSplitter, UpstreamReader, UsageSource};

/// Reads chat and text completions, streamed or whole.
#[derive(Debug, Default)]
pub struct OpenAiReader {
    splitter: ThoughtSplitter,
    frame: TextFrame,
    calls: CallReader,
    ending: Ending,
    usage: Option<WireUsage>,
    timings: WireTimings,
    extra: ExtraFields,
    /// Pieces of text and of thinking: about as many tokens, until the server says how many.
    texts: u32,
    thoughts: u32,
}

impl UpstreamReader for OpenAiReader {
    fn read(&mut self, piece: &str, said: &mut Vec<ChatEvent>) -> Result<(), PieceError> {
        if self.ending.is_complete() {
            return Ok(());
        }
        if let Some((role, text)) = self.frame.text_of(piece) {
            self.say(role, text, said);
            return Ok(());
        }
        if piece.trim_ascii() == "[DONE]" {
            self.ending.marked();
            self.complete(said);
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(piece).map_err(|_| PieceError::Malformed)?;
        if let Some(fault) = failure(&chunk, piece) {
            return Err(PieceError::Failed(fault));
        }
        self.usage = chunk.usage.0.or(self.usage);
        self.timings = chunk.timings.0.unwrap_or(self.timings);
        self.extra.keep(FieldPlace::Answer, &chunk.unknown);
        let Some(choice) = &chunk.choices.0 else { return Ok(()) };
        if chunk.usage.0.is_none() && chunk.timings.0.is_none() {
            self.learn_frame(choice, piece);
        }
        self.choice(choice, said)
    }

    fn end(&mut self, said: &mut Vec<ChatEvent>) -> Result<(), Fault> {
        if self.ending.closed()? {
            self.complete(said);
        }
        Ok(())
    }

    fn repairs(&self) -> AnswerRepairs {
        let usage = self.usage.and_then(|usage| usage.completion_tokens.0);
        let usage = if usage.is_some() { UsageSource::Reported } else { UsageSource::Counted };
        self.ending.repairs(usage)
    }
}

impl OpenAiReader {
    fn learn_frame(&mut self, choice: &Choice<'_>, piece: &str) {
        let only = choice.only_text();
        let place = only.and_then(|(role, text)| Some((role, text.place_in(piece)?)));
        if let Some((role, place)) = place {
            self.frame.learn(role, piece, place);
        }
    }

    fn say(&mut self, role: TextRole, text: &str, said: &mut Vec<ChatEvent>) {
        match role {
            TextRole::Answer => {
                self.texts += 1;
                self.splitter.push(text, said);
            }
            TextRole::Thinking => {
                self.thoughts += 1;
                said.push(ChatEvent::Reasoning(text.to_owned()));
            }
        }
    }

    fn choice(&mut self, choice: &Choice<'_>, said: &mut Vec<ChatEvent>) -> Result<(), PieceError> {
        if let Some(logprobs) = &choice.logprobs {
            let tokens = tokens_of(logprobs);
            if !tokens.is_empty() {
                said.push(ChatEvent::Logprobs(tokens));
            }
        }
        self.extra.keep(FieldPlace::Choice, &choice.unknown);
        if let Some(delta) = choice.said() {
            self.extra.keep(FieldPlace::Message, &delta.unknown);
            self.delta(delta, said);
        }
        let text = choice.text.as_str();
        if !text.is_empty() {
            self.texts += 1;
            said.push(ChatEvent::Text(text.to_owned()));
        }
        match choice.finish_reason.as_str() {
            "" => {}
            reason => self.ending.finish = Some(finish_of(reason).map_err(PieceError::Failed)?),
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Delta<'_>, said: &mut Vec<ChatEvent>) {
        let thought = delta.thought();
        if !thought.is_empty() {
            self.say(TextRole::Thinking, thought, said);
        }
        for text in [delta.content.text.as_str(), delta.refusal.as_str()] {
            if !text.is_empty() {
                self.say(TextRole::Answer, text, said);
            }
        }
        for call in &delta.tool_calls.0 {
            let piece = piece(call.index.0, call.id.as_str(), call.function.0.as_ref());
            self.call(piece, said);
        }
        if let Some(function) = &delta.function_call.0 {
            self.call(piece(Some(0), "", Some(function)), said);
        }
    }

    fn call(&mut self, piece: CallPiece<'_>, said: &mut Vec<ChatEvent>) {
        if piece.is_empty() {
            return;
        }
        // What was held back as the beginning of a tag comes before the call.
        self.splitter.end(said);
        self.texts += 1;
        self.calls.push(piece, said);
    }

    fn complete(&mut self, said: &mut Vec<ChatEvent>) {
        self.splitter.end(said);
        self.calls.end(said);
        let finish = self.ending.complete(&self.calls);
        said.extend(self.extra.take());
        said.push(ChatEvent::Done(Completion {
            finish,
            usage: self.usage(),
            timings: Timings {
                load_ms: self.timings.load_ms.0.unwrap_or_default(),
                queue_ms: self.timings.queue_ms.0.unwrap_or_default(),
                prompt_ms: self.timings.prompt_ms.0.unwrap_or_default(),
                predicted_ms: self.timings.predicted_ms.0.unwrap_or_default(),
                draft_tokens: self.timings.draft_n.0.unwrap_or_default(),
                accepted_tokens: self.timings.draft_n_accepted.0.unwrap_or_default(),
            },
        }));
    }

    fn usage(&self) -> Usage {
        let usage = self.usage.unwrap_or_default();
        let cached = usage.cached_tokens().or(self.timings.cache_n.0);
        let completion = usage.completion_tokens.0.unwrap_or(self.texts + self.thoughts);
        Usage {
            prompt_tokens: usage.prompt_tokens.0.unwrap_or_default(),
            cached_tokens: cached.unwrap_or_default(),
            completion_tokens: completion,
            reasoning_tokens: usage.reasoning_tokens().unwrap_or(self.thoughts).min(completion),
        }
    }
}

/// What the piece says went wrong, in whichever of three places.
fn failure(chunk: &Chunk<'_>, piece: &str) -> Option<Fault> {
    let of_choice = chunk.choices.0.as_ref().and_then(|choice| choice.error.as_ref());
    if let Some(error) = error_in(chunk.error.as_ref()).or(error_in(of_choice)) {
        return Some(reported(error));
    }
    if chunk.object.as_str() != "error" {
        return None;
    }
    let error: Value = serde_json::from_str(piece).unwrap_or_default();
    Some(reported(&error))
}

fn piece<'a>(
    index: Option<u32>,
    id: &'a str,
    function: Option<&'a WireFunction<'_>>,
) -> CallPiece<'a> {
    let name = function.map_or("", |function| function.name.as_str());
    let arguments = function.map_or("", |function| function.arguments.as_str());
    CallPiece { index, id, name, arguments }
}
