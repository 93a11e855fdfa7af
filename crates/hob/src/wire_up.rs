//! Builds a server from the settings: workers, a registry, and the parts of the other crates.
//! Decides nothing itself: the settings determine what is built.

mod announcement;
mod chat;
mod context;
mod device_trial;
mod devices;
mod fit_service;
mod gateway;
mod hidden_cards;
mod memory;
mod named_cards;
mod pipelines;
mod places;
mod placing;
mod quantize;
mod speech_parts;
mod speech_study;
mod spoken_sentence;
mod timing;
mod tls;
mod transcription;
mod transcription_places;
mod turn_taking;
mod visible_cards;
mod worker_process;
mod wyoming;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hob_agents::{SCRIPT_BYTES_MAX, ScriptModel};
use hob_core::budget::Bytes;
use hob_core::fit::Pool;
use hob_core::scripted::{FixedChat, FixedTranscript};
use hob_core::task::Task;
use hob_core::voice_blend::spoken_language;
use hob_core::{
    Admission, ChatModel, Language, ModelLifecycle, RegisteredModel, Registry, SpeechModel,
    TranscriptModel, UpstreamResolver, Voice, task,
};
use hob_engines::speech::kokoro::{Kokoro, KokoroOptions};
use hob_engines::speech::{
    DictionaryFolders, ServeOptions, SpeechWorker, SpeechWorkerOptions, WarmUp, serve_speech,
};
use hob_engines::supervisor::WorkerCommand;
use hob_engines::worker::become_worker;
use hob_models::catalog::names::{only_quant, others};
use hob_models::quantized_speech::speech_memory_bytes;
use hob_server::ledger::Ledger;
use hob_server::{KeptVoices, ServerOptions};
use hob_speech::{Lexicon, Phonemizer, PhonemizerOptions, SpokenUnit};
use hob_upstream::Gateway;
use hob_wire::own_voice;

use crate::app::App;
use crate::bounded_file::read_text;
use crate::descriptors::{connections, raise_limit};
use crate::failure::{CliResult, Failure};
use crate::model_store::{ModelStore, StoredSpeech};
use crate::programs;
use crate::settings::{DEFAULT_SPEECH, Settings, speech_threads};
use crate::worker_args::SpeechWorkerArgs;

use memory::Need;
use speech_parts::StoredDictionaries;

pub(crate) use chat::{Chat, ChatFile, work_chat, work_grammars};
pub(crate) use device_trial::work_devices;
pub(crate) use devices::{TriedDevices, listed_cards, run_devices_worker};
pub(crate) use fit_service::FitData;
pub(crate) use gateway::{gateway, has_others, keys, looked_up, placed, placeholder_models};
pub(crate) use hidden_cards::HiddenCards;
pub(crate) use memory::{Memory, used_cards};
pub(crate) use pipelines::{note_default_key, pipelines_listener};
pub(crate) use quantize::{
    QUANTIZE_TEXT_BYTES_MAX, QuantizeStep, run_quantize_worker, work_distance, work_quantize,
};
pub(crate) use speech_parts::missing_parts;
pub(crate) use speech_study::{SpeechStudy, run_speech_study, work_speech_study};
pub(crate) use spoken_sentence::SpeechCost;
#[cfg(test)]
pub(crate) use spoken_sentence::SpokenSentence;
pub(crate) use timing::{
    CALIBRATION_TIME_MAX, CARD_TIME_MAX, TimingJob, decoding_threads, run_timing_worker,
    work_timing,
};

pub(crate) use tls::{certificates, network_address};
pub(crate) use transcription::{Transcription, work_transcription};
pub(crate) use turn_taking::StoredTurnTaking;
pub(crate) use visible_cards::{leave_out_hidden_cards, other_build};
pub(crate) use wyoming::{announce_wyoming, check_wyoming_exposure, wyoming_ports};

/// Seconds of work per second of sound, until the first answers correct the guess.
const RTF_GUESS: f64 = 0.3;

/// Guess for the memory of a speech worker in addition to its files where they cannot be read: dictionaries, and the
/// tensors of a window.
const SPEECH_BESIDE_BYTES: u64 = 150_000_000;

/// The speech model of this hob, in its worker process.
#[derive(Clone, Debug)]
pub(crate) struct Speech {
    pub(crate) name: String,
    pub(crate) worker: Arc<SpeechWorker>,
}

impl Speech {
    /// With the memory for itself.
    ///
    /// # Errors
    /// See [`Speech::start_in`].
    pub(crate) fn start(app: &App<'_>) -> CliResult<Speech> {
        Speech::start_without(missing_parts(app), app)
    }

