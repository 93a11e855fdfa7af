//! The compiler prepares requests whose grammar must be compiled, on its own thread, so that other requests
//! do not wait. It reports each compilation to the server, which refuses the grammar if the worker ends.

use std::sync::mpsc::Receiver;
use std::time::Instant;

use hob_core::ChatRequest;

use super::Incoming;
use super::elsewhere::Elsewhere;
use super::reading::Reading;
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
    reading: &Reading,
    jobs: &Receiver<CompileJob>,
    elsewhere: &Elsewhere,
    mut outlet: Outlet,
    to_engine: &InboxSender<Incoming>,
) {
    while let Ok(CompileJob { stream, request, credit, received }) = jobs.recv() {
        if !elsewhere.contains(stream) {
            continue;
        }
        if outlet.send(stream, &ChatReport::Compiling).is_err() {
            return;
        }
        let prepared = Box::new(reading.prepare(&request, credit, received));
        let said = outlet.send(stream, &ChatReport::Compiled);
        if said.is_err() || to_engine.send(Incoming::Prepared { stream, prepared }).is_err() {
            return;
        }
    }
}
