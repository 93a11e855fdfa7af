//! The models as this hob's commands see them: what can be had, what is here, fetching, deleting.
//! The only file of the binary that speaks with `hob-models`; everything there blocks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hob_core::Voice;
use hob_engines::speech::kokoro::voice_list;
use hob_models::catalog::{self, Part, Purpose};
use hob_models::{
    CHAT_MODEL_FILE, Catalog, Fetcher, Manifest, Progress, PullError, PullOptions, Pulled, Puller,
    SourceKind, Store, StoreError, StoredModel, Watch,
};
use serde::Serialize;

use crate::app::App;
use crate::failure::{Exit, Failure, Outcome};
use crate::storing::transform_for;
use crate::wire_up::engine_threads;

/// The speech model that is used when nobody names one.
pub(crate) const DEFAULT_SPEECH: &str = "kokoro";
/// The chat model that is used when nobody names one.
const DEFAULT_CHAT: &str = "smollm2";
const MB: u64 = 1_000_000;

/// A model of the catalog, and whether it is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// `speech`.
    pub(crate) kind: String,
    /// On this disk, or what fetching it would take.
    pub(crate) bytes: u64,
    pub(crate) licence: String,
    /// Where it came from, or where it would be looked for.
    pub(crate) source: String,
    pub(crate) condition: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Condition {
    NotHere,
    Here,
    Damaged,
}

/// What is to be fetched.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: String,
    /// Instead of the catalog's sources.
    pub(crate) from: Option<PathBuf>,
    /// Only this kind of source.
    pub(crate) only: Option<SourceKind>,
    /// Looked at between two chunks.
    pub(crate) cancel: Arc<AtomicBool>,
}

/// A stored speech model.
#[derive(Clone, Debug)]
pub(crate) struct StoredSpeech {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) disk_bytes: u64,
    pub(crate) voices: Vec<Voice>,
}

impl StoredSpeech {
    /// The list of all its files with their checksums.
    pub(crate) fn manifest(&self) -> PathBuf {
        Manifest::file(&self.folder)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    store: Store,
    catalog: Catalog,
    default_voice: String,
    threads: usize,
}

impl Shelf {
    pub(crate) fn open(app: &App<'_>) -> Shelf {
        Shelf {
            store: Store::open(&app.settings.home),
            catalog: Catalog::builtin(),
            default_voice: app.settings.speech.default_voice.clone(),
            threads: engine_threads(app.settings.speech.threads.wished()),
        }
    }

    /// An empty one, or whatever is there.
    #[cfg(test)]
    pub(crate) fn in_home(home: &Path) -> Shelf {
        let (store, catalog) = (Store::open(home), Catalog::builtin());
        Shelf { store, catalog, default_voice: "af_heart".to_owned(), threads: 1 }
    }

    pub(crate) fn entries(&self) -> Outcome<Vec<Entry>> {
        // A store that cannot be read at all is said, not listed as empty.
        self.store.names()?;
        Ok(self.catalog.entries().iter().map(|entry| self.entry(entry)).collect())
    }

    fn entry(&self, entry: &catalog::Entry) -> Entry {
        let licences: Vec<String> = entry.licences.iter().map(ToString::to_string).collect();
        let listed = Entry {
            name: entry.name.clone(),
            kind: entry.purpose.to_string(),
            bytes: entry.bytes(),
            licence: licences.join(", "),
            source: sources(entry),
            condition: Condition::NotHere,
        };
        match self.store.find(&entry.name) {
            Ok(stored) => Entry {
                bytes: stored.disk_bytes,
                source: origin(&stored),
                condition: Condition::Here,
                ..listed
            },
            Err(StoreError::Damaged { .. }) => Entry { condition: Condition::Damaged, ..listed },
            Err(_) => listed,
        }
    }

    /// The named model, or those that hob uses by default.
    pub(crate) fn wanted(&self, name: Option<&str>) -> Outcome<Vec<String>> {
        let defaults = [DEFAULT_SPEECH, DEFAULT_CHAT];
        let names = name.map_or(defaults.to_vec(), |name| vec![name]);
        let found = names.into_iter().map(|name| self.catalog.find(name).map_err(Failure::usage));
        found.map(|entry| entry.map(|entry| entry.name.clone())).collect()
    }

    /// What fetching would do, for people.
    pub(crate) fn plan(&self, name: &str) -> Outcome<String> {
        let entry = self.catalog.find(name).map_err(Failure::usage)?;
        let listed = self.entry(entry);
        if listed.condition == Condition::Here {
            return Ok(format!("{name} is here already, from {}", listed.source));
        }
        let parts: Vec<String> = entry.parts.iter().map(plan_of).collect();
        let megabytes = entry.bytes().div_ceil(MB);
        let place = self.place().display();
        Ok(format!("{name}: {megabytes} MB into {place}\n{}", parts.join("\n")))
    }

    /// Fetches, verifies and stores what is not here yet. Blocks.
    pub(crate) fn pull(&self, wish: &Wish, tell: &mut dyn FnMut(Progress)) -> Outcome<Pulled> {
        let entry = self.catalog.find(&wish.name).map_err(Failure::usage)?;
        let options =
            PullOptions { from: wish.from.clone(), only: wish.only.into_iter().collect() };
        let fetcher = Fetcher::default();
        let puller = Puller { store: &self.store, fetcher: &fetcher, options: &options };
        let storing = transform_for(entry.purpose, self.threads)?;
        let mut watch = Watch::new(tell, &wish.cancel);
        Ok(puller.pull(entry, &*storing, &mut watch)?)
    }

