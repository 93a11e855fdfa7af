//! The worker that speaks sentences with one speech model. It reports durations, pitch and sound, and time and memory.
//! Two models that spoke the same sentences can then be compared.

use std::path::Path;
use std::time::{Duration, Instant};

use hob_bench::process::ProcessUsage;
use hob_core::voice_blend::speaker;
use hob_engines::speech::kokoro::{Kokoro, KokoroOptions, voice_list};
use hob_speech::{Phonemizer, PhonemizerOptions, Reader};

use super::quantize::{QuantizeStep, finish, run_quantize_worker, say};
use super::spoken_sentence::{SpeechCost, SpokenSentence};
use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::settings::speech_threads;
use crate::worker_args::SpeechStudyArgs;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpeechStudy {
    pub(crate) sentences: Vec<SpokenSentence>,
    pub(crate) cost: SpeechCost,
}

/// Has a model speak the sentences in a worker.
///
/// # Errors
/// The worker does not start, fails, or dies.
pub(crate) async fn run_speech_study(
    app: &App<'_>,
    (model, voice): (&Path, &str),
    sentences: &[String],
    mut progress: impl FnMut(usize),
) -> CliResult<SpeechStudy> {
    let threads = app.settings.speech.threads.requested().to_string();
    let mut words = vec!["speech-study".into(), "--model".into(), model.as_os_str().to_owned()];
    words.extend(["--voice".into(), voice.into(), "--threads".into(), threads.into()]);
    for sentence in sentences {
        // One word, because a sentence may begin with a dash.
        words.push(format!("--sentence={sentence}").into());
    }
    if let Some(program) = app.espeak() {
        words.extend(["--espeak".into(), program.into_os_string()]);
    }
    let (mut spoken, mut found) = (Vec::new(), None);
    run_quantize_worker(words, |step| match step {
        QuantizeStep::Spoken(sentence) => {
            spoken.push(*sentence);
            progress(spoken.len());
        }
        QuantizeStep::SpeechCost(cost) => found = Some(cost),
        _ => {}
    })
    .await?;
    match found {
        Some(cost) if spoken.len() == sentences.len() => {
            Ok(SpeechStudy { sentences: spoken, cost })
        }
        _ => Err(Failure::engine("the worker did not speak all sentences")),
    }
}

/// Entry point of `hob worker speech-study`.
pub(crate) fn work_speech_study(args: &SpeechStudyArgs) -> CliResult<()> {
    finish(studied(args))
}

fn studied(args: &SpeechStudyArgs) -> Result<(), String> {
    let started = Instant::now();
    let options = KokoroOptions { threads: speech_threads(args.threads) };
    let mut kokoro = Kokoro::load(&args.model, options).map_err(|error| error.to_string())?;
    let load = started.elapsed();
    let voices = voice_list(&args.model).map_err(|error| error.to_string())?;
    let voice = speaker(&voices, &args.voice).map_err(|error| error.to_string())?;
    let mut phonemizer = Phonemizer::new(PhonemizerOptions {
        espeak: args.espeak.clone(),
        ..PhonemizerOptions::default()
    });
    let mut first_sounds = Vec::new();
    for (at, sentence) in args.sentences.iter().enumerate() {
        let mut reader = Reader::new(voice.language);
        reader.push(sentence);
        reader.finish();
        let mut spoken = SpokenSentence { units: Vec::new(), pauses_ms: Vec::new() };
        while let Some(unit) = reader.next_unit(&mut phonemizer) {
            let sound = |kokoro: &mut Kokoro| kokoro.sound(&unit, &args.voice);
            let (sound, first) = match at {
                // The first sentence also loads pages and builds tables, so it is spoken twice, and the second time counts.
                0 => sound(&mut kokoro).and_then(|_| sound(&mut kokoro)),
                _ => sound(&mut kokoro),
            }
            .map_err(|error| error.to_string())?;
            if spoken.units.is_empty() {
                first_sounds.push(first);
            }
            spoken.units.push(sound);
            spoken.pauses_ms.push(unit.pause_after_ms);
        }
        if spoken.units.is_empty() {
            return Err(format!("there is nothing to speak in \"{sentence}\""));
        }
        say(&QuantizeStep::Spoken(Box::new(spoken)));
    }
    hob_engines::memory::give_back();
    let memory_bytes = ProcessUsage::read(std::process::id()).ok().map(|usage| usage.rss_bytes);
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    first_sounds.sort();
    let median = first_sounds.get(first_sounds.len() / 2).copied().unwrap_or_default();
    let cost = SpeechCost { load_ms: ms(load), first_sound_ms: ms(median), memory_bytes };
    say(&QuantizeStep::SpeechCost(cost));
    Ok(())
}
