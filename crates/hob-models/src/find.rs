//! A model by whatever somebody calls it: a file, a folder, an address, a name. Only headers are read or fetched.
//! One file per kind of place; the order in which places are asked is decided here.

mod choice;
mod error;
mod gguf;
mod hub;
mod ollama;
mod remote;
mod shelf;
mod tensors;
mod typed;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use hob_core::fit::{Format, Location, Model};
use hob_core::machine::Basis;
use hob_core::nearest;

use crate::fetch::Limits;
use crate::known;
use crate::recipe::Mixture;
use crate::store::Store;

pub use error::FindError;
use remote::Remote;
use shelf::Shelf;
pub use typed::{ShapeError, typed};

/// What most people run: weights of a known shape are taken as stored like that, unless somebody says otherwise.
pub const USUAL_QUANT: &str = "Q4_K_M";
const SUGGESTIONS_MAX: usize = 3;

/// Where models are looked for.
#[derive(Clone)]
pub struct Finder {
    /// The address that repositories of Hugging Face are below.
    pub hub: String,
    /// For private and gated ones; told to the hub and to nobody else.
    pub token: Option<String>,
    /// The folder of Ollama's models.
    pub ollama: Option<PathBuf>,
    pub store: Option<Store>,
    pub limits: Limits,
}

/// A model, where it was found, and what that cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub model: Model,
    /// The same in other quants; none of what is not known well enough to make them up.
    pub variants: Vec<Model>,
    /// For people: the file, the address, or the table that it is from.
    pub source: String,
    /// What somebody should know who takes the answer for exact.
    pub notes: Vec<String>,
    pub requests: u32,
    /// Of answers' bodies.
    pub fetched_bytes: u64,
}

/// A model as one kind of place has it.
struct Described {
    model: Model,
    variants: Vec<Model>,
    source: String,
    notes: Vec<String>,
}

/// One search.
#[derive(Clone, Copy)]
struct Search<'f> {
    finder: &'f Finder,
    remote: &'f Remote,
    quant: Option<Mixture>,
}

/// Without the token, which is nobody's to read.
impl fmt::Debug for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finder { hub, ollama, store, limits, .. } = self;
        let mut shown = f.debug_struct("Finder");
        shown.field("hub", hub).field("ollama", ollama).field("store", store);
        shown.field("limits", limits).finish_non_exhaustive()
    }
}

impl Finder {
    /// Of this quant, if one is asked for: of several files that one, else the weights as it would store them.
    ///
    /// # Errors
    /// One sentence on why nothing can be said.
    pub fn find(&self, asked: &str, quant: Option<Mixture>) -> Result<Found, FindError> {
        let remote = Remote::new(self);
        let search = Search { finder: self, remote: &remote, quant };
        let Described { model, variants, source, notes } = search.any(asked.trim())?;
        let (requests, fetched_bytes) = remote.spent();
        Ok(Found { model, variants, source, notes, requests, fetched_bytes })
    }
}

impl Described {
    /// Where its weights are; what would be stored otherwise is not there.
    fn at(self, location: Location) -> Described {
        if self.model.basis == Basis::Assumed {
            return self;
        }
        Described { model: Model { location, ..self.model }, ..self }
    }

    /// Of what lies at a path: the file that was chosen there, or the folder where it takes several.
    fn file(&self, path: &Path) -> String {
        match self.model.format {
            Format::Gguf => self.source.clone(),
            _ => path.display().to_string(),
        }
    }
}

