//! Stores team runs: a folder for each run, with its state and its events.
//! A reader never sees a part of a state. Events are written before the state that counts them.

mod files;
mod follow;
mod state_text;
mod summaries;

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use fs_err as fs;
use hob_core::locked;

use crate::event::RunEvent;
use crate::state::RunState;

pub use files::{RUN_FILES_MAX, RunFile};
pub use follow::NewLines;
use state_text::WrittenState;
use summaries::Summaries;
pub use summaries::{RunSummary, RunTeam};

/// The last state that was written whole, and a line of JSON for what each later step changed.
const STATE: &str = "state.json";
const EVENTS: &str = "events.jsonl";
const LOCK: &str = "lock";
/// The process of a run in a terminal. A server has none here, because a signal would end it.
pub const PID_FILE: &str = "pid";
/// Longest state that is read back, in bytes.
const STATE_BYTES_MAX: u64 = 256 << 20;
/// How often hob tries to lock a run, and the pause between two tries. [`RunStore::is_locked`] holds the lock for a
/// moment, and a driver holds it for a moment after its last step.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The folder of all runs.
#[derive(Clone, Debug)]
pub struct RunStore {
    folder: PathBuf,
    summaries: Summaries,
}

/// The folder of one run. While this value lives, no other process can continue the run.
#[derive(Debug)]
pub struct StoredRun {
    folder: PathBuf,
    /// The state that the file has. `None`: it is not known, so the next state is written whole.
    written: Mutex<Option<WrittenState>>,
    _lock: std::fs::File,
}

impl RunStore {
    pub fn new(folder: PathBuf) -> RunStore {
        RunStore { folder, summaries: Summaries::default() }
    }

    /// Makes the folder of a new run.
    ///
    /// # Errors
    /// The folder cannot be made, or the run exists.
    pub fn create(&self, run_id: &str) -> io::Result<StoredRun> {
        let folder = self.folder.join(run_id);
        let missing = self.folder.ancestors().take_while(|above| !above.exists()).count();
        fs::create_dir_all(&self.folder)?;
        // Events and files have what people and agents wrote, so other users of the machine may not enter it.
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        // A new folder survives a power failure only if the folder above it is on the disk.
        for above in self.folder.ancestors().take(missing + 1) {
            sync_folder(above)?;
        }
        lock(folder)
    }

    /// Locks a run to continue it, and returns it with its last state.
    ///
    /// # Errors
    /// There is no such run, its state cannot be read, or another process works on it.
    pub fn open(&self, run_id: &str) -> io::Result<(StoredRun, RunState)> {
        self.state_path(run_id)?;
        let stored = lock(self.folder.join(run_id))?;
        // Read while the lock is held: another process may have gone on with the run a moment ago.
        Ok((stored, self.read(run_id)?))
    }

    /// Reads the last state of a run.
    ///
    /// # Errors
    /// There is no such run, or its state cannot be read.
    pub fn read(&self, run_id: &str) -> io::Result<RunState> {
        state_in(&self.state_path(run_id)?)
    }

    /// The file with the state of a run.
    ///
    /// # Errors
    /// There is no such run, or its state is too large.
    fn state_path(&self, run_id: &str) -> io::Result<PathBuf> {
        if !is_id(run_id) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no run '{run_id}'"),
            ));
        }
        let path = self.folder.join(run_id).join(STATE);
        let found = fs::metadata(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::new(error.kind(), format!("there is no run '{run_id}'"))
            }
            _ => error,
        })?;
        if found.len() > STATE_BYTES_MAX {
            return Err(io::Error::other(format!(
                "{} is larger than {STATE_BYTES_MAX} bytes; delete the run's folder",
                path.display()
            )));
        }
        Ok(path)
    }

    /// The stored events of a run, in order. A line that was not written to its end is left out.
    ///
    /// # Errors
    /// There is no such run, or its events cannot be read.
    pub fn events(&self, run_id: &str) -> io::Result<Vec<RunEvent>> {
        self.state_path(run_id)?;
        let bytes = fs::read(self.folder.join(run_id).join(EVENTS))?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let events = lines.filter_map(|line| serde_json::from_slice::<RunEvent>(line).ok());
        Ok(last_written(events, |event| event.seq))
    }

    /// The ids of all runs, the newest first: ids of version 7 are in the order of time.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn ids(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut ids: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        ids.retain(|name| is_id(name));
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// The last states of all runs that can be read, the newest first.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn list(&self) -> io::Result<Vec<RunState>> {
        Ok(self.ids()?.iter().filter_map(|id| self.read(id).ok()).collect())
    }

    /// Deletes a run that has ended, with the files in its folder.
    ///
    /// # Errors
    /// There is no such run, it has not ended, or its folder cannot be deleted.
    pub fn delete(&self, run_id: &str) -> io::Result<()> {
        let (stored, state) = self.open(run_id)?;
        if !state.status.has_ended() {
            let reason = format!("the run {run_id} has not ended; cancel it first");
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
        }
        fs::remove_dir_all(&stored.folder)
    }

    /// Whether a process works on the run.
    pub fn is_locked(&self, run_id: &str) -> bool {
        let file = std::fs::File::open(self.folder.join(run_id).join(LOCK));
        file.is_ok_and(|file| {
            matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock))
        })
    }

    /// The folder of a run, whether or not it exists.
    pub fn folder_of(&self, run_id: &str) -> PathBuf {
        self.folder.join(run_id)
    }
}

