//! Size limits of schemas and grammars, checked before compilation.
//! The compiler is recursive, so a large schema needs a deep stack and much time.

use serde_json::{Map, Value};

/// Levels of objects and lists in a schema; the JSON parser itself stops at 128.
const DEPTH_MAX: usize = 64;
/// Schemas, nested ones included, of all tools of a request.
const SCHEMAS_MAX: usize = 4_000;
/// Members of `properties` in one schema.
const PROPERTIES_MAX: usize = 1_000;
const REFERENCES_MAX: usize = 500;
/// Entries of all `enum`s of a schema.
const ENUM_VALUES_MAX: usize = 2_000;
pub(super) const PATTERN_BYTES_MAX: usize = 2_048;
const GRAMMAR_BYTES_MAX: usize = 32 << 10;
const RULES_MAX: usize = 500;
/// Maximum nesting of parentheses and brackets in a grammar.
const NESTING_MAX: usize = 64;

/// A limit that was exceeded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} {what} and the limit is {limit}")]
pub struct LimitExceeded {
    pub what: &'static str,
    pub found: usize,
    pub limit: usize,
}

/// Size of a schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    depth: usize,
    schemas: usize,
    properties: usize,
    references: usize,
    enum_values: usize,
    pattern_bytes: usize,
}

impl Size {
    pub(super) fn of(schema: &Value) -> Size {
        let mut size = Size::default();
        size.add(schema, 1);
        size
    }

    /// # Errors
    /// The first limit that is exceeded.
    pub(super) fn check(&self) -> Result<(), LimitExceeded> {
        within("levels of nesting", self.depth, DEPTH_MAX)?;
        within("nested schemas", self.schemas, SCHEMAS_MAX)?;
        within("properties", self.properties, PROPERTIES_MAX)?;
        within("references", self.references, REFERENCES_MAX)?;
        within("enum values", self.enum_values, ENUM_VALUES_MAX)?;
        within("bytes in a pattern", self.pattern_bytes, PATTERN_BYTES_MAX)
    }

    /// Adds the schemas of the tools before it.
    pub(super) fn after(self, before: Size) -> Size {
        Size { schemas: self.schemas + before.schemas, ..self }
    }

    fn add(&mut self, value: &Value, depth: usize) {
        self.depth = self.depth.max(depth);
        // Deeper schemas are rejected, so the rest need not be counted.
        if depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::Object(members) => self.add_members(members, depth),
            Value::Array(values) => values.iter().for_each(|value| self.add(value, depth + 1)),
            _ => {}
        }
    }

    fn add_members(&mut self, members: &Map<String, Value>, depth: usize) {
        self.schemas += 1;
        for (name, value) in members {
            match (name.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(listed)) => {
                    self.properties += listed.len();
                }
                ("$ref", _) => self.references += 1,
                ("enum", Value::Array(values)) => self.enum_values += values.len(),
                ("pattern", Value::String(pattern)) => {
                    self.pattern_bytes = self.pattern_bytes.max(pattern.len());
                }
                _ => {}
            }
            self.add(value, depth + 1);
        }
    }
}

/// The first limit of hob's own engine that the schema of a tool exceeds. Without `strict`, such a tool takes any object.
pub fn schema_excess(schema: &Value) -> Option<LimitExceeded> {
    Size::of(schema).check().err()
}

/// # Errors
/// The pattern is too long.
pub(super) fn check_pattern(pattern: &str) -> Result<(), LimitExceeded> {
    within("bytes in a pattern", pattern.len(), PATTERN_BYTES_MAX)
}

/// Checks a grammar in Lark's notation, which has one rule per line.
///
/// # Errors
/// The first limit that is exceeded.
pub(super) fn check_grammar(lark: &str) -> Result<(), LimitExceeded> {
    within("bytes in a grammar", lark.len(), GRAMMAR_BYTES_MAX)?;
    let is_rule = |line: &&str| line.contains(':') && !line.trim_start().starts_with(['|', '/']);
    within("rules", lark.lines().filter(is_rule).count(), RULES_MAX)?;
    let mut open = 0usize;
    let mut nesting = 0;
    for sign in lark.bytes() {
        match sign {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        nesting = nesting.max(open);
    }
    within("levels of nesting", nesting, NESTING_MAX)
}

fn within(what: &'static str, found: usize, limit: usize) -> Result<(), LimitExceeded> {
    if found <= limit { Ok(()) } else { Err(LimitExceeded { what, found, limit }) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn excess(schema: &Value) -> Option<&'static str> {
        Size::of(schema).check().err().map(|excess| excess.what)
    }

    #[test]
    fn every_limit_holds_and_what_is_within_passes() {
        let nested =
            |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "items": inner }));
        let listed = |count: usize| -> Value {
            let each = (0..count).map(|at| (format!("p{at}"), json!({})));
            json!({ "properties": each.collect::<Map<String, Value>>() })
        };
        let any_of = |each: Value, count: usize| json!({ "anyOf": vec![each; count] });
        for (schema, what) in [
            (nested(63), None),
            (nested(64), Some("levels of nesting")),
            (listed(1_000), None),
            (listed(1_001), Some("properties")),
            (any_of(json!({ "$ref": "#" }), 500), None),
            (any_of(json!({ "$ref": "#" }), 501), Some("references")),
            (any_of(json!({}), 4_000), Some("nested schemas")),
            (json!({ "enum": vec![0; 2_001] }), Some("enum values")),
            (json!({ "pattern": "a".repeat(2_049) }), Some("bytes in a pattern")),
        ] {
            assert_eq!(excess(&schema), what);
        }
    }

    #[test]
    fn grammars_are_counted_without_being_parsed() {
        let rules = |count: usize| "rule: \"a\"\n".repeat(count);
        let what = |lark: &str| check_grammar(lark).err().map(|excess| excess.what);
        assert_eq!(what(&rules(500)), None);
        assert_eq!(what(&rules(501)), Some("rules"));
        assert_eq!(what(&format!("start: {}", "(".repeat(65))), Some("levels of nesting"));
        assert_eq!(what(&" ".repeat(40_000)), Some("bytes in a grammar"));
        let excess = check_pattern(&"a".repeat(90_000)).expect_err("too long");
        assert_eq!(excess.to_string(), "90000 bytes in a pattern and the limit is 2048");
    }
}
