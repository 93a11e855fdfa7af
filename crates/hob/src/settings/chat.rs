//! The settings of chat models.
//! `None` means that the model or the machine decides.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};

use hob_core::KeepAlive;
use hob_engines::chat::CardUse;
use hob_models::catalog::names::canonical;
use serde::{Serialize, Serializer};

use super::{DEFAULT_CHAT, Environment, Overrides, Threads, as_keep_alive, as_text};
use crate::config::{
    ChatSection, DevSection, DeviceText, KvTypeName, LoadAt, LoadedConfig, Speculation,
};
use crate::folders::Folders;

/// The same as llama.cpp's. Larger steps read a prompt hardly faster, and delay running answers.
const DEFAULT_BATCH_TOKENS: NonZeroU32 = NonZeroU32::new(512).expect("not zero");
const DEFAULT_CHAT_REQUESTS_MAX: NonZeroU16 = NonZeroU16::new(32).expect("not zero");

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ChatSettings {
    pub(crate) model: ModelChoice,
    /// `None`: the length that the model was trained with, as far as the memory allows.
    pub(crate) context_tokens: Option<NonZeroU32>,
    pub(crate) kv_type: KvTypeName,
    pub(crate) threads: Threads,
    /// `None`: 4, or fewer if the memory would leave each slot too short a context.
    pub(crate) parallel: Option<NonZeroU16>,
    pub(crate) batch_tokens: NonZeroU32,
    #[serde(serialize_with = "as_text")]
    pub(crate) device: CardUse,
    /// `None`: as `hob fit` recommends.
    pub(crate) gpu_layers: Option<u16>,
    /// `None`: as `hob fit` recommends.
    pub(crate) cpu_moe_layers: Option<u16>,
    #[serde(serialize_with = "as_keep_alive")]
    pub(crate) keep_alive: KeepAlive,
    pub(crate) load: LoadAt,
    /// Never unloaded to make room.
    #[serde(rename = "pinned")]
    pub(crate) is_pinned: bool,
    /// `None`: no limit, unless a request sets one.
    pub(crate) thinking_tokens_max: Option<u32>,
    /// `None`: an answer without its own limit ends when the context is full.
    pub(crate) answer_tokens_max: Option<NonZeroU32>,
    pub(crate) speculation: Speculation,
    /// A smaller model that guesses tokens. Further models do not inherit it.
    pub(crate) draft_model: Option<ModelChoice>,
    pub(crate) requests_max: NonZeroU16,
}

/// Only for tests of programs that use hob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DevSettings {
    pub(crate) mock_unknown_models: bool,
    /// Scripts by the names of their models.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) scripts: BTreeMap<String, PathBuf>,
}

/// The model that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelChoice {
    /// A stored model.
    Named(String),
    /// A file of the user's: GGUF for chat, whisper.cpp's format for transcription.
    File(PathBuf),
}

impl ModelChoice {
    /// A text is a path if such a file exists, or if it looks like a path. Anything else is a name, also with
    /// slashes: models of Hugging Face are called `owner/name:QUANT`.
    pub(crate) fn new(written: &str, resolve: impl Fn(&Path) -> PathBuf) -> ModelChoice {
        let path = Path::new(written);
        let ends = path.extension().is_some_and(|ending| {
            ending.eq_ignore_ascii_case("gguf") || ending.eq_ignore_ascii_case("bin")
        });
        let begins = ["/", "./", "../", "~"].iter().any(|begin| written.starts_with(begin));
        let is_of_hub = written.starts_with("hf:");
        if !is_of_hub && (begins || ends || resolve(path).is_file()) {
            // Removes `.` and `..` that the user typed.
            ModelChoice::File(resolve(path).components().collect())
        } else {
            ModelChoice::Named(canonical(written))
        }
    }

    /// The model's default name. For a file: without folder and extension.
    pub(crate) fn name(&self) -> String {
        match self {
            ModelChoice::Named(name) => name.clone(),
            ModelChoice::File(path) => {
                path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
        }
    }

    /// The text that the user typed.
    pub(crate) fn as_written(&self) -> String {
        match self {
            ModelChoice::Named(name) => name.clone(),
            ModelChoice::File(path) => path.display().to_string(),
        }
    }
}

impl Serialize for ModelChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_written().serialize(serializer)
    }
}

