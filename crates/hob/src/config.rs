//! The configuration as `hob.toml` contains it: every key is optional, unknown keys are errors.
//! The doc comments here become the reference page and the JSON schema. `settings` fills in defaults.

mod chat;
mod device;
mod expected;
mod gateway;
mod keys;
mod memory;
mod pipelines;
mod position;
mod problems;
mod realtime;
mod text_or_number;
mod time;
mod transcription;
mod words;
mod wyoming;

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hob_agents::ModelPrice;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use chat::{ChatSection, DevSection, KeepAliveText, LoadAt, Speculation};
pub(crate) use device::DeviceText;
pub(crate) use gateway::{
    AliasSection, DefaultsSection, DetailedTarget, FallbackUntilName, KeySection,
    OnStreamErrorName, TargetEntry, UpstreamSection, WhileLoadingName,
};
pub(crate) use keys::{Key, known_keys, quoted};
pub(crate) use memory::{BytesText, MemorySection};
pub(crate) use pipelines::PipelinesSection;
pub(crate) use realtime::RealtimeSection;
pub(crate) use time::TimeText;
pub(crate) use transcription::TranscriptionSection;
pub(crate) use words::{EffortName, KindName, KvTypeName, StrategyName};
pub(crate) use wyoming::WyomingSection;

use crate::bounded_file::read_text;
use crate::failure::{CliResult, Failure};
use crate::folders::Folders;
use crate::listen::Listen;
use problems::ParsedFile;

const DEFAULT_LEDGER_DAYS: NonZeroU16 = NonZeroU16::new(90).expect("not zero");
/// Bytes of a configuration.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The file's name, in the working folder or in the user's configuration folder.
pub(crate) const FILE_NAME: &str = "hob.toml";

/// Tables by name.
pub(crate) type Named<T> = BTreeMap<String, T>;

