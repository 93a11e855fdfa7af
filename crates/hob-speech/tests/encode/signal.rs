//! Test sounds, and how well they survive encoding and decoding.
//! They are synthetic and exact, so a wrong level or a missing sample is always visible.

use std::f64::consts::TAU;

/// To a codec it is like a voice: harmonics of a gliding pitch under two formants, syllables, pauses.
pub(crate) fn voice(rate_hz: u32, samples: usize) -> Vec<f32> {
    let rate = f64::from(rate_hz);
    let mut phase = 0.0;
    (0..samples)
        .map(|n| {
            let t = n as f64 / rate;
            let pitch_hz = 130.0 + 30.0 * (TAU * 0.7 * t).sin();
            phase += TAU * pitch_hz / rate;
            let syllable = (TAU * 2.5 * t).sin().max(0.0).sqrt();
            (0.5 * syllable * harmonics(phase, pitch_hz, rate)) as f32
        })
        .collect()
}

fn harmonics(phase: f64, pitch_hz: f64, rate_hz: f64) -> f64 {
    let audible = |k: &u32| f64::from(*k) * pitch_hz < rate_hz * 0.4;
    let formant = |hz: f64, at: f64, width: f64| (-((hz - at) / width).powi(2)).exp();
    (1..40)
        .filter(audible)
        .map(|k| {
            let hz = f64::from(k) * pitch_hz;
            let loud = formant(hz, 500.0, 250.0) + 0.4 * formant(hz, 1_700.0, 400.0) + 0.01;
            0.3 * loud * (f64::from(k) * phase).sin()
        })
        .sum()
}

/// From 100 Hz to 8 kHz at constant level: any gap or repetition is a click.
pub(crate) fn sweep(rate_hz: u32, samples: usize) -> Vec<f32> {
    let ratio: f64 = 80.0;
    let seconds = samples as f64 / f64::from(rate_hz);
    (0..samples)
        .map(|n| {
            let part = n as f64 / samples as f64;
            let phase = TAU * 100.0 * seconds * (ratio.powf(part) - 1.0) / ratio.ln();
            (0.5 * phase.sin()) as f32
        })
        .collect()
}

/// The ratio of signal to error in decibels, without correction of gain or alignment.
pub(crate) fn snr_db(original: &[i16], decoded: &[i16]) -> f64 {
    let power = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let signal = power(&mut original.iter().map(|&v| v.into()));
    let errors = original.iter().zip(decoded).map(|(&a, &b)| f64::from(a) - f64::from(b));
    10.0 * (signal / power(&mut { errors }).max(1.0)).log10()
}

/// The worst signal-to-error ratio of all 20 ms pieces.
pub(crate) fn worst_snr_db(rate_hz: u32, original: &[i16], decoded: &[i16]) -> f64 {
    let piece = (rate_hz / 50) as usize;
    let pieces = original.chunks_exact(piece).zip(decoded.chunks_exact(piece));
    pieces.map(|(a, b)| snr_db(a, b)).fold(f64::INFINITY, f64::min)
}
