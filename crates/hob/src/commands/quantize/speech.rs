//! Quantizes the stored speech model, or restores its floats. Stores the result under a new name, reports how far it is from
//! the source, and writes a page on which a person compares both. A model that does not speak any more is not stored.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_bench::listening::ListeningPage;
use hob_bench::transcription::{SENTENCES, WordErrors, normalised_words};
use hob_core::voice_blend::spoken_language;
use hob_engines::speech::distance::SpeechDistance;
use hob_engines::speech::kokoro::{SAMPLE_RATE_HZ, voice_list};
use hob_eval::report::Estimate;
use hob_models::quantized_speech::{
    QuantizeSpeechError, QuantizedSpeech, SpeechForm, SpeechSizes, graph_bytes, speech_sizes,
};
use hob_models::{SpeechWeights, StoredModel, TransformError, Watch};
use hob_speech::encode::{AudioFormat, encode_whole};
use serde::Serialize;
use tempfile::TempPath;

use super::expected::speech_prediction;
use super::listening::heard_sentence;
use super::{MB, QuantizeArgs};
use crate::app::{App, block_on, run_until_stopped};
use crate::arguments;
use crate::failure::{CliResult, Exit, Failure};
use crate::model_store::ModelStore;
use crate::printer::table;
use crate::signals::{StopSignals, interrupted};
use crate::sink::draft_of;
use crate::wire_up::{
    SpeechCost, SpeechStudy, Transcription, meant_voice, missing_parts, run_speech_study,
};

/// Maximum sentences of the file of `--sentences`.
const SENTENCES_MAX: usize = 200;
/// Longer or shorter than the source by this factor: no speech any more.
const LENGTH_RATIO_MAX: f64 = 2.0;
/// Quieter than the source by this factor: no speech any more.
const LEVEL_RATIO_MIN: f32 = 0.05;
/// Share of wrong words above which a model counts as not understood, if the source has less than half of it.
const WORD_ERRORS_MAX: f64 = 0.5;
/// Seed of the resampling that gives the intervals.
const SEED: u64 = 1;

/// The report of a quantized speech model, also as JSON.
#[derive(Debug, Serialize)]
pub(super) struct SpeechReport {
    source: String,
    target: String,
    /// 32: floats.
    bits: u8,
    source_bytes: u64,
    target_bytes: u64,
    /// Error of the weights, as a share of their spread.
    front_error: f64,
    vocoder_error: f64,
    voice: String,
    distance: DistanceFigures,
    source_cost: SpeechCost,
    target_cost: SpeechCost,
    /// Share of words that hob's transcriber hears wrong. `None` without a transcription model.
    source_word_errors: Option<Estimate>,
    target_word_errors: Option<Estimate>,
    page: PathBuf,
    sentences: Vec<SentenceFigures>,
}

/// Means over the sentences, with their 95 % intervals.
#[derive(Clone, Copy, Debug, Serialize)]
struct DistanceFigures {
    log_mel_db: Option<Estimate>,
    pitch_cents: Option<Estimate>,
    voicing_error: Option<Estimate>,
    duration_ms: Option<Estimate>,
    length_ratio: Option<Estimate>,
}

#[derive(Clone, Debug, Serialize)]
struct SentenceFigures {
    text: String,
    distance: SpeechDistance,
    source_heard: Option<String>,
    target_heard: Option<String>,
}

