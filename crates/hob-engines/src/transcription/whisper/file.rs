//! Reads a Whisper file in whisper.cpp's format: sizes, mel filters, vocabulary, tensors.
//! A file may be damaged or malicious, so every size is checked before memory is allocated for it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::ggml::Type;

const MAGIC: u32 = 0x6767_6d6c;
/// Small, because the values of a tensor are skipped, and the buffer is filled again after them.
const BUFFER_BYTES: usize = 1 << 16;

/// The sizes of a model, from the file's head, as OpenAI names them. The audio part is the encoder, the text part the
/// decoder; `ctx` is the number of their positions, and `state` the length of the vector of each.
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

impl Sizes {
    /// Tokens that the decoder's cache has room for: a prompt of half the context, and five texts of half the context.
    pub(super) fn text_cached_max(&self) -> usize {
        3 * self.text_ctx
    }
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
    /// Where its bytes begin in the file.
    pub(super) at: u64,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WhisperFileError {
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    #[error(
        "this is not a Whisper file in whisper.cpp's format: it begins with {found:#010x} (expected 0x67676d6c)"
    )]
    NotWhisper { found: u32 },
    #[error("the file's {what} is {found}, and must be from {min} to {max}")]
    OutOfRange { what: &'static str, found: i64, min: i64, max: i64 },
    #[error("the file's {what} is {found}, and must be {expected}")]
    Unequal { what: &'static str, found: usize, expected: usize },
    #[error("the file's {what} is {state}, which {heads} attention heads do not divide")]
    Heads { what: &'static str, state: usize, heads: usize },
    #[error("the tensor '{name}' {reason}")]
    Tensor { name: String, reason: String },
    #[error("the file ends early: {0} tensors are missing")]
    Incomplete(usize),
}

/// Frequencies of one sound frame's spectrum: its 400 samples give 201.
pub(super) const FREQUENCIES: usize = 201;

pub(super) struct WhisperFile {
    reader: BufReader<File>,
    /// From the position of `reader` to the end of the file.
    bytes_left: u64,
}

impl WhisperFile {
    pub(super) fn open(path: &Path) -> Result<(WhisperFile, Head), WhisperFileError> {
        let file = File::open(path)?;
        let bytes_left = file.metadata()?.len();
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut file = WhisperFile { reader, bytes_left };
        let found = file.int().map(|magic| magic as u32).unwrap_or_default();
        if found != MAGIC {
            return Err(WhisperFileError::NotWhisper { found });
        }
        let sizes = file.sizes()?;
        let mels = file.within("number of mel bands", 1, 256)?;
        let frequencies = file.within("number of frequencies", 1, 4096)?;
        expect("number of mel filters", mels, sizes.mels)?;
        expect("number of frequencies of a mel filter", frequencies, FREQUENCIES)?;
        let filters = file.take(mels * frequencies * 4)?;
        let filters = Type::F32.to_floats(&filters, mels * frequencies).unwrap_or_default();
        let tokens = file.within("number of tokens", 1, sizes.vocab as i64)?;
        let vocabulary = (0..tokens).map(|_| {
            let length = file.within("length of a token", 0, 1024)?;
            file.take(length)
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
        expect("text state size", sizes.text_state, sizes.audio_state)?;
        divide("audio state size", sizes.audio_state, sizes.audio_heads)?;
        divide("text state size", sizes.text_state, sizes.text_heads)?;
        Ok(sizes)
    }

    /// The next tensor, or `None` at the end. Its bytes are skipped.
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
        let name = String::from_utf8_lossy(&self.take(name_length)?).into_owned();
        let refused = |reason: String| WhisperFileError::Tensor { name: name.clone(), reason };
        let kind =
            Type::of_file(kind).ok_or_else(|| refused(format!("has the unknown type {kind}")))?;
        let row = kind.row_bytes(dims[0]);
        let row = row.ok_or_else(|| refused(format!("has rows of {} values", dims[0])))?;
        let bytes = (row * dims[1] * dims[2]) as u64;
        if bytes > self.bytes_left {
            return Err(refused("is cut off: the file ends early".to_owned()));
        }
        let at = self.reader.stream_position()?;
        self.reader.seek_relative(bytes as i64)?;
        self.bytes_left -= bytes;
        Ok(Some(FileTensor { name, kind, dims, at }))
    }

    /// `count` bytes of a tensor, from this byte of the file on. The next tensor cannot be found afterwards.
    pub(super) fn bytes_at(&mut self, at: u64, count: usize) -> Result<Vec<u8>, WhisperFileError> {
        self.reader.seek(SeekFrom::Start(at))?;
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
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
    fn take(&mut self, count: usize) -> Result<Vec<u8>, WhisperFileError> {
        if count as u64 > self.bytes_left {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes)?;
        self.bytes_left -= count as u64;
        Ok(bytes)
    }
}

fn expect(what: &'static str, found: usize, expected: usize) -> Result<(), WhisperFileError> {
    if found == expected {
        return Ok(());
    }
    Err(WhisperFileError::Unequal { what, found, expected })
}

fn divide(what: &'static str, state: usize, heads: usize) -> Result<(), WhisperFileError> {
    if state.is_multiple_of(heads) {
        return Ok(());
    }
    Err(WhisperFileError::Heads { what, state, heads })
}
