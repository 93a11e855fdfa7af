//! The known keys, taken from the schema, and the errors for unknown ones.
//! Serde rejects unknown keys too, but it cannot suggest the right one.

use std::ops::Range;
use std::path::Path;

use hob_core::nearest;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::{position, schema};
use crate::failure::Failure;

/// Stands for a name that the user chooses: `upstream.NAME.url`.
pub(crate) const ANY_NAME: &str = "NAME";

/// A key of the file, for the reference page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// With its table: `server.listen`.
    pub(crate) path: String,
    /// The type of its value: `string`, `integer`, `boolean`, `array`, or `table`.
    pub(crate) kind: String,
    pub(crate) meaning: String,
}

impl Key {
    /// Without its table.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// Whether this is the key at a path of a file.
    fn is_at(&self, path: &str) -> bool {
        is_at(&self.path, path)
    }

    /// The table of the key; empty for top-level keys.
    pub(crate) fn table(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
    }
}

/// Keys of earlier versions, and their new names.
const RENAMED: [(&str, &str); 19] = [
    ("dev.conformance", "mock_unknown_models"),
    ("defaults.connect", "connect_timeout"),
    ("defaults.first_token", "first_token_timeout"),
    ("defaults.idle", "idle_timeout"),
    ("defaults.total", "total_timeout"),
    ("defaults.load", "load_timeout"),
    ("upstream.NAME.connect", "connect_timeout"),
    ("upstream.NAME.first_token", "first_token_timeout"),
    ("upstream.NAME.idle", "idle_timeout"),
    ("upstream.NAME.queue", "queue_size"),
    ("upstream.NAME.list", "list_models"),
    ("alias.NAME.pick", "strategy"),
    ("alias.NAME.effort", "reasoning_effort"),
    ("alias.NAME.commit", "fallback_until"),
    ("alias.NAME.on_break", "on_stream_error"),
    ("alias.NAME.patience", "queue_timeout"),
    ("alias.NAME.first_token", "first_token_timeout"),
    ("alias.NAME.idle", "idle_timeout"),
    ("alias.NAME.total", "total_timeout"),
];

/// Keys of `[keys.NAME]` as other programs name them, and hob's.
const MEANT: [(&str, &str); 3] = [
    ("keys.NAME.key", "keys.NAME.secret"),
    ("keys.NAME.api_key", "keys.NAME.secret"),
    ("keys.NAME.models", "keys.NAME.aliases"),
];

/// Whether a path of a file is the key `known`, in which [`ANY_NAME`] stands for any name.
fn is_at(known: &str, path: &str) -> bool {
    let (mut known, mut written) = (known.split('.'), split(path));
    loop {
        match (known.next(), written.next()) {
            (None, None) => return true,
            (Some(known), Some(written)) if known == written || known == ANY_NAME => {}
            _ => return false,
        }
    }
}

/// All keys, tables included.
pub(crate) fn known_keys() -> Vec<Key> {
    let mut keys = Vec::new();
    collect(schema().as_value(), "", &mut keys);
    keys
}

fn collect(schema: &Value, table: &str, keys: &mut Vec<Key>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if table.is_empty() { name.clone() } else { format!("{table}.{name}") };
        let named = &property["additionalProperties"];
        let is_table = property.get("properties").is_some() || named.get("properties").is_some();
        let kind = if is_table { "table".to_owned() } else { kind_of(&property["type"]) };
        let meaning = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        keys.push(Key { path: path.clone(), kind, meaning: meaning.clone() });
        collect(property, &path, keys);
        for special in property["items"]["anyOf"].as_array().into_iter().flatten() {
            collect(special, &path, keys);
        }
        if named.get("properties").is_some() {
            let path = format!("{path}.{ANY_NAME}");
            keys.push(Key { path: path.clone(), kind: "table".to_owned(), meaning });
            collect(named, &path, keys);
        }
    }
}