/// The configuration of hob. Each key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConfigFile {
    /// The folder of models, relative to this file. Default: the platform's data folder, such as
    /// `~/.local/share/hob`.
    pub(crate) home: Option<PathBuf>,
    /// The server of `hob serve`.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) server: ServerSection,
    /// Speech.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) speech: SpeechSection,
    /// The default chat model.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) chat: ChatSection,
    /// The transcription model.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) transcription: TranscriptionSection,
    /// Spoken conversations: `WS /v1/realtime`.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) realtime: RealtimeSection,
    /// Ports for Home Assistant.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) wyoming: WyomingSection,
    /// The memory that all local models share.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) memory: MemorySection,
    /// Further chat models, each in a process of its own. NAME is the name that requests use, and `model`
    /// is required. Other keys default to those of `chat`, except `load`, which defaults to
    /// `first_request`.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) model: Named<ChatSection>,
    /// The request log: numbers and names, never texts.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) ledger: LedgerSection,
    /// Options for tests of client programs.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) dev: DevSection,
    /// Time limits for upstreams and aliases that set none.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) defaults: DefaultsSection,
    /// Other servers, by name.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) upstream: Named<UpstreamSection>,
    /// Your own model names, each with a list of targets.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) alias: Named<AliasSection>,
    /// Prices of models, for the cost limits of teams. The name is `"UPSTREAM/MODEL"`, or `"UPSTREAM/*"` for all other
    /// models of an upstream.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) price: Named<ModelPrice>,
    /// Keys of clients, by name. Without any, and without a key in `server`, every client that reaches the
    /// server may use it.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) keys: Named<KeySection>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerSection {
    /// The address to listen on: `127.0.0.1:8484`, `[::1]:8484`, or just a port, as text.
    #[schemars(with = "Option<String>")]
    pub(crate) listen: Option<Listen>,
    /// Allow an address that other machines can reach, even without an API key. Every machine that
    /// reaches it can then use this server.
    pub(crate) allow_remote: Option<bool>,
    /// A file whose first line is the key that clients must send, relative to this file. The
    /// environment variable `HOB_API_KEY` wins over it.
    pub(crate) api_key_file: Option<PathBuf>,
    /// Host names under which browsers may call this server, besides the loopback names; `*` allows
    /// every name. Web pages of hosts that are named here may read answers.
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// Encrypt connections, with certificates of an authority that hob makes for this machine. Programs on this machine
    /// may still connect without encryption.
    pub(crate) tls: Option<bool>,
    /// Encrypt connections with this certificate: a PEM file with its chain, relative to this file.
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The PEM file with the certificate's private key, relative to this file.
    pub(crate) tls_key: Option<PathBuf>,
    /// Maximum characters of one speech request.
    pub(crate) text_chars_max: Option<NonZeroU32>,
    /// Maximum concurrent requests of each speech model. Further ones get `503` with `Retry-After`. `[chat]` and
    /// `[transcription]` have limits of their own.
    pub(crate) requests_max: Option<NonZeroU16>,
    /// The folder of benchmark records that `/benchmarks` shows, relative to this file. Plans are in the folder `plans`
    /// next to it. Default: `bench/records` in the working folder if it exists, otherwise in the folder of models.
    pub(crate) records: Option<PathBuf>,
    /// Teams as Pipelines of Open WebUI.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) pipelines: PipelinesSection,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SpeechSection {
    /// The speech model: the name of a stored one, such as `kokoro-4bit` of `hob quantize`.
    pub(crate) model: Option<String>,
    /// The voice of `hob say` without `--voice`, and of API requests that name no voice. It may be a blend such as
    /// `af_heart(2)+af_bella(1)`, or the name of a kept one.
    pub(crate) default_voice: Option<String>,
    /// CPU threads of the speech engine; 0 lets hob choose.
    pub(crate) threads: Option<u16>,
    /// The `espeak-ng` program, which pronounces words that the dictionary does not have, and which Spanish, French,
    /// Hindi, Italian and Portuguese voices need. An empty text turns it off.
    pub(crate) espeak: Option<PathBuf>,
    /// How words are said: NAME is the word, and the value is other words, such as `"sequel"`, or IPA between slashes,
    /// such as `"/ˈsiːkwəl/"`. A word in lower case also stands for its forms with capitals.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) lexicon: Named<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LedgerSection {
    /// Write a row for each request to `ledger.sqlite3` in the folder of models. `hob ledger` prints it.
    /// Requests of `hob bench` are left out, except with a key that has `tokens_per_day`.
    pub(crate) enabled: bool,
    /// Number of days to keep rows.
    pub(crate) days: NonZeroU16,
}

impl Default for LedgerSection {
    fn default() -> LedgerSection {
        LedgerSection { enabled: true, days: DEFAULT_LEDGER_DAYS }
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(section: &T) -> bool {
    *section == T::default()
}

/// A configuration and its file. Without a file all settings have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LoadedConfig {
    pub(crate) config: ConfigFile,
    pub(crate) path: Option<PathBuf>,
    /// The file's text, to find the line of a key.
    pub(crate) text: String,
    /// The file's fingerprint before it was read, so that a change during reading is noticed.
    pub(crate) seen: Option<Fingerprint>,
}

/// Modification time and length. Reading the file itself twice a second would wake the disk.
pub(crate) type Fingerprint = (SystemTime, u64);

pub(crate) fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let file = fs_err::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

impl LoadedConfig {
    /// Reads the named file, or that of the working folder, or that of the user.
    pub(crate) fn read(named: Option<&Path>, folders: &Folders) -> CliResult<LoadedConfig> {
        let (loaded, problems) = LoadedConfig::read_with_problems(named, folders)?;
        Failure::together(problems).map_or(Ok(loaded), Err)
    }

