//! Builds the chat model: finds its file, checks it against the memory, and prepares a worker process.
//! `hob-engines` implements the worker.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_core::fit::{Model, Pool, SetupEstimate};
use hob_core::{
    Admission, ChatCard, ChatModel, KeepAlive, LoadTimes, MemoryBroker, ModelLifecycle,
    RegisteredModel, task,
};
use hob_engines::chat::scheduler::{DraftPolicy, StepLimits};
use hob_engines::chat::{
    CardUse, ChatWorker, LlamaOptions, ServeChatOptions, WeightStorage, has_card_kernels,
    serve_chat, try_grammars,
};
use hob_engines::supervisor::WorkerCommand;
use hob_models::Gguf;
use hob_models::gguf::{GgufError, PartName, card};

use super::context::{ignored_offload, missing_cards};
use super::devices::{listed_cards, warn_of_spills};
use super::hidden_cards::HiddenCards;
use super::memory::{Memory, Need, usable};
use super::named_cards::{NamedCards, uncounted};
use super::places::{ChatPlacer, RequestedPlace};
use super::placing::{NO_CARDS, Places};
use super::worker_process::{LARGE_PAGES, SPIN_COUNT};
use super::{own_program, worker_command, worker_socket};
use crate::app::App;
use crate::config::Speculation;
use crate::failure::{CliResult, Failure};
use crate::machine::here;
use crate::model_store::ModelStore;
use crate::settings::{ChatSettings, ModelChoice};
use crate::worker_args::ChatWorkerArgs;

/// Guess for the seconds of work per token if the memory bandwidth is unknown. The first answers correct it.
const TOKEN_S_GUESS: f64 = 0.02;

/// The chat model of this hob with its worker process.
#[derive(Clone, Debug)]
pub(crate) struct Chat {
    pub(crate) name: String,
    pub(crate) worker: Arc<ChatWorker>,
    /// Predicted seconds of work per token.
    token_s: f64,
}

/// A model's file, and how the engine will run it.
#[derive(Clone, Debug)]
pub(crate) struct ChatFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) card: ChatCard,
    /// The file of a smaller model that guesses for this one.
    draft: Option<PathBuf>,
    /// Where the model is loaded if there is room.
    place: RequestedPlace,
}

impl Chat {
    /// Starts a chat model that has the whole memory for itself.
    ///
    /// # Errors
    /// See [`Chat::start_in`].
    pub(crate) fn start(settings: &ChatSettings, app: &App<'_>) -> CliResult<Chat> {
        let memory = Memory::new(app.settings.memory.max_bytes());
        Chat::start_in(&memory, &settings.model.name(), settings, app)
    }

    /// Finds the model and creates a supervised worker. The process starts when the model is loaded.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The model is not installed, or the engine cannot read its file.
    pub(crate) fn start_in(
        memory: &Arc<Memory>,
        name: &str,
        settings: &ChatSettings,
        app: &App<'_>,
    ) -> CliResult<Chat> {
        let file = ChatFile::find(settings, app)?;
        let has_kernels = has_card_kernels();
        let unknown =
            || uncounted(&settings.device, &file.place.machine, has_kernels, listed_cards);
        let missing = || missing_cards(settings, &file.place.machine, listed_cards);
        let ignored = ignored_offload(settings, has_kernels);
        if let Some(note) = ignored.or_else(unknown).or_else(missing) {
            tracing::warn!(model = name, "{note}");
        }
        warn_of_spills(app);
        let command = command(settings, &file)?;
        let requested = file.place;
        let expected = &requested.expected;
        let token_s = expected.decode.as_ref().map_or(TOKEN_S_GUESS, |rate| 1.0 / rate.tok_s);
        let need = Need {
            estimated: requested.first().needed,
            is_pinned: settings.is_pinned && settings.keep_alive == KeepAlive::Forever,
        };
        let model_memory = memory.of_model(name, need);
        let mut options = ChatWorker::options();
        options.load_guess = LoadTimes::guess(file.card.file_bytes);
        options.predicted_bytes = Some(expected.kept_bytes(Pool::Ram));
        options.idle_unload = settings.keep_alive;
        let placer = Arc::new(ChatPlacer::new(requested, command.clone(), model_memory.clone()));
        options.room = Some(Arc::clone(&placer) as Arc<dyn MemoryBroker>);
        options.placer = Some(placer);
        let worker = Arc::new(ChatWorker::start(file.card, command, options));
        model_memory.taken_by(&(Arc::clone(&worker) as Arc<dyn ModelLifecycle>));
        Ok(Chat { name: name.to_owned(), worker, token_s })
    }

