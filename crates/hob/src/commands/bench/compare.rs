//! `hob bench compare`: compares records or two servers, figure by figure, with 95 % intervals.
//! With `--fail-on-regression` its exit code says whether something became worse, for scripts.

use std::path::PathBuf;

use clap::Args;
use hob_bench::compare::{
    CompareOptions, MetricSelection, NoiseFloor, ReportVerdict, SampledRecord, USER_FIGURES,
    has_direction, report,
};
use hob_bench::record::{Record, RecordStore, RunStatus};
use hob_bench::terms::Metric;

use super::RECORDS;
use super::record_report::{pick, report_table};
use super::two_servers::{self, TwoServersArgs};
use crate::app::App;
use crate::arguments::number;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::settings::Overrides;
use crate::signals::interrupted;

/// Compare runs or two servers, figure by figure: faster, slower, the same, or undecided
#[derive(Clone, Debug, Args)]
// clap's own usage line would suggest that --against takes NEW as well.
#[command(
    after_help = AFTER_HELP,
    override_usage = "hob bench compare [OPTIONS] <BASE> <NEW>\n       hob bench compare [OPTIONS] <NEW>... --against <BASE>..."
)]
pub(crate) struct CompareArgs {
    /// BASE and NEW: a record's file, its id, the end of its id, or a folder of records; or two servers by address or
    /// name, which are then measured alternately
    #[arg(required = true, value_name = "BASE NEW")]
    sides: Vec<String>,
    /// Records to compare with; the others are then all NEW
    #[arg(long, num_args = 1.., value_name = "BASE")]
    against: Vec<String>,
    /// Folder with the records, for sides that are ids
    #[arg(long, default_value = RECORDS, value_name = "FOLDER")]
    records: PathBuf,
    /// The least difference that matters [default: 2 for paired runs, 5 for others]
    #[arg(long, value_name = "PCT", value_parser = threshold)]
    threshold: Option<f64>,
    /// Two or more records of the same cell. A difference that is no larger than theirs does not matter
    #[arg(long, num_args = 2.., value_name = "RECORD")]
    noise: Vec<String>,
    /// Only these figures, by their names in records
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = figure)]
    figure: Vec<Metric>,
    /// Exit with code 1 if a figure certainly became worse. Without --figure, only figures that users wait for
    /// count
    #[arg(long)]
    fail_on_regression: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    two_servers: TwoServersArgs,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench compare 6b2d8c11 0a91f3e7
  hob bench compare before.yaml after.yaml --threshold 3
  hob bench compare bench/records/2026-11 bench/records/2026-12 --fail-on-regression
  hob bench compare new/ --against base/ --noise 6b2d8c11 77f02c1d --fail-on-regression
  hob bench compare http://127.0.0.1:8484 http://127.0.0.1:11434 --model-b qwen3:8b

Records of several cells are matched by model and workload. Runs of one campaign that took turns are
compared in pairs. All others were measured at different times, so a difference must be larger to
count. Exit codes: 0; 1 with --fail-on-regression if the 95 % interval of a figure shows that it
became worse; 8 if nothing could be compared.";

/// Parses percent, from 0 to 1000.
fn threshold(text: &str) -> Result<f64, String> {
    let suits = |percent: &f64| (0.0..=1000.0).contains(percent);
    number(text.trim_end_matches('%'), suits, "percent, from 0 to 1000")
}

fn figure(name: &str) -> Result<Metric, String> {
    let metric = Metric::from_name(name.trim()).filter(|metric| has_direction(*metric));
    metric.ok_or_else(|| {
        let names = USER_FIGURES.map(Metric::name).join(", ");
        format!("not a figure that can become worse (expected {names}, or another)")
    })
}

pub(crate) fn run(args: &CompareArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let (base, new) = args.sides()?;
    let app = App::open(globals, Overrides::default(), printer)?;
    let is_server = |side: &[String]| {
        side.iter().any(|one| one.contains("://") || app.written.config.upstream.contains_key(one))
    };
    match (is_server(base), is_server(new)) {
        (true, true) => {
            let ([base], [new]) = (base, new) else {
                return Err(Failure::usage("only two servers can be compared at a time"));
            };
            return args.compare_servers([base, new], (globals, printer));
        }
        (false, false) => args.two_servers.refuse()?,
        _ => return Err(Failure::usage("a server can only be compared with a server")),
    }
    let store = RecordStore::new(&args.records);
    args.print(&pick(&store, base)?, &pick(&store, new)?, printer)
}

