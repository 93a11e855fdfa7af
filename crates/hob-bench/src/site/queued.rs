//! Cells of plans that are not measured yet. A cell stays here until a valid record carries its key.
//! The plan does not say which engine will run, so a record of any engine counts.

use serde::Serialize;

use crate::plan::{BenchPlan, CellKey, PlanCell, cells, done};
use crate::record::Record;

/// The rest of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queued {
    pub plan: String,
    /// Such as what the plan waits for.
    pub note: Option<String>,
    /// Number of cells in the whole plan.
    pub all: usize,
    /// Cells without a record.
    pub left: Vec<PlanCell>,
}

impl Queued {
    pub fn from_plan(plan: &BenchPlan, records: &[Record]) -> Queued {
        let known = done(records);
        let is_done = |cell: &PlanCell| {
            let point = CellKey::point(cell);
            known.iter().any(|key| CellKey::is_of_point(key, &point))
        };
        let cells = cells(plan);
        let all = cells.len();
        let left = cells.into_iter().filter(|cell| !is_done(cell)).collect();
        Queued { plan: plan.name.clone(), note: plan.note.clone(), all, left }
    }
}
