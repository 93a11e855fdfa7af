//! Predicts the memory of a loaded Whisper model from its header.
//! The formulas follow whisper.cpp's buffers with flash attention, and are 0 to 3 % above the sizes that it logs, from tiny to large.

use super::{WhisperDims, WhisperHeader};

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

impl WhisperHeader {
    /// Memory of the model, with 16-bit matrices quantised to Q8_0 when they are loaded.
    pub fn memory(&self) -> WhisperMemory {
        WhisperMemory { weights_bytes: self.q8_bytes, stream_bytes: self.dims.stream_bytes() }
    }
}

impl WhisperDims {
    fn stream_bytes(&self) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(width: u32, layers: u32) -> WhisperDims {
        let heads = width / 64;
        WhisperDims {
            vocab: 51_865,
            audio_context: 1_500,
            audio_width: width,
            audio_heads: heads,
            audio_layers: layers,
            text_context: 448,
            text_width: width,
            text_heads: heads,
            text_layers: layers,
            mels: 80,
        }
    }

    /// The sums that whisper.cpp 1.8 logs for one state on the CPU, in MB.
    #[test]
    fn the_prediction_covers_what_whisper_cpp_allocates() {
        let logged = [
            (dims(384, 4), 145.7),
            (dims(512, 6), 168.7),
            (dims(768, 12), 240.0),
            (dims(1_024, 24), 386.7),
            (dims(1_280, 32), 541.9),
        ];
        for (dims, megabytes) in logged {
            let ratio = dims.stream_bytes() as f64 / (megabytes * 1e6);
            assert!((1.0..1.03).contains(&ratio), "{}: {ratio}", dims.size_name());
        }
    }
}
