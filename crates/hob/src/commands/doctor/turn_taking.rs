//! Checks the models of turn taking: one has to hear speech, the other to judge a sentence.
//! They hear what the speech engine has just said, or silence if it said nothing.

use std::time::{Duration, Instant};

use hob_core::{ModelError, TurnTaking, VOICE_FRAME_SAMPLES};
use hob_models::TURN_TAKING_NAME;
use hob_speech::decode::decode_all;

use super::Check;
use crate::app::App;
use crate::wire_up::StoredTurnTaking;

const NAME: &str = "turn-taking";
const SENTENCE_S_MAX: f64 = 60.0;
/// Silence that is judged without a sentence: a second at 16 kHz.
const SILENCE: usize = 16_000;
const SPEECH_MIN: f32 = 0.5;

/// Loads both models and lets them hear `wav`.
pub(super) async fn engine(app: &App<'_>, wav: Option<&[u8]>) -> Check {
    let sentence = wav.and_then(|wav| decode_all(wav.to_vec().into(), SENTENCE_S_MAX).ok());
    match hear(&StoredTurnTaking::new(app), sentence).await {
        Ok(heard) => heard.check(),
        Err(error) => Check::fail(NAME, error, format_args!("run `hob pull {TURN_TAKING_NAME}`")),
    }
}

/// What the models heard.
struct Heard {
    load: Duration,
    judged: Duration,
    complete: f32,
    /// The likeliest frame of the sentence; `None` without a sentence.
    speech: Option<f32>,
}

async fn hear(models: &dyn TurnTaking, sentence: Option<Vec<f32>>) -> Result<Heard, ModelError> {
    let started = Instant::now();
    let (mut voice, turn) = (models.voice_detector().await?, models.turn_model().await?);
    let load = started.elapsed();
    let speech = sentence.as_ref().map(|sound| {
        let frames = sound.chunks_exact(VOICE_FRAME_SAMPLES);
        frames.map(|frame| voice.probability(frame)).fold(0.0, f32::max)
    });
    let asked = Instant::now();
    let complete = turn.probability(sentence.unwrap_or_else(|| vec![0.0; SILENCE])).await?;
    Ok(Heard { load, judged: asked.elapsed(), complete, speech })
}

impl Heard {
    fn check(&self) -> Check {
        let (load_ms, judged_ms) = (self.load.as_millis(), self.judged.as_millis());
        let times = format!("loaded in {load_ms} ms, judged in {judged_ms} ms");
        let Some(speech) = self.speech else { return Check::ok(NAME, times) };
        let complete = self.complete;
        let found = format!("{times}; heard speech ({speech:.2}) and its end ({complete:.2})");
        match speech > SPEECH_MIN {
            true => Check::ok(NAME, found),
            false => Check::warn(NAME, found, "pull the model again, or listen to `hob say`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_sentence_that_is_not_heard_is_doubtful() {
        let heard =
            |speech| Heard { load: Duration::ZERO, judged: Duration::ZERO, complete: 0.9, speech };
        let rows = [(None, Verdict::Ok), (Some(0.99), Verdict::Ok), (Some(0.1), Verdict::Warn)];
        for (speech, expected) in rows {
            assert_eq!(heard(speech).check().verdict, expected, "{speech:?}");
        }
    }
}
