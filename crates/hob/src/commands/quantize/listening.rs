//! A page on which a person hears two models without knowing which is which. It is one file without a network.
//! Error rates do not hear how natural speech is, so a person has to listen.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_speech::encode::{AudioFormat, EncodeError, Encoder, Length};
use serde::Serialize;

const PAGE: &str = include_str!("listening.html");
/// Where the page has its data.
const DATA: &str = "/*DATA*/null";
/// Steps in which silence is found: 20 ms.
const STEP: usize = 480;
/// Quieter than the loudest step by this much: a pause, which does not count for the loudness.
const PAUSE: f32 = 1e-3;

/// What the page knows.
#[derive(Debug, Serialize)]
pub(super) struct Listening<'a> {
    pub(super) source: &'a str,
    pub(super) target: &'a str,
    pub(super) voice: &'a str,
    pub(super) sentences: Vec<HeardSentence>,
}

/// A sentence as both models say it, equally loud, as addresses of FLAC data.
#[derive(Debug, Serialize)]
pub(super) struct HeardSentence {
    text: String,
    source: String,
    target: String,
}

impl HeardSentence {
    /// # Errors
    /// A sound has values that are no numbers.
    pub(super) fn new(
        text: &str,
        [source, target]: [Vec<f32>; 2],
        rate_hz: u32,
    ) -> Result<HeardSentence, EncodeError> {
        let [source, target] = equally_loud(source, target);
        let address = |samples: &[f32]| {
            let length = Length::Samples(samples.len() as u64);
            let mut encoder = Encoder::new(AudioFormat::Flac, rate_hz, length)?;
            let mut bytes = encoder.encode(samples)?;
            bytes.extend(encoder.finish()?);
            Ok(format!("data:audio/flac;base64,{}", STANDARD.encode(bytes)))
        };
        let text = text.to_owned();
        Ok(HeardSentence { text, source: address(&source)?, target: address(&target)? })
    }
}

impl Listening<'_> {
    pub(super) fn page(&self) -> String {
        let data = serde_json::to_string(self).unwrap_or_default();
        // A text must not end the script that it stands in.
        PAGE.replacen(DATA, &data.replace("</", "<\\/"), 1)
    }
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

/// Root mean square of what is no pause.
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
    fn a_text_cannot_leave_the_script_of_the_page() {
        let text = "He said </script><script>alert(1)</script>.";
        let sentence = HeardSentence::new(text, [tone(0.5, 0), tone(0.5, 0)], 24_000);
        let sentences = vec![sentence.expect("encodes")];
        let listening = Listening { source: "kokoro", target: "small", voice: "v", sentences };
        let page = listening.page();
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(page.contains("data:audio/flac;base64,ZkxhQ"), "flac");
        assert!(!page.contains(DATA));
    }
}
