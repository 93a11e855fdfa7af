//! The chat worker: one thread that owns the decoder and every answer, one that reads requests in,
//! one that compiles grammars, one that makes vectors. It ends when the supervisor closes the socket.

mod answering;
mod compiler;
mod elsewhere;
mod embedder;
mod engine;
mod front;
mod reading;
mod repetition;
mod running;

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use hob_core::chat::EmbedRequest;

use super::decoder::{BatchToken, DecodeFailed, Decoder};
use super::llama::{Llama, LlamaDecoder, LlamaError, LlamaOptions, vram_bytes_taken};
use super::protocol::{About, ChatOrder, Refusal, Vector};
use super::scheduler::{Pacing, Scheduler};
use crate::frame::{Frame, FrameError};
use crate::worker::protocol::{PROTOCOL_VERSION, Report};
use crate::worker::{Inbox, InboxError, Outlet};

use elsewhere::Elsewhere;
use engine::Engine;
use front::Front;
use reading::Reading;
pub use reading::ReadingError;
use running::Prepared;

/// Requests that are being read in; beyond them a request is told to come back.
const JOBS_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct ServeChatOptions {
    pub llama: LlamaOptions,
    pub pacing: Pacing,
    /// Requests that wait for a sequence; the next is told to come back.
    pub queue_max: usize,
    /// Tokens of the longest text that is made a vector of.
    pub embed_tokens_max: u32,
    /// Where a request does not say: the block is closed after so many tokens.
    pub thinking_tokens_max: Option<u32>,
    /// Of an answer, where a request names no limit; none: until the context is full.
    pub answer_tokens_max: Option<u32>,
    /// An engine that still computes this long after the server has gone is aborted.
    pub orphan_limit: Duration,
}

impl ServeChatOptions {
    pub fn new(llama: LlamaOptions) -> ServeChatOptions {
        ServeChatOptions {
            llama,
            pacing: Pacing::default(),
            queue_max: 128,
            embed_tokens_max: 2048,
            thinking_tokens_max: None,
            answer_tokens_max: None,
            orphan_limit: Duration::from_secs(30),
        }
    }
}

