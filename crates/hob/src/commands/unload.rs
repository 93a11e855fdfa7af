//! `hob unload`: unloads a model of a running hob.
//! Its answers in progress end. The next request loads it again.

use clap::Args;

use crate::app::App;
use crate::failure::{CliResult, Exit};
use crate::running_server::ServerOption;

/// Unload a model of a running hob
#[derive(Debug, Args)]
pub(crate) struct UnloadArgs {
    /// The model's name (`hob ps` lists them)
    model: String,
    #[command(flatten)]
    server: ServerOption,
}

pub(crate) fn run(args: &UnloadArgs, app: &App<'_>) -> CliResult<Exit> {
    args.server.ask(app, async |remote| remote.unload(&args.model).await)?;
    app.printer.note(format_args!("{} is unloaded", args.model));
    Ok(Exit::Done)
}
