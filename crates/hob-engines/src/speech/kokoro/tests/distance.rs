//! How far apart two sounds are: spectra in decibels, within 50 dB of the loudest.
//! Differences of phase, which are not heard, do not count.

use std::f32::consts::PI;

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

const LENGTH: usize = 1024;
const HOP: usize = 256;
const BANDS: usize = 80;
const RANGE_DB: f32 = 50.0;
const RATE_HZ: f32 = 24_000.0;

/// Root mean square difference in dB over 80 mel bands.
pub(super) fn log_mel_db(a: &[f32], b: &[f32]) -> f32 {
    let bank = mel_bank();
    let banded = |spectrum: Vec<f32>| -> Vec<f32> {
        bank.iter().map(|row| row.iter().zip(&spectrum).map(|(w, power)| w * power).sum()).collect()
    };
    apart(
        spectra(a).into_iter().map(banded).collect(),
        spectra(b).into_iter().map(banded).collect(),
    )
}

/// Root mean square difference in dB over 513 linear bins.
pub(super) fn log_spectral_db(a: &[f32], b: &[f32]) -> f32 {
    apart(spectra(a), spectra(b))
}

/// The cosine between two sounds as vectors of samples.
pub(super) fn correlation(a: &[f32], b: &[f32]) -> f32 {
    let dot = |x: &[f32], y: &[f32]| -> f64 {
        x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) as f32
}

pub(super) fn level(samples: &[f32]) -> f32 {
    (samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32).sqrt()
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

fn spectra(samples: &[f32]) -> Vec<Vec<f32>> {
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
    samples.windows(LENGTH).step_by(HOP).map(spectrum).collect()
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

#[test]
fn a_sound_is_no_distance_from_itself_and_six_decibels_from_its_half() {
    // Noise, so that every bin stands far above the floor.
    let noise = |seed: &mut u32| {
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(*seed as f32 / u32::MAX as f32 - 0.5)
    };
    let sound: Vec<f32> = (0..9600).scan(1, |seed, _| noise(seed)).collect();
    let half: Vec<f32> = sound.iter().map(|x| x / 2.0).collect();
    assert_eq!(log_mel_db(&sound, &sound), 0.0);
    assert!((log_spectral_db(&sound, &half) - 6.02).abs() < 0.6);
    assert!((correlation(&sound, &half) - 1.0).abs() < 1e-4);
}
