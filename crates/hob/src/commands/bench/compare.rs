//! `hob bench compare`: two runs that were kept, or two servers, figure by figure, with how sure the difference is.
//! What may not be compared is refused with its reason, and what was measured apart is called so.

use std::path::PathBuf;

use clap::Args;
use hob_bench::compare::{Wish, compare};
use hob_bench::record::Shelf;

use super::RECORDS;
use super::comparison_table::{json, pick, shown};
use super::two_servers::{self, TwoServersArgs};
use crate::app::App;
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::settings::Overrides;

/// Compare two runs or two servers, figure by figure: faster, slower, the same, or not to be told
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CompareArgs {
    /// What is compared with: a record's file, its id, the end of its id, or a folder of records of one thing; or a
    /// server's address or name, which is then measured in turns with B
    #[arg(value_name = "A")]
    pub(super) base: String,
    /// What is compared
    #[arg(value_name = "B")]
    pub(super) new: String,
    /// The folder to look for ids in
    #[arg(long, default_value = RECORDS, value_name = "DIR")]
    pub(super) records: PathBuf,
    /// The least difference that matters [default: 2 of paired runs, 5 of others]
    #[arg(long, value_name = "PCT", value_parser = threshold)]
    pub(super) threshold: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) two_servers: TwoServersArgs,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench compare 6b2d8c11 0a91f3e7
  hob bench compare before.yaml after.yaml --threshold 3
  hob bench compare http://127.0.0.1:8484 http://127.0.0.1:11434 --model-b qwen3:8b

Runs of one campaign that took turns are compared in pairs. All others were measured apart: whatever
else changed on the machine is in the difference too, so a smaller one is not believed.
The exit code is 8 where nothing may be compared.";

/// Percent, from 0 to 1000.
pub(crate) fn threshold(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    percent
        .filter(|percent| (0.0..=1000.0).contains(percent))
        .ok_or_else(|| "percent, from 0 to 1000".to_owned())
}

pub(crate) fn run(args: &CompareArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let app = App::open(globals, Overrides::default(), printer)?;
    let is_server =
        |said: &str| said.contains("://") || app.written.config.upstream.contains_key(said);
    match (is_server(&args.base), is_server(&args.new)) {
        (true, true) => return two_servers::run(args, globals, printer),
        (false, false) => {}
        _ => {
            return Err(Failure::usage(
                "a server is compared with a server, and a record with a record",
            ));
        }
    }
    let shelf = Shelf::new(&args.records);
    let base = pick(&shelf, std::slice::from_ref(&args.base))?;
    let new = pick(&shelf, std::slice::from_ref(&args.new))?;
    let wish = Wish::of(args.threshold);
    let comparison = compare(&base, &new, &wish);
    if args.json {
        json(&comparison, printer)?;
    } else {
        printer.data(shown(&comparison))?;
    }
    match comparison.refusals.first() {
        Some(_) => Ok(Exit::Incomparable),
        None if comparison.figures.is_empty() => {
            Err(Failure::new(Exit::Incomparable, "they have no figure in common"))
        }
        None => Ok(Exit::Done),
    }
}
