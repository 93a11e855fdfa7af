//! MP3: constant bitrate, independent frames, no bit reservoir and no Info frame.
//! Not LAME: its first frame needs 800 samples instead of 576, and it needs a C build.

use rusty_mp3::header::FrameHeader;
use rusty_mp3::{Mp3Encode, encoder_header};

use super::frames::Frames;
use super::{AudioFormat, Codec, EncodeError};

/// Samples by which a decoder's output lags the input: 528 for analysis and 529 for synthesis.
const DELAY_SAMPLES: usize = 1_057;

pub(super) struct Mp3 {
    header: FrameHeader,
    encoder: Mp3Encode,
    frames: Frames,
    samples_per_frame: usize,
    samples_taken: u64,
}

impl Mp3 {
    pub(super) fn new(sample_rate_hz: u32) -> Result<Self, EncodeError> {
        let header =
            encoder_header(sample_rate_hz, 1, bitrate_kbps(sample_rate_hz)).map_err(failed)?;
        let samples_per_frame = samples_per_frame(sample_rate_hz);
        Ok(Self {
            header,
            encoder: Mp3Encode::new(),
            frames: Frames::of(samples_per_frame),
            samples_per_frame,
            samples_taken: 0,
        })
    }

    fn push(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.frames.push(samples, |frame| {
            let bytes = self.encoder.encode_frame(&self.header, &[frame], None).map_err(failed)?;
            out.extend(bytes);
            Ok(())
        })
    }
}

/// Without a reservoir a difficult frame cannot use bits of an easy one, so every frame gets spare bits. Below 16 kHz
/// (MPEG-2.5) encoders and decoders commonly stop at 64 kbit/s.
fn bitrate_kbps(sample_rate_hz: u32) -> u32 {
    match sample_rate_hz {
        ..=12_000 => 64,
        12_001..=24_000 => 96,
        _ => 128,
    }
}

/// MPEG-1 (32 kHz and above) has two granules of 576 samples per frame. Its lower-rate extensions have one.
fn samples_per_frame(sample_rate_hz: u32) -> usize {
    if sample_rate_hz < 32_000 { 576 } else { 1_152 }
}

fn failed(error: impl std::fmt::Display) -> EncodeError {
    EncodeError::Codec { format: AudioFormat::Mp3, detail: error.to_string() }
}

impl Codec for Mp3 {
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.samples_taken += samples.len() as u64;
        self.push(samples, out)
    }

    /// Silence pushes the last samples through the delay and fills their frame.
    fn finish(mut self: Box<Self>, out: &mut Vec<u8>) -> Result<Vec<u8>, EncodeError> {
        if self.samples_taken > 0 {
            let frame = self.samples_per_frame as u64;
            let end = (self.samples_taken + DELAY_SAMPLES as u64).next_multiple_of(frame);
            let silence = vec![0.0; (end - self.samples_taken) as usize];
            self.push(&silence, out)?;
        }
        Ok(Vec::new())
    }
}
