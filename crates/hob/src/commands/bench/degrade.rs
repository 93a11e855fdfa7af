//! `hob bench degrade`: what becomes of each user when there are many. Progress goes to stderr, the table to stdout.
//! Of one user there are as many blocks as of many, in turns with them; the table shows the first of those cells.

use clap::Args;
use hob_bench::degrade::{measure, said};
use hob_bench::record::{Kind, Record, Slowdown};
use hob_bench::terms::Metric;
use hob_bench::workbench::Workbench;

use super::campaign::{self, CampaignArgs, badge, off_by, users_of};
use super::crowd::{CrowdArgs, first_ms, thinking, together};
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::{Printer, table};

/// What becomes of each user when there are many: how many times as long each of them waits, and whether they are
/// served together or one after the other
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DegradeArgs {
    #[command(flatten)]
    pub(super) campaign: CampaignArgs,
    /// Users at once; one user is measured in turns with each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,3,4,8")]
    users: Vec<usize>,
    #[command(flatten)]
    crowd: CrowdArgs,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench degrade                    of the model that hob serve would load
  hob bench degrade --target http://127.0.0.1:8080 --users 2,3
  hob bench degrade --target http://127.0.0.1:11434 --model qwen3:8b --shape long_short --users 4
  hob bench degrade --speech --users 3   of its voice: the first sound of each

Times (×) are medians of pairs: a block of many against the block of one beside it. Scaling is what all of them
get together, against so many times what one gets alone; under 0.6 they queue.";

pub(crate) fn run(args: &DegradeArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let wish = args.crowd.wish(&args.users)?;
    if args.users.iter().all(|users| *users < 2) {
        return Err(Failure::usage("one user is compared with nobody").hint("such as --users 2,4"));
    }
    let work = move |bench: &mut Workbench<'_>| measure(bench, &wish);
    let aim = args.campaign.aim.settle_for(args.crowd.purpose(), globals, printer)?;
    campaign::run_at(&args.campaign, aim, (printer, Kind::Concurrency), work, shown)
}

impl DegradeArgs {
    /// The cell of this record alone; one user is in all of them.
    pub(super) fn only(&mut self, record: &Record) {
        if record.workload.concurrency != Some(1) {
            self.users = users_of(record, &self.users);
        }
    }
}

fn shown(records: &[Record]) -> String {
    let mut table = table([
        "users",
        "thinking",
        "first",
        "×",
        "95 %",
        "per token",
        "×",
        "together",
        "scaling",
        "errors",
        "client off by",
        "",
        "",
    ]);
    let mut alone = Vec::new();
    for record in records {
        let Some(degrade) = &record.slowdown else { continue };
        if degrade.n == 1 {
            if alone.contains(&record.workload.reasoning) {
                continue;
            }
            alone.push(record.workload.reasoning);
        }
        table.add_row(row(record, degrade));
    }
    table.trim_fmt()
}

fn row(record: &Record, degrade: &Slowdown) -> [String; 13] {
    let figure = |metric| record.metrics.figure(metric);
    let ms = |ms: Option<f64>| ms.map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
    let times = |times: Option<f64>| times.map_or(String::new(), |times| format!("{times:.2}×"));
    [
        degrade.n.to_string(),
        thinking(record),
        ms(first_ms(record)),
        times(degrade.ttft_x.or(degrade.ttfa_x)),
        degrade.ci95.map_or(String::new(), |[low, high]| format!("{low:.2}–{high:.2}")),
        ms(figure(Metric::TpotMs)),
        times(degrade.tpot_x),
        together(record),
        degrade.scaling.map_or(String::new(), |scaling| format!("{scaling:.2}")),
        record.metrics.errors.unwrap_or_default().to_string(),
        off_by(record),
        badge(record).to_owned(),
        degrade.scaling.map_or(String::new(), |scaling| said(scaling).to_owned()),
    ]
}
