//! FLAC: returns a frame as soon as its block is full, and the last, shorter block at the end.
//! If the length is unknown, the header says so. Otherwise frames wait for it, because it has the MD5 of all samples.

use flacenc::bitsink::ByteSink;
use flacenc::component::{BitRepr, Stream, StreamInfo};
use flacenc::config;
use flacenc::error::{Verified, Verify};
use flacenc::source::{Context, Fill, FrameBuf};

use super::frames::Frames;
use super::pcm::to_s16;
use super::{AudioFormat, Codec, EncodeError, Length};

/// 24 ms at 24 kHz. With longer blocks, a file of speech is at most 2 % smaller, and its sound is sent later.
const BLOCK_SAMPLES: usize = 576;
const BITS_PER_SAMPLE: usize = 16;
const CHANNELS: usize = 1;

pub(super) struct Flac {
    blocks: Frames,
    writer: FrameWriter,
    /// `Some` if the length is known: frames wait here for the header that describes them.
    held: Option<Vec<u8>>,
}

impl Flac {
    pub(super) fn new(sample_rate_hz: u32, length: Length) -> Result<Self, EncodeError> {
        let held = match length {
            Length::Unknown => None,
            Length::Samples(_) => Some(Vec::new()),
        };
        let blocks = Frames::of(BLOCK_SAMPLES);
        Ok(Self { blocks, writer: FrameWriter::new(sample_rate_hz)?, held })
    }
}

impl Codec for Flac {
    fn header(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if self.held.is_none() {
            out.extend(self.writer.unknown_header()?);
        }
        Ok(())
    }

    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let out = self.held.as_mut().unwrap_or(out);
        self.blocks.push(samples, |block| self.writer.write(block, out))
    }

    fn finish(mut self: Box<Self>, out: &mut Vec<u8>) -> Result<Vec<u8>, EncodeError> {
        let rest = self.blocks.take_rest();
        let frames = self.held.as_mut().unwrap_or(out);
        if !rest.is_empty() {
            self.writer.write(&rest, frames)?;
        }
        let header = self.writer.exact_header()?;
        let Some(frames) = self.held else { return Ok(header) };
        out.extend(header);
        out.extend(frames);
        Ok(Vec::new())
    }
}

/// Encodes blocks and collects what the exact header needs.
struct FrameWriter {
    config: Verified<config::Encoder>,
    info: StreamInfo,
    block: FrameBuf,
    seen: Context,
    frame_bytes: Option<(usize, usize)>,
}

impl FrameWriter {
    fn new(sample_rate_hz: u32) -> Result<Self, EncodeError> {
        let config = config::Encoder::default().into_verified().map_err(|(_, e)| failed(e))?;
        let rate = sample_rate_hz as usize;
        let mut info = StreamInfo::new(rate, CHANNELS, BITS_PER_SAMPLE).map_err(failed)?;
        // Equal sizes mean "fixed block size". The last block may be shorter.
        info.set_block_sizes(BLOCK_SAMPLES, BLOCK_SAMPLES).map_err(failed)?;
        let block = FrameBuf::with_size(CHANNELS, BLOCK_SAMPLES).map_err(failed)?;
        let seen = Context::new(BITS_PER_SAMPLE, CHANNELS);
        Ok(Self { config, info, block, seen, frame_bytes: None })
    }

    fn write(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let number = self.seen.current_frame_number().map_or(0, |last| last + 1);
        let integers: Vec<i32> = samples.iter().map(|&sample| to_s16(sample).into()).collect();
        self.block.fill_interleaved(&integers).map_err(failed)?;
        self.seen.fill_interleaved(&integers).map_err(failed)?;
        let frame = flacenc::encode_fixed_size_frame(&self.config, &self.block, number, &self.info)
            .map_err(failed)?;
        let bytes = bytes_of(&frame)?;
        let (smallest, largest) = self.frame_bytes.unwrap_or((bytes.len(), bytes.len()));
        self.frame_bytes = Some((smallest.min(bytes.len()), largest.max(bytes.len())));
        out.extend(bytes);
        Ok(())
    }

    /// Zero means "unknown" for frame sizes, number of samples and MD5.
    fn unknown_header(&self) -> Result<Vec<u8>, EncodeError> {
        let mut info = self.info.clone();
        info.set_frame_sizes(0, 0).map_err(failed)?;
        bytes_of(&Stream::with_stream_info(info))
    }

    fn exact_header(&self) -> Result<Vec<u8>, EncodeError> {
        let mut info = self.info.clone();
        let (smallest, largest) = self.frame_bytes.unwrap_or((0, 0));
        info.set_frame_sizes(smallest, largest).map_err(failed)?;
        info.set_total_samples(self.seen.total_samples());
        info.set_md5_digest(&self.seen.md5_digest());
        bytes_of(&Stream::with_stream_info(info))
    }
}

fn bytes_of(part: &impl BitRepr) -> Result<Vec<u8>, EncodeError> {
    let mut sink = ByteSink::new();
    part.write(&mut sink).map_err(failed)?;
    Ok(sink.into_inner())
}

fn failed(error: impl std::fmt::Display) -> EncodeError {
    EncodeError::Codec { format: AudioFormat::Flac, detail: error.to_string() }
}
