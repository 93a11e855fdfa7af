//! WAV: a 44-byte header before raw samples.
//! A stream says 0xFFFFFFFF for both sizes, which players read as "until the end".

use super::pcm::write_s16le;
use super::{Codec, EncodeError, Length};

const BYTES_PER_SAMPLE: u32 = 2;
/// Header bytes that the RIFF size counts: all 44 but the first eight.
const RIFF_HEADER_BYTES: u32 = 36;
const UNKNOWN_SIZE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Wav {
    sample_rate_hz: u32,
    riff_bytes: u32,
    data_bytes: u32,
}

impl Wav {
    pub(super) fn new(sample_rate_hz: u32, length: Length) -> Result<Self, EncodeError> {
        let (riff_bytes, data_bytes) = match length {
            Length::Unknown => (UNKNOWN_SIZE, UNKNOWN_SIZE),
            Length::Samples(samples) => exact_sizes(samples)?,
        };
        Ok(Self { sample_rate_hz, riff_bytes, data_bytes })
    }
}

/// The RIFF size includes the header, and must stay below the value that means "unknown".
fn exact_sizes(samples: u64) -> Result<(u32, u32), EncodeError> {
    let samples_max = (UNKNOWN_SIZE - 1 - RIFF_HEADER_BYTES) / BYTES_PER_SAMPLE;
    match u32::try_from(samples) {
        Ok(samples) if samples <= samples_max => {
            let data_bytes = samples * BYTES_PER_SAMPLE;
            Ok((RIFF_HEADER_BYTES + data_bytes, data_bytes))
        }
        _ => Err(EncodeError::TooLongForWav { samples, samples_max: samples_max.into() }),
    }
}

impl Codec for Wav {
    fn header(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let bytes_per_second = self.sample_rate_hz * BYTES_PER_SAMPLE;
        out.extend(b"RIFF");
        out.extend(self.riff_bytes.to_le_bytes());
        out.extend(b"WAVEfmt ");
        out.extend(16_u32.to_le_bytes()); // size of this chunk
        out.extend(1_u16.to_le_bytes()); // integer PCM
        out.extend(1_u16.to_le_bytes()); // channels
        out.extend(self.sample_rate_hz.to_le_bytes());
        out.extend(bytes_per_second.to_le_bytes());
        out.extend(2_u16.to_le_bytes()); // bytes per sample of all channels
        out.extend(16_u16.to_le_bytes()); // bits per sample
        out.extend(b"data");
        out.extend(self.data_bytes.to_le_bytes());
        Ok(())
    }

    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_s16le(samples, out);
        Ok(())
    }

    fn finish(self: Box<Self>, _out: &mut Vec<u8>) -> Result<(), EncodeError> {
        Ok(())
    }
}
