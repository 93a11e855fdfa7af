//! Predicts the memory of a loaded Whisper model from its header.
//! The formulas follow whisper.cpp's buffers with flash attention, and are 0 to 3 % above the sizes that it logs, from tiny to large.

use super::WhisperDims;
use super::layout::{Layout, Numbers, TensorLayout};

/// Caches are padded to a multiple of this many positions.
const CACHE_POSITIONS: u64 = 256;
/// A key and a value of 16-bit floats.
const KEY_AND_VALUE_BYTES: u64 = 2 * 2;
const FLOAT_BYTES: u64 = 4;
/// The compute buffers hold this many matrices of `audio_context` × `audio_width` floats together. Fitted to the
/// logged sizes.
const ACTIVATIONS: u64 = 13;
/// The part of the compute buffers that does not grow with the width. Fitted, too.
const FIXED_BYTES: u64 = 9_000_000;

/// Rows of a multiple of this many numbers can be quantised to Q8_0, in blocks of 34 bytes.
const Q8_0_NUMBERS: u64 = 32;
const Q8_0_BYTES: u64 = 34;

/// Predicted memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhisperMemory {
    /// Once for each model.
    pub weights_bytes: u64,
    /// For each transcription that runs at the same time: caches and compute buffers.
    pub stream_bytes: u64,
}

impl WhisperMemory {
    /// With this many transcriptions at the same time.
    pub fn total_bytes(&self, streams: u64) -> u64 {
        self.weights_bytes.saturating_add(self.stream_bytes.saturating_mul(streams))
    }
}

impl WhisperDims {
    pub(super) fn stream_bytes(&self) -> u64 {
        let padded = |positions: u32| u64::from(positions).next_multiple_of(CACHE_POSITIONS);
        let (audio, text) = (u64::from(self.audio_width), u64::from(self.text_width));
        let positions = padded(self.text_context) + padded(self.audio_context);
        let text_caches = u64::from(self.text_layers) * positions * text;
        let caches = (text_caches + padded(self.audio_context) * audio) * KEY_AND_VALUE_BYTES;
        let activations = u64::from(self.audio_context) * audio * ACTIVATIONS * FLOAT_BYTES;
        // The decoder's buffer holds the scores of all tokens at each position of a full prompt.
        let logits = u64::from(self.text_context) * u64::from(self.vocab) * FLOAT_BYTES;
        caches + activations + FIXED_BYTES + logits
    }
}

/// Bytes of a matrix in Q8_0; `None` if its rows have no whole blocks, or if it is not a matrix.
pub(super) fn matrix_q8_bytes(shape: &[u64], row: Option<&u64>) -> Option<u64> {
    let is_quantised = shape.len() == 2 && row?.is_multiple_of(Q8_0_NUMBERS);
    is_quantised.then(|| shape.iter().product::<u64>() / Q8_0_NUMBERS * Q8_0_BYTES)
}

/// Weights of a file with 16-bit floats, after its matrices were quantised.
pub(super) fn q8_bytes(layout: &Layout) -> u64 {
    let bytes = |tensor: &TensorLayout| match tensor.numbers {
        Numbers::F32 => tensor.elements() * 4,
        Numbers::F16 => {
            matrix_q8_bytes(&tensor.shape, tensor.shape.last()).unwrap_or(tensor.elements() * 2)
        }
    };
    layout.tensors.iter().map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums that whisper.cpp 1.8 logs for one state on the CPU, in MB.
    #[test]
    fn the_prediction_covers_what_whisper_cpp_allocates() {
        let logged = [
            ("tiny", 145.7),
            ("base", 168.7),
            ("small", 240.0),
            ("medium", 386.7),
            ("large-v2", 541.9),
        ];
        for (name, megabytes) in logged {
            let dims = WhisperDims::published(name).expect(name);
            let ratio = dims.stream_bytes() as f64 / (megabytes * 1e6);
            assert!((1.0..1.03).contains(&ratio), "{name}: {ratio}");
        }
    }
}
