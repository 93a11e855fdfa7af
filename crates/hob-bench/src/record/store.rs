//! A folder of records. Each record is written completely or not at all.
//! A file name has date, machine, model, kind and id, so that a listing is already a table.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use rayon::prelude::*;

use super::samples::SAMPLES_MAX;
use super::{RECORD_BYTES_MAX, RawSample, Record, RecordError, from_yaml, pack_samples, to_yaml};

/// Maximum length of a model's name in a file name.
const MODEL_CHARS_MAX: usize = 48;

/// A folder of records.
#[derive(Clone, Debug)]
pub struct RecordStore {
    folder: PathBuf,
}

/// The content of a folder: records, and errors of other files.
#[derive(Debug, Default)]
pub struct StoredRecords {
    /// Each with its path relative to the folder.
    pub records: Vec<(PathBuf, Record)>,
    pub skipped: Vec<RecordError>,
}

impl RecordStore {
    pub fn new(folder: impl Into<PathBuf>) -> RecordStore {
        RecordStore { folder: folder.into() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a record after its samples, and returns its path. A reader sees all of it or nothing.
    ///
    /// # Errors
    /// The record exists already, or writing fails.
    pub fn put(&self, record: &Record, samples: &[RawSample]) -> Result<PathBuf, RecordError> {
        let target = self.folder.join(relative_path(record));
        if target.exists() {
            return Err(RecordError::Exists { file: target.display().to_string() });
        }
        let mut record = record.clone();
        if samples.len() > SAMPLES_MAX {
            // Such a file could not be read again.
            let lost = format!("{} samples (a record has {SAMPLES_MAX} at most)", samples.len());
            record.source.lossy.push(lost);
            record.samples = None;
        } else if !samples.is_empty() {
            let beside = target.with_extension("jsonl.gz");
            let (bytes, file) = pack_samples(&name_of(&beside), samples)?;
            // Samples without their record are from an import that was cut off.
            let _left_over = fs::remove_file(&beside);
            write_whole(&beside, &bytes)?;
            record.samples = Some(file);
        }
        write_whole(&target, to_yaml(&record)?.as_bytes())?;
        Ok(target)
    }

    /// Checks before a measurement that records can be written.
    ///
    /// # Errors
    /// The folder cannot be created or written.
    pub fn prepare(&self) -> Result<(), RecordError> {
        let shown = self.folder.display().to_string();
        let failed = |error| RecordError::io("write into", &shown, error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let trial = self.folder.join(format!(".{}.part", uuid::Uuid::now_v7()));
        fs::File::create(&trial).and_then(|_| fs::remove_file(&trial)).map_err(failed)
    }

    /// Adds the cell key to a stored record, which marks the plan's cell as done. The change is atomic.
    ///
    /// # Errors
    /// The record does not exist, or writing fails.
    pub fn complete(&self, record: &Record, key: &str) -> Result<Record, RecordError> {
        let target = self.folder.join(relative_path(record));
        let shown = target.display().to_string();
        let kept = Record { cell_key: Some(key.to_owned()), ..read_file(&target)? };
        let draft = draft(&target, to_yaml(&kept)?.as_bytes())
            .map_err(|(what, error)| RecordError::io(what, &shown, error))?;
        fs::rename(&draft, &target).map_err(|error| RecordError::io("name", &shown, error))?;
        Ok(kept)
    }

    /// Reads all records in the order of their names. Errors of single files are in `skipped`.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn read(&self) -> Result<StoredRecords, RecordError> {
        let mut files = Vec::new();
        list(&self.folder, &mut files)?;
        files.sort();
        let mut found = StoredRecords::default();
        // On one core, a thousand records take half a second.
        let read: Vec<_> = files.par_iter().map(|file| read_file(file)).collect();
        for (file, read) in files.iter().zip(read) {
            match read {
                Ok(record) => {
                    let path = file.strip_prefix(&self.folder).unwrap_or(file).to_owned();
                    found.records.push((path, record));
                }
                Err(error) => found.skipped.push(error),
            }
        }
        Ok(found)
    }
}

/// Reads one record.
///
/// # Errors
/// The file cannot be read or is not a record.
pub fn read_file(file: &Path) -> Result<Record, RecordError> {
    let shown = file.display().to_string();
    let bytes = read_bytes(file, RECORD_BYTES_MAX as u64 + 1)
        .map_err(|error| RecordError::io("read", &shown, error))?;
    if bytes.len() > RECORD_BYTES_MAX {
        let reason = format!("more than {RECORD_BYTES_MAX} bytes, which no record has");
        return Err(RecordError::Damaged { file: shown, line: 1, reason });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        RecordError::Damaged { file: shown.clone(), line, reason: "no UTF-8".to_owned() }
    })?;
    from_yaml(&shown, &text)
}

/// Reads a regular file, or its first `bytes_max` bytes if it has more.
pub(crate) fn read_bytes(file: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a FIFO waits for a writer.
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(file)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// `yyyy-mm/<date>-<host8>-<model>-<kind>-<id8>.yaml`.
pub fn relative_path(record: &Record) -> PathBuf {
    let day = record.time.started.map(|time| time.to_string().chars().take(10).collect::<String>());
    let day = day.as_deref().unwrap_or("undated");
    let month = if day == "undated" { day } else { &day[..7] };
    let host: String = slug(record.host.id_hash.as_deref().unwrap_or("nohost"), 8);
    let model = slug(&record.model.name, MODEL_CHARS_MAX);
    let name = format!("{day}-{host}-{model}-{}-{}.yaml", record.kind.name(), record.short_id());
    Path::new(month).join(name)
}

/// Keeps small letters, digits and dots; other characters become a hyphen.
pub fn slug(text: &str, chars_max: usize) -> String {
    let mut slug = String::new();
    for letter in text.chars().flat_map(char::to_lowercase) {
        let fits = letter.is_ascii_alphanumeric() || letter == '.' && !slug.is_empty();
        match fits {
            true => slug.push(letter),
            false if slug.ends_with('-') || slug.is_empty() => {}
            false => slug.push('-'),
        }
        if slug.len() >= chars_max {
            break;
        }
    }
    let slug = slug.trim_end_matches(['-', '.']);
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}

/// The name of a file without its folder.
pub(crate) fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes a draft to the disk, then links it to its final name, so that a crash leaves no partial file. Makes the folder.
///
/// # Errors
/// The file exists already, or writing fails.
pub(crate) fn write_whole(target: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let folder = target.parent().unwrap_or(Path::new(""));
    let file = target.display().to_string();
    fs::create_dir_all(folder)
        .map_err(|error| RecordError::io("make the folder of", &file, error))?;
    let failed = |what| move |error| (what, error);
    let written = (|| {
        let draft = draft(target, bytes)?;
        let linked = fs::hard_link(&draft, target).map_err(failed("name"));
        fs::remove_file(&draft).map_err(failed("tidy up after"))?;
        linked?;
        sync_folder(folder).map_err(failed("flush the folder of"))
    })();
    written.map_err(|(what, source): (_, io::Error)| match source.kind() {
        io::ErrorKind::AlreadyExists => RecordError::Exists { file },
        _ => RecordError::Io { what, file, source },
    })
}

/// Waits until the names in a folder are on the disk. Some file systems, such as those of a network, cannot do this.
fn sync_folder(folder: &Path) -> io::Result<()> {
    let cannot = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
    };
    match fs::File::open(folder)?.sync_all() {
        Err(error) if cannot(&error) => Ok(()),
        done => done,
    }
}

/// Writes a draft under a name that readers ignore. An error names the failed step.
fn draft(target: &Path, bytes: &[u8]) -> Result<PathBuf, (&'static str, io::Error)> {
    let draft = target.with_file_name(format!(".{}.part", name_of(target)));
    let failed = |what| move |error| (what, error);
    let written = (|| {
        let mut file = fs::File::create(&draft).map_err(failed("write"))?;
        file.write_all(bytes).map_err(failed("write"))?;
        file.sync_all().map_err(failed("flush"))
    })();
    // A remaining draft does no harm: its name starts with a dot.
    written.inspect_err(|_| drop(fs::remove_file(&draft)))?;
    Ok(draft)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), RecordError> {
    let shown = folder.display().to_string();
    let failed = |error| RecordError::io("list", &shown, error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name());
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type().map_err(failed)?.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_wait_for_its_disk_is_no_error() {
        // Linux answers EINVAL for it, as for the folders of some file systems.
        sync_folder(Path::new("/dev/null")).expect("nothing to wait for");
        let missing = tempfile::tempdir().expect("a folder").path().join("none");
        sync_folder(&missing).expect_err("no folder");
    }
}
