//! How fast a server writes: shapes of prompts, by one user and by several, with thinking and without.
//! First it is found out how this server wants to be asked; then each cell is warmed up, and run until it is sure.

mod cell;
mod probe;
mod prompt;
mod request;
mod shape;
mod summary;

use std::collections::BTreeMap;

pub use crate::thinking_switch::ThinkingSwitch;
use probe::thoughts;
pub(crate) use prompt::{Measure, Prompt};
pub(crate) use request::Form;
pub use shape::{SHAPES, Shape, VERSION};

use crate::drive::{Arrivals, Driven};
use crate::record::Record;
use crate::runs::BenchError;
use crate::target::Api;
use crate::timeline::Fault;
use crate::workbench::{Asker, Workbench};

const ANSWER_BYTES_PER_TOKEN: usize = 320;
/// What a prompt may be longer than it should, and where the probes before it have room.
const SPARE_TOKENS: u32 = 64;
const SPARE_PART: u32 = 64;
const ROOM_TOKENS_MIN: u32 = 1024;

/// Tokens that a server needs room for.
pub fn room(length: u32, answer: u32) -> u32 {
    let spare = SPARE_TOKENS + length / SPARE_PART;
    length.saturating_add(answer).saturating_add(spare).max(ROOM_TOKENS_MIN)
}

/// What is wanted to be measured.
#[derive(Clone, Debug)]
pub struct Wish {
    pub shapes: Vec<Shape>,
    pub arrivals: Vec<Arrivals>,
    pub thinking: ThinkingWish,
    pub prompts: Prompts,
    /// Requests of each user in a run.
    pub rounds: usize,
    /// A run at a rate lasts about so long, and has eight requests at least.
    pub span_s: f64,
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub shape: Shape,
    pub arrivals: Arrivals,
    pub thinking: Thinking,
    pub prompts: Prompts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// As the server does of itself; and whether that is to think.
    AsIs {
        thinks: bool,
    },
    Off(ThinkingSwitch),
    /// No switch turns it off.
    CannotDisable,
}

/// Measures every cell that is wished for; each is kept once it is done.
///
/// # Errors
/// The server does not answer as a chat model does, or a record cannot be kept.
pub fn measure(bench: &mut Workbench<'_>, wish: &Wish) -> Result<Vec<Record>, BenchError> {
    let mut lab = Lab::roomy(bench.asker(), wish)?;
    let cells = lab.cells();
    let mut records = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        if bench.is_stopped() {
            break;
        }
        let name = format!("{}/{} {}", number + 1, cells.len(), cell.name());
        records.extend(lab.measure(*cell, &name, bench)?);
    }
    Ok(records)
}

/// A server that can be measured: how it is asked is known.
#[derive(Debug)]
pub struct Lab<'a> {
    asker: Asker<'a>,
    wish: Wish,
    measure: Measure,
    /// By the number of tools in a request: tokens that may be known of a prompt whose words never were said.
    templates: BTreeMap<u32, u32>,
    ignores_eos: bool,
    thinks: bool,
    switch: Option<ThinkingSwitch>,
    /// Prompts that were made.
    made: u64,
    /// Room that a server makes for each request, where it has to be told.
    context_tokens: Option<u32>,
}

impl<'a> Lab<'a> {
    /// Asks a few small things.
    ///
    /// # Errors
    /// The server does not answer as a chat model does.
    pub fn prepare(asker: Asker<'a>, wish: &Wish) -> Result<Lab<'a>, BenchError> {
        let ignores_eos = asker.target.api != Api::Ollama;
        let mut lab = Lab {
            asker,
            wish: wish.clone(),
            measure: Measure::guessed(),
            templates: BTreeMap::new(),
            ignores_eos,
            thinks: false,
            switch: None,
            made: 0,
            context_tokens: None,
        };
        let mut probe = lab.probe(None)?;
        if matches!(probe.fault, Some(Fault::Refused { status: 400 | 422, .. })) {
            lab.ignores_eos = false;
            probe = lab.probe(None)?;
        }
        if let Some(fault) = probe.fault {
            return Err(BenchError::Fault(fault));
        }
        lab.thinks = thoughts(&probe) > 0;
        lab.measure = lab.count_words()?;
        lab.templates = lab.measure_templates()?;
        if lab.thinks && wish.thinking != ThinkingWish::On {
            lab.switch = lab.find_switch()?;
        }
        Ok(lab)
    }

    /// What is to be measured, in order.
    pub fn cells(&self) -> Vec<Cell> {
        let thinkings = self.thinkings();
        let mut cells = Vec::new();
        for shape in &self.wish.shapes {
            for arrivals in &self.wish.arrivals {
                cells.extend(thinkings.iter().map(|thinking| Cell {
                    shape: *shape,
                    arrivals: *arrivals,
                    thinking: *thinking,
                    prompts: self.wish.prompts,
                }));
            }
        }
        cells
    }

    pub(crate) fn thinkings(&self) -> Vec<Thinking> {
        let as_is = Thinking::AsIs { thinks: self.thinks };
        let off = self.switch.map_or(Thinking::CannotDisable, Thinking::Off);
        match (self.wish.thinking, self.thinks) {
            (_, false) | (ThinkingWish::On, true) => vec![as_is],
            (ThinkingWish::Off, true) => vec![off],
            // Where nothing turns it off, off would be the same again.
            (ThinkingWish::Auto, true) if self.switch.is_none() => vec![off],
            (ThinkingWish::Auto, true) => vec![as_is, off],
        }
    }

    /// The same with room for the longest of the shapes, so that a server which makes room by request cuts none of them and does not
    /// load its model anew for each.
    ///
    /// # Errors
    /// See [`Lab::prepare`].
    pub(crate) fn roomy(asker: Asker<'a>, wish: &Wish) -> Result<Lab<'a>, BenchError> {
        let mut lab = Lab::prepare(asker, wish)?;
        let rooms = wish.shapes.iter().map(|shape| room(shape.prompt_tokens, shape.max_tokens));
        lab.context_tokens = rooms.max();
        Ok(lab)
    }

    /// From now on each request is for so much.
    pub(crate) fn make_room(&mut self, context_tokens: u32) {
        self.context_tokens = Some(context_tokens);
    }

    pub(crate) fn prompt(&mut self, shape: Shape) -> Prompt {
        self.made += 1;
        Prompt::new(shape, self.measure, self.asker.seed, self.made)
    }

    fn form(&self, shape: Shape) -> Form<'_> {
        Form {
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
    ) -> Result<Driven, BenchError> {
        self.asker.drive(jobs, arrivals, tokens as usize * ANSWER_BYTES_PER_TOKEN)
    }
}
