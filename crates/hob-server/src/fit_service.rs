//! The trait behind `/api/fit`: machines and models by name.
//! A trait, because the server reads neither machines nor model files.

use std::fmt;

use hob_core::fit::FitError;
use hob_core::nearest_hint;
use hob_wire::{FitAnswer, FitModel, FitRequest};

/// Machines and models by name. Calls may take a while, read headers and query the system, so they run
/// on threads for blocking work.
pub trait FitService: fmt::Debug + Send + Sync {
    /// The names of machines; this machine first.
    fn machines(&self) -> Vec<String>;

    fn models(&self) -> Vec<FitModel>;

    /// Whether the model is in the public catalog. For any other name, a key decides who may ask about it.
    fn is_published(&self, model: &str) -> bool;

    /// # Errors
    /// [`Unanswerable`]
    fn assess(&self, request: &FitRequest) -> Result<FitAnswer, Unanswerable>;
}

/// Why `/api/fit` cannot answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unanswerable {
    #[error("there is no {field} '{name}' here{}", nearest_hint(.near))]
    Unknown { field: &'static str, name: String, near: Vec<String> },
    #[error("{model} cannot be read: {reason}")]
    Unreadable { model: String, reason: String },
    #[error("{model}: {error}")]
    Impossible { model: String, error: FitError },
}
