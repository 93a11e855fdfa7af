//! The chat worker. One thread owns the decoder and all answers, one prepares requests, one compiles
//! grammars, one computes embeddings. It ends when the supervisor closes the socket.

mod answering;
mod compiler;
mod draft_model;
mod drafting;
mod embedder;
mod engine;
mod grammar_time;
mod grammar_trials;
mod off_engine;
mod passes;
mod preparer;
mod repetition;
mod request_reader;
mod running;
mod trial_process;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use hob_core::chat::EmbedRequest;

use super::decoder::{BatchToken, DecodeFailed, Decoder};
use super::llama::{Llama, LlamaDecoder, LlamaError, LlamaOptions, vram_bytes_taken};
use super::protocol::{AnyChatOrder, ChatOrder, Refusal, Vector};
use super::scheduler::{StepLimits, TokenScheduler};
use crate::frame::{Frame, FrameError};
use crate::supervisor::WorkerCommand;
use crate::worker::protocol::{DeviceShortage, Report};
use crate::worker::{InboxError, InboxSender, LoadError, Outlet, WorkerConnection};

use draft_model::DraftModel;
use engine::Engine;
use grammar_trials::GrammarTrials;
use off_engine::OffEngineStreams;
use preparer::Preparer;
use request_reader::RequestReader;
pub use request_reader::RequestReaderError;
use running::Prepared;
pub use trial_process::try_grammars;

/// Maximum requests that wait for the preparer, the compiler or the embedder. Further requests are refused with a retry time.
const JOBS_MAX: usize = 64;

/// Maximum requests that wait for a slot. Further requests are refused with a retry time.
const QUEUE_MAX: usize = 128;

/// Maximum tokens of a text that is embedded.
const EMBED_TOKENS_MAX: u32 = 2048;

/// An engine that still computes this long after the server has gone is aborted.
const ORPHAN_LIMIT: Duration = Duration::from_secs(30);

/// The refusal of a request that finds a queue full.
const BUSY: Refusal = Refusal::Busy { retry_after_ms: 2000 };

#[derive(Clone, Debug)]
pub struct ServeChatOptions {
    pub llama: LlamaOptions,
    /// A smaller model with the same tokens, which guesses what this one says.
    pub draft_model: Option<PathBuf>,
    pub step_limits: StepLimits,
    /// Limit of the thinking block where a request names none.
    pub thinking_tokens_max: Option<u32>,
    /// Limit of an answer where a request names none. `None`: until the context is full.
    pub answer_tokens_max: Option<u32>,
    /// Starts the process that tries grammars, which runs [`try_grammars`]. `None`: grammars are compiled untried.
    pub grammar_trials: Option<WorkerCommand>,
}

impl ServeChatOptions {
    pub fn new(llama: LlamaOptions) -> ServeChatOptions {
        ServeChatOptions {
            llama,
            draft_model: None,
            step_limits: StepLimits::default(),
            thinking_tokens_max: None,
            answer_tokens_max: None,
            grammar_trials: None,
        }
    }
}

