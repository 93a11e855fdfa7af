//! A JSON object, read field by field: each value is parsed when it is asked for, with its type checked by name.
//! A field that no code asks for is never built in memory: its text is kept, and can be named or passed on.

use std::collections::BTreeMap;
use std::fmt;

use hob_core::JsonText;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::WireError;
use crate::census::Census;
use crate::error::json;

/// Characters of a name (of a model, a voice, a format).
const NAME_CHARS_MAX: usize = 256;

/// Fields of the request itself; each costs an entry of the map.
const FIELDS_MAX: usize = 1_000;

/// JSON values that are built in memory for one body. Each takes up to 200 bytes, however short its text is.
const VALUES_MAX: usize = 500_000;

/// Prompts as ids of a model's vocabulary.
pub(crate) type TokenLists = Vec<Vec<u32>>;

#[derive(Debug)]
pub(crate) struct Fields<'a>(BTreeMap<String, Field<'a>>);

#[derive(Debug)]
enum Field<'a> {
    /// As it stands in the body, whose syntax has been checked.
    Text(&'a RawValue),
    Value(Value),
}

impl<'a> Fields<'a> {
    /// # Errors
    /// The body is no JSON object, or has more fields or values than any request needs.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Fields<'a>, WireError> {
        let fields = Fields::read(body)?;
        fields.check_values()?;
        Ok(fields)
    }

    /// The same of a body whose `field` may be a list of token ids, or a list of such lists: these are parsed into
    /// numbers at once, and do not count as values.
    pub(crate) fn parse_with_tokens(
        body: &'a [u8],
        field: &'static str,
        lists_max: usize,
    ) -> Result<(Fields<'a>, Option<TokenLists>), WireError> {
        let mut fields = Fields::read(body)?;
        let tokens = match fields.0.get(field) {
            Some(Field::Text(text)) => token_lists(text.get(), lists_max),
            _ => None,
        };
        if tokens.is_some() {
            fields.0.remove(field);
        }
        fields.check_values()?;
        Ok((fields, tokens))
    }

    fn read(body: &'a [u8]) -> Result<Fields<'a>, WireError> {
        let text =
            str::from_utf8(body).map_err(|error| WireError::NotUtf8 { at: error.valid_up_to() })?;
        Census::of(text).map_err(|error| malformed(&error))?;
        if !text.trim_start().starts_with('{') {
            return Err(WireError::NotAnObject { got: kind_of_text(text.trim_start()) });
        }
        let Members { fields, count } =
            serde_json::from_str(text).map_err(|error| malformed(&error))?;
        if count > FIELDS_MAX {
            return Err(WireError::TooManyFields { count, count_max: FIELDS_MAX });
        }
        Ok(Fields(fields))
    }

    fn check_values(&self) -> Result<(), WireError> {
        let texts = self.0.values().filter_map(|field| match field {
            Field::Text(text) => Some(text.get()),
            Field::Value(_) => None,
        });
        // A value needs a byte of text and a comma, so most bodies need not be counted.
        let (mut bytes, mut values) = (0, 0);
        for text in texts {
            bytes += text.len();
            if bytes > VALUES_MAX {
                values += Census::of(text).map_err(|error| malformed(&error))?;
            }
        }
        if values > VALUES_MAX {
            return Err(WireError::TooManyValues { count_max: VALUES_MAX });
        }
        Ok(())
    }

    /// An element of a list, or a member, that must be an object.
    pub(crate) fn of(field: &'static str, value: Value) -> Result<Fields<'static>, WireError> {
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, Field::Value(value)));
                Ok(Fields(fields.collect()))
            }
            other => Err(wrong_type(field, "an object", &other)),
        }
    }

    /// A member that is an object itself.
    pub(crate) fn object(
        &mut self,
        field: &'static str,
    ) -> Result<Option<Fields<'static>>, WireError> {
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
        let sent = self.0.into_iter().filter(|(_, field)| !field.is_null());
        sent.map(|(name, _)| name).collect()
    }

    /// What was sent and not taken, as an object in the order of the alphabet; none where nothing is
    /// left.
    pub(crate) fn rest(&self) -> Option<JsonText> {
        let sent = self.0.iter().filter(|(_, field)| !field.is_null());
        let rest: BTreeMap<&String, &Field<'_>> = sent.collect();
        (!rest.is_empty()).then(|| JsonText::parsed(json(&rest)))
    }

    /// Clients write `null` for what they leave out.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        let value = match self.0.remove(field)? {
            Field::Value(value) => value,
            // Its syntax was checked with the whole body's.
            Field::Text(text) => serde_json::from_str(text.get()).unwrap_or(Value::Null),
        };
        Some(value).filter(|value| !value.is_null())
    }
}

