//! The answer of a server that speaks OpenAI's protocol, or nearly.
//! What it forgets to say is said for it; what it says twice or in its own way is put right.

use hob_core::chat::{Completion, FinishReason, Timings, TokenLogprob, TokenText, Usage};
use hob_core::{ChatEvent, Fault};
use serde_json::Value;

use super::calls::CallPiece;
use super::chunk::{Choice, Chunk, Delta, WireCall, WireFunction, WireTimings, WireUsage};
use super::fault::{reported, shortened};
use super::{CallReader, Mended, Misread, ThoughtSplitter, UpstreamReader, UsageSource};

/// Reads chat and text completions, streamed or whole.
#[derive(Debug, Default)]
pub struct OpenAiReader {
    splitter: ThoughtSplitter,
    calls: CallReader,
    finish: Option<FinishReason>,
    usage: Option<WireUsage>,
    timings: WireTimings,
    /// Pieces of text and of thinking: about as many tokens, until the server says how many.
    texts: u32,
    thoughts: u32,
    is_complete: bool,
    repairs: Vec<&'static str>,
}

impl UpstreamReader for OpenAiReader {
    fn read(&mut self, piece: &str, said: &mut Vec<ChatEvent>) -> Result<(), Misread> {
        if self.is_complete {
            return Ok(());
        }
        if piece == "[DONE]" {
            if self.finish.is_none() {
                self.repairs.push("finish_reason");
            }
            self.complete(said);
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(piece).map_err(|_| Misread::Malformed)?;
        if let Some(error) = &chunk.error {
            return Err(Misread::Failed(reported(error)));
        }
        if chunk.object.as_deref() == Some("error") {
            let message = shortened(chunk.message.as_deref().unwrap_or("without a word"));
            return Err(Misread::Failed(Fault::Reported { message }));
        }
        self.usage = chunk.usage.or(self.usage);
        self.timings = chunk.timings.unwrap_or(self.timings);
        // One answer is asked for; a second one would be nobody's.
        chunk.choices.into_iter().next().map_or(Ok(()), |choice| self.choice(choice, said))
    }

    fn end(&mut self, said: &mut Vec<ChatEvent>) -> Result<(), Fault> {
        if self.is_complete {
            return Ok(());
        }
        if self.finish.is_none() {
            return Err(Fault::CutOff);
        }
        self.repairs.push("done");
        self.complete(said);
        Ok(())
    }

    fn mended(&self) -> Mended {
        let usage = self.usage.and_then(|usage| usage.completion_tokens);
        let usage = if usage.is_some() { UsageSource::Reported } else { UsageSource::Counted };
        Mended { repairs: self.repairs.clone(), usage }
    }
}

impl OpenAiReader {
    fn choice(&mut self, choice: Choice<'_>, said: &mut Vec<ChatEvent>) -> Result<(), Misread> {
        if let Some(logprobs) = &choice.logprobs {
            let tokens = logprobs_of(logprobs);
            if !tokens.is_empty() {
                said.push(ChatEvent::Logprobs(tokens));
            }
        }
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(&delta, said);
        }
        if let Some(text) = choice.text.filter(|text| !text.is_empty()) {
            self.texts += 1;
            said.push(ChatEvent::Text(text.into_owned()));
        }
        match choice.finish_reason.as_deref() {
            None | Some("") => Ok(()),
            Some(reason) => self.finished(reason),
        }
    }

    fn delta(&mut self, delta: &Delta<'_>, said: &mut Vec<ChatEvent>) {
        let thoughts = [&delta.reasoning_content, &delta.reasoning, &delta.reasoning_details];
        let thought = thoughts.into_iter().flatten().find(|text| !text.is_empty());
        if let Some(thought) = thought {
            self.thoughts += 1;
            said.push(ChatEvent::Reasoning(thought.as_ref().to_owned()));
        }
        for text in [&delta.content, &delta.refusal].into_iter().flatten() {
            if !text.is_empty() {
                self.texts += 1;
                self.splitter.push(text, said);
            }
        }
        for call in delta.tool_calls.iter().flatten() {
            self.call(call.index, call, said);
        }
        if let Some(function) = &delta.function_call {
            let WireFunction { name, arguments } = function;
            let function = WireFunction { name: name.clone(), arguments: arguments.clone() };
            let call = WireCall { index: Some(0), id: None, function: Some(function) };
            self.call(Some(0), &call, said);
        }
    }

    fn call(&mut self, index: Option<u32>, call: &WireCall<'_>, said: &mut Vec<ChatEvent>) {
        // What was held back as the beginning of a tag comes before the call.
        self.splitter.end(said);
        let function = call.function.as_ref();
        let piece = CallPiece {
            index,
            id: call.id.as_deref().unwrap_or_default(),
            name: function.and_then(|f| f.name.as_deref()).unwrap_or_default(),
            arguments: function.and_then(|f| f.arguments.as_deref()).unwrap_or_default(),
        };
        self.texts += 1;
        self.calls.push(piece, said);
    }

    fn finished(&mut self, reason: &str) -> Result<(), Misread> {
        self.finish = Some(match reason {
            "length" | "max_tokens" => FinishReason::Length,
            "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
            "content_filter" | "refusal" => FinishReason::ContentFilter,
            "error" | "abort" => {
                let message = format!("the answer ended with '{reason}'");
                return Err(Misread::Failed(Fault::Reported { message }));
            }
            _ => FinishReason::Stop,
        });
        Ok(())
    }

    fn complete(&mut self, said: &mut Vec<ChatEvent>) {
        self.is_complete = true;
        self.splitter.end(said);
        self.calls.end(said);
        let finish = match self.finish.unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            finish => finish,
        };
        said.push(ChatEvent::Done(Completion {
            finish,
            usage: self.usage(),
            timings: Timings {
                prompt_ms: self.timings.prompt_ms.unwrap_or_default(),
                predicted_ms: self.timings.predicted_ms.unwrap_or_default(),
                ..Timings::default()
            },
        }));
    }

    fn usage(&self) -> Usage {
        let usage = self.usage.unwrap_or_default();
        let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let thought = usage.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        Usage {
            prompt_tokens: usage.prompt_tokens.unwrap_or_default(),
            cached_tokens: cached.or(self.timings.cache_n).unwrap_or_default(),
            completion_tokens: usage.completion_tokens.unwrap_or(self.texts + self.thoughts),
            reasoning_tokens: thought.unwrap_or(self.thoughts),
        }
    }
}

/// `{"content": [{"token", "logprob", "bytes", "top_logprobs"}]}`; what is older has no bytes.
fn logprobs_of(logprobs: &Value) -> Vec<TokenLogprob> {
    let tokens = logprobs["content"].as_array().into_iter().flatten();
    let of = |value: &Value| {
        let top = value["top_logprobs"].as_array().into_iter().flatten().filter_map(token_of);
        token_of(value).map(|(token, logprob)| TokenLogprob { token, logprob, top: top.collect() })
    };
    tokens.filter_map(of).collect()
}

fn token_of(value: &Value) -> Option<(TokenText, f32)> {
    let bytes = value["bytes"].as_array().map(|bytes| {
        bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect::<Vec<u8>>()
    });
    let bytes = bytes.or_else(|| Some(value["token"].as_str()?.as_bytes().to_vec()))?;
    Some((TokenText(bytes), value["logprob"].as_f64()? as f32))
}
