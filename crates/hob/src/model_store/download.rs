//! From a name on `hob pull`'s command line to a stored model: first found, then downloaded.
//! All functions block.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hob_core::fit::Model;
use hob_models::catalog::names::{canonical, named};
use hob_models::catalog::{self, CatalogPart, Purpose};
use hob_models::{
    Fetcher, FindError, Located, Manifest, Progress, PullOptions, PullOutcome, Pulled, Puller,
    SourceKind, StoreError, StoredModel, Watch, check_changed, transform_for,
};

use super::{MB, ModelStore};
use crate::failure::{CliResult, Failure};
use crate::finding;

/// What the user asked to download.
#[derive(Clone, Debug)]
pub(crate) struct DownloadOptions {
    /// A name, a repository, an Ollama tag, an address, or a path.
    pub(crate) asked: String,
    /// The name under which to store the model, if not the usual one.
    pub(crate) name: Option<String>,
    /// Use this source instead of all others.
    pub(crate) from: Option<PathBuf>,
    /// Use only this kind of source.
    pub(crate) only: Option<SourceKind>,
    /// Checked between two chunks.
    pub(crate) cancel: Arc<AtomicBool>,
}

/// A model that can be downloaded: its files were found, and their headers read.
#[derive(Clone, Debug)]
pub(crate) struct Download {
    pub(crate) entry: catalog::Entry,
    /// `None` for models of the catalog, and for models that do not chat.
    pub(crate) model: Option<Model>,
    pub(crate) notes: Vec<String>,
    /// What the manifest keeps as asked for.
    asked: Option<String>,
    /// The model is stored, and no source could be reached to check for a newer version.
    is_offline: bool,
    /// The model is stored, and the file that it came from does not exist any more: the error if the stored one is damaged.
    without_source: Option<Failure>,
}

impl Download {
    fn of(
        entry: catalog::Entry,
        model: Option<Model>,
        notes: Vec<String>,
        asked: Option<String>,
    ) -> Download {
        Download { entry, model, notes, asked, is_offline: false, without_source: None }
    }
}

impl ModelStore {
    /// Finds a model: a stored one where it came from, another one in all sources. Blocks.
    ///
    /// # Errors
    /// No source has it, hob cannot use it, its owner has not granted access, or it would replace a model from another place.
    pub(crate) fn find_download(&self, options: &DownloadOptions) -> CliResult<Download> {
        let name = canonical(&options.asked);
        if let Ok(entry) = self.catalog.find(&name) {
            let is_path = options.from.is_some() || Path::new(&options.asked).exists();
            match options.name {
                None => return Ok(Download::of(entry.clone(), None, Vec::new(), None)),
                Some(_) if is_path || named(&options.asked).is_some() => (),
                Some(_) => {
                    let sentence = format!("'{name}' is stored under this name only");
                    return Err(Failure::usage(sentence).hint("leave out --as"));
                }
            }
        }
        if let Some(found) = self.find_stored(options) {
            return found;
        }
        let (asked, stored_as) = match &options.from {
            Some(path) => {
                (path.display().to_string(), Some(options.name.as_ref().unwrap_or(&name)))
            }
            None => (options.asked.clone(), options.name.as_ref()),
        };
        let error = match self.finder.locate(&asked, stored_as.map(String::as_str)) {
            Ok(located) => {
                self.check_origin(&located.entry, options)?;
                let kept = asked_to_keep(options, &located.entry);
                return self.downloadable(located, kept);
            }
            Err(error) => error,
        };
        let is_offline = error.is_network_error();
        let error = match self.again_from_its_place(options) {
            Some(Ok(located)) => return self.downloadable(located, None),
            // Only the place can have this model, so its error is the one to mend.
            Some(Err(of_place)) => of_place,
            None => error,
        };
        let is_offline = is_offline || error.is_network_error();
        let here = is_offline.then(|| self.here(&self.store.stored_name(&options.asked))).flatten();
        here.ok_or_else(|| not_found(error))
    }

    fn downloadable(&self, located: Located, asked: Option<String>) -> CliResult<Download> {
        let Located { entry, model, mut notes } = located;
        self.check_name(&entry)?;
        notes.extend(self.replaced(&entry));
        Ok(Download::of(entry, Some(model), notes, asked))
    }

    /// Why a stored file of an address is fetched again. A server may state another time or tag each time it is asked.
    fn replaced(&self, entry: &catalog::Entry) -> Option<String> {
        let source = entry.parts.first()?.sources.first()?;
        let is_unsure = source.files.iter().any(|file| file.pin.sha256.is_none());
        let stored = self.store.manifest(&entry.name)?;
        let from = source.to_string();
        let is_replaced = source.kind() == SourceKind::Address
            && place(&stored) == Some(from.as_str())
            && stored.version != entry.version;
        (is_unsure && is_replaced).then(|| format!(
            "{from} has no checksum, and its server states another length, time or tag than for the stored file, so it is fetched again"
        ))
    }

