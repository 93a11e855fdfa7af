//! Reads a Whisper file in whisper.cpp's format: sizes, mel filters, vocabulary, tensors.
//! A file may be damaged or malicious, so every size is checked before memory is allocated for it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::ggml::Type;

const MAGIC: u32 = 0x6767_6d6c;

/// The sizes of a model, from the file's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) vocab: usize,
    pub(super) audio_ctx: usize,
    pub(super) audio_state: usize,
    pub(super) audio_heads: usize,
    pub(super) audio_layers: usize,
    pub(super) text_ctx: usize,
    pub(super) text_state: usize,
    pub(super) text_heads: usize,
    pub(super) text_layers: usize,
    pub(super) mels: usize,
}

/// Everything but the tensors.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) sizes: Sizes,
    /// Filters of 201 frequencies each, one after the other.
    pub(super) filters: Vec<f32>,
    /// The bytes of each token that is text.
    pub(super) vocabulary: Vec<Vec<u8>>,
}

/// One tensor of the file. `dims[0]` is the innermost dimension.
#[derive(Debug)]
pub(super) struct FileTensor {
    pub(super) name: String,
    pub(super) kind: Type,
    pub(super) dims: [usize; 3],
    pub(super) bytes: Vec<u8>,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WhisperFileError {
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    #[error("this is no Whisper file in whisper.cpp's format: it begins with {found:#010x}")]
    NotWhisper { found: u32 },
    #[error("the file's {what} is {found}, and must be from {min} to {max}")]
    OutOfRange { what: &'static str, found: i64, min: i64, max: i64 },
    #[error("the tensor '{name}' {reason}")]
    Tensor { name: String, reason: String },
    #[error("the file ends early: {0} tensors are missing")]
    Incomplete(usize),
}

pub(super) const FREQUENCIES: usize = 201;

pub(super) struct WhisperFile {
    reader: BufReader<File>,
    bytes_left: u64,
}

impl WhisperFile {
    pub(super) fn open(path: &Path) -> Result<(WhisperFile, Head), WhisperFileError> {
        let file = File::open(path)?;
        let bytes_left = file.metadata()?.len();
        let mut file = WhisperFile { reader: BufReader::with_capacity(1 << 20, file), bytes_left };
        let found = file.int().map(|magic| magic as u32).unwrap_or_default();
        if found != MAGIC {
            return Err(WhisperFileError::NotWhisper { found });
        }
        let sizes = file.sizes()?;
        let mels = file.within("number of mel bands", 1, 256)?;
        let frequencies = file.within("number of frequencies", 1, 4096)?;
        if mels != sizes.mels || frequencies != FREQUENCIES {
            let (min, max) = (FREQUENCIES as i64, FREQUENCIES as i64);
            let found = frequencies as i64;
            return Err(WhisperFileError::OutOfRange {
                what: "size of the mel filters",
                found,
                min,
                max,
            });
        }
        let (filters, _) = file.take(mels * frequencies * 4)?;
        let filters = Type::F32.to_floats(&filters, mels * frequencies).unwrap_or_default();
        let tokens = file.within("number of tokens", 1, sizes.vocab as i64)?;
        let vocabulary = (0..tokens).map(|_| {
            let length = file.within("length of a token", 0, 1024)?;
            Ok(file.take(length)?.0)
        });
        let vocabulary = vocabulary.collect::<Result<_, WhisperFileError>>()?;
        Ok((file, Head { sizes, filters, vocabulary }))
    }

    fn sizes(&mut self) -> Result<Sizes, WhisperFileError> {
        let sizes = Sizes {
            vocab: self.within("vocabulary size", 51_864, 60_000)?,
            audio_ctx: self.within("audio context", 64, 1500)?,
            audio_state: self.within("audio state size", 64, 4096)?,
            audio_heads: self.within("number of audio heads", 1, 64)?,
            audio_layers: self.within("number of audio layers", 1, 64)?,
            text_ctx: self.within("text context", 64, 448)?,
            text_state: self.within("text state size", 64, 4096)?,
            text_heads: self.within("number of text heads", 1, 64)?,
            text_layers: self.within("number of text layers", 1, 64)?,
            mels: self.within("number of mel bands", 1, 256)?,
        };
        let _file_type = self.int()?;
        let divides = |state: usize, heads: usize| state.is_multiple_of(heads);
        if !divides(sizes.audio_state, sizes.audio_heads)
            || !divides(sizes.text_state, sizes.text_heads)
            || sizes.audio_state != sizes.text_state
        {
            let (found, min, max) =
                (sizes.text_state as i64, sizes.audio_state as i64, sizes.audio_state as i64);
            return Err(WhisperFileError::OutOfRange { what: "text state size", found, min, max });
        }
        Ok(sizes)
    }

    /// The next tensor, or `None` at the end.
    pub(super) fn next_tensor(&mut self) -> Result<Option<FileTensor>, WhisperFileError> {
        if self.bytes_left == 0 {
            return Ok(None);
        }
        let count = self.within("number of dimensions", 1, 3)?;
        let name_length = self.within("length of a tensor's name", 1, 256)?;
        let kind = self.int()?;
        let mut dims = [1; 3];
        for dim in &mut dims[..count] {
            *dim = self.within("size of a tensor", 1, 1 << 20)?;
        }
        let name = String::from_utf8_lossy(&self.take(name_length)?.0).into_owned();
        let refused = |reason: String| WhisperFileError::Tensor { name: name.clone(), reason };
        let kind =
            Type::of_file(kind).ok_or_else(|| refused(format!("has the unknown type {kind}")))?;
        let row = kind.row_bytes(dims[0]);
        let row = row.ok_or_else(|| refused(format!("has rows of {} values", dims[0])))?;
        let (bytes, is_whole) =
            self.take(row * dims[1] * dims[2]).or_else(|error| match error {
                WhisperFileError::Io(_) => Ok((Vec::new(), false)),
                other => Err(other),
            })?;
        if !is_whole {
            return Err(refused("is cut off: the file ends early".to_owned()));
        }
        Ok(Some(FileTensor { name, kind, dims, bytes }))
    }

    fn int(&mut self) -> Result<i32, WhisperFileError> {
        let mut bytes = [0; 4];
        self.reader.read_exact(&mut bytes)?;
        self.bytes_left = self.bytes_left.saturating_sub(4);
        Ok(i32::from_le_bytes(bytes))
    }

    fn within(
        &mut self,
        what: &'static str,
        min: i64,
        max: i64,
    ) -> Result<usize, WhisperFileError> {
        let found = i64::from(self.int()?);
        if (min..=max).contains(&found) {
            return Ok(found as usize);
        }
        Err(WhisperFileError::OutOfRange { what, found, min, max })
    }

    /// No memory is taken for more bytes than the file has.
    fn take(&mut self, count: usize) -> Result<(Vec<u8>, bool), WhisperFileError> {
        if count as u64 > self.bytes_left {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes)?;
        self.bytes_left -= count as u64;
        Ok((bytes, true))
    }
}
