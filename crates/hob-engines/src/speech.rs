//! Speech engines, and the worker process that runs one.

pub mod synthesiser;
