//! What of a JSON schema an answer can be held to. The rest is taken out and named, so that the
//! caller can refuse it (`"strict": true`) or go on without it.

use llguidance::derivre::RegexBuilder;
use serde_json::{Map, Value, json};

use super::{UNSUPPORTED, is_idle};
use crate::chat::constraint::bounds::PATTERN_BYTES_MAX;

const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

/// How much is given up beyond the keywords that no grammar enforces. What these give up can be
/// enforced in some schemas, so it is tried first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::chat::constraint) enum Relaxation {
    #[default]
    Nothing,
    /// `oneOf` becomes `anyOf`.
    OneOf,
    /// Objects may have any number of members, too.
    MemberCounts,
    /// The whole schema.
    All,
}

impl Relaxation {
    /// Those that keep the schema, from the least on.
    pub(in crate::chat::constraint) const KEEPING: [Relaxation; 3] =
        [Relaxation::Nothing, Relaxation::OneOf, Relaxation::MemberCounts];
}

/// A keyword that was taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chat::constraint) struct TakenOut {
    /// Path of the schema that has the keyword: `.properties.tags`. Empty at the root.
    pub(in crate::chat::constraint) path: String,
    pub(in crate::chat::constraint) keyword: &'static str,
}

/// The schema without what cannot be enforced.
pub(in crate::chat::constraint) fn sift(
    schema: &Value,
    relaxation: Relaxation,
) -> (Value, Vec<TakenOut>) {
    let mut sieve = Sieve { root: schema, relaxation, path: String::new(), taken: Vec::new() };
    let sifted = sieve.schema(schema);
    (sifted, sieve.taken)
}

struct Sieve<'a> {
    root: &'a Value,
    relaxation: Relaxation,
    path: String,
    taken: Vec<TakenOut>,
}

impl Sieve<'_> {
    fn schema(&mut self, schema: &Value) -> Value {
        let Value::Object(members) = schema else { return schema.clone() };
        let mut sifted = Map::new();
        for (name, value) in members {
            if let Some((name, value)) = self.keyword(name, value) {
                sifted.entry(name).or_insert(value);
            }
        }
        Value::Object(sifted)
    }

    /// The keyword as it stays; none where it is taken out.
    fn keyword(&mut self, name: &str, value: &Value) -> Option<(String, Value)> {
        if is_idle(name, value) {
            return None;
        }
        if let Some(keyword) = UNSUPPORTED.iter().find(|keyword| **keyword == name) {
            return self.take_out(keyword);
        }
        let kept = match (name, value) {
            ("type", value) => return self.types(value),
            ("$ref", Value::String(target)) if self.is_found(target) => value.clone(),
            ("$ref", _) => return self.take_out("$ref"),
            ("$schema", Value::String(draft)) if !is_known_draft(draft) => return None,
            ("pattern", Value::String(pattern)) if is_regular(pattern) => value.clone(),
            ("pattern", _) => return self.take_out("pattern"),
            ("oneOf", Value::Array(_)) if self.relaxation >= Relaxation::OneOf => {
                self.take_out("oneOf");
                return Some(("anyOf".to_owned(), self.list("oneOf", value)));
            }
            ("minProperties", _) if self.relaxation >= Relaxation::MemberCounts => {
                return self.take_out("minProperties");
            }
            ("maxProperties", _) if self.relaxation >= Relaxation::MemberCounts => {
                return self.take_out("maxProperties");
            }
            ("patternProperties", Value::Object(schemas)) => {
                let (kept, odd): (Vec<_>, Vec<_>) =
                    schemas.iter().partition(|(pattern, _)| is_regular(pattern));
                if !odd.is_empty() {
                    self.take_out("patternProperties");
                }
                self.named(name, kept)
            }
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                self.named(name, schemas.iter().collect())
            }
            ("items" | "prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(_)) => {
                self.list(name, value)
            }
            ("items" | "additionalProperties" | "additionalItems", schema) => {
                self.within(name, |sieve| sieve.schema(schema))
            }
            _ => value.clone(),
        };
        Some((name.to_owned(), kept))
    }

    fn take_out(&mut self, keyword: &'static str) -> Option<(String, Value)> {
        self.taken.push(TakenOut { path: self.path.clone(), keyword });
        None
    }

    /// `"type": "any"` and the like allow what they please.
    fn types(&mut self, value: &Value) -> Option<(String, Value)> {
        let is_known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
        let kept = match value {
            Value::Array(names) if !names.is_empty() => names.iter().all(is_known),
            name => is_known(name),
        };
        if kept { Some(("type".to_owned(), value.clone())) } else { self.take_out("type") }
    }

    fn named(&mut self, keyword: &str, schemas: Vec<(&String, &Value)>) -> Value {
        let each = schemas.into_iter().map(|(name, schema)| {
            let place = format!("{keyword}.{name}");
            (name.clone(), self.within(&place, |sieve| sieve.schema(schema)))
        });
        Value::Object(each.collect())
    }

    fn list(&mut self, keyword: &str, schemas: &Value) -> Value {
        let each = schemas.as_array().into_iter().flatten().enumerate().map(|(at, schema)| {
            self.within(&format!("{keyword}[{at}]"), |sieve| sieve.schema(schema))
        });
        Value::Array(each.collect())
    }

    fn within<T>(&mut self, place: &str, sift: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(place);
        let sifted = sift(self);
        self.path.truncate(length);
        sifted
    }

    /// Whether the reference leads to a place of this schema.
    fn is_found(&self, target: &str) -> bool {
        match target.strip_prefix('#') {
            Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                self.root.pointer(pointer).is_some()
            }
            // An anchor of the schema, which the compiler knows.
            Some(_) => true,
            None => false,
        }
    }
}

fn is_known_draft(draft: &str) -> bool {
    ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"]
        .iter()
        .any(|known| draft.contains(known))
}

/// Whether the pattern is a regular language: look-around and back-references make others.
pub(in crate::chat::constraint) fn is_regular(pattern: &str) -> bool {
    let rewritten = llguidance::regex_to_lark(pattern, "dw");
    pattern.len() <= PATTERN_BYTES_MAX
        && RegexBuilder::new().mk_regex_for_serach(&rewritten).is_ok()
}

/// Names that an object's members need not differ from: those of any text.
pub(super) fn allows_any_name(names: &Value) -> bool {
    [json!(true), json!({}), json!({ "type": "string" })].contains(names)
}