/// `hob quantize` of a stored speech model.
pub(super) fn quantized(
    args: &QuantizeArgs,
    source: &StoredModel,
    store: &ModelStore,
    app: &App<'_>,
) -> CliResult<Exit> {
    let form = args.to.as_deref().unwrap_or_default();
    let form = SpeechForm::by_name(form).ok_or_else(|| {
        let known: Vec<String> = SpeechForm::all().map(|known| known.to_string()).collect();
        Failure::usage(format!("a speech model has no type '{form}'"))
            .hint(format!("there are {}", known.join(", ")))
    })?;
    if args.out.is_some() || args.is_about_chat() {
        return Err(Failure::usage(
            "--out, --importance, --no-importance, --text, --pieces, --eval-items, --eval-tasks, --no-report, --machine \
             and --pool are for chat models",
        )
        .hint("--as names a quantized speech model"));
    }
    let name = args.name.clone();
    let name = name.unwrap_or_else(|| match form {
        SpeechForm::Packed(bits) => format!("{}-{}bit", source.name(), bits.bits()),
        SpeechForm::Float => format!("{}-float", source.name()),
    });
    if store.catalog_purpose(&name).is_some() {
        return Err(Failure::usage(format!("'{name}' is the name of another model"))
            .hint("choose another name with --as"));
    }
    if store.stored_names().contains(&name) {
        return Err(Failure::usage(format!("a model '{name}' is stored already"))
            .hint(format!("choose another name with --as, or run `hob models rm {name}`")));
    }
    let page = page_of(args, &name);
    if page.exists() {
        return Err(Failure::usage(format!("{} exists already", page.display()))
            .hint("choose another file for the page with --page, or remove it"));
    }
    let voice = args.voice.as_deref().unwrap_or(&app.settings.speech.default_voice);
    let voices = voice_list(&source.folder).map_err(Failure::model_missing)?;
    let voice = &meant_voice(&app.settings, &voices, voice)?;
    spoken_language(&voices, &missing_parts(app), voice)?;
    let sizes = speech_sizes(&source.folder, form).map_err(Failure::model_missing)?;
    refuse_second_time(args, source, form, sizes)?;
    let printer = app.printer;
    let available_bytes = args.machine.known(app)?.machine.memory.available_bytes;
    let expected = speech_prediction(source.name(), form, sizes, available_bytes);
    expected.iter().for_each(|line| printer.note(line));
    if form.bits() < 4 {
        printer.note(
            "below 4 bits a voice often sounds odd although every word is understood: listen",
        );
    }
    if args.dry_run {
        let plan = serde_json::json!({
            "source": source.name(), "target": name, "bits": form.bits(),
            "source_bytes": sizes.now_bytes, "expected_bytes": sizes.then_bytes,
        });
        return printer.report(args.json, &plan, || format!("would store the model {name}"));
    }
    // A page that cannot be written must be found now, and not after minutes.
    drop(draft_of(&page).map_err(|error| page_failure(&error))?);
    let texts = sentences(args)?;
    let report =
        convert_and_report(args, (source, &name, (form, sizes)), (store, app), (voice, &texts))?;
    printer.report(args.json, &report, || report_text(&report))
}

/// The page for listening.
fn page_of(args: &QuantizeArgs, name: &str) -> PathBuf {
    args.page.clone().unwrap_or_else(|| PathBuf::from(format!("{name}-listen.html")))
}

/// # Errors
/// The weights have lost precision already, or are floats already.
fn refuse_second_time(
    args: &QuantizeArgs,
    source: &StoredModel,
    form: SpeechForm,
    sizes: SpeechSizes,
) -> CliResult<()> {
    let name = source.name();
    match (form, source.speech_weights()) {
        (SpeechForm::Packed(_), Some(SpeechWeights::Packed)) if !args.force => {
            let sentence = format!("{name} is quantized already; a second loss adds up");
            Err(Failure::usage(sentence).hint("quantize kokoro instead, or add --force"))
        }
        (SpeechForm::Float, Some(SpeechWeights::Published)) if sizes.integer_bytes == 0 => {
            let sentence = format!("the weights of {name} are floats already");
            Err(Failure::usage(sentence).hint("--to 8-bit, 6-bit, 4-bit or 3-bit packs them"))
        }
        _ => Ok(()),
    }
}