    /// Like [`LoadedConfig::read`], but leaves out the keys that are wrong, and also returns these problems in the order of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read_with_problems(
        named: Option<&Path>,
        folders: &Folders,
    ) -> CliResult<(LoadedConfig, Vec<Failure>)> {
        let Some(path) = named.map(Path::to_path_buf).or_else(|| find(folders)) else {
            return Ok((LoadedConfig::default(), Vec::new()));
        };
        let seen = fingerprint(&path);
        let text = read_text(&path, CONFIG_BYTES_MAX).map_err(|error| {
            Failure::usage(format!("cannot read the configuration: {error}"))
                .hint("give another file with --config, or none: every setting has a default")
        })?;
        let ParsedFile { config, problems } = problems::parse(&text, &path);
        Ok((LoadedConfig { config, path: Some(path), text, seen }, problems))
    }

    /// The file and line of a key such as `alias.fast.to`, or of the nearest table around it.
    pub(crate) fn place(&self, key: &str) -> String {
        let path = self.path.as_deref().unwrap_or(Path::new(FILE_NAME));
        position::of(&self.text, path, keys::span(&self.text, key))
    }

    /// Resolves a path relative to the file's folder; `~/` is the user's home.
    pub(crate) fn resolve(&self, path: &Path, folders: &Folders) -> PathBuf {
        if let (Ok(rest), Some(home)) = (path.strip_prefix("~"), &folders.home) {
            return home.join(rest);
        }
        let folder = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        folders.working.join(folder).join(path)
    }
}

/// The JSON schema of the file, for editors and for the reference page.
pub(crate) fn schema() -> Schema {
    let settings = SchemaSettings::default()
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(RecursiveTransform(without_null_default));
    settings.into_generator().into_root_schema_for::<ConfigFile>()
}

