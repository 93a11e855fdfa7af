//! Reads a foreign YAML file into serde types. Keys that a type does not have, and values of a wrong type,
//! become notes instead of errors, so that one odd key does not stop an import.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Segment, Track};
use serde_saphyr::{budget, options};

use super::{Fate, ImportError, Note};

/// Maximum number of values, with repeated YAML aliases. The longest published example has 300.
const NODES_MAX: usize = 100_000;
/// Maximum bytes of text, with repeated YAML aliases.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Maximum nesting. A real configuration has six levels.
const DEPTH_MAX: usize = 32;

/// Why keys of these names are not carried over.
pub(super) type Reasons = &'static [(&'static [&'static str], &'static str)];

pub(super) struct Notes {
    reasons: Reasons,
    notes: Vec<Note>,
}

/// A number, or a text that holds one.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Number(pub(super) f64);

impl TryFrom<Value> for Number {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Number, &'static str> {
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        number.filter(|number| number.is_finite()).map(Number).ok_or("expected a number")
    }
}

/// # Errors
/// The position of what is not YAML or is over a limit. The line is not repeated: it may hold a secret.
pub(super) fn parse(text: &str, name: &str) -> Result<Value, ImportError> {
    let limits = budget! {
        max_nodes: NODES_MAX,
        max_total_scalar_bytes: TEXT_BYTES_MAX,
        max_depth: DEPTH_MAX,
    };
    let options = options! { budget: limits, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let location = error.location();
        ImportError::Yaml {
            name: name.to_owned(),
            line: location.map_or(1, |location| location.line()),
            column: location.map_or(1, |location| location.column()),
            message: yaml_message(&error),
        }
    })
}

/// Without the position, which the caller prints first, and without advice for programmers.
fn yaml_message(error: &serde_saphyr::Error) -> String {
    let message = error.to_string();
    if message.starts_with("budget breached")
        || message.starts_with("alias") && message.contains("limit")
    {
        return "the file is too large for a configuration (repeated YAML aliases count each time)"
            .to_owned();
    }
    let end = [" at line ", ", set ", "; use "].iter().filter_map(|end| message.find(end)).min();
    message[..end.unwrap_or(message.len())].replace(char::is_control, "\u{fffd}")
}

/// The first keys of the file, so that its owner recognises it.
pub(super) fn top_keys(root: &Value) -> String {
    let names: Vec<&str> =
        root.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    match names.as_slice() {
        [] => "no keys".to_owned(),
        names if names.len() > 6 => format!("{}, …", names[..6].join(", ")),
        names => names.join(", "),
    }
}

/// Reads `value`, which stands at the path `at`, as a `T`. Returns `None` if what is left after removing
/// the values of wrong types is still not a `T`.
pub(super) fn read<T: DeserializeOwned>(
    mut value: Value,
    at: &str,
    notes: &mut Notes,
) -> Option<T> {
    loop {
        let (mut track, mut unknown) = (Track::new(), Vec::new());
        let tracked = serde_path_to_error::Deserializer::new(value.clone(), &mut track);
        let error =
            match serde_ignored::deserialize(tracked, |path| unknown.push(ignored_steps(&path))) {
                Ok(read) => {
                    unknown.iter().for_each(|steps| notes.unknown(at, steps));
                    return Some(read);
                }
                Err(error) => error,
            };
        let steps: Vec<Step> = track.path().iter().filter_map(Step::of).collect();
        notes.dropped(joined(at, &steps), reason(&error));
        if !clear(&mut value, &steps) {
            return None;
        }
    }
}

/// One level of a path.
enum Step {
    Index(usize),
    Key(String),
}

impl Step {
    fn of(segment: &Segment) -> Option<Step> {
        match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        }
    }
}

fn ignored_steps(path: &serde_ignored::Path<'_>) -> Vec<Step> {
    use serde_ignored::Path;
    let (parent, step) = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, index } => (parent, Some(Step::Index(*index))),
        Path::Map { parent, key } => (parent, Some(Step::Key(key.clone()))),
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => (parent, None),
    };
    let mut steps = ignored_steps(parent);
    steps.extend(step);
    steps
}

fn joined(at: &str, steps: &[Step]) -> String {
    steps.iter().fold(at.to_owned(), |path, step| match step {
        Step::Index(index) => format!("{path}[{index}]"),
        Step::Key(name) => under(&path, name),
    })
}

/// The path of the key `name` in the table at `path`. A name with a dot is quoted.
pub(super) fn under(path: &str, name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let dot = if path.is_empty() { "" } else { "." };
    match !name.is_empty() && name.chars().all(is_plain) {
        true => format!("{path}{dot}{name}"),
        false => format!("{path}{dot}{name:?}"),
    }
}

/// The part of the message that names the expected type. The found value is left out, because it may be a secret.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.split_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None => message,
    }
}

/// Removes the value at a path, or the nearest one around it that is not removed yet.
fn clear(value: &mut Value, steps: &[Step]) -> bool {
    (1..=steps.len()).rev().any(|length| {
        let found = steps[..length].iter().try_fold(&mut *value, |value, step| match step {
            Step::Index(index) => value.get_mut(*index),
            Step::Key(key) => value.get_mut(key),
        });
        found.is_some_and(|found| !std::mem::replace(found, Value::Null).is_null())
    })
}

impl Notes {
    pub(super) fn new(reasons: Reasons) -> Notes {
        Notes { reasons, notes: Vec::new() }
    }

    pub(super) fn dropped(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.add(path.into(), Fate::Dropped, why.into());
    }

    pub(super) fn changed(&mut self, path: impl Into<String>, how: impl Into<String>) {
        self.add(path.into(), Fate::Changed, how.into());
    }

    /// Notes a key that no type has.
    pub(super) fn unknown_key(&mut self, at: &str, name: &str) {
        self.unknown(at, &[Step::Key(name.to_owned())]);
    }

    fn unknown(&mut self, at: &str, steps: &[Step]) {
        let named = steps.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        });
        let is_named =
            |(names, _): &&(&[&str], &str)| named.is_some_and(|key| names.contains(&key));
        let why =
            self.reasons.iter().find(is_named).map_or("hob has no such setting", |(_, why)| why);
        self.dropped(joined(at, steps), why);
    }

    fn add(&mut self, path: String, fate: Fate, text: String) {
        // Names of the source stand in a note, and a terminal shows it.
        let plain = |text: String| text.replace(char::is_control, "\u{fffd}");
        self.notes.push(Note { path: plain(path), fate, text: plain(text) });
    }

    /// By path, with `[2]` before `[10]`.
    pub(super) fn into_sorted(mut self) -> Vec<Note> {
        self.notes.sort_by_cached_key(|note| {
            let steps = note.path.split(['.', '[', ']']);
            steps.map(|step| (step.parse().unwrap_or(0_u64), step.to_owned())).collect::<Vec<_>>()
        });
        self.notes.dedup();
        self.notes
    }
}
