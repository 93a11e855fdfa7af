//! Continues an answer that broke off: what came so far, whether the rest may be requested, and whether
//! the target continues or starts over.

use crate::chat::{BYTES_PER_TOKEN, OutputFormat, Prompt, Role, ToolChoice, Usage};
use crate::{ChatEvent, ChatRequest, Clock, Fault, ModelError};

/// Bytes of an answer that are remembered; a longer answer is not continued.
const SAID_BYTES_MAX: usize = 256 << 10;
/// If this many bytes equal the answer's beginning, the target has started over.
const ALIKE_BYTES: usize = 16;
/// A target may repeat the whole text and then go on. A text of fewer bytes may come again by chance: after `1`, the text
/// `10` may continue 110, or repeat the `1` and continue 10. hob then takes it for a new start.
const ECHO_BYTES_MIN: usize = 8;

/// The part of an answer that has arrived.
#[derive(Clone, PartialEq)]
pub struct AnswerSoFar {
    text: String,
    pieces: PiecesSoFar,
    /// Only text was requested, and only text has come, with thinking before it.
    is_plain: bool,
}

/// The number of pieces, which is about the number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PiecesSoFar {
    texts: u32,
    thoughts: u32,
}

// Logs must not contain the text.
crate::debug_fields!(AnswerSoFar: pieces);

crate::debug_fields!(RestartCheck: came.len());

impl AnswerSoFar {
    /// The answer to this request, before its first event.
    pub fn new(request: &ChatRequest) -> AnswerSoFar {
        AnswerSoFar {
            text: String::new(),
            pieces: PiecesSoFar::default(),
            is_plain: is_plain(request),
        }
    }

    pub fn add(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::Text(text) => {
                self.pieces.texts += 1;
                self.is_plain &= self.text.len() + text.len() <= SAID_BYTES_MAX;
                if self.is_plain {
                    self.text.push_str(text);
                }
            }
            ChatEvent::Reasoning(_) => {
                self.pieces.thoughts += 1;
                self.is_plain &= self.text.is_empty();
            }
            ChatEvent::Done(_)
            | ChatEvent::Status { .. }
            | ChatEvent::Extra(_)
            | ChatEvent::TurnEnd { .. } => {}
            ChatEvent::Logprobs(_)
            | ChatEvent::ToolCall { .. }
            | ChatEvent::ToolArguments { .. } => self.is_plain = false,
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn pieces(&self) -> PiecesSoFar {
        self.pieces
    }

    /// The request for the rest. `None`: no text has come, or something other than text, or the answer
    /// has reached its limit of tokens.
    pub fn rest_of(&self, request: &ChatRequest) -> Option<ChatRequest> {
        if !self.is_plain || self.text.trim().is_empty() {
            return None;
        }
        let tokens_max = match request.tokens_max {
            None => None,
            Some(limit) => Some(limit.checked_sub(self.tokens()).filter(|left| *left > 0)?),
        };
        let partial = Some(self.text.clone());
        Some(ChatRequest { partial, tokens_max, judges_turn: false, ..request.clone() })
    }

    /// Estimates too many tokens rather than too few, because the limit is the client's. A server may put several tokens
    /// into one piece.
    fn tokens(&self) -> u32 {
        let by_bytes = u32::try_from(self.text.len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX);
        self.pieces.texts.max(by_bytes).saturating_add(self.pieces.thoughts)
    }
}

impl PiecesSoFar {
    /// The usage of the whole answer, where `rest` is the usage of its last part. The text before the break
    /// was part of that part's prompt, but not of the client's prompt.
    #[must_use]
    pub fn with_rest(self, rest: Usage) -> Usage {
        let prompt_tokens = rest.prompt_tokens.saturating_sub(self.texts);
        Usage {
            prompt_tokens,
            cached_tokens: rest.cached_tokens.min(prompt_tokens),
            completion_tokens: rest.completion_tokens.saturating_add(self.texts + self.thoughts),
            reasoning_tokens: rest.reasoning_tokens.saturating_add(self.thoughts),
        }
    }
}

/// Whether an answer broke off by accident. Malformed answers may have holes, and a target that used up
/// the time, or refused, is not asked again.
pub fn is_break(error: &ModelError) -> bool {
    let ModelError::Upstream { fault, .. } = error else { return false };
    matches!(
        fault,
        Fault::CutOff
            | Fault::Reported { .. }
            | Fault::Overloaded { retry_after: None, .. }
            | Fault::TimedOut { clock: Clock::Idle, .. }
    )
}

/// The answer is free text, and a turn of its own. An unknown parameter may ask for a format.
fn is_plain(request: &ChatRequest) -> bool {
    let Prompt::Chat(conversation) = &request.prompt else { return false };
    let is_forced = matches!(conversation.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
    let is_free = conversation.tools.is_empty() || !is_forced;
    let is_begun = conversation.messages.last().is_none_or(|last| last.role == Role::Assistant);
    request.output == OutputFormat::Text
        && request.logprobs.is_none()
        && request.extra.is_none()
        && is_free
        && !is_begun
}

/// Compares the first text after a break with the broken answer. It holds that text back until it is clear
/// whether the server continues or starts over.
#[derive(Clone, PartialEq)]
pub struct RestartCheck {
    said: String,
    came: String,
}

/// The result of a [`RestartCheck`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// It may be either.
    Undecided,
    /// This text continues the answer.
    Continues(String),
    /// The server started over.
    StartedOver,
}

impl RestartCheck {
    pub fn new(said: &str) -> RestartCheck {
        RestartCheck { said: said.trim_start().to_owned(), came: String::new() }
    }

    pub fn push(&mut self, text: &str) -> RestartDecision {
        self.came.push_str(text);
        let came = self.came.trim_start();
        if came.len() < self.said.len() && self.said.starts_with(came) {
            return RestartDecision::Undecided;
        }
        self.end()
    }

    /// No more text comes.
    pub fn end(&self) -> RestartDecision {
        let came = self.came.trim_start();
        let alike = alike_bytes(&self.said, came);
        if alike == self.said.len() {
            return if alike >= ECHO_BYTES_MIN {
                RestartDecision::Continues(came[alike..].to_owned())
            } else {
                RestartDecision::StartedOver
            };
        }
        let enough = ALIKE_BYTES.min(self.said.len().div_ceil(2));
        if alike >= enough {
            RestartDecision::StartedOver
        } else {
            RestartDecision::Continues(self.came.clone())
        }
    }
}

/// Bytes of whole characters with which both begin.
fn alike_bytes(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

#[cfg(test)]
mod tests;
