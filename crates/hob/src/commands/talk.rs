//! `hob talk`: a spoken conversation with the models of a running server.
//! This file reads the options; `talking` does the rest.

use std::path::PathBuf;

use clap::Args;

use crate::app::{App, block_on};
use crate::failure::{CliResult, Exit};
use crate::running_server::ServerOption;
use crate::signals::StopSignals;
use crate::talking::{Conversation, SoundDevices, TalkOptions};

/// Speak with a model, and hear its answers
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TalkArgs {
    /// The chat model: a name that `hob models` lists [default: the server's]
    #[arg(short, long)]
    model: Option<String>,
    #[command(flatten)]
    options: TalkOptions,
    /// Send this sound file instead of the microphone's sound, and end after the answer
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Write the answers to this WAV file instead of playing them, with the pauses between them; at most 10 minutes
    #[arg(short, long, value_name = "FILE.wav")]
    output: Option<PathBuf>,
    #[command(flatten)]
    server: ServerOption,
}

const AFTER_HELP: &str = "\
Examples:
  hob talk
  hob talk --headphones -v af_heart
  hob talk -i question.wav -o answer.wav
  hob talk --server http://nas:8484 -m qwen3

Ctrl-C stops an answer; while none plays, it ends the conversation. Without --headphones the
microphone is off while an answer plays, so that hob does not hear itself.";

pub(crate) fn run(args: &TalkArgs, app: &App<'_>) -> CliResult<Exit> {
    let talked = block_on(async {
        let mut signals = StopSignals::listen()?;
        let remote = args.server.remote(app)?;
        let opening = async {
            let path = &app.environment.path;
            let (input, output) = (args.input.as_deref(), args.output.as_deref());
            let devices = SoundDevices::open(input, output, path)?;
            let loading = app.printer.spinner("loading the server's models");
            let socket = remote.realtime(args.model.as_deref()).await?;
            let options = args.options.clone();
            let begun = Conversation::begin(socket, &remote, options, devices, app.printer).await;
            loading.finish_and_clear();
            begun
        };
        let conversation = signals.or(opening).await?;
        conversation.run(&mut signals).await
    });
    talked.map_err(|failure| args.server.explained(failure))
}