    /// Finds a stored model where it came from. `None` if the user says where to look, if its name means its source, and
    /// for models that are not stored.
    fn find_stored(&self, options: &DownloadOptions) -> Option<CliResult<Download>> {
        let typed = options.asked.trim();
        if options.from.is_some() || options.name.is_some() || Path::new(typed).exists() {
            return None;
        }
        let name = self.store.stored_name(typed);
        let manifest = self.store.manifest(&name)?;
        let origin = origin_of(&manifest)?;
        Some(self.find_at(origin, &name, manifest.asked.clone()))
    }

    /// Another model of that name may exist, so the answer says where hob looks.
    fn find_at(&self, origin: &str, name: &str, asked: Option<String>) -> CliResult<Download> {
        let in_this_folder = Path::new(origin);
        if in_this_folder.is_relative() && in_this_folder.exists() {
            let sentence =
                format!("'{name}' was pulled as '{origin}', which is also a file or folder here");
            return Err(Failure::usage(sentence).hint("run the command in another folder"));
        }
        let error = match self.finder.locate(origin, Some(name)) {
            Ok(located) => {
                let mut download = self.downloadable(located, asked)?;
                let note = format!("{}; {}", came_from(name, origin), to_get_another(name));
                download.notes.push(note);
                return Ok(download);
            }
            Err(error) => error,
        };
        let is_gone = Path::new(origin).is_absolute() && !Path::new(origin).exists();
        let here = if error.is_network_error() || is_gone { self.here(name) } else { None };
        let failure = finding::failure(error);
        let hint = format!(
            "`hob pull PLACE --as {name}` gets it from another place; {}",
            to_get_another(name)
        );
        let failure = Failure { hint: failure.hint.or(Some(hint)), ..failure };
        match here {
            None => Err(failure),
            Some(here) if is_gone => {
                let notes = vec![format!("{origin}, from which '{name}' came, is gone")];
                Ok(Download { notes, without_source: Some(failure), ..here })
            }
            Some(here) => Ok(here),
        }
    }

    /// A model of the hub replaces one that was asked for elsewhere, or the user's own file, only if the user names it
    /// with `--as`.
    fn check_origin(&self, entry: &catalog::Entry, options: &DownloadOptions) -> CliResult<()> {
        let source = entry.parts.first().and_then(|part| part.sources.first());
        let is_of_hub = source.is_some_and(|source| source.kind() == SourceKind::Hub);
        if options.name.is_some() || !is_of_hub {
            return Ok(());
        }
        let name = &entry.name;
        let manifest = self.store.manifest(name);
        match manifest.as_ref().and_then(origin_of) {
            Some(origin) if canonical(origin) != canonical(&options.asked) => {
                Err(Failure::usage(came_from(name, origin)).hint(to_get_another(name)))
            }
            _ => Ok(()),
        }
    }

    /// A stored chat model that came from a file or an address, found there by its name here. `None` for other models.
    fn again_from_its_place(
        &self,
        options: &DownloadOptions,
    ) -> Option<Result<Located, FindError>> {
        if options.from.is_some() || options.name.is_some() {
            return None;
        }
        let name = self.store.stored_name(&options.asked);
        let manifest = self.store.manifest(&name)?;
        Some(self.finder.locate(place(&manifest)?, Some(name.as_str())))
    }

    /// A model of the catalog is downloaded only from the catalog's sources.
    fn check_name(&self, entry: &catalog::Entry) -> CliResult<()> {
        match self.catalog.find(&entry.name) {
            Err(_) => Ok(()),
            Ok(_) => Err(Failure::usage(format!("'{}' is the name of another model", entry.name))
                .hint("give it a name of its own: hob pull … --as NAME")),
        }
    }

    /// The stored model, if no source can be reached.
    fn here(&self, name: &str) -> Option<Download> {
        let stored = self.store.find(name).ok()?;
        let entry = catalog::Entry {
            name: name.to_owned(),
            title: stored.manifest.title.clone(),
            purpose: Purpose::Chat,
            version: stored.manifest.version.clone(),
            licences: stored.licences().to_vec(),
            parts: Vec::new(),
        };
        let note = "no source can be reached, so whether there is a newer version is not known";
        let notes = vec![note.to_owned()];
        Some(Download { is_offline: true, ..Download::of(entry, None, notes, None) })
    }

    /// Whether exactly this version is stored, in its current form and undamaged. Blocks: reads the files that changed
    /// since the last check. If no source could be reached, any stored model will do.
    pub(crate) fn has(&self, download: &Download) -> bool {
        let entry = &download.entry;
        let Ok(StoredModel { manifest, folder, .. }) = self.store.find(&entry.name) else {
            return false;
        };
        let is_current = manifest.version == entry.version
            && manifest.transform_version == transform_for(entry).version();
        download.is_offline || is_current && check_changed(&folder).is_ok()
    }

