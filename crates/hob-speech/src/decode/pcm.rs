//! Raw samples that arrive in pieces → mono samples at 16 kHz.
//! A piece may be cut anywhere, also inside a sample.

use hob_core::PcmLayout;

use super::channels::{append_mono, checked_layout};
use super::resample::Resampler;
use super::{DECODED_RATE_HZ, DecodeError};

/// Integers of 8 to 32 bits.
const SAMPLE_BYTES: std::ops::RangeInclusive<usize> = 1..=4;

/// Decodes one run of samples with one layout.
pub struct PcmDecoder {
    layout: PcmLayout,
    resampler: Resampler,
    /// Bytes that do not fill a sample of every channel yet.
    rest: Vec<u8>,
}

hob_core::debug_fields!(PcmDecoder: layout);

impl PcmDecoder {
    /// # Errors
    /// hob cannot convert this layout.
    pub fn new(layout: PcmLayout) -> Result<PcmDecoder, DecodeError> {
        let PcmLayout { rate_hz, bytes, channels } = layout;
        checked_layout(rate_hz, channels)?;
        if !SAMPLE_BYTES.contains(&bytes) {
            return Err(DecodeError::UnsupportedSampleSize { bytes });
        }
        Ok(PcmDecoder {
            layout,
            resampler: Resampler::new(rate_hz, DECODED_RATE_HZ)?,
            rest: Vec::new(),
        })
    }

    pub fn layout(&self) -> PcmLayout {
        self.layout
    }

    /// Bytes of one second.
    pub fn bytes_per_s(&self) -> usize {
        self.frame_bytes() * self.layout.rate_hz as usize
    }

    /// Decodes the next bytes. Returns the samples that are complete.
    ///
    /// # Errors
    /// The resampler fails.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<f32>, DecodeError> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - self.rest.len() % self.frame_bytes();
        let interleaved: Vec<f32> =
            self.rest[..whole].chunks_exact(self.layout.bytes).map(sample).collect();
        self.rest.drain(..whole);
        let mut mono = Vec::with_capacity(interleaved.len() / self.layout.channels);
        append_mono(&interleaved, self.layout.channels, &mut mono);
        let mut ready = Vec::new();
        self.resampler.push(&mono, &mut ready)?;
        Ok(ready)
    }

    /// The samples that the resampler still holds. An incomplete last sample is dropped.
    ///
    /// # Errors
    /// The resampler fails.
    pub fn finish(self) -> Result<Vec<f32>, DecodeError> {
        let mut ready = Vec::new();
        self.resampler.finish(&mut ready)?;
        Ok(ready)
    }

    fn frame_bytes(&self) -> usize {
        self.layout.bytes * self.layout.channels
    }
}

/// One sample in -1..1. 8-bit samples are unsigned, as in WAV files.
fn sample(bytes: &[u8]) -> f32 {
    if let [byte] = bytes {
        return (f32::from(*byte) - 128.0) / 128.0;
    }
    // The bytes become the upper ones of 32 bits, which keeps the sign and the scale.
    let mut upper = [0; 4];
    upper[4 - bytes.len()..].copy_from_slice(bytes);
    (f64::from(i32::from_le_bytes(upper)) / f64::from(1u32 << 31)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(rate_hz: u32, bytes: usize, channels: usize) -> PcmLayout {
        PcmLayout { rate_hz, bytes, channels }
    }

    fn decoded(layout: PcmLayout, pieces: &[&[u8]]) -> Vec<f32> {
        let mut decoder = PcmDecoder::new(layout).expect("a layout");
        let mut samples = Vec::new();
        for piece in pieces {
            samples.extend(decoder.push(piece).expect("samples"));
        }
        samples.extend(decoder.finish().expect("the rest"));
        samples
    }

    #[test]
    fn integers_of_every_size_become_the_same_samples() {
        let rows: [(usize, &[u8]); 4] = [
            (1, &[0x80, 0xC0, 0x00]),
            (2, &[0, 0, 0x00, 0x40, 0x00, 0x80]),
            (3, &[0, 0, 0, 0x00, 0x00, 0x40, 0x00, 0x00, 0x80]),
            (4, &[0, 0, 0, 0, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x80]),
        ];
        for (bytes, sound) in rows {
            let samples = decoded(layout(16_000, bytes, 1), &[sound]);
            assert_eq!(samples, [0.0, 0.5, -1.0], "{bytes} bytes");
        }
    }

    #[test]
    fn channels_are_averaged_and_an_incomplete_sample_is_dropped() {
        let stereo = [0x00, 0x40, 0x00, 0x20, 0x00];
        assert_eq!(decoded(layout(16_000, 2, 2), &[&stereo]), [0.375]);
    }

    #[test]
    fn where_the_bytes_are_cut_does_not_matter_and_the_length_is_kept() {
        let sound: Vec<u8> = (0..4410u32 * 4)
            .flat_map(|n| (((n as f32 * 0.05).sin() * 9000.0) as i16).to_le_bytes())
            .collect();
        let whole = decoded(layout(44_100, 2, 2), &[&sound]);
        assert_eq!(whole.len(), 3200, "0.2 s");
        for size in [1, 3, 1024, 4096] {
            let pieces: Vec<&[u8]> = sound.chunks(size).collect();
            assert_eq!(decoded(layout(44_100, 2, 2), &pieces), whole, "pieces of {size}");
        }
    }

    #[test]
    fn layouts_that_are_no_sound_are_refused() {
        for (layout, reason) in [
            (layout(16_000, 0, 1), "0 bytes"),
            (layout(16_000, 5, 1), "5 bytes"),
            (layout(16_000, 2, 0), "0 channels"),
            (layout(16_000, 2, 33), "33 channels"),
            (layout(0, 2, 1), "0 Hz"),
            (layout(1_000_000, 2, 1), "1000000 Hz"),
        ] {
            let refused = PcmDecoder::new(layout).expect_err(reason).to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
