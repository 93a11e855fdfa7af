//! What a measurement of many users asks: one shape of prompt, by so many at once.
//! Whoever thinks does as it does of itself: what many share is the machine, and not the answer.

use clap::Args;
use hob_bench::crowd::Wish;
use hob_bench::drive::CONNECTIONS_MAX;
use hob_bench::llm::Shape;
use hob_bench::record::Record;

use super::llm::{ThinkingName, shape};
use crate::failure::{Failure, Outcome};

#[derive(Clone, Debug, Args)]
pub(super) struct CrowdArgs {
    /// Shape of prompt and answer
    #[arg(long, value_name = "NAME", value_parser = shape, default_value = "short_short")]
    shape: Shape,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_enum, default_value_t = ThinkingName::On)]
    thinking: ThinkingName,
    /// Requests of each user in a run
    #[arg(long, value_name = "N", default_value_t = 2)]
    rounds: usize,
}

impl CrowdArgs {
    pub(super) fn wish(&self, users: &[usize]) -> Outcome<Wish> {
        let is_possible = |users: &usize| (1..=CONNECTIONS_MAX).contains(users);
        if !users.iter().all(is_possible) {
            return Err(Failure::usage(format!("from 1 to {CONNECTIONS_MAX} users are possible")));
        }
        if self.rounds == 0 {
            return Err(Failure::usage("each user asks once at least"));
        }
        let (shape, thinking, rounds) = (self.shape, self.thinking.wish(), self.rounds);
        Ok(Wish { shape, users: users.to_vec(), thinking, rounds })
    }
}

/// As it stands in a table.
pub(super) fn thinking(record: &Record) -> String {
    let reasoning = record.workload.reasoning;
    reasoning.map_or(String::new(), |reasoning| format!("{reasoning:?}").to_lowercase())
}
