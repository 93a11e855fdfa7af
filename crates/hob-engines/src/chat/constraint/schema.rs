//! Makes a copy of a JSON schema in which every value has a maximum length, for the grammar of an answer.
//! The copy is narrower: every value that it allows is valid for the original.

mod cause;
mod sift;
mod strings;

use serde_json::{Map, Value, json};

pub(super) use cause::cause;
pub(super) use sift::{Relaxation, SchemaKeyword, is_regular, sift};

// Limits for values that a schema does not limit.
const STRING_CHARS_MAX: u32 = 4_096;
/// Maximum length of strings with a pattern or format, because their automata grow with the length.
const PATTERN_CHARS_MAX: u32 = 256;
const ARRAY_ITEMS_MAX: u64 = 64;
const OBJECT_MEMBERS_MAX: u64 = 64;
/// Maximum length of member names that the schema does not name.
const MEMBER_NAME_CHARS_MAX: u32 = 64;

/// Most JSON readers do not keep integers over 2^53. This is the largest number of only nines below.
const NUMBER_MAX: i64 = 999_999_999_999_999;
/// For a schema whose minimum is above [`NUMBER_MAX`]. The compiler counts in integers of 64 bits.
const INTEGER_MAX: f64 = 9e18;
/// Takes the place of a bound of 0 that is not included.
const LEAST_FRACTION: f64 = 1e-15;
/// Digits that every reader of numbers keeps.
const NUMBER_DIGITS: i32 = 15;
/// The compiler's limit for `multipleOf`, which counts in integers of 32 bits.
const DECIMALS_MAX: i32 = 8;

/// Keywords that hob enforces.
const KEYWORDS: &str = "
    anyOf oneOf allOf $ref const enum type items additionalItems prefixItems minItems maxItems
    properties additionalProperties patternProperties required minProperties maxProperties
    minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum
    multipleOf";

/// Keywords that no grammar enforces.
const UNSUPPORTED: &str = "
    not if then else contains minContains maxContains uniqueItems propertyNames dependencies
    dependentRequired dependentSchemas unevaluatedProperties unevaluatedItems $dynamicRef
    $recursiveRef";

/// Keywords that put another schema in the same place.
const IN_PLACE: &str = "allOf anyOf oneOf $ref";

/// Keywords that limit the members of an object.
const OBJECT_KEYWORDS: &str = "
    properties required additionalProperties patternProperties minProperties maxProperties";

const ANY: &str = "hob-any-value";
/// Maximum nesting of a value that a combined schema does not describe.
const ANY_LEVELS: usize = 4;

/// The bounded copy of `schema`.
pub(super) fn bounded(schema: &Value) -> Value {
    let closes = !combines(schema);
    let any_name = if closes { ANY.to_owned() } else { format!("{ANY}-{ANY_LEVELS}") };
    let bounder = Bounder { closes, any_name };
    let mut root = match bounder.schema(schema) {
        Value::Object(root) => root,
        other => return other,
    };
    if let Value::Object(definitions) = root.entry("$defs").or_insert_with(|| json!({})) {
        definitions.extend(bounder.any_values());
    }
    Value::Object(root)
}

/// Applies `change` to each schema that a keyword contains, and passes its path from the keyword on. Returns the keyword's
/// new value.
fn each_schema(name: &str, value: &Value, mut change: impl FnMut(&str, &Value) -> Value) -> Value {
    match (name, value) {
        ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(schemas)) => {
            let changed = schemas
                .iter()
                .map(|(key, schema)| (key.clone(), change(&format!("{name}.{key}"), schema)));
            Value::Object(changed.collect())
        }
        ("items" | "prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
            let places = (0..).map(|at: usize| format!("{name}[{at}]"));
            Value::Array(places.zip(schemas).map(|(at, schema)| change(&at, schema)).collect())
        }
        ("items" | "additionalProperties" | "additionalItems", schema) => change(name, schema),
        (_, value) => value.clone(),
    }
}

struct Bounder {
    /// Whether objects that list their members get no others.
    closes: bool,
    /// Name of the definition of any value.
    any_name: String,
}

impl Bounder {
    fn schema(&self, schema: &Value) -> Value {
        match schema {
            Value::Object(members) if !says_nothing(members) => self.object_schema(members),
            Value::Object(members) => self.anything(members),
            Value::Bool(true) => self.anything(&Map::new()),
            other => other.clone(),
        }
    }

    /// A schema that does not describe the value. It keeps its definitions.
    fn anything(&self, members: &Map<String, Value>) -> Value {
        let mut copy = Map::new();
        for name in ["$schema", "$id", "$defs", "definitions"] {
            if let Some(value) = members.get(name) {
                copy.insert(name.to_owned(), self.keyword(name, value));
            }
        }
        copy.extend(self.any().as_object().cloned().unwrap_or_default());
        Value::Object(copy)
    }

