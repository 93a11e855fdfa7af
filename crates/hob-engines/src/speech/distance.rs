//! How far apart two sounds of the same words are: spectra in decibels, pitch in cents, and durations.
//! Differences of phase, which are not heard, do not count.

use std::f32::consts::PI;

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;
use serde::{Deserialize, Serialize};

const LENGTH: usize = 1024;
const HOP: usize = 256;
const BANDS: usize = 80;
/// Below the loudest. What is quieter counts as silence.
const RANGE_DB: f32 = 50.0;
const RATE_HZ: f32 = 24_000.0;
/// The length of one frame, in which durations are counted.
const FRAME_SAMPLES: usize = 600;
const FRAME_MS: f64 = 25.0;
/// No voice is lower. Where a tone begins or ends, the model passes through values below it.
const VOICED_HZ: f32 = 50.0;

/// A unit of text as a speech model speaks it, and what the model decided on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpokenSound {
    /// As a listener hears it: computed in windows, and trimmed.
    pub heard: Vec<f32>,
    /// The whole unit as one window, untrimmed: what can be compared with another model.
    pub whole: Vec<f32>,
    /// Frames of 25 ms for each token, boundary tokens included.
    pub durations: Vec<usize>,
    /// Hz, two values a frame.
    pub pitch: Vec<f32>,
}

/// How far a sound is from another one of the same phonemes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeechDistance {
    /// Root mean square difference in dB over 80 mel bands, after the times of the tokens are matched.
    pub log_mel_db: f32,
    /// Root mean square difference of the pitch, where both have one. `None` without such places.
    pub pitch_cents: Option<f64>,
    /// Share of places where only one of them has a pitch.
    pub voicing_error: f64,
    /// Mean difference of a token's duration.
    pub duration_ms: f64,
    /// Length of the other sound divided by the length of the reference.
    pub length_ratio: f64,
}

impl SpeechDistance {
    /// The distance over all units of a sentence. `None` if the two do not have the same units and tokens.
    pub fn of_units(one: &[SpokenSound], other: &[SpokenSound]) -> Option<SpeechDistance> {
        let tokens = |units: &[SpokenSound]| -> Vec<usize> {
            units.iter().map(|unit| unit.durations.len()).collect()
        };
        let is_same = tokens(one) == tokens(other);
        is_same.then(|| SpokenSound::joined(one).distance(&SpokenSound::joined(other))).flatten()
    }
}

impl SpokenSound {
    /// The units one behind the other. Each takes exactly its frames, so that later ones stay in time.
    fn joined(units: &[SpokenSound]) -> SpokenSound {
        let (mut heard, mut whole) = (Vec::new(), Vec::new());
        let (mut durations, mut pitch) = (Vec::new(), Vec::new());
        let mut frames = 0;
        for unit in units {
            frames += unit.durations.iter().sum::<usize>();
            heard.extend_from_slice(&unit.heard);
            durations.extend_from_slice(&unit.durations);
            whole.extend_from_slice(&unit.whole);
            whole.resize(frames * FRAME_SAMPLES, 0.0);
            pitch.extend_from_slice(&unit.pitch);
            pitch.resize(frames * 2, 0.0);
        }
        SpokenSound { heard, whole, durations, pitch }
    }

    /// `None` if the two do not have the same tokens.
    fn distance(&self, other: &SpokenSound) -> Option<SpeechDistance> {
        let pairs = || self.durations.iter().zip(&other.durations);
        let frames = |sound: &SpokenSound| sound.durations.iter().sum::<usize>();
        if self.durations.len() != other.durations.len() || frames(self) == 0 {
            return None;
        }
        let difference: usize = pairs().map(|(a, b)| a.abs_diff(*b)).sum();
        let times = TokenTimes { one: &self.durations, other: &other.durations };
        let (pitch_cents, voicing_error) = pitch_difference(self, other, &times);
        Some(SpeechDistance {
            log_mel_db: log_mel_matched_db(&self.whole, &other.whole, |at| {
                (times.matched(at as f64 / FRAME_SAMPLES as f64) * FRAME_SAMPLES as f64) as usize
            }),
            pitch_cents,
            voicing_error,
            duration_ms: difference as f64 / self.durations.len() as f64 * FRAME_MS,
            length_ratio: frames(other) as f64 / frames(self) as f64,
        })
    }
}

/// Where each token starts and ends in two sounds.
struct TokenTimes<'a> {
    one: &'a [usize],
    other: &'a [usize],
}

