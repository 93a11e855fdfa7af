//! The settings, resolved once from flags, environment and file. Nothing is optional any more.
//! A flag wins over the environment, the environment over the file, the file over the default.

mod chat;
mod environment;
pub(crate) mod gateway;
mod memory;
mod pipelines;
mod tls;
mod transcription;
mod wyoming;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

pub(crate) use chat::{ChatSettings, DevSettings, ModelChoice};
pub(crate) use environment::{Environment, VARIABLES};
pub(crate) use hob_upstream::Secret;
pub(crate) use pipelines::PipelinesSettings;
pub(crate) use tls::TlsSettings;
pub(crate) use transcription::TranscriptionSettings;
pub(crate) use wyoming::WyomingSettings;

use clap::Args;
use hob_core::KeepAlive;
use hob_engines::chat::CardUse;
use serde::{Serialize, Serializer};

use crate::bounded_file::read_text;
use crate::config::{
    KeepAliveText, LedgerSection, LoadedConfig, MemorySection, RealtimeSection, ServerSection,
    SpeechSection, is_default,
};
use crate::failure::{CliResult, Failure};
use crate::listen::Listen;

/// The speech model of a request that names none.
pub(crate) const DEFAULT_SPEECH: &str = "kokoro";
/// The chat model of a request that names none.
pub(crate) const DEFAULT_CHAT: &str = "smollm2";
/// The transcription model of a request that names none.
pub(crate) const DEFAULT_TRANSCRIPTION: &str = "whisper-base";
const DEFAULT_VOICE: &str = "af_heart";
const DEFAULT_TEXT_CHARS_MAX: NonZeroU32 = NonZeroU32::new(100_000).expect("not zero");
const DEFAULT_REQUESTS_MAX: NonZeroU16 = NonZeroU16::new(16).expect("not zero");
const DEFAULT_ESPEAK: &str = "espeak-ng";
/// A key is a line, not a file that was named by mistake.
const KEY_BYTES_MAX: u64 = 4096;

/// Settings from the command line: the flags of `hob serve`. Other commands set a few of them. `None` and empty values
/// leave the choice to the other sources.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Overrides {
    #[arg(skip)]
    pub(crate) home: Option<PathBuf>,
    /// The address to listen on [default: 127.0.0.1:8484]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<Listen>,
    /// Allow other machines to connect without an API key
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Open ports for Home Assistant (Wyoming): 10200 for speech, 10300 for transcription
    #[arg(long)]
    pub(crate) wyoming: bool,
    /// A host name under which browsers may call this server, besides localhost, and whose web pages may read answers;
    /// repeatable
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allowed_hosts: Vec<String>,
    /// Encrypt connections, so that browsers of other devices allow the microphone; programs on this machine may still
    /// use http
    #[arg(long)]
    pub(crate) tls: bool,
    /// Encrypt with this certificate (PEM, with its chain) instead of one that hob makes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// CPU threads of the speech engine; 0 lets hob choose
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u16>,
    /// The speech model: a stored one, such as kokoro-4bit of `hob quantize`
    #[arg(long, value_name = "MODEL")]
    pub(crate) speech_model: Option<String>,
    /// The chat model: a name that `hob models` lists, or a GGUF file
    #[arg(long, value_name = "MODEL")]
    pub(crate) chat_model: Option<String>,
    /// Load chat models with their first request, not at the start; also the transcription model, unless hob.toml sets its
    /// `load`
    #[arg(long)]
    pub(crate) chat_on_demand: bool,
    /// The transcription model: a name that `hob models` lists, or a Whisper file
    #[arg(long, alias = "hear-model", value_name = "MODEL")]
    pub(crate) transcription_model: Option<String>,
    /// Context length in tokens: prompt and answer together
    #[arg(long = "context", value_name = "TOKENS")]
    pub(crate) context_tokens: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) place: PlaceFlags,
    /// Folder of records for /benchmarks [default: bench/records, here or with the models]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) records: Option<PathBuf>,
    /// Let commands of teams run without a sandbox if the team file says so
    #[arg(long)]
    pub(crate) allow_danger: bool,
}

