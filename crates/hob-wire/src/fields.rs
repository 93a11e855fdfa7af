//! The JSON object of a request: each type takes the fields that it names, and leaves the others.
//! A field that no type names is never built in memory: its text is kept, and can be named or passed on.

use std::collections::BTreeMap;
use std::fmt;

use hob_core::JsonText;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::WireError;
use crate::census::Census;
use crate::error::json;
use crate::request_value::Members;

/// Fields of the request itself; each costs an entry of the map.
const FIELDS_MAX: usize = 1_000;

/// JSON values that are built in memory for one body. Each takes up to 200 bytes, however short its text is.
const VALUES_MAX: usize = 500_000;

/// Prompts as ids of a model's vocabulary.
pub(crate) type TokenLists = Vec<Vec<u32>>;

/// The fields in the order of their names, each name once. A list, because a request has few fields, and most names that
/// are asked for are not among them.
#[derive(Debug)]
pub(crate) struct Fields<'a>(Vec<(String, Field<'a>)>);

#[derive(Debug)]
enum Field<'a> {
    /// As it stands in the body, whose syntax has been checked.
    Text(&'a RawValue),
    Value(Value),
}

impl<'a> Fields<'a> {
    /// # Errors
    /// The body is not a JSON object, or has more fields or values than any request needs.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Fields<'a>, WireError> {
        let fields = Fields::split(body)?;
        fields.check_values()?;
        Ok(fields)
    }

    /// Parses a body whose `field` may be a list of token ids, or a list of such lists: these are parsed into
    /// numbers at once, and do not count as values.
    pub(crate) fn parse_with_tokens(
        body: &'a [u8],
        field: &'static str,
        lists_max: usize,
    ) -> Result<(Fields<'a>, Option<TokenLists>), WireError> {
        let mut fields = Fields::split(body)?;
        let tokens = match fields.get(field) {
            Some(Field::Text(text)) => token_lists(text.get(), lists_max),
            _ => None,
        };
        if tokens.is_some() {
            fields.remove(field);
        }
        fields.check_values()?;
        Ok((fields, tokens))
    }

    fn split(body: &'a [u8]) -> Result<Fields<'a>, WireError> {
        let text =
            str::from_utf8(body).map_err(|error| WireError::NotUtf8 { at: error.valid_up_to() })?;
        Census::of(text).map_err(|error| malformed(&error))?;
        if !text.trim_start().starts_with('{') {
            return Err(WireError::NotAnObject { got: kind_of_text(text.trim_start()) });
        }
        let BodyMembers { fields, count } =
            serde_json::from_str(text).map_err(|error| malformed(&error))?;
        if count > FIELDS_MAX {
            return Err(WireError::TooManyFields { count, count_max: FIELDS_MAX });
        }
        Ok(Fields(fields.into_iter().collect()))
    }

    fn check_values(&self) -> Result<(), WireError> {
        let texts = self.0.iter().filter_map(|(_, field)| match field {
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

    /// The members of an object that has been parsed already.
    pub(crate) fn of(members: Map<String, Value>) -> Fields<'static> {
        let members = members.into_iter().map(|(name, value)| (name, Field::Value(value)));
        Fields(members.collect::<BTreeMap<_, _>>().into_iter().collect())
    }

    /// Adds the fields of `other`, which win over fields of the same name.
    pub(crate) fn replace_by(&mut self, other: Fields<'a>) {
        let all = std::mem::take(&mut self.0).into_iter().chain(other.0);
        self.0 = all.collect::<BTreeMap<_, _>>().into_iter().collect();
    }

    /// Takes the fields of `T` and leaves the others. One body may hold the fields of several types.
    ///
    /// # Errors
    /// [`WireError`], naming the field and what it takes.
    pub(crate) fn read<T: DeserializeOwned>(&mut self) -> Result<T, WireError> {
        T::deserialize(self)
    }

    /// Everything that was sent and not taken, `null` included.
    pub(crate) fn into_members(self) -> impl Iterator<Item = (String, Value)> {
        self.0.into_iter().map(|(name, field)| (name, field.into_value()))
    }

    /// Whether a field was sent that is an object, and was not taken.
    pub(crate) fn has_object(&self, field: &str) -> bool {
        self.get(field).is_some_and(|sent| match sent {
            Field::Text(text) => text.get().starts_with('{'),
            Field::Value(value) => value.is_object(),
        })
    }

    /// The names of what was sent and not taken, in the order of the alphabet.
    pub(crate) fn into_unknown(self) -> Vec<String> {
        let sent = self.0.into_iter().filter(|(_, field)| !field.is_null());
        sent.map(|(name, _)| name).collect()
    }

    /// What was sent and not taken, as an object in the order of the alphabet; none where nothing is left.
    pub(crate) fn rest(&self) -> Option<JsonText> {
        let sent = self.0.iter().filter(|(_, field)| !field.is_null());
        let rest: BTreeMap<&String, &Field<'_>> = sent.map(|(name, field)| (name, field)).collect();
        (!rest.is_empty()).then(|| JsonText::parsed(json(&rest)))
    }

    /// Clients write `null` for what they leave out.
    fn take(&mut self, field: &str) -> Option<Value> {
        let value = self.remove(field)?.into_value();
        Some(value).filter(|value| !value.is_null())
    }

    fn get(&self, field: &str) -> Option<&Field<'a>> {
        self.0.iter().find(|(name, _)| name == field).map(|(_, sent)| sent)
    }

    fn remove(&mut self, field: &str) -> Option<Field<'a>> {
        let place = self.0.iter().position(|(name, _)| name == field)?;
        Some(self.0.remove(place).1)
    }
}

/// A type names its fields; these are taken.
impl<'de> Deserializer<'de> for &mut Fields<'_> {
    type Error = WireError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        let sent = names.iter().filter_map(|name| {
            let value = self.take(name)?;
            Some(((*name).to_owned(), value))
        });
        visitor.visit_map(Members::new(sent))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        let names: Vec<String> = self.0.iter().map(|(name, _)| name.clone()).collect();
        let sent = names.into_iter().filter_map(|name| {
            let value = self.take(&name)?;
            Some((name, value))
        });
        visitor.visit_map(Members::new(sent))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl Field<'_> {
    fn into_value(self) -> Value {
        match self {
            Field::Value(value) => value,
            // Its syntax was checked with the whole body's.
            Field::Text(text) => serde_json::from_str(text.get()).unwrap_or(Value::Null),
        }
    }

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
struct BodyMembers<'a> {
    fields: BTreeMap<String, Field<'a>>,
    count: usize,
}

impl<'de> Deserialize<'de> for BodyMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BodyMembers<'de>, D::Error> {
        deserializer.deserialize_map(ReadMembers)
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = BodyMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<BodyMembers<'de>, A::Error> {
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
        Ok(BodyMembers { fields, count })
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

/// serde_json ends its message with the position, which is kept apart here.
pub(crate) fn malformed(error: &serde_json::Error) -> WireError {
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

/// The kind of a valid JSON text.
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
        #[derive(serde::Deserialize)]
        struct Known {
            b: Option<String>,
        }
        let known: Known = fields.read().expect("a string");
        assert_eq!(known.b.as_deref(), Some("last"));
        let rest = fields.rest().expect("more");
        assert_eq!(rest.as_str(), r#"{"a":{"z": 1, "y": 2}}"#);
        assert_eq!(fields.into_unknown(), ["a"]);
    }
}
