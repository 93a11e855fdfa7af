//! The six encoders, checked with an independent decoder: the program ffmpeg.
//! The tests measure no time. They count how many samples are needed for the first sound.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test should end it, in its supporting functions too"
)]

mod audiobook;
mod bytes;
mod ffmpeg;
mod headers;
mod refusals;
mod signal;
mod sound;

use hob_speech::encode::{AudioFormat, EncodeError, Encoder, Length};

pub(crate) const RATE_HZ: u32 = 24_000;

/// Encodes `samples` as the server does: in pieces, with all bytes kept in order.
pub(crate) fn encode(
    format: AudioFormat,
    length: Length,
    pieces: &[&[f32]],
) -> Result<Vec<u8>, EncodeError> {
    encode_at(RATE_HZ, format, length, pieces)
}

pub(crate) fn encode_at(
    rate_hz: u32,
    format: AudioFormat,
    length: Length,
    pieces: &[&[f32]],
) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::new(format, rate_hz, length)?;
    let mut file = Vec::new();
    for piece in pieces {
        file.extend(encoder.encode(piece)?);
    }
    file.extend(encoder.finish()?);
    Ok(file)
}

/// The formats that this build can write.
pub(crate) fn built() -> Vec<AudioFormat> {
    let aac = cfg!(feature = "aac");
    AudioFormat::ALL.into_iter().filter(|format| aac || *format != AudioFormat::Aac).collect()
}

/// Signed 16 bit, rounded to nearest and saturated. Written again here, independent of the code under test.
pub(crate) fn quantized(samples: &[f32]) -> Vec<i16> {
    let level = |sample: &f32| (f64::from(*sample) * 32_768.0).round().clamp(-32_768.0, 32_767.0);
    samples.iter().map(|sample| level(sample) as i16).collect()
}
