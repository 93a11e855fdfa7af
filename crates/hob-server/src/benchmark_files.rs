//! The trait behind `/benchmarks`.
//! It is a trait because the binary builds the files, not this crate.

use std::fmt;

use axum::body::Bytes;

/// The files of the results page, by their path in its folder.
pub trait BenchmarkFiles: fmt::Debug + Send + Sync {
    /// The bytes of a file, or `None` if there is no such file. May block on file reads: callers run it with `spawn_blocking`.
    fn file(&self, path: &str) -> Option<Bytes>;
}
