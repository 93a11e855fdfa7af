//! The models as hob's commands see them: listed, stored, downloaded, deleted.
//! All functions block, because `hob-models` has no async runtime.

mod download;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hob_core::{Language, Voice};
use hob_engines::speech::kokoro::voice_list;
use hob_engines::transcription::whisper::languages;
use hob_models::catalog::names::{NAMED, NamedRepo, canonical, named};
use hob_models::catalog::{self, Purpose};
use hob_models::known::find as known;
use hob_models::{
    Catalog, Finder, JAPANESE_NAME, MANDARIN_NAME, Manifest, PullError, QuantMix, Store,
    StoreError, StoredForm, StoredModel, TURN_TAKING_NAME, TurnTakingFiles, Watch, WhisperFiles,
    WhisperHeader, WhisperMemory, check_changed,
};
use serde::Serialize;

use crate::app::App;
use crate::failure::{CliResult, Exit, Failure};
use crate::finding::finder;
use crate::settings::{DEFAULT_CHAT, DEFAULT_SPEECH, DEFAULT_TRANSCRIPTION, ModelChoice};

pub(crate) use download::{Download, DownloadOptions};

/// Guess for the memory of a transcription worker beyond its model.
pub(crate) const WORKER_BYTES: u64 = 30_000_000;
const MB: u64 = 1_000_000;
/// What to do about a model of another kind.
const LISTED: &str = "`hob models` lists the models and their kinds";

/// The languages that voices cannot speak without a dictionary, each with the dictionary's name.
pub(crate) const DICTIONARIES: [(Language, &str); 2] =
    [(Language::Japanese, JAPANESE_NAME), (Language::Mandarin, MANDARIN_NAME)];

/// A model of the catalog, and whether it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StoreRow {
    pub(crate) name: String,
    /// `speech`, `chat`, `transcription`, `turn-taking` or `dictionary`.
    pub(crate) kind: String,
    /// Size on this disk, or of the download.
    pub(crate) bytes: u64,
    pub(crate) licence: String,
    /// Where the model came from, or where a download would look for it.
    pub(crate) source: String,
    pub(crate) condition: StoreState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoreState {
    NotStored,
    Stored,
    Damaged,
}

/// A stored speech model.
#[derive(Clone, Debug)]
pub(crate) struct StoredSpeech {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) disk_bytes: u64,
    pub(crate) voices: Vec<Voice>,
}

/// A transcription model: its files, its languages, and the memory that its worker takes.
#[derive(Clone, Debug)]
pub(crate) struct StoredTranscription {
    pub(crate) name: String,
    pub(crate) weights: PathBuf,
    pub(crate) vad: PathBuf,
    pub(crate) file_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) languages: Vec<String>,
}

