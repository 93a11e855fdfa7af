//! Leaves the oldest items out of prompts when a conversation is too long for the chat model. Many at a time: after each
//! cut the model computes again all that follows the instructions, and until the next cut its cache has the prompt.

use hob_core::realtime::PromptTruncation;
use hob_core::{ChatEvent, Fault, ModelError};

use super::VoiceSession;
use crate::prompt::fixed_bytes;
use crate::response::{ChatState, Response};

/// The part of the room that stays in use, if the client names none. So the model computes each token twice; with 0.8 it
/// would be five times, and the wait after a cut would be longer.
const RETENTION: f64 = 0.5;
/// Prompts take up to this part of the context. The rest is left for the next question and its answer.
const USABLE: f64 = 7.0 / 8.0;

impl VoiceSession {
    /// How many tokens prompt and answer may have together. 0: it is not known.
    pub fn set_context_tokens(&mut self, tokens: u32) {
        self.context_tokens = if tokens == 0 { u32::MAX } else { tokens };
    }

    /// Asks again with a shorter prompt if the model has refused that of a response. It has computed nothing then.
    pub(super) fn asks_again(
        &mut self,
        stream: u64,
        event: Option<&Result<ChatEvent, ModelError>>,
    ) -> bool {
        let is_refused = |response: &Response| {
            let is_running = response.chat == ChatState::Running(stream);
            is_running && response.is_empty() && response.plan.input.is_none()
        };
        if let Some(Err(error)) = event
            && let Some(at) = self.responses.iter().position(is_refused)
            && self.shorten(error, fixed_bytes(&self.responses[at].plan.settings))
        {
            self.responses[at].chat = ChatState::Waiting;
            return true;
        }
        false
    }

    /// Leaves out items if a prompt was too long, which had so many bytes of instructions and tools. Returns whether there
    /// were any.
    pub(super) fn shorten(&mut self, error: &ModelError, fixed_bytes: usize) -> bool {
        match error {
            ModelError::TooLong { needed, available }
            | ModelError::Upstream {
                fault: Fault::TooLong { needed: Some(needed), available: Some(available), .. },
                ..
            } => self.leave_out((*needed).max(*available), *available, fixed_bytes),
            // Another server named no numbers.
            _ => error.kind() == "too_long" && self.leave_out(1, 1, fixed_bytes),
        }
    }

    /// Leaves out items after an answer, so that the next prompt is not refused and the next answer not cut off.
    pub(super) fn make_room(&mut self, response: &Response) {
        let plan = &response.plan;
        if !plan.is_out_of_band
            && plan.input.is_none()
            && let Some(tokens) = response.tokens()
            && self.leave_out(tokens, self.context_tokens, fixed_bytes(&plan.settings))
        {
            self.warm_prompt();
        }
    }

    /// Leaves out items if a prompt of so many tokens does not fit the context. What is left out stays out, so the session's
    /// instructions count, and not the longer ones that a response may have had.
    fn leave_out(&mut self, tokens: u32, context_tokens: u32, sent_bytes: usize) -> bool {
        let settings = self.settings();
        let (ratio, limit) = match settings.truncation {
            PromptTruncation::Auto => (RETENTION, None),
            PromptTruncation::Retain { ratio, tokens_max } => (ratio, tokens_max),
            PromptTruncation::Disabled => return false,
        };
        let (fixed, said) = (fixed_bytes(settings) as f64, self.conversation.prompt_bytes() as f64);
        let bytes_per_token = (sent_bytes as f64 + said) / f64::from(tokens.max(1));
        let context = f64::from(context_tokens) * bytes_per_token;
        let room = context * USABLE - fixed;
        let room = limit.map_or(room, |limit| room.min(f64::from(limit) * bytes_per_token));
        // Instructions that are too long alone are refused also without the conversation.
        said > room && fixed < context && self.conversation.leave_out((room * ratio) as usize)
    }
}
