//! Sound that arrives and leaves while people talk: bytes cut anywhere become samples at 16 kHz, and a model's samples
//! become bytes. One reader or writer belongs to one run of sound, because it remembers what came before.

use hob_core::realtime::SoundEncoding;

use crate::decode::{DECODED_RATE_HZ, DecodeError, Resampler};
use crate::g711::{alaw_byte, alaw_sample, mulaw_byte, mulaw_sample};

const SCALE: f32 = 32_768.0;

/// Bytes of a client → mono samples at 16 kHz.
pub struct LiveSoundReader {
    encoding: SoundEncoding,
    /// The first half of a sample whose second half has not come.
    half: Option<u8>,
    resampler: Resampler,
}

/// A model's samples → bytes of a client.
pub struct LiveSoundWriter {
    encoding: SoundEncoding,
    resampler: Resampler,
}

impl LiveSoundReader {
    pub fn new(encoding: SoundEncoding) -> Result<LiveSoundReader, DecodeError> {
        let resampler = Resampler::live(encoding.sample_rate_hz(), DECODED_RATE_HZ)?;
        Ok(LiveSoundReader { encoding, half: None, resampler })
    }

    pub fn encoding(&self) -> SoundEncoding {
        self.encoding
    }

    /// The samples that are complete. The rest follows with the next bytes.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Vec<f32>, DecodeError> {
        let samples = match self.encoding {
            SoundEncoding::Pcm16 => self.pcm(bytes),
            SoundEncoding::Mulaw => bytes.iter().map(|byte| scaled(mulaw_sample(*byte))).collect(),
            SoundEncoding::Alaw => bytes.iter().map(|byte| scaled(alaw_sample(*byte))).collect(),
        };
        let mut read = Vec::with_capacity(samples.len());
        self.resampler.push(&samples, &mut read)?;
        Ok(read)
    }

    fn pcm(&mut self, bytes: &[u8]) -> Vec<f32> {
        let bytes: Vec<u8> = self.half.take().into_iter().chain(bytes.iter().copied()).collect();
        let pairs = bytes.chunks_exact(2);
        self.half = pairs.remainder().first().copied();
        pairs.map(|pair| scaled(i16::from_le_bytes([pair[0], pair[1]]))).collect()
    }
}

impl LiveSoundWriter {
    /// `rate_hz` is the model's.
    pub fn new(encoding: SoundEncoding, rate_hz: u32) -> Result<LiveSoundWriter, DecodeError> {
        let resampler = Resampler::live(rate_hz, encoding.sample_rate_hz())?;
        Ok(LiveSoundWriter { encoding, resampler })
    }

    /// The bytes that are complete. The rest follows with the next samples.
    pub fn write(&mut self, samples: &[f32]) -> Result<Vec<u8>, DecodeError> {
        let mut resampled = Vec::with_capacity(samples.len());
        self.resampler.push(samples, &mut resampled)?;
        Ok(encoded(self.encoding, &resampled))
    }

    /// The bytes that are left.
    pub fn finish(self) -> Result<Vec<u8>, DecodeError> {
        let mut rest = Vec::new();
        self.resampler.finish(&mut rest)?;
        Ok(encoded(self.encoding, &rest))
    }
}

hob_core::debug_fields!(LiveSoundReader: encoding);

hob_core::debug_fields!(LiveSoundWriter: encoding);

fn scaled(sample: i16) -> f32 {
    f32::from(sample) / SCALE
}

fn encoded(encoding: SoundEncoding, samples: &[f32]) -> Vec<u8> {
    let whole = samples.iter().map(|sample| (sample * SCALE).round() as i16);
    match encoding {
        SoundEncoding::Pcm16 => whole.flat_map(i16::to_le_bytes).collect(),
        SoundEncoding::Mulaw => whole.map(mulaw_byte).collect(),
        SoundEncoding::Alaw => whole.map(alaw_byte).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tone(rate_hz: u32, samples: usize) -> Vec<f32> {
        let step = std::f32::consts::TAU * 440.0 / rate_hz as f32;
        (0..samples).map(|n| 0.5 * (n as f32 * step).sin()).collect()
    }

    #[test]
    fn sound_comes_back_as_it_was_in_every_encoding() {
        for encoding in [SoundEncoding::Pcm16, SoundEncoding::Mulaw, SoundEncoding::Alaw] {
            let mut writer = LiveSoundWriter::new(encoding, 24_000).expect("a writer");
            let mut bytes = writer.write(&tone(24_000, 24_000)).expect("bytes");
            bytes.extend(writer.finish().expect("the rest"));
            let rate = encoding.sample_rate_hz() as usize;
            assert_eq!(bytes.len(), rate * encoding.bytes_per_sample());
            let mut reader = LiveSoundReader::new(encoding).expect("a reader");
            let read = reader.read(&bytes).expect("samples");
            let original = tone(DECODED_RATE_HZ, read.len());
            let middle = 1000..read.len() - 1000;
            for (heard, said) in read[middle.clone()].iter().zip(&original[middle]) {
                assert!((heard - said).abs() < 0.03, "{encoding:?}: {heard} is not {said}");
            }
        }
    }

    #[test]
    fn sound_waits_for_no_more_than_15_ms() {
        let mut reader = LiveSoundReader::new(SoundEncoding::Pcm16).expect("a reader");
        let heard: usize =
            (0..5).map(|_| reader.read(&[0; 2 * 480]).expect("samples of 20 ms").len()).sum();
        assert!(heard >= 16 * (100 - 15), "{heard} samples of 100 ms");
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_does_not_matter(bytes: Vec<u8>, cuts: Vec<u8>) {
            let whole = LiveSoundReader::new(SoundEncoding::Pcm16).expect("a reader").read(&bytes);
            let mut reader = LiveSoundReader::new(SoundEncoding::Pcm16).expect("a reader");
            let (mut rest, mut pieces) = (&bytes[..], Vec::new());
            for cut in cuts {
                let (piece, more) = rest.split_at(rest.len().min(cut.into()));
                pieces.extend(reader.read(piece).expect("samples"));
                rest = more;
            }
            pieces.extend(reader.read(rest).expect("samples"));
            prop_assert_eq!(pieces, whole.expect("samples"));
        }
    }
}
