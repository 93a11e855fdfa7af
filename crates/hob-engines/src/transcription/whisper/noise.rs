//! How noisy a sound is. In noise, the likeliest next token is often not part of the likeliest text, even if the decoder is
//! sure of it. Then hob follows several texts from the beginning, and no total silence follows the sound.

use super::mel::HOP;

/// Samples of a frame: 20 ms.
const FRAME: usize = 320;
/// The 10th percentile of the frames' power stands for the noise, and the 90th for the speech.
const QUIET: f64 = 0.1;
const LOUD: f64 = 0.9;
/// Speech that is less than this above the quiet frames, in decibels, is noisy. With white noise of 10 dB it is about 15 dB above them.
const RANGE_DB_MIN: f32 = 20.0;
/// A short word after a long pause is in fewer frames than the loudest tenth. So sound is not noisy, either, if this many
/// frames (200 ms) are so much above the quiet ones, in decibels. With white noise of 10 dB they are about 17 dB above them.
const WORD_FRAMES: usize = 10;
const WORD_DB_MIN: f32 = 30.0;

/// Whether the loud parts of a sound are little louder than its quiet ones.
pub(super) fn is_noisy(samples: &[f32]) -> bool {
    let mut powers: Vec<f32> =
        samples.chunks_exact(FRAME).map(|frame| frame.iter().map(|x| x * x).sum()).collect();
    powers.sort_unstable_by(f32::total_cmp);
    let at = |share: f64| powers.get((powers.len() as f64 * share) as usize).copied();
    let (Some(quiet), Some(loud)) = (at(QUIET), at(LOUD)) else { return false };
    let word = powers[powers.len().saturating_sub(WORD_FRAMES)];
    let above = |decibels: f32| quiet * 10.0_f32.powf(decibels / 10.0);
    loud < above(RANGE_DB_MIN) && word < above(WORD_DB_MIN)
}

/// Fills the spectrogram after a noisy sound with the middle of its scale, which is about the level of quiet noise. With
/// silence there, Whisper base writes more wrong words (`docs/reference/performance.md`).
pub(super) fn fill_silence_after(samples: &[f32], mel: &mut [f32], frames: usize) {
    if is_noisy(samples) {
        // The last frame of the sound contains silence, too.
        let from = (samples.len() / HOP).min(frames);
        mel.chunks_exact_mut(frames).for_each(|band| band[from..].fill(0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tone with pauses of the same length, and noise that is this much quieter.
    fn sound(noise_db: f32) -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(1);
        let noise = 10.0_f32.powf(-noise_db / 20.0);
        let tone =
            |n: usize| if (n / 4_000).is_multiple_of(2) { (n as f32 * 0.2).sin() } else { 0.0 };
        // Both have a power of 1/2.
        let scale = noise * 1.5_f32.sqrt();
        (0..32_000).map(|n| tone(n) + scale * (2.0 * random.f32() - 1.0)).collect()
    }

    #[test]
    fn speech_that_is_hardly_louder_than_the_rest_is_noisy() {
        for (noise_db, expected) in [(5.0, true), (10.0, true), (15.0, true), (25.0, false)] {
            assert_eq!(is_noisy(&sound(noise_db)), expected, "{noise_db} dB");
        }
        assert!(!is_noisy(&[]) && !is_noisy(&sound(60.0)));
    }

    #[test]
    fn a_long_pause_before_a_clear_word_is_not_noisy() {
        let word = |noise_db: f32| {
            let one = sound(noise_db);
            [one[4_000..8_000].repeat(24), one[..4_000].to_vec()].concat()
        };
        assert!(is_noisy(&word(10.0)) && !is_noisy(&word(45.0)));
    }

    #[test]
    fn only_noisy_sound_is_followed_by_the_middle_of_the_scale() {
        for (noise_db, after) in [(10.0, 0.0), (40.0, -1.0)] {
            let samples = sound(noise_db);
            let frames = samples.len() / HOP + 50;
            let mut mel = vec![-1.0; 2 * frames];
            fill_silence_after(&samples, &mut mel, frames);
            for band in mel.chunks_exact(frames) {
                assert_eq!((band[frames - 51], band[frames - 50]), (-1.0, after), "{noise_db} dB");
                assert_eq!(band[frames - 1], after, "{noise_db} dB");
            }
        }
    }
}
