//! `hob worker`, hidden: the process that holds one model. Started by a supervisor, never by hand.
//! A process of its own, so that what dies in an engine takes nothing else along.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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

pub(crate) fn run(args: &WorkerArgs) -> Outcome<Exit> {
    match &args.engine {
        Engine::Speech(args) => wire_up::work_speech(args)?,
    }
    Ok(Exit::Done)
}
