//! Values that people write as a text with a unit or as a plain number, such as `keep_alive = "5m"` and `keep_alive = 300`.
//! A number is parsed like the text of its digits.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};

/// Reads and writes such a type, by its `FromStr` and its `Display`. The text says in an error what belongs here.
macro_rules! text_or_number {
    ($value:ident, $expected:literal) => {
        impl serde::Serialize for $value {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $value {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$value, D::Error> {
                from.deserialize_any(super::text_or_number::TextOrNumber::new($expected))
            }
        }

        impl schemars::JsonSchema for $value {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($value).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": ["string", "integer"] })
            }
        }
    };
}

pub(super) use text_or_number;

pub(super) struct TextOrNumber<T> {
    expected: &'static str,
    value: PhantomData<T>,
}

impl<T> TextOrNumber<T> {
    pub(super) fn new(expected: &'static str) -> TextOrNumber<T> {
        TextOrNumber { expected, value: PhantomData }
    }
}

impl<T> Visitor<'_> for TextOrNumber<T>
where
    T: FromStr,
    T::Err: Display,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}
