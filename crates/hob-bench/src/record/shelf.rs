//! Records in a folder: written once and whole, or not at all, and found again under their names.
//! A name says when, where, what and which, so that a listing is already a table.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use uuid::Uuid;

use super::{Kind, RawSample, Record, RecordError, from_yaml, pack_samples, to_yaml};
use crate::cores::on_all;

/// Letters of a model's name in a file's name.
const MODEL_CHARS_MAX: usize = 48;

/// A folder of records.
#[derive(Clone, Debug)]
pub struct Shelf {
    folder: PathBuf,
}

/// What a folder holds: records, and complaints about files that are none.
#[derive(Debug, Default)]
pub struct Found {
    /// With the place of each, from the folder on.
    pub records: Vec<(PathBuf, Record)>,
    pub skipped: Vec<RecordError>,
}

impl Shelf {
    pub fn new(folder: impl Into<PathBuf>) -> Shelf {
        Shelf { folder: folder.into() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes one, its samples first, and says where. A reader sees all of it or nothing.
    ///
    /// # Errors
    /// It is there already, or the disk refuses.
    pub fn put(&self, record: &Record, samples: &[RawSample]) -> Result<PathBuf, RecordError> {
        let place = place(record);
        let target = self.folder.join(&place);
        let folder = target.parent().unwrap_or(&self.folder);
        let shown = target.display().to_string();
        if target.exists() {
            return Err(RecordError::Exists { file: shown });
        }
        fs::create_dir_all(folder)
            .map_err(|error| RecordError::io("make the folder of", &shown, error))?;
        let mut record = record.clone();
        if !samples.is_empty() {
            let name = target.with_extension("jsonl.gz");
            let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (bytes, file) = pack_samples(&name, samples)?;
            write_whole(folder, &name, &bytes)?;
            record.samples = Some(file);
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        write_whole(folder, &name, to_yaml(&record)?.as_bytes())?;
        Ok(target)
    }

    /// Fails as early as possible where nothing could be kept.
    ///
    /// # Errors
    /// The folder cannot be made, or written to.
    pub fn prepare(&self) -> Result<(), RecordError> {
        let shown = self.folder.display().to_string();
        let failed = |error| RecordError::io("write into", &shown, error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let trial = self.folder.join(format!(".{}.part", uuid::Uuid::now_v7()));
        fs::File::create(&trial).and_then(|_| fs::remove_file(&trial)).map_err(failed)
    }

    /// Notes on a record that is there that with it all of its plan's cell is. In one step: a reader sees it with the note or
    /// without.
    ///
    /// # Errors
    /// It is not there, or the disk refuses.
    pub fn complete(&self, record: &Record, key: &str) -> Result<Record, RecordError> {
        let target = self.folder.join(place(record));
        let shown = target.display().to_string();
        let kept = Record { cell_key: Some(key.to_owned()), ..read_file(&target)? };
        let folder = target.parent().unwrap_or(&self.folder);
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let draft = draft(folder, &name, to_yaml(&kept)?.as_bytes())
            .map_err(|(what, error)| RecordError::io(what, &shown, error))?;
        fs::rename(&draft, &target).map_err(|error| RecordError::io("name", &shown, error))?;
        Ok(kept)
    }

    /// Reads every record, in the order of their names.
    ///
    /// # Errors
    /// The folder cannot be listed. Files that are no records are named in `skipped`.
    pub fn read(&self) -> Result<Found, RecordError> {
        let mut files = Vec::new();
        list(&self.folder, &mut files)?;
        files.sort();
        let mut found = Found::default();
        let read = on_all(&files, |file| read_file(file));
        for (file, read) in files.iter().zip(read) {
            match read {
                Ok(record) => {
                    let place = file.strip_prefix(&self.folder).unwrap_or(file).to_owned();
                    found.records.push((place, record));
                }
                Err(error) => found.skipped.push(error),
            }
        }
        Ok(found)
    }
}

/// # Errors
/// It cannot be read, or is no record.
pub fn read_file(file: &Path) -> Result<Record, RecordError> {
    let shown = file.display().to_string();
    let bytes = fs::read(file).map_err(|error| RecordError::io("read", &shown, error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        RecordError::Damaged { file: shown.clone(), line, reason: "no UTF-8".to_owned() }
    })?;
    from_yaml(&shown, &text)
}

/// `yyyy-mm/<date>-<host8>-<model>-<kind>-<id8>.yaml`.
pub fn place(record: &Record) -> PathBuf {
    let day = record.time.started.map(|time| time.to_string().chars().take(10).collect::<String>());
    let day = day.as_deref().unwrap_or("undated");
    let month = if day == "undated" { day } else { &day[..7] };
    let host: String = slug(record.host.id_hash.as_deref().unwrap_or("nohost"), 8);
    let model = slug(&record.model.name, MODEL_CHARS_MAX);
    let name = format!("{day}-{host}-{model}-{}-{}.yaml", record.kind.name(), record.short_id());
    Path::new(month).join(name)
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Llm,
        Kind::CtxSweep,
        Kind::MaxContext,
        Kind::Concurrency,
        Kind::Batch,
        Kind::Tts,
        Kind::Stream,
        Kind::Cold,
        Kind::Voice,
        Kind::Stt,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Llm => "llm",
            Kind::CtxSweep => "ctx_sweep",
            Kind::MaxContext => "max_context",
            Kind::Concurrency => "concurrency",
            Kind::Batch => "batch",
            Kind::Tts => "tts",
            Kind::Stream => "stream",
            Kind::Cold => "cold",
            Kind::Voice => "voice",
            Kind::Stt => "stt",
        }
    }
}

/// A new id, which begins with the time.
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}

/// Small letters, digits and dots; everything else is one hyphen.
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

/// Under another name first, on the disk, and then in its place: a crash leaves no half of it.
fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
    let target = folder.join(name);
    let shown = target.display().to_string();
    let failed = |what| move |error| (what, error);
    let written = (|| {
        let draft = draft(folder, name, bytes)?;
        let linked = fs::hard_link(&draft, &target).map_err(failed("name"));
        fs::remove_file(&draft).map_err(failed("tidy up after"))?;
        linked?;
        fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(failed("flush the folder of"))
    })();
    written.map_err(|(what, error): (_, std::io::Error)| match error.kind() {
        std::io::ErrorKind::AlreadyExists => RecordError::Exists { file: shown.clone() },
        _ => RecordError::io(what, &shown, error),
    })
}

/// Whole on the disk, under a name that no reader looks at. With what could not be done, where it could not.
fn draft(
    folder: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, (&'static str, std::io::Error)> {
    let draft = folder.join(format!(".{name}.part"));
    let failed = |what| move |error| (what, error);
    let written = (|| {
        let mut file = fs::File::create(&draft).map_err(failed("write"))?;
        file.write_all(bytes).map_err(failed("write"))?;
        file.sync_all().map_err(failed("flush"))
    })();
    // What is left of a failure is in the way of nobody: its name begins with a dot.
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
