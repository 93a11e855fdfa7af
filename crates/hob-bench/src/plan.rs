//! Plans: servers, cells, stopping rules and time budgets in a YAML file.
//! A cell with a valid record is done. There is no other state that could be lost or differ.

mod cells;
mod check;
mod experiment;
mod file;
mod key;
mod queue;

pub use cells::{PlanCell, cells};
pub use file::*;
pub use key::{CellKey, PlanFacts, done};
pub use queue::{QueueError, Ticket, Waiting, waiting};