impl ChatSettings {
    pub(super) fn resolve(
        flags: &Overrides,
        environment: &Environment,
        written: &LoadedConfig,
    ) -> ChatSettings {
        let file = &written.config.chat;
        let device = flags.place.device.clone().map(DeviceText).or_else(|| file.device.clone());
        ChatSettings {
            model: model(flags, environment, written),
            context_tokens: flags.context_tokens.or(file.context_tokens),
            kv_type: file.kv_type.unwrap_or_default(),
            threads: Threads::new(file.threads.unwrap_or(0)),
            parallel: file.parallel,
            batch_tokens: file.batch_tokens.unwrap_or(DEFAULT_BATCH_TOKENS),
            device: device.map(|written| written.0).unwrap_or_default(),
            gpu_layers: flags.place.gpu_layers.or(file.gpu_layers),
            cpu_moe_layers: flags.place.cpu_moe_layers.or(file.cpu_moe_layers),
            keep_alive: file.keep_alive.map_or(KeepAlive::Forever, |written| written.0),
            load: match flags.chat_on_demand {
                true => LoadAt::FirstRequest,
                false => file.load.unwrap_or_default(),
            },
            is_pinned: file.pinned.unwrap_or(false),
            thinking_tokens_max: file.thinking_tokens_max,
            answer_tokens_max: file.answer_tokens_max,
            speculation: file.speculation.unwrap_or_default(),
            draft_model: draft_model(file, &environment.folders, written),
            requests_max: file.requests_max.unwrap_or(DEFAULT_CHAT_REQUESTS_MAX),
        }
    }

    /// Settings of a further model. Keys that its table leaves out are the same as here.
    pub(super) fn further(&self, table: &ChatSection, model: ModelChoice) -> ChatSettings {
        ChatSettings {
            model,
            context_tokens: table.context_tokens.or(self.context_tokens),
            kv_type: table.kv_type.unwrap_or(self.kv_type),
            threads: table.threads.map_or(self.threads, Threads::new),
            parallel: table.parallel.or(self.parallel),
            batch_tokens: table.batch_tokens.unwrap_or(self.batch_tokens),
            device: table.device.clone().map_or_else(|| self.device.clone(), |written| written.0),
            gpu_layers: table.gpu_layers.or(self.gpu_layers),
            cpu_moe_layers: table.cpu_moe_layers.or(self.cpu_moe_layers),
            keep_alive: table.keep_alive.map_or(self.keep_alive, |written| written.0),
            load: table.load.unwrap_or(LoadAt::FirstRequest),
            // With several models, a pinned one is an exception.
            is_pinned: table.pinned.unwrap_or(false),
            thinking_tokens_max: table.thinking_tokens_max.or(self.thinking_tokens_max),
            answer_tokens_max: table.answer_tokens_max.or(self.answer_tokens_max),
            speculation: table.speculation.unwrap_or(self.speculation),
            draft_model: None,
            requests_max: table.requests_max.unwrap_or(self.requests_max),
        }
    }

    /// Settings of a pulled model without a table.
    pub(crate) fn pulled(&self, name: &str) -> ChatSettings {
        self.further(&ChatSection::default(), ModelChoice::Named(name.to_owned()))
    }
}

impl DevSettings {
    pub(super) fn resolve(written: &LoadedConfig, folders: &Folders) -> DevSettings {
        let DevSection { mock_unknown_models, scripts } = &written.config.dev;
        let resolved =
            |(name, path): (&String, &PathBuf)| (name.clone(), written.resolve(path, folders));
        DevSettings {
            mock_unknown_models: mock_unknown_models.unwrap_or(false),
            scripts: scripts.iter().map(resolved).collect(),
        }
    }
}

/// The draft model of a table.
pub(super) fn draft_model(
    table: &ChatSection,
    folders: &Folders,
    written: &LoadedConfig,
) -> Option<ModelChoice> {
    let name = table.draft_model.as_deref()?;
    Some(ModelChoice::new(name, |path| written.resolve(path, folders)))
}

/// A path on the command line is relative to the working folder; a path in the file is relative to the file.
fn model(flags: &Overrides, environment: &Environment, written: &LoadedConfig) -> ModelChoice {
    let folders = &environment.folders;
    if let Some(typed) = &flags.chat_model {
        return ModelChoice::new(typed, |path| folders.working.join(path));
    }
    let in_file = written.config.chat.model.as_deref().unwrap_or(DEFAULT_CHAT);
    ModelChoice::new(in_file, |path| written.resolve(path, folders))
}
