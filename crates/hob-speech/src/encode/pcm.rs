//! Raw samples: signed 16 bit, little-endian, mono, without a header.
//! hob adds no dither, because in a pause its noise would be the loudest signal.

use super::{Codec, EncodeError};

#[derive(Debug)]
pub(super) struct Pcm;

impl Codec for Pcm {
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_s16le(samples, out);
        Ok(())
    }
}

pub(super) fn write_s16le(samples: &[f32], out: &mut Vec<u8>) {
    out.extend(samples.iter().flat_map(|&sample| to_s16(sample).to_le_bytes()));
}

/// Converts with the scale 2^15, by which decoders divide. So every format gives the same levels. +1.0 has no 16-bit
/// equivalent, and becomes 32,767.
pub(super) fn to_s16(sample: f32) -> i16 {
    // A float cast saturates at the ends of the integer's range.
    (sample * 32_768.0).round() as i16
}
