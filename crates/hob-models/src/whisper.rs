//! Whisper models in whisper.cpp's ggml format: their header, their memory, and their conversion from CTranslate2's format.
//! Runs no model.

mod convert;
mod ctranslate2;
mod dims;
mod error;
mod header;
mod layout;
mod mel;
mod memory;
mod published;
mod reader;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tiny_model;
mod vocabulary;

pub(crate) use convert::{ConvertError, convert};
pub use dims::WhisperDims;
pub use error::WhisperError;
pub use header::WhisperHeader;
pub use mel::filters as mel_filters;
pub use memory::WhisperMemory;

/// The first four bytes of a ggml file, read as a little-endian number: "ggml".
const MAGIC: u32 = 0x6767_6d6c;
/// Frequencies of a 400-sample Fourier transform, from 0 Hz to 8 kHz.
const FREQUENCIES: u32 = 201;
/// The smallest vocabulary with language tokens. English models have one token less.
const MULTILINGUAL_TOKENS: u32 = 51_865;

/// Names of raw files: a ggml file as published, or the two files of CTranslate2's format, and Silero VAD, which
/// finds speech.
pub(crate) const GGML: &str = "ggml.bin";
pub(crate) const CTRANSLATE2_MODEL: &str = "ctranslate2/model.bin";
pub(crate) const CTRANSLATE2_VOCABULARY: &str = "ctranslate2/vocabulary.txt";
pub(crate) const VAD: &str = "silero_vad.onnx";
