//! Ollama's answer, line by line: text, thinking and whole calls, and at its end what it took.
//! Its calls come whole, and often without an id; its errors come as a last line.

use hob_core::chat::{Completion, Timings, Usage};
use hob_core::{ChatEvent, Fault};
use serde_json::{Value, json};

use super::line::{Line, WireMessage};
use crate::upstream::calls::CallPiece;
use crate::upstream::chunk::WireCall;
use crate::upstream::fault::reported;
use crate::upstream::finish::{Ending, finish_of};
use crate::upstream::lenient::{Amount, Count, error_in};
use crate::upstream::logprobs::tokens_of;
use crate::upstream::{
    AnswerRepairs, CallReader, PieceError, ThoughtSplitter, UpstreamReader, UsageSource,
};

/// Reads `/api/chat` and `/api/generate`, streamed or whole.
#[derive(Debug, Default)]
pub struct OllamaReader {
    splitter: ThoughtSplitter,
    calls: CallReader,
    /// Pieces of text and of thinking: about as many tokens, until Ollama says how many.
    texts: u32,
    thoughts: u32,
    ending: Ending,
    usage: UsageSource,
}

impl UpstreamReader for OllamaReader {
    fn read(&mut self, piece: &str, said: &mut Vec<ChatEvent>) -> Result<(), PieceError> {
        if self.ending.is_complete() {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_str(piece).map_err(|_| PieceError::Malformed)?;
        if let Some(error) = error_in(line.error.as_ref()) {
            return Err(PieceError::Failed(failure(error, line.status)));
        }
        let none = WireMessage::default();
        let message = line.message.0.as_ref().unwrap_or(&none);
        self.think([message.thinking.as_str(), line.thinking.as_str()], said);
        self.push_logprobs(&line, message, said);
        self.speak(message.content.as_str(), line.response.as_str(), said);
        for call in message.tool_calls.0.iter().chain(&line.tool_calls.0) {
            self.call(call, said);
        }
        if line.done.0 { self.complete(&line, said) } else { Ok(()) }
    }

    fn end(&mut self, _said: &mut Vec<ChatEvent>) -> Result<(), Fault> {
        // The line that says why is the one that completes it.
        self.ending.closed().map(drop)
    }

    fn repairs(&self) -> AnswerRepairs {
        self.ending.repairs(self.usage)
    }
}

impl OllamaReader {
    fn think(&mut self, thoughts: [&str; 2], said: &mut Vec<ChatEvent>) {
        for thought in thoughts.into_iter().filter(|thought| !thought.is_empty()) {
            self.thoughts += 1;
            said.push(ChatEvent::Reasoning(thought.to_owned()));
        }
    }

    /// Reports log probabilities of the text. Those of thinking are left out: clients match them with the text.
    fn push_logprobs(&self, line: &Line<'_>, message: &WireMessage<'_>, said: &mut Vec<ChatEvent>) {
        let is_thought =
            !message.thinking.as_str().is_empty() || !line.thinking.as_str().is_empty();
        let is_said = !message.content.as_str().is_empty() || !line.response.as_str().is_empty();
        if is_thought && !is_said {
            return;
        }
        let tokens = line.logprobs.as_ref().map(tokens_of).unwrap_or_default();
        if !tokens.is_empty() {
            said.push(ChatEvent::Logprobs(tokens));
        }
    }

    /// Only a chat's text is looked through for thinking: what continues a text is what it is.
    fn speak(&mut self, content: &str, response: &str, said: &mut Vec<ChatEvent>) {
        if !content.is_empty() {
            self.texts += 1;
            self.splitter.push(content, said);
        }
        if !response.is_empty() {
            self.texts += 1;
            said.push(ChatEvent::Text(response.to_owned()));
        }
    }

    fn call(&mut self, call: &WireCall<'_>, said: &mut Vec<ChatEvent>) {
        let Some(function) = &call.function.0 else { return };
        // What was held back as the beginning of a tag comes before the call.
        self.splitter.end(said);
        self.texts += 1;
        let piece = CallPiece {
            index: None,
            id: call.id.as_str(),
            name: function.name.as_str(),
            arguments: function.arguments.as_str(),
        };
        self.calls.push_whole(piece, said);
    }

    fn complete(&mut self, line: &Line<'_>, said: &mut Vec<ChatEvent>) -> Result<(), PieceError> {
        let finish = finish_of(line.done_reason.as_str()).map_err(PieceError::Failed)?;
        if line.done_reason.as_str().is_empty() {
            self.ending.marked();
        }
        self.ending.finish = Some(finish);
        self.splitter.end(said);
        self.calls.end(said);
        let finish = self.ending.complete(&self.calls);
        let (usage, timings) = (self.usage_of(line), timings(line));
        said.push(ChatEvent::Done(Completion { finish, usage, timings }));
        Ok(())
    }

    fn usage_of(&mut self, line: &Line<'_>) -> Usage {
        if line.eval_count.0.is_some() {
            self.usage = UsageSource::Reported;
        }
        let completion_tokens = line.eval_count.0.unwrap_or(self.texts + self.thoughts);
        Usage {
            prompt_tokens: line.prompt_eval_count.0.unwrap_or_default(),
            cached_tokens: line.prompt_eval_cached_count.0.unwrap_or_default(),
            completion_tokens,
            reasoning_tokens: self.thoughts.min(completion_tokens),
        }
    }
}

fn failure(error: &Value, status: Count) -> Fault {
    match (error, status.0) {
        (Value::String(message), Some(code)) => {
            reported(&json!({ "message": message, "code": code }))
        }
        _ => reported(error),
    }
}

fn timings(line: &Line<'_>) -> Timings {
    let milliseconds = |nanoseconds: Amount| nanoseconds.0.unwrap_or_default().max(0.0) / 1e6;
    Timings {
        load_ms: milliseconds(line.load_duration),
        queue_ms: 0.0,
        prompt_ms: milliseconds(line.prompt_eval_duration),
        predicted_ms: milliseconds(line.eval_duration),
        ..Timings::default()
    }
}
