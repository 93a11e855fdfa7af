//! Clips that the server's own speech model speaks first, for measuring without recordings.
//! A model may speak a sentence differently each time, so only servers that hear the same sound can be compared.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;

use super::clips::{Clip, ClipSet};
use crate::ask::ask;
use crate::runs::BenchError;
use crate::speech::chosen_voices;
use crate::target::{Target, TargetError};
use crate::wav::Wav;

/// Version of the sentences: the name of their set. A changed sentence needs a new one.
const NAME: &str = "spoken-1";
/// The name of the user's own sentences.
const OWN: &str = "spoken";
/// Voices that take turns if none is named.
const VOICES_MAX: usize = 4;
const SPEAK_WITHIN: Duration = Duration::from_secs(120);
/// Time for the speech model to load, while the server answers 503, and the pause between attempts.
const LOAD_WITHIN: Duration = Duration::from_secs(60);
const RETRY_AFTER: Duration = Duration::from_millis(500);
const MESSAGE_CHARS_MAX: usize = 200;

/// Requests and remarks of 2 to 6 s, with numbers, money, dates and times.
pub const SENTENCES: [&str; 12] = [
    "Turn on the lights in the kitchen, please.",
    "Set a timer for twenty-five minutes.",
    "What is the weather like in Lisbon on Thursday?",
    "The ticket costs $14.50, and the ferry leaves at noon.",
    "My flight lands on March 21st, 2027.",
    "Add two pounds of flour, a dozen eggs and some butter to the list.",
    "Call the dentist and ask whether Monday at 9:30 is still free.",
    "About 40% of the 1,250 visitors came by train.",
    "She doesn't know that they've already paid three hundred dollars.",
    "Play the second movement of the symphony again, but quieter.",
    "The library was built in 1905 and closed twice since then.",
    "Remind me tomorrow evening that the package must go out.",
];

/// Sentences, and who speaks them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpokenClips {
    /// Empty: [`SENTENCES`]
    pub sentences: Vec<String>,
    /// Voices that take turns. Empty: the first few that the server lists.
    pub voices: Vec<String>,
    /// None: the server's only speech model, or the transcription model's own name.
    pub model: Option<String>,
}

impl SpokenClips {
    /// Lets the server speak every sentence.
    ///
    /// # Errors
    /// The server lists no voices, or has no speech as WAV.
    pub(crate) fn speak(&self, target: &Target) -> Result<ClipSet, BenchError> {
        let voices = chosen_voices(&self.voices, target, VOICES_MAX)?;
        let model = self.model.clone().or_else(|| target.speech_model());
        let model = model.unwrap_or_else(|| target.model.clone());
        let name = if self.sentences.is_empty() { NAME } else { OWN };
        let usual = || SENTENCES.map(str::to_owned).to_vec();
        let sentences = if self.sentences.is_empty() { usual() } else { self.sentences.clone() };
        let mut clips = Vec::with_capacity(sentences.len());
        for ((number, sentence), voice) in (1..).zip(&sentences).zip(voices.iter().cycle()) {
            let wav = spoken(target, &model, voice, sentence)?;
            let clip = Clip::new(&format!("{number}"), wav, sentence, "en");
            let clip = clip.ok_or_else(|| BenchError::NotWav { model: model.clone() })?;
            clips.push(Clip { speaker: Some(voice.clone()), ..clip });
        }
        Ok(ClipSet { name: name.to_owned(), clips, snr_db: None, synthetic_by: Some(model) })
    }
}

/// A sentence as a WAV file with a length in its header.
fn spoken(target: &Target, model: &str, voice: &str, text: &str) -> Result<Bytes, BenchError> {
    let body = json!({ "model": model, "input": text, "voice": voice, "response_format": "wav" });
    let (body, key) = (body.to_string(), target.key.as_deref());
    let deadline = Instant::now() + LOAD_WITHIN;
    let asked = loop {
        let asked = ask(&target.endpoint, "/v1/audio/speech", key, Some(&body), SPEAK_WITHIN)
            .map_err(TargetError::from)?;
        // A server that has just started may still be loading the model.
        if asked.status != 503 || Instant::now() >= deadline {
            break asked;
        }
        thread::sleep(RETRY_AFTER);
    };
    if asked.status != 200 {
        let message = String::from_utf8_lossy(&asked.body);
        let message = message.trim().chars().take(MESSAGE_CHARS_MAX).collect();
        let (model, status) = (model.to_owned(), asked.status);
        return Err(BenchError::NotSpoken { model, status, message });
    }
    let wav = Wav::read(&asked.body).ok_or(BenchError::NotWav { model: model.to_owned() })?;
    Ok(wav.to_bytes())
}