impl TokenTimes<'_> {
    /// The time in the other sound, in frames: at the same share of the same token.
    fn matched(&self, frame: f64) -> f64 {
        let (mut start, mut matched) = (0.0, 0.0);
        for (length, other) in self.one.iter().zip(self.other) {
            let (length, other) = (*length as f64, *other as f64);
            if frame < start + length {
                return matched + (frame - start) / length * other;
            }
            start += length;
            matched += other;
        }
        matched
    }
}

/// The root mean square in cents, and the share of places where only one has a pitch.
fn pitch_difference(
    one: &SpokenSound,
    other: &SpokenSound,
    times: &TokenTimes<'_>,
) -> (Option<f64>, f64) {
    let (mut squares, mut both, mut differ, mut all) = (0.0, 0_usize, 0_usize, 0_usize);
    for (at, hz) in one.pitch.iter().enumerate() {
        let matched = (times.matched((at as f64 + 0.5) / 2.0) * 2.0) as usize;
        let Some(other_hz) = other.pitch.get(matched) else { continue };
        all += 1;
        match (*hz > VOICED_HZ, *other_hz > VOICED_HZ) {
            (true, true) => {
                squares += (1200.0 * f64::from(other_hz / hz).log2()).powi(2);
                both += 1;
            }
            (false, false) => {}
            _ => differ += 1,
        }
    }
    let cents = (both > 0).then(|| (squares / both as f64).sqrt());
    (cents, differ as f64 / all.max(1) as f64)
}

/// Root mean square difference in dB over 80 mel bands.
pub fn log_mel_db(a: &[f32], b: &[f32]) -> f32 {
    log_mel_matched_db(a, b, |at| at)
}

fn log_mel_matched_db(a: &[f32], b: &[f32], matched: impl Fn(usize) -> usize) -> f32 {
    let bank = mel_bank();
    let banded = |spectrum: Vec<f32>| -> Vec<f32> {
        bank.iter().map(|row| row.iter().zip(&spectrum).map(|(w, power)| w * power).sum()).collect()
    };
    let pieces = (0..a.len().saturating_sub(LENGTH - 1)).step_by(HOP);
    let pairs = pieces.filter_map(|at| {
        let matched = matched(at);
        Some((&a[at..at + LENGTH], b.get(matched..matched + LENGTH)?))
    });
    let (a, b): (Vec<&[f32]>, Vec<&[f32]>) = pairs.unzip();
    apart(
        spectra(a).into_iter().map(banded).collect(),
        spectra(b).into_iter().map(banded).collect(),
    )
}

fn apart(a: Vec<Vec<f32>>, b: Vec<Vec<f32>>) -> f32 {
    let loudest = a.iter().chain(&b).flatten().copied().fold(0.0, f32::max);
    let floor = loudest * 10f32.powf(-RANGE_DB / 10.0);
    let decibels = |power: f32| 10.0 * power.max(floor).log10();
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    let (sum, count) = pairs
        .filter(|(x, y)| **x > floor || **y > floor)
        .map(|(x, y)| (decibels(*x) - decibels(*y)).powi(2))
        .fold((0.0, 0), |(sum, count), square| (sum + f64::from(square), count + 1));
    (sum / f64::from(count.max(1))).sqrt() as f32
}

fn spectra(pieces: Vec<&[f32]>) -> Vec<Vec<f32>> {
    let fft = FftPlanner::new().plan_fft_forward(LENGTH);
    let window = |at: usize| 0.5 - 0.5 * (2.0 * PI * at as f32 / LENGTH as f32).cos();
    let spectrum = |piece: &[f32]| {
        let mut bins: Vec<Complex<f32>> = piece
            .iter()
            .enumerate()
            .map(|(at, sample)| Complex::new(sample * window(at), 0.0))
            .collect();
        fft.process(&mut bins);
        bins[..=LENGTH / 2].iter().map(Complex::norm_sqr).collect()
    };
    pieces.into_iter().map(spectrum).collect()
}

