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
#[derive(Clone, Copy, Debug)]
pub(super) struct Maybe<T>(pub(super) Option<T>);

impl<T> Default for Maybe<T> {
    fn default() -> Maybe<T> {
        Maybe(None)
    }
}

/// The objects of a list.
#[derive(Debug)]
pub(super) struct Objects<T>(pub(super) Vec<T>);

impl<T> Default for Objects<T> {
    fn default() -> Objects<T> {
        Objects(Vec::new())
    }
}

/// The first object of a list; the others are not read.
#[derive(Debug)]
pub(super) struct First<T>(pub(super) Option<T>);

impl<T> Default for First<T> {
    fn default() -> First<T> {
        First(None)
    }
}

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
pub(super) fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text<'de>, D::Error> {
    text(deserializer, Instead::Parts)
}

/// A text; or an object, as the JSON that it is.
pub(super) fn written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text<'de>, D::Error> {
    text(deserializer, Instead::Written)
}

/// How to read a value that is not a text.
#[derive(Clone, Copy)]
enum Instead {
    Nothing,
    Parts,
    Written,
}

/// Anything that is neither a list nor an object, or was made a text.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    /// The joined texts of a list, and its thinking.
    Parts {
        text: String,
        thought: String,
    },
    Number(f64),
    Flag(bool),
    Nothing,
}

struct ScalarVisitor(Instead);

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar<'de>, A::Error> {
        if !matches!(self.0, Instead::Parts) {
            return skip_list(list).map(|()| Scalar::Nothing);
        }
        let (mut joined, mut thought) = (String::new(), String::new());
        while let Some(part) = list.next_element::<Value>()? {
            let text = part.as_str().or_else(|| part["text"].as_str());
            joined += text.or_else(|| part["summary"].as_str()).unwrap_or_default();
            let thoughts = part["thinking"].as_array().into_iter().flatten();
            thoughts.filter_map(|part| part["text"].as_str()).for_each(|text| thought += text);
        }
        Ok(Scalar::Parts { text: joined, thought })
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Scalar<'de>, A::Error> {
        if !matches!(self.0, Instead::Written) {
            return skip_object(object).map(|()| Scalar::Nothing);
        }
        let object = Value::deserialize(MapAccessDeserializer::new(object))?;
        Ok(Scalar::Text(Cow::Owned(object.to_string())))
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D, or: Instead) -> Result<Text<'de>, D::Error> {
    match deserializer.deserialize_any(ScalarVisitor(or))? {
        Scalar::Text(text) => Ok(Text(text)),
        Scalar::Parts { text, .. } => Ok(Text(Cow::Owned(text))),
        Scalar::Number(_) | Scalar::Flag(_) | Scalar::Nothing => Ok(Text::default()),
    }
}

fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<(), A::Error> {
    while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        text(deserializer, Instead::Nothing)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content<'a>, D::Error> {
        Ok(match deserializer.deserialize_any(ScalarVisitor(Instead::Parts))? {
            Scalar::Text(text) => Content { text: Text(text), thought: Text::default() },
            Scalar::Parts { text, thought } => {
                Content { text: Text(Cow::Owned(text)), thought: Text(Cow::Owned(thought)) }
            }
            Scalar::Number(_) | Scalar::Flag(_) | Scalar::Nothing => Content::default(),
        })
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        Ok(match deserializer.deserialize_any(ScalarVisitor(Instead::Nothing))? {
            Scalar::Number(number) => Amount(Some(number)),
            Scalar::Text(_) | Scalar::Parts { .. } | Scalar::Flag(_) | Scalar::Nothing => {
                Amount(None)
            }
        })
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Count, D::Error> {
        let Amount(number) = Amount::deserialize(deserializer)?;
        let number = number.filter(|number| (0.0..=COUNT_MAX).contains(number));
        Ok(Count(number.map(|number| number as u32)))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flag, D::Error> {
        let flag = deserializer.deserialize_any(ScalarVisitor(Instead::Nothing))?;
        Ok(Flag(matches!(flag, Scalar::Flag(true))))
    }
}

/// A type that reads lists, or objects. All else is its default.
trait Container<'de>: Default {
    fn of_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        skip_list(list).map(|()| Self::default())
    }

    fn of_object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        skip_object(object).map(|()| Self::default())
    }
}

struct ContainerVisitor<C>(PhantomData<C>);

macro_rules! scalars_are_nothing {
    ($($visit:ident: $of:ty),*) => {
        $(fn $visit<E>(self, _: $of) -> Result<C, E> {
            Ok(C::default())
        })*
    };
}

impl<'de, C: Container<'de>> Visitor<'de> for ContainerVisitor<C> {
    type Value = C;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    scalars_are_nothing!(
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str
    );

    fn visit_unit<E>(self) -> Result<C, E> {
        Ok(C::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<C, A::Error> {
        C::of_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<C, A::Error> {
        C::of_object(object)
    }
}

impl<'de, T: Deserialize<'de>> Container<'de> for Maybe<T> {
    fn of_object<A: MapAccess<'de>>(object: A) -> Result<Maybe<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|object| Maybe(Some(object)))
    }
}

impl<'de, T: Deserialize<'de>> Container<'de> for Objects<T> {
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Objects<T>, A::Error> {
        let mut objects = Vec::new();
        while let Some(Maybe(object)) = list.next_element::<Maybe<T>>()? {
            objects.extend(object);
        }
        Ok(Objects(objects))
    }
}

impl<'de, T: Deserialize<'de>> Container<'de> for First<T> {
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<First<T>, A::Error> {
        while let Some(Maybe(object)) = list.next_element::<Maybe<T>>()? {
            if object.is_some() {
                return skip_list(list).map(|()| First(object));
            }
        }
        Ok(First(None))
    }
}

macro_rules! read_containers {
    ($($container:ident),*) => {
        $(impl<'de, T: Deserialize<'de>> Deserialize<'de> for $container<T> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$container<T>, D::Error> {
                from.deserialize_any(ContainerVisitor::<$container<T>>(PhantomData))
            }
        })*
    };
}

read_containers!(Maybe, Objects, First);

#[cfg(test)]
mod tests;
