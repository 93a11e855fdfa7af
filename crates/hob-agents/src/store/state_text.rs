//! The state of a run in its files: a text that was written whole, and what each later step changed in it.
//! A step that must be on the disk is written whole. Others append a few kilobytes, however long the conversation is.

use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::STATE;

/// What changed since [`STATE`] was written, a line for each step.
pub(super) const CHANGES: &str = "state.changes.jsonl";
/// Steps and bytes after which a state is written whole again.
const CHANGES_MAX: u32 = 64;
const CHANGES_BYTES_MAX: usize = 1 << 20;
/// How often a state is read that is replaced at the same time.
const READS_MAX: u32 = 3;
/// Texts are compared in blocks of so many bytes.
const BLOCK_BYTES: usize = 64;

/// A state as this process has written it.
#[derive(Debug)]
pub(super) struct WrittenState {
    text: String,
    /// The checksum of the text that was written whole.
    base: u64,
    changes: Option<fs::File>,
    changes_count: u32,
    changes_bytes: usize,
}

/// How a text follows from the one before: some bytes of its beginning and of its end stay.
#[derive(Serialize, Deserialize)]
struct TextChange<'c> {
    base: u64,
    begin: usize,
    end: usize,
    middle: Cow<'c, str>,
}

impl WrittenState {
    /// Replaces the file of the state.
    pub(super) fn whole(folder: &Path, text: String, must_sync: bool) -> io::Result<WrittenState> {
        let mut next = tempfile::NamedTempFile::new_in(folder)?;
        // Written at once: each piece would be a system call of its own.
        next.write_all(text.as_bytes())?;
        if must_sync {
            next.as_file().sync_data()?;
        }
        next.persist(folder.join(STATE)).map_err(|error| error.error)?;
        // Until they are removed, the checksum says that they belong to another text.
        match fs::remove_file(folder.join(CHANGES)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let base = checksum(text.as_bytes());
        Ok(WrittenState { text, base, changes: None, changes_count: 0, changes_bytes: 0 })
    }

    /// Whether a change can follow, so that reading them never takes long.
    pub(super) fn has_room(&self) -> bool {
        self.changes_count < CHANGES_MAX && self.changes_bytes < CHANGES_BYTES_MAX
    }

    /// Appends what has changed.
    pub(super) fn change(mut self, folder: &Path, text: String) -> io::Result<WrittenState> {
        let mut line = serde_json::to_vec(&TextChange::between(&self.text, &text, self.base))?;
        line.push(b'\n');
        let mut file = match self.changes.take() {
            Some(file) => file,
            None => new_changes(folder)?,
        };
        file.write_all(&line)?;
        self.changes = Some(file);
        self.changes_count += 1;
        self.changes_bytes += line.len();
        Ok(WrittenState { text, ..self })
    }
}

/// An empty file for changes. A state has the keys in its texts, so only its owner may read it, like [`STATE`].
fn new_changes(folder: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.options_mut().mode(0o600);
    options.open(folder.join(CHANGES))
}

impl<'c> TextChange<'c> {
    fn between(before: &str, now: &'c str, base: u64) -> TextChange<'c> {
        let (old, new) = (before.as_bytes(), now.as_bytes());
        let begin = now.floor_char_boundary(common_bytes(
            old.chunks(BLOCK_BYTES),
            new.chunks(BLOCK_BYTES),
            |a, b| a.iter().zip(b).take_while(|(a, b)| a == b).count(),
        ));
        let (old, new) = (&old[begin..], &new[begin..]);
        let end = common_bytes(old.rchunks(BLOCK_BYTES), new.rchunks(BLOCK_BYTES), |a, b| {
            a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
        });
        let middle_end = now.ceil_char_boundary(now.len() - end);
        let middle = Cow::Borrowed(&now[begin..middle_end]);
        TextChange { base, begin, end: now.len() - middle_end, middle }
    }

    /// The text that follows. `None`: the change belongs to another text.
    fn applied(&self, before: &[u8]) -> Option<Vec<u8>> {
        let end_at = before.len().checked_sub(self.end).filter(|at| *at >= self.begin)?;
        Some([&before[..self.begin], self.middle.as_bytes(), &before[end_at..]].concat())
    }
}

/// How many bytes two texts have in common, from one side. `of_block` counts those of two blocks that differ.
fn common_bytes<'t>(
    old: impl Iterator<Item = &'t [u8]>,
    new: impl Iterator<Item = &'t [u8]>,
    of_block: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut common = 0;
    for (old, new) in old.zip(new) {
        if old != new {
            return common + of_block(old, new);
        }
        common += old.len();
    }
    common
}

/// The text of the last state in a folder.
///
/// # Errors
/// There is no state, or a file cannot be read.
pub(super) fn read(folder: &Path) -> io::Result<Vec<u8>> {
    let path = folder.join(STATE);
    for _ in 1..READS_MAX {
        let mut file = fs::File::open(&path)?;
        let mut whole = Vec::new();
        file.read_to_end(&mut whole)?;
        let changes = match fs::read(folder.join(CHANGES)) {
            Ok(changes) => changes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        // Otherwise a new state came, and the changes of this one were removed before they were read.
        let is_last = file.metadata()?.ino() == fs::metadata(&path)?.ino();
        if is_last && let Some(text) = with_changes(whole, &changes) {
            return Ok(text);
        }
    }
    // A process has ended after it had written this state, and before it removed the changes of the one before.
    fs::read(path)
}

/// `None`: the changes belong to another text.
fn with_changes(whole: Vec<u8>, changes: &[u8]) -> Option<Vec<u8>> {
    if changes.is_empty() {
        return Some(whole);
    }
    let base = checksum(&whole);
    let mut text = whole;
    for line in changes.split_inclusive(|byte| *byte == b'\n') {
        // A line that was cut off was not stored, and is the last one.
        let change = serde_json::from_slice::<TextChange<'_>>(line).ok();
        let Some(change) = change.filter(|_| line.ends_with(b"\n")) else { break };
        if change.base != base {
            return None;
        }
        text = change.applied(&text)?;
    }
    Some(text)
}

/// FNV-1a of 64 bits: it tells the states of one run apart.
fn checksum(text: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_change_makes_the_next_text(
            parts in proptest::collection::vec("[aé€😀]{0,200}", 4),
            bases in any::<[bool; 2]>(),
        ) {
            let joined = |parts: &[&str]| parts.concat();
            let [a, b, c, d] = [&*parts[0], &*parts[1], &*parts[2], &*parts[3]];
            let before = if bases[0] { joined(&[a, b, c]) } else { joined(&[a, a, b]) };
            let now = if bases[1] { joined(&[a, d, c]) } else { joined(&[a, a, a, b]) };
            let change = TextChange::between(&before, &now, 1);
            let line = serde_json::to_vec(&change).expect("a line");
            let change: TextChange<'_> = serde_json::from_slice(&line).expect("a change");
            let applied = change.applied(before.as_bytes());
            prop_assert_eq!(applied.as_deref(), Some(now.as_bytes()));
        }
    }

    fn text(folder: &Path) -> String {
        String::from_utf8(read(folder).expect("a state")).expect("a text")
    }

    fn written(texts: &[&str], folder: &Path) -> WrittenState {
        let whole = WrittenState::whole(folder, texts[0].to_owned(), false).expect("written");
        let later = texts[1..].iter().map(|text| (*text).to_owned());
        later.fold(whole, |state, text| state.change(folder, text).expect("written"))
    }

    #[test]
    fn each_change_is_read_and_the_file_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let _written = written(&["[1]", "[1,22]", "[1,33]"], folder.path());
        assert_eq!(text(folder.path()), "[1,33]");
        assert_eq!(std::fs::read(folder.path().join(STATE)).expect("a file"), b"[1]");
        let _whole = written(&["[4]"], folder.path());
        assert_eq!(text(folder.path()), "[4]");
        assert!(!folder.path().join(CHANGES).exists(), "changes of another text");
    }