/// Converts, tries, stores and reports. Stopped at any moment, it leaves nothing that looks like a model.
fn convert_and_report(
    args: &QuantizeArgs,
    (source, name, (form, sizes)): (&StoredModel, &str, (SpeechForm, SpeechSizes)),
    (store, app): (&ModelStore, &App<'_>),
    (voice, texts): (&str, &[String]),
) -> CliResult<SpeechReport> {
    let converting = app.printer.spinner("converting the weights");
    let copy = {
        let (store, source, name) = (store.store().clone(), source.clone(), name.to_owned());
        stopped_by_flag(move |watch| {
            QuantizedSpeech::write(&store, &source, (&name, form, sizes), watch)
        })?
    };
    converting.finish_and_clear();
    let Tried { studies: [before, after], figures, word_errors } =
        run_until_stopped(tried(app, [&source.folder, copy.folder()], (voice, texts)))?;
    let page = page_of(args, name);
    let draft = page_draft(&page, (source.name(), name, voice), texts, [&before, &after])?;
    let (front_error, vocoder_error) = (copy.front_error, copy.vocoder_error);
    let target_bytes = graph_bytes(copy.folder());
    stopped_by_flag(move |watch| Ok(copy.place(watch)?))?;
    draft.persist(&page).map_err(|error| page_failure(&error.error))?;
    let mean = |of: fn(&SpeechDistance) -> Option<f64>| {
        let values: Vec<f64> = figures.iter().filter_map(|one| of(&one.distance)).collect();
        Estimate::of_mean(&values, SEED)
    };
    let distance = DistanceFigures {
        log_mel_db: mean(|distance| Some(distance.log_mel_db.into())),
        pitch_cents: mean(|distance| distance.pitch_cents),
        voicing_error: mean(|distance| Some(distance.voicing_error)),
        duration_ms: mean(|distance| Some(distance.duration_ms)),
        length_ratio: mean(|distance| Some(distance.length_ratio)),
    };
    let [source_word_errors, target_word_errors] = word_errors;
    Ok(SpeechReport {
        source: source.name().to_owned(),
        target: name.to_owned(),
        bits: form.bits(),
        source_bytes: graph_bytes(&source.folder),
        target_bytes,
        front_error,
        vocoder_error,
        voice: voice.to_owned(),
        distance,
        source_cost: before.cost,
        target_cost: after.cost,
        source_word_errors,
        target_word_errors,
        page,
        sentences: figures,
    })
}

/// Does work on files on a thread of its own. Ctrl-C stops it at its next check; what it wrote is removed before hob
/// ends.
fn stopped_by_flag<T: Send + 'static>(
    work: impl FnOnce(&mut Watch<'_>) -> Result<T, QuantizeSpeechError> + Send + 'static,
) -> CliResult<T> {
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        let mut work = tokio::task::spawn_blocking(move || {
            let mut ignore = |_| {};
            work(&mut Watch::new(&mut ignore, &flag))
        });
        let done = tokio::select! {
            done = &mut work => done,
            () = signals.next() => {
                cancel.store(true, Ordering::Relaxed);
                drop(work.await);
                return Err(interrupted());
            }
        };
        Ok(done.map_err(Failure::internal)??)
    })
}

/// What both models said, and what was heard.
struct Tried {
    studies: [SpeechStudy; 2],
    figures: Vec<SentenceFigures>,
    word_errors: [Option<Estimate>; 2],
}

/// # Errors
/// A model does not speak, or a worker fails.
async fn tried(
    app: &App<'_>,
    [source, copy]: [&Path; 2],
    (voice, texts): (&str, &[String]),
) -> CliResult<Tried> {
    let bar = app.printer.bar(2 * texts.len() as u64, super::BAR);
    bar.set_message("speaking");
    let step = |_| bar.inc(1);
    let before = run_speech_study(app, (source, voice), texts, step).await?;
    let after = run_speech_study(app, (copy, voice), texts, step).await?;
    bar.finish_and_clear();
    let heard = match hear(app, [&before, &after], voice).await {
        Ok(heard) => Some(heard),
        Err(failure) if failure.exit == Exit::ModelMissing => {
            app.printer.note("no transcription model is stored, so no word errors are counted");
            None
        }
        Err(failure) => return Err(failure),
    };
    let figures = figures(texts, [&before, &after], heard)?;
    let language = language_of(voice);
    let word_errors = [false, true].map(|after| word_errors(&figures, &language, after));
    refuse_garbage([&before, &after], word_errors)?;
    Ok(Tried { studies: [before, after], figures, word_errors })
}

