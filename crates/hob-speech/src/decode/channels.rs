//! Channels of any layout → one. Every decoder ends here, so every one averages in the same way.
//! A layout is checked before memory is reserved for it.

use super::DecodeError;

/// Below 1 kHz there is no speech.
pub(super) const RATE_HZ_MIN: u32 = 1_000;
/// Twice the highest rate of studio equipment.
pub(super) const RATE_HZ_MAX: u32 = 768_000;
pub(super) const CHANNELS_MAX: usize = 32;

/// Refuses layouts that are not sound, before memory is reserved for them.
pub(super) fn checked_layout(rate_hz: u32, channels: usize) -> Result<(), DecodeError> {
    let fits =
        (RATE_HZ_MIN..=RATE_HZ_MAX).contains(&rate_hz) && (1..=CHANNELS_MAX).contains(&channels);
    if fits { Ok(()) } else { Err(DecodeError::UnsupportedLayout { rate_hz, channels }) }
}

/// Appends the average of the channels. A sample that is not a number becomes silence.
pub(super) fn append_mono(interleaved: &[f32], channels: usize, mono: &mut Vec<f32>) {
    let finite = |sample: f32| if sample.is_finite() { sample } else { 0.0 };
    let share = 1.0 / channels as f32;
    mono.extend(interleaved.chunks_exact(channels).map(|frame| {
        let sum: f32 = frame.iter().map(|&sample| finite(sample)).sum();
        finite(sum * share).clamp(-1.0, 1.0)
    }));
}