impl Field<'_> {
    fn is_null(&self) -> bool {
        match self {
            Field::Text(text) => text.get() == "null",
            Field::Value(value) => value.is_null(),
        }
    }
}

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Field::Text(text) => text.serialize(serializer),
            Field::Value(value) => value.serialize(serializer),
        }
    }
}

/// The members of an object as they stand, at most [`FIELDS_MAX`] of them; of several with one name the last counts.
struct Members<'a> {
    fields: BTreeMap<String, Field<'a>>,
    count: usize,
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_map(ReadMembers)
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members<'de>, A::Error> {
        let (mut fields, mut count) = (BTreeMap::new(), 0);
        while count < FIELDS_MAX
            && let Some((name, text)) = object.next_entry()?
        {
            count += 1;
            fields.insert(name, Field::Text(text));
        }
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Members { fields, count })
    }
}

/// A list of token ids, or at most `lists_max` of them; none where the text is anything else.
fn token_lists(text: &str, lists_max: usize) -> Option<TokenLists> {
    // One bracket more opens the outer list.
    let lists = text.bytes().filter(|byte| *byte == b'[').count();
    if !(1..=lists_max + 1).contains(&lists) {
        return None;
    }
    if lists == 1 {
        let tokens: Vec<u32> = serde_json::from_str(text).ok()?;
        return (!tokens.is_empty()).then(|| vec![tokens]);
    }
    serde_json::from_str(text).ok()
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

/// Of a text that is valid JSON.
fn kind_of_text(text: &str) -> &'static str {
    match text.as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a string",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY_BYTES: usize = 2 << 20;

    fn body_of(field: &str, element: &str) -> String {
        let elements = vec![element; BODY_BYTES / (element.len() + 1)].join(",");
        format!(r#"{{"{field}":[{elements}],"model":"m"}}"#)
    }

    #[test]
    fn a_body_of_millions_of_small_values_is_refused_before_they_are_built() {
        let refused = WireError::TooManyValues { count_max: VALUES_MAX };
        for element in ["{}", "[]", "1", r#""""#, r#"{"a":1}"#] {
            let body = body_of("unknown", element);
            assert_eq!(Fields::parse(body.as_bytes()).expect_err(element), refused);
        }
        let many: String = (0..100_000).map(|number| format!(r#""f{number}":0,"#)).collect();
        let body = format!(r#"{{{many}"model":"m"}}"#);
        assert_eq!(
            Fields::parse(body.as_bytes()).expect_err("a refusal"),
            WireError::TooManyFields { count: 100_001, count_max: FIELDS_MAX }
        );
    }

    #[test]
    fn token_ids_are_numbers_of_four_bytes() {
        let body = body_of("input", "1");
        let (fields, tokens) =
            Fields::parse_with_tokens(body.as_bytes(), "input", 8).expect("fields");
        assert_eq!(tokens.expect("tokens")[0].len(), BODY_BYTES / 2);
        assert_eq!(fields.into_unknown(), ["model"]);
        for (input, expected) in [
            ("[1,2]", Some(vec![vec![1, 2]])),
            ("[[1],[2,3]]", Some(vec![vec![1], vec![2, 3]])),
            ("[[1],[2],[3]]", None),
            ("[1,2.5]", None),
            ("[[1],\"b\"]", None),
            ("[]", None),
            ("\"text\"", None),
        ] {
            let body = format!(r#"{{"input":{input}}}"#);
            let (_, tokens) =
                Fields::parse_with_tokens(body.as_bytes(), "input", 2).expect("fields");
            assert_eq!(tokens, expected, "{input}");
        }
    }

    #[test]
    fn what_no_code_asks_for_keeps_its_text() {
        let body = br#"{ "b": [1,  2.50], "a": {"z": 1, "y": 2}, "null": null, "b": "last" }"#;
        let mut fields = Fields::parse(body).expect("fields");
        assert_eq!(fields.text("b").expect("a string").as_deref(), Some("last"));
        let rest = fields.rest().expect("more");
        assert_eq!(rest.as_str(), r#"{"a":{"z": 1, "y": 2}}"#);
        assert_eq!(fields.into_unknown(), ["a"]);
    }
}
