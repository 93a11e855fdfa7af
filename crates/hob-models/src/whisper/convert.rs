//! Writes a Whisper model of CTranslate2's format as a ggml file, with the bytes of whisper.cpp's published file.
//! Tensors are copied in small pieces, so the memory does not grow with the model.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, Write};
use std::path::Path;

use half::f16;

use super::ctranslate2::CTranslate2Model;
use super::layout::{Layout, Numbers, TensorLayout};
use super::{FREQUENCIES, MAGIC, WhisperDims, WhisperError, mel, vocabulary};
use crate::Sha256;
use crate::checksum::Summed;
use crate::disk::DiskError;
use crate::progress::{Cancelled, PullStep, Watch};

const CHUNK_BYTES: usize = 64 << 10;
/// File type and tensor type of 16-bit floats, and tensor type of 32-bit floats.
const F16: u32 = 1;
const F32: u32 = 0;

/// Why a model was not converted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConvertError {
    Model(WhisperError),
    Disk(DiskError),
    Cancelled(Cancelled),
}

impl From<WhisperError> for ConvertError {
    fn from(error: WhisperError) -> ConvertError {
        ConvertError::Model(error)
    }
}

/// Writes the ggml file `to`, and returns its checksum.
///
/// # Errors
/// The model has another format, other tensors or other numbers than a Whisper model, or is cut short.
pub(crate) fn convert(
    model: impl Read + Seek,
    vocabulary: &str,
    to: &Path,
    watch: &mut Watch<'_>,
) -> Result<Sha256, ConvertError> {
    let mut model = CTranslate2Model::open(model)?;
    let dims = model.dims()?;
    let tokens = vocabulary::tokens(vocabulary, dims.vocab)?;
    let layout = Layout::of(&dims);
    watch.begin(PullStep::Transforming, Some(layout.parameters()));
    let disk = |error| ConvertError::Disk(DiskError::new(to, &error));
    let file = File::create(to).map_err(disk)?;
    let mut out = Summed::new(BufWriter::new(file));
    out.write_all(&head(&dims, &tokens)).map_err(disk)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    for (bias, width) in &layout.key_biases {
        let place = model.find(bias, &[*width])?;
        model.read(place, &mut chunk, |numbers| match numbers.chunks(2).all(is_zero) {
            true => Ok(()),
            false => Err(WhisperError::KeyBias { name: bias.name.clone() }),
        })?;
    }
    for tensor in &layout.tensors {
        watch.check().map_err(ConvertError::Cancelled)?;
        let place = model.find(&tensor.from, &tensor.shape)?;
        out.write_all(&tensor_head(tensor)).map_err(disk)?;
        model.read(place, &mut chunk, |numbers| match tensor.numbers {
            Numbers::F16 => out.write_all(numbers).map_err(disk),
            Numbers::F32 => out.write_all(&widened(numbers)).map_err(disk),
        })?;
        watch.item_done(tensor.elements());
    }
    let (mut file, sum) = out.finish();
    file.flush().map_err(disk)?;
    Ok(sum)
}

/// Everything before the tensors.
fn head(dims: &WhisperDims, tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut head = Vec::new();
    let mut number = |value: u32| head.extend(value.to_le_bytes());
    number(MAGIC);
    dims.numbers().into_iter().chain([F16, dims.mels, FREQUENCIES]).for_each(&mut number);
    head.extend(mel::filters(dims.mels).into_iter().flat_map(f32::to_le_bytes));
    head.extend((tokens.len() as u32).to_le_bytes());
    for token in tokens {
        head.extend((token.len() as u32).to_le_bytes());
        head.extend(token);
    }
    head
}

/// The length of a row comes first.
fn tensor_head(tensor: &TensorLayout) -> Vec<u8> {
    let numbers = match tensor.numbers {
        Numbers::F16 => F16,
        Numbers::F32 => F32,
    };
    let counts = [tensor.shape.len() as u32, tensor.name.len() as u32, numbers];
    let dims = tensor.shape.iter().rev().map(|dim| *dim as u32);
    let head = counts.into_iter().chain(dims).flat_map(u32::to_le_bytes);
    head.chain(tensor.name.bytes()).collect()
}

/// Also true for negative zero.
fn is_zero(number: &[u8]) -> bool {
    matches!(number, [0, 0 | 0x80])
}

/// 16-bit floats as 32-bit floats.
fn widened(numbers: &[u8]) -> Vec<u8> {
    let (numbers, _) = numbers.as_chunks();
    numbers.iter().flat_map(|number| f16::from_le_bytes(*number).to_f32().to_le_bytes()).collect()
}
