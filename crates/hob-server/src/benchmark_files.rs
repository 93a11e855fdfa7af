//! The trait behind `/benchmarks`: static files by their path.
//! A trait, because another crate makes the files.

use std::fmt;

use axum::body::Bytes;

/// Files by their path in a folder.
pub trait Pages: fmt::Debug + Send + Sync {
    /// May block and read files, so it runs on a thread for blocking work.
    fn page(&self, path: &str) -> Option<Bytes>;
}
