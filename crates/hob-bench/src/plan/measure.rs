//! What each kind makes of a cell: how it is measured, how it is typed, and what a record says of it in any case.
//! A kind that plans may name has a line in each of these.

use super::cells::Cell;
use super::written::{PlanCache, PlanKind, PlanThinking};
use crate::drive::Arrivals;
use crate::llm::{self, Prompts, Shape, ThinkingWish};
use crate::record::{Kind, Record, Workload};
use crate::runs::BenchError;
use crate::workbench::Workbench;

const ROUNDS: usize = 2;

impl Cell {
    /// Measures it; each record is kept by the workbench.
    ///
    /// # Errors
    /// See [`llm::measure`].
    pub fn measure(&self, bench: &mut Workbench<'_>) -> Result<Vec<Record>, BenchError> {
        match self.kind {
            PlanKind::Llm => llm::measure(bench, &self.llm()),
        }
    }

    fn llm(&self) -> llm::Wish {
        llm::Wish {
            shapes: self.shape.iter().filter_map(|name| Shape::named(name)).collect(),
            arrivals: vec![Arrivals::Closed { users: self.users() }],
            thinking: match self.thinking {
                Some(PlanThinking::Off) => ThinkingWish::Off,
                Some(PlanThinking::AsIs) | None => ThinkingWish::On,
            },
            prompts: match self.cache {
                Some(PlanCache::Cached) => Prompts::Cached,
                Some(PlanCache::Cold) | None => Prompts::Cold,
            },
            rounds: ROUNDS,
            span_s: 0.0,
        }
    }

    fn users(&self) -> usize {
        self.concurrency.map_or(1, |users| users as usize)
    }

    /// What a record of it is of, even where nothing could be measured.
    pub fn record_kind(&self) -> Kind {
        match self.kind {
            PlanKind::Llm => Kind::Llm,
        }
    }

    pub fn workload(&self) -> Workload {
        Workload { shape: self.shape.clone(), concurrency: self.concurrency, ..Workload::default() }
    }

    /// As the verb is typed that measures this cell alone, without the target.
    pub fn words(&self) -> Vec<String> {
        let thinking = self.thinking.map(|thinking| match thinking {
            PlanThinking::AsIs => "on".to_owned(),
            PlanThinking::Off => "off".to_owned(),
        });
        let rows = [
            ("--shape", self.shape.clone()),
            ("--users", self.concurrency.map(|users| users.to_string())),
            ("--thinking", thinking),
        ];
        let said = rows.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        let verb = [self.kind.name().to_owned()];
        let cached = (self.cache == Some(PlanCache::Cached)).then(|| "--cached".to_owned());
        verb.into_iter().chain(said.flatten()).chain(cached).collect()
    }
}
