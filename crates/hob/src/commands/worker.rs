//! `hob worker`, hidden: the process that holds one model. Started by a supervisor, never by hand.
//! A process of its own, so that what dies in an engine takes nothing else along.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hob_core::KvType;

use crate::failure::{Exit, Outcome};
use crate::wire_up;

/// Hold one model in this process, for the hob that started it
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    engine: Engine,
}

#[derive(Debug, Subcommand)]
enum Engine {
    Speech(SpeechWorkerArgs),
    Chat(ChatWorkerArgs),
    Timing(TimingWorkerArgs),
}

/// Speak.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct SpeechWorkerArgs {
    /// The folder of the stored model
    #[arg(long)]
    pub(crate) model: PathBuf,
    /// Threads to compute with; 0: the measured default
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
    /// The espeak-ng program
    #[arg(long)]
    pub(crate) espeak: Option<PathBuf>,
    /// The voice of the warm-up
    #[arg(long)]
    pub(crate) voice: String,
}

/// Chat.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct ChatWorkerArgs {
    /// The GGUF file
    #[arg(long)]
    pub(crate) model: PathBuf,
    /// Tokens of one sequence
    #[arg(long)]
    pub(crate) context: u32,
    /// Sequences at once
    #[arg(long)]
    pub(crate) parallel: u32,
    /// How the context is kept
    #[arg(long)]
    pub(crate) kv_type: KvType,
    /// Threads to compute with; 0: the measured default
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: u32,
    /// Tokens of one step
    #[arg(long)]
    pub(crate) batch: u32,
    /// Tokens of thinking, where a request does not say
    #[arg(long)]
    pub(crate) thinking: Option<u32>,
    /// Tokens of an answer, where a request does not say
    #[arg(long)]
    pub(crate) answer: Option<u32>,
    /// Layers on graphics cards, the output counted as one; without it, as the engine wants
    #[arg(long)]
    pub(crate) gpu_layers: Option<u32>,
    /// Layers whose experts are not
    #[arg(long, default_value_t = 0)]
    pub(crate) cpu_moe_layers: u32,
}

/// Time the chat engine's kernels, or a model.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct TimingWorkerArgs {
    /// How many types of weights
    #[arg(long, default_value_t = 0)]
    pub(crate) types: usize,
    /// The GGUF file, instead of kernels
    #[arg(long)]
    pub(crate) model: Option<PathBuf>,
    /// Tokens of the longer of two contexts
    #[arg(long, default_value_t = 1024)]
    pub(crate) context: u32,
}

pub(crate) fn run(args: &WorkerArgs) -> Outcome<Exit> {
    match &args.engine {
        Engine::Speech(args) => wire_up::work_speech(args)?,
        Engine::Chat(args) => wire_up::work_chat(args)?,
        Engine::Timing(args) => wire_up::work_timing(args)?,
    }
    Ok(Exit::Done)
}
