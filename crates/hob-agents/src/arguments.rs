//! Arguments of a call as models write them: read, repaired where that is safe, and checked against the tool's schema.
//! A text that was cut off is never completed: half a command is a different command.

use serde_json::Value;

use crate::tool::ToolSpec;

/// Longest arguments in bytes.
const BYTES_MAX: usize = 256 * 1024;
/// Longest schema of another server's tool in bytes.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Longest part of a schema, and longest statement about a value, that an error shows, in characters.
const EXCERPT_MAX: usize = 300;

/// Arguments that match the schema, and what had to be repaired.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CheckedArguments {
    pub(crate) value: Value,
    pub(crate) repairs: Vec<String>,
}

/// Reads the arguments of a call.
///
/// # Errors
/// What is wrong, and what the schema wants there; for the model.
pub(crate) fn check(tool: &ToolSpec, text: &str) -> Result<CheckedArguments, String> {
    if text.len() > BYTES_MAX {
        return Err(format!(
            "the arguments have {} bytes; at most {BYTES_MAX} are allowed",
            text.len()
        ));
    }
    let (mut value, mut repairs) = read(text)?;
    if !value.is_object() {
        return Err("the arguments must be a JSON object".to_owned());
    }
    drop_absent(&mut value, &tool.schema);
    coerce(&mut value, &tool.schema, &mut repairs);
    let validator = tool.forms.validator(&tool.schema)?;
    let wrong = validator.iter_errors(&value).next().map(|error| {
        let whole = error.to_string();
        // A long value would fill the model's context, and hide what is wrong with it.
        let said = match whole.chars().count() > EXCERPT_MAX {
            true => excerpt(&error.masked().to_string()),
            false => whole,
        };
        (error.instance_path().to_string(), said)
    });
    let Some((place, error)) = wrong else { return Ok(CheckedArguments { value, repairs }) };
    let place = if place.is_empty() { "/" } else { &place };
    let wanted = excerpt(&schema_at(&tool.schema, place).to_string());
    Err(format!("at {place}: {error}. The schema there is {wanted}"))
}

fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_MAX).collect()
}

/// Why calls cannot be checked against this schema of another server's tool. `None`: they can.
pub fn schema_problem(schema: &Value) -> Option<String> {
    if !schema.is_object() || schema.get("type").is_some_and(|kind| kind != "object") {
        return Some("its arguments are not an object".to_owned());
    }
    let bytes = schema.to_string().len();
    if bytes > SCHEMA_BYTES_MAX {
        return Some(format!("its schema has {bytes} bytes; at most {SCHEMA_BYTES_MAX} are used"));
    }
    let error = jsonschema::validator_for(schema).err()?;
    Some(format!("its schema is invalid: {error}"))
}

/// Reads JSON that a model has written, and says what had to be repaired.
///
/// # Errors
/// It is not JSON, or it was cut off; for the model.
pub(crate) fn read(text: &str) -> Result<(Value, Vec<String>), String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok((Value::Object(serde_json::Map::new()), Vec::new()));
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok((value, Vec::new())),
        Err(error) => error,
    };
    if error.is_eof() {
        return Err(
            "the arguments end too early, so nothing was done; send the whole call again, shorter"
                .to_owned(),
        );
    }
    let (repaired, repairs) = repair(text);
    let value = serde_json::from_str(&repaired)
        .map_err(|_| format!("the arguments are not JSON: {error}"))?;
    Ok((value, repairs))
}

/// Removes a code fence, commas before a closing bracket and raw control characters in strings, and writes Python's
/// constants as JSON.
fn repair(text: &str) -> (String, Vec<String>) {
    let mut repairs = Vec::new();
    let mut note = |repair: &str| {
        if !repairs.iter().any(|known| known == repair) {
            repairs.push(repair.to_owned());
        }
    };
    let unfenced =
        text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")).map(|inside| {
            let line_end = inside.find('\n').unwrap_or(0);
            inside[line_end..].trim()
        });
    if unfenced.is_some() {
        note("code fence");
    }
    let text = unfenced.unwrap_or(text);
    let mut output = String::with_capacity(text.len());
    let (mut is_string, mut is_escaped) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = after;
        if is_string {
            match c {
                '\n' => output.push_str("\\n"),
                '\r' => output.push_str("\\r"),
                '\t' => output.push_str("\\t"),
                c => output.push(c),
            }
            if matches!(c, '\n' | '\r' | '\t') {
                note("control character");
            }
            is_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        if c == ',' && after.trim_start().starts_with(['}', ']']) {
            note("comma");
            continue;
        }
        let constant = [("True", "true"), ("False", "false"), ("None", "null")].into_iter().find(
            |(python, _)| c == python.as_bytes()[0].into() && after.starts_with(&python[1..]),
        );
        if let Some((python, json)) = constant {
            note("Python constant");
            output.push_str(json);
            rest = &after[python.len() - 1..];
            continue;
        }
        is_string = c == '"';
        output.push(c);
    }
    (output, repairs)
}

