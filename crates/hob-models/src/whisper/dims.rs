//! The dimensions of a Whisper model, in the order in which ggml files have them.
//! They are checked before anything is computed from them, because headers come from strangers.

use super::WhisperError;
use super::error::within;

/// Upper limits of dimensions: ten or more times those of the largest published model.
const VOCAB_MAX: u64 = 1_000_000;
const CONTEXT_MAX: u64 = 30_000;
const WIDTH_MAX: u64 = 16_384;
const HEADS_MAX: u64 = 1_024;
const LAYERS_MAX: u64 = 256;
const MELS_MAX: u64 = 1_024;

/// Dimensions of a Whisper model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhisperDims {
    /// Tokens, with the special ones.
    pub vocab: u32,
    /// Positions of the encoder, each 20 ms: 1,500.
    pub audio_context: u32,
    pub audio_width: u32,
    pub audio_heads: u32,
    pub audio_layers: u32,
    /// Tokens of the decoder: 448.
    pub text_context: u32,
    pub text_width: u32,
    pub text_heads: u32,
    pub text_layers: u32,
    /// Mel bands: 80, or 128 since large-v3.
    pub mels: u32,
}

impl WhisperDims {
    /// In the order of the file.
    pub(super) fn numbers(&self) -> [u32; 10] {
        [
            self.vocab,
            self.audio_context,
            self.audio_width,
            self.audio_heads,
            self.audio_layers,
            self.text_context,
            self.text_width,
            self.text_heads,
            self.text_layers,
            self.mels,
        ]
    }

    /// Checks that the engine could use such a model.
    pub(super) fn check(&self) -> Result<(), WhisperError> {
        within("the number of tokens", self.vocab.into(), 1, VOCAB_MAX)?;
        within("the encoder's context", self.audio_context.into(), 1, CONTEXT_MAX)?;
        within("the decoder's context", self.text_context.into(), 1, CONTEXT_MAX)?;
        within("the number of mel bands", self.mels.into(), 1, MELS_MAX)?;
        let sides = [
            (self.audio_width, self.audio_heads, self.audio_layers),
            (self.text_width, self.text_heads, self.text_layers),
        ];
        for (width, heads, layers) in sides {
            within("the width", width.into(), 1, WIDTH_MAX)?;
            within("the number of attention heads", heads.into(), 1, HEADS_MAX)?;
            within("the number of layers", layers.into(), 1, LAYERS_MAX)?;
            if !width.is_multiple_of(heads) {
                return Err(WhisperError::NotAMultiple {
                    what: "the width",
                    value: width,
                    of: heads,
                });
            }
        }
        let width = u64::from(self.audio_width);
        within("the decoder's width", self.text_width.into(), width, width)
    }
}
