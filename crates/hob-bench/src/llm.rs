//! How fast a server writes: shapes of prompts, by one user and by several, with thinking and without.
//! First it is found out how this server wants to be asked; then each cell is warmed up, and run until it is sure.

mod cell;
mod prompt;
mod request;
mod shape;
mod summary;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hob_core::statistics::Chance;

pub use crate::lever::Lever;
pub use cell::{Block, CellRun, Step};
use prompt::{Measure, Prompt};
use request::Form;
pub use shape::{SHAPES, Shape, VERSION};
pub use summary::{Context, Summary, summary};

use crate::drive::{Arrivals, Drive, DriveError, Driven, Patience};
use crate::target::{Api, Target};
use crate::timeline::{ChunkKind, Fault, Timeline, timeline};

/// Each lever is tried so often before it is believed.
const LEVER_PROBES: usize = 3;
const PROBE_TOKENS: u32 = 48;
/// Words of the two prompts that say how many tokens a word is.
const FEW_WORDS: u32 = 40;
const MANY_WORDS: u32 = 240;
const ANSWER_BYTES_PER_TOKEN: usize = 320;

/// What is wanted of a campaign.
#[derive(Clone, Debug)]
pub struct Wish {
    pub shapes: Vec<Shape>,
    pub users: Vec<usize>,
    pub thinking: ThinkingWish,
    pub prompts: Prompts,
    pub runs_min: usize,
    pub runs_max: usize,
    /// A cell is sure when half of its interval is narrower than this.
    pub half_width_pct: f64,
    /// Requests of each user in a run.
    pub rounds: usize,
    /// A cell that takes longer ends with the runs that it has.
    pub cell_budget: Duration,
    pub seed: u64,
    pub patience: Patience,
}

/// Whether cells are asked with thinking, without, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingWish {
    /// Both of a model that thinks, else once.
    Auto,
    On,
    Off,
}

/// What the server knows of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// Each is another from its first word on.
    Cold,
    /// All are the same.
    Cached,
}

/// One row of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub shape: Shape,
    pub users: usize,
    pub thinking: Thinking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// As the server does of itself; and whether that is to think.
    AsIs {
        thinks: bool,
    },
    Off(Lever),
    /// No lever turns it off.
    CannotDisable,
}

/// Nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    #[error(transparent)]
    Fault(Fault),
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// A server that can be measured: how it is asked is known.
#[derive(Debug)]
pub struct Lab<'a> {
    target: &'a Target,
    wish: &'a Wish,
    stop: &'a AtomicBool,
    measure: Measure,
    ignores_eos: bool,
    thinks: bool,
    lever: Option<Lever>,
    /// Prompts that were made.
    made: u64,
}