/// `hob bench gate`: the older name of `hob bench compare --fail-on-regression`.
pub(crate) fn gate(args: &CompareArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    run(&CompareArgs { fail_on_regression: true, ..args.clone() }, globals, printer)
}

impl CompareArgs {
    fn sides(&self) -> CliResult<(&[String], &[String])> {
        match (&self.sides[..], &self.against[..]) {
            ([base, new], []) => Ok((std::slice::from_ref(base), std::slice::from_ref(new))),
            (_, []) => {
                Err(Failure::usage("expected BASE and NEW, or NEW... with --against BASE..."))
            }
            (new, base) => Ok((base, new)),
        }
    }

    /// Measures two servers alternately, and compares their records.
    fn compare_servers(
        &self,
        servers: [&String; 2],
        (globals, printer): (&Globals, &Printer),
    ) -> CliResult<Exit> {
        let measured =
            two_servers::measure(&self.two_servers, &self.records, servers, (globals, printer))?;
        let store = RecordStore::new(&self.records);
        let sampled = |record: &Record| pick(&store, &[record.id.to_string()]);
        let [base, new] = &measured;
        let exit = self.print(&sampled(base)?, &sampled(new)?, printer)?;
        exit_of_servers(&measured, exit)
    }

    /// Prints the report, and returns the exit code that follows from it.
    fn print(
        &self,
        base: &[SampledRecord],
        new: &[SampledRecord],
        printer: &Printer,
    ) -> CliResult<Exit> {
        let noise = pick(&RecordStore::new(&self.records), &self.noise)?;
        let noise = NoiseFloor::learned(&noise).map_err(|reason| {
            Failure::usage(format!("--noise expects records of the same cell: {reason}"))
        })?;
        let figures = match (&self.figure[..], self.fail_on_regression) {
            ([], false) => MetricSelection::All,
            ([], true) => MetricSelection::Only(USER_FIGURES.to_vec()),
            (figures, _) => MetricSelection::Only(figures.to_vec()),
        };
        let report = report(
            base,
            new,
            &CompareOptions {
                threshold_pct: self.threshold,
                noise,
                figures,
                requires_same_machine: self.fail_on_regression,
            },
        );
        printer.report(self.json, &report, || {
            format!("{}\n{}", report_table(&report), report.summary)
        })?;
        let has_refusal = report.cells.iter().any(|cell| !cell.comparison.refusals.is_empty());
        let has_figure = report.cells.iter().any(|cell| !cell.comparison.figures.is_empty());
        Ok(match report.verdict {
            ReportVerdict::Regressed if self.fail_on_regression => Exit::Regressed,
            // Without the flag, undecided figures are a result.
            ReportVerdict::Incomparable
                if self.fail_on_regression || has_refusal || !has_figure =>
            {
                Exit::Incomparable
            }
            _ => Exit::Done,
        })
    }
}

/// The exit after two servers were measured and the report was printed; `compared` is that of the report.
fn exit_of_servers(measured: &[Record], compared: Exit) -> CliResult<Exit> {
    if measured.iter().any(|record| record.status == RunStatus::Aborted) {
        return Err(interrupted().hint("finished records are stored"));
    }
    match measured.iter().find_map(|record| record.invalid_reasons.first()) {
        Some(reason) => Err(Failure::server(format!("this is not a valid measurement: {reason}"))),
        None => Ok(compared),
    }
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{RecordKind, RecordSource};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn servers_that_were_not_compared_do_not_end_well() {
        let fine = Record::new(Uuid::nil(), RecordKind::Llm, RecordSource::default());
        let stopped = Record { status: RunStatus::Aborted, ..fine.clone() };
        let failed = Record { invalid_reasons: vec!["it failed".to_owned()], ..fine.clone() };
        let exit = |new: &Record, compared| {
            exit_of_servers(&[fine.clone(), new.clone()], compared)
                .unwrap_or_else(|failure| failure.exit)
        };
        for compared in [Exit::Done, Exit::Incomparable, Exit::Regressed] {
            assert_eq!(exit(&fine, compared), compared);
            assert_eq!(exit(&stopped, compared), Exit::Interrupted);
            assert_eq!(exit(&failed, compared), Exit::Server);
        }
    }
}