    /// With the memory for itself. `missing` has the languages that cannot be spoken now, as [`missing_parts`] found
    /// them.
    ///
    /// # Errors
    /// See [`Speech::start_in`].
    pub(crate) fn start_without(
        missing: BTreeMap<Language, String>,
        app: &App<'_>,
    ) -> CliResult<Speech> {
        Speech::supervised(&Memory::new(app.settings.memory.max_bytes()), missing, app)
    }

    /// Finds the model and supervises a worker for it; the process starts when it is loaded.
    /// Called inside a tokio runtime.
    ///
    /// # Errors
    /// The model is not installed, or it does not have the default voice.
    pub(crate) fn start_in(memory: &Arc<Memory>, app: &App<'_>) -> CliResult<Speech> {
        Speech::supervised(memory, missing_parts(app), app)
    }

    fn supervised(
        memory: &Arc<Memory>,
        missing: BTreeMap<Language, String>,
        app: &App<'_>,
    ) -> CliResult<Speech> {
        let (stored, default) = chosen_speech(&missing, app)?;
        let estimated = Bytes::from([(Pool::Ram, speech_bytes(&stored.folder, stored.disk_bytes))]);
        let model_memory = memory.of_model(&stored.name, Need { estimated, is_pinned: false });
        let dictionaries: Arc<dyn DictionaryFolders> = Arc::new(StoredDictionaries::open(app));
        let mut options = SpeechWorkerOptions {
            missing,
            dictionaries: Some(dictionaries),
            ..SpeechWorkerOptions::default()
        };
        options.supervisor.room = Some(Arc::new(model_memory.clone()));
        let command = speech_command(app, &stored.folder, &default)?;
        let worker = Arc::new(SpeechWorker::start(stored.voices, command, options));
        worker.use_lexicon(lexicon(&app.settings.speech.lexicon)?);
        model_memory.taken_by(&(Arc::clone(&worker) as Arc<dyn ModelLifecycle>));
        Ok(Speech { name: stored.name, worker })
    }

    /// The model as the registry has it.
    pub(crate) fn registered(&self, settings: &Settings) -> RegisteredModel<task::Speech> {
        let requests_max = usize::from(settings.server.requests_max.get());
        let admission = Admission::new(requests_max, RTF_GUESS);
        let model = Arc::clone(&self.worker) as Arc<dyn SpeechModel>;
        RegisteredModel {
            lifecycle: Some(Arc::clone(&self.worker) as Arc<dyn ModelLifecycle>),
            ..RegisteredModel::new(&self.name, model, admission)
        }
    }
}

/// Checks the speech model and its default voice.
///
/// # Errors
/// See [`Speech::start_in`].
pub(crate) fn check_speech(app: &App<'_>) -> CliResult<()> {
    chosen_speech(&missing_parts(app), app).map(drop)
}

fn chosen_speech(
    missing: &BTreeMap<Language, String>,
    app: &App<'_>,
) -> CliResult<(StoredSpeech, String)> {
    let stored = ModelStore::open(app).speech()?;
    let default = &app.settings.speech.default_voice;
    let default = meant_voice(&app.settings, &stored.voices, default)?;
    check_default_voice(&default, &stored.voices, missing)?;
    Ok((stored, default))
}

/// Predicted memory of the worker, as `hob fit` tells it. Weights in fewer bits take less of the disk, and not less memory.
/// A damaged file is reported when the model loads.
fn speech_bytes(folder: &Path, disk_bytes: u64) -> u64 {
    let guess = |_| disk_bytes.saturating_add(SPEECH_BESIDE_BYTES);
    speech_memory_bytes(folder).unwrap_or_else(guess)
}

/// The blends that clients of the server keep.
///
/// # Errors
/// The file of kept voices cannot be read.
pub(crate) fn kept_voices(settings: &Settings) -> CliResult<KeptVoices> {
    let path = settings.kept_voices_file();
    KeptVoices::open(&path)
        .map_err(|error| Failure::io(format_args!("cannot read {}", path.display()), &error))
}

/// The voice that a user's name means here, as in a server: that of a kept blend, or of one of OpenAI's names.
///
/// # Errors
/// The file of kept voices cannot be read.
pub(crate) fn meant_voice(settings: &Settings, voices: &[Voice], asked: &str) -> CliResult<String> {
    let resolved = kept_voices(settings)?.resolve(voices, asked.to_owned());
    Ok(own_voice(voices, &resolved))
}

/// The user's pronunciations.
///
/// # Errors
/// The table has a mistake.
pub(crate) fn lexicon(written: &BTreeMap<String, String>) -> CliResult<Lexicon> {
    Lexicon::new(written.clone()).map_err(|error| {
        Failure::usage(format!("the pronunciations cannot be used: {error}"))
            .hint("the table [speech.lexicon] in hob.toml has them")
    })
}

