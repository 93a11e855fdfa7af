//! `hob bench batch`: what a machine gives when several ask together. Progress goes to stderr, the table to stdout.
//! A gain is said against one of them alone; how many times real time something is, is another figure.

use clap::Args;
use hob_bench::batch::{gain, measure};
use hob_bench::record::{Kind, Record};
use hob_bench::terms::Metric;
use hob_bench::workbench::Workbench;

use super::campaign::{self, CampaignArgs, badge, off_by, users_of};
use super::crowd::{CrowdArgs, first_ms, thinking, together};
use crate::failure::{Exit, Outcome};
use crate::globals::Globals;
use crate::printer::{Printer, table};

/// What a machine gives when several ask together: what all of them get, the gain over one, and the memory
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BatchArgs {
    #[command(flatten)]
    pub(super) campaign: CampaignArgs,
    /// Users at once
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8")]
    users: Vec<usize>,
    #[command(flatten)]
    crowd: CrowdArgs,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench batch                      of the model that hob serve would load
  hob bench batch --target http://127.0.0.1:8080 --users 1,16,32
  hob bench batch --speech long        of its voice: seconds of sound a second
  hob bench batch --target http://127.0.0.1:8080 --launch 'llama-server -m model.gguf --port 8080 -np 8'

Memory is known of a server that was started for this, and is that of so many users: it is started anew for each.
The gain is tokens a second, or seconds of sound, against those of one user, and therefore needs the 1 among the users.";

pub(crate) fn run(args: &BatchArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let wish = args.crowd.wish(&args.users)?;
    let work = move |bench: &mut Workbench<'_>| measure(bench, &wish);
    let aim = args.campaign.aim.settle_for(args.crowd.purpose(), globals, printer)?;
    campaign::run_at(&args.campaign, aim, (printer, Kind::Batch), work, shown)
}

impl BatchArgs {
    /// The cell of this record alone.
    pub(super) fn only(&mut self, record: &Record) {
        self.users = users_of(record, &self.users);
    }
}

fn shown(records: &[Record]) -> String {
    let mut table = table([
        "users",
        "thinking",
        "together",
        "gain",
        "first byte",
        "first",
        "per token",
        "memory",
        "errors",
        "client off by",
        "",
    ]);
    for record in records {
        let is_alone = |other: &&Record| {
            let (this, that) = (&record.workload, &other.workload);
            that.concurrency == Some(1) && that.reasoning == this.reasoning
        };
        let alone = records.iter().find(is_alone);
        table.add_row(row(record, alone.and_then(|alone| gain(alone, record))));
    }
    table.trim_fmt()
}

fn row(record: &Record, gain: Option<f64>) -> [String; 11] {
    let metrics = &record.metrics;
    let said = |ms: Option<f64>| ms.map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
    let memory = record.resources.memory_mb();
    [
        record.workload.concurrency.map_or(String::new(), |users| users.to_string()),
        thinking(record),
        together(record),
        gain.map_or("–".to_owned(), |gain| format!("{gain:.2}")),
        said(metrics.get(Metric::TtfbMs).and_then(|spread| spread.mean)),
        said(first_ms(record)),
        said(metrics.figure(Metric::TpotMs)),
        memory.map_or("–".to_owned(), |mb| format!("{mb:.0} MB")),
        metrics.errors.unwrap_or_default().to_string(),
        off_by(record),
        badge(record).to_owned(),
    ]
}
