//! A form's fields as the JSON that they would have been: `true`, `0.2`, `x[]` and `x[y]`.
//! What cannot be a number stays a text, and is refused by name where a number is wanted.

use serde_json::{Map, Number, Value};

/// One field that is not a file: its name and its text.
pub type FormField = (String, String);

/// The field that may be an object, which some clients write as JSON.
const OBJECT: &str = "chunking_strategy";
/// Members of [`OBJECT`] that are numbers.
const MEMBER_NUMBERS: [&str; 3] = ["threshold", "prefix_padding_ms", "silence_duration_ms"];
/// The field that is a list, however it is written.
const LIST: &str = "timestamp_granularities";

/// Browsers send what was left empty, as nothing.
pub(super) fn to_json(form: Vec<FormField>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, text) in form.into_iter().filter(|(_, text)| !text.is_empty()) {
        match name.split_once('[') {
            Some((list, "]")) => push(&mut fields, list, text),
            Some((object, member)) if member.ends_with(']') => {
                put_inside(&mut fields, object, member.trim_end_matches(']'), text);
            }
            _ if name == LIST => {
                text.split(',').for_each(|item| push(&mut fields, &name, item.trim().to_owned()));
            }
            _ => put(&mut fields, name, text),
        }
    }
    fields
}

/// A field that comes twice is a list, which no single value may be.
fn put(fields: &mut Map<String, Value>, name: String, text: String) {
    let value = typed(&name, text);
    match fields.get_mut(&name) {
        None => {
            fields.insert(name, value);
        }
        Some(Value::Array(values)) => values.push(value),
        Some(first) => {
            let both = vec![first.take(), value];
            *first = Value::Array(both);
        }
    }
}

fn push(fields: &mut Map<String, Value>, list: &str, text: String) {
    let values = fields.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(values) = values {
        values.push(Value::String(text));
    }
}

fn put_inside(fields: &mut Map<String, Value>, object: &str, member: &str, text: String) {
    let members = fields.entry(object).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(members) = members {
        let is_number = object == OBJECT && MEMBER_NUMBERS.contains(&member);
        let value = if is_number { number(text) } else { Value::String(text) };
        members.insert(member.to_owned(), value);
    }
}

fn typed(name: &str, text: String) -> Value {
    match name {
        "stream" => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Value::Bool(true),
            "false" | "0" => Value::Bool(false),
            _ => Value::String(text),
        },
        "temperature" => number(text),
        OBJECT => serde_json::from_str(&text).map_or(Value::String(text), Value::Object),
        _ => Value::String(text),
    }
}

fn number(text: String) -> Value {
    let number = text.trim().parse().ok().and_then(Number::from_f64);
    number.map_or(Value::String(text), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_become_what_they_would_have_been() {
        let form = [
            ("model", "whisper-1"),
            ("temperature", "0.2"),
            ("stream", "True"),
            ("language", ""),
            ("timestamp_granularities[]", "word"),
            ("timestamp_granularities[]", "segment"),
            ("chunking_strategy[type]", "server_vad"),
            ("chunking_strategy[threshold]", "0.5"),
            ("chunking_strategy[silence_duration_ms]", "soon"),
            ("prompt", "a"),
            ("prompt", "b"),
            ("odd[", "x"),
        ];
        let form = form.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec();
        let expected = json!({
            "model": "whisper-1",
            "temperature": 0.2,
            "stream": true,
            "timestamp_granularities": ["word", "segment"],
            "chunking_strategy": {
                "type": "server_vad",
                "threshold": 0.5,
                "silence_duration_ms": "soon",
            },
            "prompt": ["a", "b"],
            "odd[": "x",
        });
        assert_eq!(Value::Object(to_json(form)), expected);
        let form = vec![("timestamp_granularities".to_owned(), "word, segment".to_owned())];
        assert_eq!(
            Value::Object(to_json(form)),
            json!({"timestamp_granularities": ["word", "segment"]})
        );
    }

    #[test]
    fn an_object_may_be_written_as_json() {
        let vad = r#"{"type": "server_vad", "threshold": 0.5}"#;
        let form = vec![("chunking_strategy".to_owned(), vad.to_owned())];
        let expected = json!({"chunking_strategy": {"type": "server_vad", "threshold": 0.5}});
        assert_eq!(Value::Object(to_json(form)), expected);
    }

    #[test]
    fn what_is_no_number_no_flag_and_no_object_stays_a_text() {
        let form = [
            ("temperature", "warm"),
            ("temperature", "NaN"),
            ("stream", "perhaps"),
            ("chunking_strategy", "auto"),
            ("chunking_strategy", "{"),
            ("chunking_strategy", "[1]"),
            ("prompt", "{}"),
        ];
        for (name, text) in form {
            let value = to_json(vec![(name.to_owned(), text.to_owned())]);
            assert_eq!(Value::Object(value), json!({name: text}));
        }
    }
}