    fn any(&self) -> Value {
        json!({ "$ref": format!("#/$defs/{}", self.any_name) })
    }

    fn object_schema(&self, members: &Map<String, Value>) -> Value {
        let mut copy: Map<String, Value> = members
            .iter()
            .map(|(name, value)| (name.clone(), self.keyword(name, value)))
            .filter(|(name, value)| !is_idle(name, value))
            .collect();
        if copy.contains_key("enum") || copy.contains_key("const") {
            return Value::Object(copy);
        }
        state_type(&mut copy);
        if allows(&copy, "string") {
            strings::bound(&mut copy);
        }
        if allows(&copy, "array") {
            self.bound_array(&mut copy);
        }
        if allows(&copy, "number") || allows(&copy, "integer") {
            bound_number(&mut copy);
        }
        if allows(&copy, "object") {
            self.bound_object(&mut copy);
        }
        Value::Object(copy)
    }

    fn keyword(&self, name: &str, value: &Value) -> Value {
        each_schema(name, value, |_, schema| self.schema(schema))
    }

    fn bound_array(&self, schema: &mut Map<String, Value>) {
        let wanted = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let limit = ARRAY_ITEMS_MAX.max(wanted);
        schema.entry("maxItems").or_insert(json!(limit));
        if !schema.contains_key("items") && !mentions(schema, IN_PLACE) {
            schema.insert("items".to_owned(), self.any());
        }
    }

    fn bound_object(&self, schema: &mut Map<String, Value>) {
        if mentions(schema, IN_PLACE) {
            return;
        }
        let lists =
            schema.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty());
        let open = !schema.contains_key("additionalProperties");
        let wants_more = schema.contains_key("minProperties") || requires_unlisted(schema);
        if open && self.closes && (lists || schema.contains_key("patternProperties")) && !wants_more
        {
            schema.insert("additionalProperties".to_owned(), json!(false));
        } else if !lists && !schema.contains_key("patternProperties") {
            self.bound_members(schema);
        } else if open {
            schema.insert("additionalProperties".to_owned(), self.any());
        }
    }

    /// Bounds an object whose members may have any name.
    fn bound_members(&self, schema: &mut Map<String, Value>) {
        let each = schema.remove("additionalProperties").unwrap_or(self.any());
        let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        if each != Value::Bool(false) && required == 0 {
            let names = format!("^.{{0,{MEMBER_NAME_CHARS_MAX}}}$");
            schema.insert("patternProperties".to_owned(), json!({ names: each }));
            schema.insert("additionalProperties".to_owned(), json!(false));
        } else {
            schema.insert("additionalProperties".to_owned(), each);
        }
        let wanted = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        let limit = OBJECT_MEMBERS_MAX.max(wanted).max(required);
        schema.entry("maxProperties").or_insert(json!(limit));
    }

    /// The definitions of any value. They are recursive, except in combined schemas: there the grammar's compiler would follow
    /// both recursions without an end.
    fn any_values(&self) -> Map<String, Value> {
        let scalars = ["null", "boolean", "number", "string"];
        if self.closes {
            let kinds = [scalars.as_slice(), &["array", "object"]].concat();
            return Map::from_iter([(ANY.to_owned(), self.one_of_types(&kinds))]);
        }
        let level = |level: usize| {
            let any_name = format!("{ANY}-{}", level.saturating_sub(1));
            let inner = Bounder { closes: false, any_name };
            let nested: &[&str] = if level == 0 { &[] } else { &["array", "object"] };
            (format!("{ANY}-{level}"), inner.one_of_types(&[scalars.as_slice(), nested].concat()))
        };
        (0..=ANY_LEVELS).map(level).collect()
    }

    fn one_of_types(&self, types: &[&str]) -> Value {
        let each: Vec<Value> =
            types.iter().map(|name| self.schema(&json!({ "type": name }))).collect();
        json!({ "anyOf": each })
    }
}

/// Whether the schema has only annotations, definitions and unknown members.
fn says_nothing(schema: &Map<String, Value>) -> bool {
    !mentions(schema, KEYWORDS) && !mentions(schema, UNSUPPORTED)
}

fn lists(keywords: &str, name: &str) -> bool {
    keywords.split_whitespace().any(|keyword| keyword == name)
}

/// A keyword without an effect that the grammar's compiler would reject.
fn is_idle(name: &str, value: &Value) -> bool {
    match name {
        "uniqueItems" => value == &Value::Bool(false),
        "propertyNames" => sift::allows_any_name(value),
        "format" => !value.as_str().is_some_and(|format| strings::FORMATS.contains(&format)),
        _ => false,
    }
}

