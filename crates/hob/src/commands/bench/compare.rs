//! `hob bench compare`: two runs that were kept, figure by figure, with how sure the difference is.
//! What may not be compared is refused with its reason, and what was measured apart is called so.

use std::path::PathBuf;

use clap::Args;
use hob_bench::compare::{Noise, Wish, compare};
use hob_bench::record::Shelf;

use super::RECORDS;
use super::compared::{json, pick, shown};
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::Printer;

/// Compare two runs, figure by figure: faster, slower, the same, or not to be told
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CompareArgs {
    /// What is compared with: a record's file, its id, the end of its id, or a folder of records of one thing
    #[arg(value_name = "A")]
    base: String,
    /// What is compared
    #[arg(value_name = "B")]
    new: String,
    /// The folder to look for ids in
    #[arg(long, default_value = RECORDS, value_name = "DIR")]
    records: PathBuf,
    /// The least difference that matters [default: 2 of paired runs, 5 of others]
    #[arg(long, value_name = "PCT", value_parser = threshold)]
    threshold: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench compare 6b2d8c11 0a91f3e7
  hob bench compare before.yaml after.yaml --threshold 3

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

pub(crate) fn run(args: &CompareArgs, printer: &Printer) -> Outcome<Exit> {
    let shelf = Shelf::new(&args.records);
    let base = pick(&shelf, std::slice::from_ref(&args.base))?;
    let new = pick(&shelf, std::slice::from_ref(&args.new))?;
    let wish = Wish { threshold_pct: args.threshold, noise: Noise::default() };
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
