//! Schemas for the strict mode of other servers, in which a model cannot write a call that does not match.
//! This mode requires every property. So a property that a call may leave out may be null instead.

use serde_json::{Map, Value, json};

/// Keywords that the strict form keeps. It needs no others, because hob checks calls against the tool's own schema anyway.
const KEPT: [&str; 4] = ["type", "enum", "const", "description"];
/// Keywords for which hob writes no strict form.
const UNSUPPORTED: [&str; 9] = [
    "$ref",
    "allOf",
    "oneOf",
    "not",
    "if",
    "dependentSchemas",
    "dependentRequired",
    "patternProperties",
    "prefixItems",
];
/// Maximum levels of objects and lists below the arguments.
const DEPTH_MAX: usize = 5;

/// The schema of a tool in strict form. `None`: it has no strict form.
pub(super) fn strict(schema: &Value) -> Option<Value> {
    (schema["type"] == "object").then(|| form(schema, 0))?
}

fn form(schema: &Value, depth: usize) -> Option<Value> {
    let members = schema.as_object().filter(|_| depth <= DEPTH_MAX)?;
    if UNSUPPORTED.iter().any(|keyword| members.contains_key(*keyword)) {
        return None;
    }
    let kept =
        KEPT.iter().filter_map(|name| Some(((*name).to_owned(), members.get(*name)?.clone())));
    let mut formed: Map<String, Value> = kept.collect();
    if let Some(choices) = members.get("anyOf") {
        let choices: Option<Vec<Value>> =
            choices.as_array()?.iter().map(|choice| form(choice, depth)).collect();
        formed.insert("anyOf".to_owned(), choices?.into());
    } else if !members.contains_key("type") {
        // The strict mode needs a type.
        return None;
    }
    if takes(schema, "object") {
        object(members, &mut formed, depth)?;
    }
    if takes(schema, "array") {
        formed.insert("items".to_owned(), form(members.get("items")?, depth + 1)?);
    }
    Some(formed.into())
}

/// Adds the properties of an object, all of them required. `None`: the schema says that other properties are allowed, or
/// one of the listed ones has no strict form.
fn object(
    members: &Map<String, Value>,
    formed: &mut Map<String, Value>,
    depth: usize,
) -> Option<()> {
    let is_closed = members.get("additionalProperties").is_none_or(|more| *more == false);
    let none = Map::new();
    let listed = match members.get("properties") {
        Some(listed) => listed.as_object()?,
        // An object of any form.
        None if depth > 0 => return None,
        None => &none,
    };
    let required = members.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|own| own == name));
    let mut properties = Map::new();
    for (name, schema) in listed {
        let property = form(schema, depth + 1)?;
        let property = if is_required(name) { property } else { nullable(property)? };
        properties.insert(name.clone(), property);
    }
    let names: Vec<&String> = properties.keys().collect();
    formed.insert("required".to_owned(), json!(names));
    formed.insert("properties".to_owned(), properties.into());
    formed.insert("additionalProperties".to_owned(), json!(false));
    is_closed.then_some(())
}

/// The schema of a property that may be null instead of left out. `None`: it has no such form.
fn nullable(mut schema: Value) -> Option<Value> {
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().any(|choice| takes(choice, "null")).then_some(schema);
    }
    if schema.get("const").is_some() {
        return None;
    }
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut)
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if !takes(&schema, "null") {
        let kinds = match schema["type"].take() {
            Value::Array(mut kinds) => {
                kinds.push(json!("null"));
                kinds
            }
            kind => vec![kind, json!("null")],
        };
        schema["type"] = kinds.into();
    }
    Some(schema)
}

/// Whether the schema names this type.
fn takes(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(own) => own == kind,
        Value::Array(kinds) => kinds.iter().any(|own| own == kind),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_left_out_may_be_null() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "maxLength": 9, "description": "A file" },
                "limit": { "type": "integer", "minimum": 1 },
                "mode": { "type": "string", "enum": ["new"] },
                "tags": { "type": ["array", "null"], "items": { "type": "string" } },
            },
            "required": ["path"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "A file" },
                "limit": { "type": ["integer", "null"] },
                "mode": { "type": ["string", "null"], "enum": ["new", null] },
                "tags": { "type": ["array", "null"], "items": { "type": "string" } },
            },
            "required": ["path", "limit", "mode", "tags"],
            "additionalProperties": false,
        });
        let formed = strict(&schema).expect("a strict form");
        let sorted = |schema: &Value| {
            let mut names: Vec<String> =
                serde_json::from_value(schema["required"].clone()).expect("names");
            names.sort();
            names
        };
        assert_eq!(formed["properties"], expected["properties"]);
        assert_eq!(formed["additionalProperties"], expected["additionalProperties"]);
        assert_eq!(sorted(&formed), sorted(&expected));
    }

    #[test]
    fn a_schema_that_leaves_something_open_has_no_strict_form() {
        for property in [
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": {}, "additionalProperties": true }),
            json!({ "type": "array" }),
            json!({ "description": "anything" }),
            json!({ "$ref": "#/$defs/a" }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
            json!(true),
        ] {
            let schema = json!({ "type": "object", "properties": { "a": property } });
            assert_eq!(strict(&schema), None, "{schema}");
        }
        let mut deep = json!({ "type": "string" });
        for _ in 0..DEPTH_MAX {
            deep = json!({ "type": "array", "items": deep });
        }
        let schema = json!({ "type": "object", "properties": { "a": deep } });
        assert_eq!(strict(&schema), None);
        assert!(strict(&json!({ "type": "object" })).is_some(), "a tool without arguments");
    }
}
