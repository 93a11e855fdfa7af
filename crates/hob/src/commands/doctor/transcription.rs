//! Checks the transcription engine: it has to understand what the speech engine said.
//! Without sound from the speech engine there is nothing to transcribe.

use std::time::{Duration, Instant};

use hob_core::ModelLifecycle;
use tokio::time::timeout;

use super::check::{Check, too_slow};
use super::speech::SENTENCE;
use crate::app::App;
use crate::failure::CliResult;
use crate::wire_up::Transcription;

const NAME: &str = "transcription";
/// Longer than a cold disk and a slow processor take together.
const HEAR_TIME_MAX: Duration = Duration::from_secs(60);

/// Loads the model in a worker of its own and lets it hear `wav`.
pub(super) async fn engine(app: &App<'_>, wav: Option<Vec<u8>>) -> Option<Check> {
    let wav = wav?;
    let looking = app.printer.spinner("loading the transcription engine");
    let heard = match Transcription::start(app) {
        Ok(hearing) => {
            let heard = timeout(HEAR_TIME_MAX, hear(&hearing, wav)).await;
            hearing.worker.shutdown().await;
            heard.unwrap_or_else(|_| Err(too_slow("text", HEAR_TIME_MAX)))
        }
        Err(failure) => Err(failure),
    };
    looking.finish_and_clear();
    Some(match heard {
        Ok(heard) => heard.check(),
        Err(failure) => Check::failed(NAME, failure),
    })
}

struct HearingResult {
    text: String,
    load: Duration,
    took: Duration,
}

async fn hear(hearing: &Transcription, wav: Vec<u8>) -> CliResult<HearingResult> {
    let started = Instant::now();
    ModelLifecycle::load(&*hearing.worker).await?;
    let load = started.elapsed();
    let asked = Instant::now();
    let text = hearing.text_of(wav, None).await?;
    Ok(HearingResult { text, load, took: asked.elapsed() })
}

impl HearingResult {
    fn check(&self) -> Check {
        let HearingResult { text, load, took } = self;
        let (load_ms, took_ms) = (load.as_millis(), took.as_millis());
        let found = format!("loaded in {load_ms} ms, heard \"{}\" in {took_ms} ms", text.trim());
        if share_of_words(text) >= 0.5 {
            Check::ok(NAME, found)
        } else {
            let to_do =
                format!("it should be \"{SENTENCE}\"; pull the model again, or listen to hob say");
            Check::warn(NAME, found, to_do)
        }
    }
}

/// Which part of the sentence's words was heard. A name such as hob may be misheard.
fn share_of_words(heard: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        let cut = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        cut.map(str::to_lowercase).collect()
    };
    let (said, heard) = (words(SENTENCE), words(heard));
    said.iter().filter(|word| heard.contains(word)).count() as f64 / said.len() as f64
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_misheard_name_is_fine_and_another_sentence_is_not() {
        let heard = |text: &str| HearingResult {
            text: text.to_owned(),
            load: Duration::ZERO,
            took: Duration::ZERO,
        };
        assert_eq!(heard("Hello, this is Bob.").check().verdict, Verdict::Ok);
        for text in ["", "Thank you."] {
            assert_eq!(heard(text).check().verdict, Verdict::Warn, "{text}");
        }
    }
}
