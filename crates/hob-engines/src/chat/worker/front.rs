//! The front: reads requests in on a thread of its own, so that a long conversation or a schema that
//! has to be compiled is no silence in the answers that run.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use super::reading::Reading;
use super::{EmbedEnd, EmbedJob, Heard, Job};
use crate::chat::protocol::{Refusal, Task};
use crate::worker::{EngineEnded, InboxSender};

/// How long whoever finds the embedder's queue full is told to stay away.
const RETRY_AFTER_MS: u64 = 2000;

/// Returns when the engine has ended.
pub(super) fn run(
    reading: &Reading,
    jobs: &Receiver<Job>,
    to_embedder: &SyncSender<EmbedJob>,
    to_engine: &InboxSender<Heard>,
) {
    while let Ok(job) = jobs.recv() {
        if read_in(reading, job, to_embedder, to_engine) == Err(EngineEnded) {
            return;
        }
    }
}

fn read_in(
    reading: &Reading,
    job: Job,
    to_embedder: &SyncSender<EmbedJob>,
    to_engine: &InboxSender<Heard>,
) -> Result<(), EngineEnded> {
    let Job { stream, bytes, received } = job;
    let prepared = match Task::from_bytes(bytes) {
        Ok(Task::Chat { request, credit }) => reading.prepare(&request, credit, received),
        Ok(Task::Embed { request }) => {
            return match to_embedder.try_send(EmbedJob { stream, request }) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    let busy = Refusal::Busy { retry_after_ms: RETRY_AFTER_MS };
                    let ended = Err(EmbedEnd::Refused(busy));
                    to_engine.send(Heard::EmbeddedAll { stream, ended })
                }
            };
        }
        Err(error) => {
            let field = "messages".to_owned();
            Err(Refusal::Field { field, reason: format!("cannot be read: {error}") })
        }
    };
    to_engine.send(Heard::Prepared { stream, prepared: Box::new(prepared) })
}
