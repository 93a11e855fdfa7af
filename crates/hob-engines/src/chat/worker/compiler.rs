//! The compiler prepares requests whose grammar must be compiled, on its own thread, so that other requests
//! do not wait. Another process tries each grammar first. The compiler reports each compilation to the server,
//! which refuses the grammar if the worker ends.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use hob_core::ChatRequest;

use super::Incoming;
use super::grammar_trials::{GrammarTrials, IDLE_TIME_MAX};
use super::off_engine::OffEngineStreams;
use super::request_reader::Compile;
use crate::chat::protocol::ChatReport;
use crate::worker::{InboxSender, Outlet};

/// A request with a grammar that is not compiled yet.
pub(super) struct CompileJob {
    pub(super) stream: u32,
    pub(super) request: Box<ChatRequest>,
    pub(super) credit: u32,
    pub(super) received: Instant,
}

/// Returns when the engine has ended or the server has gone.
pub(super) fn run(
    mut trials: GrammarTrials<'_>,
    jobs: &Receiver<CompileJob>,
    off_engine: &OffEngineStreams,
    mut outlet: Outlet,
    to_engine: &InboxSender<Incoming>,
) {
    loop {
        let CompileJob { stream, request, credit, received } =
            match jobs.recv_timeout(IDLE_TIME_MAX) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    trials.rest();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
        if !off_engine.contains(stream) {
            continue;
        }
        let prepared = match trials.pass(&request) {
            Ok(()) => {
                if outlet.send(stream, &ChatReport::Compiling).is_err() {
                    return;
                }
                let prepared = trials.reader().prepare(&request, credit, received, Compile::Now);
                if outlet.send(stream, &ChatReport::Compiled).is_err() {
                    return;
                }
                prepared
            }
            Err(refusal) => Err(refusal),
        };
        // Compiled now, it has a result.
        let Some(prepared) = prepared.transpose().map(Box::new) else { continue };
        if to_engine.send(Incoming::Prepared { stream, prepared }).is_err() {
            return;
        }
    }
}
