//! `hob worker`, hidden: the process that holds one model. Started by a supervisor, never by hand.
//! A process of its own, so that what dies in an engine takes nothing else along.

use clap::{Args, Subcommand};

use crate::failure::{Exit, Outcome};
use crate::wire_up;
use crate::worker_args::{ChatWorkerArgs, SpeechWorkerArgs, TimingWorkerArgs};

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

pub(crate) fn run(args: &WorkerArgs) -> Outcome<Exit> {
    match &args.engine {
        Engine::Speech(args) => wire_up::work_speech(args)?,
        Engine::Chat(args) => wire_up::work_chat(args)?,
        Engine::Timing(args) => wire_up::work_timing(args)?,
    }
    Ok(Exit::Done)
}
