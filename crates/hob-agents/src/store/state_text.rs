//! The state of a run in its file: a line that was written whole, and a line for what each later step changed in it.
//! A step that must be on the disk is written whole. Others append a few kilobytes, however long the conversation is.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::Path;

use fs_err as fs;
use serde::{Deserialize, Serialize};

/// Steps and bytes after which a state is written whole again.
const CHANGES_MAX: u32 = 64;
const CHANGES_BYTES_MAX: usize = 1 << 20;
/// Bytes of a block. Comparing texts block by block is faster than byte by byte.
const BLOCK_BYTES: usize = 64;

/// A state as this process has written it.
#[derive(Debug)]
pub(super) struct WrittenState {
    text: String,
    file: fs::File,
    changes_count: u32,
    changes_bytes: usize,
}

/// How a text follows from the one before: its first `begin` and its last `end` bytes stay.
#[derive(Serialize, Deserialize)]
struct TextChange<'c> {
    begin: usize,
    end: usize,
    middle: Cow<'c, str>,
}

impl WrittenState {
    /// Replaces the file of the state. The text is one line.
    pub(super) fn whole(
        path: &Path,
        mut text: String,
        must_sync: bool,
    ) -> io::Result<WrittenState> {
        // The texts of a state may contain API keys, so only its owner may read the file. A temporary file has this mode.
        let mut next = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(path))?;
        // Written in one call, because each piece would be a system call of its own.
        text.push('\n');
        next.write_all(text.as_bytes())?;
        text.pop();
        if must_sync {
            next.as_file().sync_data()?;
        }
        let file = next.persist(path).map_err(|error| error.error)?;
        let file = fs::File::from_parts(file, path);
        Ok(WrittenState { text, file, changes_count: 0, changes_bytes: 0 })
    }

    /// Whether one more change may be appended. The limit keeps the reading of a file short.
    pub(super) fn has_room(&self) -> bool {
        self.changes_count < CHANGES_MAX && self.changes_bytes < CHANGES_BYTES_MAX
    }

    /// Appends what has changed.
    pub(super) fn change(mut self, text: String) -> io::Result<WrittenState> {
        let mut line = serde_json::to_vec(&TextChange::between(&self.text, &text))?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.changes_count += 1;
        self.changes_bytes += line.len();
        Ok(WrittenState { text, ..self })
    }
}

impl<'c> TextChange<'c> {
    fn between(before: &str, now: &'c str) -> TextChange<'c> {
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
        TextChange { begin, end: now.len() - middle_end, middle }
    }

    /// The text that follows. `None`: the change belongs to another text.
    fn applied(&self, before: &[u8]) -> Option<Vec<u8>> {
        let end_at = before.len().checked_sub(self.end).filter(|at| *at >= self.begin)?;
        Some([&before[..self.begin], self.middle.as_bytes(), &before[end_at..]].concat())
    }
}

/// How many bytes two texts have in common, from one side. `of_block` counts the common bytes of the first two blocks that
/// differ.
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

/// The text of the last state in a file.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let stored = fs::read(path)?;
    let mut lines = stored.split_inclusive(|byte| *byte == b'\n');
    let mut text = lines.next().unwrap_or_default().to_vec();
    text.pop_if(|last| *last == b'\n');
    for line in lines {
        // A line that was cut off was not stored, and lines after it do not count.
        let change = line.strip_suffix(b"\n").map(serde_json::from_slice::<TextChange<'_>>);
        let Some(Ok(change)) = change else { break };
        let Some(next) = change.applied(&text) else { break };
        text = next;
    }
    Ok(text)
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
            let change = TextChange::between(&before, &now);
            let line = serde_json::to_vec(&change).expect("a line");
            let change: TextChange<'_> = serde_json::from_slice(&line).expect("a change");
            let applied = change.applied(before.as_bytes());
            prop_assert_eq!(applied.as_deref(), Some(now.as_bytes()));
        }
    }

    fn text(path: &Path) -> String {
        String::from_utf8(read(path).expect("a state")).expect("a text")
    }

    fn written(texts: &[&str], path: &Path) -> WrittenState {
        let whole = WrittenState::whole(path, texts[0].to_owned(), false).expect("written");
        let later = texts[1..].iter().map(|text| (*text).to_owned());
        later.fold(whole, |state, text| state.change(text).expect("written"))
    }

    #[test]
    fn each_change_is_read_and_what_is_in_the_file_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let _written = written(&["[1]", "[1,22]", "[1,33]"], &path);
        assert_eq!(text(&path), "[1,33]");
        assert!(std::fs::read(&path).expect("a file").starts_with(b"[1]\n"));
        let _whole = written(&["[4]"], &path);
        assert_eq!(text(&path), "[4]");
        let files = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(files, 1);
    }

    /// The process or the machine ended while a line was written.
    #[test]
    fn what_a_crash_leaves_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let _written = written(&["[1]", "[1,22]", "[1,33]"], &path);
        let stored = std::fs::read(&path).expect("a file");
        let cut = &stored[..stored.len() - 1];
        for left in [cut.to_vec(), [cut, &b"\0\0\n{}\n"[..]].concat()] {
            std::fs::write(&path, left).expect("written");
            assert_eq!(text(&path), "[1,22]");
        }
    }

    /// A reader must not take a state without the changes that followed it.
    #[test]
    fn a_reader_finds_no_older_state_than_before() {
        const STATES: u32 = 3_000;
        let folder = tempfile::tempdir().expect("a folder");
        let path = &folder.path().join("state");
        let first = WrittenState::whole(path, "0".to_owned(), false).expect("written");
        let next = |state: WrittenState, number: u32| {
            let next = if number.is_multiple_of(3) {
                WrittenState::whole(path, number.to_string(), false)
            } else {
                state.change(number.to_string())
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
        let path = folder.path().join("state");
        let _written = written(&["[1]", "[1,22]"], &path);
        let found = std::fs::metadata(&path).expect("a file");
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn changes_have_a_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let long = "x".repeat(CHANGES_BYTES_MAX);
        assert!(!written(&["", &long], &path).has_room());
        let many = vec!["1"; CHANGES_MAX as usize];
        let state = written(&many, &path);
        assert!(state.has_room());
        assert!(!state.change("2".to_owned()).expect("written").has_room());
    }
}
