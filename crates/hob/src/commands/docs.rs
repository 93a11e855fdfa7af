//! `hob docs`, hidden: prints the reference pages that are generated from the types.
//! They are committed, and `cargo xtask docs --check` reports when they are out of date.

use clap::{Args, ValueEnum};

use crate::failure::{CliResult, Exit};
use crate::printer::Printer;
use crate::reference;

/// Print a reference page, generated from the types
#[derive(Debug, Args)]
pub(crate) struct DocsArgs {
    page: Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Page {
    Api,
    Cli,
    Config,
    Record,
    Plan,
}

pub(crate) fn run(args: &DocsArgs, command: clap::Command, printer: &Printer) -> CliResult<Exit> {
    let page = match args.page {
        Page::Api => reference::api::markdown(),
        Page::Cli => reference::cli_markdown(command),
        Page::Config => reference::config_markdown()?,
        Page::Record => reference::record::markdown(),
        Page::Plan => reference::record::plan_markdown(),
    };
    printer.data(page.trim_end())?;
    Ok(Exit::Done)
}
