//! Fields that hold one of a few words, each of which is the name of a value.
//! The names stand in the tables of the enums, so the JSON needs no enums of its own.

use std::borrow::Cow;

use hob_core::chat::{Effort, Role};
use hob_core::realtime::{Eagerness, NoiseReduction, OutputModality, SessionKind, SoundEncoding};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::WORD_CHARS_MAX;
use crate::request_value::JsonKind;

/// A value, read and written as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<T>(pub(crate) T);

/// A type whose values have names.
pub(crate) trait Named: Copy + 'static {
    const VALUES: &'static [Self];

    fn word(self) -> &'static str;
}

macro_rules! named {
    ($($of:ty),*) => {
        $(impl $crate::word::Named for $of {
            const VALUES: &'static [$of] = &<$of>::ALL;

            fn word(self) -> &'static str {
                self.name()
            }
        })*
    };
}

pub(crate) use named;

named!(Eagerness, Effort, NoiseReduction, OutputModality, Role, SessionKind, SoundEncoding);

fn words<T: Named>() -> Vec<&'static str> {
    T::VALUES.iter().map(|value| value.word()).collect()
}

impl<T> JsonKind for Word<T> {
    const KIND: &'static str = "a string";
}

impl<'de, T: Named> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Word<T>, D::Error> {
        let word = String::deserialize(value)?;
        let known = T::VALUES.iter().find(|value| value.word() == word);
        known.map(|value| Word(*value)).ok_or_else(|| {
            let names = words::<T>().join(", ");
            let got: String = word.chars().take(WORD_CHARS_MAX).collect();
            D::Error::custom(format_args!("must be one of {names}, and is '{got}'"))
        })
    }
}

impl<T: Named> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.word())
    }
}

impl<T: Named> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": words::<T>() })
    }
}
