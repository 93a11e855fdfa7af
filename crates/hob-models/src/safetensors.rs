//! Reads headers of safetensors, the file format of Hugging Face, without the weights.
//! A header is a length and JSON from strangers, so both are bounded and checked.

mod config;
mod config_error;
mod entries;
mod index;
mod json_number;
mod model;
mod quantization;
mod task;

use std::io::{self, Read};

use crate::gguf::error::printable_name;

pub use config::Config;
pub use config_error::ConfigError;
pub use index::files_of_index;
pub(crate) use model::model;
pub use quantization::Quantization;

/// The format's own limit.
const HEADER_BYTES_MAX: u64 = 100_000_000;

/// One tensor in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetensorsTensor {
    pub name: String,
    pub dtype: String,
    pub dims: Vec<u64>,
    pub bytes: u64,
}

/// The header of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub tensors: Vec<SafetensorsTensor>,
    /// End of the file according to the header.
    pub needed_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SafetensorsError {
    #[error("the file cannot be read: {detail}")]
    Unreadable { detail: String },
    #[error(
        "this is not a safetensors file: its header would have {bytes} bytes, and {bytes_max} is the limit"
    )]
    TooLong { bytes: u64, bytes_max: u64 },
    #[error("the header is not valid for safetensors: {detail}")]
    NotJson { detail: String },
    #[error("tensor '{name}' {reason}")]
    Tensor { name: String, reason: &'static str },
}

impl Header {
    /// Reads the header from the beginning of a file, and nothing after it.
    ///
    /// # Errors
    /// What is wrong with the header, for people.
    pub fn read(mut file: impl Read) -> Result<Header, SafetensorsError> {
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(unreadable)?;
        let bytes = u64::from_le_bytes(length);
        if bytes > HEADER_BYTES_MAX {
            return Err(SafetensorsError::TooLong { bytes, bytes_max: HEADER_BYTES_MAX });
        }
        // Grows with the bytes that arrive, not with the length that the header states.
        let mut json = Vec::new();
        let read = file.take(bytes).read_to_end(&mut json).map_err(unreadable)?;
        if (read as u64) < bytes {
            return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
        }
        let (tensors, data_bytes) = tensors(&json)?;
        let needed_bytes = (8 + bytes).saturating_add(data_bytes);
        Ok(Header { tensors, needed_bytes })
    }
}

fn unreadable(error: io::Error) -> SafetensorsError {
    SafetensorsError::Unreadable { detail: error.to_string() }
}

/// All tensors, and the end of the last one.
fn tensors(json: &[u8]) -> Result<(Vec<SafetensorsTensor>, u64), SafetensorsError> {
    let entries: entries::Entries = serde_json::from_slice(json)
        .map_err(|error| SafetensorsError::NotJson { detail: error.to_string() })?;
    let mut tensors = Vec::new();
    let mut end = 0;
    for (name, said) in entries.0 {
        let (tensor, tensor_end) = tensor(name, said)?;
        end = end.max(tensor_end);
        tensors.push(tensor);
    }
    Ok((tensors, end))
}

fn tensor(
    name: String,
    entry: entries::TensorEntry,
) -> Result<(SafetensorsTensor, u64), SafetensorsError> {
    let wrong = |reason| SafetensorsError::Tensor { name: printable_name(&name), reason };
    let dtype = entry.dtype.ok_or_else(|| wrong("has no dtype"))?;
    let dims = entry.shape.ok_or_else(|| wrong("has no shape"))?;
    let offsets = entry.data_offsets.ok_or_else(|| wrong("does not say where its data is"))?;
    let (start, end) = offsets;
    let bytes = end.checked_sub(start).ok_or_else(|| wrong("ends before it begins"))?;
    Ok((SafetensorsTensor { name, dtype: printable_name(&dtype), dims, bytes }, end))
}

impl SafetensorsTensor {
    /// `None` if the product overflows.
    pub fn numbers(&self) -> Option<u64> {
        self.dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(json: &str) -> Vec<u8> {
        [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat()
    }

    fn refused(bytes: &[u8]) -> String {
        Header::read(bytes).expect_err("wrong").to_string()
    }

    #[test]
    fn a_header_is_read_without_its_data() {
        let json = r#"{"__metadata__": {"format": "pt"},
            "a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]},
            "b": {"dtype": "I32", "shape": [], "data_offsets": [12, 16]}}"#;
        let header = Header::read(&*file(json)).expect("a sound header");
        let tensor = |name: &str, dtype: &str, dims: &[u64], bytes| SafetensorsTensor {
            name: name.into(),
            dtype: dtype.into(),
            dims: dims.into(),
            bytes,
        };
        let tensors = vec![tensor("a", "BF16", &[2, 3], 12), tensor("b", "I32", &[], 4)];
        assert_eq!(header, Header { tensors, needed_bytes: 8 + json.len() as u64 + 16 });
    }

    #[test]
    fn what_is_wrong_is_said() {
        let entry = |entry: &str| file(&format!(r#"{{"a": {entry}}}"#));
        let rows = [
            (vec![1, 0], "cannot be read"),
            (u64::MAX.to_le_bytes().to_vec(), "18446744073709551615 bytes"),
            ([&90_000_000_u64.to_le_bytes()[..], b"{}"].concat(), "cannot be read"),
            (file("[]"), "is not valid for safetensors"),
            (file("{"), "is not valid for safetensors"),
            (entry("1"), "is not valid for safetensors"),
            (entry(r#"{"dtype": "F32", "shape": [-1]}"#), "is not valid for safetensors"),
            (entry(r#"{"dtype": "F32", "shape": [1, 1, 1, 1, 1, 1, 1, 1, 1]}"#), "8 dimensions"),
            (file(r#"{"a": {}, "a": {}}"#), "'a' is there twice"),
            (entry(r#"{"shape": [1]}"#), "tensor 'a' has no dtype"),
            (entry(r#"{"dtype": "F32"}"#), "tensor 'a' has no shape"),
            (entry(r#"{"dtype": "F32", "shape": [1]}"#), "does not say where"),
            (entry(r#"{"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}"#), "ends before"),
        ];
        for (bytes, expected) in rows {
            let said = refused(&bytes);
            assert!(said.contains(expected), "{said}, and not {expected}");
        }
    }
}
