//! HTTP: routes, safety, admission, streaming answers, metrics and a graceful stop.
//! Never an engine and never an upstream: it sees models through the traits of `hob-core` only.

mod answer;
mod failure;
mod guard;
mod lists;
mod metrics;
mod options;
mod page;
mod plan;
mod requests;
mod router;
mod serve;
mod socket;
mod speech;

pub use options::{ApiKey, EmptyKey, Exposed, ServerOptions, check_exposure};
pub use router::router;
pub use serve::serve;
