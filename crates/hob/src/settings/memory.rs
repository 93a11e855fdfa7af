//! The settings of the shared memory and of `[model.NAME]`.
//! Rejects names that are already used, with their line in the file.

use std::collections::BTreeMap;

use super::chat::draft_model;
use super::{ChatSettings, Environment, ModelChoice, Overrides};
use crate::config::{BytesText, ChatSection, LoadAt, LoadedConfig, MemorySection, quoted};
use crate::failure::{CliResult, Failure};

impl MemorySection {
    /// `None`: the memory that the system has free.
    pub(crate) fn max_bytes(&self) -> Option<u64> {
        self.max.map(|BytesText(bytes)| bytes.get())
    }
}

/// The models of `[model.NAME]`, by name. `taken` has the names of the other local models, of all kinds: a name
/// means one model, also in aliases and lists.
///
/// # Errors
/// A table without a model, or a name that is not allowed.
pub(super) fn models(
    (chat, flags): (&ChatSettings, &Overrides),
    taken: &[(String, &str)],
    environment: &Environment,
    written: &LoadedConfig,
) -> CliResult<BTreeMap<String, ChatSettings>> {
    let tables = written.config.model.iter();
    tables
        .map(|(name, table)| {
            check_name(name, taken, written)?;
            let model = choice(name, table, environment, written)?;
            let settings = chat.further(table, model);
            let load = if flags.chat_on_demand { LoadAt::FirstRequest } else { settings.load };
            let draft_model = draft_model(table, &environment.folders, written);
            Ok((name.clone(), ChatSettings { load, draft_model, ..settings }))
        })
        .collect()
}

fn choice(
    name: &str,
    table: &ChatSection,
    environment: &Environment,
    written: &LoadedConfig,
) -> CliResult<ModelChoice> {
    let Some(model) = &table.model else {
        let reason = "it has no model; set `model` to a name from `hob models`, or to the path of a GGUF file";
        return Err(wrong(name, reason, written));
    };
    Ok(ModelChoice::new(model, |path| written.resolve(path, &environment.folders)))
}

fn check_name(name: &str, taken: &[(String, &str)], written: &LoadedConfig) -> CliResult<()> {
    if name.is_empty() || name.contains('/') {
        return Err(wrong(name, "a model's name must not be empty or contain a slash", written));
    }
    match taken.iter().find(|(taken, _)| taken == name) {
        Some((_, whose)) => Err(wrong(name, &format!("{whose} has this name already"), written)),
        None => Ok(()),
    }
}

fn wrong(name: &str, reason: &str, written: &LoadedConfig) -> Failure {
    let key = format!("model.{}", quoted(name));
    Failure::usage(format!("{}: {key}: {reason}", written.place(&key)))
}
