//! The trait behind `/benchmarks`: static files by their path.
//! It is a trait because the binary builds the files, not this crate.

use std::fmt;

use axum::body::Bytes;

/// Files by their path in a folder.
pub trait Pages: fmt::Debug + Send + Sync {
    /// May block on file reads. Callers run it with `spawn_blocking`.
    fn page(&self, path: &str) -> Option<Bytes>;
}
