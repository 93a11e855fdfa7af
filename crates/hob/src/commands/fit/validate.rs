//! `hob fit validate`: predicts every published run, and prints the errors to stdout.
//! Constants come from other rows only, so no row predicts itself.

mod ceilings;
mod classes;

use clap::Args;
use hob_core::fit::{Rate, TimedRun, error_pct, fit_constants, from_one, left_out, predicted_by};
use hob_core::machine::Basis;
use hob_core::statistics::Sample;
use serde::Serialize;

use self::ceilings::Ceiling;
use self::classes::Class;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Column, Printer, narrow, rows};
use crate::published::{MeasuredRate, PublishedRun, RunGroup, predictable_runs, published_records};

/// Wider columns wrap.
const MACHINE_CHARS: u16 = 17;
const RUN_CHARS: u16 = 27;

/// Predict every published run, and print the errors
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// One published run and its prediction.
#[derive(Clone, Debug, Serialize)]
struct Prediction {
    machine: String,
    what: String,
    part: &'static str,
    context_tokens: u32,
    /// Tokens per second: one figure, or a range.
    measured: [Option<f64>; 2],
    /// Prediction with the prior of the device's class.
    prior: Option<f64>,
    /// Prediction with constants fitted to the other rows of the machine.
    predicted: Option<f64>,
    /// Error of that prediction; 0 within a range.
    error_pct: Option<f64>,
}

/// Errors of a machine's rows.
#[derive(Clone, Debug, Serialize)]
struct Summary {
    machine: String,
    part: &'static str,
    rows: usize,
    /// Mean and largest error, each row predicted from the others.
    left_out_pct: Option<f64>,
    worst_pct: Option<f64>,
    /// Mean error over all choices of the one row that predicts all others.
    one_row_pct: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    lines: Vec<Prediction>,
    ceilings: Vec<Ceiling>,
    summaries: Vec<Summary>,
    /// Errors of the priors, by class of device.
    classes: Vec<Class>,
    /// Published runs that cannot be predicted, and why.
    left_out: Vec<String>,
}

pub(super) fn run(args: &ValidateArgs, printer: &Printer) -> CliResult<Exit> {
    let report = report()?;
    if args.json {
        printer.json(&report)?;
        return Ok(Exit::Done);
    }
    printer.data(report_text(&report))?;
    report.left_out.iter().for_each(|why| printer.faint(why));
    Ok(Exit::Done)
}