/// Where the chat model is loaded, instead of where `hob fit` ranks it first.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlaceFlags {
    /// Graphics cards of the chat model, such as Vulkan0 or CUDA0,CUDA1; cpu: none; all: every card, or without a card integrated graphics
    #[arg(long, value_name = "NAMES")]
    pub(crate) device: Option<CardUse>,
    /// Layers of the chat model on graphics cards, the output layer included
    #[arg(long, value_name = "N")]
    pub(crate) gpu_layers: Option<u16>,
    /// Layers of the chat model that keep their experts in the system's memory
    #[arg(long = "cpu-moe", value_name = "N")]
    pub(crate) cpu_moe_layers: Option<u16>,
}

/// The resolved settings. They are written as a configuration file in which these keys are filled in. Secrets are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Settings {
    pub(crate) home: PathBuf,
    pub(crate) server: ServerSettings,
    pub(crate) speech: SpeechSettings,
    pub(crate) chat: ChatSettings,
    pub(crate) transcription: TranscriptionSettings,
    pub(crate) realtime: RealtimeSection,
    pub(crate) wyoming: WyomingSettings,
    /// The section as written: it has no default of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) memory: MemorySection,
    /// Further chat models by name.
    #[serde(rename = "model", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) models: BTreeMap<String, ChatSettings>,
    pub(crate) ledger: LedgerSection,
    pub(crate) dev: DevSettings,
    /// Commands of teams may run without a sandbox. A flag only: a file could be forgotten.
    #[serde(skip)]
    pub(crate) allow_danger: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerSettings {
    pub(crate) listen: Listen,
    pub(crate) allow_remote: bool,
    pub(crate) api_key: KeySource,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) tls: TlsSettings,
    pub(crate) text_chars_max: NonZeroU32,
    pub(crate) requests_max: NonZeroU16,
    /// For `/benchmarks`.
    pub(crate) records: Option<PathBuf>,
    pub(crate) pipelines: PipelinesSettings,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SpeechSettings {
    /// The name of a stored model.
    pub(crate) model: String,
    pub(crate) default_voice: String,
    pub(crate) threads: Threads,
    pub(crate) espeak: Espeak,
    /// The lexicon as written; `wire_up::lexicon` checks it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) lexicon: BTreeMap<String, String>,
}

/// Number of threads of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// Chosen for this machine by the engine's measured default.
    Measured,
    Fixed(NonZeroUsize),
}

impl Threads {
    /// The value in the configuration: 0 leaves the choice to the engine.
    pub(crate) fn requested(self) -> usize {
        match self {
            Threads::Measured => 0,
            Threads::Fixed(threads) => threads.get(),
        }
    }

    fn new(written: u16) -> Threads {
        NonZeroUsize::new(usize::from(written)).map_or(Threads::Measured, Threads::Fixed)
    }
}

impl Serialize for Threads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.requested().serialize(serializer)
    }
}

/// Whether hob uses espeak-ng for unknown words, and which program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Espeak {
    Never,
    Program(PathBuf),
}

impl Espeak {
    fn new(written: &Path) -> Espeak {
        if written.as_os_str().is_empty() {
            Espeak::Never
        } else {
            Espeak::Program(written.to_path_buf())
        }
    }
}

impl Serialize for Espeak {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Espeak::Never => "".serialize(serializer),
            Espeak::Program(program) => program.serialize(serializer),
        }
    }
}

/// Where the API key comes from. The file is read when the key is needed, not before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeySource {
    None,
    Environment(Secret),
    File(PathBuf),
}