/// Why a worker ended without its supervisor's request.
#[derive(Debug, thiserror::Error)]
pub enum ServeChatError {
    #[error(transparent)]
    Llama(#[from] LlamaError),
    #[error(transparent)]
    RequestReader(#[from] RequestReaderError),
    #[error("the model loads but does not compute: {0}")]
    WarmUp(#[from] DecodeFailed),
    #[error("a step failed, and the engine computes no other one in this process: {0}")]
    Broken(DecodeFailed),
    #[error(transparent)]
    Inbox(#[from] InboxError),
    #[error("the server cannot be reached: {0}")]
    Io(#[from] io::Error),
}

impl LoadError for ServeChatError {
    fn device_shortage(&self) -> Option<DeviceShortage> {
        let ServeChatError::Llama(error) = self else { return None };
        error.device_shortage()
    }
}

/// A message to the engine: an order of the server, or a result of the threads next to it.
enum Incoming {
    Order { stream: u32, order: AnyChatOrder },
    Prepared { stream: u32, prepared: Box<Result<Prepared, Refusal>> },
    Embedded { stream: u32, vector: Vector },
    EmbeddedAll { stream: u32, ended: Result<(), EmbedEnd> },
}

/// Why vectors are not made.
enum EmbedEnd {
    Refused(Refusal),
    Failed(DecodeFailed),
}

/// A request to prepare.
struct Job {
    stream: u32,
    order: ChatOrder,
    received: Instant,
}

struct EmbedJob {
    stream: u32,
    request: EmbedRequest,
}

/// What the engine computes with.
struct EngineSetup<D> {
    decoder: D,
    draft_model: Option<DraftModel<D>>,
    scheduler: TokenScheduler,
    queue_max: usize,
}

/// Where the engine sends to: the server, and the threads next to it.
struct Outputs {
    outlet: Outlet,
    jobs: SyncSender<Job>,
    off_engine: OffEngineStreams,
}

fn decode(frame: &Frame) -> Result<Incoming, FrameError> {
    let order = AnyChatOrder::from_frame(frame)?;
    Ok(Incoming::Order { stream: frame.stream, order })
}

/// Loads the model, reports that it is ready, and serves until the supervisor closes the socket.
///
/// # Errors
/// See [`ServeChatError`]. The supervisor also gets the reason of a failed load.
pub fn serve_chat(socket: UnixStream, options: &ServeChatOptions) -> Result<(), ServeChatError> {
    let mut connection = WorkerConnection::start(&socket, decode, ORPHAN_LIMIT)?;
    let outlet = &mut connection.outlet;
    let loaded = load(outlet.shared(), &options.llama);
    let llama = Arc::new(outlet.loaded(loaded)?);
    let reader = outlet.loaded(RequestReader::of(&llama, options).map_err(ServeChatError::from))?;
    let draft = options.draft_model.as_ref().map(|path| llama.load_draft(path));
    let draft = outlet.loaded(draft.transpose().map_err(ServeChatError::from))?;
    let decoder = outlet.loaded(warm_decoder(&llama))?;
    let draft_decoder = outlet.loaded(draft.as_ref().map(warm_decoder).transpose())?;
    let vocabulary = llama.vocabulary_size();
    let draft_model = draft_decoder.map(|decoder| DraftModel::new(decoder, vocabulary));
    outlet.ready(vram_bytes_taken(&options.llama.card_use), &())?;
    let scheduler = TokenScheduler::new(options.step_limits, decoder.batch_tokens());
    let setup = EngineSetup { decoder, draft_model, scheduler, queue_max: QUEUE_MAX };
    let trials = options.grammar_trials.as_ref();
    serve(&reader, setup, connection, trials, |jobs, off_engine, to_engine| {
        embedder::run(&llama, &reader, EMBED_TOKENS_MAX, jobs, (off_engine, to_engine));
    })
}

fn load(mut outlet: Outlet, options: &LlamaOptions) -> Result<Llama, ServeChatError> {
    let mut reported_percent = 0;
    let progress = move |fraction: f32| {
        let percent = (fraction * 100.0) as u32;
        if percent > reported_percent {
            reported_percent = percent;
            // If the server is gone, the report that the model is ready fails too, and ends the worker.
            drop(outlet.report(0, &Report::Loaded(fraction)));
        }
    };
    Ok(Llama::load(options.clone(), progress)?)
}

/// Computes a few tokens, so that page faults and lazy buffers do not slow the first request.
fn warm_decoder(llama: &Llama) -> Result<LlamaDecoder<'_>, ServeChatError> {
    const TOKENS: u32 = 32;
    let mut decoder = llama.decoder()?;
    let token = |position, wants_logits| BatchToken { id: 0, position, slot: 0, wants_logits };
    let tokens = TOKENS.min(decoder.batch_tokens() as u32).min(decoder.context_tokens() - 1);
    let batch: Vec<BatchToken> =
        (0..tokens).map(|position| token(position, position + 1 == tokens)).collect();
    decoder.decode(&batch)?;
    decoder.decode(&[token(tokens, true)])?;
    decoder.truncate(0, 0);
    Ok(decoder)
}

/// Runs the engine on this thread, and next to it the threads that end with it.
fn serve<D: Decoder>(
    reader: &RequestReader,
    setup: EngineSetup<D>,
    connection: WorkerConnection<Incoming>,
    grammar_trials: Option<&WorkerCommand>,
    embed: impl FnOnce(&Receiver<EmbedJob>, &OffEngineStreams, &InboxSender<Incoming>) + Send,
) -> Result<(), ServeChatError> {
    let (jobs, to_prepare) = sync_channel(JOBS_MAX);
    let (embed_jobs, to_embed) = sync_channel(JOBS_MAX);
    let (compile_jobs, to_compile) = sync_channel(JOBS_MAX);
    let off_engine = OffEngineStreams::default();
    let WorkerConnection { inbox, outlet } = connection;
    thread::scope(|scope| {
        let (to_engine, theirs) = (inbox.sender(), off_engine.clone());
        let preparer = Preparer { reader, embed_jobs, compile_jobs, to_engine: to_engine.clone() };
        thread::Builder::new()
            .name("preparer".to_owned())
            .spawn_scoped(scope, move || preparer.run(&to_prepare, &theirs))?;
        let (to_engine_too, theirs, words) =
            (to_engine.clone(), off_engine.clone(), outlet.shared());
        let trials = GrammarTrials::new(reader, grammar_trials);
        thread::Builder::new().name("compiler".to_owned()).spawn_scoped(scope, move || {
            compiler::run(trials, &to_compile, &theirs, words, &to_engine_too);
        })?;
        let theirs = off_engine.clone();
        thread::Builder::new()
            .name("embedder".to_owned())
            .spawn_scoped(scope, move || embed(&to_embed, &theirs, &to_engine))?;
        let outputs = Outputs { outlet, jobs, off_engine };
        // Dropped when it ends, which closes the channels of the other threads and so ends them.
        Engine::new(setup, outputs).run(inbox)
    })
}

#[cfg(test)]
pub(crate) mod tests;
