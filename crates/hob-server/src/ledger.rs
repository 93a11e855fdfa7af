//! The request log on disk (the ledger): one row for each request to a model. It holds numbers and names,
//! and never the text of a request or answer.

mod rows;
mod store;
mod summary;
mod writer;

pub use rows::{Outcome, Period, RequestRecord};
pub use store::{LedgerError, read};
pub use summary::{GroupBy, LedgerSummary, summarise};
pub use writer::Ledger;
