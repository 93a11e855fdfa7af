//! Reads the environment of hob, once.
//! Other crates read `NO_COLOR` and the terminal's width, and pass a few variables on to child processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use etcetera::BaseStrategy;

use super::Secret;
use crate::folders::Folders;

/// The environment as plain data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    pub(crate) hob_home: Option<PathBuf>,
    /// As typed: `Settings::resolve` parses it and reports errors.
    pub(crate) hob_listen: Option<String>,
    pub(crate) hob_api_key: Option<Secret>,
    pub(crate) hob_log: Option<String>,
    pub(crate) hf_endpoint: Option<String>,
    pub(crate) hf_token: Option<Secret>,
    pub(crate) ollama_models: Option<PathBuf>,
    pub(crate) ollama_registry: Option<String>,
    /// Every variable, because a configuration may name any of them for a key.
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// Where to look for programs.
    pub(crate) path: OsString,
    pub(crate) folders: Folders,
}

/// Name and meaning of each variable, for the reference pages.
pub(crate) const VARIABLES: [(&str, &str); 12] = [
    ("HOB_HOME", "the folder of models, request log and calibration, as `--home`"),
    ("HOB_LISTEN", "the address of `hob serve`, for the server and for other commands"),
    ("HOB_API_KEY", "the key that `hob serve` requires and that other commands send"),
    ("HOB_LOG", "log filter for stderr, such as `info` or `hob_server=debug`"),
    ("HF_TOKEN", "token for private and gated repositories of Hugging Face; sent to no other host"),
    ("HF_ENDPOINT", "address of a mirror of Hugging Face, for `hob pull` and `hob fit`"),
    ("HOB_OLLAMA_REGISTRY", "address of a mirror of Ollama's registry"),
    ("OLLAMA_MODELS", "Ollama's folder of models, if it is not the default"),
    (
        "HTTPS_PROXY",
        "a proxy for `hob pull` and `hob fit`, also `ALL_PROXY`, and SOCKS as \
         `socks5h://HOST:PORT`; `NO_PROXY` names hosts that need none",
    ),
    ("SSL_CERT_FILE", "on Linux, a file of certificates to trust instead of the system's"),
    ("NO_COLOR", "any value: no colours"),
    ("XDG_CONFIG_HOME", "the folder of `hob/hob.toml`"),
];

impl Environment {
    pub(crate) fn read() -> Environment {
        Environment {
            hob_home: variable("HOB_HOME").map(PathBuf::from),
            hob_listen: text("HOB_LISTEN"),
            hob_api_key: text("HOB_API_KEY").map(Secret::new),
            hob_log: text("HOB_LOG"),
            hf_endpoint: text("HF_ENDPOINT"),
            hf_token: text("HF_TOKEN").map(Secret::new),
            ollama_registry: text("HOB_OLLAMA_REGISTRY"),
            ollama_models: variable("OLLAMA_MODELS").map(PathBuf::from),
            secrets: secrets(),
            path: variable("PATH").unwrap_or_default(),
            folders: Folders::read(),
        }
    }
}

impl Folders {
    fn read() -> Folders {
        let strategy = etcetera::base_strategy::choose_native_strategy().ok();
        Folders {
            working: std::env::current_dir().unwrap_or_default(),
            home: strategy.as_ref().map(|folders| folders.home_dir().to_path_buf()),
            config: strategy.as_ref().map(BaseStrategy::config_dir),
            data: strategy.as_ref().map(BaseStrategy::data_dir),
        }
    }
}

/// An empty variable counts as not set: people unset one for a single command in this way.
fn variable(name: &str) -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn secrets() -> BTreeMap<String, Secret> {
    let all = std::env::vars_os();
    let texts = all.filter_map(|(name, value)| {
        Some((name.into_string().ok()?, Secret::new(value.into_string().ok()?)))
    });
    texts.collect()
}

fn text(name: &str) -> Option<String> {
    variable(name).map(|value| value.to_string_lossy().into_owned())
}
