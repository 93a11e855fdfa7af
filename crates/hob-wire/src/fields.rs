//! A JSON object, taken apart field by field: each is read once, with its type checked by name.
//! What nobody took is what this hob does not know, and can be named.

use std::collections::BTreeMap;

use hob_core::JsonText;
use serde_json::{Map, Value};

use crate::WireError;
use crate::error::json;

/// Characters of a name (of a model, a voice, a format); longer ones are nobody's.
const NAME_CHARS_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn parse(body: &[u8]) -> Result<Fields, WireError> {
        let text =
            str::from_utf8(body).map_err(|error| WireError::NotUtf8 { at: error.valid_up_to() })?;
        match serde_json::from_str(text).map_err(|error| malformed(&error))? {
            Value::Object(fields) => Ok(Fields(fields)),
            other => Err(WireError::NotAnObject { got: kind_of(&other) }),
        }
    }

    /// An element of a list, or a member, that must be an object.
    pub(crate) fn of(field: &'static str, value: Value) -> Result<Fields, WireError> {
        match value {
            Value::Object(fields) => Ok(Fields(fields)),
            other => Err(wrong_type(field, "an object", &other)),
        }
    }

    /// A member that is an object itself.
    pub(crate) fn object(&mut self, field: &'static str) -> Result<Option<Fields>, WireError> {
        self.take(field).map(|value| Fields::of(field, value)).transpose()
    }

    pub(crate) fn list(&mut self, field: &'static str) -> Result<Option<Vec<Value>>, WireError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(other) => Err(wrong_type(field, "a list", &other)),
        }
    }

    /// A text of any length.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<Option<String>, WireError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(field, "a string", &other)),
        }
    }

    /// A short text that names something.
    pub(crate) fn name(&mut self, field: &'static str) -> Result<Option<String>, WireError> {
        self.text(field)?.map(|name| bounded(field, name)).transpose()
    }

    /// A name, or an object that holds it as `id`.
    pub(crate) fn name_or_id(&mut self, field: &'static str) -> Result<Option<String>, WireError> {
        const WANTED: &str = "a string or an object with an 'id'";
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(name)) => bounded(field, name).map(Some),
            Some(Value::Object(mut object)) => match object.remove("id") {
                Some(Value::String(id)) => bounded(field, id).map(Some),
                _ => Err(WireError::WrongType { field, wanted: WANTED, got: "one without" }),
            },
            Some(other) => Err(wrong_type(field, WANTED, &other)),
        }
    }

    pub(crate) fn number(&mut self, field: &'static str) -> Result<Option<f64>, WireError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(other) => Err(wrong_type(field, "a number", &other)),
        }
    }

    /// Clients in untyped languages write whole numbers as `1.0` too.
    pub(crate) fn whole_number(&mut self, field: &'static str) -> Result<Option<i64>, WireError> {
        const WANTED: &str = "a whole number";
        let Some(value) = self.take(field) else { return Ok(None) };
        let fraction = value.as_f64().filter(|number| number.fract() == 0.0);
        match value.as_i64().or(fraction.map(|number| number as i64)) {
            Some(number) => Ok(Some(number)),
            None if value.is_number() => {
                Err(WireError::WrongType { field, wanted: WANTED, got: "a fraction" })
            }
            None => Err(wrong_type(field, WANTED, &value)),
        }
    }

    pub(crate) fn flag(&mut self, field: &'static str) -> Result<Option<bool>, WireError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(wrong_type(field, "true or false", &other)),
        }
    }

    /// One of `accepted`.
    pub(crate) fn choice(
        &mut self,
        field: &'static str,
        accepted: &[&'static str],
    ) -> Result<Option<&'static str>, WireError> {
        let Some(got) = self.name(field)? else { return Ok(None) };
        match accepted.iter().find(|name| **name == got) {
            Some(name) => Ok(Some(name)),
            None => Err(WireError::NotOneOf { field, got, accepted: accepted.to_vec() }),
        }
    }

    /// The names of what was sent and not taken, in the order of the alphabet.
    pub(crate) fn into_unknown(self) -> Vec<String> {
        let sent = self.0.into_iter().filter(|(_, value)| !value.is_null());
        let mut names: Vec<String> = sent.map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    }

    /// What was sent and not taken, as an object in the order of the alphabet; none where nothing is
    /// left.
    pub(crate) fn rest(&self) -> Option<JsonText> {
        let sent = self.0.iter().filter(|(_, value)| !value.is_null());
        let rest: BTreeMap<&String, &Value> = sent.collect();
        (!rest.is_empty()).then(|| JsonText::parsed(json(&rest)))
    }

    /// Clients write `null` for what they leave out.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }
}

fn bounded(field: &'static str, name: String) -> Result<String, WireError> {
    let chars = name.chars().count();
    if chars > NAME_CHARS_MAX {
        return Err(WireError::NameTooLong { field, chars, chars_max: NAME_CHARS_MAX });
    }
    Ok(name)
}

/// serde_json ends its message with the position, which is kept apart here.
fn malformed(error: &serde_json::Error) -> WireError {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let position = format!(" at line {line} column {column}");
    let detail = message.strip_suffix(&position).unwrap_or(&message);
    // The parser's two ways to say that a pair of escapes is not whole.
    let detail = match detail.contains("hex escape") {
        true => "a \\u escape is wrong, or half of a surrogate pair".to_owned(),
        false => detail.to_owned(),
    };
    WireError::Malformed { detail, line, column }
}

pub(crate) fn wrong_type(field: &'static str, wanted: &'static str, got: &Value) -> WireError {
    WireError::WrongType { field, wanted, got: kind_of(got) }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
