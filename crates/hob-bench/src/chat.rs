//! Measures a chat model of a server, with prompts of different shapes: new or cached, with thinking or without.
//! A session first finds out which request fields the server accepts, and then sends the prompts of each cell.

mod cell;
mod probe;
mod prompt;
mod request;
mod shape;
mod summary;

use std::collections::BTreeMap;

pub use crate::thinking_switch::{SwitchEffect, ThinkingSwitch, TriedSwitch};
use probe::thoughts;
pub(crate) use prompt::{Prompt, TokenRate, nonce};
pub(crate) use request::RequestTemplate;
pub use shape::{SHAPES, SHAPES_VERSION, Shape};

use crate::drive::{Arrivals, DriveResult};
use crate::record::Reasoning;
use crate::runs::BenchError;
use crate::session::RunSize;
use crate::target::Api;
use crate::timeline::RequestFault;
use crate::workbench::Asker;

/// Memory that is allocated for each token of an answer before the request is sent. A token is an event of about this size.
pub(crate) const ANSWER_BYTES_PER_TOKEN: usize = 320;
/// Context in addition to prompt and answer, because a prompt may get more tokens than planned: these tokens, and one for
/// each [`SPARE_DIVISOR`] tokens of the prompt.
const SPARE_TOKENS: u32 = 64;
const SPARE_DIVISOR: u32 = 64;
/// Enough for the probes.
const CONTEXT_TOKENS_MIN: u32 = 1024;

/// The context length that a prompt and its answer need.
pub fn context_needed(prompt_tokens: u32, answer_tokens: u32) -> u32 {
    let spare = SPARE_TOKENS + prompt_tokens / SPARE_DIVISOR;
    prompt_tokens.saturating_add(answer_tokens).saturating_add(spare).max(CONTEXT_TOKENS_MIN)
}

/// The requests to a chat model.
#[derive(Clone, Debug)]
pub struct ChatWorkload {
    pub shapes: Vec<Shape>,
    pub thinking: ThinkingChoice,
    pub prompts: Prompts,
}

/// Whether cells are measured with thinking, without, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingChoice {
    /// With and without thinking if the model thinks, otherwise once.
    Auto,
    On,
    Off,
}

/// Which part of a prompt the server may have cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// Each prompt differs from its first word on.
    Cold,
    /// All prompts are equal.
    Cached,
    /// The latest new prompt, sent again this many times.
    Again(usize),
}

/// One combination of shape, load, thinking and cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChatCell {
    pub shape: Shape,
    pub arrivals: Arrivals,
    pub thinking: ThinkingMode,
    pub prompts: Prompts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingMode {
    /// The server's default, and whether it thinks.
    AsIs {
        thinks: bool,
    },
    Off(ThinkingSwitch),
    /// Thinking was to be off, and no switch of this server turns it off.
    CannotDisable,
}

impl ThinkingMode {
    /// The switch that turns thinking off.
    pub(crate) fn switch(self) -> Option<ThinkingSwitch> {
        match self {
            ThinkingMode::Off(switch) => Some(switch),
            ThinkingMode::AsIs { .. } | ThinkingMode::CannotDisable => None,
        }
    }

    /// The value for a record.
    pub(crate) fn reasoning(self) -> Option<Reasoning> {
        match self {
            ThinkingMode::AsIs { thinks } => thinks.then_some(Reasoning::Enabled),
            ThinkingMode::Off(_) => Some(Reasoning::Disabled),
            ThinkingMode::CannotDisable => Some(Reasoning::CannotDisable),
        }
    }
}

/// A chat model on one server, with the request fields that the server accepts.
#[derive(Debug)]
pub struct ChatSession<'a> {
    asker: Asker<'a>,
    chat: ChatWorkload,
    run_size: RunSize,
    token_rate: TokenRate,
    /// Tokens of the chat template, for each number of tools. A server may have them cached even for a new prompt.
    template_tokens: BTreeMap<u32, u32>,
    ignores_eos: bool,
    thinks: bool,
    switch: Option<ThinkingSwitch>,
    /// Switches in the order in which they were tried.
    tried: Vec<TriedSwitch>,
    /// Number of prompts so far.
    prompts_made: u64,
    /// Context length to send with each request, for servers that need it.
    context_tokens: Option<u32>,
    /// The latest new prompt.
    latest: Option<Prompt>,
    /// Prompts of each cell since its last record.
    asked: Vec<(ChatCell, Vec<String>)>,
}