/// An optional key's type is `[its type, "null"]`.
fn kind_of(kind: &Value) -> String {
    let first = kind.as_array().and_then(|kinds| kinds.first()).unwrap_or(kind);
    first.as_str().unwrap_or("any").to_owned()
}

/// Returns the first `count_max` unknown keys: the byte at which each begins, and an error that suggests the
/// nearest known key. The caller reports text that does not parse.
pub(super) fn unknown(text: &str, path: &Path, count_max: usize) -> Vec<(usize, Failure)> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let known = known_keys();
    let mut unknown = all_unknown(root.get_ref(), "", &known);
    unknown.sort_by_key(|(_, start)| *start);
    // Each error needs a search among all known keys, and a file may have 100,000 unknown ones.
    unknown.truncate(count_max);
    let refused = |(key, start): (String, usize)| {
        let position = position::of(text, path, Some(start..start));
        (start, refusal(&key, &position, &known))
    };
    unknown.into_iter().map(refused).collect()
}

fn all_unknown(table: &DeTable<'_>, prefix: &str, known: &[Key]) -> Vec<(String, usize)> {
    let mut unknown: Vec<(String, usize)> = Vec::new();
    for (name, value) in table {
        let name_shown = quoted(name.get_ref());
        let path = match prefix {
            "" => name_shown,
            prefix => format!("{prefix}.{name_shown}"),
        };
        match (known.iter().find(|key| key.is_at(&path)), value.get_ref()) {
            (None, _) => unknown.push((path, name.span().start)),
            (Some(key), DeValue::Table(inner)) if key.kind == "table" => {
                unknown.extend(all_unknown(inner, &path, known));
            }
            (Some(_), _) => {}
        }
    }
    unknown
}

/// A name as part of a path: with dots in it, it is in quotes, as in the file.
pub(crate) fn quoted(name: &str) -> String {
    if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() }
}

/// The parts of a path; dots within quotes belong to a name.
fn split(path: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let parts = path.split(move |c: char| {
        is_quoted ^= c == '"';
        c == '.' && !is_quoted
    });
    parts.map(|part| part.trim_matches('"'))
}

/// The bytes of a key, or of the innermost table around it that exists.
pub(super) fn span(text: &str, key: &str) -> Option<Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let (mut table, mut found) = (root.get_ref(), None);
    for part in split(key) {
        let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref() == part) else {
            break;
        };
        found = Some(name.span());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    found
}

fn refusal(key: &str, position: &str, known: &[Key]) -> Failure {
    if let Some((_, new)) = RENAMED.iter().find(|(old, _)| is_at(old, key)) {
        return Failure::usage(format!("{position}: '{key}' was renamed to '{new}'"));
    }
    let failure = Failure::usage(format!("{position}: '{key}' is not a setting of hob"));
    match suggestion(key, known) {
        Some(meant) => failure.hint(format!("did you mean '{meant}'?")),
        None => failure.hint("`hob config schema` and docs/reference/config.md list them all"),
    }
}