    /// Where all models are.
    pub(crate) fn place(&self) -> &Path {
        self.store.root()
    }

    /// Deletes it, and says how many bytes that gave back.
    pub(crate) fn remove(&self, name: &str) -> Outcome<u64> {
        let removed = self.store.remove(name);
        // Of a model that hob does not even know, "not here" would be half of the truth.
        if matches!(removed, Err(StoreError::Missing { .. })) {
            self.catalog.find(name).map_err(Failure::usage)?;
        }
        Ok(removed?.freed_bytes)
    }

    /// Reads every stored file again and compares its checksum.
    pub(crate) fn verify(&self, name: &str) -> Outcome<()> {
        let cancel = AtomicBool::new(false);
        let mut unheard = |_| {};
        let mut watch = Watch::new(&mut unheard, &cancel);
        Ok(self.store.verify(&self.store.find(name)?, &mut watch)?)
    }

    /// The speech model that is used by default, its default voice first: clients that name no
    /// voice get the first.
    pub(crate) fn speech(&self) -> Outcome<StoredSpeech> {
        let stored = self.store.find(DEFAULT_SPEECH)?;
        let mut voices =
            voice_list(&stored.folder).map_err(|error| Failure::new(Exit::ModelMissing, error))?;
        voices.sort_by_key(|voice| voice.id != self.default_voice);
        let (name, disk_bytes) = (stored.name().to_owned(), stored.disk_bytes);
        Ok(StoredSpeech { name, folder: stored.folder, disk_bytes, voices })
    }

    /// Those that chat and are here.
    pub(crate) fn chat_names(&self) -> Vec<String> {
        let chats = self.catalog.entries().iter().filter(|entry| entry.purpose == Purpose::Chat);
        let here = chats.filter(|entry| self.store.find(&entry.name).is_ok());
        here.map(|entry| entry.name.clone()).collect()
    }

    /// A chat model that is here: its file, and the file's checksum.
    pub(crate) fn chat_file(&self, name: &str) -> Outcome<(PathBuf, Option<String>)> {
        let entry = self.catalog.find(name).map_err(Failure::usage)?;
        if entry.purpose != Purpose::Chat {
            let sentence = format!("{name} is a model for {}, and does not chat", entry.purpose);
            return Err(Failure::usage(sentence));
        }
        let stored = self.store.find(name)?;
        let digest = stored.chat_card(None).and_then(Result::ok).and_then(|card| card.digest);
        Ok((stored.folder.join(CHAT_MODEL_FILE), digest))
    }
}

fn origin(stored: &StoredModel) -> String {
    joined(stored.manifest.sources.iter().map(|part| part.source.clone()))
}

/// Kinds only: `hob pull --dry-run` names each source.
fn sources(entry: &catalog::Entry) -> String {
    let sources = entry.parts.iter().flat_map(|part| &part.sources);
    joined(sources.map(|source| source.kind().name().to_owned()))
}

fn plan_of(part: &Part) -> String {
    let sources = part
        .sources
        .iter()
        .map(|source| format!("  {}, {} MB", source, source.bytes().div_ceil(MB)));
    format!("{}, from the first of\n{}", part.name, sources.collect::<Vec<_>>().join("\n"))
}

fn joined(names: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct.join("; ")
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let exit = match error {
            StoreError::Missing { .. } | StoreError::Damaged { .. } => Exit::ModelMissing,
            StoreError::InUse { .. } | StoreError::Disk(_) => Exit::Internal,
            StoreError::Cancelled(_) => Exit::Interrupted,
        };
        Failure::new(exit, error)
    }
}

impl From<PullError> for Failure {
    fn from(error: PullError) -> Failure {
        match error {
            PullError::NoSource { name, part, failures } => {
                let reasons: String = failures
                    .iter()
                    .map(|failure| format!("\n     - {}: {}", failure.source, failure.error))
                    .collect();
                let sentence = format!("no source could deliver the {part} of '{name}'{reasons}");
                let hint = format!(
                    "try again with a network, or bring the files: hob pull {name} --from FOLDER"
                );
                Failure::new(Exit::Source, sentence).hint(hint)
            }
            PullError::Transform { .. } => Failure::new(Exit::Internal, error),
            PullError::Store(error) => error.into(),
            PullError::Cancelled(_) => Failure::new(Exit::Interrupted, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_are_named_twice_are_shown_once() {
        let names = ["hub", "wheel", "hub"].map(str::to_owned);
        assert_eq!(joined(names.into_iter()), "hub; wheel");
    }

    #[test]
    fn what_a_store_says_decides_the_exit_code() {
        let missing = StoreError::Missing { name: "kokoro".to_owned(), near: Vec::new() };
        assert_eq!(Failure::from(missing).exit, Exit::ModelMissing);
        let in_use = StoreError::InUse { name: "kokoro".to_owned() };
        assert_eq!(Failure::from(in_use).exit, Exit::Internal);
    }
}