/// The lines of the user's file, or hob's own sentences.
fn sentences(args: &QuantizeArgs) -> CliResult<Vec<String>> {
    match &args.sentences {
        Some(file) => arguments::sentences(file, SENTENCES_MAX),
        None => Ok(SENTENCES.map(str::to_owned).to_vec()),
    }
}

/// What hob's transcription model hears, sentence by sentence: of the source, and of the quantized model.
type Heard = Vec<[String; 2]>;

async fn hear(app: &App<'_>, studies: [&SpeechStudy; 2], voice: &str) -> CliResult<Heard> {
    let hearing = Transcription::start(app)?;
    let heard = match app.load(&hearing.name, &*hearing.worker).await {
        Ok(()) => hear_all(app, &hearing, studies, voice).await,
        Err(failure) => Err(failure),
    };
    hearing.worker.shutdown().await;
    heard
}

async fn hear_all(
    app: &App<'_>,
    hearing: &Transcription,
    [before, after]: [&SpeechStudy; 2],
    voice: &str,
) -> CliResult<Heard> {
    let bar = app.printer.bar(before.sentences.len() as u64, super::BAR);
    bar.set_message("listening");
    let language = language_of(voice);
    let mut heard = Vec::new();
    for (one, other) in before.sentences.iter().zip(&after.sentences) {
        let mut pair = [String::new(), String::new()];
        for (text, sentence) in pair.iter_mut().zip([one, other]) {
            let samples = sentence.audible_samples();
            let wav = encode_whole(AudioFormat::Wav, SAMPLE_RATE_HZ, &samples)?;
            *text = hearing.text_of(wav, Some(language.clone())).await?;
        }
        heard.push(pair);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(heard)
}

/// The ISO 639-1 code of a voice's language, which its first letter tells.
fn language_of(voice: &str) -> String {
    let letter = voice.chars().next().and_then(hob_core::Language::from_voice_letter);
    letter.unwrap_or(hob_core::Language::AmericanEnglish).tag()[..2].to_owned()
}

/// # Errors
/// The two models made different tokens of a sentence.
fn figures(
    texts: &[String],
    [before, after]: [&SpeechStudy; 2],
    heard: Option<Heard>,
) -> CliResult<Vec<SentenceFigures>> {
    let pairs = before.sentences.iter().zip(&after.sentences);
    let mut figures = Vec::new();
    for (at, (text, (one, other))) in texts.iter().zip(pairs).enumerate() {
        let distance = SpeechDistance::of_units(&one.units, &other.units)
            .ok_or_else(|| Failure::engine(format!("the models read \"{text}\" differently")))?;
        let heard = |which: usize| Some(heard.as_ref()?.get(at)?[which].trim().to_owned());
        let (source_heard, target_heard) = (heard(0), heard(1));
        figures.push(SentenceFigures { text: text.clone(), distance, source_heard, target_heard });
    }
    Ok(figures)
}

/// The share of wrong words, with an interval over the sentences.
fn word_errors(figures: &[SentenceFigures], language: &str, is_target: bool) -> Option<Estimate> {
    let mut counts = Vec::new();
    for sentence in figures {
        let heard = if is_target { &sentence.target_heard } else { &sentence.source_heard };
        let [reference, heard] =
            [&sentence.text, heard.as_ref()?].map(|t| normalised_words(t, language));
        let errors = WordErrors::between(&reference, &heard)?;
        counts.push((errors.count() as f64, errors.words as f64));
    }
    Estimate::of_quotient(&counts, SEED).map(|share| share.within(0.0, f64::MAX))
}

/// # Errors
/// The quantized model does not speak: its sound is broken, silent, far too long or short, or not understood.
fn refuse_garbage(
    [before, after]: [&SpeechStudy; 2],
    [source_errors, target_errors]: [Option<Estimate>; 2],
) -> CliResult<()> {
    let level = |samples: &[f32]| {
        (samples.iter().map(|x| x * x).sum::<f32>() / samples.len().max(1) as f32).sqrt()
    };
    let garbage = |reason: String| {
        Err(Failure::engine(format!("the quantized model does not speak: {reason}"))
            .hint("nothing was stored; take more bits"))
    };
    for (at, (one, other)) in before.sentences.iter().zip(&after.sentences).enumerate() {
        let (one, other, sentence) = (one.audible_samples(), other.audible_samples(), at + 1);
        let ratio = other.len() as f64 / one.len().max(1) as f64;
        if other.iter().any(|sample| !sample.is_finite()) {
            return garbage(format!("the sound of sentence {sentence} is broken"));
        }
        if level(&other) < LEVEL_RATIO_MIN * level(&one) {
            return garbage(format!("sentence {sentence} is silent"));
        }
        if !(1.0 / LENGTH_RATIO_MAX..=LENGTH_RATIO_MAX).contains(&ratio) {
            return garbage(format!("sentence {sentence} is {ratio:.1} times as long"));
        }
    }
    match source_errors.zip(target_errors) {
        Some((source, target))
            if target.value > WORD_ERRORS_MAX && source.value < WORD_ERRORS_MAX / 2.0 =>
        {
            let (wrong, before) = (target.value * 100.0, source.value * 100.0);
            garbage(format!(
                "{wrong:.0} % of its words are not understood, and {before:.0} % of the source's"
            ))
        }
        _ => Ok(()),
    }
}

/// The page under a hidden name. Dropping it removes it.
fn page_draft(
    page: &Path,
    (source, target, voice): (&str, &str, &str),
    texts: &[String],
    [before, after]: [&SpeechStudy; 2],
) -> CliResult<TempPath> {
    let pairs = before.sentences.iter().zip(&after.sentences);
    let sentences = texts.iter().zip(pairs).map(|(text, (one, other))| {
        heard_sentence(text, [one.audible_samples(), other.audible_samples()], SAMPLE_RATE_HZ)
    });
    let sentences = sentences.collect::<Result<_, _>>()?;
    let html = ListeningPage { source, target, voice, sentences }.html();
    let mut draft = draft_of(page).map_err(|error| page_failure(&error))?;
    draft.write_all(html.as_bytes()).map_err(|error| page_failure(&error))?;
    Ok(draft.into_temp_path())
}

fn page_failure(error: &std::io::Error) -> Failure {
    Failure::io("cannot write the page for listening", error)
}

fn report_text(report: &SpeechReport) -> String {
    let SpeechReport { source_bytes, target_bytes, distance, source_cost, target_cost, .. } =
        report;
    let mut table = table(["", &report.source, &report.target]);
    let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / MB);
    let memory = |cost: &SpeechCost| cost.memory_bytes.map_or("–".to_owned(), megabytes);
    let errors =
        |errors: Option<Estimate>| errors.map_or("–".to_owned(), |errors| percent(&errors));
    let rows = [
        ("weights on the disk", megabytes(*source_bytes), megabytes(*target_bytes)),
        ("memory", memory(source_cost), memory(target_cost)),
        ("load", ms(source_cost.load_ms), ms(target_cost.load_ms)),
        ("first sound", ms(source_cost.first_sound_ms), ms(target_cost.first_sound_ms)),
        ("words heard wrong", errors(report.source_word_errors), errors(report.target_word_errors)),
    ];
    for (name, before, after) in rows {
        table.add_row([name.to_owned(), before, after]);
    }
    let count = report.sentences.len();
    let mut distances = super::table([
        format!("distance, {count} sentences, {}", report.voice),
        "mean".to_owned(),
        "95 % interval".to_owned(),
    ]);
    let rows = [
        ("log-mel, dB", distance.log_mel_db, 2),
        ("pitch, cents", distance.pitch_cents, 0),
        ("voiced or not, % of the time", distance.voicing_error.map(hundredfold), 1),
        ("duration of a sound, ms", distance.duration_ms, 1),
        ("length of a sentence, ratio", distance.length_ratio, 3),
    ];
    for (name, figure, digits) in rows {
        if let Some(Estimate { value, low, high }) = figure {
            let interval = format!("{low:.digits$} to {high:.digits$}");
            distances.add_row([name.to_owned(), format!("{value:.digits$}"), interval]);
        }
    }
    let (front, vocoder) = (report.front_error * 100.0, report.vocoder_error * 100.0);
    let weights = match report.bits {
        32 => format!("the weights are those of {}, in floats", report.source),
        _ => format!("error of the weights: front {front:.1} %, vocoder {vocoder:.1} %"),
    };
    format!(
        "{}\n\n{}\n\n{weights}\nlisten: open {} in a browser\n\
         use it: hob say -m {} …, or [speech] model = \"{}\" in hob.toml",
        table.trim_fmt(),
        distances.trim_fmt(),
        report.page.display(),
        report.target,
        report.target,
    )
}