/// Adds the type that a schema without `type` implies.
fn state_type(schema: &mut Map<String, Value>) {
    const KINDS: [(&str, &str); 4] = [
        ("object", OBJECT_KEYWORDS),
        ("array", "items prefixItems minItems maxItems additionalItems"),
        ("string", "minLength maxLength pattern format"),
        ("number", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
    ];
    if schema.contains_key("type") || mentions(schema, IN_PLACE) {
        return;
    }
    let mut kinds = KINDS.iter().filter(|(_, keywords)| mentions(schema, keywords));
    if let (Some((kind, _)), None) = (kinds.next(), kinds.next()) {
        schema.insert("type".to_owned(), json!(kind));
    }
}

fn allows(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => false,
    }
}

fn bound_number(schema: &mut Map<String, Value>) {
    // Readers keep the decimals of a multiple only if there are few digits before them.
    let step = schema.get("multipleOf").and_then(Value::as_f64).unwrap_or(1.0).to_string();
    let decimals = step.split_once('.').map_or(0, |(_, decimals)| decimals.len().min(14));
    if allows(schema, "number") {
        exclude_rounded(schema);
    }
    let limit = (NUMBER_MAX / 10i64.pow(decimals as u32)) as f64;
    let low = bound_of(schema, "minimum", "exclusiveMinimum");
    let high = bound_of(schema, "maximum", "exclusiveMaximum");
    if low.is_none() {
        schema.insert("minimum".to_owned(), bound_beyond(high.map(|high| -high), -limit));
    }
    if high.is_none() {
        schema.insert("maximum".to_owned(), bound_beyond(low, limit));
    }
}

/// The missing bound of a number: `limit`, or further away if the other bound is beyond it.
fn bound_beyond(other: Option<f64>, limit: f64) -> Value {
    let other = other.filter(|other| *other >= limit.abs());
    match other {
        Some(other) => json!((other * 10.0).min(INTEGER_MAX.max(other)) * limit.signum()),
        None => json!(limit as i64),
    }
}

/// Keeps numbers that readers round to an exclusive bound, such as 0.99999999999999999999, from being written.
fn exclude_rounded(schema: &mut Map<String, Value>) {
    let number = |schema: &Map<String, Value>, name| schema.get(name).and_then(Value::as_f64);
    let low = number(schema, "exclusiveMinimum");
    let high = number(schema, "exclusiveMaximum");
    // The nearest number that is further from 0 is included instead.
    let above = |bound: f64| if bound == 0.0 { LEAST_FRACTION } else { bound.next_up() };
    if let Some(low) = low.filter(|low| *low >= 0.0).map(above) {
        schema.remove("exclusiveMinimum");
        let low = number(schema, "minimum").map_or(low, |other| other.max(low));
        schema.insert("minimum".to_owned(), json!(low));
    }
    if let Some(high) = high.filter(|high| *high <= 0.0).map(|high| -above(-high)) {
        schema.remove("exclusiveMaximum");
        let high = number(schema, "maximum").map_or(high, |other| other.min(high));
        schema.insert("maximum".to_owned(), json!(high));
    }
    // Towards 0, the compiler would forbid 0.9 with a maximum of 0.9999999999999999. So the digits are limited.
    let outer = [low.filter(|low| *low < 0.0), high.filter(|high| *high > 0.0)];
    if let Some(bound) = outer.into_iter().flatten().map(f64::abs).reduce(f64::max)
        && !schema.contains_key("multipleOf")
    {
        let whole = bound.log10().floor().max(0.0) as i32 + 1;
        let decimals = (NUMBER_DIGITS - whole).clamp(0, DECIMALS_MAX);
        schema.insert("multipleOf".to_owned(), json!(10f64.powi(decimals).recip()));
    }
}

fn bound_of(schema: &Map<String, Value>, name: &str, exclusive: &str) -> Option<f64> {
    [name, exclusive].iter().find_map(|name| schema.get(*name).and_then(Value::as_f64))
}

/// All patterns of `schema`.
pub(super) fn patterns(schema: &Value) -> Vec<String> {
    let Value::Object(members) = schema else { return Vec::new() };
    let own = members.get("pattern").and_then(Value::as_str).map(str::to_owned);
    let mut found: Vec<String> = own.into_iter().collect();
    for (name, value) in members {
        each_schema(name, value, |_, schema| {
            found.extend(patterns(schema));
            Value::Null
        });
    }
    found
}

fn requires_unlisted(schema: &Map<String, Value>) -> bool {
    let listed = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .any(|name| !listed.is_some_and(|listed| listed.contains_key(name)))
}

fn mentions(schema: &Map<String, Value>, keywords: &str) -> bool {
    schema.keys().any(|name| lists(keywords, name))
}

/// Whether two schemas describe the same object anywhere. Then neither may forbid the members of the other.
fn combines(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let lays = members.contains_key("allOf")
                || (mentions(members, IN_PLACE)
                    && mentions(
                        members,
                        "properties required additionalProperties patternProperties",
                    ));
            lays || members.values().any(combines)
        }
        Value::Array(values) => values.iter().any(combines),
        _ => false,
    }
}
