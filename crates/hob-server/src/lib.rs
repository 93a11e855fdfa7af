//! HTTP: routes, safety, admission, streaming answers, metrics and a graceful stop.
//! Never an engine and never an upstream: it sees models through the traits of `hob-core` only.

mod account;
mod answer;
mod asking;
mod benchmarks;
mod bodies;
mod body;
mod chat;
mod chat_account;
mod completions;
mod converse;
mod embeddings;
mod failure;
mod fit;
mod guard;
mod headers;
mod hearing;
mod keys;
pub mod ledger;
mod lifecycle;
mod lists;
mod live;
mod metrics;
mod now;
mod ollama;
mod options;
mod page;
mod places;
mod plan;
mod requests;
mod router;
mod routes;
mod serve;
mod socket;
mod speech;
mod transcribe;
mod transcript_account;
mod upload;

pub use benchmarks::Pages;
pub use fit::{FitDesk, Unanswerable};
pub use keys::{EmptyKey, KeyClash, KeyDigest, KeyOptions, NotADigest, check_keys};
pub use live::ReloadableState;
pub use options::{Exposed, ServerOptions, check_exposure};
pub use router::router;
pub use serve::serve;
