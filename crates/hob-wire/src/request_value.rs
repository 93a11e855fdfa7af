//! A JSON value of a request as a serde deserializer, so that request types derive `Deserialize`.
//! Its errors name the field, what the field takes and the kind of what came; they never repeat a text.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::WireError;

/// Characters of a name (of a model, a voice, a format).
const NAME_CHARS_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct RequestValue(pub(crate) Value);

impl RequestValue {
    fn wrong_type(&self, wanted: &str) -> WireError {
        WireError::WrongType {
            field: String::new(),
            wanted: wanted.to_owned(),
            got: kind_of(&self.0),
        }
    }

    /// Clients in untyped languages write whole numbers as `1.0` too.
    fn whole_number(&self) -> Result<i128, WireError> {
        const WANTED: &str = "a whole number";
        let signed = self.0.as_i64().map(i128::from);
        let exact = signed.or(self.0.as_u64().map(i128::from));
        let fraction = self.0.as_f64().filter(|number| number.fract() == 0.0);
        match exact.or(fraction.map(|number| number as i128)) {
            Some(number) => Ok(number),
            None if self.0.is_number() => {
                let (field, wanted) = (String::new(), WANTED.to_owned());
                Err(WireError::WrongType { field, wanted, got: "a fraction" })
            }
            None => Err(self.wrong_type(WANTED)),
        }
    }
}

macro_rules! whole_numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
            let number = self.whole_number()?;
            visitor.visit_i64(number.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
        }
    )*};
}

