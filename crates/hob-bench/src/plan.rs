//! A campaign written down: which servers, which cells, how sure, and what it may cost.
//! A cell that has a valid record is done; there is no other state, so that nothing can be lost or in doubt.

mod cells;
mod experiment;
mod key;
mod queue;
mod written;

pub use cells::{Cell, cells};
pub use key::{CellKey, Facts, done};
pub use queue::{QueueError, Ticket, Waiting, waiting};
pub use written::*;
