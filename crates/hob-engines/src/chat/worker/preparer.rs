//! Prepares requests on its own thread, so that a long conversation does not stall running
//! answers. Other threads compile grammars and compute embeddings, which takes longer.

use std::sync::mpsc::{Receiver, SyncSender};

use super::compiler::CompileJob;
use super::off_engine::OffEngineStreams;
use super::request_reader::{Compile, RequestReader};
use super::{BUSY, EmbedEnd, EmbedJob, Incoming, Job};
use crate::chat::protocol::ChatOrder;
use crate::worker::{EngineEnded, InboxSender};

pub(super) struct Preparer<'a> {
    pub(super) reader: &'a RequestReader,
    pub(super) embed_jobs: SyncSender<EmbedJob>,
    pub(super) compile_jobs: SyncSender<CompileJob>,
    pub(super) to_engine: InboxSender<Incoming>,
}

impl Preparer<'_> {
    /// Returns when the engine has ended.
    pub(super) fn run(&self, jobs: &Receiver<Job>, off_engine: &OffEngineStreams) {
        while let Ok(job) = jobs.recv() {
            if off_engine.contains(job.stream) && self.read_in(job) == Err(EngineEnded) {
                return;
            }
        }
    }

    fn read_in(&self, job: Job) -> Result<(), EngineEnded> {
        let Job { stream, order, received } = job;
        let prepared = match order {
            ChatOrder::Chat { request, credit } => {
                match self.reader.prepare(&request, credit, received, Compile::Elsewhere) {
                    Ok(Some(prepared)) => Ok(prepared),
                    Ok(None) => {
                        let job = CompileJob { stream, request, credit, received };
                        match self.compile_jobs.try_send(job) {
                            Ok(()) => return Ok(()),
                            Err(_) => Err(BUSY),
                        }
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            ChatOrder::Embed(request) => {
                return match self.embed_jobs.try_send(EmbedJob { stream, request }) {
                    Ok(()) => Ok(()),
                    Err(_) => {
                        let ended = Err(EmbedEnd::Refused(BUSY));
                        self.to_engine.send(Incoming::EmbeddedAll { stream, ended })
                    }
                };
            }
        };
        self.to_engine.send(Incoming::Prepared { stream, prepared: Box::new(prepared) })
    }
}