fn mel_bank() -> Vec<Vec<f32>> {
    let mel = |hz: f32| 2595.0 * (1.0 + hz / 700.0).log10();
    let hz = |mel: f32| 700.0 * (10f32.powf(mel / 2595.0) - 1.0);
    let top = mel(RATE_HZ / 2.0);
    let edge = |at: usize| hz(top * at as f32 / (BANDS + 1) as f32);
    let weight = |band: usize, bin: usize| {
        let f = bin as f32 * RATE_HZ / LENGTH as f32;
        let (low, middle, high) = (edge(band), edge(band + 1), edge(band + 2));
        ((f - low) / (middle - low)).min((high - f) / (high - middle)).max(0.0)
    };
    (0..BANDS).map(|band| (0..=LENGTH / 2).map(|bin| weight(band, bin)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(durations: &[usize], hz: f32) -> SpokenSound {
        let frames: usize = durations.iter().sum();
        let tone = |at: usize| (2.0 * PI * hz * at as f32 / RATE_HZ).sin();
        let whole: Vec<f32> = (0..frames * FRAME_SAMPLES).map(tone).collect();
        let pitch = vec![hz; 2 * frames];
        SpokenSound { heard: whole.clone(), whole, durations: durations.to_vec(), pitch }
    }

    #[test]
    fn a_sound_is_no_distance_from_itself() {
        let sound = sound(&[4, 8, 4], 200.0);
        let distance = sound.distance(&sound).expect("the same tokens");
        let nothing = SpeechDistance {
            log_mel_db: 0.0,
            pitch_cents: Some(0.0),
            voicing_error: 0.0,
            duration_ms: 0.0,
            length_ratio: 1.0,
        };
        assert_eq!(distance, nothing);
    }

    #[test]
    fn a_longer_token_counts_as_duration_and_not_as_another_sound() {
        let (short, long) = (sound(&[4, 8, 4], 200.0), sound(&[4, 12, 4], 200.0));
        let distance = short.distance(&long).expect("the same tokens");
        assert!(distance.log_mel_db < 0.5, "{distance:?}");
        assert!((distance.duration_ms - 100.0 / 3.0).abs() < 1e-9, "{distance:?}");
        assert_eq!((distance.length_ratio, distance.pitch_cents), (1.25, Some(0.0)));
    }

    #[test]
    fn pitch_is_compared_in_cents_and_where_both_have_one() {
        let low = sound(&[4, 8, 4], 200.0);
        let mut high = sound(&[4, 8, 4], 200.0 * 2_f32.powf(1.0 / 12.0));
        let cents = low.distance(&high).and_then(|distance| distance.pitch_cents).expect("cents");
        assert!((cents - 100.0).abs() < 0.1, "a semitone: {cents}");
        high.pitch[..8].fill(0.0);
        let distance = low.distance(&high).expect("the same tokens");
        assert_eq!(distance.voicing_error, 0.25);
        assert!((distance.pitch_cents.expect("elsewhere") - 100.0).abs() < 0.1);
        assert_eq!(low.distance(&sound(&[4, 8], 200.0)), None, "other tokens");
    }

    #[test]
    fn all_units_of_a_sentence_count() {
        let (same, low) = (sound(&[4, 8, 4], 200.0), sound(&[4, 8], 200.0));
        let mut longer = sound(&[4, 12], 200.0 * 2_f32.powf(1.0 / 12.0));
        // Samples that a vocoder adds or leaves out at the end of a unit do not shift the next one.
        longer.whole.truncate(longer.whole.len() - 100);
        let of = |one: &[SpokenSound], other: &[SpokenSound]| SpeechDistance::of_units(one, other);
        let units = [longer.clone(), same.clone()];
        let distance = of(&[low.clone(), same.clone()], &units).expect("the same tokens");
        assert_eq!(distance.duration_ms, 100.0 / 5.0);
        assert!((distance.length_ratio - 32.0 / 28.0).abs() < 1e-9, "{distance:?}");
        // A semitone in 12 of 28 frames.
        let cents = distance.pitch_cents.expect("a pitch");
        assert!((cents - 100.0 * (12.0_f64 / 28.0).sqrt()).abs() < 0.1, "{cents}");
        let alone = of(std::slice::from_ref(&low), &[longer]).expect("the same tokens");
        assert!(alone.log_mel_db > distance.log_mel_db, "{alone:?}");
        let nothing = of(&[same.clone(), low.clone()], &[same.clone(), low.clone()]);
        // Positions of frames are rounded, so it is not exactly 0.
        assert!(nothing.expect("the same tokens").log_mel_db < 0.01, "{nothing:?}");
        assert_eq!(of(&[same.clone(), low.clone()], &[low, same.clone()]), None, "other units");
        assert_eq!(of(std::slice::from_ref(&same), &units), None, "fewer units");
        assert_eq!(of(&[], &[]), None);
    }

    #[test]
    fn half_the_sound_is_six_decibels() {
        // Noise, so that every band stands far above the floor.
        let noise = |seed: &mut u32| {
            *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some(*seed as f32 / u32::MAX as f32 - 0.5)
        };
        let sound: Vec<f32> = (0..9600).scan(1, |seed, _| noise(seed)).collect();
        let half: Vec<f32> = sound.iter().map(|x| x / 2.0).collect();
        assert!((log_mel_db(&sound, &half) - 6.02).abs() < 0.1);
    }
}
