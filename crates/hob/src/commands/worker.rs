//! `hob worker` (hidden): the process of one model. A supervisor starts it.
//! A crash of an engine ends only this process.

use clap::{Args, Subcommand};

use crate::failure::{CliResult, Exit};
use crate::wire_up;
use crate::worker_args::{
    ChatWorkerArgs, SpeechWorkerArgs, TimingWorkerArgs, TranscriptionWorkerArgs,
};

/// Run one model in this process, for the hob that started it
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    engine: Engine,
}

#[derive(Debug, Subcommand)]
enum Engine {
    Speech(SpeechWorkerArgs),
    Chat(ChatWorkerArgs),
    Hear(TranscriptionWorkerArgs),
    Timing(TimingWorkerArgs),
}

pub(crate) fn run(args: &WorkerArgs) -> CliResult<Exit> {
    match &args.engine {
        Engine::Speech(args) => wire_up::work_speech(args)?,
        Engine::Chat(args) => wire_up::work_chat(args)?,
        Engine::Hear(args) => wire_up::work_transcription(args)?,
        Engine::Timing(args) => wire_up::work_timing(args)?,
    }
    Ok(Exit::Done)
}