impl<'de> Deserializer<'de> for RequestValue {
    type Error = WireError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(values) => visitor.visit_seq(Elements::of(values)),
            Value::Object(members) => visitor.visit_map(Members::of(members)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.0 {
            Value::Bool(flag) => visitor.visit_bool(flag),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_i128(self.whole_number()?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.0.as_f64() {
            Some(number) => visitor.visit_f64(number),
            None => Err(self.wrong_type("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            _ => Err(self.wrong_type("a string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        self.deserialize_str(visitor)
    }

    /// Clients write `null` for what they leave out.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, WireError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.0 {
            Value::Array(values) => visitor.visit_seq(Elements::of(values)),
            _ => Err(self.wrong_type("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        match self.0 {
            Value::Object(members) => visitor.visit_map(Members::of(members)),
            _ => Err(self.wrong_type("an object")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        if let Value::Object(members) = &mut self.0 {
            members.retain(|_, value| !value.is_null());
        }
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        accepted: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WireError> {
        match self.0 {
            Value::String(word) if accepted.contains(&word.as_str()) => {
                visitor.visit_enum(IntoDeserializer::<WireError>::into_deserializer(word))
            }
            Value::String(word) => Err(WireError::not_one_of("", &word, accepted)),
            _ => Err(self.wrong_type("a string")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WireError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

/// The members of an object. An error inside one is reported with its name.
pub(crate) struct Members<I> {
    members: I,
    name: String,
    value: Value,
}

impl Members<serde_json::map::IntoIter> {
    fn of(members: Map<String, Value>) -> Self {
        Members::new(members.into_iter())
    }
}

impl<I: Iterator<Item = (String, Value)>> Members<I> {
    pub(crate) fn new(members: I) -> Self {
        Members { members, name: String::new(), value: Value::Null }
    }
}

impl<'de, I: Iterator<Item = (String, Value)>> MapAccess<'de> for Members<I> {
    type Error = WireError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, WireError> {
        let Some((name, value)) = self.members.next() else { return Ok(None) };
        (self.name, self.value) = (name.clone(), value);
        let name: StringDeserializer<WireError> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, WireError> {
        let value = RequestValue(self.value.take());
        seed.deserialize(value).map_err(|error| error.within(&self.name))
    }
}

/// The elements of a list. An error inside one is reported with its number.
struct Elements {
    values: std::iter::Enumerate<std::vec::IntoIter<Value>>,
}

impl Elements {
    fn of(values: Vec<Value>) -> Elements {
        Elements { values: values.into_iter().enumerate() }
    }
}

impl<'de> SeqAccess<'de> for Elements {
    type Error = WireError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, WireError> {
        let Some((index, value)) = self.values.next() else { return Ok(None) };
        let element = seed.deserialize(RequestValue(value));
        element.map(Some).map_err(|error| error.within(&format!("[{index}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A short text that names something: at most 256 characters.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(try_from = "String")]
#[schemars(inline)]
pub(crate) struct Name(pub(crate) String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Name, String> {
        match name.chars().count() {
            ..=NAME_CHARS_MAX => Ok(Name(name)),
            chars => Err(format!("has {chars} characters and the limit is {NAME_CHARS_MAX}")),
        }
    }
}

/// A field that clients write in one of two kinds of JSON: a text or a list, a flag or an object.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(untagged)]
#[schemars(untagged, inline)]
pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}

/// A type that is one kind of JSON: an object, unless it says otherwise.
pub(crate) trait JsonKind {
    const KIND: &'static str = "an object";
}

impl JsonKind for bool {
    const KIND: &'static str = "true or false";
}

impl JsonKind for f64 {
    const KIND: &'static str = "a number";
}

impl JsonKind for String {
    const KIND: &'static str = "a string";
}

impl JsonKind for Name {
    const KIND: &'static str = "a string";
}

impl<T> JsonKind for Vec<T> {
    const KIND: &'static str = "a list";
}

impl JsonKind for Map<String, Value> {}

/// A kind of JSON that can be read.
pub(crate) trait ReadKind<'de>: Deserialize<'de> + JsonKind {}

impl<'de, T: Deserialize<'de> + JsonKind> ReadKind<'de> for T {}

impl<'de, A: ReadKind<'de>, B: ReadKind<'de>> Deserialize<'de> for Either<A, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Either<A, B>, D::Error> {
        deserializer.deserialize_any(EitherKind(PhantomData))
    }
}

struct EitherKind<A, B>(PhantomData<(A, B)>);

impl<'de, A: ReadKind<'de>, B: ReadKind<'de>> EitherKind<A, B> {
    fn pick<D: Deserializer<'de>>(
        &self,
        kind: &str,
        unexpected: Unexpected<'_>,
        value: D,
    ) -> Result<Either<A, B>, D::Error> {
        match kind {
            _ if kind == A::KIND => A::deserialize(value).map(Either::First),
            _ if kind == B::KIND => B::deserialize(value).map(Either::Second),
            _ => Err(D::Error::invalid_type(unexpected, self)),
        }
    }
}

impl<'de, A: ReadKind<'de>, B: ReadKind<'de>> Visitor<'de> for EitherKind<A, B> {
    type Value = Either<A, B>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} or {}", A::KIND, B::KIND)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Either<A, B>, E> {
        self.pick(bool::KIND, Unexpected::Bool(flag), flag.into_deserializer())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Either<A, B>, E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Either<A, B>, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Either<A, B>, E> {
        self.pick(f64::KIND, Unexpected::Float(number), number.into_deserializer())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Either<A, B>, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Either<A, B>, E> {
        self.pick(String::KIND, Unexpected::Str(""), text.into_deserializer())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<Either<A, B>, S::Error> {
        self.pick(Vec::<()>::KIND, Unexpected::Seq, SeqAccessDeserializer::new(list))
    }

    fn visit_map<M: MapAccess<'de>>(self, object: M) -> Result<Either<A, B>, M::Error> {
        const OBJECT: &str = Map::<String, Value>::KIND;
        self.pick(OBJECT, Unexpected::Map, MapAccessDeserializer::new(object))
    }
}

/// Reads the elements of the list `field`. `most` says what they are, and how many there may be.
///
/// # Errors
/// There are too many, or one is wrong: the error names its place.
pub(crate) fn each<S, T>(
    field: &str,
    sent: Vec<S>,
    most: (&str, usize),
    mut read: impl FnMut(S) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    check_count(field, sent.len(), most)?;
    let read = |(index, element)| {
        read(element).map_err(|error| error.within(&format!("{field}[{index}]")))
    };
    sent.into_iter().enumerate().map(read).collect()
}

pub(crate) fn check_count(
    field: &str,
    count: usize,
    (elements, count_max): (&str, usize),
) -> Result<(), WireError> {
    if count <= count_max {
        return Ok(());
    }
    let reason = format!("has {count} {elements} and the limit is {count_max}");
    Err(WireError::invalid(field, reason))
}

/// A number of the range, in whole units.
pub(crate) fn number_within<'de, D: Deserializer<'de>, const LOW: i32, const HIGH: i32>(
    value: D,
) -> Result<Option<f32>, D::Error> {
    match Option::<f64>::deserialize(value)? {
        Some(number) if !(f64::from(LOW)..=f64::from(HIGH)).contains(&number) => {
            Err(out_of_range(LOW, HIGH, number))
        }
        number => Ok(number.map(|number| number as f32)),
    }
}

/// A whole number of the range.
pub(crate) fn count_within<'de, D: Deserializer<'de>, const LOW: u32, const HIGH: u32>(
    value: D,
) -> Result<Option<u32>, D::Error> {
    match Option::<i64>::deserialize(value)? {
        Some(count) if !(i64::from(LOW)..=i64::from(HIGH)).contains(&count) => {
            Err(out_of_range(LOW, HIGH, count))
        }
        count => Ok(count.and_then(|count| u32::try_from(count).ok())),
    }
}

/// A number of tokens. Below zero means "no limit": some clients have no other word.
pub(crate) fn tokens<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    let tokens = Option::<i64>::deserialize(value)?.filter(|tokens| *tokens >= 0);
    Ok(tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)))
}

/// A limit of tokens. Zero means "no limit", too: clients send it for a field that is not set.
pub(crate) fn token_limit<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    Ok(tokens(value)?.filter(|tokens| *tokens > 0))
}

pub(crate) fn out_of_range<E: Error>(
    low: impl std::fmt::Display,
    high: impl std::fmt::Display,
    got: impl std::fmt::Display,
) -> E {
    E::custom(format_args!("must be from {low} to {high}, and is {got}"))
}
