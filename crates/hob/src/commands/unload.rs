//! `hob unload`: unloads a model of a running hob.
//! Its answers in progress end, unless the key is for some names only. The next request loads it again.

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
    let model = args.server.ask(app, async |remote| remote.unload(&args.model).await)?;
    let stays = model.state == "warm";
    let when = if stays { "will be unloaded after its answers" } else { "is unloaded" };
    app.printer.note(format_args!("{} {when}", args.model));
    Ok(Exit::Done)
}