/// The models that the server serves: the local ones, the aliases, and those of other servers.
pub(crate) fn registry(settings: &Settings, locals: Registry, gateway: &Arc<Gateway>) -> Registry {
    let requests_max = usize::from(settings.server.requests_max.get());
    let mut registry = locals;
    gateway.add_aliases(&mut registry);
    registry.set_upstreams(Arc::clone(gateway) as Arc<dyn UpstreamResolver>);
    if settings.dev.mock_unknown_models {
        let name = "conformance";
        let chat: Arc<dyn ChatModel> = Arc::new(FixedChat::default());
        registry.answer_unknown(unmeasured(name, chat, requests_max));
        let transcript: Arc<dyn TranscriptModel> = Arc::new(FixedTranscript);
        registry.add(unmeasured::<task::Transcription>(name, transcript, requests_max));
    }
    registry
}

/// A model without a guess of how long it works.
fn unmeasured<T: Task>(
    name: &str,
    model: Arc<T::Model>,
    requests_max: usize,
) -> RegisteredModel<T> {
    RegisteredModel::new(name, model, Admission::new(requests_max, 0.0))
}

/// Adds the unlisted names of the local models, which requests and aliases may use.
pub(crate) fn add_other_names(locals: &mut Registry) {
    let names: Vec<String> =
        locals.models::<task::Chat>().map(|model| model.name.clone()).collect();
    for name in &names {
        others(name).iter().chain([name]).for_each(|other| locals.also_called(other, name));
        let repo = name.split_once(':').map_or("", |(repo, _)| repo);
        if only_quant(repo, &names).is_some() {
            locals.also_called(repo, name);
            others(repo).iter().for_each(|other| locals.also_called(other, name));
        }
    }
    // Clients ask for the usual speech model when another form of it is loaded.
    let speech = locals.models::<task::Speech>().next().map(|model| model.name.clone());
    if let Some(speech) = speech {
        locals.also_called(DEFAULT_SPEECH, speech);
    }
}

