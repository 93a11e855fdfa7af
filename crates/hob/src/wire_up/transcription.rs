//! Builds the transcription model: finds its files, and prepares a worker process.
//! `hob-engines` implements the worker.

use std::sync::Arc;

use futures::StreamExt;
use hob_core::budget::Bytes;
use hob_core::fit::Pool;
use hob_core::{
    Admission, LoadTimes, MemoryBroker, ModelLifecycle, RegisteredModel, Sound, SoundFile,
    TranscriptEvent, TranscriptModel, TranscriptRequest, task,
};
use hob_engines::chat::{CardUse, has_card_kernels};
use hob_engines::supervisor::WorkerCommand;
use hob_engines::transcription::vad::SileroVad;
use hob_engines::transcription::whisper::Whisper;
use hob_engines::transcription::{
    TranscriptionWorker, TranscriptionWorkerError, serve_transcription,
};

use super::chat::with_cards;
use super::devices::{listed_cards, warn_of_spills};
use super::hidden_cards::HiddenCards;
use super::memory::{Memory, Need, usable};
use super::named_cards::{NamedCards, uncounted};
use super::transcription_places::{TranscriptionPlacer, TranscriptionPlaces};
use super::worker_process::SPIN_COUNT;
use super::{worker_command, worker_socket};
use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::machine::here;
use crate::model_store::{ModelStore, StoredTranscription, WORKER_BYTES};
use crate::settings::{TranscriptionSettings, speech_threads};
use crate::worker_args::TranscriptionWorkerArgs;

/// Seconds of work per second of sound, until the first answers correct the guess.
const RTF_GUESS: f64 = 0.15;

/// The transcription model of this hob, in its worker process.
#[derive(Clone, Debug)]
pub(crate) struct Transcription {
    pub(crate) name: String,
    pub(crate) worker: Arc<TranscriptionWorker>,
}

impl Transcription {
    /// With the memory for itself.
    ///
    /// # Errors
    /// See [`Transcription::start_in`].
    pub(crate) fn start(app: &App<'_>) -> CliResult<Transcription> {
        Transcription::start_in(&Memory::new(app.settings.memory.max_bytes()), app)
    }

    /// Finds the model and supervises a worker for it; the process starts when it is loaded.
    /// Called inside a tokio runtime.
    ///
    /// # Errors
    /// The model is not installed, or its file is not a Whisper model.
    pub(crate) fn start_in(memory: &Arc<Memory>, app: &App<'_>) -> CliResult<Transcription> {
        let settings = &app.settings.transcription;
        let stored = ModelStore::open(app).transcription(&settings.model)?;
        let may_use_cards = has_card_kernels() && settings.device != CardUse::Avoided;
        let places = may_use_cards.then(|| places(&stored, app));
        let estimated = places.as_ref().map_or_else(
            || Bytes::from([(Pool::Ram, stored.memory_bytes)]),
            |places| places.on_card.clone(),
        );
        let model_memory = memory.of_model(&stored.name, Need { estimated, is_pinned: false });
        let mut options = TranscriptionWorker::options();
        options.load_guess = LoadTimes::guess(stored.file_bytes);
        options.predicted_bytes = Some(stored.memory_bytes);
        options.idle_unload = settings.keep_alive;
        options.room = Some(Arc::new(model_memory.clone()));
        let command = command(settings, &stored)?;
        if let Some(places) = places {
            let placer = TranscriptionPlacer::new(places, command.clone(), model_memory.clone());
            let placer = Arc::new(placer);
            options.room = Some(Arc::clone(&placer) as Arc<dyn MemoryBroker>);
            options.placer = Some(placer);
        }
        let worker = Arc::new(TranscriptionWorker::start(command, options, stored.languages));
        model_memory.taken_by(&(Arc::clone(&worker) as Arc<dyn ModelLifecycle>));
        Ok(Transcription { name: stored.name, worker })
    }

    /// What the model hears in a WAV file. `language`: `None` lets the model detect it.
    pub(crate) async fn text_of(
        &self,
        wav: Vec<u8>,
        language: Option<String>,
    ) -> CliResult<String> {
        let sound = Sound::File(SoundFile { bytes: wav.into(), name: None });
        let request = TranscriptRequest { sound, language, ..TranscriptRequest::default() };
        let mut events = self.worker.transcribe(request).await?;
        let mut text = String::new();
        while let Some(event) = events.next().await {
            if let TranscriptEvent::Delta(delta) = event? {
                text.push_str(&delta);
            }
        }
        Ok(text)
    }

    /// The model as the registry has it.
    pub(crate) fn registered(
        &self,
        settings: &TranscriptionSettings,
    ) -> RegisteredModel<task::Transcription> {
        let admission = Admission::new(settings.requests_max.get().into(), RTF_GUESS);
        let model = Arc::clone(&self.worker) as Arc<dyn TranscriptModel>;
        RegisteredModel {
            lifecycle: Some(Arc::clone(&self.worker) as Arc<dyn ModelLifecycle>),
            ..RegisteredModel::new(&self.name, model, admission)
        }
    }
}

/// Where the model may be loaded in a build with kernels for graphics cards.
fn places(stored: &StoredTranscription, app: &App<'_>) -> TranscriptionPlaces {
    warn_of_spills(app);
    let machine = usable(here(app).machine, app.settings.memory.max_bytes());
    let device = &app.settings.transcription.device;
    let chosen = NamedCards::choose(device, &HiddenCards::of(app), listed_cards, machine);
    if let Some(note) = uncounted(device, &chosen.0, has_card_kernels(), listed_cards) {
        tracing::warn!(model = stored.name, "{note}");
    }
    TranscriptionPlaces::new(
        &chosen,
        stored.memory_bytes.saturating_sub(WORKER_BYTES),
        WORKER_BYTES,
    )
}

fn command(
    settings: &TranscriptionSettings,
    stored: &StoredTranscription,
) -> CliResult<WorkerCommand> {
    let flags = [
        ("--model", Some(stored.weights.clone().into())),
        ("--vad", Some(stored.vad.clone().into())),
        ("--threads", Some(settings.threads.requested().to_string().into())),
    ];
    let command = with_cards(worker_command("hear", flags)?, &settings.device);
    Ok(command.env("GOMP_SPINCOUNT", SPIN_COUNT))
}

/// The whole of `hob worker hear`: returns when the hob that started it closes the socket.
pub(crate) fn work_transcription(args: &TranscriptionWorkerArgs) -> CliResult<()> {
    let socket = worker_socket("`hob hear` and `hob serve` do")?;
    let load = || -> Result<_, TranscriptionWorkerError> {
        let threads = speech_threads(args.threads) as u32;
        let whisper = Whisper::load(&args.model, threads, &args.cards.card_use())?;
        Ok((whisper, SileroVad::load(&args.vad)?))
    };
    serve_transcription(socket, load).map_err(Failure::engine)
}
