//! Why an answer ended, in every server's own words.
//! A reason that means a bad end is a failure, so that half an answer never looks whole.

use hob_core::Fault;
use hob_core::chat::FinishReason;

use super::{AnswerRepairs, CallReader, UsageSource};

/// The repair of an answer whose server did not say why it ended.
pub const FINISH_REPAIR: &str = "finish_reason";

/// The end of an answer, as far as its server has said it.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Why, once that was said.
    pub(super) finish: Option<FinishReason>,
    is_complete: bool,
    repairs: Vec<&'static str>,
}

impl Ending {
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The server says that this was all.
    pub(super) fn marked(&mut self) {
        if self.finish.is_none() {
            self.repairs.push(FINISH_REPAIR);
        }
    }

    /// The body has ended. Returns whether the caller must complete the answer, because the server marked no end.
    ///
    /// # Errors
    /// [`Fault::CutOff`]: the server has not said why the answer ended, either.
    pub(super) fn closed(&mut self) -> Result<bool, Fault> {
        if self.is_complete {
            return Ok(false);
        }
        if self.finish.is_none() {
            return Err(Fault::CutOff);
        }
        self.repairs.push("done");
        Ok(true)
    }

    /// Marks the answer as complete. Returns why it ended, for a client: an answer with calls does not just stop.
    pub(super) fn complete(&mut self, calls: &CallReader) -> FinishReason {
        self.is_complete = true;
        match self.finish.unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if !calls.is_empty() => FinishReason::ToolCalls,
            finish => finish,
        }
    }

    pub(super) fn repairs(&self, usage: UsageSource) -> AnswerRepairs {
        AnswerRepairs { repairs: self.repairs.clone(), usage }
    }
}

/// Reads a server's reason. An unknown one means that the answer is whole.
///
/// # Errors
/// [`Fault::Reported`] for words that mean a failure.
pub(super) fn finish_of(reason: &str) -> Result<FinishReason, Fault> {
    Ok(match reason {
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "content_filter" | "refusal" | "sensitive" => FinishReason::ContentFilter,
        "error" | "abort" | "cancelled" | "network_error" | "insufficient_system_resource" => {
            let message = format!("the answer ended with '{reason}'");
            return Err(Fault::Reported { message });
        }
        _ => FinishReason::Stop,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_one_meaning() {
        for (words, finish) in [
            (&["stop", "eos", "end_turn", "stop_sequence", "load"][..], FinishReason::Stop),
            (&["length", "max_tokens", "model_length"], FinishReason::Length),
            (&["tool_calls", "tool_use", "function_call"], FinishReason::ToolCalls),
            (&["content_filter", "refusal", "sensitive"], FinishReason::ContentFilter),
        ] {
            for word in words {
                assert_eq!(finish_of(word), Ok(finish), "{word}");
            }
        }
        let bad = ["error", "abort", "cancelled", "network_error", "insufficient_system_resource"];
        for word in bad {
            let message = format!("the answer ended with '{word}'");
            assert_eq!(finish_of(word), Err(Fault::Reported { message }));
        }
    }
}
