//! Why an answer ended, in every server's own words.
//! What means that it did not end well is a failure, so that nobody takes half an answer for one.

use hob_core::Fault;
use hob_core::chat::FinishReason;

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
        for word in ["error", "abort", "cancelled", "network_error"] {
            let message = format!("the answer ended with '{word}'");
            assert_eq!(finish_of(word), Err(Fault::Reported { message }));
        }
    }
}
