//! So many users at once, whatever they ask: what a measurement of many needs to know of the question.
//! Chat is one such question. Another kind of model becomes one by answering the same five things.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::calibrate::{Calibration, Pace};
use crate::drive::Arrivals;
use crate::llm::{Cell, Lab, Prompt, Prompts, Shape, Thinking, ThinkingWish};
use crate::record::sha256_hex;
use crate::runs::{Account, BenchError, Block, Runs, Subject};
use crate::terms::Metric;
use crate::workbench::Asker;

/// What is asked, and by how many.
#[derive(Clone, Debug)]
pub struct Wish {
    pub shape: Shape,
    /// Users at once, of each cell.
    pub users: Vec<usize>,
    pub thinking: ThinkingWish,
    /// Requests of each user in a run.
    pub rounds: usize,
}

/// A question that many can ask at once.
pub(crate) trait Crowd {
    /// As it is told of.
    fn name(&self, users: usize) -> String;

    /// Asks once.
    ///
    /// # Errors
    /// It could not begin.
    fn block(
        &mut self,
        users: usize,
        calibration: Option<&Calibration>,
    ) -> Result<Block, BenchError>;

    /// What has to be sure.
    fn leading(&self) -> &'static [Metric];

    /// How a known server would have to answer to be like this one.
    fn pace(&self, users: usize, warm: &Block) -> Option<Pace>;

    /// What is to be said of its runs.
    fn account<'r>(&mut self, users: usize, runs: &'r Runs, started: Timestamp) -> Account<'r>;
}

/// One number of users, asked again and again.
#[derive(Debug)]
pub(crate) struct Together<'c, C> {
    pub(crate) crowd: &'c mut C,
    pub(crate) users: usize,
}

impl<C: Crowd> Subject for Together<'_, C> {
    fn block(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        self.crowd.block(self.users, calibration)
    }

    fn leading(&self) -> &[Metric] {
        self.crowd.leading()
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        self.crowd.pace(self.users, warm)
    }
}

/// Everybody chats: prompts of one shape, and no two the same.
#[derive(Debug)]
pub(crate) struct Chatting<'a> {
    lab: Lab<'a>,
    shape: Shape,
    pub(crate) thinking: Thinking,
    /// By users: what was asked since the last account of them.
    asked: BTreeMap<usize, Vec<String>>,
}

impl<'a> Chatting<'a> {
    /// # Errors
    /// The server does not answer as a chat model does.
    pub(crate) fn prepare(asker: Asker<'a>, wish: &Wish) -> Result<Chatting<'a>, BenchError> {
        let closed = |users: &usize| Arrivals::Closed { users: *users };
        let whole = crate::llm::Wish {
            shapes: vec![wish.shape],
            arrivals: wish.users.iter().map(closed).collect(),
            thinking: wish.thinking,
            prompts: Prompts::Cold,
            rounds: wish.rounds,
            span_s: 0.0,
        };
        let lab = Lab::prepare(asker, &whole)?;
        let thinking = Thinking::AsIs { thinks: false };
        Ok(Chatting { lab, shape: wish.shape, thinking, asked: BTreeMap::new() })
    }

    /// In which ways it is asked, one after the other.
    pub(crate) fn ways(&self) -> Vec<Thinking> {
        self.lab.thinkings()
    }

    fn cell(&self, users: usize) -> Cell {
        let (shape, thinking, prompts) = (self.shape, self.thinking, Prompts::Cold);
        Cell { shape, arrivals: Arrivals::Closed { users }, thinking, prompts }
    }
}

impl Crowd for Chatting<'_> {
    fn name(&self, users: usize) -> String {
        self.cell(users).name()
    }

    fn block(
        &mut self,
        users: usize,
        calibration: Option<&Calibration>,
    ) -> Result<Block, BenchError> {
        let cell = self.cell(users);
        let prompts = self.lab.next_prompts(cell);
        self.asked.entry(users).or_default().extend(prompts.iter().map(Prompt::text));
        self.lab.ask(cell, &prompts, calibration)
    }

    fn leading(&self) -> &'static [Metric] {
        self.cell(1).leading()
    }

    fn pace(&self, users: usize, warm: &Block) -> Option<Pace> {
        self.cell(users).pace(warm)
    }

    fn account<'r>(&mut self, users: usize, runs: &'r Runs, started: Timestamp) -> Account<'r> {
        let asked = self.asked.remove(&users).unwrap_or_default();
        let prompts_sha256 = sha256_hex(asked.join("\n").as_bytes());
        self.lab.account(self.cell(users), runs, started, prompts_sha256)
    }
}
