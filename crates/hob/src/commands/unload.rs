//! `hob unload`: takes a model out of a running hob's memory.
//! What it was doing ends; the next request for it loads it again.

use clap::Args;

use crate::app::{App, block_on};
use crate::commands::ps::{hinted, server};
use crate::failure::{Exit, Outcome};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::settings::Overrides;
use crate::signals::StopSignals;

/// Take a model out of a running hob's memory
#[derive(Debug, Args)]
pub(crate) struct UnloadArgs {
    /// Which model (`hob ps` lists them)
    model: String,
    /// Ask this server, instead of the one that runs here
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
    printer.note(format_args!("{} is not in memory any more", args.model));
    Ok(Exit::Done)
}
