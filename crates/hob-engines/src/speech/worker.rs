//! The speech worker. One thread owns the engine, the phonemiser and all streams.
//! It ends when the supervisor closes the socket, after one more window at most.

mod engine;
mod voicing;

use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use hob_core::{Language, Speed};
use hob_speech::SpokenUnit;

use super::protocol::{About, AnySpeechOrder};
use super::scheduler::{WindowLengths, WindowScheduler};
use super::synthesiser::{SynthesisError, Synthesiser};
use super::units::UnitSource;
use crate::worker::{InboxError, LoadError, WorkerConnection};

use engine::Engine;

#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Computed and discarded before the worker reports that it is ready.
    pub warm_up: Option<WarmUp>,
    /// An engine that still computes this long after the server has gone is aborted.
    pub orphan_limit: Duration,
}

/// Speech that the worker computes before it is ready, so that the first request does not wait for page faults, lazy tables and
/// the phonemiser.
#[derive(Clone, Debug)]
pub struct WarmUp {
    pub language: Language,
    pub voice: String,
    /// The phonemes to speak. Not a text, because the language is not loaded yet.
    pub unit: SpokenUnit,
}

impl Default for ServeOptions {
    fn default() -> ServeOptions {
        ServeOptions { warm_up: None, orphan_limit: Duration::from_secs(30) }
    }
}

/// Why a worker ended without its supervisor's request.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the model does not load: {0}")]
    Load(String),
    #[error("the model loads but does not speak: {0}")]
    WarmUp(#[from] SynthesisError),
    #[error(transparent)]
    Inbox(#[from] InboxError),
    #[error("the server cannot be reached: {0}")]
    Io(#[from] io::Error),
}

impl LoadError for ServeError {}

/// Loads the model, reports that it is ready, and serves until the supervisor closes the socket. A panic of the engine
/// ends the process on purpose: the supervisor reports it and starts another process.
///
/// # Errors
/// See [`ServeError`]. The supervisor also gets the reason of a failed load.
pub fn serve_speech<S: Synthesiser, U: UnitSource + Send, E: fmt::Display>(
    socket: UnixStream,
    mut units: U,
    load: impl FnOnce() -> Result<S, E>,
    options: ServeOptions,
) -> Result<(), ServeError> {
    let WorkerConnection { inbox, mut outlet } =
        WorkerConnection::start(&socket, AnySpeechOrder::of_stream, options.orphan_limit)?;
    let scheduler = WindowScheduler::new(WindowLengths::default());
    let window_s = scheduler.first_window_s();
    let loaded = get_ready(&mut units, load, options.warm_up.as_ref(), window_s);
    let synthesiser = outlet.loaded(loaded)?;
    outlet.ready(0, &About { sample_rate_hz: synthesiser.sample_rate_hz() })?;
    Engine::new(synthesiser, units, scheduler, outlet).run(&inbox)
}

/// Loads the engine and computes the first window of the warm-up, while another thread loads the language. A cold start
/// takes as long as the slower of the two. The scheduler ignores these costs, because the threads slow each other down.
fn get_ready<S: Synthesiser, U: UnitSource + Send, E: fmt::Display>(
    units: &mut U,
    load: impl FnOnce() -> Result<S, E>,
    warm_up: Option<&WarmUp>,
    window_s: f32,
) -> Result<S, ServeError> {
    let load = || load().map_err(|error| ServeError::Load(error.to_string()));
    let Some(WarmUp { language, voice, unit }) = warm_up else {
        return load();
    };
    let synthesiser = thread::scope(|scope| -> Result<S, ServeError> {
        scope.spawn(|| units.warm(*language));
        let mut synthesiser = load()?;
        let mut utterance = synthesiser.begin(unit, voice, Speed::NORMAL)?;
        synthesiser.render(&mut utterance, window_s)?;
        Ok(synthesiser)
    })?;
    // The weights, the window and the language have left unused memory, which the system gets back.
    crate::memory::give_back();
    Ok(synthesiser)
}

#[cfg(test)]
mod tests;
