//! `hob worker` (hidden): the process of one model. A supervisor starts it.
//! A crash of an engine ends only this process.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
#[cfg(target_os = "linux")]
use hob_agents::builtin::{SandboxAccess, restrict_and_run, supervise};
#[cfg(target_os = "linux")]
use hob_agents::{SandboxMode, SandboxNetwork};

use crate::failure::{CliResult, Exit, Failure};
use crate::wire_up;
use crate::worker_args::{
    ChatWorkerArgs, DevicesWorkerArgs, DistanceWorkerArgs, QuantizeWorkerArgs, SpeechStudyArgs,
    SpeechWorkerArgs, TimingWorkerArgs, TranscriptionWorkerArgs,
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
    /// Try the grammars of a chat worker.
    Grammars,
    SpeechStudy(SpeechStudyArgs),
    Hear(TranscriptionWorkerArgs),
    Timing(TimingWorkerArgs),
    Devices(DevicesWorkerArgs),
    Quantize(QuantizeWorkerArgs),
    Distance(DistanceWorkerArgs),
    #[cfg(target_os = "linux")]
    Restrict(RestrictArgs),
    #[cfg(target_os = "linux")]
    Supervise(SuperviseArgs),
}

/// Give up rights, and become the command of an agent.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
struct RestrictArgs {
    /// A folder that the command may change
    #[arg(long)]
    workspace: PathBuf,
    /// Its home and its `/tmp`
    #[arg(long)]
    temporary: PathBuf,
    /// It may not change the workspace
    #[arg(long)]
    read_only: bool,
    /// It has the network of this machine
    #[arg(long)]
    network: bool,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Run a command, and end all its processes with it.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
struct SuperviseArgs {
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &WorkerArgs) -> CliResult<Exit> {
    match &args.engine {
        Engine::Speech(args) => wire_up::work_speech(args)?,
        Engine::Chat(args) => wire_up::work_chat(args)?,
        Engine::Grammars => wire_up::work_grammars()?,
        Engine::SpeechStudy(args) => wire_up::work_speech_study(args)?,
        Engine::Hear(args) => wire_up::work_transcription(args)?,
        Engine::Timing(args) => wire_up::work_timing(args)?,
        Engine::Devices(args) => wire_up::work_devices(args)?,
        Engine::Quantize(args) => wire_up::work_quantize(args)?,
        Engine::Distance(args) => wire_up::work_distance(args)?,
        #[cfg(target_os = "linux")]
        Engine::Restrict(args) => {
            let mode = match args.read_only {
                true => SandboxMode::ReadOnly,
                false => SandboxMode::WorkspaceWrite,
            };
            let network = match args.network {
                true => SandboxNetwork::On,
                false => SandboxNetwork::Off,
            };
            let (access, command) = (SandboxAccess { mode, network }, &args.command);
            let reason = restrict_and_run(&args.workspace, &args.temporary, access, command);
            return Err(Failure::internal(reason));
        }
        #[cfg(target_os = "linux")]
        Engine::Supervise(SuperviseArgs { command }) => {
            return supervise(command).map(Exit::Command).map_err(Failure::internal);
        }
    }
    Ok(Exit::Done)
}
