//! What lists show of a run, without the conversations of its agents.
//! A summary stays in memory while the state on disk is the same file, so a list that is read again costs little.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard};

use fs_err as fs;
use hob_core::locked;
use serde::Deserialize;

use super::{RunStore, state_text};
use crate::state::{RunState, TeamRunStatus, Used};

/// Maximum summaries in memory. When it is reached, all are dropped.
const SUMMARIES_MAX: usize = 4_096;
/// Characters of the task in a summary.
const TASK_CHARS_MAX: usize = 200;

/// A run in a list. It is read from the file of a [`RunState`], so its fields have the same names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RunSummary {
    pub run_id: String,
    pub team: RunTeam,
    /// At most 200 characters if it was read from the disk.
    pub task: String,
    pub used: Used,
    pub status: TeamRunStatus,
}

/// What a list shows of the team in [`RunState::team`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RunTeam {
    pub id: String,
}

/// Identifies a version of the file of a state: a changed state is another file, or a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateFile {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// The summaries that were read, by the ids of their runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Summaries(Arc<Mutex<SummaryMap>>);

type SummaryMap = HashMap<String, (StateFile, RunSummary)>;

impl Summaries {
    fn lock(&self) -> MutexGuard<'_, SummaryMap> {
        locked(&self.0)
    }
}

impl RunStore {
    /// What a list shows of a run.
    ///
    /// # Errors
    /// There is no such run, or its state cannot be read.
    pub fn summary(&self, run_id: &str) -> io::Result<RunSummary> {
        let path = self.state_path(run_id)?;
        let found = fs::metadata(&path)?;
        let file = StateFile {
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        };
        if let Some((own, summary)) = self.summaries.lock().get(run_id)
            && *own == file
        {
            return Ok(summary.clone());
        }
        let mut summary: RunSummary = serde_json::from_slice(&state_text::read(&path)?)
            .map_err(|error| io::Error::other(format!("{} is damaged: {error}", path.display())))?;
        summary.task = summary.task.chars().take(TASK_CHARS_MAX).collect();
        let mut summaries = self.summaries.lock();
        if summaries.len() >= SUMMARIES_MAX {
            summaries.clear();
        }
        // A state that was replaced in between is another file for the next reader.
        summaries.insert(run_id.to_owned(), (file, summary.clone()));
        Ok(summary)
    }
}

impl From<&RunState> for RunSummary {
    /// With the whole task.
    fn from(run: &RunState) -> RunSummary {
        RunSummary {
            run_id: run.run_id.clone(),
            team: RunTeam { id: run.team.id.clone() },
            task: run.task.clone(),
            used: run.used,
            status: run.status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::stored_run;
    use super::*;
    use crate::machine::{Input, Now, step};

    #[test]
    fn a_summary_is_that_of_the_last_state() {
        let (_folder, store) = stored_run();
        let (stored, mut state) = store.open("run-1").expect("free");
        assert_eq!(store.summary("run-1").expect("a summary"), RunSummary::from(&state));
        step(&mut state, &[], Input::Cancel, Now::default());
        stored.store(&state, &[], false).expect("stored");
        let summary = store.summary("run-1").expect("a summary");
        assert_eq!((summary.status, summary.team.id.as_str()), (TeamRunStatus::Cancelled, "t"));
        assert!(store.summary("../run-1").is_err() && store.summary("run-2").is_err());
    }

    #[test]
    fn a_state_that_has_not_changed_is_not_read_again() {
        let (_folder, store) = stored_run();
        let first = store.summary("run-1").expect("a summary");
        let path = store.folder_of("run-1").join("state.json");
        let found = std::fs::metadata(&path).expect("a file");
        // The same file with the same times, and a content that cannot be read.
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opened");
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", 0).expect("written");
        file.set_modified(found.modified().expect("a time")).expect("set");
        assert_eq!(store.summary("run-1").expect("a summary"), first);
    }
}
