//! Values that both programs have, as `hob.toml` writes them: parameters of requests, targets and times.
//! The thinking effort hides among the parameters in several spellings, and becomes a key of its own.

use std::time::Duration;

use hob_core::chat::Effort;
use serde_json::{Map, Value};

use super::source::{Notes, Number, under};
use crate::config::{DetailedTarget, EffortName, TargetEntry, TimeText};

pub(super) type Table = Map<String, Value>;

/// The parameters of the table at `at`, or `None` if none is left.
pub(super) fn to_toml(table: &Table, at: &str, notes: &mut Notes) -> Option<toml::Table> {
    let mut parameters = toml::Table::new();
    for (name, value) in table {
        let path = under(at, name);
        if name == "model" {
            notes.dropped(path, "the target already names the model");
        } else if is_secret(name) || holds_secret(value) {
            notes.dropped(path, "it looks like a secret, and hob.toml holds none");
        } else if let Ok(value) = toml::Value::try_from(value) {
            parameters.insert(name.clone(), value);
        } else {
            notes.dropped(path, "it contains an empty value, which TOML cannot express");
        }
    }
    (!parameters.is_empty()).then_some(parameters)
}

/// Removes the thinking effort from the parameters of a request and returns it.
pub(super) fn take_effort(parameters: &mut Table) -> Option<EffortName> {
    if let Some(effort) = take(parameters, "reasoning_effort", effort_of) {
        return Some(effort);
    }
    let Some(Value::Object(template)) = parameters.get_mut("chat_template_kwargs") else {
        return None;
    };
    let off = |value: &Value| (value == &Value::Bool(false)).then_some(EffortName(Effort::None));
    let effort = take(template, "reasoning_effort", effort_of)
        .or_else(|| take(template, "enable_thinking", off))
        .or_else(|| take(template, "thinking", off));
    if template.is_empty() {
        parameters.remove("chat_template_kwargs");
    }
    effort
}

pub(super) fn effort_of(value: &Value) -> Option<EffortName> {
    EffortName::try_from(value.as_str()?.to_owned()).ok()
}

fn take<T>(table: &mut Table, name: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let found = read(table.get(name)?)?;
    table.remove(name);
    Some(found)
}

/// Whether a name is likely to be a secret's. `max_tokens` is not.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    ["key", "secret", "password", "authorization"].iter().any(|end| name.ends_with(end))
        || name == "token"
        || name.ends_with("_token")
}

fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Object(table) => {
            table.iter().any(|(name, value)| is_secret(name) || holds_secret(value))
        }
        Value::Array(items) => items.iter().any(holds_secret),
        _ => false,
    }
}

/// Seconds as hob.toml writes them.
pub(super) fn time(Number(seconds): Number, key: &str, notes: &mut Notes) -> Option<TimeText> {
    let time = Duration::try_from_secs_f64(seconds).ok().and_then(|time| {
        let ms = u64::try_from(time.as_millis()).ok()?;
        format!("{ms}ms").parse().ok()
    });
    if time.is_none() {
        notes.dropped(
            key,
            "hob takes times above 0 and up to a day; 0 means no limit in the source",
        );
    }
    time
}

pub(super) fn entry(target: DetailedTarget) -> TargetEntry {
    let plain = DetailedTarget { target: target.target.clone(), ..DetailedTarget::default() };
    if target == plain {
        TargetEntry::Name(target.target)
    } else {
        TargetEntry::Detailed(Box::new(target))
    }
}
