//! Reads the events of a run while it works, each line once.
//! A reader keeps the place in the file, so nothing is read again.

use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use fs_err as fs;

use super::{EVENTS, RunStore};

/// Bytes of whole lines after which a reading ends.
const READ_BYTES: usize = 1 << 20;
/// Maximum bytes of a line. An answer of a model has at most 4 MiB, and is longer as JSON.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Lines that a reader has not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewLines {
    /// Whole lines, each an event as JSON.
    pub lines: Vec<String>,
    /// The place in the file behind the last of them, in bytes.
    pub offset: u64,
    /// The file has no further whole line now.
    pub is_at_end: bool,
}

impl RunStore {
    /// The events behind a place in the file, about 1 MiB of them. The first place is 0.
    ///
    /// # Errors
    /// There is no such run, its events cannot be read, or a line is too long.
    pub fn new_lines(&self, run_id: &str, offset: u64) -> io::Result<NewLines> {
        // The path is not needed: this refuses an id that no run has.
        self.state_path(run_id)?;
        let mut file = fs::File::open(self.folder.join(run_id).join(EVENTS))?;
        file.seek(SeekFrom::Start(offset))?;
        let mut reader = BufReader::new(file);
        let mut new = NewLines { offset, ..NewLines::default() };
        let mut bytes = 0;
        while bytes < READ_BYTES {
            let mut line = Vec::new();
            reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                if line.len() as u64 == LINE_BYTES_MAX {
                    return Err(io::Error::other(format!(
                        "an event of the run has more than {LINE_BYTES_MAX} bytes"
                    )));
                }
                // The rest of the line is not written yet.
                new.is_at_end = true;
                break;
            }
            bytes += line.len();
            new.offset += line.len() as u64;
            new.lines.push(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
        }
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::stored_run;
    use super::*;

    #[test]
    fn each_line_is_read_once_and_only_when_it_is_whole() {
        let (_folder, store) = stored_run();
        let path = store.folder_of("run-1").join(EVENTS);
        std::fs::write(&path, "one\ntwo\nhal").expect("written");
        let first = store.new_lines("run-1", 0).expect("lines");
        assert_eq!(
            (first.lines, first.offset, first.is_at_end),
            (vec!["one".to_owned(), "two".to_owned()], 8, true)
        );
        std::fs::write(&path, "one\ntwo\nhalf\n").expect("written");
        let second = store.new_lines("run-1", 8).expect("lines");
        assert_eq!((second.lines, second.offset), (vec!["half".to_owned()], 13));
        assert!(store.new_lines("run-1", 13).expect("lines").lines.is_empty());
        assert!(store.new_lines("../run-1", 0).is_err());
    }

    #[test]
    fn a_long_file_is_read_in_parts() {
        let (_folder, store) = stored_run();
        let line = "x".repeat(READ_BYTES / 2);
        std::fs::write(store.folder_of("run-1").join(EVENTS), format!("{line}\n").repeat(3))
            .expect("written");
        let first = store.new_lines("run-1", 0).expect("lines");
        assert_eq!((first.lines.len(), first.is_at_end), (2, false));
        let rest = store.new_lines("run-1", first.offset).expect("lines");
        assert_eq!((rest.lines.len(), rest.is_at_end), (1, true));
    }
}
