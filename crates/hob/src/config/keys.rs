//! The keys that exist, taken from the schema, and the refusal of those that do not.
//! Serde refuses them too, but knows neither where a key moved to nor what was probably meant.

use std::ops::Range;
use std::path::Path;

use hob_core::nearest;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::{place, schema};
use crate::failure::Failure;

/// Stands for a name of the user's own: `upstream.NAME.url`.
pub(crate) const ANY_NAME: &str = "NAME";

/// One key of the file, as the reference page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// With its table: `server.listen`.
    pub(crate) path: String,
    /// What it takes: `string`, `integer`, `boolean`, `array`, or `table`.
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
        let (mut known, mut written) = (self.path.split('.'), split(path));
        loop {
            match (known.next(), written.next()) {
                (None, None) => return true,
                (Some(known), Some(written)) if known == written || known == ANY_NAME => {}
                _ => return false,
            }
        }
    }

    /// Empty for keys outside any.
    pub(crate) fn table(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
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

/// The keys that hob does not know, in their order: where each begins, and its refusal with the nearest key
/// that hob knows. What does not parse is reported by the caller, with serde's message.
pub(super) fn unknown(text: &str, path: &Path) -> Vec<(usize, Failure)> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let known = known_keys();
    let mut unknown = all_unknown(root.get_ref(), "", &known);
    unknown.sort_by_key(|(_, start)| *start);
    let refused = |(key, start): (String, usize)| {
        let place = place::of(text, path, Some(start..start));
        (start, refusal(&key, &place, &known))
    };
    unknown.into_iter().map(refused).collect()
}

fn all_unknown(table: &DeTable<'_>, prefix: &str, known: &[Key]) -> Vec<(String, usize)> {
    let mut unknown: Vec<(String, usize)> = Vec::new();
    for (name, value) in table {
        let name_shown = shown(name.get_ref());
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

/// Names with dots in them are in quotes, as in the file.
fn shown(name: &str) -> String {
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

/// Where a key stands, or the innermost table around it that is there.
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

fn refusal(key: &str, place: &str, known: &[Key]) -> Failure {
    let failure = Failure::usage(format!("{place}: '{key}' is not a setting of hob"));
    match suggestion(key, known) {
        Some(meant) => failure.hint(format!("did you mean '{meant}'?")),
        None => failure.hint("`hob config schema` and docs/reference/config.md list them all"),
    }
}

/// A key in the wrong table is the likeliest mistake, then half a name (`voice` for
/// `default_voice`), then a slip of the finger. Of keys with one name, that of the same table.
fn suggestion(key: &str, known: &[Key]) -> Option<String> {
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
    // Among neighbours, a slip of the finger is likelier than another table.
    let neighbours = || known.iter().filter(|known| known.table() == table).map(|k| k.name());
    let beside = || {
        let near = nearest(name, neighbours(), 1);
        known.iter().find(|known| {
            known.table() == table && near.first().is_some_and(|near| near == known.name())
        })
    };
    let same = elsewhere.filter(|known| known.table() == table);
    same.or_else(beside).or(elsewhere).or_else(half).or_else(slip).map(|known| known.path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "[alias.\"gpt-4.1\"]\npik = \"x\"\n",
                "2:1",
                "alias.\"gpt-4.1\".pik",
                Some("alias.NAME.pick"),
            ),
            ("[aliases.x]\nto = []\n", "1:2", "aliases", Some("alias")),
            ("colour_of_the_house = 1\n", "1:1", "colour_of_the_house", None),
        ];
        for (text, at, key, meant) in rows {
            let (_, failure) = unknown(text, Path::new("h.toml")).remove(0);
            assert_eq!(failure.sentence, format!("h.toml:{at}: '{key}' is not a setting of hob"));
            let hint = failure.hint.unwrap_or_default();
            match meant {
                Some(meant) => assert_eq!(hint, format!("did you mean '{meant}'?")),
                None => assert!(hint.contains("list them all"), "{hint}"),
            }
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