    /// The process ended while it wrote a line, or between a new state and the removal of the changes of the one before.
    #[test]
    fn what_a_crash_leaves_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let _written = written(&["[1]", "[1,22]", "[1,33]"], folder.path());
        let path = folder.path().join(CHANGES);
        let changes = std::fs::read(&path).expect("changes");
        std::fs::write(&path, &changes[..changes.len() - 1]).expect("written");
        assert_eq!(text(folder.path()), "[1,22]");
        std::fs::write(folder.path().join(STATE), "[9]").expect("written");
        assert_eq!(text(folder.path()), "[9]");
    }

    /// Changes are removed when a state is written whole. A reader must not take the state before it without them.
    #[test]
    fn a_reader_finds_no_older_state_than_before() {
        const STATES: u32 = 3_000;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let first = WrittenState::whole(path, "0".to_owned(), false).expect("written");
        let next = |state: WrittenState, number: u32| {
            let whole = || WrittenState::whole(path, number.to_string(), false);
            let next = if number.is_multiple_of(3) {
                whole()
            } else {
                state.change(path, number.to_string())
            };
            next.expect("written")
        };
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || drop((1..=STATES).fold(first, next)));
            let mut last = 0;
            while !writer.is_finished() {
                let read: u32 = text(path).parse().expect("a number");
                assert!(read >= last, "{read} after {last}");
                last = read;
            }
        });
        assert_eq!(text(path), STATES.to_string());
    }

    #[test]
    fn only_the_owner_may_read_a_state_and_its_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let _written = written(&["[1]", "[1,22]"], folder.path());
        for name in [STATE, CHANGES] {
            let found = std::fs::metadata(folder.path().join(name)).expect("a file");
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn changes_have_a_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = "x".repeat(CHANGES_BYTES_MAX);
        assert!(!written(&["", &long], folder.path()).has_room());
        let many = vec!["1"; CHANGES_MAX as usize];
        let state = written(&many, folder.path());
        assert!(state.has_room());
        assert!(!state.change(folder.path(), "2".to_owned()).expect("written").has_room());
    }
}
