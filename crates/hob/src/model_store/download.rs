//! From a name on `hob pull`'s command line to a stored model: first found, then downloaded.
//! All functions block.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hob_core::fit::Model;
use hob_models::catalog::names::canonical;
use hob_models::catalog::{self, CatalogPart, Purpose};
use hob_models::{
    Fetcher, FindError, Located, Progress, PullOptions, PullOutcome, Pulled, Puller, SourceKind,
    Watch, transform_for,
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
    /// The model is stored, and no source could be reached to check for a newer version.
    is_offline: bool,
}

impl ModelStore {
    /// Finds a model in all sources. Blocks.
    ///
    /// # Errors
    /// No source has it, hob cannot use it, or its owner has not granted access.
    pub(crate) fn find_download(&self, options: &DownloadOptions) -> CliResult<Download> {
        let name = canonical(&options.asked);
        if let (Ok(entry), None) = (self.catalog.find(&name), &options.name) {
            let (entry, notes) = (entry.clone(), Vec::new());
            return Ok(Download { entry, model: None, notes, is_offline: false });
        }
        let (asked, stored_as) = match &options.from {
            Some(path) => {
                (path.display().to_string(), Some(options.name.as_ref().unwrap_or(&name)))
            }
            None => (options.asked.clone(), options.name.as_ref()),
        };
        let error = match self.finder.locate(&asked, stored_as.map(String::as_str)) {
            Ok(located) => return self.downloadable(located),
            Err(error) => error,
        };
        let is_offline = error.is_of_network();
        let error = match self.again_from_its_place(options) {
            Some(Ok(located)) => return self.downloadable(located),
            // Only the place can have this model, so its error is the one to mend.
            Some(Err(of_place)) => of_place,
            None => error,
        };
        let is_offline = is_offline || error.is_of_network();
        let here = is_offline.then(|| self.here(&self.store.stored_name(&options.asked))).flatten();
        here.ok_or_else(|| not_found(error))
    }

    fn downloadable(&self, located: Located) -> CliResult<Download> {
        let Located { entry, model, notes } = located;
        self.check_name(&entry)?;
        Ok(Download { entry, model: Some(model), notes, is_offline: false })
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
        let [only] = &manifest.sources[..] else { return None };
        let place = only.source.as_str();
        let is_address = place.starts_with("https://") || place.starts_with("http://");
        let is_gguf = |path: &str| Path::new(path).extension().is_some_and(|end| end == "gguf");
        let chats = manifest.files.iter().all(|file| is_gguf(&file.path));
        if !chats || !(is_address || Path::new(place).is_absolute()) {
            return None;
        }
        Some(self.finder.locate(place, Some(name.as_str())))
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
        Some(Download { entry, model: None, notes: vec![note.to_owned()], is_offline: true })
    }

    /// Whether exactly this version is stored.
    pub(crate) fn has(&self, download: &Download) -> bool {
        let stored = self.store.find(&download.entry.name);
        stored.is_ok_and(|stored| stored.manifest.version == download.entry.version)
    }

    /// Describes the download.
    pub(crate) fn plan(&self, download: &Download) -> String {
        let entry = &download.entry;
        let name = &entry.name;
        if self.has(download) {
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
        match self.has(download) {
            true => Ok(()),
            false => Ok(self.store.check_room(&download.entry)?),
        }
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
            self.store.verify(&model, &mut watch)?;
            return Ok(Pulled { model, outcome: PullOutcome::AlreadyStored });
        }
        // A located model has its path in its only source.
        let from = options.from.clone().filter(|_| download.model.is_none());
        let options = PullOptions { from, only: options.only.into_iter().collect() };
        let (hub, token) = (self.finder.hub.clone(), self.finder.token.clone());
        let fetcher = Fetcher { hub, token, ..Fetcher::default() };
        let puller = Puller { store: &self.store, fetcher: &fetcher, options: &options };
        let storing = transform_for(entry);
        Ok(puller.pull(entry, &*storing, &mut watch)?)
    }
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
