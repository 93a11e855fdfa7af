//! The chat model of this hob: found, measured against the memory, and put into a worker process.
//! What the worker does with it is `hob-engines`' business.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_core::budget::Bytes;
use hob_core::fit::{Expected, OffloadFlags, Pool, Setup};
use hob_core::{
    Admission, ChatCard, ChatModel, KeepAlive, LoadTimes, ModelLifecycle, RegisteredModel, task,
};
use hob_engines::chat::{
    ChatWorker, ChatWorkerOptions, LlamaOptions, ServeChatOptions, WeightStorage, serve_chat,
};
use hob_engines::supervisor::WorkerCommand;
use hob_engines::worker::become_worker;
use hob_models::Gguf;
use hob_models::gguf::{PartName, card};

use super::context::{set_up, told};
use super::memory::{Memory, Need, usable};
use super::own_program;
use crate::app::App;
use crate::failure::{Exit, Failure, Outcome};
use crate::machine::here;
use crate::settings::{ChatSettings, ModelChoice};
use crate::shelf::Shelf;
use crate::worker_args::ChatWorkerArgs;

/// Seconds of work per token where nobody knows how fast memory is, until the first answers teach a better figure.
const TOKEN_S_GUESS: f64 = 0.02;

/// The chat model of this hob, in its worker process.
#[derive(Clone, Debug)]
pub(crate) struct Chat {
    pub(crate) name: String,
    pub(crate) worker: Arc<ChatWorker>,
    /// Seconds of work per token, as predicted.
    token_s: f64,
}

/// A model's file, and how it will be run.
#[derive(Clone, Debug)]
pub(crate) struct ChatFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) card: ChatCard,
    setup: Setup,
    pub(crate) expected: Expected,
    /// As its owner says where there is no card that hob sees: the engine may see one.
    told: OffloadFlags,
}

impl Chat {
    /// With the memory for itself.
    ///
    /// # Errors
    /// See [`Chat::start_in`].
    pub(crate) fn start(settings: &ChatSettings, app: &App<'_>) -> Outcome<Chat> {
        Chat::start_in(&own_memory(app), &settings.model.name(), settings, app)
    }

    /// Finds the model and supervises a worker for it; the process starts when it is loaded.
    /// Called inside a tokio runtime.
    ///
    /// # Errors
    /// The model is not here, or its file is none that the engine takes.
    pub(crate) fn start_in(
        memory: &Arc<Memory>,
        name: &str,
        settings: &ChatSettings,
        app: &App<'_>,
    ) -> Outcome<Chat> {
        let file = ChatFile::find(settings, app)?;
        let command = command(settings, &file)?;
        let token_s = file.expected.decode.as_ref().map_or(TOKEN_S_GUESS, |rate| 1.0 / rate.tok_s);
        let need = Need {
            estimated: file.needed(),
            is_pinned: settings.is_pinned && settings.keep_alive == KeepAlive::Forever,
        };
        let seat = memory.seat(name, need);
        let mut options = ChatWorkerOptions::default();
        options.supervisor.load_guess = LoadTimes::guess(file.card.file_bytes);
        options.supervisor.predicted_bytes = Some(file.expected.kept_bytes(Pool::Ram));
        options.supervisor.room = Some(Arc::new(seat.clone()));
        let worker = Arc::new(ChatWorker::start(file.card, command, options));
        seat.taken_by(&(Arc::clone(&worker) as Arc<dyn ModelLifecycle>));
        ModelLifecycle::keep_alive(&*worker, settings.keep_alive);
        Ok(Chat { name: name.to_owned(), worker, token_s })
    }

    /// The model as the registry has it.
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
    /// With the memory that this hob may take.
    ///
    /// # Errors
    /// See [`Chat::start_in`].
    pub(crate) fn find(settings: &ChatSettings, app: &App<'_>) -> Outcome<ChatFile> {
        let (path, digest) = match &settings.model {
            ModelChoice::Named(name) => Shelf::open(app).chat_file(name)?,
            ModelChoice::File(path) => (path.clone(), None),
        };
        let unusable = |error| {
            Failure::new(Exit::ModelMissing, format!("{} cannot be used: {error}", path.display()))
                .hint("chat.model in hob.toml names it, or a [model.NAME], or --chat-model")
        };
        let name = settings.model.name();
        let model = Gguf::open(&path).and_then(|gguf| gguf.model(&name)).map_err(unusable)?;
        let machine = usable(here(app).machine, app.settings.memory.max_bytes());
        let (setup, expected) = set_up(settings, &model, &machine).map_err(|error| {
            Failure::usage(error).hint("chat.kv_type in hob.toml chooses another type")
        })?;
        let context_tokens = setup.plan.context_tokens / setup.plan.sequences;
        let card = card(&path, Some(context_tokens)).map_err(unusable)?;
        let card = ChatCard { digest, ..card };
        let told = match machine.gpus.is_empty() {
            true => told(settings),
            false => setup.told(),
        };
        Ok(ChatFile { name, path, card, setup, expected, told })
    }

