//! Values that people write as a text with a unit or as a plain number, such as `keep_alive = "5m"` and `keep_alive = 300`.
//! A number is parsed like the text of its digits.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Deserializer;
use serde::de::{Error, Visitor};

/// `expected` says in an error what belongs here.
pub(super) fn text_or_number<'de, D, T>(
    deserializer: D,
    expected: &'static str,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    deserializer.deserialize_any(TextOrNumber { expected, value: PhantomData })
}

struct TextOrNumber<T> {
    expected: &'static str,
    value: PhantomData<T>,
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

pub(super) fn schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer", "null"] })
}
