//! `hob worker` (hidden): processes that hob starts itself, for one model, one measurement, or one command of an agent.
//! A crash ends only this process.

#[cfg(target_os = "linux")]
use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};
#[cfg(target_os = "linux")]
use hob_agents::builtin::{SandboxAccess, restrict_and_run, supervise};
#[cfg(target_os = "linux")]
use hob_agents::{SandboxMode, SandboxNetwork};

#[cfg(target_os = "linux")]
use crate::failure::Failure;
use crate::failure::{CliResult, Exit};
use crate::wire_up;
use crate::worker_args::{
    ChatWorkerArgs, DevicesWorkerArgs, DistanceWorkerArgs, QuantizeWorkerArgs, SpeechStudyArgs,
    SpeechWorkerArgs, TimingWorkerArgs, TranscriptionWorkerArgs,
};

/// Run one model, one measurement, or one command of an agent, for the hob that started this process
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
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
    Supervise(SuperviseCommand),
}

/// Restrict this process, then run an agent's command in it.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
struct RestrictArgs {
    /// A folder that the command may change
    #[arg(long)]
    workspace: PathBuf,
    /// Folder for the command's home and its `/tmp`
    #[arg(long)]
    temporary: PathBuf,
    /// Make the workspace read-only
    #[arg(long)]
    read_only: bool,
    /// Let the command use the network of this machine
    #[arg(long)]
    network: bool,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Run a command, and end all its processes with it.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
struct SuperviseCommand {
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &WorkerArgs) -> CliResult<Exit> {
    match &args.job {
        Job::Speech(args) => wire_up::work_speech(args)?,
        Job::Chat(args) => wire_up::work_chat(args)?,
        Job::Grammars => wire_up::work_grammars()?,
        Job::SpeechStudy(args) => wire_up::work_speech_study(args)?,
        Job::Hear(args) => wire_up::work_transcription(args)?,
        Job::Timing(args) => wire_up::work_timing(args)?,
        Job::Devices(args) => wire_up::work_devices(args)?,
        Job::Quantize(args) => wire_up::work_quantize(args)?,
        Job::Distance(args) => wire_up::work_distance(args)?,
        #[cfg(target_os = "linux")]
        Job::Restrict(args) => {
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
        Job::Supervise(SuperviseCommand { command }) => {
            return supervise(command).map(Exit::Command).map_err(Failure::internal);
        }
    }
    Ok(Exit::Done)
}
