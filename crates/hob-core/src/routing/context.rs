//! Whether a prompt fits into a target's context, estimated without the target's tokenizer.
//! Between the two bounds of the estimate it is sent, and the target's own count decides.

use crate::ChatRequest;
use crate::chat::{BYTES_PER_TOKEN, Conversation, Prompt};

/// Tokens per byte of text: the 5th and the 95th percentile over prompts, from long words to code.
const TOKENS_PER_BYTE: (f64, f64) = (0.15, 0.5);

/// Tokens of a picture of any size: servers differ, and most are near this.
const IMAGE_TOKENS: u64 = 1000;

/// Whether a prompt fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    Yes,
    Perhaps,
    No,
}

impl Fit {
    /// Whether the prompt and an answer of `tokens_max` fit; without a limit, an answer of one token.
    pub fn check(
        request: &ChatRequest,
        tokens_max: Option<u32>,
        context_tokens: Option<u32>,
    ) -> Fit {
        let Some(context) = context_tokens.filter(|tokens| *tokens > 0) else {
            return Fit::Perhaps;
        };
        let (least, most) = tokens_of(request);
        let wanted = u64::from(tokens_max.unwrap_or(1));
        if least.saturating_add(wanted) > u64::from(context) {
            Fit::No
        } else if most.saturating_add(wanted) <= u64::from(context) {
            Fit::Yes
        } else {
            Fit::Perhaps
        }
    }
}

/// Tokens of a prompt, at least and at most.
pub fn tokens_of(request: &ChatRequest) -> (u64, u64) {
    if let Prompt::Tokens(tokens) = &request.prompt {
        return (tokens.len() as u64, tokens.len() as u64);
    }
    let images = images(&request.prompt) * IMAGE_TOKENS;
    let bytes = prompt_bytes(&request.prompt);
    let (least, most) = TOKENS_PER_BYTE;
    // Not every model gets the thinking of earlier answers.
    let sure = (bytes - thinking_bytes(&request.prompt)) as f64;
    ((sure * least) as u64 + images, (bytes as f64 * most).ceil() as u64 + images)
}

/// Estimates the tokens of a prompt with its tools, for callers that need one number.
pub fn prompt_tokens_guess(prompt: &Prompt) -> usize {
    prompt_bytes(prompt).div_ceil(BYTES_PER_TOKEN)
}

/// Bytes of text that the model reads. The text of token ids is estimated.
pub fn prompt_bytes(prompt: &Prompt) -> usize {
    match prompt {
        Prompt::Chat(conversation) => conversation_bytes(conversation) + thinking_bytes(prompt),
        Prompt::Text(text) => text.len(),
        Prompt::Tokens(tokens) => tokens.len() * BYTES_PER_TOKEN,
        Prompt::Infill { prefix, suffix } => prefix.len() + suffix.len(),
    }
}

fn conversation_bytes(conversation: &Conversation) -> usize {
    let messages = conversation.messages.iter().map(|message| {
        let calls = message.tool_calls.iter();
        let calls: usize = calls.map(|call| call.name.len() + call.arguments.as_str().len()).sum();
        message.text.len() + calls
    });
    let tools = conversation.tools.iter().map(|tool| {
        let described = tool.description.as_ref().map_or(0, String::len);
        tool.name.len() + described + tool.parameters.as_ref().map_or(0, |json| json.as_str().len())
    });
    messages.sum::<usize>() + tools.sum::<usize>()
}

fn thinking_bytes(prompt: &Prompt) -> usize {
    match prompt {
        Prompt::Chat(conversation) => {
            let thoughts = conversation.messages.iter().filter_map(|one| one.reasoning.as_ref());
            thoughts.map(String::len).sum()
        }
        Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => 0,
    }
}

fn images(prompt: &Prompt) -> u64 {
    match prompt {
        Prompt::Chat(conversation) => {
            conversation.messages.iter().map(|message| message.images.len() as u64).sum()
        }
        Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Message, Role};

    fn text(bytes: usize, tokens_max: Option<u32>) -> ChatRequest {
        ChatRequest {
            prompt: Prompt::Text("x".repeat(bytes)),
            tokens_max,
            ..ChatRequest::default()
        }
    }

    #[test]
    fn a_prompt_is_sent_unless_it_is_certainly_too_long() {
        for (bytes, tokens_max, context, fit) in [
            (1000, None, Some(600), Fit::Yes),
            (1000, None, Some(400), Fit::Perhaps),
            (1000, None, Some(100), Fit::No),
            (1000, Some(200), Some(600), Fit::Perhaps),
            (1000, Some(500), Some(600), Fit::No),
            (1000, None, None, Fit::Perhaps),
            (1000, None, Some(0), Fit::Perhaps),
        ] {
            assert_eq!(
                Fit::check(&text(bytes, tokens_max), tokens_max, context),
                fit,
                "{bytes} {context:?}"
            );
        }
    }

    #[test]
    fn thinking_of_earlier_answers_may_count() {
        let reasoning = Some("x".repeat(900));
        let thought = Message { reasoning, ..Message::new(Role::Assistant, "x".repeat(100)) };
        let conversation = Conversation { messages: vec![thought], ..Conversation::default() };
        let prompt = Prompt::Chat(conversation);
        assert_eq!(prompt_bytes(&prompt), 1000);
        let request = ChatRequest { prompt, ..ChatRequest::default() };
        assert_eq!(tokens_of(&request), (15, 500));
    }

    #[test]
    fn tokens_that_were_counted_are_not_guessed() {
        let prompt = Prompt::Tokens(vec![1; 500]);
        let request = ChatRequest { prompt, ..ChatRequest::default() };
        assert_eq!(tokens_of(&request), (500, 500));
        assert_eq!(prompt_tokens_guess(&request.prompt), 500);
        assert_eq!(Fit::check(&request, None, Some(501)), Fit::Yes);
        assert_eq!(
            Fit::check(&request, None, Some(500)),
            Fit::No,
            "there is no room for an answer"
        );
    }
}