    /// The model's entry in the registry.
    pub(crate) fn registered(&self, settings: &ChatSettings) -> RegisteredModel<task::Chat> {
        let admission = Admission::new(settings.requests_max.get().into(), self.token_s);
        let model = Arc::clone(&self.worker) as Arc<dyn ChatModel>;
        RegisteredModel {
            lifecycle: Some(Arc::clone(&self.worker) as Arc<dyn ModelLifecycle>),
            ..RegisteredModel::new(&self.name, model, admission)
        }
    }
}

impl ChatFile {
    /// Finds the model and plans its setup within the memory that hob may use.
    ///
    /// # Errors
    /// See [`Chat::start_in`].
    pub(crate) fn find(settings: &ChatSettings, app: &App<'_>) -> CliResult<ChatFile> {
        let (path, digest) = stored_file(&settings.model, app)?;
        let unusable = |error| {
            unusable(&path, error)
                .hint("chat.model in hob.toml names it, or a [model.NAME], or --chat-model")
        };
        let name = settings.model.name();
        let model = Gguf::open(&path).and_then(|gguf| gguf.model(&name)).map_err(unusable)?;
        let machine = usable(here(app).machine, app.settings.memory.max_bytes());
        let hidden = HiddenCards::of(app);
        let chosen = NamedCards::choose(&settings.device, &hidden, listed_cards, machine);
        let (draft, draft_model) = draft_file(settings, app)?.unzip();
        let place = RequestedPlace::plan(settings, (model, draft_model), chosen);
        let place = place.map_err(|error| {
            Failure::usage(error).hint("chat.kv_type in hob.toml chooses another type")
        })?;
        let context_tokens = place.setup.plan.context_tokens / place.setup.plan.sequences;
        let card = card(&path, Some(context_tokens)).map_err(unusable)?;
        let card = ChatCard { digest, ..card };
        Ok(ChatFile { name, path, card, draft, place })
    }

    /// With the memory of a model that guesses for this one.
    pub(crate) fn expected(&self) -> &SetupEstimate {
        &self.place.expected
    }
}

/// A smaller model that guesses for a chat model. `None` if the settings name no such model, or switch guesses off.
///
/// # Errors
/// It is not installed, or the engine cannot read its file.
fn draft_file(settings: &ChatSettings, app: &App<'_>) -> CliResult<Option<(PathBuf, Model)>> {
    let Some(choice) = &settings.draft_model else { return Ok(None) };
    if settings.speculation == Speculation::Off {
        return Ok(None);
    }
    let (path, _) = stored_file(choice, app)?;
    let model = Gguf::open(&path).and_then(|gguf| gguf.model(&choice.name()));
    let model = model.map_err(|error| {
        unusable(&path, error).hint("chat.draft_model in hob.toml or a [model.NAME] names it")
    })?;
    Ok(Some((path, model)))
}

/// The file of a model, and its digest if it is stored.
fn stored_file(choice: &ModelChoice, app: &App<'_>) -> CliResult<(PathBuf, Option<String>)> {
    match choice {
        ModelChoice::Named(name) => ModelStore::open(app).chat_file(name),
        ModelChoice::File(path) => Ok((path.clone(), None)),
    }
}

fn unusable(path: &Path, error: GgufError) -> Failure {
    Failure::model_missing(format!("{} cannot be used: {error}", path.display()))
}

/// Without the flags of a place, which [`ChatPlacer`] adds.
fn command(settings: &ChatSettings, file: &ChatFile) -> CliResult<WorkerCommand> {
    let number = |number: u32| OsString::from(number.to_string());
    let draft = file.draft.clone().map(OsString::from);
    let flags = [
        ("--model", Some(file.path.clone().into())),
        ("--context", Some(number(file.card.context_tokens))),
        ("--parallel", Some(number(file.place.setup.plan.sequences))),
        ("--kv-type", Some(settings.kv_type.0.name().into())),
        ("--threads", Some(settings.threads.requested().to_string().into())),
        ("--batch", Some(number(settings.batch_tokens.get()))),
        ("--thinking", settings.thinking_tokens_max.map(number)),
        ("--answer", settings.answer_tokens_max.map(|tokens| number(tokens.get()))),
        ("--draft-model", draft),
    ];
    let command = with_cards(worker_command("chat", flags)?, &settings.device)
        .env("GOMP_SPINCOUNT", SPIN_COUNT)
        .env("GLIBC_TUNABLES", LARGE_PAGES);
    Ok(match settings.speculation {
        Speculation::Off => command.arg("--no-drafts"),
        Speculation::Auto => command,
    })
}