/// Suggests, in this order: what other programs call so, the same name in another table, half a name (`voice` for `default_voice`),
/// a misspelt name. A key of the same table wins.
fn suggestion(key: &str, known: &[Key]) -> Option<String> {
    if let Some((_, meant)) = MEANT.iter().find(|(other, _)| is_at(other, key)) {
        return Some((*meant).to_owned());
    }
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let table = known.iter().find(|known| known.is_at(table)).map_or(table, |known| &known.path);
    let mut known: Vec<&Key> = known.iter().collect();
    known.sort_by_key(|known| known.table() != table);
    let elsewhere = known.iter().find(|known| known.name() == name);
    let half = || known.iter().find(|known| known.name().split('_').any(|part| part == name));
    let slip = || {
        let near = nearest(name, known.iter().map(|known| known.name()), 1);
        known.iter().find(|known| near.first().is_some_and(|near| near == known.name()))
    };
    // Within a table, a misspelt name is likelier than a wrong table.
    let neighbours = || known.iter().filter(|known| known.table() == table).map(|k| k.name());
    let same_table = || {
        let near = nearest(name, neighbours(), 1);
        known.iter().find(|known| {
            known.table() == table && near.first().is_some_and(|near| near == known.name())
        })
    };
    let same = elsewhere.filter(|known| known.table() == table);
    same.or_else(same_table)
        .or(elsewhere)
        .or_else(half)
        .or_else(slip)
        .map(|known| known.path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unknown_keys_of_a_file_are_refused_up_to_a_limit() {
        let found = unknown("z = 1\ny = 1\nx = 1\n", Path::new("h.toml"), 2);
        assert_eq!(found.iter().map(|(start, _)| *start).collect::<Vec<_>>(), [0, 6]);
    }

    #[test]
    fn unknown_keys_are_refused_with_place_and_nearest() {
        let rows = [
            ("[server]\nlisen = \"x\"\n", "2:1", "server.lisen", Some("server.listen")),
            ("\nlisten = \"x\"\n", "2:1", "listen", Some("server.listen")),
            ("[sever]\nlisten = \"x\"\n", "1:2", "sever", Some("server")),
            ("[server]\nspeech.threads = 1\n", "2:1", "server.speech", Some("speech")),
            ("speech = { thread = 1 }\n", "1:12", "speech.thread", Some("speech.threads")),
            (
                "[speech]\ntreads = 1\n[server]\nx = 1\n",
                "2:1",
                "speech.treads",
                Some("speech.threads"),
            ),
            ("[chat]\ntreads = 1\n", "2:1", "chat.treads", Some("chat.threads")),
            ("[speech]\nvoice = 1\n", "2:1", "speech.voice", Some("speech.default_voice")),
            ("[upstream.gpu]\nslot = 1\n", "2:1", "upstream.gpu.slot", Some("upstream.NAME.slots")),
            (
                "[alias.\"gpt-4.1\"]\nstratgy = \"x\"\n",
                "2:1",
                "alias.\"gpt-4.1\".stratgy",
                Some("alias.NAME.strategy"),
            ),
            ("[aliases.x]\nto = []\n", "1:2", "aliases", Some("alias")),
            ("[keys.phone]\nkey = \"x\"\n", "2:1", "keys.phone.key", Some("keys.NAME.secret")),
            ("colour_of_the_house = 1\n", "1:1", "colour_of_the_house", None),
        ];
        for (text, at, key, meant) in rows {
            let (_, failure) = unknown(text, Path::new("h.toml"), 1).remove(0);
            assert_eq!(failure.sentence, format!("h.toml:{at}: '{key}' is not a setting of hob"));
            let hint = failure.hint.unwrap_or_default();
            match meant {
                Some(meant) => assert_eq!(hint, format!("did you mean '{meant}'?")),
                None => assert!(hint.contains("list them all"), "{hint}"),
            }
        }
    }

    #[test]
    fn a_renamed_key_names_its_new_name() {
        let keys = known_keys();
        for (old, new) in RENAMED {
            let (table, old_name) = old.rsplit_once('.').expect("a table");
            let text = format!("[{table}]\n{old_name} = 1\n");
            let (_, failure) = unknown(&text, Path::new("h.toml"), 1).remove(0);
            assert_eq!(failure.sentence, format!("h.toml:2:1: '{old}' was renamed to '{new}'"));
            assert!(keys.iter().any(|key| key.path == format!("{table}.{new}")), "{table}.{new}");
        }
        for (other, meant) in MEANT {
            assert!(keys.iter().any(|key| key.path == meant), "{other}: {meant}");
        }
    }

    #[test]
    fn each_key_says_what_it_takes_and_why() {
        let keys = known_keys();
        let paths: Vec<&str> = keys.iter().map(|key| key.path.as_str()).collect();
        for path in ["home", "server", "server.allow_remote", "chat.threads", "speech.threads"] {
            assert!(paths.contains(&path), "{path} is not in {paths:?}");
        }
        for key in keys {
            assert!(!key.meaning.is_empty(), "{} has no description", key.path);
            assert_ne!(key.kind, "any", "{}", key.path);
        }
    }
}