impl StoredSpeech {
    /// The list of all files with their checksums.
    pub(crate) fn manifest(&self) -> PathBuf {
        Manifest::file(&self.folder)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ModelStore {
    store: Store,
    catalog: Catalog,
    finder: Finder,
    default_voice: String,
    speech_model: String,
}

impl ModelStore {
    pub(crate) fn open(app: &App<'_>) -> ModelStore {
        ModelStore {
            store: Store::open(&app.settings.home),
            catalog: Catalog::builtin(),
            finder: finder(app),
            default_voice: app.settings.speech.default_voice.clone(),
            speech_model: app.settings.speech.model.clone(),
        }
    }

    /// A store in this folder, for tests.
    #[cfg(test)]
    pub(crate) fn in_home(home: &Path) -> ModelStore {
        let (store, catalog) = (Store::open(home), Catalog::builtin());
        let finder = Finder {
            hub: "http://127.0.0.1:1".to_owned(),
            token: None,
            registry: None,
            ollama: None,
            store: Some(store.clone()),
            limits: hob_models::FetchLimits::default(),
        };
        let (default_voice, speech_model) = ("af_heart".to_owned(), DEFAULT_SPEECH.to_owned());
        ModelStore { store, catalog, finder, default_voice, speech_model }
    }

    /// The models that hob uses by default, and all other stored models.
    pub(crate) fn entries(&self) -> CliResult<Vec<StoreRow>> {
        // A store that cannot be read is an error, not an empty list.
        let stored = self.store.names()?;
        let own = self.catalog.defaults().iter().map(|entry| self.row_of_catalog(entry));
        let is_default =
            |name: &str| self.catalog.defaults().iter().any(|entry| entry.name == name);
        let others = stored.iter().filter(|name| !is_default(name));
        Ok(own.chain(others.map(|name| self.row_of_stored(name))).collect())
    }

    /// Like `entries`, with all models that `hob pull` knows by a short name.
    pub(crate) fn all_entries(&self) -> CliResult<Vec<StoreRow>> {
        let mut entries = self.entries()?;
        let is_listed =
            |entries: &[StoreRow], name: &str| entries.iter().any(|one| one.name == name);
        for further in self.catalog.further() {
            if !is_listed(&entries, &further.name) {
                entries.push(self.row_of_catalog(further));
            }
        }
        for named in NAMED.iter() {
            if canonical(named.name) == named.name && !is_listed(&entries, named.name) {
                entries.push(listed_for_download(named));
            }
        }
        Ok(entries)
    }

    fn row_of_stored(&self, name: &str) -> StoreRow {
        if let Ok(entry) = self.catalog.find(name) {
            return self.row_of_catalog(entry);
        }
        let listed = StoreRow {
            name: name.to_owned(),
            kind: Purpose::Chat.to_string(),
            bytes: 0,
            licence: String::new(),
            source: String::new(),
            condition: StoreState::Damaged,
        };
        let Ok(stored) = self.store.find(name) else { return listed };
        let is_speech = stored.speech_weights().is_some();
        let purpose = if is_speech { Purpose::Speech } else { Purpose::Chat };
        let licences: Vec<String> = stored.licences().iter().map(ToString::to_string).collect();
        StoreRow {
            bytes: stored.disk_bytes,
            licence: licences.join(", "),
            source: origin(&stored),
            kind: purpose.to_string(),
            condition: StoreState::Stored,
            ..listed
        }
    }

    fn row_of_catalog(&self, entry: &catalog::Entry) -> StoreRow {
        let licences: Vec<String> = entry.licences.iter().map(ToString::to_string).collect();
        let listed = StoreRow {
            name: entry.name.clone(),
            kind: entry.purpose.to_string(),
            bytes: entry.bytes(),
            licence: licences.join(", "),
            source: sources(entry),
            condition: StoreState::NotStored,
        };
        match self.store.find(&entry.name) {
            Ok(stored) => StoreRow {
                bytes: stored.disk_bytes,
                source: origin(&stored),
                condition: StoreState::Stored,
                ..listed
            },
            Err(StoreError::Damaged { .. }) => {
                StoreRow { condition: StoreState::Damaged, ..listed }
            }
            Err(_) => listed,
        }
    }

    /// The models that hob uses by default.
    pub(crate) fn defaults() -> [&'static str; 4] {
        [DEFAULT_SPEECH, DEFAULT_CHAT, DEFAULT_TRANSCRIPTION, TURN_TAKING_NAME]
    }

    /// The source of a stored model.
    fn origin(&self, name: &str) -> Option<String> {
        self.store.find(name).ok().map(|stored| origin(&stored))
    }

    /// The folder of all models.
    pub(crate) fn root(&self) -> &Path {
        self.store.root()
    }

    /// Deletes a model. Returns the freed bytes.
    pub(crate) fn remove(&self, name: &str) -> CliResult<u64> {
        self.check_has_any(name)?;
        Ok(self.store.remove(&self.store.stored_name(name))?.freed_bytes)
    }

    /// # Errors
    /// Nothing of the model is on the disk, or hob does not know the name.
    pub(crate) fn check_has_any(&self, name: &str) -> CliResult<()> {
        let here = self.store.check_has_any(&self.store.stored_name(name));
        if here.is_err() {
            self.check_known(name)?;
        }
        Ok(here?)
    }

    /// Reads all files of a stored model again, and compares their checksums.
    pub(crate) fn verify(&self, name: &str) -> CliResult<()> {
        let cancel = AtomicBool::new(false);
        let mut ignore_progress = |_| {};
        let mut watch = Watch::new(&mut ignore_progress, &cancel);
        Ok(self.store.verify(&self.store.find(name)?, &mut watch)?)
    }

    /// The chosen speech model. Its default voice comes first, because clients that name no voice get the first one.
    pub(crate) fn speech(&self) -> CliResult<StoredSpeech> {
        self.speech_named(&self.speech_model)
    }

    /// A stored speech model.
    pub(crate) fn speech_named(&self, name: &str) -> CliResult<StoredSpeech> {
        let stored = self.stored_or_known(name)?;
        if stored.speech_weights().is_none() {
            return Err(
                Failure::usage(format!("{} is not a speech model", stored.name())).hint(LISTED)
            );
        }
        let mut voices = voice_list(&stored.folder).map_err(Failure::model_missing)?;
        voices.sort_by_key(|voice| voice.id != self.default_voice);
        let (name, disk_bytes) = (stored.name().to_owned(), stored.disk_bytes);
        Ok(StoredSpeech { name, folder: stored.folder, disk_bytes, voices })
    }

    /// The folders of the stored dictionaries, by the language that they are for.
    pub(crate) fn dictionaries(&self) -> BTreeMap<Language, PathBuf> {
        let folder = |(language, _)| Some((language, self.dictionary(language)?));
        DICTIONARIES.into_iter().filter_map(folder).collect()
    }

    /// The folder of a language's dictionary. `None`: none is stored, or the language needs none.
    pub(crate) fn dictionary(&self, language: Language) -> Option<PathBuf> {
        let (_, name) = DICTIONARIES.into_iter().find(|(needs, _)| *needs == language)?;
        Some(self.store.find(name).ok()?.folder)
    }

    /// A stored speech model by any of its names. `None` for every other name.
    pub(crate) fn stored_speech(&self, name: &str) -> Option<StoredModel> {
        let stored = self.store.find(&self.store.stored_name(name)).ok()?;
        stored.speech_weights().is_some().then_some(stored)
    }

    /// What a model of the catalog does, by any of its names. `None` for other models.
    pub(crate) fn catalog_purpose(&self, name: &str) -> Option<Purpose> {
        Some(self.catalog.find(&canonical(name)).ok()?.purpose)
    }

    /// The names of all stored models.
    pub(crate) fn stored_names(&self) -> Vec<String> {
        self.store.names().unwrap_or_default()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The files of a stored transcription model, by any of its names.
    pub(crate) fn whisper_files(&self, name: &str) -> CliResult<WhisperFiles> {
        let stored = self.stored_or_known(name)?;
        stored.whisper_files().ok_or_else(|| {
            Failure::usage(format!("{} is not a transcription model", stored.name())).hint(LISTED)
        })
    }

    /// Memory of a transcription model of the catalog, by any of its names.
    pub(crate) fn whisper_memory(&self, name: &str) -> Option<WhisperMemory> {
        self.catalog.find(&canonical(name)).ok()?.whisper_memory()
    }

    /// The chosen transcription model. If the user gave only a file of weights, Silero VAD is taken from any stored transcription model.
    pub(crate) fn transcription(&self, choice: &ModelChoice) -> CliResult<StoredTranscription> {
        let (name, weights, vad) = match choice {
            ModelChoice::Named(name) => {
                let WhisperFiles { weights, vad } = self.whisper_files(name)?;
                (self.store.stored_name(name), weights, vad)
            }
            ModelChoice::File(path) => (choice.name(), path.clone(), self.any_vad()?),
        };
        let header = WhisperHeader::read(&weights).map_err(|error| {
            Failure::usage(format!("{}: {error}", weights.display()))
                .hint("give a Whisper file in whisper.cpp's format (ggml-*.bin)")
        })?;
        let file_bytes = fs_err::metadata(&weights).map_or(0, |file| file.len());
        let memory_bytes = transcription_bytes(header.memory(), 1);
        let languages = languages(header.dims.vocab as usize).map(str::to_owned).collect();
        Ok(StoredTranscription { name, weights, vad, file_bytes, memory_bytes, languages })
    }

    /// The files of the models of turn taking.
    pub(crate) fn turn_taking(&self) -> CliResult<TurnTakingFiles> {
        let stored = self.store.find(TURN_TAKING_NAME)?;
        check_changed(&stored.folder)?;
        stored.turn_taking_files().ok_or_else(|| {
            Failure::model_missing(format!("model '{TURN_TAKING_NAME}' lacks a file"))
                .hint(format!("run `hob pull {TURN_TAKING_NAME}`"))
        })
    }

    /// The speech detection that comes with the models of turn taking, or with a transcription model.
    pub(crate) fn vad(&self) -> CliResult<PathBuf> {
        let own = self.turn_taking().map(|files| files.vad);
        own.or_else(|failure| self.any_vad().map_err(|_| failure))
    }

    /// The speech detection of any stored transcription model.
    fn any_vad(&self) -> CliResult<PathBuf> {
        let stored = self.store.list().unwrap_or_default();
        let files = stored.iter().find_map(StoredModel::whisper_files);
        files.map(|files| files.vad).ok_or_else(|| {
            Failure::model_missing(
                "the model of Silero VAD, which finds speech in the sound, is not stored",
            )
            .hint(format!("run `hob pull {DEFAULT_TRANSCRIPTION}`, which also downloads it"))
        })
    }

    /// # Errors
    /// The model is not stored, or hob does not know the name.
    fn stored_or_known(&self, name: &str) -> CliResult<StoredModel> {
        self.store.find(&self.store.stored_name(name)).or_else(|missing| {
            self.check_known(name)?;
            Err(Failure::from(missing))
        })
    }

    /// Fails if hob does not know the name. The caller would otherwise say "not stored", as if it could be pulled.
    fn check_known(&self, name: &str) -> CliResult<()> {
        let is_named = named(name).is_some() || name.contains(['/', ':']);
        match self.catalog.find(&canonical(name)) {
            Err(unknown) if !is_named => Err(Failure::usage(unknown)),
            _ => Ok(()),
        }
    }

    /// Names of stored chat models.
    pub(crate) fn chat_names(&self) -> Vec<String> {
        let stored = self.store.list().unwrap_or_default();
        let chats = stored.iter().filter(|stored| stored.chat_file().is_some());
        chats.map(|stored| stored.name().to_owned()).collect()
    }

    /// The name under which a model is stored, from any of its names.
    pub(crate) fn stored_name(&self, name: &str) -> String {
        self.store.stored_name(name)
    }

    /// The stored form of each model, by name. When a model is stored again, its form changes.
    pub(crate) fn forms_by_name(&self) -> BTreeMap<String, StoredForm> {
        self.store.forms_by_name().unwrap_or_default()
    }

    /// A stored chat model: its first file, and the checksum of that file.
    pub(crate) fn chat_file(&self, name: &str) -> CliResult<(PathBuf, Option<String>)> {
        let stored = self.stored_or_known(name)?;
        let Some(file) = stored.chat_file() else {
            let name = stored.name();
            return Err(Failure::usage(format!("{name} is not a chat model")).hint(LISTED));
        };
        Ok((file, stored.chat_digest()))
    }
}

/// Predicted memory of a worker with so many transcriptions at the same time.
pub(crate) fn transcription_bytes(memory: WhisperMemory, parallel: u32) -> u64 {
    memory.total_bytes(parallel.into()).saturating_add(WORKER_BYTES)
}

/// A model that is not stored, with the size that its dimensions predict.
fn listed_for_download(named: &NamedRepo) -> StoreRow {
    let usual = || {
        let (known, context_tokens) = known(named.name).ok()?;
        known.model(QuantMix::named(known.default_quant()).ok()?, context_tokens).ok()
    };
    StoreRow {
        name: named.name.to_owned(),
        kind: Purpose::Chat.to_string(),
        bytes: usual().map_or(0, |model| model.shape.weights.bytes()),
        licence: named.licence.to_owned(),
        source: format!("hub ({})", named.repo),
        condition: StoreState::NotStored,
    }
}

fn origin(stored: &StoredModel) -> String {
    joined(stored.manifest.sources.iter().map(|part| part.source.clone()))
}

/// Kinds of sources only; `hob pull --dry-run` names each source.
fn sources(entry: &catalog::Entry) -> String {
    let sources = entry.parts.iter().flat_map(|part| &part.sources);
    joined(sources.map(|source| source.kind().name().to_owned()))
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
            PullError::NoSource { .. } => {
                Failure { hint: error.hint(), ..Failure::new(Exit::Source, error) }
            }
            PullError::Transform { .. } => Failure::internal(error),
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
    fn the_store_s_error_decides_the_exit_code() {
        let missing = StoreError::Missing { name: "kokoro".to_owned(), near: Vec::new() };
        assert_eq!(Failure::from(missing).exit, Exit::ModelMissing);
        let in_use = StoreError::InUse { name: "kokoro".to_owned() };
        assert_eq!(Failure::from(in_use).exit, Exit::Internal);
    }

    #[test]
    fn a_kind_of_source_that_a_model_lacks_is_no_matter_of_the_network() {
        let (name, part) = ("kokoro".to_owned(), "graph".to_owned());
        let failure = Failure::from(PullError::NoSource { name, part, failures: Vec::new() });
        assert!(failure.sentence.ends_with("no source of the requested kind has it"), "{failure}");
        assert!(failure.hint.is_some_and(|hint| hint.contains("--source")));
    }
}
