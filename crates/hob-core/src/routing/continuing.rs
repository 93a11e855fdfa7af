//! An answer that broke off, and the same target's going on with it: what was said, whether its rest may
//! be asked for, and whether what comes then is the rest.

use std::fmt;

use crate::chat::{OutputFormat, Prompt, Role, ToolChoice, Usage};
use crate::{ChatEvent, ChatRequest, Clock, Fault, ModelError};

/// Bytes of an answer that are remembered; a longer one is not gone on with.
const SAID_BYTES_MAX: usize = 256 << 10;
/// Bytes of most languages for each token, where a server puts several tokens into one piece.
const BYTES_PER_TOKEN: usize = 4;
/// So many bytes like those that the answer began with are no chance: it begins anew.
const ALIKE_BYTES: usize = 16;
/// A shorter text may follow itself: `1` and `10` make 110.
const ECHO_BYTES_MIN: usize = 8;

/// An answer, as far as it was heard.
#[derive(Clone, PartialEq)]
pub struct Said {
    text: String,
    spoken: Spoken,
    /// Nothing but text was asked for, and nothing else was heard but thinking before it.
    is_plain: bool,
}

/// Pieces that were heard: about as many tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    texts: u32,
    thoughts: u32,
}

/// Nobody's words stand in logs.
impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Said").field("spoken", &self.spoken).finish_non_exhaustive()
    }
}

impl fmt::Debug for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seam").field("came_bytes", &self.came.len()).finish_non_exhaustive()
    }
}

impl Said {
    /// Nothing yet, of the answer to this request.
    pub fn nothing(request: &ChatRequest) -> Said {
        Said { text: String::new(), spoken: Spoken::default(), is_plain: is_plain(request) }
    }

    pub fn heard(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::Text(text) => {
                self.spoken.texts += 1;
                self.is_plain &= self.text.len() + text.len() <= SAID_BYTES_MAX;
                if self.is_plain {
                    self.text.push_str(text);
                }
            }
            ChatEvent::Reasoning(_) => {
                self.spoken.thoughts += 1;
                self.is_plain &= self.text.is_empty();
            }
            ChatEvent::Done(_) => {}
            ChatEvent::Logprobs(_)
            | ChatEvent::ToolCall { .. }
            | ChatEvent::ToolArguments { .. } => self.is_plain = false,
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn spoken(&self) -> Spoken {
        self.spoken
    }

    /// The request for the rest. None: nothing was said that could be gone on with, something else than
    /// text was, or the answer has its limit of tokens.
    pub fn rest_of(&self, request: &ChatRequest) -> Option<ChatRequest> {
        if !self.is_plain || self.text.trim().is_empty() {
            return None;
        }
        let tokens_max = match request.tokens_max {
            None => None,
            Some(limit) => Some(limit.checked_sub(self.tokens()).filter(|left| *left > 0)?),
        };
        let partial = Some(self.text.clone());
        Some(ChatRequest { partial, tokens_max, ..request.clone() })
    }

    /// Rather too many than too few: the limit is the client's.
    fn tokens(&self) -> u32 {
        let by_bytes = u32::try_from(self.text.len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX);
        self.spoken.texts.max(by_bytes).saturating_add(self.spoken.thoughts)
    }
}

impl Spoken {
    /// Of the whole answer, when `rest` was said of its end. What was spoken before is part of that one's
    /// prompt, and was no part of the client's.
    #[must_use]
    pub fn and(self, rest: Usage) -> Usage {
        let prompt_tokens = rest.prompt_tokens.saturating_sub(self.texts);
        Usage {
            prompt_tokens,
            cached_tokens: rest.cached_tokens.min(prompt_tokens),
            completion_tokens: rest.completion_tokens.saturating_add(self.texts + self.thoughts),
            reasoning_tokens: rest.reasoning_tokens.saturating_add(self.thoughts),
        }
    }
}

/// Whether an answer broke off by chance. What made no sense may have holes, and whoever used up all of
/// the time, or was refused, is not asked again.
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

/// Text is wanted, free in its form, and the answer is a turn of its own. A parameter that hob does not
/// know may be a form.
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

/// Where an answer that broke off and its rest meet. Held back there until it is clear which of the
/// two a server does: go on, or begin anew.
#[derive(Clone, PartialEq)]
pub struct Seam {
    said: String,
    came: String,
}

/// What is known of a seam.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joint {
    /// What came may be either.
    Open,
    /// This follows what was said.
    Rest(String),
    /// This is no rest.
    Anew,
}

impl Seam {
    pub fn new(said: &str) -> Seam {
        Seam { said: said.trim_start().to_owned(), came: String::new() }
    }

    pub fn push(&mut self, text: &str) -> Joint {
        self.came.push_str(text);
        let came = self.came.trim_start();
        if came.len() < self.said.len() && self.said.starts_with(came) {
            return Joint::Open;
        }
        self.end()
    }

    /// No more text comes.
    pub fn end(&self) -> Joint {
        let came = self.came.trim_start();
        let alike = alike_bytes(&self.said, came);
        if alike == self.said.len() {
            return if alike >= ECHO_BYTES_MIN {
                Joint::Rest(came[alike..].to_owned())
            } else {
                Joint::Anew
            };
        }
        let chance = ALIKE_BYTES.min(self.said.len().div_ceil(2));
        if alike >= chance { Joint::Anew } else { Joint::Rest(self.came.clone()) }
    }
}

/// Bytes of whole characters with which both begin.
fn alike_bytes(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

#[cfg(test)]
mod tests;
