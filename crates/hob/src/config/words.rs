//! Settings with a few possible words, which other crates define.
//! The error for a wrong word lists the allowed ones, and so does the schema.

use std::borrow::Cow;
use std::str::FromStr;

use hob_core::KvType;
use hob_core::chat::Effort;
use hob_core::routing::Strategy;
use hob_upstream::UpstreamKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Wraps a type that has `ALL`, `name` and `FromStr`, so that the configuration file can hold its names.
macro_rules! word {
    ($(#[$meta:meta])* $word:ident of $value:ty) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub(crate) struct $word(pub(crate) $value);

        impl TryFrom<String> for $word {
            type Error = <$value as FromStr>::Err;

            fn try_from(name: String) -> Result<$word, Self::Error> {
                name.parse::<$value>().map($word)
            }
        }

        impl From<$word> for &'static str {
            fn from($word(value): $word) -> &'static str {
                value.name()
            }
        }

        impl JsonSchema for $word {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($word).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": <$value>::ALL.map(<$value>::name) })
            }
        }
    };
}

word!(
    /// The kind of a server.
    #[derive(Default)]
    KindName of UpstreamKind
);
word!(
    /// The strategy of an alias.
    #[derive(Default)]
    StrategyName of Strategy
);
word!(
    /// Data type of the KV cache, by name.
    #[derive(Default)]
    KvTypeName of KvType
);
word!(
    /// How much a model thinks.
    EffortName of Effort
);
