//! A request on its way: read in and waiting, or in a slot and being answered.
//! What it has to say is [`Answering`]'s; here is only where it stands.

use std::time::Instant;

use hob_core::chat::{ChatEvent, Completion, FinishReason, Timings, Usage};

use super::answering::{Answering, Step};
use crate::chat::decoder::BatchToken;
use crate::chat::scheduler::Wish;
use crate::chat::slots::Place;

/// A request that was read in: its prompt as tokens, and how it is to be answered.
pub(super) struct Prepared {
    pub(super) prompt: Vec<u32>,
    pub(super) answering: Answering,
    /// Events that may be sent before more credit comes.
    pub(super) credit: u32,
    pub(super) received: Instant,
}

/// A request in a slot.
pub(super) struct Running {
    pub(super) stream: u32,
    pub(super) slot: usize,
    /// The prompt and what was said.
    tokens: Vec<u32>,
    /// How many of `tokens` the slot's cache holds.
    computed: usize,
    prompt_tokens: usize,
    cached_tokens: usize,
    pub(super) credit: u32,
    answering: Answering,
    received: Instant,
    began: Instant,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

impl Running {
    pub(super) fn begin(stream: u32, prepared: Prepared, place: Place, kept: usize) -> Running {
        let Prepared { prompt, answering, credit, received } = prepared;
        Running {
            stream,
            slot: place.slot,
            computed: kept,
            prompt_tokens: prompt.len(),
            cached_tokens: kept,
            tokens: prompt,
            credit,
            answering,
            received,
            began: Instant::now(),
            first_token: None,
            last_token: None,
        }
    }

    /// None while its reader has enough to read.
    pub(super) fn wish(&self) -> Option<Wish> {
        let pending = self.tokens.len() - self.computed;
        (self.credit > 0).then_some(Wish { pending, said: self.answering.said() })
    }

    /// The next `count` tokens for a batch.
    pub(super) fn batch(&self, count: usize) -> impl Iterator<Item = BatchToken> {
        let last = self.tokens.len() - 1;
        (self.computed..self.computed + count).map(move |position| BatchToken {
            id: self.tokens[position],
            position: position as u32,
            slot: self.slot,
            wants_logits: position == last,
        })
    }

    /// The next `count` tokens are in the cache now; returns them.
    pub(super) fn computed(&mut self, count: usize) -> &[u32] {
        let from = self.computed;
        self.computed += count;
        &self.tokens[from..self.computed]
    }

    /// Whether the logits of what comes next are there.
    pub(super) fn may_speak(&self) -> bool {
        self.computed == self.tokens.len()
    }

    /// Says the next token, and perhaps more that follow of themselves.
    pub(super) fn speak(&mut self, logits: &[f32]) -> Result<Spoken, String> {
        let Step { tokens, events, end } = self.answering.next(logits)?;
        let now = Instant::now();
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        self.tokens.extend(tokens);
        Ok(Spoken { events, end: end.map(|finish| self.completion(finish)) })
    }

    fn completion(&self, finish: FinishReason) -> Completion {
        let said = self.answering.said();
        let usage = Usage {
            prompt_tokens: self.prompt_tokens as u32,
            cached_tokens: self.cached_tokens as u32,
            completion_tokens: said,
            reasoning_tokens: self.answering.reasoning_tokens(),
        };
        let first = self.first_token.unwrap_or(self.began);
        let last = self.last_token.unwrap_or(first);
        let timings = Timings {
            load_ms: 0.0,
            queue_ms: ms(self.received, self.began),
            prompt_ms: ms(self.began, first),
            predicted_ms: ms(first, last),
        };
        Completion { finish, usage, timings }
    }
}

/// What a stream has to say after a step.
pub(super) struct Spoken {
    pub(super) events: Vec<ChatEvent>,
    pub(super) end: Option<Completion>,
}

fn ms(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}