impl<'a> Lab<'a> {
    /// Asks a few small things.
    ///
    /// # Errors
    /// The server does not answer as a chat model does.
    pub fn prepare(
        target: &'a Target,
        wish: &'a Wish,
        stop: &'a AtomicBool,
    ) -> Result<Lab<'a>, LlmError> {
        let measure = Measure::guessed();
        let mut lab = Lab {
            target,
            wish,
            stop,
            measure,
            ignores_eos: target.api != Api::Ollama,
            thinks: false,
            lever: None,
            made: 0,
        };
        let mut probe = lab.probe(None)?;
        if matches!(probe.fault, Some(Fault::Refused { status: 400 | 422, .. })) {
            lab.ignores_eos = false;
            probe = lab.probe(None)?;
        }
        if let Some(fault) = probe.fault {
            return Err(LlmError::Fault(fault));
        }
        lab.thinks = thoughts(&probe) > 0;
        lab.measure = lab.count_words()?;
        if lab.thinks && wish.thinking != ThinkingWish::On {
            lab.lever = lab.find_lever()?;
        }
        Ok(lab)
    }

    /// What is to be measured, in order.
    pub fn cells(&self) -> Vec<Cell> {
        let as_is = Thinking::AsIs { thinks: self.thinks };
        let off = self.lever.map_or(Thinking::CannotDisable, Thinking::Off);
        let thinkings = match (self.wish.thinking, self.thinks) {
            (_, false) | (ThinkingWish::On, true) => vec![as_is],
            (ThinkingWish::Off, true) => vec![off],
            // Where nothing turns it off, off would be the same again.
            (ThinkingWish::Auto, true) if self.lever.is_none() => vec![off],
            (ThinkingWish::Auto, true) => vec![as_is, off],
        };
        let mut cells = Vec::new();
        for shape in &self.wish.shapes {
            for users in &self.wish.users {
                cells.extend(thinkings.iter().map(|thinking| Cell {
                    shape: *shape,
                    users: *users,
                    thinking: *thinking,
                }));
            }
        }
        cells
    }

    fn probe(&mut self, lever: Option<Lever>) -> Result<Timeline, LlmError> {
        let shape = shape::Shape { max_tokens: PROBE_TOKENS, ..SHAPES[4] };
        let prompt = self.prompt(shape);
        let form = Form { lever, ..self.form(shape) };
        self.ask_once(form.bytes(&prompt, 0))
    }

    fn ask_once(&self, request: bytes::Bytes) -> Result<Timeline, LlmError> {
        let driven = self.drive(vec![request], 1, PROBE_TOKENS)?;
        let exchange = driven.exchanges.first();
        Ok(exchange.map_or_else(
            || Timeline { fault: Some(Fault::Stopped), ..Timeline::default() },
            |exchange| timeline(exchange, self.target.api.protocol()),
        ))
    }

    fn count_words(&mut self) -> Result<Measure, LlmError> {
        let mut counted = Vec::new();
        for words in [FEW_WORDS, MANY_WORDS] {
            let mut chance = Chance::seeded(self.wish.seed ^ u64::from(words));
            let nonce = format!("{:06x}", chance.bits() & 0xFF_FFFF);
            let prompt = Prompt::of_words(words, &nonce, &mut chance);
            let form = self.form(Shape { max_tokens: 1, ..SHAPES[0] });
            let answer = self.ask_once(form.bytes(&prompt, 0))?;
            counted.extend(answer.counts.prompt.map(|tokens| (words, tokens)));
        }
        let measure = match counted[..] {
            [few, many] => Measure::of_two(few, many),
            _ => None,
        };
        Ok(measure.unwrap_or_else(Measure::guessed))
    }

    /// The first that leaves no thought in so many probes.
    fn find_lever(&mut self) -> Result<Option<Lever>, LlmError> {
        for lever in Lever::ALL {
            let mut proven = 0;
            while proven < LEVER_PROBES {
                let answer = self.probe(Some(lever))?;
                if answer.fault.is_some() || thoughts(&answer) > 0 {
                    break;
                }
                proven += 1;
            }
            if proven == LEVER_PROBES {
                return Ok(Some(lever));
            }
        }
        Ok(None)
    }

    fn prompt(&mut self, shape: Shape) -> Prompt {
        self.made += 1;
        Prompt::new(shape, self.measure, self.wish.seed, self.made)
    }

    fn form(&self, shape: Shape) -> Form<'a> {
        let (max_tokens, tools) = (shape.max_tokens, shape.tools);
        Form { target: self.target, max_tokens, tools, lever: None, ignores_eos: self.ignores_eos }
    }

    fn drive(
        &self,
        jobs: Vec<bytes::Bytes>,
        users: usize,
        tokens: u32,
    ) -> Result<Driven, LlmError> {
        let drive = Drive {
            endpoint: self.target.endpoint.clone(),
            jobs,
            arrivals: Arrivals::Closed { users },
            seed: self.wish.seed,
            patience: self.wish.patience,
            answer_bytes: tokens as usize * ANSWER_BYTES_PER_TOKEN,
        };
        Ok(drive.run(self.stop)?)
    }
}

fn thoughts(timeline: &Timeline) -> usize {
    let counted = timeline.counts.reasoning.unwrap_or(0) as usize;
    let chunks = timeline.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Thought).count();
    counted.max(chunks)
}
