//! Any rate → any other, with the filter's delay taken out, so that every sample keeps its time.
//! With two equal rates the samples pass through unchanged.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as _};

use super::DecodeError;

/// Blocks of 40 ms: the filter's transition band is then about 100 Hz wide, and a block is quick to compute.
const BLOCKS_PER_SECOND: u32 = 25;
/// Blocks of 10 ms: the transition band is 400 Hz wide, and a sample waits at most 15 ms.
const LIVE_BLOCKS_PER_SECOND: u32 = 100;

/// Resamples one run of sound with one rate.
pub struct Resampler {
    rate_hz: u32,
    to_hz: u32,
    /// `None` if there is nothing to convert.
    fft: Option<Fft<f32>>,
    /// Input that does not fill a block yet.
    waiting: Vec<f32>,
    block: Vec<f32>,
    /// Output samples that are still the filter's delay.
    delay: usize,
    input_samples: u64,
    output_samples: u64,
}

hob_core::debug_fields!(Resampler: rate_hz, to_hz);

impl Resampler {
    pub(crate) fn new(rate_hz: u32, to_hz: u32) -> Result<Self, DecodeError> {
        Resampler::with_blocks(rate_hz, to_hz, BLOCKS_PER_SECOND)
    }

    /// For sound that is used as it arrives.
    pub fn live(rate_hz: u32, to_hz: u32) -> Result<Self, DecodeError> {
        Resampler::with_blocks(rate_hz, to_hz, LIVE_BLOCKS_PER_SECOND)
    }

    fn with_blocks(rate_hz: u32, to_hz: u32, per_second: u32) -> Result<Self, DecodeError> {
        let fft = if rate_hz == to_hz { None } else { Some(new_fft(rate_hz, to_hz, per_second)?) };
        let delay = fft.as_ref().map_or(0, Fft::output_delay);
        let block = vec![0.0; fft.as_ref().map_or(0, Fft::output_frames_max)];
        Ok(Self {
            rate_hz,
            to_hz,
            fft,
            waiting: Vec::new(),
            block,
            delay,
            input_samples: 0,
            output_samples: 0,
        })
    }

    pub(crate) fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Appends the output that is complete to `out`.
    pub fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) -> Result<(), DecodeError> {
        self.input_samples += samples.len() as u64;
        let Some(fft) = &self.fft else {
            out.extend_from_slice(samples);
            return Ok(());
        };
        let block_len = fft.input_frames_next();
        self.waiting.extend_from_slice(samples);
        let whole = self.waiting.len() - self.waiting.len() % block_len;
        let rest = self.waiting.split_off(whole);
        let blocks = std::mem::replace(&mut self.waiting, rest);
        for block in blocks.chunks_exact(block_len) {
            self.convert(block, u64::MAX, out)?;
        }
        Ok(())
    }

    /// Appends the rest. The sound has then as many seconds as it had before, to the nearest sample.
    pub fn finish(mut self, out: &mut Vec<f32>) -> Result<(), DecodeError> {
        let Some(fft) = &self.fft else { return Ok(()) };
        let block_len = fft.input_frames_next();
        let rate = u64::from(self.rate_hz);
        let end = (self.input_samples * u64::from(self.to_hz) + rate / 2) / rate;
        let mut block = std::mem::take(&mut self.waiting);
        while self.output_samples < end {
            block.resize(block_len, 0.0);
            self.convert(&block, end, out)?;
            block.clear();
        }
        Ok(())
    }

    /// Converts one full block, and appends no more than `end` samples in total.
    fn convert(&mut self, input: &[f32], end: u64, out: &mut Vec<f32>) -> Result<(), DecodeError> {
        let Some(fft) = &mut self.fft else { return Ok(()) };
        let input =
            SequentialSlice::new(input, 1, input.len()).map_err(|_| failed(self.rate_hz))?;
        let frames = self.block.len();
        let mut output = SequentialSlice::new_mut(&mut self.block, 1, frames)
            .map_err(|_| failed(self.rate_hz))?;
        let (_, made) =
            fft.process_into_buffer(&input, &mut output, None).map_err(|_| failed(self.rate_hz))?;
        let late = self.delay.min(made);
        self.delay -= late;
        let room = usize::try_from(end - self.output_samples).unwrap_or(usize::MAX);
        let heard = &self.block[late..made];
        let heard = &heard[..heard.len().min(room)];
        self.output_samples += heard.len() as u64;
        out.extend(heard.iter().map(|sample| sample.clamp(-1.0, 1.0)));
        Ok(())
    }
}

/// The block length is even. With an odd one, the centre of the filter would be between two samples, and all times would shift.
fn new_fft(rate_hz: u32, to_hz: u32, per_second: u32) -> Result<Fft<f32>, DecodeError> {
    let even = 2 * rate_hz / common_divisor(rate_hz, to_hz);
    let block = (rate_hz / per_second).next_multiple_of(even) as usize;
    Fft::new(rate_hz as usize, to_hz as usize, block, 1, FixedSync::Both)
        .map_err(|_| failed(rate_hz))
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn failed(rate_hz: u32) -> DecodeError {
    DecodeError::UnsupportedLayout { rate_hz, channels: 1 }
}
