//! Finds a model by any name: a file, a folder, an address, or a name. Reads or fetches only headers.
//! One file per kind of place; this file decides the order of places.

mod choice;
mod error;
mod facts;
mod file_source;
mod gguf;
mod hub;
mod located;
mod ollama;
mod registry;
mod remote;
mod tensors;
mod typed;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hob_core::fit::{Format, Location, Model};
use hob_core::machine::Basis;
use hob_core::nearest;

use crate::catalog::names::{self, NamedRepo, ShortName};
use crate::fetch::FetchLimits;
use crate::known;
use crate::recipe::QuantMix;
use crate::store::Store;
use crate::{Catalog, Sha256};

pub use choice::models_in;
pub use error::FindError;
use file_source::FileSource;
pub use located::Located;
use remote::Remote;
pub use typed::{ShapeError, typed};

/// The quant that is assumed for known dimensions unless the user names one.
pub use crate::catalog::names::USUAL_QUANT;

/// Registry of Ollama's tags.
pub const OLLAMA_REGISTRY: &str = "https://registry.ollama.ai";

/// Where models are searched.
#[derive(Clone)]
pub struct Finder {
    /// Base address of Hugging Face's repositories.
    pub hub: String,
    /// Token for private and gated repositories. Sent to the hub and to no other host.
    pub token: Option<String>,
    /// Address of Ollama's registry; `None` to skip it.
    pub registry: Option<String>,
    /// Ollama's model folder.
    pub ollama: Option<PathBuf>,
    pub store: Option<Store>,
    pub limits: FetchLimits,
}

/// A model, where it was found, and what the search cost.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundModel {
    pub model: Model,
    /// The model in other quants. Empty if too little is known to compute them.
    pub variants: Vec<Model>,
    /// For people: the file, the address, or the table.
    pub source: String,
    /// Limits of the answer's accuracy.
    pub notes: Vec<String>,
    pub requests: u32,
    /// Bytes of response bodies.
    pub fetched_bytes: u64,
}

/// A model as one kind of place describes it.
struct Described {
    model: Model,
    variants: Vec<Model>,
    source: String,
    notes: Vec<String>,
    /// Files to fetch, in order. Empty if the weights were computed from dimensions.
    files: Vec<FoundFile>,
    /// Licence from the header.
    licence: Option<String>,
}

/// One file of a model, whose header was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundFile {
    place: FilePlace,
    /// [`u64::MAX`] if the server does not state it.
    bytes: u64,
    /// Bytes that the header promises and the file lacks.
    missing_bytes: u64,
    /// Checksum that the place states.
    sha256: Option<Sha256>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FilePlace {
    Path(PathBuf),
    Address(String),
}

/// Purpose of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// To assess the model: dimensions are enough.
    Answer,
    /// To fetch the model: its files must exist.
    Files,
}

/// One search.
#[derive(Clone, Copy)]
struct Search<'f> {
    finder: &'f Finder,
    remote: &'f Remote,
    quant: Option<QuantMix>,
    aim: Aim,
}

// Leaves the token out.
hob_core::debug_fields!(Finder: hub, registry, ollama, store, limits);

impl Finder {
    /// Describes a model, in this quant if one is given: a file of that quant, or else computed weights.
    ///
    /// # Errors
    /// One sentence that says why the model cannot be described.
    pub fn find(&self, asked: &str, quant: Option<QuantMix>) -> Result<FoundModel, FindError> {
        let remote = Remote::new(self);
        let search = Search { finder: self, remote: &remote, quant, aim: Aim::Answer };
        let Described { model, variants, source, notes, .. } = search.any(asked.trim())?;
        let (requests, fetched_bytes) = remote.spent();
        Ok(FoundModel { model, variants, source, notes, requests, fetched_bytes })
    }
}

impl Described {
    fn of(model: Model, source: String) -> Described {
        let (variants, notes, files) = (Vec::new(), Vec::new(), Vec::new());
        Described { model, variants, source, notes, files, licence: None }
    }

    /// Sets the location of the weights. Computed weights have none.
    fn at(self, location: Location) -> Described {
        if self.model.basis == Basis::Assumed {
            return self;
        }
        Described { model: Model { location, ..self.model }, ..self }
    }

    /// Not stored here; `hob pull` fetches it.
    fn fetched_from(self, named: &NamedRepo) -> Described {
        Described { model: Model { location: named.location(), ..self.model }, ..self }
    }

    /// The chosen file of a path, or the folder if the format needs several files.
    fn file(&self, path: &Path) -> String {
        match self.model.format {
            Format::Gguf => self.source.clone(),
            _ => path.display().to_string(),
        }
    }
}

