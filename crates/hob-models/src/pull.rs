//! Pulls a catalog entry into the store: reuses what is here, fetches the rest from the first source that works,
//! verifies it, transforms it once, and places it with one rename.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::catalog::{CatalogPart, DownloadSource, Entry, SourceKind};
use crate::disk::DiskError;
use crate::fetch::{DownloadFolder, FetchError, Fetcher};
use crate::progress::{Cancelled, PullStep, Watch};
use crate::store::{Lock, NewModel, Parcel, PartSource, Store, StoreError, StoredModel};
use crate::transform::{RawFiles, Transform, TransformError};

/// Everything that pulls of all models share.
#[derive(Clone, Copy, Debug)]
pub struct Puller<'a> {
    pub store: &'a Store,
    pub fetcher: &'a Fetcher,
    pub options: &'a PullOptions,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullOptions {
    /// A folder of the user that replaces all sources, or a file that is tried before the sources of its part.
    pub from: Option<PathBuf>,
    /// Kinds of sources to use; empty for all.
    pub only: Vec<SourceKind>,
    /// What the manifest of a new model keeps as asked for.
    pub asked: Option<String>,
}

/// What a pull did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullOutcome {
    /// The store had the model, complete and in its current form.
    AlreadyStored,
    /// The store had the raw files. Only the stored form was made again.
    Transformed,
    /// At least one part was fetched.
    Fetched,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    pub model: StoredModel,
    pub outcome: PullOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    #[error("no source could deliver the {part} of '{name}':{}", listed(failures))]
    NoSource { name: String, part: String, failures: Vec<SourceFailure> },
    #[error("'{name}' could not be transformed: {error}")]
    Transform { name: String, error: TransformError },
    #[error(transparent)]
    Store(StoreError),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// A source, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFailure {
    pub source: String,
    pub error: FetchError,
}

fn listed(failures: &[SourceFailure]) -> String {
    if failures.is_empty() {
        return " no source of the requested kind has it".to_owned();
    }
    let line = |SourceFailure { source, error }: &SourceFailure| format!("\n  - {source}: {error}");
    failures.iter().map(line).collect()
}

impl PullError {
    /// What the user can do, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            PullError::NoSource { failures, .. } if failures.is_empty() => {
                Some("leave out `--source`, or choose another kind".to_owned())
            }
            PullError::NoSource { name, .. } => Some(format!(
                "check the network, or copy the files or packages from another machine and use \
                 `hob pull {name} --from FOLDER`"
            )),
            _ => None,
        }
    }
}

impl From<StoreError> for PullError {
    fn from(error: StoreError) -> PullError {
        match error {
            StoreError::Cancelled(cancelled) => PullError::Cancelled(cancelled),
            error => PullError::Store(error),
        }
    }
}

impl From<DiskError> for PullError {
    fn from(error: DiskError) -> PullError {
        PullError::Store(StoreError::Disk(error))
    }
}

/// A part with all its raw files.
struct Gathered<'e> {
    part: &'e str,
    source: &'e DownloadSource,
    label: String,
    fetched: bool,
}

/// A source to try, or a place of the user that may have that source's files.
struct Way<'e> {
    source: &'e DownloadSource,
    from: Option<&'e Path>,
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(path) => write!(f, "{}, as from {}", path.display(), self.source),
            None => self.source.fmt(f),
        }
    }
}