/// TOML has no null: a key without a default has none in the schema, too.
fn without_null_default(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

fn find(folders: &Folders) -> Option<PathBuf> {
    let users = folders.config.as_ref().map(|folder| folder.join("hob").join(FILE_NAME));
    let working = folders.working.join(FILE_NAME);
    [Some(working), users].into_iter().flatten().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, path: &Path) -> CliResult<ConfigFile> {
        let ParsedFile { config, problems } = problems::parse(text, path);
        Failure::together(problems).map_or(Ok(config), Err)
    }

    fn refused(text: &str) -> String {
        parse(text, Path::new("hob.toml")).expect_err("a refusal").sentence
    }

    #[test]
    fn every_key_can_be_written_and_read_back() {
        let text = "home = \"models\"\n[server]\nlisten = \"9000\"\nallow_remote = true\n\
            api_key_file = \"key\"\nallowed_hosts = [\"nas\"]\ntls = true\ntls_certificate = \"a.crt\"\ntls_key = \"a.key\"\ntext_chars_max = 5\n\
            requests_max = 2\nrecords = \"runs\"\n[server.pipelines]\nlisten = \"9099\"\naccept_default_key = true\n[speech]\nmodel = \"kokoro-4bit\"\ndefault_voice = \"bm_fable\"\nthreads = 2\nespeak = \"\"\nlexicon = { NAME = \"sequel\" }\n\
            [chat]\nmodel = \"a.gguf\"\ncontext_tokens = 4096\nkv_type = \"q8_0\"\nthreads = 2\n\
            parallel = 2\nbatch_tokens = 64\ndevice = \"Vulkan0\"\ngpu_layers = 9\ncpu_moe_layers = 2\nkeep_alive = \"5m\"\n\
            load = \"first_request\"\nthinking_tokens_max = 100\nanswer_tokens_max = 900\nspeculation = \"off\"\ndraft_model = \"d.gguf\"\nrequests_max = 3\n\
            pinned = true\n[transcription]\nmodel = \"a.bin\"\nthreads = 2\ndevice = \"cpu\"\nkeep_alive = \"5m\"\nload = \"first_request\"\n\
            requests_max = 3\n[realtime]\nsessions_max = 2\nlisten_while_speaking = false\nrecord = true\n[wyoming]\nenabled = true\nlisten = \"::1\"\nspeech_port = 1\ntranscription_port = 2\n\
            speech_model = \"a\"\ntranscription_model = \"b\"\nannounce = false\n[memory]\nmax = \"6GB\"\n[model.NAME]\nmodel = \"b.gguf\"\n[ledger]\nenabled = false\ndays = 7\n[dev]\nmock_unknown_models = true\nscripts = { NAME = \"a.jsonl\" }\n\
            [defaults]\nconnect_timeout = \"1s\"\nfirst_token_timeout = \"45s\"\nidle_timeout = \"250ms\"\ntotal_timeout = \"10m\"\n\
            load_timeout = \"5m\"\n[upstream.NAME]\nkind = \"ollama\"\nurl = \"http://a\"\n\
            key = \"env:A\"\nconnect_timeout = \"2s\"\nfirst_token_timeout = \"46s\"\nidle_timeout = \"31s\"\nslots = 4\n\
            queue_size = 9\nlist_models = true\nnum_ctx = 8192\n[alias.NAME]\nstrategy = \"warm\"\n\
            to = [\"a/b\", { target = \"c/d\", context = 5, capabilities = [\"tools\"], weight = 2.0,\
            set = { temperature = 0.5 }, default = { top_p = 0.5 }, drop = [\"min_p\"] }]\n\
            reasoning_effort = \"none\"\ndrop = [\"seed\"]\nfallback_until = \"content\"\non_stream_error = \"continue\"\nwhile_loading = \"wait\"\n\
            queue_timeout = \"3s\"\nretries = 2\ncooldown = \"9s\"\nkeep_alive = \"5m\"\n\
            hedge_after_ms = 300\nfirst_token_timeout = \"50s\"\nidle_timeout = \"20s\"\ntotal_timeout = \"90s\"\n\
            set = { min_p = 0.1 }\ndefault = { max_tokens = 5 }\n[price.NAME]\ninput = 1.5\noutput = 2.0\n\
            [keys.NAME]\nsecret = \"env:B\"\naliases = [\"NAME\"]\nrequests_per_minute = 5\n\
            concurrency = 2\ntokens_per_day = 1000\n";
        let config = parse(text, Path::new("hob.toml")).expect("a good file");
        assert_eq!(config.server.listen, Some(Listen(([127, 0, 0, 1], 9000).into())));
        let written = toml::to_string(&config).expect("TOML");
        assert_eq!(toml::from_str::<ConfigFile>(&written), Ok(config));
        for key in known_keys() {
            assert!(written.contains(key.name()), "{} is not in:\n{written}", key.path);
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let rows = [
            ("[server]\nlisten = 8484\n", "hob.toml:2:10: invalid type: integer"),
            ("[server]\nlisten = \"x\"\n", "hob.toml:2:10: 'x' is not an address"),
            ("[server]\nrequests_max = 0\n", "hob.toml:2:16: invalid value: integer `0`"),
            ("[server]\n\ntext_chars_max = -1", "hob.toml:3:18: invalid value"),
            (
                "[speech]\nthreads = -1\n",
                "hob.toml:2:11: invalid value: integer `-1`, expected a number from 0 to 65535",
            ),
            (
                "[chat]\nkv_type = \"q5\"\n",
                "hob.toml:2:11: 'q5' is not a KV cache type (expected f16",
            ),
            (
                "[chat]\ndevice = \"CUDA0,CUDA0\"\n",
                "hob.toml:2:10: the device CUDA0 is named twice",
            ),
            ("[chat]\nkeep_alive = \"soon\"\n", "hob.toml:2:14: 'soon' is not a time; write 30s"),
            (
                "[memory]\nmax = \"all\"\n",
                "hob.toml:2:7: 'all' is not an amount of memory; write 6GB",
            ),
            ("[speech\n", "hob.toml:1:8: "),
            ("server = 3\n", "hob.toml:1:10: invalid type: integer `3`"),
        ];
        for (text, begins) in rows {
            let sentence = refused(text);
            assert!(sentence.starts_with(begins), "{text:?} gave {sentence:?}");
        }
    }
}
