//! Writes and reads bytes and samples of messages as one block, for `#[serde(with)]`. Without it, postcard handles each
//! value alone, which takes eight times as long. Samples are 4 bytes each, little-endian.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    from.deserialize_bytes(BlockVisitor)
}

struct BlockVisitor;

impl Visitor<'_> for BlockVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block of bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

pub(crate) mod samples {
    use serde::de::Error;
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(samples: &[f32], to: S) -> Result<S::Ok, S::Error> {
        let mut bytes = vec![[0; 4]; samples.len()];
        for (bytes, sample) in bytes.iter_mut().zip(samples) {
            *bytes = sample.to_le_bytes();
        }
        to.serialize_bytes(bytes.as_flattened())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f32>, D::Error> {
        let bytes = super::deserialize(from)?;
        match bytes.as_chunks() {
            (samples, []) => Ok(samples.iter().copied().map(f32::from_le_bytes).collect()),
            _ => Err(D::Error::invalid_length(bytes.len(), &"samples of 4 bytes each")),
        }
    }
}