fn report() -> CliResult<Report> {
    let records = published_records()?;
    let (published, left_out) = predictable_runs(&records);
    let (ceilings, unpredicted) = ceilings::ceilings(&records);
    let mut machines: Vec<&str> = published.iter().map(|row| row.machine.name.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    let mut report = Report {
        lines: Vec::new(),
        ceilings,
        summaries: Vec::new(),
        classes: classes::classes().map_err(Failure::internal)?,
        left_out: left_out.into_iter().chain(unpredicted).collect(),
    };
    for machine in machines {
        let here: Vec<&PublishedRun> =
            published.iter().filter(|row| row.machine.name == machine).collect();
        of_machine(&here, &mut report);
    }
    Ok(report)
}

/// Rows on one device are predicted from each other; other rows of the machine from all of these.
fn of_machine(here: &[&PublishedRun], report: &mut Report) {
    let (fitting, others): (Vec<&PublishedRun>, Vec<&PublishedRun>) =
        here.iter().partition(|row| row.group == RunGroup::Decode && row.is_exact());
    let timed: Vec<TimedRun<'_>> = fitting.iter().filter_map(|row| row.timed_run()).collect();
    let rates = left_out(&timed);
    let constants = fit_constants(&timed).ok();
    let by_all = |row: &&PublishedRun| predicted_by(&row.timed_run()?, constants.as_ref()?);
    let mut lines: Vec<Prediction> =
        fitting.iter().zip(&rates).map(|(row, rate)| line(row, rate.as_ref())).collect();
    lines.extend(others.iter().map(|row| line(row, by_all(row).as_ref())));
    lines.sort_by_key(|line| RunGroup::ALL.iter().position(|part| part.name() == line.part));
    for part in RunGroup::ALL {
        let one_row = Sample::new(from_one(&timed).into_iter().flatten()).mean();
        let of_part: Vec<&Prediction> =
            lines.iter().filter(|line| line.part == part.name()).collect();
        report.summaries.extend(summary(&of_part, one_row.filter(|_| part == RunGroup::Decode)));
    }
    report.lines.extend(lines);
}

fn line(row: &PublishedRun, rates: Option<&Rate>) -> Prediction {
    let predicted = rates.map(|rate| rate.tok_s);
    let prior = row.timed_run().and_then(|timed| timed.estimate.decode(timed.context_tokens));
    Prediction {
        machine: row.machine.name.clone(),
        what: row.label.clone(),
        part: row.group.name(),
        context_tokens: row.context_tokens,
        measured: row.measured.bounds(),
        prior: prior.filter(|rate| rate.basis != Basis::Calibrated).map(|rate| rate.tok_s),
        predicted,
        error_pct: predicted.map(|tok_s| off(tok_s, row.measured)),
    }
}

fn off(tok_s: f64, measured: MeasuredRate) -> f64 {
    match measured.bounds() {
        [Some(low), _] if tok_s < low => error_pct(tok_s, low),
        [_, Some(high)] if tok_s > high => error_pct(tok_s, high),
        _ => 0.0,
    }
}

fn summary(lines: &[&Prediction], one_row_pct: Option<f64>) -> Option<Summary> {
    let first = lines.first()?;
    let errors = || lines.iter().filter_map(|line| line.error_pct.map(f64::abs));
    Some(Summary {
        machine: first.machine.clone(),
        part: first.part,
        rows: lines.len(),
        left_out_pct: Sample::new(errors()).mean(),
        worst_pct: errors().reduce(f64::max),
        one_row_pct,
    })
}

fn report_text(report: &Report) -> String {
    let number =
        |figure: Option<f64>| figure.map_or("?".to_owned(), |figure| format!("{figure:.1}"));
    let signed =
        |figure: Option<f64>| figure.map_or("?".to_owned(), |figure| format!("{figure:+.1} %"));
    let lines: &[Column<'_, Prediction>] = &[
        ("machine", &|line| line.machine.clone()),
        ("run", &|line| line.what.clone()),
        ("context", &|line| line.context_tokens.to_string()),
        ("measured", &|line| match line.measured {
            [Some(low), Some(high)] if low == high => number(Some(low)),
            [low, high] => format!("{} to {}", number(low), number(high)),
        }),
        ("predicted", &|line| number(line.predicted)),
        ("off by", &|line| match line.error_pct {
            Some(0.0) => "within".to_owned(),
            error_pct => signed(error_pct),
        }),
        ("prior", &|line| number(line.prior)),
    ];
    let sums: &[Column<'_, Summary>] = &[
        ("machine", &|sum| sum.machine.clone()),
        ("part", &|sum| sum.part.to_owned()),
        ("rows", &|sum| sum.rows.to_string()),
        ("off by, mean", &|sum| number(sum.left_out_pct) + " %"),
        ("worst", &|sum| number(sum.worst_pct) + " %"),
        ("from one row, mean", &|sum| {
            sum.one_row_pct.map_or(String::new(), |pct| number(Some(pct)) + " %")
        }),
    ];
    let longest: &[Column<'_, Ceiling>] = &[
        ("machine", &|ceiling| ceiling.machine.clone()),
        ("longest context", &|ceiling| ceiling.what.clone()),
        ("measured", &|ceiling| ceiling.measured.to_string()),
        ("predicted", &|ceiling| {
            ceiling.predicted.map_or("none".to_owned(), |tokens| tokens.to_string())
        }),
        ("pages of 256 off", &|ceiling| {
            ceiling.pages_off.map_or("?".to_owned(), |pages| format!("{pages:+}"))
        }),
    ];
    let mut lines = rows(lines, &report.lines);
    let mut sums = rows(sums, &report.summaries);
    let mut longest = rows(longest, &report.ceilings);
    for table in [&mut lines, &mut longest] {
        narrow(table, [(0, MACHINE_CHARS), (1, RUN_CHARS)]);
    }
    narrow(&mut sums, [(0, MACHINE_CHARS)]);
    let classes = classes::class_table(&report.classes);
    [lines.trim_fmt(), sums.trim_fmt(), longest.trim_fmt(), classes].join("\n\n")
}

#[cfg(test)]
mod tests;
