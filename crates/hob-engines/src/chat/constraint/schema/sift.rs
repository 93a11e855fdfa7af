//! Removes the parts of a JSON schema that hob cannot enforce, and lists them. With `"strict": true` the caller rejects
//! the request; otherwise it continues without them.

use llguidance::derivre::RegexBuilder;
use serde_json::{Map, Value, json};

use super::{UNSUPPORTED, each_schema, is_idle};
use crate::chat::constraint::bounds::PATTERN_BYTES_MAX;

const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

/// What is relaxed in addition to the keywords that no grammar enforces. Some schemas compile without it, so hob tries that
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::chat::constraint) enum Relaxation {
    #[default]
    Nothing,
    /// Replaces `oneOf` by `anyOf`.
    OneOf,
    /// Also allows any number of members in objects.
    MemberCounts,
    /// Ignores the whole schema.
    All,
}

impl Relaxation {
    /// The relaxations that keep the schema, the smallest first.
    pub(in crate::chat::constraint) const KEEPING: [Relaxation; 3] =
        [Relaxation::Nothing, Relaxation::OneOf, Relaxation::MemberCounts];
}

/// A keyword that was removed, or that allows no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chat::constraint) struct SchemaKeyword {
    /// Path of the schema that has the keyword: `.properties.tags`. Empty at the root.
    pub(in crate::chat::constraint) path: String,
    pub(in crate::chat::constraint) keyword: &'static str,
}

/// Returns the schema without the parts that cannot be enforced, and the removed keywords.
pub(in crate::chat::constraint) fn sift(
    schema: &Value,
    relaxation: Relaxation,
) -> (Value, Vec<SchemaKeyword>) {
    let mut sieve = Sieve { root: schema, relaxation, path: String::new(), taken: Vec::new() };
    let sifted = sieve.schema(schema);
    (sifted, sieve.taken)
}

struct Sieve<'a> {
    root: &'a Value,
    relaxation: Relaxation,
    path: String,
    taken: Vec<SchemaKeyword>,
}

impl Sieve<'_> {
    fn schema(&mut self, schema: &Value) -> Value {
        let Value::Object(members) = schema else { return schema.clone() };
        let mut sifted = Map::new();
        let required = members.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        for (name, value) in members {
            // Two members may get one name, so only one is certain in addition to the required ones.
            if name == "minProperties" && value.as_u64().is_some_and(|n| n > required as u64 + 1) {
                self.take_out("minProperties");
            } else if let Some((name, value)) = self.keyword(name, value) {
                sifted.entry(name).or_insert(value);
            }
        }
        Value::Object(sifted)
    }

    /// The keyword as it stays. `None` if it is removed.
    fn keyword(&mut self, name: &str, value: &Value) -> Option<(String, Value)> {
        if is_idle(name, value) {
            return None;
        }
        if let Some(keyword) = UNSUPPORTED.split_whitespace().find(|keyword| *keyword == name) {
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
                return Some(("anyOf".to_owned(), self.schemas("oneOf", value)));
            }
            ("minProperties", _) if self.relaxation >= Relaxation::MemberCounts => {
                return self.take_out("minProperties");
            }
            ("maxProperties", _) if self.relaxation >= Relaxation::MemberCounts => {
                return self.take_out("maxProperties");
            }
            ("patternProperties", Value::Object(schemas)) => {
                let kept: Map<String, Value> = schemas
                    .iter()
                    .filter(|(pattern, _)| is_regular(pattern))
                    .map(|(pattern, schema)| (pattern.clone(), schema.clone()))
                    .collect();
                if kept.len() < schemas.len() {
                    self.take_out("patternProperties");
                }
                self.schemas(name, &Value::Object(kept))
            }
            _ => self.schemas(name, value),
        };
        Some((name.to_owned(), kept))
    }

    fn take_out(&mut self, keyword: &'static str) -> Option<(String, Value)> {
        self.taken.push(SchemaKeyword { path: self.path.clone(), keyword });
        None
    }

    /// Unknown types such as `any` allow every value.
    fn types(&mut self, value: &Value) -> Option<(String, Value)> {
        let is_known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
        let kept = match value {
            Value::Array(names) if !names.is_empty() => names.iter().all(is_known),
            name => is_known(name),
        };
        if kept { Some(("type".to_owned(), value.clone())) } else { self.take_out("type") }
    }

    /// Sifts each schema that the keyword contains.
    fn schemas(&mut self, keyword: &str, value: &Value) -> Value {
        each_schema(keyword, value, |place, schema| {
            let length = self.path.len();
            self.path.push('.');
            self.path.push_str(place);
            let sifted = self.schema(schema);
            self.path.truncate(length);
            sifted
        })
    }

    /// Whether the reference leads to a place of this schema.
    fn is_found(&self, target: &str) -> bool {
        match target.strip_prefix('#') {
            Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                self.root.pointer(pointer).is_some()
            }
            // The compiler resolves anchors of the schema.
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

/// Whether the pattern is a regular language. Look-around and back-references are not.
pub(in crate::chat::constraint) fn is_regular(pattern: &str) -> bool {
    let rewritten = llguidance::regex_to_lark(pattern, "dw");
    pattern.len() <= PATTERN_BYTES_MAX
        && RegexBuilder::new().mk_regex_for_serach(&rewritten).is_ok()
}

/// Whether a schema of member names allows every name.
pub(super) fn allows_any_name(names: &Value) -> bool {
    [json!(true), json!({}), json!({ "type": "string" })].contains(names)
}
