//! Decoding of uploads: files that other programs wrote, files that hob wrote, and files that are broken.
//! Each `files/chirp-*` is a chirp that ffmpeg encoded: 0.5·sin(2π(200t + 400t²)), one second.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test should end it, in its supporting functions too"
)]

mod broken;
mod cut;
mod formats;
mod refusals;
mod sample;
mod times;

use bytes::Bytes;
use hob_speech::decode::{DecodeError, SoundDecoder, decode_all};

pub(crate) fn decode(bytes: Vec<u8>) -> Result<Vec<f32>, DecodeError> {
    decode_all(Bytes::from(bytes), 60.0)
}

/// All samples, and the damage that the decoder skipped.
pub(crate) fn decode_with_damage(bytes: Vec<u8>) -> (Vec<f32>, Option<DecodeError>) {
    let mut decoder = SoundDecoder::open(Bytes::from(bytes)).unwrap();
    let mut samples = Vec::new();
    while let Some(piece) = decoder.next_piece().unwrap() {
        assert!((1..=16_000).contains(&piece.len()), "a piece of {} samples", piece.len());
        samples.extend(piece);
    }
    (samples, decoder.damage().cloned())
}
