//! A file with one line of JSON for each result, written while a run goes on.
//! A run that was cut off reads it and goes on. A line that was cut off is dropped, so its result is made again.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::RecordError;

#[derive(Debug)]
pub(super) struct LineFile {
    path: PathBuf,
    file: fs::File,
}

impl LineFile {
    /// Opens a file or makes a new one, with its folder. `keep` gets each line that is an `L`; other lines are skipped.
    pub(super) fn open<L: DeserializeOwned>(
        path: PathBuf,
        keep: impl FnMut(L),
    ) -> Result<LineFile, RecordError> {
        let shown = path.display().to_string();
        let failed = |error| RecordError::io("write", &shown, error);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
        let options = fs::OpenOptions::new().read(true).append(true).create(true).clone();
        let mut file = options.open(&path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        let lines = bytes[..whole].split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice::<L>(line).ok()).for_each(keep);
        Ok(LineFile { path, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line. It is on the disk when this returns.
    pub(super) fn add(&mut self, line: &impl Serialize) -> Result<(), RecordError> {
        let failed = |error| RecordError::io("write", &self.path.display().to_string(), error);
        let line = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.and_then(|()| self.file.sync_data()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_utf_8_is_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        std::fs::write(&path, b"\"good\"\n\"b\xfcse\"\n\"also good\"\r\n").expect("written");
        let mut kept = Vec::new();
        LineFile::open(path, |line: String| kept.push(line)).expect("a file");
        assert_eq!(kept, ["good", "also good"]);
    }
}