impl<'a> ChatSession<'a> {
    /// Sends a few small requests to find out what the server accepts.
    ///
    /// # Errors
    /// The server does not answer chat requests.
    pub(crate) fn prepare(
        asker: Asker<'a>,
        chat: &ChatWorkload,
        run_size: RunSize,
    ) -> Result<ChatSession<'a>, BenchError> {
        let ignores_eos = asker.target.api != Api::Ollama;
        let mut session = ChatSession {
            asker,
            chat: chat.clone(),
            run_size,
            token_rate: TokenRate::estimate(),
            template_tokens: BTreeMap::new(),
            ignores_eos,
            thinks: false,
            switch: None,
            tried: Vec::new(),
            prompts_made: 0,
            context_tokens: None,
            latest: None,
            asked: Vec::new(),
        };
        let mut probe = session.probe(None)?;
        if matches!(probe.fault, Some(RequestFault::Refused { status: 400 | 422, .. })) {
            session.ignores_eos = false;
            probe = session.probe(None)?;
        }
        if let Some(fault) = probe.fault {
            return Err(BenchError::Fault(fault));
        }
        session.thinks = thoughts(&probe) > 0;
        session.token_rate = session.measure_token_rate()?;
        session.template_tokens = session.measure_templates()?;
        if session.thinks && chat.thinking != ThinkingChoice::On {
            session.switch = session.find_switch()?;
        }
        Ok(session)
    }

    /// One cell for each combination of shape, arrivals and thinking mode.
    pub(crate) fn cells(&self, arrivals: &[Arrivals]) -> Vec<ChatCell> {
        let (thinking_modes, prompts) = (self.thinking_modes(), self.chat.prompts);
        let mut cells = Vec::new();
        for shape in &self.chat.shapes {
            for arrivals in arrivals {
                let cell = |thinking: &ThinkingMode| ChatCell {
                    shape: *shape,
                    arrivals: *arrivals,
                    thinking: *thinking,
                    prompts,
                };
                cells.extend(thinking_modes.iter().map(cell));
            }
        }
        cells
    }

    pub(crate) fn thinking_modes(&self) -> Vec<ThinkingMode> {
        let as_is = ThinkingMode::AsIs { thinks: self.thinks };
        let off = self.switch.map_or(ThinkingMode::CannotDisable, ThinkingMode::Off);
        match (self.chat.thinking, self.thinks) {
            (_, false) | (ThinkingChoice::On, true) => vec![as_is],
            (ThinkingChoice::Off, true) => vec![off],
            // No switch turns thinking off, so both would be the same.
            (ThinkingChoice::Auto, true) if self.switch.is_none() => vec![off],
            (ThinkingChoice::Auto, true) => vec![as_is, off],
        }
    }

    /// Like [`ChatSession::prepare`], with a context for the longest shape. Some servers allocate the
    /// context for each request. With the longest one from the start, they cut no prompt, and do not reload the model between shapes.
    ///
    /// # Errors
    /// See [`ChatSession::prepare`].
    pub(crate) fn prepare_with_context(
        asker: Asker<'a>,
        chat: &ChatWorkload,
        run_size: RunSize,
    ) -> Result<ChatSession<'a>, BenchError> {
        let mut session = ChatSession::prepare(asker, chat, run_size)?;
        let contexts =
            chat.shapes.iter().map(|shape| context_needed(shape.prompt_tokens, shape.max_tokens));
        session.context_tokens = contexts.max();
        Ok(session)
    }

    /// Sends this context length with each further request.
    pub(crate) fn set_context(&mut self, context_tokens: u32) {
        self.context_tokens = Some(context_tokens);
    }

    pub(crate) fn prompt(&mut self, shape: Shape) -> Prompt {
        self.prompts_made += 1;
        Prompt::new(shape, self.token_rate, self.asker.seed, self.prompts_made)
    }

    fn request_template(&self, shape: Shape) -> RequestTemplate<'_> {
        RequestTemplate {
            target: &self.asker.target,
            max_tokens: shape.max_tokens,
            tools: shape.tools,
            switch: None,
            ignores_eos: self.ignores_eos,
            context_tokens: self.context_tokens,
        }
    }

    fn drive(
        &self,
        jobs: Vec<bytes::Bytes>,
        arrivals: Arrivals,
        tokens: u32,
    ) -> Result<DriveResult, BenchError> {
        self.asker.drive(jobs, arrivals, tokens as usize * ANSWER_BYTES_PER_TOKEN)
    }
}
