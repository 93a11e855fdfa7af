//! Why a model was not found or not understood, in one sentence with advice.
//! Names from files and responses are shortened and escaped when they are read.

use std::path::PathBuf;

use crate::fetch::to_do;
use crate::gguf::GgufError;
use crate::recipe::UnknownQuant;
use crate::safetensors::{ConfigError, SafetensorsError};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    #[error("{}: there is no such file or folder", path.display())]
    NoSuchPath { path: PathBuf },
    #[error("{at} cannot be read: {detail}")]
    Unreadable { at: String, detail: String },
    #[error("{at} has {bytes_max} bytes or more, which is more than any such file has")]
    TooLong { at: String, bytes_max: u64 },
    #[error("{at}: {error}")]
    Gguf { at: String, error: GgufError },
    #[error("{at}: {error}; hob knows only that its {tensors} tensors have {bytes} bytes")]
    NoShape { at: String, error: GgufError, tensors: usize, bytes: u64 },
    #[error("{at}: {error}")]
    Safetensors { at: String, error: SafetensorsError },
    #[error("{at}: {error}")]
    Config { at: String, error: ConfigError },
    #[error("{at} holds only the vision or audio tower of a model; name the model itself")]
    OnlyTower { at: String },
    #[error("{missing} is missing, one of {count} parts of the model")]
    MissingPart { missing: String, count: u32 },
    #[error("{at} is missing; hob needs it to interpret the tensors in that folder")]
    NoConfig { at: String },
    #[error("{at} has several models; name one of {}", listed(there))]
    Several { at: String, there: Vec<String> },
    #[error("{at} has both GGUF and safetensors files; name one of {}", listed(there))]
    Mixed { at: String, there: Vec<String> },
    #[error("{at} has no model that hob can read{}", match there.is_empty() {
        true => String::new(),
        false => format!(", only {}", listed(there)),
    })]
    NoModel { at: String, there: Vec<String> },
    #[error("{at} has no {quant}; there are {}", listed(there))]
    NoQuant { at: String, quant: String, there: Vec<String> },
    #[error(
        "{address} needs a token, or does not exist: check the name, or set HF_TOKEN to a token that may read it"
    )]
    Private { address: String },
    #[error(
        "{address} is gated: accept its terms there, and set HF_TOKEN to a token of that account"
    )]
    Gated { address: String },
    #[error("{address} has no such revision; name a branch, a tag or a commit, as owner/name@main")]
    NoRevision { address: String },
    #[error("{address} does not exist")]
    Missing { address: String },
    /// A server that is not the hub, and asks for a token.
    #[error(
        "{address} answered with status {status}; hob sends no token and no query to this server: download the file another way, and pull it from there"
    )]
    Closed { address: String, status: u16 },
    #[error("{address} answered with status {status}{}", to_do(*status))]
    Refused { address: String, status: u16 },
    #[error("{address} cannot be reached: {detail}")]
    Unreachable { address: String, detail: String },
    #[error("{at} is not a list of a repository's files: {detail}")]
    NoListing { at: String, detail: String },
    #[error("{at} is not a manifest of Ollama: {detail}")]
    NoManifest { at: String, detail: String },
    #[error("hob knows no model '{asked}'{}{}", registry_failure(registry.as_deref()), match near.is_empty() {
        true => "; give a file, an address, or owner/name on Hugging Face".to_owned(),
        false => format!("; did you mean {}?", near.join(" or ")),
    })]
    Unknown {
        asked: String,
        near: Vec<String>,
        /// Why Ollama's registry, which may have the model, did not answer.
        registry: Option<Box<FindError>>,
    },
    #[error("'{asked}' was not found:\n- {hub}\n- {registry}")]
    Nowhere { asked: String, hub: Box<FindError>, registry: Box<FindError> },
    #[error(
        "{at} is not a GGUF model, the only format of hob's engine; look for a repository with GGUF files"
    )]
    NotGguf { at: String },
    #[error(
        "{at} is incomplete at its source: {missing_bytes} bytes are missing, so it would not load"
    )]
    CutShort { at: String, missing_bytes: u64 },
    #[error(
        "{at}: the server does not state the file's length; download the file another way, and pull it from there"
    )]
    NoLength { at: String },
    #[error("'{name}' is not a valid model name (expected at most 80 letters, digits and -_.:/@)")]
    BadName { name: String },
    #[error(transparent)]
    UnknownQuant(#[from] UnknownQuant),
}

impl FindError {
    /// Whether another place may have the model.
    pub(super) fn may_be_elsewhere(&self) -> bool {
        matches!(
            self,
            FindError::Private { .. }
                | FindError::Closed { .. }
                | FindError::Missing { .. }
                | FindError::Refused { .. }
                | FindError::Unreachable { .. }
        )
    }

    /// Whether no place could be reached.
    pub fn is_network_error(&self) -> bool {
        match self {
            FindError::Unreachable { .. } | FindError::Refused { .. } => true,
            FindError::Nowhere { hub, registry, .. } => {
                hub.is_network_error() || registry.is_network_error()
            }
            FindError::Unknown { registry: Some(registry), .. } => registry.is_network_error(),
            _ => false,
        }
    }
}

fn registry_failure(registry: Option<&FindError>) -> String {
    registry.map_or_else(String::new, |error| format!(", and {error}"))
}

const LISTED_MAX: usize = 12;

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(LISTED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