impl Search<'_> {
    fn wishing(self, quant: Option<Mixture>) -> Self {
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
        if let Some(model) = self.installed(asked)? {
            return Ok(model);
        }
        if let Some(folder) = &self.finder.ollama
            && let Some(model) = ollama::find(self, folder, asked)?
        {
            return Ok(model);
        }
        if let Some(model) = self.known(asked)? {
            return Ok(model);
        }
        match hub::Repo::parse(asked) {
            Some(repo) => hub::find(self, &repo),
            None => Err(self.unknown(asked)),
        }
    }

    fn path(&self, path: &Path) -> Result<Described, FindError> {
        if path.is_dir() {
            return choice::one(self, &Shelf::Folder(path.to_owned()), &name_of(path));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let shelf = Shelf::Folder(folder.to_owned());
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(FindError::NoSuchPath { path: path.to_owned() });
        };
        self.file(&shelf, file)
    }

    /// By its ending; what has none that is known is taken for GGUF, whose first bytes tell.
    fn file(&self, shelf: &Shelf<'_>, file: &str) -> Result<Described, FindError> {
        match file.ends_with(".safetensors") {
            true => tensors::of_file(self, shelf, file),
            false => gguf::of_file(self, shelf, file),
        }
    }

    fn address(&self, asked: &str) -> Result<Described, FindError> {
        let bare = asked.split(['?', '#']).next().unwrap_or(asked).trim_end_matches('/');
        if let Some(repo) = hub::Repo::of_address(bare, &self.finder.hub) {
            return hub::find(self, &repo);
        }
        let direct = bare.replacen("/blob/", "/resolve/", 1);
        let Some((base, file)) = direct.rsplit_once('/').filter(|(_, file)| !file.is_empty())
        else {
            return Err(FindError::NoModel { at: asked.to_owned(), there: Vec::new() });
        };
        self.file(&Shelf::Web { remote: self.remote, base: base.to_owned() }, file)
    }

    fn installed(&self, asked: &str) -> Result<Option<Described>, FindError> {
        let Some(store) = &self.finder.store else { return Ok(None) };
        let found = store.find(asked).ok().and_then(|stored| stored.chat_file());
        let Some(path) = found else { return Ok(None) };
        let mut found = self.path(&path)?;
        found.model.name = asked.to_owned();
        let file = found.file(&path);
        Ok(Some(found.at(Location::Installed(file))))
    }

    fn known(&self, asked: &str) -> Result<Option<Described>, FindError> {
        let Ok((known, context_tokens)) = known::find(asked) else { return Ok(None) };
        let mixture = match self.quant {
            Some(mixture) => mixture,
            None => Mixture::named(USUAL_QUANT)?,
        };
        let at = || format!("the dimensions of {}", known.name);
        let model = known.model(mixture, context_tokens);
        let model = model.map_err(|error| FindError::Gguf { at: at(), error })?;
        let model = Model { quant: mixture.label().to_owned(), ..model };
        let note = format!("weights as {} would store them, not those of a file", mixture.name());
        let source = format!("published dimensions of {}", known.name);
        let variants = known.variants(mixture, context_tokens);
        Ok(Some(Described { model, variants, source, notes: vec![note] }))
    }

    fn unknown(&self, asked: &str) -> FindError {
        let stored = self.finder.store.as_ref().and_then(|store| store.names().ok());
        let stored = stored.unwrap_or_default();
        let tags = known::KNOWN.iter().flat_map(|known| known.tags.iter().map(|(tag, _)| *tag));
        let names: BTreeSet<&str> = stored.iter().map(String::as_str).chain(tags).collect();
        // A model that is here and does not chat is no answer.
        let names = names.into_iter().filter(|name| *name != asked);
        let near = nearest(asked, names, SUGGESTIONS_MAX);
        FindError::Unknown { asked: asked.to_owned(), near }
    }
}

/// `owner/name/file.gguf` is none: that is how files of repositories are asked for.
fn looks_like_a_path(asked: &str) -> bool {
    let begins = ["/", "./", "../", "~", "\\"].iter().any(|begin| asked.starts_with(begin));
    let is_file = asked.ends_with(".gguf") || asked.ends_with(".safetensors");
    let folders = asked.matches('/').count();
    begins || asked.contains('\\') || (is_file && folders < 2) || asked.is_empty()
}

fn name_of(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
