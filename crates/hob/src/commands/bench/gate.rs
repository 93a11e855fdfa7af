//! `hob bench gate`: whether something became slower, for a script to act on.
//! Its exit code says it: 0 nothing is proven, 1 it is, 8 nothing could be compared.

use std::path::PathBuf;

use clap::Args;
use hob_bench::compare::{GATED, Gate, GateVerdict, Noise, Wish, gate, has_direction};
use hob_bench::record::Shelf;
use hob_bench::terms::Metric;
use serde::Serialize;

use super::RECORDS;
use super::compare::threshold;
use super::comparison_table::{json, pick, shown};
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::Printer;

/// Fail if something became slower and that is proven
#[derive(Clone, Debug, Args)]
// As clap would write it, the base swallows what is judged.
#[command(after_help = AFTER_HELP, override_usage = "hob bench gate [OPTIONS] <NEW>... --against <BASE>...")]
pub(crate) struct GateArgs {
    /// What is judged: records' files, ids, ends of ids, or folders of records
    #[arg(required = true, value_name = "NEW")]
    new: Vec<String>,
    /// What it is held against
    #[arg(long, required = true, num_args = 1.., value_name = "BASE")]
    against: Vec<String>,
    /// The folder to look for ids in
    #[arg(long, default_value = RECORDS, value_name = "DIR")]
    records: PathBuf,
    /// The least difference that matters [default: 2 of paired runs, 5 of others]
    #[arg(long, value_name = "PCT", value_parser = threshold)]
    threshold: Option<f64>,
    /// Two records or more of one thing: what they differ by does not matter either
    #[arg(long, num_args = 2.., value_name = "RECORD")]
    noise: Vec<String>,
    /// Judge these figures, by their names in records, instead of those that a user waits for
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = figure)]
    figure: Vec<Metric>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench gate 0a91f3e7 --against 6b2d8c11
  hob bench gate bench/records/2026-12 --against bench/records/2026-11
  hob bench gate new/ --against base/ --noise 6b2d8c11 77f02c1d --threshold 3
  hob bench gate new/ --against base/ | tee gate.txt; tail -n 1 gate.txt >> \"$GITHUB_STEP_SUMMARY\"

Of several records, those are compared that have the same model and were asked the same.
It fails only where the 95 % interval of a difference leaves out 0 and the difference itself matters.
Exit codes: 0 nothing became slower for certain, 1 something did, 8 nothing could be compared.";

fn figure(name: &str) -> Result<Metric, String> {
    let metric = Metric::from_name(name.trim()).filter(|metric| has_direction(*metric));
    metric.ok_or_else(|| {
        let names = GATED.map(Metric::name).join(", ");
        format!("no figure with a better and a worse is called so; there are {names} and others")
    })
}

/// What `--json` prints.
#[derive(Serialize)]
struct GateJson<'a> {
    summary: String,
    #[serde(flatten)]
    gate: &'a Gate,
}

pub(crate) fn run(args: &GateArgs, printer: &Printer) -> Outcome<Exit> {
    let shelf = Shelf::new(&args.records);
    let (base, new) = (pick(&shelf, &args.against)?, pick(&shelf, &args.new)?);
    let not_same = |reason| Failure::usage(format!("--noise wants records of one thing: {reason}"));
    let noise = Noise::learned(&pick(&shelf, &args.noise)?).map_err(not_same)?;
    let wish = Wish { threshold_pct: args.threshold, noise };
    let figures = if args.figure.is_empty() { &GATED[..] } else { &args.figure };
    let gate = gate(&base, &new, figures, &wish);
    let summary = gate.summary();
    if args.json {
        json(&GateJson { summary, gate: &gate }, printer)?;
    } else {
        printer.data(table(&gate))?;
        printer.data(summary)?;
    }
    Ok(match gate.verdict {
        GateVerdict::Passed => Exit::Done,
        GateVerdict::Regressed => Exit::Regressed,
        GateVerdict::Incomparable => Exit::Incomparable,
    })
}

/// Cell by cell; the summary follows in a line of its own.
fn table(gate: &Gate) -> String {
    let cell = |cell: &hob_bench::compare::GatedCell| {
        format!("{}\n{}\n", cell.name, shown(&cell.comparison))
    };
    let cells = gate.cells.iter().map(cell);
    let left_out = gate.left_out.iter().map(|cell| format!("left out: {cell}"));
    cells.chain(left_out).collect::<Vec<_>>().join("\n")
}
