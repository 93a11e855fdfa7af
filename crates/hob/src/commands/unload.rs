//! `hob unload`: unloads a model of a running hob.
//! Its answers in progress end. The next request loads it again.

use clap::Args;

use crate::app::App;
use crate::failure::{CliResult, Exit};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::running_server::ServerOption;
use crate::settings::Overrides;

/// Unload a model of a running hob
#[derive(Debug, Args)]
pub(crate) struct UnloadArgs {
    /// The model's name (`hob ps` lists them)
    model: String,
    #[command(flatten)]
    server: ServerOption,
}

pub(crate) fn run(args: &UnloadArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let app = App::open(globals, Overrides::default(), printer)?;
    args.server.ask(&app, async |remote| remote.unload(&args.model).await)?;
    printer.note(format_args!("{} is unloaded", args.model));
    Ok(Exit::Done)
}