/// The models that follow scripts.
///
/// # Errors
/// A script cannot be read, or has a mistake.
pub(crate) fn scripts(settings: &Settings) -> CliResult<Vec<Arc<ScriptModel>>> {
    let model = |(name, path): (&String, &PathBuf)| {
        let wrong = |reason: String| Failure::usage(format!("{}: {reason}", path.display()));
        let text = read_text(path, SCRIPT_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
        Ok(Arc::new(ScriptModel::parse(name, &text).map_err(wrong)?))
    };
    settings.dev.scripts.iter().map(model).collect()
}

/// These models, for the registry.
pub(crate) fn scripted(
    scripts: &[Arc<ScriptModel>],
    settings: &Settings,
) -> Vec<Arc<RegisteredModel<task::Chat>>> {
    let requests_max = usize::from(settings.server.requests_max.get());
    let registered = |script: &Arc<ScriptModel>| {
        let model: Arc<dyn ChatModel> = script.clone();
        Arc::new(unmeasured::<task::Chat>(script.name(), model, requests_max))
    };
    scripts.iter().map(registered).collect()
}

pub(crate) fn server_options(settings: &Settings) -> ServerOptions {
    ServerOptions {
        allowed_hosts: settings.server.allowed_hosts.clone(),
        text_chars_max: settings.server.text_chars_max.get() as usize,
        connections_max: connections(raise_limit(), ServerOptions::default().connections_max),
        give_back: hob_engines::memory::give_back,
        default_voice: Some(settings.speech.default_voice.clone()),
        sessions_max: usize::from(settings.realtime.sessions_max.get()),
        accepts_default_key: settings.server.pipelines.accepts_default_key,
        listens_while_speaking: settings.realtime.listen_while_speaking,
        recordings: settings.recordings(),
        ..ServerOptions::default()
    }
}

/// `None`: it is not wanted. With a full disk, hob still answers, and says so.
pub(crate) fn open_ledger(app: &App<'_>) -> Option<Arc<Ledger>> {
    const DAY: Duration = Duration::from_secs(86_400);
    let settings = &app.settings;
    if !settings.ledger.enabled {
        return None;
    }
    let keep = DAY * u32::from(settings.ledger.days.get());
    let file = settings.ledger_file();
    let ledger = Ledger::open(&file, keep).unwrap_or_else(|error| {
        let failure = Failure::internal(error).hint(
            "requests are not logged until hob is restarted; \
             ledger.enabled = false in hob.toml turns the log off",
        );
        app.printer.failure(&failure);
        Ledger::unusable(&file)
    });
    Some(Arc::new(ledger))
}

/// Every worker warms up with it, so a wrong one would stop them all, with a worse message.
fn check_default_voice(
    id: &str,
    voices: &[Voice],
    missing: &BTreeMap<Language, String>,
) -> CliResult<()> {
    let hint = "speech.default_voice in hob.toml names it; `hob say --voices` lists them";
    let language = spoken_language(voices, missing, id);
    language.map(drop).map_err(|error| Failure::from(error).hint(hint))
}

fn speech_command(app: &App<'_>, folder: &Path, default_voice: &str) -> CliResult<WorkerCommand> {
    let mut dictionaries = ModelStore::open(app).dictionaries();
    let flags = [
        ("--model", Some(folder.into())),
        ("--threads", Some(app.settings.speech.threads.requested().to_string().into())),
        ("--voice", Some(default_voice.into())),
        ("--espeak", app.espeak().map(OsString::from)),
        ("--japanese", dictionaries.remove(&Language::Japanese).map(OsString::from)),
        ("--mandarin", dictionaries.remove(&Language::Mandarin).map(OsString::from)),
    ];
    worker_command("speech", flags)
}

/// The command of a worker, with those flags that have a value.
fn worker_command<const N: usize>(
    engine: &str,
    flags: [(&str, Option<OsString>); N],
) -> CliResult<WorkerCommand> {
    let command = WorkerCommand::new(own_program()?).arg("worker").arg(engine);
    let given = flags.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
    Ok(given.fold(command, |command, (flag, value)| command.arg(flag).arg(value)))
}

fn own_program() -> CliResult<PathBuf> {
    programs::own_program()
        .map_err(|error| Failure::io("hob does not find its own program", &error))
}

/// The connection of a worker to the hob that started it. The hint says which commands start one.
fn worker_socket(hint: &str) -> CliResult<UnixStream> {
    become_worker()
        .map_err(|_| Failure::engine("a worker is started by hob itself, not by hand").hint(hint))
}

/// The whole of `hob worker speech`: returns when the hob that started it closes the socket.
pub(crate) fn work_speech(args: &SpeechWorkerArgs) -> CliResult<()> {
    let socket = worker_socket("`hob say` and `hob serve` do")?;
    let load = || {
        let threads = speech_threads(args.threads);
        Kokoro::load(&args.model, KokoroOptions { threads })
    };
    let units = Phonemizer::new(PhonemizerOptions {
        espeak: args.espeak.clone(),
        japanese: args.japanese.clone(),
        mandarin: args.mandarin.clone(),
    });
    let options = ServeOptions { warm_up: Some(warm_up(&args.voice)), ..ServeOptions::default() };
    serve_speech(socket, units, load, options).map_err(Failure::engine)
}

/// Only the default voice's language is loaded before the first request. A dictionary of English takes tens of MB, and
/// its first request loads it.
fn warm_up(voice: &str) -> WarmUp {
    let letter = voice.chars().next().and_then(Language::from_voice_letter);
    let language = letter.unwrap_or(Language::AmericanEnglish);
    // A short word reaches all weights, as a longer text would.
    let phonemes = "hˈI.".to_owned();
    let unit = SpokenUnit { phonemes, words: Vec::new(), pause_after_ms: 0 };
    WarmUp { language, voice: voice.to_owned(), unit }
}

#[cfg(test)]
mod tests {
    use hob_core::Gender;

    use super::*;
    use crate::failure::Exit;

    fn voice(id: &str, language: Language) -> Voice {
        Voice { id: id.to_owned(), name: id.to_owned(), language, gender: Gender::Female }
    }

    #[test]
    fn the_warm_up_loads_the_language_of_the_default_voice() {
        let cases = [
            ("af_heart", Language::AmericanEnglish),
            ("bm_fable", Language::BritishEnglish),
            ("bm_fable(2)+af_heart", Language::BritishEnglish),
            ("ef_dora", Language::Spanish),
        ];
        for (voice, language) in cases {
            assert_eq!(warm_up(voice).language, language, "{voice}");
        }
    }

    #[test]
    fn the_memory_of_unreadable_weights_is_guessed() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(speech_bytes(folder.path(), 7), SPEECH_BESIDE_BYTES + 7);
    }

    #[test]
    fn a_default_voice_that_cannot_speak_is_the_configuration_s_fault() {
        let voices = [
            voice("af_heart", Language::AmericanEnglish),
            voice("ff_siwis", Language::French),
            voice("ef_dora", Language::Spanish),
        ];
        let missing = BTreeMap::from([(Language::French, "a part".to_owned())]);
        for id in ["af_heart", "ef_dora", "af_heart(2)", "af_heart(2)+af_heart(1)"] {
            assert_eq!(check_default_voice(id, &voices, &missing), Ok(()));
        }
        for (id, expected) in [
            ("af_haert", "the nearest are af_heart"),
            ("ff_siwis", "French, which needs a part"),
            ("af_heart+af_nope", "no voice is called 'af_nope'"),
            ("af_heart(0)+af_heart", "not a number"),
        ] {
            let failure = check_default_voice(id, &voices, &missing).expect_err(id);
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.sentence.contains(expected), "{failure}");
            assert!(failure.hint.unwrap_or_default().contains("speech.default_voice"));
        }
    }
}
