//! The given times of words against the sound itself, with the real model that `make test` fetches.
//! Pauses separate the phrases, so that the beginning and the end of each can be heard in the samples. Two tests call this
//! with the servers that they have started for other checks of the voices.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::real_server::Served;

const RATE_HZ: f64 = 24_000.0;

/// The given start of a phrase differs from its sound by at most this, and so do most ends.
const APART_S_MAX: f64 = 0.05;

/// Quiet last sounds fade slowly, so some ends are given late: at most by this, and at most so many of the 24 ends in
/// English, and of the 21 in other languages.
const END_APART_S_MAX: f64 = 0.1;
const LATE_ENDS_MAX: usize = 5;

/// Voices and speeds.
const SPOKEN: [(&str, f64); 6] = [
    ("af_heart", 0.9),
    ("af_heart", 1.0),
    ("bm_fable", 1.0),
    ("bm_fable", 2.0),
    ("am_adam", 1.0),
    ("bf_emma", 1.5),
];

/// Samples whose loudness is measured together: 5 ms.
const STEP: usize = 120;

/// Silence within a phrase is shorter than this, and the shortest pause at double speed is longer.
const PAUSE_S_MIN: f64 = 0.15;

const PHRASES: [&str; 4] =
    ["Good morning.", "My name is Laura", "We are leaving in an hour", "$5 is enough for me."];

/// Beginning and end of something, in seconds.
type Span = (f64, f64);

/// Whether the sound is louder than -50 dBFS.
fn is_loud(samples: &[i16]) -> bool {
    let squares = samples.iter().map(|sample| (f32::from(*sample) / 32_768.0).powi(2));
    let energy: f32 = squares.sum();
    (energy / samples.len() as f32).sqrt() > 10_f32.powf(-50.0 / 20.0)
}

/// Where something is heard. Silences shorter than [`PAUSE_S_MIN`] do not divide it.
fn heard(samples: &[i16]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (at, _) in samples.chunks(STEP).enumerate().filter(|(_, step)| is_loud(step)) {
        let start_s = (at * STEP) as f64 / RATE_HZ;
        let end_s = start_s + STEP as f64 / RATE_HZ;
        match spans.last_mut() {
            Some(last) if start_s - last.1 < PAUSE_S_MIN => last.1 = end_s,
            _ => spans.push((start_s, end_s)),
        }
    }
    spans
}

/// The given times of each phrase: those of its first and of its last word.
fn given(phrases: &[&str], text: &str, words: &[Value]) -> Vec<Span> {
    let number = |word: &Value, name: &str| word[name].as_f64().expect("a number");
    let phrase_span = |phrase: &&str| {
        let start = text.find(*phrase).expect("a phrase of the text");
        let inside = words.iter().filter(|word| {
            (start..start + phrase.len()).contains(&(number(word, "start_byte") as usize))
        });
        let times: Vec<Span> =
            inside.map(|word| (number(word, "start_time"), number(word, "end_time"))).collect();
        assert!(times.is_sorted() && times.iter().all(|(start, end)| start < end), "{times:?}");
        (times[0].0, times[times.len() - 1].1)
    };
    phrases.iter().map(phrase_span).collect()
}

fn speak(served: &Served, text: &str, voice: &str, speed: f64) -> (Vec<i16>, Vec<Value>) {
    let body = json!({
        "input": text, "voice": voice, "speed": speed, "response_format": "pcm", "stream": false,
        "return_phonemes": true,
    });
    let url = format!("{}dev/captioned_speech", served.url);
    let mut answer = ureq::post(url).send_json(body).expect("an answer");
    let answer: Value = answer.body_mut().read_json().expect("JSON");
    let bytes = STANDARD.decode(answer["audio"].as_str().expect("sound")).expect("base64");
    let samples = bytes.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    (samples, answer["timestamps"].as_array().expect("words").clone())
}

/// The phonemes of a word follow each other from its beginning to its end.
fn check_phonemes(word: &Value) {
    let phonemes = word["phonemes"].as_array().expect("phonemes");
    let times = |name: &str| -> Vec<f64> {
        phonemes.iter().map(|phoneme| phoneme[name].as_f64().expect("a number")).collect()
    };
    let (starts, ends) = (times("start_time"), times("end_time"));
    assert!(starts.is_sorted() && ends.is_sorted(), "{word}");
    assert_eq!(starts.first().copied(), word["start_time"].as_f64(), "{word}");
    assert_eq!(ends.last().copied(), word["end_time"].as_f64(), "{word}");
}

/// How far the given times are from the sound, of all phrases so far.
#[derive(Default)]
pub(crate) struct TimingErrors {
    /// A line for each phrase with a wrong time.
    wrong: String,
    late_ends: usize,
}

impl TimingErrors {
    /// Speaks the phrases with pauses between them, and returns the samples.
    pub(crate) fn add(
        &mut self,
        served: &Served,
        (voice, speed): (&str, f64),
        phrases: &[&str],
    ) -> Vec<i16> {
        let text = phrases.join(" [pause:600ms] ");
        let (samples, words) = speak(served, &text, voice, speed);
        words.iter().for_each(check_phonemes);
        let (given, heard) = (given(phrases, &text, &words), heard(&samples));
        assert_eq!(given.len(), heard.len(), "{voice} at {speed}: {heard:?}");
        for (given, heard) in given.iter().zip(&heard) {
            let start_apart_s = (given.0 - heard.0).abs();
            let end_apart_s = (given.1 - heard.1).abs();
            self.late_ends += usize::from(end_apart_s > APART_S_MAX);
            if start_apart_s > APART_S_MAX || end_apart_s > END_APART_S_MAX {
                self.wrong += &format!("\n{voice} at {speed}: given {given:?}, heard {heard:?}");
            }
        }
        samples
    }

    pub(crate) fn check(&self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong);
        assert!(self.late_ends <= LATE_ENDS_MAX, "{} ends", self.late_ends);
    }
}

pub(crate) fn words_are_heard_when_their_times_say(served: &Served) {
    let mut errors = TimingErrors::default();
    for spoken in SPOKEN {
        errors.add(served, spoken, &PHRASES);
    }
    errors.check();
}