    /// Describes the download.
    pub(crate) fn plan(&self, download: &Download, is_here: bool) -> String {
        let entry = &download.entry;
        let name = &entry.name;
        if is_here {
            let source = self.origin(name).unwrap_or_default();
            return format!("{name} is here already, from {source}");
        }
        let parts: Vec<String> = entry.parts.iter().map(plan_of).collect();
        let megabytes = entry.bytes().div_ceil(MB);
        let place = self.root().display();
        format!("{name}: {megabytes} MB into {place}\n{}", parts.join("\n"))
    }

    /// Checks that the disk has room for it.
    pub(crate) fn check_room(&self, download: &Download) -> CliResult<()> {
        Ok(self.store.check_room(&download.entry)?)
    }

    /// Downloads, verifies and stores what is missing. Blocks.
    pub(crate) fn pull(
        &self,
        download: &Download,
        options: &DownloadOptions,
        tell: &mut dyn FnMut(Progress),
    ) -> CliResult<Pulled> {
        let entry = &download.entry;
        let mut watch = Watch::new(tell, &options.cancel);
        if download.is_offline {
            let model = self.store.find(&entry.name)?;
            return match (self.store.verify(&model, &mut watch), &download.without_source) {
                (Ok(()), _) => Ok(Pulled { model, outcome: PullOutcome::AlreadyStored }),
                (Err(StoreError::Damaged { .. }), Some(failure)) => Err(failure.clone()),
                (Err(error), _) => Err(error.into()),
            };
        }
        // A located model has its path in its only source.
        let from = options.from.clone().filter(|_| download.model.is_none());
        let (only, asked) = (options.only.into_iter().collect(), download.asked.clone());
        let options = PullOptions { from, only, asked };
        let (hub, token) = (self.finder.hub.clone(), self.finder.token.clone());
        let fetcher = Fetcher { hub, token, ..Fetcher::default() };
        let puller = Puller { store: &self.store, fetcher: &fetcher, options: &options };
        let storing = transform_for(entry);
        Ok(puller.pull(entry, &*storing, &mut watch)?)
    }
}

/// The file or address from which a stored chat model came. `None` for other models.
fn place(manifest: &Manifest) -> Option<&str> {
    let [only] = &manifest.sources[..] else { return None };
    let place = only.source.as_str();
    let is_address = place.starts_with("https://") || place.starts_with("http://");
    let is_gguf = |path: &str| Path::new(path).extension().is_some_and(|end| end == "gguf");
    let chats = manifest.files.iter().all(|file| is_gguf(&file.path));
    (chats && (is_address || Path::new(place).is_absolute())).then_some(place)
}

/// Where a stored model is found again. `None` if its name says it.
fn origin_of(manifest: &Manifest) -> Option<&str> {
    manifest.asked.as_deref().or(own_place(manifest))
}

/// Like `place`, without the files of Ollama: a tag names another file when its model changes.
fn own_place(manifest: &Manifest) -> Option<&str> {
    place(manifest).filter(|place| !is_of_ollama(place))
}

/// Ollama calls its files `sha256-DIGEST`, and its registry calls them `sha256:DIGEST`.
fn is_of_ollama(place: &str) -> bool {
    let file = Path::new(place).file_name().and_then(|file| file.to_str());
    let digest = file.and_then(|file| file.strip_prefix("sha256"));
    digest.is_some_and(|digest| digest.starts_with([':', '-']))
}

/// What the manifest keeps, so that the name here is enough to find the model again. `None` if the name or the source is
/// enough.
fn asked_to_keep(options: &DownloadOptions, entry: &catalog::Entry) -> Option<String> {
    let typed = options.asked.trim();
    if options.from.is_some() || Path::new(typed).exists() {
        let source = entry.parts.first()?.sources.first()?.to_string();
        // The user named this file, and no tag.
        return is_of_ollama(&source).then_some(source);
    }
    // A query may hold a secret, and the search leaves it out.
    let bare = typed.split(['?', '#']).next().unwrap_or(typed);
    (options.name.is_some() && canonical(bare) != entry.name).then(|| bare.to_owned())
}

fn came_from(name: &str, origin: &str) -> String {
    format!("'{name}' is here from {origin}, so hob looks for it only there")
}

fn to_get_another(name: &str) -> String {
    format!(
        "for another model of that name, give it a name of its own with `--as`, or first run `hob models rm {name}`"
    )
}

fn plan_of(part: &CatalogPart) -> String {
    let sources = part
        .sources
        .iter()
        .map(|source| format!("  {}, {} MB", source, source.bytes().div_ceil(MB)));
    format!("{}, from the first of\n{}", part.name, sources.collect::<Vec<_>>().join("\n"))
}

fn not_found(error: FindError) -> Failure {
    match error {
        FindError::Unknown { .. } => finding::failure(error)
            .hint("`hob models` lists names; hob pull also takes owner/name:Q4_K_M of Hugging Face, Ollama's tags, addresses and files"),
        error => finding::failure(error),
    }
}