/// Adds the cards that a worker may use.
pub(super) fn with_cards(command: WorkerCommand, card_use: &CardUse) -> WorkerCommand {
    match card_use {
        CardUse::Allowed => command,
        CardUse::Only(_) => command.arg("--device").arg(card_use.to_string()),
        CardUse::Avoided => command.arg(NO_CARDS),
    }
}

/// The whole of `hob worker chat`. Returns when the hob that started it closes the socket.
pub(crate) fn work_chat(args: &ChatWorkerArgs) -> CliResult<()> {
    let socket = worker_socket("`hob chat` and `hob serve` do")?;
    let (threads, threads_batch) = threads(args.threads);
    let llama = LlamaOptions {
        path: args.model.clone(),
        context_tokens: args.context,
        parallel: args.parallel,
        kv_type: args.kv_type,
        threads,
        threads_batch,
        batch_tokens: args.batch,
        gpu_layers: args.gpu_layers,
        cpu_moe_layers: args.cpu_moe_layers,
        card_use: args.cards.card_use(),
        weights: weights(&args.model),
    };
    let thinking_tokens_max = args.thinking;
    let options = ServeChatOptions {
        draft_model: args.draft_model.clone(),
        thinking_tokens_max,
        answer_tokens_max: args.answer,
        step_limits: StepLimits {
            drafts: if args.is_undrafted { DraftPolicy::Off } else { DraftPolicy::Auto },
            ..StepLimits::default()
        },
        grammar_trials: Some(WorkerCommand::new(own_program()?).arg("worker").arg("grammars")),
        ..ServeChatOptions::new(llama)
    };
    serve_chat(socket, &options).map_err(Failure::engine)
}

/// The whole of `hob worker grammars`. Returns when the chat worker that started it closes the socket.
pub(crate) fn work_grammars() -> CliResult<()> {
    try_grammars(worker_socket("`hob chat` and `hob serve` do")?).map_err(Failure::engine)
}

/// Weights are copied if as much memory stays free. A model that fills the memory is better dropped in
/// part than swapped.
pub(super) fn weights(model: &Path) -> WeightStorage {
    let available_bytes = hob_machine::ram().map_or(0, |ram| ram.available_bytes);
    match bytes_of(model) {
        Some(bytes) if bytes.saturating_mul(2) <= available_bytes => WeightStorage::Copied,
        Some(_) | None => WeightStorage::Mapped,
    }
}

/// Bytes of all parts, if the file is the first of several.
fn bytes_of(model: &Path) -> Option<u64> {
    let part = PartName::parse(model.file_name()?.to_str()?);
    let Some(part) = part else { return Some(model.metadata().ok()?.len()) };
    let sizes = part.all().map(|name| Some(model.with_file_name(name).metadata().ok()?.len()));
    sizes.sum()
}

/// Threads for steps with few tokens and with many. With more than two cores one is left alone, so that
/// answers stay steady whatever else the machine does.
pub(super) fn threads(requested: u32) -> (u32, u32) {
    if requested > 0 {
        return (requested, requested);
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    (if cores > 2 { cores - 1 } else { cores }, cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_as_wished_and_otherwise_the_machine_s() {
        assert_eq!(threads(3), (3, 3));
        let (few, many) = threads(0);
        assert!(few >= 1 && few <= many);
    }

    #[test]
    fn weights_are_copied_where_there_is_room_and_never_where_it_is_unknown() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(weights(file.path()), WeightStorage::Copied);
        // A sparse file of four terabytes takes no disk space, but a copy would fill the memory.
        if file.as_file().set_len(1 << 42).is_ok() {
            assert_eq!(weights(file.path()), WeightStorage::Mapped);
        }
        assert_eq!(weights(Path::new("nowhere.gguf")), WeightStorage::Mapped);
    }
}
