//! JSON fields that may hold anything: a value of an unexpected type counts as absent.
//! One odd field does not end an answer, and texts without escapes are read where they stand.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// More tokens than any model computes. The sum of two such numbers fits 32 bits.
const COUNT_MAX: f64 = (1 << 30) as f64;

/// A text, or an empty one.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The place of the text in `whole`, if it was read there.
    pub(super) fn place_in(&self, whole: &str) -> Option<Range<usize>> {
        let Cow::Borrowed(text) = &self.0 else { return None };
        let start = text.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let place = start..start + text.len();
        (whole.get(place.clone()) == Some(*text)).then_some(place)
    }
}

/// A text; or a list of parts, of which some may be thinking, as Mistral's are.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) text: Text<'a>,
    pub(super) thought: Text<'a>,
}

/// A number of tokens, or of anything else that is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count(pub(super) Option<u32>);

/// A number that measures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount(pub(super) Option<f64>);

/// True, or anything else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flag(pub(super) bool);

/// An object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Maybe<T>(pub(super) Option<T>);

/// The objects of a list.
#[derive(Debug, Default)]
pub(super) struct Objects<T>(pub(super) Vec<T>);

/// The first object of a list; the others are not read.
#[derive(Debug, Default)]
pub(super) struct First<T>(pub(super) Option<T>);

/// What a server says went wrong. Some send the field with every piece, and nothing in it.
pub(super) fn error_in(field: Option<&Value>) -> Option<&Value> {
    let error = field?;
    let says_nothing = match error {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Array(_) => false,
    };
    (!says_nothing).then_some(error)
}

/// A text; or a list whose elements have texts, which are joined.
pub(super) fn parts<'de, D: Deserializer<'de>>(value: D) -> Result<Text<'de>, D::Error> {
    Content::deserialize(value).map(|content| content.text)
}

/// A text; or an object, as the JSON that it is.
pub(super) fn written<'de, D: Deserializer<'de>>(value: D) -> Result<Text<'de>, D::Error> {
    Written::deserialize(value).map(|Written(text)| text)
}

/// What [`written`] reads.
#[derive(Default)]
struct Written<'a>(Text<'a>);

/// A type that reads some kinds of JSON. All else is its default.
trait Lenient<'de>: Default {
    fn of_text(_: Cow<'de, str>) -> Self {
        Self::default()
    }

    fn of_number(_: f64) -> Self {
        Self::default()
    }

    fn of_flag(_: bool) -> Self {
        Self::default()
    }

    fn of_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        skip_list(list).map(|()| Self::default())
    }

    fn of_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de: 'a, 'a> Lenient<'de> for Text<'a> {
    fn of_text(text: Cow<'de, str>) -> Text<'a> {
        Text(text)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Content<'a> {
    fn of_text(text: Cow<'de, str>) -> Content<'a> {
        Content { text: Text(text), thought: Text::default() }
    }

    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Content<'a>, A::Error> {
        let (mut joined, mut thought) = (String::new(), String::new());
        while let Some(part) = list.next_element::<Value>()? {
            let text = part.as_str().or_else(|| part["text"].as_str());
            joined += text.or_else(|| part["summary"].as_str()).unwrap_or_default();
            let thoughts = part["thinking"].as_array().into_iter().flatten();
            thoughts.filter_map(|part| part["text"].as_str()).for_each(|text| thought += text);
        }
        Ok(Content { text: Text(Cow::Owned(joined)), thought: Text(Cow::Owned(thought)) })
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Written<'a> {
    fn of_text(text: Cow<'de, str>) -> Written<'a> {
        Written(Text(text))
    }

    fn of_object<A: MapAccess<'de>>(object: A) -> Result<Written<'a>, A::Error> {
        let object = Value::deserialize(MapAccessDeserializer::new(object))?;
        Ok(Written(Text(Cow::Owned(object.to_string()))))
    }
}

impl Lenient<'_> for Amount {
    fn of_number(number: f64) -> Amount {
        Amount(Some(number))
    }
}

impl Lenient<'_> for Count {
    fn of_number(number: f64) -> Count {
        Count((0.0..=COUNT_MAX).contains(&number).then_some(number as u32))
    }
}

impl Lenient<'_> for Flag {
    fn of_flag(flag: bool) -> Flag {
        Flag(flag)
    }
}

impl<'de, T: Deserialize<'de> + Default> Lenient<'de> for Maybe<T> {
    fn of_object<A: MapAccess<'de>>(object: A) -> Result<Maybe<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|object| Maybe(Some(object)))
    }
}

impl<'de, T: Deserialize<'de> + Default> Lenient<'de> for Objects<T> {
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Objects<T>, A::Error> {
        let mut objects = Vec::new();
        while let Some(Maybe(object)) = list.next_element::<Maybe<T>>()? {
            objects.extend(object);
        }
        Ok(Objects(objects))
    }
}

impl<'de, T: Deserialize<'de> + Default> Lenient<'de> for First<T> {
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<First<T>, A::Error> {
        while let Some(Maybe(object)) = list.next_element::<Maybe<T>>()? {
            if object.is_some() {
                return skip_list(list).map(|()| First(object));
            }
        }
        Ok(First(None))
    }
}

struct AnyKind<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for AnyKind<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::of_text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::of_text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(T::of_flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(T::of_number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::of_number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(T::of_number(number))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::of_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::of_object(object)
    }
}

macro_rules! deserialize_any_kind {
    ($([$($generics:tt)*] $of:ty;)*) => {
        $(impl<'de $($generics)*> Deserialize<'de> for $of {
            fn deserialize<D: Deserializer<'de>>(value: D) -> Result<$of, D::Error> {
                value.deserialize_any(AnyKind(PhantomData))
            }
        })*
    };
}

deserialize_any_kind! {
    [: 'a, 'a] Text<'a>;
    [: 'a, 'a] Content<'a>;
    [: 'a, 'a] Written<'a>;
    [] Amount;
    [] Count;
    [] Flag;
    [, T: Deserialize<'de> + Default] Maybe<T>;
    [, T: Deserialize<'de> + Default] Objects<T>;
    [, T: Deserialize<'de> + Default] First<T>;
}

#[cfg(test)]
mod tests;
