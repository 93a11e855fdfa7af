//! Everybody chats: prompts of one shape, and no two the same.
//! What was asked is remembered until it is accounted for, by the number of users.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Crowd, Wish};
use crate::calibrate::{Calibration, Pace};
use crate::drive::Arrivals;
use crate::llm::{self, Cell, Lab, Prompt, Prompts, Shape, Thinking, ThinkingWish};
use crate::record::sha256_hex;
use crate::runs::{Account, BenchError, Block, Runs};
use crate::terms::Metric;
use crate::workbench::Asker;

#[derive(Debug)]
pub(super) struct Chatting<'a> {
    lab: Lab<'a>,
    shape: Shape,
    pub(super) thinking: Thinking,
    /// By users: what was asked since the last account of them.
    asked: BTreeMap<usize, Vec<String>>,
}

impl<'a> Chatting<'a> {
    /// # Errors
    /// The server does not answer as a chat model does.
    pub(super) fn prepare(
        asker: Asker<'a>,
        shape: Shape,
        thinking: ThinkingWish,
        wish: &Wish,
    ) -> Result<Chatting<'a>, BenchError> {
        let closed = |users: &usize| Arrivals::Closed { users: *users };
        let whole = llm::Wish {
            shapes: vec![shape],
            arrivals: wish.users.iter().map(closed).collect(),
            thinking,
            prompts: Prompts::Cold,
            rounds: wish.rounds,
            span_s: 0.0,
        };
        let lab = Lab::roomy(asker, &whole)?;
        let thinking = Thinking::AsIs { thinks: false };
        Ok(Chatting { lab, shape, thinking, asked: BTreeMap::new() })
    }

    /// In which ways it is asked, one after the other.
    pub(super) fn ways(&self) -> Vec<Thinking> {
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
