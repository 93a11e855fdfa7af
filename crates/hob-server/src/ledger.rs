//! The ledger: a row for each request that a model was asked, on the disk. Numbers and names only;
//! nothing of what was asked or answered is kept.

mod rows;
mod store;
mod summary;
mod writer;

pub use rows::{Outcome, Period, RequestRecord};
pub use store::{LedgerError, read};
pub use summary::{By, Summary, summarise};
pub use writer::Ledger;
