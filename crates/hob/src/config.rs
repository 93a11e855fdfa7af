//! The configuration as it is written in `hob.toml`: every key optional, unknown keys refused.
//! The comments here are the reference page and the JSON schema; what is left out is settled in
//! `settings`.

mod chat;
mod expected;
mod gateway;
mod keys;
mod memory;
mod place;
mod problems;
mod time;
mod words;

use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

pub(crate) use chat::{ChatSection, DevSection, KeepAliveText, KvTypeName, LoadAt};
pub(crate) use gateway::{
    AliasSection, CommitName, DefaultsSection, KeySection, Named, OnBreakName, SpecialTarget,
    TargetEntry, UpstreamSection, WhileLoadingName,
};
pub(crate) use keys::{Key, known_keys};
pub(crate) use memory::{BytesText, MemorySection};
pub(crate) use time::TimeText;
pub(crate) use words::{EffortName, KindName, PickName};

use crate::bounded_file::read_text;
use crate::failure::{Failure, Outcome};
use crate::folders::Folders;
use crate::listen::Listen;

/// Bytes of a configuration.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The file's name, in the working folder or in the user's configuration folder.
pub(crate) const FILE_NAME: &str = "hob.toml";

/// The configuration of hob. Each key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConfigFile {
    /// Where models are kept. Relative to this file. Default: the platform's data folder, such as
    /// `~/.local/share/hob`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<PathBuf>,
    /// What `hob serve` answers, and to whom.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) server: ServerSection,
    /// How hob speaks.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) speech: SpeechSection,
    /// How hob chats.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) chat: ChatSection,
    /// What all models of this hob share.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) memory: MemorySection,
    /// Further models that chat, each under the name that requests give, and in a process of its own.
    /// `model` says which; what else is left out is as in `chat`, but for `load`, which is
    /// `first_request`.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) model: Named<ChatSection>,
    /// What hob remembers of requests: numbers and names, no texts.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) ledger: LedgerSection,
    /// For tests of programs that talk to hob.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) dev: DevSection,
    /// How long servers are waited for, unless they or an alias have times of their own.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) defaults: DefaultsSection,
    /// Other servers, each under a name.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) upstream: Named<UpstreamSection>,
    /// Names that lead to models, each with those who answer.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) alias: Named<AliasSection>,
    /// Who may use this server, each under a name. Without any, and without a key in `server`, everybody
    /// who reaches it.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) keys: Named<KeySection>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerSection {
    /// The address to listen on: `127.0.0.1:8484`, `[::1]:8484`, or just a port, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) listen: Option<Listen>,
    /// Listen on an address that other machines reach, even without an API key. Whoever reaches it
    /// can then use this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow_remote: Option<bool>,
    /// A file whose first line is the key that clients must send. Relative to this file. The
    /// variable `HOB_API_KEY` wins over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// Names, other than this machine's loopback names, under which browsers may call this server;
    /// `*` lets every name in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// The longest text of one speech request, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text_chars_max: Option<NonZeroU32>,
    /// How many speech requests are let in at once; the next is told when to come back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests_max: Option<NonZeroU16>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SpeechSection {
    /// The voice of `hob say` when it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default_voice: Option<String>,
    /// Threads that the speech engine computes with; 0 lets hob choose for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<u16>,
    /// The `espeak-ng` program, asked for words that the dictionary does not have; an empty text
    /// means never to run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) espeak: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LedgerSection {
    /// Write a row for each request into `ledger.sqlite3` beside the models; `hob ledger` reads it. What
    /// `hob bench` asks is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enabled: Option<bool>,
    /// For how many days rows are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) days: Option<NonZeroU16>,
}

fn is_default<T: Default + PartialEq>(section: &T) -> bool {
    *section == T::default()
}

/// A configuration and the file it came from; without one, everything is left to the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    pub(crate) config: ConfigFile,
    pub(crate) path: Option<PathBuf>,
    /// As it stands in the file, to say where something is.
    pub(crate) text: String,
    /// Of the file before it was read: what is changed meanwhile is another file.
    pub(crate) seen: Option<Fingerprint>,
}

/// When a file was changed, and its length: reading it twice a second would wake the disk.
pub(crate) type Fingerprint = (SystemTime, u64);

pub(crate) fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let file = fs_err::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