impl Search<'_> {
    fn wishing(self, quant: Option<QuantMix>) -> Self {
        Search { quant, ..self }
    }

    fn any(&self, asked: &str) -> Result<Described, FindError> {
        let path = Path::new(asked);
        if path.exists() {
            let found = self.path(path)?;
            let file = found.file(path);
            return Ok(found.at(Location::File(file)));
        }
        if asked.starts_with("http://") || asked.starts_with("https://") {
            return self.address(asked);
        }
        if looks_like_a_path(asked) {
            return Err(FindError::NoSuchPath { path: path.to_owned() });
        }
        if self.aim == Aim::Answer
            && let Some(model) = self.installed(asked)?
        {
            return Ok(model);
        }
        if let Some(folder) = &self.finder.ollama
            && let Some(model) = ollama::find(self, folder, asked)?
        {
            return Ok(model);
        }
        if self.aim == Aim::Answer
            && let Some(model) = self.known(asked)?
        {
            return Ok(model);
        }
        self.elsewhere(asked)
    }

    /// Searches the hub, and then Ollama's registry.
    fn elsewhere(&self, asked: &str) -> Result<Described, FindError> {
        let named = names::named(asked);
        let repo =
            named.map_or_else(|| hub::Repo::parse(asked), |found| Some(hub::Repo::of(found)));
        let on_hub = match repo.map(|repo| hub::find(self, &repo)) {
            Some(Err(error)) if error.may_be_elsewhere() => Some(error),
            Some(settled) => return settled,
            None => None,
        };
        let in_registry = match registry::find(self, asked) {
            Some(Err(error)) if error.may_be_elsewhere() => Some(error),
            Some(settled) => return settled,
            None => None,
        };
        Err(match (on_hub, in_registry) {
            (Some(hub), Some(registry)) if named.is_some() => FindError::Nowhere {
                asked: asked.to_owned(),
                hub: hub.into(),
                registry: registry.into(),
            },
            (Some(hub), _) => hub,
            (None, registry) => self.unknown(asked, registry),
        })
    }

    fn path(&self, path: &Path) -> Result<Described, FindError> {
        if path.is_dir() {
            return choice::one(self, &FileSource::Folder(path.to_owned()), &name_of(path));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let source_files = FileSource::Folder(folder.to_owned());
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(FindError::NoSuchPath { path: path.to_owned() });
        };
        self.file(&source_files, file)
    }

    /// By extension. A file without a known one counts as GGUF, which its first bytes confirm.
    fn file(&self, source_files: &FileSource<'_>, file: &str) -> Result<Described, FindError> {
        match file.ends_with(".safetensors") {
            true => tensors::of_file(self, source_files, file),
            false => gguf::of_file(self, source_files, file),
        }
    }

    fn address(&self, asked: &str) -> Result<Described, FindError> {
        let bare = bare_address(asked);
        if let Some(repo) = hub::Repo::of_address(bare, &self.finder.hub) {
            return hub::find(self, &repo);
        }
        let direct = bare.replacen("/blob/", "/resolve/", 1);
        let Some((base, file)) = direct.rsplit_once('/').filter(|(_, file)| !file.is_empty())
        else {
            return Err(FindError::NoModel { at: asked.to_owned(), there: Vec::new() });
        };
        self.file(&FileSource::Web { remote: self.remote, base: base.to_owned() }, file)
    }

    fn installed(&self, asked: &str) -> Result<Option<Described>, FindError> {
        let Some(store) = &self.finder.store else { return Ok(None) };
        let found =
            store.find(&store.stored_name(asked)).ok().and_then(|stored| stored.chat_file());
        let Some(path) = found else { return Ok(None) };
        let mut found = self.path(&path)?;
        let is_other_quant = found.model.basis == Basis::Assumed;
        if is_other_quant && names::named(asked).is_some() {
            // A catalog name is also available in that quant.
            return Ok(None);
        }
        found.model.name = store.stored_name(asked);
        let file = found.file(&path);
        Ok(Some(found.at(Location::Installed(file))))
    }

    fn known(&self, asked: &str) -> Result<Option<Described>, FindError> {
        let Ok((known, context_tokens)) = known::find(asked) else { return Ok(None) };
        let named = names::named(asked);
        let mix = match self.quant.or(named.and_then(|found| found.quant)) {
            Some(mix) => mix,
            None => QuantMix::named(known.default_quant())?,
        };
        let at = || format!("the dimensions of {}", known.name);
        let model = known.model(mix, context_tokens);
        let model = model.map_err(|error| FindError::Gguf { at: at(), error })?;
        let model = Model { quant: mix.label().to_owned(), ..model };
        let note = format!("weights as {} would store them, not those of a file", mix.name());
        let source = format!("published dimensions of {}", known.name);
        let variants = known.variants(mix, context_tokens);
        let found = Described { variants, notes: vec![note], ..Described::of(model, source) };
        Ok(Some(match named.filter(|_| mix.format() == Format::Gguf) {
            Some(ShortName { named, .. }) => found.fetched_from(named),
            None => found,
        }))
    }

    fn unknown(&self, asked: &str, registry: Option<FindError>) -> FindError {
        let stored = self.finder.store.as_ref().and_then(|store| store.names().ok());
        let stored = stored.unwrap_or_default();
        let named = names::NAMED.iter().map(|named| named.name);
        let catalog = Catalog::builtin();
        let pinned = catalog.defaults().iter().filter(|_| self.aim == Aim::Files);
        let here = stored.iter().map(String::as_str).chain(pinned.map(|entry| &*entry.name));
        let names: BTreeSet<&str> = here.chain(known::tags()).chain(named).collect();
        // A stored model that does not chat is not a suggestion.
        let names = names.into_iter().filter(|name| *name != asked);
        let near = match names::published(asked) {
            Some(name) => vec![name.to_owned()],
            None => nearest(asked, names, 3),
        };
        match registry.filter(|error| !matches!(error, FindError::Missing { .. })) {
            Some(error) if near.is_empty() => error,
            registry => {
                let registry = registry.map(Box::new);
                FindError::Unknown { asked: asked.to_owned(), near, registry }
            }
        }
    }
}

/// `owner/name/file.gguf` is not a path: it names a file of a repository.
fn looks_like_a_path(asked: &str) -> bool {
    let begins = ["/", "./", "../", "~", "\\"].iter().any(|begin| asked.starts_with(begin));
    let is_file = asked.ends_with(".gguf") || asked.ends_with(".safetensors");
    let folders = asked.matches('/').count();
    begins || asked.contains('\\') || (is_file && folders < 2) || asked.is_empty()
}

/// An address without its query, its fragment, and slashes at its end.
fn bare_address(address: &str) -> &str {
    address.split(['?', '#']).next().unwrap_or(address).trim_end_matches('/')
}

fn name_of(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
