//! `hob unload`: unloads a model of a running hob.
//! Its answers in progress end. The next request loads it again.

use clap::Args;

use crate::app::{App, block_on};
use crate::commands::ps::{hinted, server};
use crate::failure::{Exit, Outcome};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::settings::Overrides;
use crate::signals::StopSignals;

/// Unload a model of a running hob
#[derive(Debug, Args)]
pub(crate) struct UnloadArgs {
    /// The model's name (`hob ps` lists them)
    model: String,
    /// Ask this server [default: the hob that runs on this machine]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

pub(crate) fn run(args: &UnloadArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let app = App::open(globals, Overrides::default(), printer)?;
    let remote = server(args.server.as_deref(), &app)?;
    let unloaded = block_on(async {
        let mut signals = StopSignals::listen()?;
        signals.or(remote.unload(&args.model)).await
    });
    hinted(unloaded, args.server.as_deref())?;
    printer.note(format_args!("{} is unloaded", args.model));
    Ok(Exit::Done)
}
