//! Opens a stored run to continue or to end it, for `hob team` and for the server.
//! A person's decision counts once, and the run gets its old workspace.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use hob_agents::{EventKind, PID_FILE, RunEvent, RunState, RunStore, StoredRun};
use rustix::process::{Pid, Signal, kill_process};

use super::tree;
use crate::failure::{CliResult, Failure};

const WORKSPACE: &str = "workspace";
/// How often the end of another process's run is looked for.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// How long a process may take to end its run.
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// What a person has decided about the call that a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    None,
    Approve,
    Deny,
}

/// A decision that counts for one call.
#[derive(Debug)]
pub(crate) struct DecidedOnce {
    decision: Decision,
    is_taken: AtomicBool,
}

impl DecidedOnce {
    pub(crate) fn new(decision: Decision) -> DecidedOnce {
        DecidedOnce { decision, is_taken: AtomicBool::new(false) }
    }

    /// Whether the call is approved. `None`: no decision, or it was taken before.
    pub(crate) fn take(&self) -> Option<bool> {
        let is_approved = match self.decision {
            Decision::None => return None,
            Decision::Approve => true,
            Decision::Deny => false,
        };
        (!self.is_taken.swap(true, Ordering::Relaxed)).then_some(is_approved)
    }
}

/// When a run started: ids of version 7 begin with the time.
pub(crate) fn started(id: &str) -> Option<SystemTime> {
    let (seconds, nanos) = uuid::Uuid::parse_str(id).ok()?.get_timestamp()?.to_unix();
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
}

/// Opens a run that goes on.
///
/// # Errors
/// There is no such run, another process works on it, it has ended, or it waits for no decision.
pub(crate) fn open(
    id: &str,
    decision: Decision,
    store: &RunStore,
) -> CliResult<(StoredRun, RunState)> {
    let (stored, state) = store.open(id).map_err(Failure::usage)?;
    if !state.status.can_resume() {
        return Err(has_ended(id, &state));
    }
    if decision != Decision::None && state.approval().is_none() {
        return Err(Failure::usage(format!("the run {id} waits for no decision"))
            .hint(format!("`hob team resume {id}` continues it")));
    }
    Ok((stored, state))
}

fn has_ended(id: &str, state: &RunState) -> Failure {
    let status = tree::status_text(state.status);
    Failure::usage(format!("the run {id} has ended: {status}"))
        .hint(format!("`hob team show {id}` shows what happened"))
}

/// The whole path of a workspace, for a run that goes on in another process.
///
/// # Errors
/// There is no such folder, or its path is not UTF-8.
pub(crate) fn whole_path(workspace: &Path) -> CliResult<String> {
    let place = workspace
        .canonicalize()
        .map_err(|error| Failure::io(format!("cannot open {}", workspace.display()), &error))?;
    place.into_os_string().into_string().map_err(|_| {
        Failure::usage("the workspace's path must be UTF-8")
            .hint("choose another folder with --workspace")
    })
}

/// Stores the path of the workspace.
pub(crate) fn keep_workspace(folder: &Path, path: &str) -> CliResult<()> {
    std::fs::write(folder.join(WORKSPACE), path)
        .map_err(|error| Failure::io("cannot store the run", &error))
}

/// The folder in which the agents of a run work: one of the user, or the run's own.
pub(crate) fn workspace(stored: &StoredRun) -> CliResult<PathBuf> {
    match std::fs::read_to_string(stored.folder().join(WORKSPACE)) {
        Ok(text) => Ok(PathBuf::from(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(stored.files_folder()),
        Err(error) => Err(Failure::io("cannot read the run", &error)),
    }
}

/// The files that a run has made, with their sizes in bytes. `None`: the file is not there any more.
pub(crate) fn made_files(
    id: &str,
    events: &[RunEvent],
    store: &RunStore,
) -> CliResult<Vec<(String, Option<u64>)>> {
    let failed = |error: io::Error| Failure::io("cannot read the files of the run", &error);
    let folder = match std::fs::read_to_string(store.folder_of(id).join(WORKSPACE)) {
        Ok(text) => PathBuf::from(text),
        // The run has a folder of its own.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let own = store.files(id).map_err(failed)?.into_iter();
            return Ok(own.map(|file| (file.path, Some(file.bytes))).collect());
        }
        Err(error) => return Err(failed(error)),
    };
    let outputs = events.iter().filter_map(|event| match &event.what {
        EventKind::ToolOutput { output, .. } => Some(&output.artifacts),
        _ => None,
    });
    let paths: BTreeSet<PathBuf> = outputs.flatten().map(|path| folder.join(path)).collect();
    let bytes = |path: &PathBuf| std::fs::metadata(path).ok().map(|found| found.len());
    Ok(paths.into_iter().map(|path| (path.display().to_string(), bytes(&path))).collect())
}

/// Ends a run, also if another process works on it.
pub(crate) fn cancel(run_id: &str, store: &RunStore) -> CliResult<()> {
    let folder = match store.open(run_id) {
        Ok((stored, mut state)) => {
            if state.status.has_ended() {
                return Err(has_ended(run_id, &state));
            }
            return hob_agents::cancel(&stored, &mut state)
                .map_err(|error| Failure::io("cannot store the run", &error));
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => store.folder_of(run_id),
        Err(error) => return Err(Failure::usage(error)),
    };
    let pid = std::fs::read_to_string(folder.join(PID_FILE))
        .ok()
        .and_then(|text| Pid::from_raw(text.trim().parse().ok()?));
    let Some(pid) = pid else {
        return Err(Failure::usage("a process works on this run and cannot be reached from here")
            .hint(format!("a chat with a team ends its run when the client leaves; `hob serve` ends other runs on its page, or with POST /v1/runs/{run_id}/cancel")));
    };
    kill_process(pid, Signal::TERM)
        .map_err(|error| Failure::io("cannot end the process of the run", &error.into()))?;
    if has_ended_soon(run_id, store) {
        return Ok(());
    }
    let pid = pid.as_raw_nonzero();
    Err(Failure::internal(format!("process {pid} has not ended the run yet")).hint(format!(
        "wait and try again; if that does not help, run `kill -9 {pid}`, then try again"
    )))
}

/// Waits for the end of a run.
pub(super) fn has_ended_soon(run_id: &str, store: &RunStore) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < CANCEL_LIMIT {
        if store.read(run_id).is_ok_and(|state| state.status.has_ended()) {
            return true;
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    false
}
