//! Random schemas of arguments, from the keywords that hob enforces (without `oneOf` and `additionalItems`).

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Names, some of which are keywords elsewhere.
const NAMES: [&str; 14] = [
    "a",
    "name",
    "city name",
    "größe",
    "x-y",
    "\"quoted\"",
    "items",
    "type",
    "properties",
    "enum",
    "required",
    "allOf",
    "日本",
    "",
];
const PATTERNS: &str = r"
    ^[A-Z]{2}-[0-9]+$ ab+c ^\d{3}$ ^(foo|bar)[0-9]*$ [^a-z] ^https?:// \.rs$ ^$|^x
    ^[\w.]+@[\w.]+$";
/// Formats that hob enforces, and `colour`, which it does not know.
const FORMATS: &str = "
    date-time time date duration email hostname ipv4 ipv6 uuid uri colour";
const BOUNDS: [f64; 11] = [-1e6, -1000.5, -1.0, -0.25, 0.0, 0.001, 0.1, 1.0, 2.75, 99.9, 1e6];
const DEPTH: u32 = 3;

fn any_of<T: Copy>(random: &mut Rng, all: &[T]) -> T {
    all[random.usize(..all.len())]
}

fn word_of<'a>(random: &mut Rng, all: &'a str) -> &'a str {
    any_of(random, &all.split_whitespace().collect::<Vec<_>>())
}

/// The schema of a tool's arguments.
pub(super) fn arguments(random: &mut Rng) -> Value {
    if random.u8(..12) == 0 {
        return combined(random);
    }
    let mut schema = object(random, DEPTH);
    let tree = json!({ "type": "object", "properties": {
        "value": value(random, 0), "children": { "type": "array", "items": { "$ref": "#/$defs/tree" } },
    }, "required": ["value"] });
    schema["$defs"] = json!({ "tree": tree });
    schema
}

fn value(random: &mut Rng, depth: u32) -> Value {
    match random.u8(..if depth == 0 { 9 } else { 15 }) {
        0..=2 => string(random),
        3 | 4 => integer(random),
        5 => number(random),
        6 => {
            any_of(random, &[r#"{"type":"boolean"}"#, r#"{"type":"null"}"#, r#"{"const":"a\"b"}"#])
                .parse()
                .expect("JSON")
        }
        7 => json!({ "enum": ["red", "a\nb", 3, -0.5, null, { "deep": [1, 2] }, "日本"] }),
        8 => {
            json!({ "type": any_of(random, &[["string", "null"], ["integer", "null"], ["number", "string"]]) })
        }
        9 | 10 => array(random, depth - 1),
        11 | 12 => object(random, depth - 1),
        13 => json!({ "anyOf": [value(random, depth - 1), value(random, depth - 1)] }),
        _ => match random.u8(..3) {
            0 => json!({}),
            1 => map(random, depth - 1),
            _ => json!({ "$ref": "#/$defs/tree" }),
        },
    }
}

fn string(random: &mut Rng) -> Value {
    let mut schema = json!({ "type": "string" });
    match random.u8(..8) {
        0 | 1 => {}
        2 | 3 => {
            let least = random.u32(..6);
            schema["minLength"] = json!(least);
            schema["maxLength"] = json!(least + random.u32(..30));
        }
        4 | 5 => schema["pattern"] = json!(word_of(random, PATTERNS)),
        6 => schema["format"] = json!(word_of(random, FORMATS)),
        _ => {
            schema["pattern"] = json!(word_of(random, PATTERNS));
            schema["maxLength"] = json!(12);
        }
    }
    schema
}

fn integer(random: &mut Rng) -> Value {
    let mut schema = json!({ "type": "integer" });
    let low = random.i64(-2_000..2_000);
    let high = low + random.i64(10..5_000);
    match random.u8(..8) {
        0 | 1 => {}
        2 => schema["minimum"] = json!(low),
        3 => schema["maximum"] = json!(high),
        4 => schema["exclusiveMinimum"] = json!(low),
        5 => {
            schema["minimum"] = json!(low);
            schema["exclusiveMaximum"] = json!(high);
        }
        6 => schema["minimum"] = json!(any_of(random, &[1e15, 1.7e18])),
        _ => {
            schema["multipleOf"] = json!(any_of(random, &[1, 3, 7, 10]));
            schema["minimum"] = json!(low);
            schema["maximum"] = json!(high);
        }
    }
    schema
}

fn number(random: &mut Rng) -> Value {
    let mut schema = json!({ "type": "number" });
    let at = random.usize(..BOUNDS.len() - 1);
    let (low, high) = (BOUNDS[at], BOUNDS[random.usize(at + 1..BOUNDS.len())]);
    match random.u8(..7) {
        0 | 1 => {}
        2 => schema["minimum"] = json!(low),
        3 => schema["exclusiveMaximum"] = json!(high),
        4 => schema["exclusiveMinimum"] = json!(low),
        5 => {
            schema["exclusiveMinimum"] = json!(low);
            schema["exclusiveMaximum"] = json!(high);
        }
        _ => schema["multipleOf"] = json!(any_of(random, &[0.5, 0.25, 2.0])),
    }
    schema
}

fn array(random: &mut Rng, depth: u32) -> Value {
    let mut schema = json!({ "type": "array", "items": value(random, depth) });
    let least = random.u32(..4);
    match random.u8(..5) {
        0 | 1 => {}
        2 => schema["minItems"] = json!(least),
        3 => {
            schema["minItems"] = json!(least);
            schema["maxItems"] = json!(least + random.u32(..4));
        }
        _ => {
            schema["prefixItems"] = json!([value(random, depth), string(random)]);
            schema["items"] =
                any_of(random, &["false", "true", r#"{"type":"null"}"#]).parse().expect("JSON");
        }
    }
    schema
}

fn object(random: &mut Rng, depth: u32) -> Value {
    let mut names = NAMES.to_vec();
    random.shuffle(&mut names);
    names.truncate(random.usize(..5));
    let mut properties = Map::new();
    let mut required = Vec::new();
    for name in names {
        properties.insert(name.to_owned(), value(random, depth));
        if random.bool() {
            required.push(name);
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    match random.u8(..6) {
        0 | 1 => schema["additionalProperties"] = json!(random.bool()),
        2 => schema["additionalProperties"] = value(random, 0),
        3 => schema["patternProperties"] = json!({ "^z-": value(random, 0) }),
        _ => {}
    }
    schema
}

/// An object whose members have any names.
fn map(random: &mut Rng, depth: u32) -> Value {
    let mut schema = json!({ "type": "object", "additionalProperties": value(random, depth) });
    let least = random.u32(..2);
    match random.u8(..3) {
        0 => {}
        1 => schema["minProperties"] = json!(least),
        _ => {
            schema["minProperties"] = json!(least);
            schema["maxProperties"] = json!(least + 1);
        }
    }
    schema
}

/// Two schemas that hold for the same object. hob refuses them together with recursive ones.
fn combined(random: &mut Rng) -> Value {
    let (one, other) = (value(random, 0), value(random, 0));
    json!({ "type": "object", "allOf": [
        { "type": "object", "properties": { "one": one }, "required": ["one"] },
        { "type": "object", "properties": { "other": other } },
    ] })
}
