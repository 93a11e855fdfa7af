//! Reads the header of a ggml Whisper file: dimensions, and the list of tensors with their types and lengths.
//! Weights are skipped, so a file of any size takes milliseconds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use super::error::within;
use super::layout::Layout;
use super::memory::{WhisperMemory, matrix_q8_bytes};
use super::reader::Reader;
use super::{MAGIC, WhisperDims, WhisperError};
use crate::gguf::{TensorType, printable_name};

const TENSORS_MAX: usize = 10_000;
const NAME_BYTES_MAX: u64 = 256;
const TOKEN_BYTES_MAX: u64 = 4_096;
const DIMENSIONS_MAX: u64 = 4;
/// A file type is this times the version of the quantisation, plus the type.
const QUANT_VERSION: u32 = 1_000;

/// The header of a ggml Whisper file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhisperHeader {
    pub dims: WhisperDims,
    /// Number format of most weights: "F16", "Q5_1" …
    pub quant: &'static str,
    /// Length of the file.
    pub file_bytes: u64,
    /// Weights as they are in the file.
    pub weights_bytes: u64,
    /// Weights after all matrices of 16-bit floats were quantised to Q8_0.
    pub q8_bytes: u64,
}

impl WhisperHeader {
    /// Memory of the model, with 16-bit matrices quantised to Q8_0 when they are loaded.
    pub fn memory(&self) -> WhisperMemory {
        WhisperMemory { weights_bytes: self.q8_bytes, stream_bytes: self.dims.stream_bytes() }
    }

    /// Reads the header of this file.
    ///
    /// # Errors
    /// The file cannot be read, is not a ggml Whisper file, lacks tensors, or is cut short.
    pub fn read(path: &Path) -> Result<WhisperHeader, WhisperError> {
        let file = File::open(path).map_err(|error| WhisperError::unreadable(&error))?;
        WhisperHeader::read_from(file)
    }

    /// Reads the header of a file that is already open.
    ///
    /// # Errors
    /// See [`WhisperHeader::read`].
    pub fn read_from(file: impl Read + Seek) -> Result<WhisperHeader, WhisperError> {
        let mut reader = Reader::new(file)?;
        if reader.file_bytes() < 4 || reader.u32()? != MAGIC {
            return Err(WhisperError::NotGgml);
        }
        let dims = dims(&mut reader)?;
        let file_type = reader.u32()? % QUANT_VERSION;
        let quant = quant(file_type)?;
        skip_filters(&mut reader, &dims)?;
        skip_tokens(&mut reader, &dims)?;
        let mut header = WhisperHeader {
            dims,
            quant,
            file_bytes: reader.file_bytes(),
            weights_bytes: 0,
            q8_bytes: 0,
        };
        header.tensors(&mut reader)?;
        Ok(header)
    }