impl StoredRun {
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The last state.
    ///
    /// # Errors
    /// No state was stored, or it cannot be read.
    pub fn last_state(&self) -> io::Result<RunState> {
        state_in(&self.folder.join(STATE))
    }

    /// Stores a step. If `must_sync`, it is on the disk when this returns. Otherwise it survives a crash of hob, but not a
    /// crash of the system.
    ///
    /// # Errors
    /// The step could not be written, or the disk did not confirm it. [`StoredRun::last_state`] then reads the previous
    /// state, or in the second case perhaps this one.
    pub fn store(&self, state: &RunState, events: &[RunEvent], must_sync: bool) -> io::Result<()> {
        let mut lines = Vec::new();
        for event in events {
            serde_json::to_writer(&mut lines, event)?;
            lines.push(b'\n');
        }
        let path = self.folder.join(EVENTS);
        let mut file = fs::OpenOptions::new().create(true).append(true).read(true).open(path)?;
        if file.metadata()?.len() > 0 {
            // A full disk may have cut off the last line. The new events begin a line of their own.
            let mut last = [b'\n'];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != [b'\n'] {
                lines.insert(0, b'\n');
            }
        }
        file.write_all(&lines)?;
        if must_sync {
            file.sync_data()?;
        }
        let text = serde_json::to_string(state)?;
        let mut written = locked(&self.written);
        // Taken out first: after an error the content of the file is unknown, so the next state is written whole.
        *written = Some(match written.take() {
            Some(last) if !must_sync && last.has_room() => last.change(text)?,
            _ => WrittenState::whole(&self.folder.join(STATE), text, must_sync)?,
        });
        if must_sync { sync_folder(&self.folder) } else { Ok(()) }
    }
}

/// A run without a state, such as that of a client which left before the first step, cannot be continued or deleted.
impl Drop for StoredRun {
    fn drop(&mut self) {
        if matches!(self.folder.join(STATE).try_exists(), Ok(false)) {
            let _is_gone = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The events in the order of their numbers. A run that continues after a crash writes the events after its last state a
/// second time. So if two events have one number, the later one counts.
fn last_written<E>(written: impl Iterator<Item = E>, seq: impl Fn(&E) -> u64) -> Vec<E> {
    let mut events: Vec<E> = Vec::new();
    for event in written {
        let next = seq(&event);
        while events.pop_if(|earlier| seq(earlier) >= next).is_some() {}
        events.push(event);
    }
    events
}

/// Reads the last state in a file.
fn state_in(path: &Path) -> io::Result<RunState> {
    serde_json::from_slice(&state_text::read(path)?)
        .map_err(|error| io::Error::other(format!("{} is damaged: {error}", path.display())))
}

/// Waits until the names in a folder are on the disk. A synced file alone is not enough: after a power failure, its name
/// may be missing, or lead to the previous file. Some file systems, such as those of a network, cannot do this.
fn sync_folder(folder: &Path) -> io::Result<()> {
    // A relative path of one part has an empty path above it.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let cannot = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
    };
    match fs::File::open(folder)?.sync_all() {
        Err(error) if cannot(&error) => Ok(()),
        done => done,
    }
}

/// Locks a run, so that no other process works on it.
fn lock(folder: PathBuf) -> io::Result<StoredRun> {
    let file = std::fs::File::create(folder.join(LOCK))?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => {
                // After `kill -9`, the file is still there, and its number may be that of another process by now.
                let _none = fs::remove_file(folder.join(PID_FILE));
                return Ok(StoredRun { folder, written: Mutex::default(), _lock: file });
            }
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "another process works on this run; `hob team cancel` ends it",
    ))
}