impl KeySource {
    /// # Errors
    /// The file cannot be read, or contains no key.
    pub(crate) fn read(&self) -> CliResult<Option<Secret>> {
        let (text, from) = match self {
            KeySource::None => return Ok(None),
            KeySource::Environment(secret) => {
                (secret.expose().to_owned(), "HOB_API_KEY".to_owned())
            }
            KeySource::File(path) => (read_key(path)?, path.display().to_string()),
        };
        let key = text.lines().next().unwrap_or_default().trim();
        if key.is_empty() || key.len() as u64 > KEY_BYTES_MAX {
            return Err(Failure::usage(format!("{from} holds no API key"))
                .hint("put the key on its first line, or remove the setting"));
        }
        Ok(Some(Secret::new(key)))
    }

    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            KeySource::File(path) => Some(path.clone()),
            KeySource::None | KeySource::Environment(_) => None,
        }
    }
}

fn read_key(path: &Path) -> CliResult<String> {
    read_text(path, KEY_BYTES_MAX).map_err(|error| {
        Failure::usage(format!("cannot read the API key: {error}"))
            .hint("check server.api_key_file")
    })
}

impl Settings {
    /// # Errors
    /// There is no home folder for models and none was named, or a model's table is wrong.
    pub(crate) fn resolve(
        flags: &Overrides,
        environment: &Environment,
        written: &LoadedConfig,
    ) -> CliResult<Settings> {
        let chat = ChatSettings::resolve(flags, environment, written);
        let server = server(flags, environment, written)?;
        let speech = speech(flags, environment, written);
        let transcription = TranscriptionSettings::resolve(flags, environment, written, chat.load);
        let taken = [
            (chat.model.name(), "the model of [chat]"),
            // This name leads to any speech model.
            (DEFAULT_SPEECH.to_owned(), "the voice"),
            (speech.model.clone(), "the model of [speech]"),
            (transcription.model.name(), "the model of [transcription]"),
        ];
        Ok(Settings {
            home: home(flags, environment, written)?,
            wyoming: WyomingSettings::resolve(flags, written, &server),
            server,
            speech,
            transcription,
            realtime: written.config.realtime.clone(),
            memory: written.config.memory.clone(),
            models: memory::models((&chat, flags), &taken, environment, written)?,
            chat,
            ledger: written.config.ledger.clone(),
            dev: DevSettings::resolve(written, &environment.folders),
            allow_danger: flags.allow_danger,
        })
    }

    /// The folder of recorded conversations, if they are recorded.
    pub(crate) fn recordings(&self) -> Option<PathBuf> {
        self.realtime.record.then(|| self.home.join("conversations"))
    }

    /// In the folder of models.
    pub(crate) fn kept_voices_file(&self) -> PathBuf {
        self.home.join("kept_voices.txt")
    }

    /// In the folder of models.
    pub(crate) fn ledger_file(&self) -> PathBuf {
        self.home.join("ledger.sqlite3")
    }
}

impl Serialize for ServerSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let files = match &self.tls {
            TlsSettings::Files { certificate, key } => Some((certificate.clone(), key.clone())),
            TlsSettings::Off | TlsSettings::LocalAuthority => None,
        };
        let (tls_certificate, tls_key) = files.unzip();
        let section = ServerSection {
            listen: Some(self.listen),
            allow_remote: Some(self.allow_remote),
            api_key_file: self.api_key.file(),
            allowed_hosts: Some(self.allowed_hosts.clone()),
            tls: Some(self.tls != TlsSettings::Off),
            tls_certificate,
            tls_key,
            text_chars_max: Some(self.text_chars_max),
            requests_max: Some(self.requests_max),
            records: self.records.clone(),
            pipelines: self.pipelines.as_written(),
        };
        section.serialize(serializer)
    }
}

/// Writes a value as its text.
fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Writes a time as the configuration file has it.
fn as_keep_alive<S: Serializer>(time: &KeepAlive, serializer: S) -> Result<S::Ok, S::Error> {
    KeepAliveText(*time).serialize(serializer)
}