impl Written {
    /// Reads the named file, or the first that exists of the working folder's and the user's.
    pub(crate) fn read(named: Option<&Path>, folders: &Folders) -> Outcome<Written> {
        let Some(path) = named.map(Path::to_path_buf).or_else(|| find(folders)) else {
            return Ok(Written::default());
        };
        let seen = fingerprint(&path);
        let text = read_text(&path, CONFIG_BYTES_MAX).map_err(|error| {
            Failure::usage(format!("the configuration cannot be read: {error}"))
                .hint("name another with --config, or leave it out: hob needs none")
        })?;
        let config = parse(&text, &path)?;
        Ok(Written { config, path: Some(path), text, seen })
    }

    /// Where a key or a table stands, such as `alias.fast.to`: as much of it as is there.
    pub(crate) fn place(&self, key: &str) -> String {
        let path = self.path.as_deref().unwrap_or(Path::new(FILE_NAME));
        place::of(&self.text, path, keys::span(&self.text, key))
    }

    /// Paths in the file are meant from where the file is; `~/` is the user's home.
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
    let settings = schemars::generate::SchemaSettings::default()
        .with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<ConfigFile>()
}

fn find(folders: &Folders) -> Option<PathBuf> {
    let users = folders.config.as_ref().map(|folder| folder.join("hob").join(FILE_NAME));
    let working = folders.working.join(FILE_NAME);
    [Some(working), users].into_iter().flatten().find(|path| path.is_file())
}

/// # Errors
/// All that is wrong in the file.
fn parse(text: &str, path: &Path) -> Outcome<ConfigFile> {
    let found = problems::found(text, path);
    match Failure::together(found.problems) {
        Some(failure) => Err(failure),
        None => Ok(found.config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text, Path::new("hob.toml")).expect_err("a refusal").sentence
    }

    #[test]
    fn every_key_can_be_written_and_read_back() {
        let text = "home = \"models\"\n[server]\nlisten = \"9000\"\nallow_remote = true\n\
            api_key_file = \"key\"\nallowed_hosts = [\"nas\"]\ntext_chars_max = 5\n\
            requests_max = 2\n[speech]\ndefault_voice = \"bm_fable\"\nthreads = 2\nespeak = \"\"\n\
            [chat]\nmodel = \"a.gguf\"\ncontext_tokens = 4096\nkv_type = \"q8_0\"\nthreads = 2\n\
            parallel = 2\nbatch_tokens = 64\ngpu_layers = 9\ncpu_moe_layers = 2\nkeep_alive = \"5m\"\n\
            load = \"first_request\"\nthinking_tokens_max = 100\nanswer_tokens_max = 900\nrequests_max = 3\n\
            pinned = true\n[memory]\nmax = \"6GB\"\n[model.NAME]\nmodel = \"b.gguf\"\n[ledger]\nenabled = false\ndays = 7\n[dev]\nconformance = true\n\
            [defaults]\nconnect = \"1s\"\nfirst_token = \"45s\"\nidle = \"250ms\"\ntotal = \"10m\"\n\
            load = \"5m\"\n[upstream.NAME]\nkind = \"ollama\"\nurl = \"http://a\"\n\
            key = \"env:A\"\nconnect = \"2s\"\nfirst_token = \"46s\"\nidle = \"31s\"\nslots = 4\n\
            queue = 9\nlist = true\nnum_ctx = 8192\n[alias.NAME]\npick = \"warm\"\n\
            to = [\"a/b\", { target = \"c/d\", context = 5, capabilities = [\"tools\"], weight = 2.0,\
            set = { temperature = 0.5 }, default = { top_p = 0.5 }, drop = [\"min_p\"] }]\n\
            effort = \"none\"\ndrop = [\"seed\"]\ncommit = \"content\"\non_break = \"continue\"\nwhile_loading = \"wait\"\n\
            patience = \"3s\"\nretries = 2\ncooldown = \"9s\"\nkeep_alive = \"5m\"\n\
            hedge_after_ms = 300\nfirst_token = \"50s\"\nidle = \"20s\"\ntotal = \"90s\"\n\
            set = { min_p = 0.1 }\ndefault = { max_tokens = 5 }\n\
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
    fn what_is_wrong_is_said_with_its_line() {
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
                "hob.toml:2:11: 'q5' is no type of a KV cache; known are f16",
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