impl Puller<'_> {
    /// Makes sure that the model is here, whole, and in the form of this transformation. Interrupted
    /// or failed at any point, it leaves no half model, and the next pull goes on from what arrived.
    ///
    /// # Errors
    /// [`PullError::NoSource`] says why each source failed; the disk's refusals end the pull at once.
    pub fn pull(
        &self,
        entry: &Entry,
        transform: &dyn Transform,
        watch: &mut Watch<'_>,
    ) -> Result<Pulled, PullError> {
        let _lock = Lock::hold(self.store, &entry.name, watch)?;
        if let Some(model) = self.current(entry, transform, watch)? {
            return Ok(Pulled { model, outcome: PullOutcome::AlreadyStored });
        }
        self.store.check_room(entry)?;
        let folder = DownloadFolder::open(self.store.downloads(&entry.name))?;
        // Raw files without a checksum may be as damaged, or as old, as the stored form, also if one of its files is cut short.
        if !matches!(self.store.find(&entry.name), Err(StoreError::Missing { .. })) {
            let mut sources = entry.parts.iter().flat_map(|part| &part.sources);
            sources.try_for_each(|source| folder.forget_unpinned(source))?;
        }
        let mut parts = Vec::new();
        for part in &entry.parts {
            parts.push(self.gather(&entry.name, part, &folder, watch)?);
        }
        let fetched = parts.iter().any(|part| part.fetched);
        self.transform_and_place(entry, transform, (&folder, parts), watch)?;
        folder.tidy()?;
        let model = self.store.find(&entry.name)?;
        Ok(Pulled {
            model,
            outcome: if fetched { PullOutcome::Fetched } else { PullOutcome::Transformed },
        })
    }

    /// Reads all files: users run `hob pull` after damage, so lengths are not enough.
    fn current(
        &self,
        entry: &Entry,
        transform: &dyn Transform,
        watch: &mut Watch<'_>,
    ) -> Result<Option<StoredModel>, StoreError> {
        let Ok(model) = self.store.find(&entry.name) else { return Ok(None) };
        let manifest = &model.manifest;
        if manifest.version != entry.version || manifest.transform_version != transform.version() {
            return Ok(None);
        }
        match self.store.verify(&model, watch) {
            Ok(()) => Ok(Some(model)),
            Err(StoreError::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn gather<'e>(
        &'e self,
        name: &str,
        part: &'e CatalogPart,
        folder: &DownloadFolder,
        watch: &mut Watch<'_>,
    ) -> Result<Gathered<'e>, PullError> {
        watch.set_part(&part.name);
        if let Some(gathered) = held(part, folder, watch)? {
            return Ok(gathered);
        }
        let mut failures = Vec::new();
        for way in self.ways(part) {
            let label = way.to_string();
            watch.trying(&label);
            let Err(error) = self.fetch(&way, folder, watch) else {
                folder.note_origin(&part.name, &label)?;
                return Ok(Gathered { part: &part.name, source: way.source, label, fetched: true });
            };
            let error = of_source(error)?;
            if way.from.is_none() || !matches!(error, FetchError::NotThere { .. }) {
                watch.source_failed(&label, &error);
            }
            // The user's file is wrong. Fetching another one would hide that.
            let stop = way.from.is_some() && matches!(error, FetchError::Checksum { .. });
            failures.push(SourceFailure { source: label, error });
            if stop {
                break;
            }
        }
        let part = part.name.clone();
        Err(PullError::NoSource { name: name.to_owned(), part, failures })
    }

    fn ways<'e>(&'e self, part: &'e CatalogPart) -> Vec<Way<'e>> {
        let from = self.options.from.as_deref();
        let given = part
            .sources
            .iter()
            .filter_map(|source| from.map(|path| Way { source, from: Some(path) }));
        let only = &self.options.only;
        let wanted = |source: &&DownloadSource| only.is_empty() || only.contains(&source.kind());
        let asked = part.sources.iter().filter(wanted).map(|source| Way { source, from: None });
        match from {
            Some(path) if path.is_dir() => given.collect(),
            _ => given.chain(asked).collect(),
        }
    }

    fn fetch(
        &self,
        way: &Way<'_>,
        folder: &DownloadFolder,
        watch: &mut Watch<'_>,
    ) -> Result<(), FetchError> {
        match way.from {
            Some(path) => self.fetcher.take(path, way.source, folder, watch),
            None => self.fetcher.fetch(way.source, folder, watch),
        }
    }

    fn transform_and_place(
        &self,
        entry: &Entry,
        transform: &dyn Transform,
        (folder, parts): (&DownloadFolder, Vec<Gathered<'_>>),
        watch: &mut Watch<'_>,
    ) -> Result<(), PullError> {
        watch.set_part(&entry.name);
        let files = parts.iter().flat_map(|part| &part.source.files);
        let raw = RawFiles::new(folder.raw(), files.map(|file| file.path.clone()).collect());
        let parcel = Parcel::new(self.store, &entry.name)?;
        watch.begin(PullStep::Transforming, None);
        transform
            .apply(&raw, parcel.folder(), watch)
            .map_err(|error| transform_error(entry, error))?;
        let sources = parts
            .into_iter()
            .map(|part| PartSource { part: part.part.to_owned(), source: part.label });
        let transform_version = transform.version();
        let (sources, asked) = (sources.collect(), self.options.asked.clone());
        let new = NewModel { entry, transform_version, sources, asked };
        Ok(parcel.place(new, watch)?)
    }
}

/// The part, if an earlier pull fetched all of it from any source.
fn held<'e>(
    part: &'e CatalogPart,
    folder: &DownloadFolder,
    watch: &mut Watch<'_>,
) -> Result<Option<Gathered<'e>>, PullError> {
    for source in &part.sources {
        let missing = match folder.missing(source, watch) {
            Ok(missing) => missing.len(),
            Err(error) => return of_source(error).map(|_| None),
        };
        if missing == 0 {
            let label = folder.origin(&part.name).unwrap_or_else(|| source.to_string());
            return Ok(Some(Gathered { part: &part.name, source, label, fetched: false }));
        }
    }
    Ok(None)
}

/// The failure of a source, after which another one may succeed.
///
/// # Errors
/// The disk's failure, or that the pull was cancelled: they end the pull.
fn of_source(error: FetchError) -> Result<FetchError, PullError> {
    match error {
        FetchError::Cancelled(cancelled) => Err(cancelled.into()),
        FetchError::Disk(disk) => Err(disk.into()),
        error => Ok(error),
    }
}

fn transform_error(entry: &Entry, error: TransformError) -> PullError {
    match error {
        TransformError::Cancelled(cancelled) => PullError::Cancelled(cancelled),
        TransformError::Disk(disk) => disk.into(),
        error => PullError::Transform { name: entry.name.clone(), error },
    }
}
