//! Another gateway's configuration becomes a `hob.toml`, and what could not be carried over becomes
//! notes. Text in, text out: no file, no environment, no terminal. Nothing is dropped silently, and no
//! key that stands in the source is repeated anywhere.

mod draft;
mod litellm;
mod llama_swap;
mod node;
mod parameters;
mod reading;
mod secret;
mod upstreams;
mod written;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

use node::Node;
use reading::{Place, Record};

/// Larger than any configuration that somebody wrote; what is larger is another file.
pub(crate) const BYTES_MAX: usize = 4 << 20;

/// A `hob.toml`, and what the source says beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Imported {
    pub(crate) toml: String,
    pub(crate) kind: SourceKind,
    /// In the order of the source.
    pub(crate) notes: Vec<Note>,
}

/// Whose configuration was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    LiteLlm,
    LlamaSwap,
}

/// What became of one key of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    /// Where it stands in the source: `model_list[2].litellm_params.rpm`.
    pub(crate) path: String,
    pub(crate) fate: Fate,
    /// Why it was dropped, or how it was changed. Never holds a key or a password.
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fate {
    /// hob.toml says nothing of it.
    Dropped,
    /// hob.toml says something like it.
    Changed,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImportError {
    #[error("{name} has more than {BYTES_MAX} bytes, and a configuration has not")]
    TooLarge { name: String },
    #[error("{name}:{line}:{column}: {message}")]
    Yaml { name: String, line: u64, column: u64, message: String },
    #[error(
        "{name} is neither LiteLLM's configuration (model_list, litellm_settings or router_settings \
         at the top) nor llama-swap's (models with a cmd, or peers); it has {found}"
    )]
    NeitherKind { name: String, found: String },
    #[error("{name}: the macros in {path} expand without an end")]
    MacroBomb { name: String, path: String },
}

/// Carries a configuration over; `name` is what the file is called.
///
/// # Errors
/// It is no YAML, or neither LiteLLM's nor llama-swap's.
pub(crate) fn import(text: &str, name: &str) -> Result<Imported, ImportError> {
    if text.len() > BYTES_MAX {
        return Err(ImportError::TooLarge { name: name.to_owned() });
    }
    let root = node::parse(text, name)?;
    let kind = SourceKind::of(&root).ok_or_else(|| ImportError::NeitherKind {
        name: name.to_owned(),
        found: root.top_keys(),
    })?;
    let record = Record::default();
    let (draft, root, reasons) = match kind {
        SourceKind::LiteLlm => {
            (litellm::carry(&Place::root(&root, &record)), root, litellm::REASONS)
        }
        SourceKind::LlamaSwap => {
            let (root, used) = llama_swap::expanded(root)
                .map_err(|path| ImportError::MacroBomb { name: name.to_owned(), path })?;
            let draft = llama_swap::carry(&Place::root(&root, &record), &used);
            (draft, root, llama_swap::REASONS)
        }
    };
    let heading = format!("Made by `hob config import` from {kind}'s {name}.");
    let notes = record.notes(&root, reasons);
    Ok(Imported { toml: written::toml(&draft, &heading), kind, notes })
}

impl SourceKind {
    fn of(root: &Node) -> Option<SourceKind> {
        let has = |key: &str| root.get(key).is_some();
        if ["model_list", "litellm_settings", "router_settings"].into_iter().any(has) {
            return Some(SourceKind::LiteLlm);
        }
        let runs = |model: &Node| model.get("cmd").is_some() || model.get("proxy").is_some();
        let holds_such = |key: &str| {
            root.get(key).is_some_and(|table| table.entries().iter().any(|(_, node)| runs(node)))
        };
        (holds_such("models") || holds_such("peers")).then_some(SourceKind::LlamaSwap)
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
