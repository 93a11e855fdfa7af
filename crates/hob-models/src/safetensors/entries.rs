//! Parses the header's JSON as a stream: skips what is not a tensor, and stops at limits.
//! A tree of a 100 MB header with small values would take gigabytes.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::gguf::error::printable_name;

/// Limit of one file. Models with many experts have tens of thousands.
const TENSORS_MAX: usize = 1 << 18;
const DIMENSIONS_MAX: usize = 8;
/// Key of the file's own metadata, next to the tensors.
const METADATA: &str = "__metadata__";

/// The header's entry for one tensor.
#[derive(Deserialize)]
pub(super) struct TensorEntry {
    pub(super) dtype: Option<String>,
    #[serde(default, deserialize_with = "dims")]
    pub(super) shape: Option<Vec<u64>>,
    pub(super) data_offsets: Option<(u64, u64)>,
}

/// In the order of the header.
pub(super) struct Entries(pub(super) Vec<(String, TensorEntry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        deserializer.deserialize_map(OfEntries)
    }
}

struct OfEntries;

impl<'de> Visitor<'de> for OfEntries {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensors by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let (mut entries, mut names) = (Vec::new(), HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if entries.len() == TENSORS_MAX {
                return Err(A::Error::custom(format!("over {TENSORS_MAX} tensors")));
            }
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format!(
                    "'{}' is there twice",
                    printable_name(&name)
                )));
            }
            entries.push((name, map.next_value()?));
        }
        Ok(Entries(entries))
    }
}

fn dims<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u64>>, D::Error> {
    deserializer.deserialize_seq(OfDims).map(Some)
}

struct OfDims;

impl<'de> Visitor<'de> for OfDims {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {DIMENSIONS_MAX} dimensions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<u64>, A::Error> {
        let mut dims = Vec::new();
        while let Some(dim) = seq.next_element()? {
            if dims.len() == DIMENSIONS_MAX {
                return Err(A::Error::custom(format!("over {DIMENSIONS_MAX} dimensions")));
            }
            dims.push(dim);
        }
        Ok(dims)
    }
}
