//! Reads `model.bin` of a Whisper model in CTranslate2's format: the list of its tensors, and rows of them.
//! Reads only 16-bit floats, the form in which such models are published.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use super::error::within;
use super::layout::Slice;
use super::reader::Reader;
use super::{WhisperDims, WhisperError};
use crate::gguf::printable_name;

/// Versions with a type and a length for each tensor.
const VERSIONS: std::ops::RangeInclusive<u32> = 4..=6;
const SPECIFICATION: &[u8] = b"WhisperSpec\0";
const TENSORS_MAX: u64 = 10_000;
const NAME_BYTES_MAX: u64 = 512;
const DIMENSIONS_MAX: u64 = 4;
const FLOAT16: u8 = 4;
/// 8-, 16- and 32-bit integers.
const INTEGERS: [u8; 3] = [1, 2, 3];

#[derive(Debug)]
pub(super) struct CTranslate2Model<R> {
    reader: Reader<R>,
    tensors: BTreeMap<String, Tensor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tensor {
    /// The outermost dimension comes first.
    shape: Vec<u64>,
    numbers: u8,
    offset: u64,
    bytes: u64,
}

impl<R: Read + Seek> CTranslate2Model<R> {
    /// Reads the list of tensors.
    pub(super) fn open(file: R) -> Result<CTranslate2Model<R>, WhisperError> {
        let mut reader = Reader::new(file)?;
        let version = reader.u32()?;
        let bytes = u64::from(reader.u16()?);
        if bytes != SPECIFICATION.len() as u64
            || reader.read_bytes("the name", bytes)? != SPECIFICATION
        {
            return Err(WhisperError::NotCTranslate2);
        }
        if !VERSIONS.contains(&version) {
            return Err(WhisperError::UnknownVersion { version });
        }
        let _revision = reader.u32()?;
        let count = u64::from(reader.u32()?);
        within("the number of tensors", count, 1, TENSORS_MAX)?;
        let mut tensors = BTreeMap::new();
        for _ in 0..count {
            let (name, tensor) = tensor(&mut reader)?;
            tensors.insert(name, tensor);
        }
        Ok(CTranslate2Model { reader, tensors })
    }

    /// The dimensions of the model, with the file type of 16-bit floats.
    pub(super) fn dims(&mut self) -> Result<WhisperDims, WhisperError> {
        let [vocab, text_width] = self.shape("decoder/embeddings/weight")?;
        let [text_context, _] = self.shape("decoder/position_encodings/encodings")?;
        let [audio_context, audio_width] = self.shape("encoder/position_encodings/encodings")?;
        let [_, mels, _] = self.shape("encoder/conv1/weight")?;
        let dims = WhisperDims {
            vocab,
            audio_context,
            audio_width,
            audio_heads: self.integer("encoder/num_heads")?,
            audio_layers: self.layers("encoder"),
            text_context,
            text_width,
            text_heads: self.integer("decoder/num_heads")?,
            text_layers: self.layers("decoder"),
            mels,
        };
        dims.check()?;
        Ok(dims)
    }

    /// Bytes of a slice that must have this shape, and the offset of the first.
    pub(super) fn find(&self, slice: &Slice, shape: &[u64]) -> Result<(u64, u64), WhisperError> {
        let tensor = self.tensor(&slice.name)?;
        let mut expected = shape.to_vec();
        expected.iter_mut().take(1).for_each(|rows| *rows *= slice.parts);
        let without_ones =
            |shape: &[u64]| shape.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
        if without_ones(&tensor.shape) != without_ones(&expected) {
            let (name, found) = (slice.name.clone(), tensor.shape.clone());
            return Err(WhisperError::Shape { name, found, expected });
        }
        if tensor.numbers != FLOAT16 {
            return Err(WhisperError::NumberType {
                name: slice.name.clone(),
                id: tensor.numbers.into(),
            });
        }
        let bytes = tensor.bytes / slice.parts;
        Ok((tensor.offset + slice.part * bytes, bytes))
    }

    /// Passes the bytes on in pieces of whole numbers.
    pub(super) fn read<E: From<WhisperError>>(
        &mut self,
        (offset, bytes): (u64, u64),
        chunk: &mut [u8],
        mut pass: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.reader.go_to(offset)?;
        let mut left = bytes;
        while left > 0 {
            let piece = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.reader.fill(&mut chunk[..piece])?;
            pass(&chunk[..piece])?;
            left -= piece as u64;
        }
        Ok(())
    }

    fn tensor(&self, name: &str) -> Result<&Tensor, WhisperError> {
        self.tensors.get(name).ok_or_else(|| WhisperError::Missing { name: name.to_owned() })
    }

    fn shape<const N: usize>(&self, name: &str) -> Result<[u32; N], WhisperError> {
        let found = &self.tensor(name)?.shape;
        let numbers: Option<Vec<u32>> = found.iter().map(|n| u32::try_from(*n).ok()).collect();
        numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| WhisperError::Shape {
            name: name.to_owned(),
            found: found.clone(),
            expected: vec![0; N],
        })
    }

    /// A single integer of any width.
    fn integer(&mut self, name: &str) -> Result<u32, WhisperError> {
        let Tensor { numbers, offset, bytes, .. } = *self.tensor(name)?;
        if !INTEGERS.contains(&numbers) || bytes > 4 {
            return Err(WhisperError::NumberType { name: name.to_owned(), id: numbers.into() });
        }
        self.reader.go_to(offset)?;
        let mut value = [0; 4];
        self.reader.fill(&mut value[..bytes as usize])?;
        Ok(u32::from_le_bytes(value))
    }

    fn layers(&self, side: &str) -> u32 {
        let has = |layer: &u32| {
            self.tensors.contains_key(&format!("{side}/layer_{layer}/ffn/layer_norm/gamma"))
        };
        (0..TENSORS_MAX as u32).take_while(has).count() as u32
    }
}

fn tensor(reader: &mut Reader<impl Read + Seek>) -> Result<(String, Tensor), WhisperError> {
    let length = u64::from(reader.u16()?);
    within("the length of a tensor's name", length, 1, NAME_BYTES_MAX)?;
    let mut name = reader.read_bytes("a tensor's name", length)?;
    name.pop_if(|last| *last == 0);
    let name = String::from_utf8_lossy(&name).into_owned();
    let rank = u64::from(reader.u8()?);
    within("the number of a tensor's dimensions", rank, 0, DIMENSIONS_MAX)?;
    let shape = (0..rank).map(|_| Ok(reader.u32()?.into())).collect::<Result<Vec<u64>, _>>()?;
    let numbers = reader.u8()?;
    let bytes = u64::from(reader.u32()?);
    let each = match numbers {
        1 => 1,
        2 | FLOAT16 | 5 => 2,
        0 | 3 => 4,
        id => return Err(WhisperError::NumberType { name: printable_name(&name), id: id.into() }),
    };
    let expected = shape.iter().fold(each, |product: u64, n| product.saturating_mul(*n));
    if bytes != expected {
        return Err(WhisperError::TensorBytes {
            name: printable_name(&name),
            found: bytes,
            expected,
        });
    }
    let offset = reader.position();
    reader.skip(bytes)?;
    Ok((name, Tensor { shape, numbers, offset, bytes }))
}
