//! `hob site build`: writes all records as a folder of static files, which work from disk and without a network.
//! With the request log, the page shows how long real requests waited, next to the figures of the bench.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hob_bench::site::{self, PublishedRuns};

use super::bench::{PLANS, RECORDS};
use crate::app::App;
use crate::benchmarks::material;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::{Printer, count_text};
use crate::settings::Overrides;

/// Make a page of benchmark results
#[derive(Debug, Args)]
pub(crate) struct SiteArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Build(BuildArgs),
}

/// Write the page as static files; open index.html from disk or from any server
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
struct BuildArgs {
    /// Folder of records
    #[arg(long, default_value = RECORDS, value_name = "FOLDER")]
    records: PathBuf,
    /// Folder of plans; the page lists their cells that are not measured yet
    #[arg(long, default_value = PLANS, value_name = "FOLDER")]
    plans: PathBuf,
    /// Request log, for the waits of real requests [default: the one of this machine]
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Leave out the request log
    #[arg(long, conflicts_with = "ledger")]
    without_ledger: bool,
    /// Leave out published results of others
    #[arg(long)]
    without_published: bool,
    /// Folder to write
    #[arg(long, default_value = "site", value_name = "FOLDER")]
    out: PathBuf,
}

const AFTER_HELP: &str = "\
Examples:
  hob site build --out site && xdg-open site/index.html
  hob site build --records ~/runs --without-ledger

`hob serve` has the same page at /benchmarks, from the folder of its --records.
The page names each file that is not a valid record.";

pub(crate) fn run(args: &SiteArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let Verb::Build(args) = &args.verb;
    let app = App::open(globals, Overrides::default(), printer)?;
    let ledger = match (&args.ledger, args.without_ledger) {
        (Some(file), _) if !file.exists() => {
            return Err(Failure::usage(format!(
                "{}: the request log does not exist",
                file.display()
            )));
        }
        (Some(file), _) => Some(file.clone()),
        (None, true) => None,
        (None, false) => Some(app.settings.ledger_file()),
    };
    let published =
        if args.without_published { PublishedRuns::LeftOut } else { PublishedRuns::Shown };
    let mut material =
        material(&args.records, ledger.as_deref(), published).map_err(Failure::internal)?;
    material.queue(&args.plans);
    for reason in &material.skipped {
        printer.note(format_args!("left out: {reason}"));
    }
    let files = site::build(&material);
    site::write(&args.out, &files)
        .map_err(|error| Failure::io("the page cannot be written", &error))?;
    let index = args.out.join("index.html");
    let runs = count_text(material.records.len(), "run");
    printer.data(format_args!("{runs}, {} files: {}", files.len(), index.display()))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use hob_bench::families::family_of_model;
    use hob_models::known::KNOWN;

    /// The page lists the latest families first.
    #[test]
    fn every_known_model_has_a_family_that_is_no_younger() {
        for known in KNOWN.iter() {
            let family = family_of_model(&known.name);
            let released = family.and_then(|family| family.released).map(|at| at.replace('-', ""));
            let released = released.and_then(|at| at.parse::<u32>().ok());
            let is_known = released.is_some_and(|released| released <= known.released);
            assert!(is_known, "{}: {family:?}", known.name);
        }
    }
}
