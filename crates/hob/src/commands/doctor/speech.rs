//! Checks the parts of speech: phonemes, encoders, and the engine in a worker.
//! Each part has to do its work once.

use std::collections::BTreeMap;
use std::f32::consts::TAU;
use std::time::{Duration, Instant};

use futures::StreamExt;
use hob_core::{Language, SpeechEvent, SpeechModel, SpeechRequest, SpeechText};
use hob_engines::speech::kokoro::SAMPLE_RATE_HZ;
use hob_speech::encode::{AudioFormat, EncodeError, encode_whole};
use hob_speech::{Phonemizer, PhonemizerOptions, Reader};
use tokio::time::timeout;

use super::check::{Check, too_slow};
use crate::app::App;
use crate::failure::CliResult;
use crate::wire_up::{Speech, meant_voice};

pub(super) const SENTENCE: &str = "Hello, this is hob.";
/// Longer than a cold disk and a slow processor take together.
const SPEAK_TIME_MAX: Duration = Duration::from_secs(60);

pub(super) fn phonemizer(app: &App<'_>) -> Check {
    let started = Instant::now();
    let options = PhonemizerOptions { espeak: app.espeak(), ..PhonemizerOptions::default() };
    let mut phonemizer = Phonemizer::new(options);
    let mut reader = Reader::new(Language::AmericanEnglish);
    reader.push(SENTENCE);
    reader.finish();
    match reader.next_unit(&mut phonemizer) {
        Some(unit) => {
            let took_ms = started.elapsed().as_millis();
            Check::ok("phonemizer", format!("\"{}\", after {took_ms} ms", unit.phonemes))
        }
        None => Check::fail("phonemizer", "it made no phonemes of a sentence", REPORT),
    }
}

const REPORT: &str = "this is a bug in hob; please report it with this output";

/// One second of a tone through each encoder.
pub(super) fn encoders() -> Vec<Check> {
    AudioFormat::ALL.into_iter().map(encoder).collect()
}

fn encoder(format: AudioFormat) -> Check {
    let tone = |sample: u32| 0.5 * (TAU * 440.0 * sample as f32 / SAMPLE_RATE_HZ as f32).sin();
    let samples: Vec<f32> = (0..SAMPLE_RATE_HZ).map(tone).collect();
    let started = Instant::now();
    match encode_whole(format, SAMPLE_RATE_HZ, &samples) {
        Ok(bytes) => {
            let (bytes, took_ms) = (bytes.len(), started.elapsed().as_secs_f64() * 1000.0);
            Check::ok(format, format!("a second of sound is {bytes} bytes, in {took_ms:.1} ms"))
        }
        Err(error @ EncodeError::NotBuilt { .. }) => {
            Check::warn(format, &error, "choose another format, or build hob with this one")
        }
        Err(error) => Check::fail(format, &error, REPORT),
    }
}

/// Loads the model in a worker of its own and lets it speak. Returns the sound as a WAV file, too.
/// `missing` has the languages that cannot be spoken now.
pub(super) async fn engine(
    app: &App<'_>,
    missing: BTreeMap<Language, String>,
) -> (Check, Option<Vec<u8>>) {
    let looking = app.printer.spinner("loading the speech engine");
    let spoken = match Speech::start_without(missing, app) {
        Ok(speech) => {
            let spoken = timeout(SPEAK_TIME_MAX, speak(app, &speech)).await;
            speech.worker.shutdown().await;
            spoken.unwrap_or_else(|_| Err(too_slow("speech", SPEAK_TIME_MAX)))
        }
        Err(failure) => Err(failure),
    };
    looking.finish_and_clear();
    match spoken {
        Ok(spoken) => (spoken.check(), Some(spoken.wav)),
        Err(failure) => (Check::failed("engine", failure), None),
    }
}

struct SpeechResult {
    load: Duration,
    first_audio: Duration,
    took: Duration,
    sound_s: f64,
    wav: Vec<u8>,
}

async fn speak(app: &App<'_>, speech: &Speech) -> CliResult<SpeechResult> {
    let started = Instant::now();
    speech.worker.load().await?;
    let load = started.elapsed();
    let settings = &app.settings;
    let voice = meant_voice(settings, speech.worker.voices(), &settings.speech.default_voice)?;
    let request = SpeechRequest::new(SpeechText::Whole(SENTENCE.to_owned()), voice);
    let asked = Instant::now();
    let mut stream = speech.worker.speak(request).await?;
    let rate_hz = stream.sample_rate_hz;
    let mut first_audio = None;
    let mut samples = Vec::new();
    while let Some(event) = stream.next().await {
        if let SpeechEvent::Audio(new) = event? {
            first_audio.get_or_insert_with(|| asked.elapsed());
            samples.extend(new);
        }
    }
    let took = asked.elapsed();
    let first_audio = first_audio.unwrap_or(took);
    let wav = encode_whole(AudioFormat::Wav, rate_hz, &samples)?;
    let sound_s = samples.len() as f64 / f64::from(rate_hz);
    Ok(SpeechResult { load, first_audio, took, sound_s, wav })
}

impl SpeechResult {
    fn check(&self) -> Check {
        if self.sound_s == 0.0 {
            return Check::fail("engine", "it made no sound", REPORT);
        }
        let rtf = self.took.as_secs_f64() / self.sound_s;
        let found = format!(
            "loaded in {} ms, first sound after {} ms, {:.1} s of sound at RTF {rtf:.2}",
            self.load.as_millis(),
            self.first_audio.as_millis(),
            self.sound_s
        );
        if rtf < 1.0 {
            Check::ok("engine", found)
        } else {
            Check::warn("engine", found, "slower than real time; close other programs")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn every_encoder_works_or_says_that_it_was_not_built() {
        for check in encoders() {
            assert_ne!(check.verdict, Verdict::Fail, "{check}");
        }
    }

    #[test]
    fn an_engine_slower_than_it_plays_is_doubtful_and_a_silent_one_fails() {
        let second = Duration::from_secs(1);
        let spoken = |sound_s| SpeechResult {
            load: second,
            first_audio: second,
            took: second,
            sound_s,
            wav: Vec::new(),
        };
        assert_eq!(spoken(2.0).check().verdict, Verdict::Ok);
        assert_eq!(spoken(0.5).check().verdict, Verdict::Warn);
        assert_eq!(spoken(0.0).check().verdict, Verdict::Fail);
    }
}
