//! Dimensions of the published models, so that their memory is known before they are fetched.
//! The names are those of whisper.cpp's files, without the quant.

use super::layout::Layout;
use super::memory::q8_bytes;
use super::{WhisperDims, WhisperMemory};

/// Each attention head has this width in all published models.
const HEAD_WIDTH: u32 = 64;

impl WhisperDims {
    /// The dimensions of a published size: `tiny.en`, `base`, `large-v3-turbo` …
    pub fn published(name: &str) -> Option<WhisperDims> {
        let (size, is_english) =
            name.strip_suffix(".en").map_or((name, false), |size| (size, true));
        let (width, audio_layers, text_layers) = match size {
            "tiny" => (384, 4, 4),
            "base" => (512, 6, 6),
            "small" => (768, 12, 12),
            "medium" => (1_024, 24, 24),
            "large-v1" | "large-v2" | "large-v3" if !is_english => (1_280, 32, 32),
            "large-v3-turbo" if !is_english => (1_280, 32, 4),
            _ => return None,
        };
        let is_third = size.starts_with("large-v3");
        let vocab = match (is_english, is_third) {
            (true, _) => 51_864,
            (false, false) => 51_865,
            (false, true) => 51_866,
        };
        Some(WhisperDims {
            vocab,
            audio_context: 1_500,
            audio_width: width,
            audio_heads: width / HEAD_WIDTH,
            audio_layers,
            text_context: 448,
            text_width: width,
            text_heads: width / HEAD_WIDTH,
            text_layers,
            mels: if is_third { 128 } else { 80 },
        })
    }
}

impl WhisperMemory {
    /// Memory of a published size. A quantised file of this many bytes stays as it is.
    pub(crate) fn published(name: &str, quantised_bytes: Option<u64>) -> Option<WhisperMemory> {
        let dims = WhisperDims::published(name)?;
        let weights_bytes = quantised_bytes.unwrap_or_else(|| q8_bytes(&Layout::of(&dims)));
        Some(WhisperMemory { weights_bytes, stream_bytes: dims.stream_bytes() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sizes_have_their_parameters() {
        let rows = [
            ("tiny.en", 37),
            ("base", 72),
            ("small", 241),
            ("medium.en", 763),
            ("large-v2", 1_543),
            ("large-v3", 1_543),
            ("large-v3-turbo", 808),
        ];
        for (name, millions) in rows {
            let dims = WhisperDims::published(name).expect(name);
            assert_eq!(Layout::of(&dims).parameters() / 1_000_000, millions, "{name}");
        }
        assert_eq!(WhisperDims::published("large-v3.en"), None);
    }
}
