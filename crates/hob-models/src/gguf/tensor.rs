//! The tensors of a file: names, dimensions, types, and offsets.
//! The table of types follows ggml in llama.cpp b11434. Types that ggml removed are unknown here too.

use std::io::{Read, Seek};

use super::GgufError;
use super::error::printable_name;
use super::source::Source;

/// The engine's limits.
const NAME_BYTES_MAX: u64 = 63;
const DIMENSIONS_MAX: u32 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufTensor {
    pub name: String,
    /// The length of a row comes first.
    pub dims: Vec<u64>,
    pub kind: TensorType,
    /// Offset from the start of the data.
    pub offset: u64,
    pub bytes: u64,
}

impl GgufTensor {
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    /// A tensor that is not in a file.
    pub(crate) fn from_parts(
        name: String,
        dims: Vec<u64>,
        kind: TensorType,
    ) -> Result<GgufTensor, GgufError> {
        let bytes = bytes(&name, &dims, kind)?;
        Ok(GgufTensor { name, dims, kind, offset: 0, bytes })
    }

    /// A tensor that is not in a file, in a format without a GGUF type, with this many bits per weight.
    pub(crate) fn of_bits(
        name: String,
        dims: Vec<u64>,
        quant: &'static str,
        bits: f64,
    ) -> Result<GgufTensor, GgufError> {
        let whole = GgufTensor::from_parts(name, dims, TensorType::F16)?;
        let bytes = (whole.elements() as f64 * bits / 8.0).ceil() as u64;
        let kind = TensorType { id: u32::MAX, name: quant, block_elements: 1, block_bytes: 2 };
        Ok(GgufTensor { kind, bytes, ..whole })
    }
}

/// A number format: elements and bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TensorType {
    pub id: u32,
    pub name: &'static str,
    pub block_elements: u64,
    pub block_bytes: u64,
}

impl TensorType {
    pub const F16: TensorType =
        TensorType { id: 1, name: "F16", block_elements: 1, block_bytes: 2 };
    pub(crate) const Q8_0: TensorType =
        TensorType { id: 8, name: "Q8_0", block_elements: 32, block_bytes: 34 };

    pub fn named(name: &str) -> Option<TensorType> {
        let (id, ..) = TYPES.iter().find(|(_, known, ..)| *known == name)?;
        TensorType::of(*id)
    }

    pub fn of(id: u32) -> Option<TensorType> {
        let (id, name, block_elements, block_bytes) =
            *TYPES.iter().find(|(known, ..)| *known == id)?;
        Some(TensorType { id, name, block_elements, block_bytes })
    }
}

pub(super) fn read(source: &mut Source<impl Read + Seek>) -> Result<GgufTensor, GgufError> {
    let name = source.text("the name of a tensor", NAME_BYTES_MAX)?;
    let dims = dims(source, &name)?;
    let id = source.u32()?;
    let unknown = || GgufError::UnknownTensorType { name: printable_name(&name), id };
    let kind = TensorType::of(id).ok_or_else(unknown)?;
    let bytes = bytes(&name, &dims, kind)?;
    let offset = source.u64()?;
    Ok(GgufTensor { name, dims, kind, offset, bytes })
}

fn dims(source: &mut Source<impl Read + Seek>, name: &str) -> Result<Vec<u64>, GgufError> {
    let dimensions = source.u32()?;
    if dimensions > DIMENSIONS_MAX {
        return Err(GgufError::TooManyDimensions { name: printable_name(name), dimensions });
    }
    (0..dimensions).map(|_| source.u64()).collect()
}

/// The bytes of a tensor.
///
/// # Errors
/// A dimension is 0, a row does not have whole blocks, or the size needs more than 64 bits.
fn bytes(name: &str, dims: &[u64], kind: TensorType) -> Result<u64, GgufError> {
    let row = dims.first().copied().unwrap_or(1);
    if dims.contains(&0) || !row.is_multiple_of(kind.block_elements) {
        return Err(GgufError::Dimensions { name: printable_name(name), dims: dims.to_vec() });
    }
    let elements = dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim));
    let countable = elements.filter(|elements| i64::try_from(*elements).is_ok());
    let bytes = countable.and_then(|all| (all / kind.block_elements).checked_mul(kind.block_bytes));
    bytes.ok_or_else(|| GgufError::Overflow { name: printable_name(name) })
}

/// Id, name, elements and bytes of a block.
const TYPES: [(u32, &str, u64, u64); 35] = [
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 36),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
];
