//! What all kinds of campaigns share: work that Ctrl-C ends well, and records that are kept one by one.
//! What is done is on the disk before the next begins, so that nothing is lost with the process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_bench::record::{RawSample, Record, Shelf};
use tokio::task::spawn_blocking;

use crate::app::block_on;
use crate::failure::{Exit, Failure, Outcome};
use crate::signals::{StopSignals, interrupted};

/// Runs `work` on a thread of its own. The first Ctrl-C asks it to end; a second does not wait.
pub(crate) fn stoppable<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut work = spawn_blocking(move || work(&seen));
        let ended = |result: Result<Outcome<T>, tokio::task::JoinError>| {
            result.map_err(|error| Failure::new(Exit::Internal, error))?
        };
        tokio::select! {
            result = &mut work => return ended(result),
            () = signals.next() => stop.store(true, Ordering::Relaxed),
        }
        tokio::select! {
            result = &mut work => ended(result),
            () = signals.next() => Err(interrupted()),
        }
    })
}

/// Writes one record, and says where.
pub(crate) fn keep(folder: &Path, record: &Record, samples: &[RawSample]) -> Outcome<String> {
    let written = Shelf::new(folder).put(record, samples);
    let place = written.map_err(|error| {
        Failure::new(Exit::Internal, error).hint("choose another folder with --out")
    })?;
    Ok(place.display().to_string())
}