    /// Of each memory.
    fn needed(&self) -> Bytes {
        self.expected.uses.iter().map(|used| (used.pool, used.kept_bytes())).collect()
    }
}

/// Of a command that runs one model alone.
fn own_memory(app: &App<'_>) -> Arc<Memory> {
    Memory::new(app.settings.memory.max_bytes())
}

/// Turns that a thread of the engine waits for its sister before it sleeps. Left alone, GNU OpenMP waits
/// for a millisecond and more, which takes the core from whoever it waits for; without any waiting,
/// sleeping takes longer than the work (`docs/reference/performance.md`).
pub(super) const SPIN_COUNT: &str = "500";

/// Has GNU's allocator ask for large pages. Mapped files have none, and a processor that looks up fewer
/// pages decodes 6 % faster.
pub(super) const LARGE_PAGES: &str = "glibc.malloc.hugetlb=1";

fn command(settings: &ChatSettings, file: &ChatFile) -> Outcome<WorkerCommand> {
    let number = |number: u32| number.to_string();
    let mut command = WorkerCommand::new(own_program()?)
        .env("GOMP_SPINCOUNT", SPIN_COUNT)
        .env("GLIBC_TUNABLES", LARGE_PAGES)
        .arg("worker")
        .arg("chat")
        .arg("--model")
        .arg(&file.path)
        .arg("--context")
        .arg(number(file.card.context_tokens))
        .arg("--parallel")
        .arg(number(file.setup.plan.sequences))
        .arg("--kv-type")
        .arg(settings.kv_type.0.name())
        .arg("--threads")
        .arg(settings.threads.wished().to_string())
        .arg("--batch")
        .arg(number(settings.batch_tokens.get()));
    if let Some(tokens) = settings.thinking_tokens_max {
        command = command.arg("--thinking").arg(number(tokens));
    }
    if let Some(tokens) = settings.answer_tokens_max {
        command = command.arg("--answer").arg(number(tokens.get()));
    }
    if let Some(layers) = file.told.gpu_layers {
        command = command.arg("--gpu-layers").arg(number(layers));
    }
    if let Some(layers) = file.told.cpu_moe_layers {
        command = command.arg("--cpu-moe-layers").arg(number(layers));
    }
    Ok(command)
}

/// The whole of `hob worker chat`: returns when the hob that started it closes the socket.
pub(crate) fn work_chat(args: &ChatWorkerArgs) -> Outcome<()> {
    let socket = become_worker().map_err(|_| {
        Failure::new(Exit::Engine, "a worker is started by hob itself, not by hand")
            .hint("`hob chat` and `hob serve` do")
    })?;
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
        weights: weights(&args.model),
    };
    let thinking_tokens_max = args.thinking;
    let options = ServeChatOptions {
        thinking_tokens_max,
        answer_tokens_max: args.answer,
        ..ServeChatOptions::new(llama)
    };
    serve_chat(socket, &options).map_err(|error| Failure::new(Exit::Engine, error))
}

/// Copied where that leaves as much free as it takes: a model that fills the memory is better dropped in
/// part than swapped.
pub(super) fn weights(model: &Path) -> WeightStorage {
    let available_bytes = hob_machine::ram().map_or(0, |ram| ram.available_bytes);
    match bytes_of(model) {
        Some(bytes) if bytes.saturating_mul(2) <= available_bytes => WeightStorage::Copied,
        Some(_) | None => WeightStorage::Mapped,
    }
}

/// Of all parts, where the file is the first of several.
fn bytes_of(model: &Path) -> Option<u64> {
    let part = PartName::parse(model.file_name()?.to_str()?);
    let Some(part) = part else { return Some(model.metadata().ok()?.len()) };
    let sizes = part.all().map(|name| Some(model.with_file_name(name).metadata().ok()?.len()));
    sizes.sum()
}

/// For steps of few tokens and of many. A core that is left alone when there are more than two keeps
/// answers steady beside whatever else the machine does.
pub(super) fn threads(wished: u32) -> (u32, u32) {
    if wished > 0 {
        return (wished, wished);
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
        // A hole of four terabytes takes no room on the disk, and would in memory.
        if file.as_file().set_len(1 << 42).is_ok() {
            assert_eq!(weights(file.path()), WeightStorage::Mapped);
        }
        assert_eq!(weights(Path::new("nowhere.gguf")), WeightStorage::Mapped);
    }
}
