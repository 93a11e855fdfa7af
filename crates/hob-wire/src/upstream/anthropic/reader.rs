//! The answer of a server that speaks Anthropic's protocol: blocks that begin, go on and end, one after
//! the other. Events and blocks that hob does not know are skipped, as Anthropic asks its readers to do.

use hob_core::chat::{Completion, FinishReason, Timings, Usage};
use hob_core::{ChatEvent, Fault};
use serde_json::Value;

use super::super::calls::CallPiece;
use super::super::fault::reported;
use super::super::finish::Ending;
use super::super::lenient::Count;
use super::super::{AnswerRepairs, CallReader, PieceError, UpstreamReader, UsageSource};
use super::event::{Block, Delta, Event, WireUsage};

/// Reads the data of the events of one streamed message.
#[derive(Debug, Default)]
pub struct AnthropicReader {
    calls: CallReader,
    open: OpenBlock,
    ending: Ending,
    usage: WireUsage,
    /// The count of the answer's tokens is its own and not the one that every answer begins with.
    is_counted: bool,
    /// Pieces of text and of thinking: about as many tokens, until the server says how many.
    texts: u32,
    thoughts: u32,
}

/// The block that deltas belong to.
#[derive(Debug, Default)]
enum OpenBlock {
    /// Text, thinking, or what hob does not read.
    #[default]
    Other,
    Call {
        /// The arguments, as long as no delta has said any.
        unsaid: Option<String>,
    },
}

impl UpstreamReader for AnthropicReader {
    fn read(&mut self, piece: &str, said: &mut Vec<ChatEvent>) -> Result<(), PieceError> {
        if self.ending.is_complete() {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_str(piece).map_err(|_| PieceError::Malformed)?;
        if let Some(error) = &event.error {
            return Err(PieceError::Failed(fault(error)));
        }
        match event.kind.as_str() {
            "content_block_delta" => self.more(event.delta.0.unwrap_or_default(), said),
            "content_block_start" => self.begin(event.content_block.0.unwrap_or_default(), said),
            "content_block_stop" => self.close(said),
            "message_start" => {
                self.usage.update(event.message.0.and_then(|m| m.usage.0).unwrap_or_default())
            }
            "message_delta" => self.finished(&event),
            "message_stop" => {
                self.ending.marked();
                self.complete(said);
            }
            "error" => return Err(PieceError::Failed(fault(&Value::Null))),
            "" => return Err(PieceError::Malformed),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, said: &mut Vec<ChatEvent>) -> Result<(), Fault> {
        if self.ending.closed()? {
            self.complete(said);
        }
        Ok(())
    }

    fn repairs(&self) -> AnswerRepairs {
        let usage = if self.is_counted { UsageSource::Reported } else { UsageSource::Counted };
        self.ending.repairs(usage)
    }
}

impl AnthropicReader {
    fn begin(&mut self, block: Block<'_>, said: &mut Vec<ChatEvent>) {
        self.close(said);
        match block.kind.as_str() {
            "text" => self.text(block.text.as_str(), said),
            "thinking" => self.thought(block.thinking.as_str(), said),
            "tool_use" => {
                let input = block.input.filter(Value::is_object);
                let unsaid = Some(input.map_or_else(|| "{}".to_owned(), |input| input.to_string()));
                self.open = OpenBlock::Call { unsaid };
                self.texts += 1;
                let (id, name) = (block.id.as_str(), block.name.as_str());
                let piece = CallPiece { id, name, ..CallPiece::default() };
                self.calls.push(piece, said);
            }
            _ => {}
        }
    }

    fn more(&mut self, delta: Delta<'_>, said: &mut Vec<ChatEvent>) {
        match delta.kind.as_str() {
            "text_delta" => self.text(delta.text.as_str(), said),
            "thinking_delta" => self.thought(delta.thinking.as_str(), said),
            "input_json_delta" => self.arguments(delta.partial_json.as_str(), said),
            // A signature proves what was thought to Anthropic alone.
            _ => {}
        }
    }

    fn text(&mut self, text: &str, said: &mut Vec<ChatEvent>) {
        if !text.is_empty() {
            self.texts += 1;
            said.push(ChatEvent::Text(text.to_owned()));
        }
    }

    fn thought(&mut self, thought: &str, said: &mut Vec<ChatEvent>) {
        if !thought.is_empty() {
            self.thoughts += 1;
            said.push(ChatEvent::Reasoning(thought.to_owned()));
        }
    }

    /// Tools that the server runs itself have arguments too. Clients do not get them.
    fn arguments(&mut self, arguments: &str, said: &mut Vec<ChatEvent>) {
        if let OpenBlock::Call { unsaid } = &mut self.open
            && !arguments.is_empty()
        {
            *unsaid = None;
            self.texts += 1;
            self.calls.push(CallPiece { arguments, ..CallPiece::default() }, said);
        }
    }

    fn close(&mut self, said: &mut Vec<ChatEvent>) {
        if let OpenBlock::Call { unsaid: Some(arguments) } = std::mem::take(&mut self.open) {
            let piece = CallPiece { arguments: &arguments, ..CallPiece::default() };
            self.calls.push(piece, said);
        }
    }

    fn finished(&mut self, event: &Event<'_>) {
        if let Some(usage) = event.usage.0 {
            self.is_counted |= usage.output_tokens.0.is_some();
            self.usage.update(usage);
        }
        let reason = event.delta.0.as_ref().map_or("", |delta| delta.stop_reason.as_str());
        self.ending.finish = match reason {
            "" => self.ending.finish,
            "max_tokens" | "model_context_window_exceeded" => Some(FinishReason::Length),
            "tool_use" => Some(FinishReason::ToolCalls),
            "refusal" => Some(FinishReason::ContentFilter),
            // `end_turn`, `stop_sequence`, and `pause_turn` of tools that hob does not ask for.
            _ => Some(FinishReason::Stop),
        };
    }

    fn complete(&mut self, said: &mut Vec<ChatEvent>) {
        self.close(said);
        self.calls.end(said);
        let finish = self.ending.complete(&self.calls);
        let (usage, timings) = (self.usage(), Timings::default());
        said.push(ChatEvent::Done(Completion { finish, usage, timings }));
    }

    fn usage(&self) -> Usage {
        let of = |count: Count| count.0.unwrap_or_default();
        let usage = &self.usage;
        let cached_tokens = of(usage.cache_read_input_tokens);
        let prompt_tokens = of(usage.input_tokens)
            .saturating_add(cached_tokens)
            .saturating_add(of(usage.cache_creation_input_tokens));
        let counted = usage.output_tokens.0.filter(|_| self.is_counted);
        let completion_tokens = counted.unwrap_or(self.texts + self.thoughts);
        let thought = usage.output_tokens_details.0.and_then(|details| details.thinking_tokens.0);
        let reasoning_tokens = thought.unwrap_or(self.thoughts).min(completion_tokens);
        Usage { prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens }
    }
}

fn fault(error: &Value) -> Fault {
    let retry_after = None;
    match (error["type"].as_str(), reported(error)) {
        (Some("overloaded_error"), Fault::Reported { message }) => {
            Fault::Overloaded { message, retry_after }
        }
        (Some("rate_limit_error"), Fault::Reported { message }) => {
            Fault::Limited { message, retry_after }
        }
        (_, fault) => fault,
    }
}
