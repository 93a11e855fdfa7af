//! What the front predicts for a whole unit, and windows cut out of it.
//! The harmonics' phases run on through the unit, so a window starts where the last one ended.

use std::f64::consts::TAU;
use std::ops::Range;

use super::SAMPLE_RATE_HZ;
use crate::speech::synthesiser::SynthesisError;

/// Rows of text features per frame.
pub(super) const FEATURES: usize = 512;
/// The fundamental and eight overtones.
pub(super) const HARMONICS: usize = 9;
/// Samples in half a frame. Pitch, energy and phases have one value per half frame.
const SAMPLES_PER_HALF_FRAME: f64 = 300.0;

/// Row-major: `features` is `[512, frames]`, `pitch` (Hz, 0 where unvoiced) and `energy` are
/// `[2·frames]`, `cycles` are the phases, `[9, 2·frames]` (1.0 = one period).
#[derive(Debug)]
pub(super) struct Contours {
    features: Vec<f32>,
    pitch: Vec<f32>,
    energy: Vec<f32>,
    cycles: Vec<f64>,
    durations: Vec<usize>,
    frames: usize,
}

/// The vocoder's inputs for some frames, in the same layout with phases in radians.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) features: Vec<f32>,
    pub(super) pitch: Vec<f32>,
    pub(super) energy: Vec<f32>,
    pub(super) phases: Vec<f32>,
    pub(super) frames: usize,
    /// Which of the frames are played.
    pub(super) played: Range<usize>,
}

impl Contours {
    /// # Errors
    /// The outputs have inconsistent sizes, so the file is not the graph that hob stored.
    pub(super) fn new(
        features: Vec<f32>,
        pitch: Vec<f32>,
        energy: Vec<f32>,
        durations: &[f32],
    ) -> Result<Contours, SynthesisError> {
        let durations: Vec<usize> = durations.iter().map(|frames| *frames as usize).collect();
        let frames = durations.iter().sum();
        let sizes = [features.len(), pitch.len(), energy.len()];
        if frames == 0 || sizes != [FEATURES * frames, 2 * frames, 2 * frames] {
            return Err(SynthesisError::Graph(format!(
                "the outputs have {sizes:?} values, which does not match {frames} frames"
            )));
        }
        let cycles = cycles(&pitch);
        Ok(Contours { features, pitch, energy, cycles, durations, frames })
    }

    /// Frames per token, boundary tokens included.
    pub(super) fn durations(&self) -> &[usize] {
        &self.durations
    }

    /// Hz, two values per frame.
    pub(super) fn pitch(&self) -> &[f32] {
        &self.pitch
    }

    /// The logarithm of the loudness as the model predicts it, two values per frame.
    pub(super) fn energy(&self) -> &[f32] {
        &self.energy
    }

    /// All frames, all of them played.
    pub(super) fn whole(&self) -> Window {
        self.cut(0..self.frames, 0..self.frames)
    }

    pub(super) fn cut(&self, frames: Range<usize>, played: Range<usize>) -> Window {
        let halves = 2 * frames.start..2 * frames.end;
        Window {
            features: rows(&self.features, self.frames, frames.clone()),
            pitch: self.pitch[halves.clone()].to_vec(),
            energy: self.energy[halves.clone()].to_vec(),
            phases: phases(&self.cycles, 2 * self.frames, halves),
            frames: frames.len(),
            played: played.start - frames.start..played.end - frames.start,
        }
    }
}

fn rows(matrix: &[f32], columns: usize, wanted: Range<usize>) -> Vec<f32> {
    matrix.chunks_exact(columns).flat_map(|row| &row[wanted.clone()]).copied().collect()
}

/// Radians from cycles. Whole cycles before the window are dropped: they do not change a sine, and
/// small angles keep their precision in 32 bits.
fn phases(cycles: &[f64], columns: usize, wanted: Range<usize>) -> Vec<f32> {
    let row = |row: &[f64]| {
        let before = row[wanted.start].floor();
        row[wanted.clone()]
            .iter()
            .map(|cycles| ((cycles - before) * TAU) as f32)
            .collect::<Vec<_>>()
    };
    cycles.chunks_exact(columns).flat_map(row).collect()
}

/// The published graph's own arithmetic: each half frame advances a harmonic by the fractional
/// part of `pitch × harmonic / rate` times the samples in it.
fn cycles(pitch: &[f32]) -> Vec<f64> {
    let rate_hz = SAMPLE_RATE_HZ as f32;
    (1..=HARMONICS)
        .flat_map(|harmonic| {
            pitch.iter().scan(0.0, move |sum, hz| {
                *sum += f64::from((hz * harmonic as f32 / rate_hz).fract());
                Some(*sum * SAMPLES_PER_HALF_FRAME)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contours(frames: usize) -> Contours {
        let features = (0..FEATURES * frames).map(|at| at as f32).collect();
        let pitch = (0..2 * frames).map(|at| 100.0 + at as f32).collect();
        Contours::new(features, pitch, vec![0.0; 2 * frames], &vec![1.0; frames]).expect("fits")
    }

    #[test]
    fn a_window_is_a_slice_of_every_row() {
        let window = contours(5).cut(1..3, 1..2);
        assert_eq!(window.features[..4], [1.0, 2.0, 6.0, 7.0]);
        assert_eq!(window.pitch, [102.0, 103.0, 104.0, 105.0]);
        assert_eq!(window.frames, 2);
    }

    #[test]
    fn the_phase_runs_on_across_windows() {
        let whole = contours(8);
        let all = whole.whole().phases;
        let later = whole.cut(3..8, 4..8).phases;
        for harmonic in 0..HARMONICS {
            for at in 0..10 {
                let (a, b) = (all[harmonic * 16 + 6 + at], later[harmonic * 10 + at]);
                let apart = (f64::from(a) - f64::from(b)) / TAU;
                assert!((apart - apart.round()).abs() < 1e-3, "harmonic {harmonic}: {apart}");
            }
        }
    }

    #[test]
    fn outputs_that_do_not_fit_each_other_are_refused() {
        assert!(Contours::new(vec![0.0; FEATURES], vec![0.0; 2], vec![0.0; 2], &[2.0]).is_err());
    }
}
