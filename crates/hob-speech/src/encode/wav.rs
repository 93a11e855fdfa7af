//! WAV: a header of 44 bytes before raw samples.
//! A stream of unknown length says 0xFFFFFFFF for both sizes.

use hob_core::{WAV_COUNTED_BYTES, wav_header};

use super::pcm::write_s16le;
use super::{Codec, EncodeError, Length};

const BYTES_PER_SAMPLE: u32 = 2;
const UNKNOWN_SIZE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Wav {
    sample_rate_hz: u32,
    data_bytes: u32,
    samples_taken: u64,
}

impl Wav {
    pub(super) fn new(sample_rate_hz: u32, length: Length) -> Result<Self, EncodeError> {
        let data_bytes = match length {
            Length::Unknown => UNKNOWN_SIZE,
            Length::Samples(samples) => exact_bytes(samples)?,
        };
        Ok(Self { sample_rate_hz, data_bytes, samples_taken: 0 })
    }
}

/// The size of the file includes the header, and must stay below the value that means "unknown".
fn exact_bytes(samples: u64) -> Result<u32, EncodeError> {
    let samples_max = (UNKNOWN_SIZE - 1 - WAV_COUNTED_BYTES) / BYTES_PER_SAMPLE;
    match u32::try_from(samples) {
        Ok(samples) if samples <= samples_max => Ok(samples * BYTES_PER_SAMPLE),
        _ => Err(EncodeError::TooLongForWav { samples, samples_max: samples_max.into() }),
    }
}

impl Codec for Wav {
    fn header(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.extend(wav_header(self.sample_rate_hz, self.data_bytes));
        Ok(())
    }

    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.samples_taken += samples.len() as u64;
        write_s16le(samples, out);
        Ok(())
    }

    /// A file that is too long for exact sizes keeps the unknown ones.
    fn finish(self: Box<Self>, _out: &mut Vec<u8>) -> Result<Vec<u8>, EncodeError> {
        let bytes = exact_bytes(self.samples_taken).unwrap_or(UNKNOWN_SIZE);
        if bytes == self.data_bytes {
            return Ok(Vec::new());
        }
        Ok(wav_header(self.sample_rate_hz, bytes))
    }
}
