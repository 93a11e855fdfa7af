//! Writes and reads bytes and samples of messages as one block, for `#[serde(with)]`. Without it, postcard handles each
//! value alone, which takes eight times as long. Samples are 4 bytes each, little-endian.

use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    <&[u8]>::deserialize(from).map(<[u8]>::to_vec)
}

pub(crate) mod samples {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(samples: &[f32], to: S) -> Result<S::Ok, S::Error> {
        let mut bytes = vec![[0; 4]; samples.len()];
        for (bytes, sample) in bytes.iter_mut().zip(samples) {
            *bytes = sample.to_le_bytes();
        }
        to.serialize_bytes(bytes.as_flattened())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f32>, D::Error> {
        let bytes = <&[u8]>::deserialize(from)?;
        match bytes.as_chunks() {
            (samples, []) => Ok(samples.iter().copied().map(f32::from_le_bytes).collect()),
            _ => Err(D::Error::invalid_length(bytes.len(), &"samples of 4 bytes each")),
        }
    }
}
