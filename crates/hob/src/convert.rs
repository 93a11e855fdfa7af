//! Converts the configuration of LiteLLM or llama-swap into a `hob.toml`. Text in, text out: it reads no
//! file and no environment. Each key that is not carried over gets a note, and no secret is repeated.

mod litellm;
mod llama_swap;
mod parameters;
mod servers;
mod source;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::config::ConfigFile;
use source::Notes;

/// Maximum bytes of a source file. A larger file is not a configuration.
pub(crate) const BYTES_MAX: usize = 4 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Imported {
    pub(crate) config: ConfigFile,
    pub(crate) kind: SourceKind,
    /// Sorted by path.
    pub(crate) notes: Vec<Note>,
}

/// The program whose configuration was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    LiteLlm,
    LlamaSwap,
}

/// A key of the source that is not carried over, or not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    /// Where the key stands in the source: `model_list[2].litellm_params.rpm`.
    pub(crate) path: String,
    pub(crate) fate: Fate,
    /// The reason. It never contains a value of the source.
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fate {
    /// hob.toml has nothing for this key.
    Dropped,
    /// hob.toml has something similar.
    Changed,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImportError {
    #[error("{name} has more than {BYTES_MAX} bytes, which is too large for a configuration")]
    TooLarge { name: String },
    #[error("{name}:{line}:{column}: {message}")]
    Yaml { name: String, line: u64, column: u64, message: String },
    #[error(
        "{name} is not a configuration of LiteLLM (expected model_list, litellm_settings or \
         router_settings) or of llama-swap (expected models with a cmd, or peers); it has {found}"
    )]
    UnknownKind { name: String, found: String },
    #[error(
        "{name}: the macros of {path} expand to more than {} bytes",
        llama_swap::EXPANDED_BYTES_MAX
    )]
    MacroTooLong { name: String, path: String },
}

/// Converts a configuration. `name` is the file's name, for messages.
///
/// # Errors
/// The text is not YAML, or not a configuration of a known program.
pub(crate) fn import(text: &str, name: &str) -> Result<Imported, ImportError> {
    if text.len() > BYTES_MAX {
        return Err(ImportError::TooLarge { name: name.to_owned() });
    }
    let root = source::parse(text, name)?;
    let kind = SourceKind::of(&root).ok_or_else(|| ImportError::UnknownKind {
        name: name.to_owned(),
        found: source::top_keys(&root),
    })?;
    let mut notes;
    let config = match kind {
        SourceKind::LiteLlm => {
            notes = Notes::new(litellm::REASONS);
            litellm::convert(root, &mut notes)
        }
        SourceKind::LlamaSwap => {
            notes = Notes::new(llama_swap::REASONS);
            llama_swap::convert(root, &mut notes)
                .map_err(|path| ImportError::MacroTooLong { name: name.to_owned(), path })?
        }
    };
    Ok(Imported { config, kind, notes: notes.into_sorted() })
}

impl SourceKind {
    fn of(root: &Value) -> Option<SourceKind> {
        if ["model_list", "litellm_settings", "router_settings"]
            .iter()
            .any(|key| root.get(key).is_some())
        {
            return Some(SourceKind::LiteLlm);
        }
        let runs = |entry: &Value| entry.get("cmd").is_some() || entry.get("proxy").is_some();
        let has_servers = |key: &str| {
            root.get(key)?.as_object()?.values().any(runs).then_some(SourceKind::LlamaSwap)
        };
        has_servers("models").or_else(|| has_servers("peers"))
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SourceKind::LiteLlm => "LiteLLM",
            SourceKind::LlamaSwap => "llama-swap",
        })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            Fate::Dropped => "dropped",
            Fate::Changed => "changed",
        };
        write!(f, "{}: {fate}: {}", self.path, self.text)
    }
}