    /// Compares the tensors with those that a model of these dimensions has.
    fn tensors(&mut self, reader: &mut Reader<impl Read + Seek>) -> Result<(), WhisperError> {
        let layout = Layout::of(&self.dims).tensors;
        let mut missing: BTreeMap<_, _> =
            layout.iter().map(|tensor| (tensor.name.as_str(), &tensor.shape)).collect();
        for _ in 0..TENSORS_MAX {
            if reader.position() == self.file_bytes {
                break;
            }
            let (name, tensor) = Stored::read(reader)?;
            let Some(shape) = missing.remove(name.as_str()) else {
                return Err(WhisperError::Surplus { name });
            };
            let expected: Vec<u64> = shape.iter().rev().copied().collect();
            if tensor.dims != expected {
                return Err(WhisperError::Shape { name, found: tensor.dims, expected });
            }
            self.weights_bytes += tensor.bytes;
            self.q8_bytes += tensor.q8_bytes();
        }
        match missing.into_keys().next() {
            Some(name) => Err(WhisperError::Missing { name: name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// A tensor of the file.
struct Stored {
    /// The length of a row comes first.
    dims: Vec<u64>,
    kind: TensorType,
    bytes: u64,
}

impl Stored {
    fn read(reader: &mut Reader<impl Read + Seek>) -> Result<(String, Stored), WhisperError> {
        let [dimensions, name_bytes, id] = [reader.u32()?, reader.u32()?, reader.u32()?];
        within("the number of a tensor's dimensions", dimensions.into(), 1, DIMENSIONS_MAX)?;
        within("the length of a tensor's name", name_bytes.into(), 1, NAME_BYTES_MAX)?;
        let dims =
            (0..dimensions).map(|_| Ok(reader.u32()?.into())).collect::<Result<Vec<u64>, _>>()?;
        let name = reader.read_bytes("a tensor's name", name_bytes.into())?;
        let name = printable_name(&String::from_utf8_lossy(&name));
        let row = dims.first().copied().unwrap_or_default();
        let unknown = || WhisperError::NumberType { name: name.clone(), id };
        let kind = TensorType::of(id).filter(|kind| row.is_multiple_of(kind.block_elements));
        let kind = kind.ok_or_else(unknown)?;
        let elements = dims.iter().fold(1, |product: u64, n| product.saturating_mul(*n));
        let bytes = (elements / kind.block_elements).saturating_mul(kind.block_bytes);
        reader.skip(bytes)?;
        Ok((name, Stored { dims, kind, bytes }))
    }

    fn q8_bytes(&self) -> u64 {
        let is_float = self.kind == TensorType::F16;
        let matrix = is_float.then(|| matrix_q8_bytes(&self.dims, self.dims.first()));
        matrix.flatten().unwrap_or(self.bytes)
    }
}

fn dims(reader: &mut Reader<impl Read + Seek>) -> Result<WhisperDims, WhisperError> {
    let dims = WhisperDims {
        vocab: reader.u32()?,
        audio_context: reader.u32()?,
        audio_width: reader.u32()?,
        audio_heads: reader.u32()?,
        audio_layers: reader.u32()?,
        text_context: reader.u32()?,
        text_width: reader.u32()?,
        text_heads: reader.u32()?,
        text_layers: reader.u32()?,
        mels: reader.u32()?,
    };
    dims.check()?;
    Ok(dims)
}

/// The file types of ggml that whisper.cpp writes.
fn quant(file_type: u32) -> Result<&'static str, WhisperError> {
    const NAMES: [(u32, &str); 13] = [
        (0, "F32"),
        (1, "F16"),
        (2, "Q4_0"),
        (3, "Q4_1"),
        (7, "Q8_0"),
        (8, "Q5_0"),
        (9, "Q5_1"),
        (10, "Q2_K"),
        (11, "Q3_K"),
        (12, "Q4_K"),
        (13, "Q5_K"),
        (14, "Q6_K"),
        (24, "BF16"),
    ];
    let named = NAMES.iter().find(|(id, _)| *id == file_type);
    let unknown = || WhisperError::NumberType { name: "file type".to_owned(), id: file_type };
    named.map(|(_, name)| *name).ok_or_else(unknown)
}

fn skip_filters(
    reader: &mut Reader<impl Read + Seek>,
    dims: &WhisperDims,
) -> Result<(), WhisperError> {
    let (rows, frequencies) = (u64::from(reader.u32()?), u64::from(reader.u32()?));
    within("the number of filters", rows, dims.mels.into(), dims.mels.into())?;
    let expected = u64::from(super::FREQUENCIES);
    within("the number of frequencies", frequencies, expected, expected)?;
    reader.skip(rows * frequencies * 4)
}

fn skip_tokens(
    reader: &mut Reader<impl Read + Seek>,
    dims: &WhisperDims,
) -> Result<(), WhisperError> {
    let tokens = u64::from(reader.u32()?);
    within("the number of listed tokens", tokens, 1, dims.vocab.into())?;
    for _ in 0..tokens {
        let bytes = u64::from(reader.u32()?);
        within("the length of a token", bytes, 0, TOKEN_BYTES_MAX)?;
        reader.skip(bytes)?;
    }
    Ok(())
}