/// Whether a text has only letters, digits and `-`, so that it cannot be a path. At most 64 characters.
fn is_id(run_id: &str) -> bool {
    !run_id.is_empty()
        && run_id.len() <= 64
        && run_id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Effect, Input, Now, step};
    use crate::team::Team;

    fn run() -> RunState {
        let text = "entry = \"a\"\n[[agent]]\nname = \"a\"\nmodel = \"m\"\n";
        RunState::new(
            Team::parse(text, "t").expect("a team"),
            "run-1".to_owned(),
            "Task".to_owned(),
        )
    }

    fn events(effects: Vec<Effect>) -> Vec<RunEvent> {
        let event = |effect| match effect {
            Effect::Emit(event) => Some(event),
            _ => None,
        };
        effects.into_iter().filter_map(event).collect()
    }

    #[test]
    fn only_the_owner_may_enter_the_folder_of_a_run() {
        use std::os::unix::fs::PermissionsExt as _;

        let (_folder, store) = stored_run();
        let found = fs::metadata(store.folder_of("run-1")).expect("a folder");
        assert_eq!(found.permissions().mode() & 0o777, 0o700);
    }

    /// A store with the run `run-1`, on which no process works. Dropping the first value deletes its folder.
    pub(super) fn stored_run() -> (tempfile::TempDir, RunStore) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = RunStore::new(folder.path().join("runs"));
        let stored = store.create("run-1").expect("a run");
        stored.store(&run(), &[], true).expect("stored");
        (folder, store)
    }

    #[test]
    fn a_run_is_found_as_it_was_stored() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = RunStore::new(folder.path().join("runs"));
        assert_eq!(store.list().expect("a list"), []);
        let stored = store.create("run-1").expect("a run");
        let mut state = run();
        let first = events(step(&mut state, &[], Input::Start, Now::default()));
        stored.store(&state, &first, true).expect("stored");
        assert_eq!(store.read("run-1").expect("a state"), state);
        assert_eq!(store.events("run-1").expect("events"), first);
        assert_eq!(store.open("run-1").expect_err("locked").kind(), io::ErrorKind::ResourceBusy);
        assert!(store.is_locked("run-1"));
        drop(stored);
        assert!(!store.is_locked("run-1"));
        let (stored, mut state) = store.open("run-1").expect("free");
        let before = state.clone();
        // The process ended after it had written the events, and before the state.
        let lost = events(step(&mut state, &[], Input::Cancel, Now::default()));
        stored.store(&before, &lost, true).expect("stored");
        stored.store(&state, &lost, true).expect("stored again");
        let all = store.events("run-1").expect("events");
        assert_eq!(all.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
        fs::write(folder.path().join("runs").join(".DS_Store"), "no run").expect("written");
        assert_eq!(store.ids().expect("a list"), ["run-1"]);
        assert_eq!(store.list().expect("a list").len(), 1);
    }

    #[test]
    fn a_run_without_a_step_leaves_no_folder() {
        let (_folder, store) = stored_run();
        let stored = store.create("run-2").expect("a run");
        stored.make_files_folder().expect("a folder");
        drop(stored);
        assert!(!store.folder_of("run-2").exists());
        assert_eq!(store.ids().expect("a list"), ["run-1"]);
    }

    #[test]
    fn each_event_is_compared_with_few_others() {
        let compared = std::cell::Cell::new(0);
        let seq = |event: &u64| {
            compared.set(compared.get() + 1);
            *event
        };
        let all = last_written((1..=5_000).chain(3_001..=10_000), seq);
        assert!(all.into_iter().eq(1..=10_000));
        assert!(compared.get() <= 3 * 12_000, "{}", compared.get());
    }

    #[test]
    fn events_after_a_cut_off_line_are_read() {
        let (_folder, store) = stored_run();
        let (stored, mut state) = store.open("run-1").expect("free");
        let first = events(step(&mut state, &[], Input::Start, Now::default()));
        stored.store(&state, &first, false).expect("stored");
        let path = store.folder_of("run-1").join(EVENTS);
        let mut text = fs::read(&path).expect("events");
        // Cut inside a character of two bytes.
        text.extend(b"{\"v\":1,\"seq\":8,\"ag\xc3");
        fs::write(&path, text).expect("written");
        let last = events(step(&mut state, &[], Input::Cancel, Now::default()));
        stored.store(&state, &last, false).expect("stored");
        let all = store.events("run-1").expect("events");
        assert_eq!(all, [first, last].concat());
    }

    /// `/dev/full` is a file on a disk that is always full.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_leaves_the_last_state() {
        let (_folder, store) = stored_run();
        let (stored, mut state) = store.open("run-1").expect("free");
        let before = state.clone();
        let path = store.folder_of("run-1").join(EVENTS);
        fs::rename(&path, path.with_extension("kept")).expect("renamed");
        std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
        let first = events(step(&mut state, &[], Input::Start, Now::default()));
        let full = stored.store(&state, &first, true).expect_err("full");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!(store.read("run-1").expect("a state"), before);
        fs::rename(path.with_extension("kept"), &path).expect("renamed");
        stored.store(&state, &first, true).expect("stored");
        assert_eq!(store.read("run-1").expect("a state"), state);
        assert_eq!(store.events("run-1").expect("events"), first);
        let left = fs::read_dir(store.folder_of("run-1")).expect("a folder").count();
        assert_eq!(left, 3, "state, events and lock");
    }

    #[test]
    fn steps_that_need_no_sync_write_only_what_has_changed() {
        let (_folder, store) = stored_run();
        let (stored, mut state) = store.open("run-1").expect("free");
        stored.store(&state, &[], false).expect("stored");
        let whole = fs::read(store.folder_of("run-1").join(STATE)).expect("a file");
        for text in ["Grüße", "", "1, 2, 3"] {
            let what = crate::event::EventKind::ModelReminded { reason: text.to_owned() };
            let input = Input::Noted { id: None, what };
            step(&mut state, &[], input, Now { unix_ms: 1, since_s: 0.5 });
            state.last_texts.insert("a".to_owned(), text.to_owned());
            stored.store(&state, &[], false).expect("stored");
            assert_eq!(store.read("run-1").expect("a state"), state);
            assert_eq!(stored.last_state().expect("a state"), state);
            assert_eq!(store.summary("run-1").expect("a summary").used, state.used);
        }
        let file = || fs::read(store.folder_of("run-1").join(STATE)).expect("a file");
        assert!(file().starts_with(&whole));
        stored.store(&state, &[], true).expect("stored");
        assert!(!file().starts_with(&whole));
        assert_eq!(store.read("run-1").expect("a state"), state);
    }

    #[test]
    fn a_run_forgets_the_process_that_worked_on_it_before() {
        let (_folder, store) = stored_run();
        let pid = store.folder_of("run-1").join(PID_FILE);
        fs::write(&pid, "1").expect("written");
        let opened = store.open("run-1").expect("free");
        assert!(!pid.exists(), "`hob team cancel` would end another process");
        drop(opened);
    }

    #[test]
    fn all_new_folders_are_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = RunStore::new(folder.path().join("new").join("runs"));
        for id in ["run-1", "run-2"] {
            let stored = store.create(id).expect("a run");
            stored.store(&run(), &[], true).expect("stored");
        }
        assert_eq!(store.create("run-1").expect_err("exists").kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_folder_that_is_synced_must_exist() {
        let folder = tempfile::tempdir().expect("a folder");
        sync_folder(folder.path()).expect("a folder");
        sync_folder(Path::new("")).expect("the present folder");
        // Linux answers EINVAL for it, as for the folders of some file systems.
        sync_folder(Path::new("/dev/null")).expect("nothing to wait for");
        sync_folder(&folder.path().join("none")).expect_err("no folder");
    }

    #[test]
    fn no_run_is_outside_the_folder() {
        let store = RunStore::new(PathBuf::from("runs"));
        for id in ["", "..", "../x", "a/b", "none"] {
            assert_eq!(store.read(id).expect_err(id).kind(), io::ErrorKind::NotFound);
        }
    }
}