/// Removes properties that are null and need not be there: in the strict mode, models cannot leave them out.
fn drop_absent(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            let required = schema["required"].as_array();
            let is_required =
                |name: &str| required.is_some_and(|names| names.iter().any(|own| own == name));
            members.retain(|name, member| {
                !member.is_null() || is_required(name) || takes_null(&schema["properties"][name])
            });
            for (name, member) in members {
                drop_absent(member, &schema["properties"][name]);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| drop_absent(item, &schema["items"]));
        }
        _ => {}
    }
}

fn takes_null(schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(kind) => kind == "null",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "null"),
        _ => true,
    }
}

/// Turns texts into numbers and truth values where the schema wants these. Only at the top level, where their meaning is clear.
fn coerce(value: &mut Value, schema: &Value, repairs: &mut Vec<String>) {
    let Some(members) = value.as_object_mut() else { return };
    for (name, member) in members {
        let wanted = schema["properties"][name]["type"].as_str();
        let Some(text) = member.as_str() else { continue };
        let parsed = match wanted {
            Some("integer") => text.trim().parse::<i64>().ok().map(Value::from),
            Some("number") => {
                text.trim().parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from)
            }
            Some("boolean") => text.trim().parse::<bool>().ok().map(Value::from),
            _ => None,
        };
        if let Some(parsed) = parsed {
            *member = parsed;
            repairs.push(format!("'{name}' was a text"));
        }
    }
}

fn schema_at<'s>(schema: &'s Value, pointer: &str) -> &'s Value {
    let parts = pointer.split('/').filter(|part| !part.is_empty());
    parts.fold(schema, |schema, part| match part.parse::<usize>() {
        Ok(_) if schema.get("items").is_some() => &schema["items"],
        _ => &schema["properties"][part],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::ToolClass;

    fn tool() -> ToolSpec {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "limit": { "type": "integer", "maximum": 100 },
                "all": { "type": "boolean" },
                "tags": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        ToolSpec::new("read", "", schema, ToolClass::Read)
    }

    #[test]
    fn what_models_write_is_repaired() {
        for (text, expected, repairs) in [
            (r#"{"path":"a"}"#, json!({"path": "a"}), 0),
            ("```json\n{\"path\": \"a\",}\n```", json!({"path": "a"}), 2),
            ("{\"path\": \"a\nb\", \"all\": True}", json!({"path": "a\nb", "all": true}), 2),
            (r#"{"path": "True, }", "limit": "5"}"#, json!({"path": "True, }", "limit": 5}), 1),
            (r#"{"path": "a", "limit": null, "tags": null}"#, json!({"path": "a"}), 0),
            (r#"{"path": "\"", "tags": ["x",],}"#, json!({"path": "\"", "tags": ["x"]}), 1),
        ] {
            let checked = check(&tool(), text).expect(text);
            assert_eq!((checked.value, checked.repairs.len()), (expected, repairs), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_names_its_place() {
        for (text, part) in [
            ("", "path"),
            ("[1]", "object"),
            (r#"{"path":"rm -rf /tmp/x"#, "end too early"),
            (r#"{"path": 5}"#, "at /path"),
            (r#"{"path": null}"#, "at /path"),
            (r#"{"path":"a","limit":101}"#, "\"maximum\":100"),
            (r#"{"path":"a","tags":[1]}"#, "at /tags/0"),
            (r#"{"path":"a","other":1}"#, "other"),
            ("path = a", "not JSON"),
        ] {
            let error = check(&tool(), text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_long_value_is_not_repeated() {
        let text = json!({ "path": "a", "tags": "x".repeat(1_000) }).to_string();
        let error = check(&tool(), &text).expect_err("no list");
        assert!(error.starts_with("at /tags: value is not of type \"array\""), "{error}");
    }

    #[test]
    fn a_schema_of_another_server_may_be_unusable() {
        let long = "x".repeat(SCHEMA_BYTES_MAX);
        for (schema, part) in [
            (json!({ "type": "object", "properties": { "a": { "type": "string" } } }), None),
            (json!({}), None),
            (json!({ "type": "array" }), Some("not an object")),
            (json!([]), Some("not an object")),
            (json!({ "properties": { "a": { "type": "strin" } } }), Some("invalid")),
            (json!({ "properties": { "a": { "pattern": "(" } } }), Some("invalid")),
            (json!({ "$ref": "#/$defs/missing" }), Some("invalid")),
            (json!({ "$ref": "http://127.0.0.1:1/schema.json" }), Some("invalid")),
            (json!({ "$ref": "file:///etc/passwd" }), Some("invalid")),
            (json!({ "description": long }), Some("bytes")),
        ] {
            let found = schema_problem(&schema);
            let is_right = found
                .as_deref()
                .map_or(part.is_none(), |found| part.is_some_and(|part| found.contains(part)));
            assert!(is_right, "{schema:.99}: {found:?}");
        }
    }

    /// Such a schema of a server must not end hob.
    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "allOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "$ref": "#/$defs/a" } } }),
            json!({ "anyOf": [{ "$ref": "#" }] }),
        ] {
            if schema_problem(&schema).is_none() {
                let tool = ToolSpec::new("odd", "", schema, ToolClass::Network);
                let _either = check(&tool, r#"{"a": {"a": 1}}"#);
            }
        }
    }
}