fn home(
    flags: &Overrides,
    environment: &Environment,
    written: &LoadedConfig,
) -> CliResult<PathBuf> {
    let folders = &environment.folders;
    let typed = flags.home.as_ref().or(environment.hob_home.as_ref());
    let from_file = || written.config.home.as_ref().map(|home| written.resolve(home, folders));
    let default = || folders.data.as_ref().map(|data| data.join("hob"));
    typed.map(|home| folders.working.join(home)).or_else(from_file).or_else(default).ok_or_else(
        || {
            Failure::usage("this user has no home folder, so there is no folder for models")
                .hint("give one with --home, HOB_HOME, or home in hob.toml")
        },
    )
}

fn server(
    flags: &Overrides,
    environment: &Environment,
    written: &LoadedConfig,
) -> CliResult<ServerSettings> {
    let (file, folders) = (&written.config.server, &environment.folders);
    let typed = flags.records.as_ref().map(|records| folders.working.join(records));
    let in_file = || file.records.as_ref().map(|records| written.resolve(records, folders));
    let hosts = if flags.allowed_hosts.is_empty() {
        file.allowed_hosts.clone().unwrap_or_default()
    } else {
        flags.allowed_hosts.clone()
    };
    Ok(ServerSettings {
        listen: listen(flags, environment, file.listen)?,
        allow_remote: flags.allow_remote || file.allow_remote.unwrap_or(false),
        api_key: key_source(environment, written),
        allowed_hosts: hosts,
        tls: TlsSettings::resolve(flags, environment, written)?,
        text_chars_max: file.text_chars_max.unwrap_or(DEFAULT_TEXT_CHARS_MAX),
        requests_max: file.requests_max.unwrap_or(DEFAULT_REQUESTS_MAX),
        records: typed.or_else(in_file),
        pipelines: PipelinesSettings::resolve(written),
    })
}

fn listen(flags: &Overrides, environment: &Environment, file: Option<Listen>) -> CliResult<Listen> {
    let from_environment = || environment.hob_listen.as_deref().map(str::parse::<Listen>);
    match flags.listen.map(Ok).or_else(from_environment) {
        Some(listen) => listen.map_err(|error| Failure::usage(format!("HOB_LISTEN: {error}"))),
        None => Ok(file.unwrap_or_default()),
    }
}

fn key_source(environment: &Environment, written: &LoadedConfig) -> KeySource {
    match (&environment.hob_api_key, &written.config.server.api_key_file) {
        (Some(key), _) => KeySource::Environment(key.clone()),
        (None, Some(path)) => KeySource::File(written.resolve(path, &environment.folders)),
        (None, None) => KeySource::None,
    }
}

fn speech(flags: &Overrides, environment: &Environment, written: &LoadedConfig) -> SpeechSettings {
    let file = &written.config.speech;
    let model = flags.speech_model.as_ref().or(file.model.as_ref());
    SpeechSettings {
        model: model.map_or(DEFAULT_SPEECH, String::as_str).to_owned(),
        default_voice: file.default_voice.clone().unwrap_or_else(|| DEFAULT_VOICE.to_owned()),
        threads: Threads::new(flags.threads.or(file.threads).unwrap_or(0)),
        espeak: espeak(file, environment, written),
        lexicon: file.lexicon.clone(),
    }
}

/// A bare name is looked for on the PATH; anything with a folder in it is a path from the file.
fn espeak(file: &SpeechSection, environment: &Environment, written: &LoadedConfig) -> Espeak {
    match &file.espeak {
        None => Espeak::new(Path::new(DEFAULT_ESPEAK)),
        Some(program) if program.components().count() > 1 => {
            Espeak::Program(written.resolve(program, &environment.folders))
        }
        Some(program) => Espeak::new(program),
    }
}

/// Threads of the speech engine: as requested, or every core up to four. On two cores, the second makes the vocoder
/// 1.7 times as fast (17.3 against 10.0 ms per frame). More than two were not measured.
pub(crate) fn speech_threads(requested: usize) -> usize {
    const THREADS_MAX: usize = 4;
    if requested > 0 {
        return requested;
    }
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS_MAX))
}

#[cfg(test)]
pub(crate) mod tests;