fn ms(value: f64) -> String {
    format!("{value:.0} ms")
}

pub(super) fn percent(share: &Estimate) -> String {
    let Estimate { value, low, high } = hundredfold(*share);
    format!("{value:.1} % ({low:.1} to {high:.1})")
}

fn hundredfold(share: Estimate) -> Estimate {
    let Estimate { value, low, high } = share;
    Estimate { value: value * 100.0, low: low * 100.0, high: high * 100.0 }
}

impl From<QuantizeSpeechError> for Failure {
    fn from(error: QuantizeSpeechError) -> Failure {
        match error {
            QuantizeSpeechError::Store(error) => error.into(),
            QuantizeSpeechError::NotSpeech(_) | QuantizeSpeechError::Name(_) => {
                Failure::usage(error)
            }
            // A full disk, for example.
            QuantizeSpeechError::Graph(TransformError::Disk(_)) => Failure::internal(error),
            QuantizeSpeechError::Graph(_) => Failure::model_missing(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_engines::speech::distance::SpokenSound;

    use super::*;
    use crate::wire_up::SpokenSentence;

    /// A study of one sentence.
    fn study(heard: Vec<f32>) -> SpeechStudy {
        let sound =
            SpokenSound { whole: heard.clone(), heard, durations: vec![4], pitch: vec![0.0; 8] };
        let cost = SpeechCost { load_ms: 0.0, first_sound_ms: 0.0, memory_bytes: None };
        SpeechStudy { sentences: vec![SpokenSentence::of_one(sound)], cost }
    }

    fn share(value: f64) -> Option<Estimate> {
        Some(Estimate { value, low: 0.0, high: 1.0 })
    }

    #[test]
    fn a_model_that_does_not_speak_is_refused_with_the_reason() {
        let tone = |samples: usize, level: f32| study(vec![level; samples]);
        let before = tone(2400, 0.5);
        let rows = [
            (tone(2400, 0.4), share(0.1), None),
            (tone(2400, f32::NAN), None, Some("sentence 1 is broken")),
            (tone(2400, 0.01), None, Some("sentence 1 is silent")),
            (tone(240, 0.5), None, Some("0.1 times as long")),
            (tone(9600, 0.5), None, Some("4.0 times as long")),
            (tone(2400, 0.5), share(0.9), Some("90 % of its words are not understood")),
        ];
        for (after, errors, expected) in rows {
            let refused = refuse_garbage([&before, &after], [share(0.05), errors]);
            let said = refused.err().map(|failure| failure.sentence);
            match (&said, expected) {
                (Some(said), Some(expected)) => assert!(said.contains(expected), "{said}"),
                _ => assert_eq!(said.is_some(), expected.is_some(), "{said:?}"),
            }
        }
    }
}
