//! Prepares sounds for the listening page: both models equally loud, and as FLAC.
//! Otherwise a listener would prefer the louder one, not the better one.

use hob_bench::listening::HeardSentence;
use hob_speech::encode::{AudioFormat, EncodeError, encode_whole};

/// Steps in which silence is found: 20 ms.
const STEP: usize = 480;
/// Quieter than the loudest step by this much: a pause, which does not count for the loudness.
const PAUSE: f32 = 1e-3;

/// A sentence as both models say it, for the page.
///
/// # Errors
/// A sound has values that are not numbers.
pub(super) fn heard_sentence(
    text: &str,
    [source, target]: [Vec<f32>; 2],
    rate_hz: u32,
) -> Result<HeardSentence, EncodeError> {
    let [source, target] = equally_loud(source, target);
    let file = |samples: &[f32]| encode_whole(AudioFormat::Flac, rate_hz, samples);
    Ok(HeardSentence::new(text, [&file(&source)?, &file(&target)?], "audio/flac"))
}

/// Makes the second as loud as the first. Both become quieter where one of them would clip.
fn equally_loud(one: Vec<f32>, other: Vec<f32>) -> [Vec<f32>; 2] {
    let factor = if loudness(&other) > 0.0 { loudness(&one) / loudness(&other) } else { 1.0 };
    let scaled =
        |samples: &[f32], by: f32| -> Vec<f32> { samples.iter().map(|x| x * by).collect() };
    let other = scaled(&other, factor);
    let peak = one.iter().chain(&other).fold(1.0_f32, |peak, sample| peak.max(sample.abs()));
    [scaled(&one, 1.0 / peak), scaled(&other, 1.0 / peak)]
}

/// Root mean square of what is not a pause.
fn loudness(samples: &[f32]) -> f32 {
    let power = |step: &[f32]| step.iter().map(|x| x * x).sum::<f32>() / step.len() as f32;
    let powers: Vec<f32> = samples.chunks(STEP).map(power).collect();
    let loudest = powers.iter().copied().fold(0.0, f32::max);
    let heard: Vec<f32> = powers.into_iter().filter(|power| *power > PAUSE * loudest).collect();
    (heard.iter().sum::<f32>() / heard.len().max(1) as f32).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(level: f32, pause: usize) -> Vec<f32> {
        let sample = |at: usize| level * (at as f32 * 0.2).sin();
        vec![0.0; pause].into_iter().chain((0..24_000).map(sample)).collect()
    }

    #[test]
    fn two_sounds_become_equally_loud_whatever_their_pauses() {
        let decibels =
            |one: &[f32], other: &[f32]| 20.0 * (loudness(one) / loudness(other)).log10().abs();
        for (level, pause) in [(0.2, 0), (0.9, 24_000), (0.01, 9_600)] {
            let [one, other] = equally_loud(tone(0.5, 0), tone(level, pause));
            assert!(decibels(&one, &other) < 0.1, "{level}");
            assert!(one.iter().chain(&other).all(|sample| sample.abs() <= 1.0), "{level}");
        }
        let [one, silent] = equally_loud(tone(0.5, 0), vec![0.0; 480]);
        assert!(loudness(&one) > 0.3 && loudness(&silent) == 0.0);
    }

    #[test]
    fn a_sentence_becomes_two_flac_files() {
        let sentence = heard_sentence("One.", [tone(0.5, 0), tone(0.5, 0)], 24_000);
        let sentence = serde_json::to_string(&sentence.expect("encodes")).expect("JSON");
        assert_eq!(sentence.matches("data:audio/flac;base64,ZkxhQ").count(), 2, "{sentence}");
    }
}
