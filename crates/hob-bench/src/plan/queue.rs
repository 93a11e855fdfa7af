//! A queue that lets one measurement run at a time on a machine, because two would disturb each other.
//! A ticket is a locked file. The system releases the lock when its process ends in any way.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const LOOK_EVERY: Duration = Duration::from_millis(200);
const ENDING: &str = "ticket";
/// Locked while a ticket is created.
const LOCK_NAME: &str = "door";

/// A position in the queue. Dropping it leaves the queue.
#[derive(Debug)]
pub struct Ticket {
    place: PathBuf,
    folder: PathBuf,
    _held: File,
}

/// The owner of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub name: String,
    pub pid: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("cannot queue in {folder}: {source}")]
    Io { folder: String, source: std::io::Error },
    #[error("the measurement was stopped")]
    Stopped,
}

impl Ticket {
    /// Creates the next ticket.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn draw(folder: &Path, name: &str) -> Result<Ticket, QueueError> {
        let failed = |source| QueueError::Io { folder: folder.display().to_string(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        // The lock makes tickets visible in the order of their names.
        let lock = File::create(folder.join(LOCK_NAME)).map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
        // The name starts with the time, so names are in the order of arrival. If the clock was set back, it follows on the
        // last name.
        let last = held(folder).map_err(failed)?.pop();
        let last = last.and_then(|(place, _)| place.file_stem()?.to_str()?.parse::<Uuid>().ok());
        let next = last.map_or(0, |last| last.as_u128().saturating_add(1));
        let id = Uuid::now_v7().max(Uuid::from_u128(next));
        let place = folder.join(format!("{id}.{ENDING}"));
        let draft = place.with_extension("part");
        let mut file = File::create(&draft).map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| failed(e.into()))?;
        let says = Waiting { name: name.to_owned(), pid: std::process::id() };
        let text = serde_json::to_string(&says).map_err(|error| failed(error.into()))?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        // The file is locked before other processes can see it.
        fs::rename(&draft, &place).map_err(failed)?;
        Ok(Ticket { place, folder: folder.to_owned(), _held: file })
    }

    /// The owners of earlier tickets.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn before(&self) -> Result<Vec<Waiting>, QueueError> {
        let failed = |source| QueueError::Io { folder: self.folder.display().to_string(), source };
        let held = held(&self.folder).map_err(failed)?;
        Ok(held.into_iter().filter(|(place, _)| *place < self.place).map(|(_, who)| who).collect())
    }

    /// Waits until there is no earlier ticket.
    ///
    /// # Errors
    /// `stop` was set, or the folder cannot be read.
    pub fn wait(&self, stop: &AtomicBool) -> Result<(), QueueError> {
        while !self.before()?.is_empty() {
            if stop.load(Ordering::Relaxed) {
                return Err(QueueError::Stopped);
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // A remaining file is not locked, and the next reader removes it.
        let _left_behind = fs::remove_file(&self.place);
    }
}

/// All owners in the queue, the running one first. A missing folder is an empty queue.
///
/// # Errors
/// The folder cannot be read.
pub fn waiting(folder: &Path) -> Result<Vec<Waiting>, QueueError> {
    let failed = |source| QueueError::Io { folder: folder.display().to_string(), source };
    if !folder.exists() {
        return Ok(Vec::new());
    }
    Ok(held(folder).map_err(failed)?.into_iter().map(|(_, who)| who).collect())
}

/// Tickets of running processes. Others are removed.
fn held(folder: &Path) -> std::io::Result<Vec<(PathBuf, Waiting)>> {
    let mut held = Vec::new();
    for entry in fs::read_dir(folder)? {
        let place = entry?.path();
        if place.extension().is_none_or(|end| end != ENDING) {
            continue;
        }
        // The ticket may have been removed meanwhile.
        let Ok(file) = File::open(&place) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            let _removed = fs::remove_file(&place);
            continue;
        }
        let who = fs::read_to_string(&place).ok();
        let who = who.and_then(|text| serde_json::from_str(&text).ok());
        held.push((place, who.unwrap_or_else(|| Waiting { name: "?".to_owned(), pid: 0 })));
    }
    held.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_run_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path();
        let stop = AtomicBool::new(false);
        let first = Ticket::draw(place, "first").expect("a ticket");
        let second = Ticket::draw(place, "second").expect("a ticket");
        first.wait(&stop).expect("its turn");
        let names = |who: Vec<Waiting>| who.into_iter().map(|who| who.name).collect::<Vec<_>>();
        assert_eq!(names(second.before().expect("a queue")), ["first"]);
        assert_eq!(names(waiting(place).expect("a queue")), ["first", "second"]);
        drop(first);
        second.wait(&stop).expect("its turn");
    }

    #[test]
    fn a_ticket_drawn_after_the_clock_was_set_back_is_the_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = Uuid::from_u128(u128::MAX - 9);
        let earlier = File::create(folder.path().join(format!("{name}.{ENDING}")));
        let earlier = earlier.expect("a ticket");
        flock(&earlier, FlockOperation::NonBlockingLockExclusive).expect("a lock");
        let tickets = ["a", "b"].map(|name| Ticket::draw(folder.path(), name).expect("a ticket"));
        let before = tickets.each_ref().map(|ticket| ticket.before().expect("a queue").len());
        assert_eq!(before, [1, 2]);
    }

    #[test]
    fn the_ticket_of_an_ended_process_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = folder.path().join(format!("{}.{ENDING}", Uuid::nil()));
        std::fs::write(&old, "{}").expect("a file");
        let ticket = Ticket::draw(folder.path(), "now").expect("a ticket");
        ticket.wait(&AtomicBool::new(false)).expect("its turn");
        assert!(!old.exists());
    }

    #[test]
    fn a_stopped_wait_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let _first = Ticket::draw(folder.path(), "first").expect("a ticket");
        let second = Ticket::draw(folder.path(), "second").expect("a ticket");
        let left = second.wait(&AtomicBool::new(true));
        assert!(matches!(left, Err(QueueError::Stopped)), "{left:?}");
    }
}