/// Why a worker ended other than by its supervisor's wish.
#[derive(Debug, thiserror::Error)]
pub enum ServeChatError {
    #[error(transparent)]
    Llama(#[from] LlamaError),
    #[error(transparent)]
    Reading(#[from] ReadingError),
    #[error("the model loads but does not compute: {0}")]
    WarmUp(#[from] DecodeFailed),
    #[error(transparent)]
    Inbox(#[from] InboxError),
    #[error("the server cannot be reached: {0}")]
    Io(#[from] io::Error),
}

/// What the engine hears: from the server, and from the threads beside it.
enum Heard {
    Order(ChatOrder),
    Prepared { stream: u32, prepared: Box<Result<Prepared, Refusal>> },
    Embedded { stream: u32, vector: Vector },
    EmbeddedAll { stream: u32, ended: Result<(), EmbedEnd> },
}

/// Why vectors are not made.
enum EmbedEnd {
    Refused(Refusal),
    Failed(DecodeFailed),
}

/// A request that is read in by the front.
struct Job {
    stream: u32,
    bytes: Vec<u8>,
    received: Instant,
}

struct EmbedJob {
    stream: u32,
    request: EmbedRequest,
}

/// Whom the engine speaks to.
struct Told {
    outlet: Outlet,
    jobs: SyncSender<Job>,
    elsewhere: Elsewhere,
}

fn heard(frame: &Frame) -> Result<Heard, FrameError> {
    ChatOrder::from_frame(frame).map(Heard::Order)
}

/// Loads, says so, and serves until the other end of the socket is closed.
///
/// # Errors
/// See [`ServeChatError`]; a failure to load was also told to the supervisor.
pub fn serve_chat(socket: UnixStream, options: &ServeChatOptions) -> Result<(), ServeChatError> {
    let inbox = Inbox::start(&socket, heard, options.orphan_limit)?;
    let mut outlet = Outlet::new(&socket)?;
    outlet.report(&Report::Hello { version: PROTOCOL_VERSION })?;
    let started = Instant::now();
    let llama = Arc::new(told(&mut outlet, load(&socket, &options.llama))?);
    let reading = told(&mut outlet, Reading::of(&llama, options).map_err(Into::into))?;
    let decoder = told(&mut outlet, warm_decoder(&llama))?;
    outlet.report(&ready(&decoder, started.elapsed()))?;
    serve(&llama, &reading, decoder, Line { inbox, outlet }, options)
}

/// Lets the supervisor know what failed before this process ends of it.
fn told<T>(outlet: &mut Outlet, result: Result<T, ServeChatError>) -> Result<T, ServeChatError> {
    if let Err(error) = &result {
        outlet.report(&Report::LoadFailed { reason: error.to_string() })?;
    }
    result
}

fn load(socket: &UnixStream, options: &LlamaOptions) -> Result<Llama, ServeChatError> {
    let mut outlet = Outlet::new(socket)?;
    let mut said_percent = 0;
    let progress = move |part: f32| {
        let percent = (part * 100.0) as u32;
        if percent > said_percent {
            said_percent = percent;
            // A server that is gone is seen when the model is ready.
            let _gone = outlet.report(&Report::Loaded { part });
        }
    };
    Ok(Llama::load(options.clone(), progress)?)
}

/// The first request's surprises (page faults, lazy buffers) are met before it comes.
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

fn ready(decoder: &impl Decoder, load: Duration) -> Report {
    let about = About {
        context_tokens: decoder.context_tokens(),
        parallel: decoder.parallel() as u32,
        vram_bytes: vram_bytes_taken(),
    };
    let load_ms = u32::try_from(load.as_millis()).unwrap_or(u32::MAX);
    Report::Ready { load_ms, about: about.to_payload() }
}

/// Both directions to the server.
struct Line {
    inbox: Inbox<Heard>,
    outlet: Outlet,
}

/// The engine on this thread, and beside it the front and the embedder, which end with it.
fn serve(
    llama: &Llama,
    reading: &Reading,
    decoder: LlamaDecoder<'_>,
    line: Line,
    options: &ServeChatOptions,
) -> Result<(), ServeChatError> {
    let scheduler = Scheduler::new(options.pacing, decoder.batch_tokens());
    let (jobs, to_prepare) = sync_channel(JOBS_MAX);
    let (embed_jobs, to_embed) = sync_channel(JOBS_MAX);
    let (compile_jobs, to_compile) = sync_channel(JOBS_MAX);
    let elsewhere = Elsewhere::default();
    let Line { inbox, outlet } = line;
    thread::scope(|scope| {
        let (to_engine, theirs) = (inbox.sender(), elsewhere.clone());
        let front = Front { reading, embed_jobs, compile_jobs, to_engine: to_engine.clone() };
        thread::Builder::new()
            .name("front".to_owned())
            .spawn_scoped(scope, move || front.run(&to_prepare, &theirs))?;
        let (to_engine_too, theirs, words) =
            (to_engine.clone(), elsewhere.clone(), outlet.shared());
        thread::Builder::new().name("compiler".to_owned()).spawn_scoped(scope, move || {
            compiler::run(reading, &to_compile, &theirs, words, &to_engine_too);
        })?;
        let theirs = elsewhere.clone();
        thread::Builder::new().name("embedder".to_owned()).spawn_scoped(scope, move || {
            let tokens_max = options.embed_tokens_max;
            embedder::run(llama, reading, tokens_max, &to_embed, (&theirs, &to_engine));
        })?;
        let told = Told { outlet, jobs, elsewhere };
        // Dropped when it ends: the threads beside it then hear that nobody listens any more.
        Engine::new(decoder, scheduler, told, options.queue_max).run(inbox)
    })
}

#[cfg(test)]
mod tests;
