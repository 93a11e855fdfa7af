//! The log-mel spectrogram that Whisper was trained with: frames of 25 ms every 10 ms, in mel bands.
//! Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022.

use std::f32::consts::TAU;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::file::FREQUENCIES;

/// Samples of one frame.
pub(crate) const FRAME: usize = 400;
/// Samples from one frame to the next.
pub(crate) const HOP: usize = 160;

pub(crate) struct Mel {
    filters: Vec<f32>,
    bands: usize,
    /// First and end frequency of each band's filter.
    spans: Vec<(usize, usize)>,
    window: Vec<f32>,
    fft: Arc<dyn Fft<f32>>,
}

hob_core::debug_fields!(Mel: bands);

impl Mel {
    pub(crate) fn new(filters: Vec<f32>, bands: usize) -> Mel {
        let span = |filter: &[f32]| {
            let first = filter.iter().position(|weight| *weight != 0.0).unwrap_or(0);
            let end = filter.iter().rposition(|weight| *weight != 0.0).map_or(0, |last| last + 1);
            (first, end.max(first))
        };
        let spans = filters.chunks(FREQUENCIES).map(span).collect();
        let hann = |n| 0.5 - 0.5 * (TAU * n as f32 / FRAME as f32).cos();
        let window = (0..FRAME).map(hann).collect();
        let fft = FftPlanner::new().plan_fft_forward(FRAME);
        Mel { filters, bands, spans, window, fft }
    }

    /// `frames` frames of `samples` followed by silence: band by band, each with all frames. The values are about
    /// -1 to 1.
    pub(crate) fn spectrogram(&self, samples: &[f32], frames: usize) -> Vec<f32> {
        let mut mel = vec![-10.0_f32; self.bands * frames];
        // All later frames are silence, so they keep the lowest value.
        let sounding = (samples.len() + FRAME / 2).div_ceil(HOP).min(frames);
        let mut buffer = vec![Complex::new(0.0, 0.0); FRAME];
        let mut scratch = vec![Complex::new(0.0, 0.0); self.fft.get_inplace_scratch_len()];
        let mut powers = [[0.0_f32; FREQUENCIES]; 2];
        // Two frames together: one as the real part and one as the imaginary part.
        for pair in 0..sounding.div_ceil(2) {
            let frame = pair * 2;
            for (n, (value, window)) in buffer.iter_mut().zip(&self.window).enumerate() {
                let real = at(samples, frame * HOP + n) * window;
                *value = Complex::new(real, at(samples, (frame + 1) * HOP + n) * window);
            }
            self.fft.process_with_scratch(&mut buffer, &mut scratch);
            for k in 0..FREQUENCIES {
                let (a, b) = (buffer[k], buffer[(FRAME - k) % FRAME].conj());
                powers[0][k] = (a + b).norm_sqr() / 4.0;
                powers[1][k] = (a - b).norm_sqr() / 4.0;
            }
            for (offset, power) in powers.iter().enumerate().take(frames - frame) {
                for band in 0..self.bands {
                    let (first, end) = self.spans[band];
                    let weights =
                        &self.filters[band * FREQUENCIES + first..band * FREQUENCIES + end];
                    let energy: f32 = weights
                        .iter()
                        .zip(&power[first..end])
                        .map(|(weight, power)| weight * power)
                        .sum();
                    mel[band * frames + frame + offset] = energy.max(1e-10).log10();
                }
            }
        }
        let floor = mel.iter().copied().fold(f32::MIN, f32::max) - 8.0;
        mel.iter_mut().for_each(|value| *value = (value.max(floor) + 4.0) / 4.0);
        mel
    }
}

/// The sample at `place - FRAME / 2`. Before the beginning the sound is reflected; after the end it is silent.
fn at(samples: &[f32], place: usize) -> f32 {
    let place = place as isize - (FRAME / 2) as isize;
    samples.get(place.unsigned_abs()).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter for each of three frequencies of 40 Hz times the number.
    fn three_bands() -> Mel {
        let mut filters = vec![0.0; 3 * FREQUENCIES];
        for (band, frequency) in [10, 25, 100].into_iter().enumerate() {
            filters[band * FREQUENCIES + frequency] = 1.0;
        }
        Mel::new(filters, 3)
    }

    #[test]
    fn a_tone_is_in_its_band_and_silence_is_low() {
        let tone: Vec<f32> =
            (0..16_000).map(|n| (TAU * 1000.0 * n as f32 / 16_000.0).sin()).collect();
        let frames = 150;
        let mel = three_bands().spectrogram(&tone, frames);
        let of = |band: usize, frame: usize| mel[band * frames + frame];
        // The power of a full sine in its own bin: (200 / 2)^2 = 10^4.
        let loud = (4.0 + 4.0) / 4.0;
        for frame in [5, 6, 50, 51] {
            assert!((of(1, frame) - loud).abs() < 0.01, "{}", of(1, frame));
            assert!(of(0, frame) < loud - 1.5 && of(2, frame) < loud - 1.5);
        }
        // Eight powers of ten below the loudest value is the floor.
        assert!((of(1, 120) - (loud - 2.0)).abs() < 0.01, "{}", of(1, 120));
    }

    #[test]
    fn odd_frame_counts_and_empty_sound_give_finite_values() {
        for (samples, frames) in [(vec![], 3), (vec![0.5; 100], 1), (vec![0.5; 1000], 7)] {
            let mel = three_bands().spectrogram(&samples, frames);
            assert!(mel.len() == 3 * frames && mel.iter().all(|value| value.is_finite()));
        }
    }
}
