//! `hob bench llm`: how fast a server writes. Progress goes to stderr, the table to stdout.
//! Each cell is a record as soon as it is done; what Ctrl-C leaves is kept, as far as it is whole.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use hob_bench::drive::{CONNECTIONS_MAX, Patience};
use hob_bench::host::{host, noise};
use hob_bench::llm::{
    Cell, Context, Lab, LlmError, Prompts, SHAPES, Shape, Step, Summary, Thinking, ThinkingWish,
    Wish, summary,
};
use hob_bench::record::{Host, Label, Record};
use hob_bench::target::Target;
use hob_bench::terms::Metric;
use jiff::Timestamp;

use super::RECORDS;
use super::aim::AimArgs;
use super::campaign::{keep, stoppable};
use crate::cli::Globals;
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::{Printer, table};
use crate::signals::interrupted;

/// How fast a server writes: four shapes of prompts, by one user and by four, with thinking and without
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LlmArgs {
    #[command(flatten)]
    aim: AimArgs,
    /// Shapes of prompt and answer
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = shape,
        default_value = "short_short,long_short,short_long,agentic")]
    shape: Vec<Shape>,
    /// Users at once; each waits for its answer
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4")]
    users: Vec<usize>,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_enum, default_value_t = ThinkingName::Auto)]
    thinking: ThinkingName,
    /// Ask the same prompt again and again, to measure what the cache is worth
    #[arg(long)]
    cached: bool,
    /// The fewest runs of a cell; an interval needs six
    #[arg(long, value_name = "N", default_value_t = 6)]
    runs_min: usize,
    /// The most runs of a cell
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs_max: usize,
    /// Requests of each user in a run
    #[arg(long, value_name = "N", default_value_t = 2)]
    rounds: usize,
    /// A cell that takes longer ends with the runs that it has
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    budget_s: u64,
    /// A server that says nothing for so long has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    silence_s: u64,
    /// For the same prompts again; otherwise they are new each time, so that no cache knows them
    #[arg(long)]
    seed: Option<u64>,
    /// Where records are kept
    #[arg(long, value_name = "FOLDER", default_value = RECORDS)]
    out: PathBuf,
    /// Print the records as JSON, one a line
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Shapes, as tokens of prompt and answer: short_short 64/128, long_short 8192/128, short_long 64/1024,
agentic 2048/512 with six tools; and the questions quick_word, quick_reasoning, quick_coding.

Examples:
  hob bench llm --target http://127.0.0.1:8484
  hob bench llm --target http://127.0.0.1:11434 --model qwen3:8b --shape short_short --users 1,4,8
  hob bench llm --target https://example.org --key-env SOME_KEY --thinking off";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ThinkingName {
    Auto,
    On,
    Off,
}

fn shape(name: &str) -> Result<Shape, String> {
    let known = SHAPES.map(|shape| shape.name).join(", ");
    Shape::named(name.trim()).ok_or_else(|| format!("there are {known}"))
}

pub(crate) fn run(args: &LlmArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let wish = args.wish()?;
    let target = args.aim.find(globals, printer)?;
    let (printer, out, is_json) = (*printer, args.out.clone(), args.json);
    let campaign = Campaign { target, wish, printer, out };
    let (records, was_stopped) = stoppable(move |stop| campaign.run(stop))?;
    if is_json {
        for record in &records {
            let line = serde_json::to_string(record);
            printer.data(line.map_err(|error| Failure::new(Exit::Internal, error))?)?;
        }
    } else {
        printer.data(shown(&records))?;
        doubts(&records, &printer);
    }
    if was_stopped {
        return Err(interrupted().hint("what was done is kept"));
    }
    match records.iter().find(|record| !record.invalid_reasons.is_empty()) {
        Some(record) => Err(Failure::new(Exit::Server, refusal(record, records.len()))
            .hint("the records say of each run why it is no measurement")),
        None => Ok(Exit::Done),
    }
}

fn refusal(record: &Record, all: usize) -> String {
    let reason = record.invalid_reasons.first().map_or("", String::as_str);
    let shape = record.workload.shape.as_deref().unwrap_or_default();
    match all {
        1 => format!("this is no measurement: {reason}"),
        _ => format!("not all of this is a measurement; {shape}: {reason}"),
    }
}

impl LlmArgs {
    fn wish(&self) -> Outcome<Wish> {
        let is_possible = |users: &usize| (1..=CONNECTIONS_MAX).contains(users);
        if !self.users.iter().all(is_possible) {
            return Err(Failure::usage(format!("from 1 to {CONNECTIONS_MAX} users are possible")));
        }
        if self.runs_min == 0 || self.rounds == 0 || self.runs_max < self.runs_min {
            return Err(Failure::usage("there has to be a run, and --runs-max is the larger one"));
        }
        Ok(Wish {
            shapes: self.shape.clone(),
            users: self.users.clone(),
            thinking: match self.thinking {
                ThinkingName::Auto => ThinkingWish::Auto,
                ThinkingName::On => ThinkingWish::On,
                ThinkingName::Off => ThinkingWish::Off,
            },
            prompts: if self.cached { Prompts::Cached } else { Prompts::Cold },
            runs_min: self.runs_min,
            runs_max: self.runs_max,
            half_width_pct: 2.5,
            rounds: self.rounds,
            cell_budget: Duration::from_secs(self.budget_s),
            seed: self.seed.unwrap_or_else(new_seed),
            patience: Patience {
                silence: Duration::from_secs(self.silence_s),
                ..Patience::default()
            },
        })
    }
}

/// Another in each campaign: a server that knows the prompts already would seem many times faster.
fn new_seed() -> u64 {
    Timestamp::now().as_nanosecond() as u64 & 0xFFFF_FFFF
}

#[derive(Debug)]
struct Campaign {
    target: Target,
    wish: Wish,
    printer: Printer,
    out: PathBuf,
}

impl Campaign {
    /// The records, and whether somebody stopped it.
    fn run(self, stop: &AtomicBool) -> Outcome<(Vec<Record>, bool)> {
        let Campaign { target, wish, printer, out } = &self;
        let mut lab = Lab::prepare(target, wish, stop).map_err(failure)?;
        let machine = host();
        let cells = lab.cells();
        let mut records = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let name = format!("{}/{} {}", number + 1, cells.len(), named(cell));
            let started = Timestamp::now();
            let mut begun = Instant::now();
            let run = lab.run(*cell, |step| {
                // From here on it is runs that take time.
                if matches!(step, Step::Calibrated(_)) {
                    begun = Instant::now();
                }
                printer.faint(told(&name, step, wish, begun));
            });
            let run = run.map_err(failure)?;
            if run.blocks.is_empty() {
                break;
            }
            let host = Host { noise: noise(), ..machine.clone() };
            // Where the binary lies is this machine's affair.
            let argv = ["hob".to_owned()].into_iter().chain(std::env::args().skip(1)).collect();
            let ended = Timestamp::now();
            let context = Context { target, host, argv, seed: wish.seed, started, ended };
            let Summary { record, samples } = summary(&run, &context);
            printer.faint(format_args!("{name}: {}", keep(Path::new(out), &record, &samples)?));
            records.push(record);
        }
        Ok((records, stop.load(Ordering::Relaxed)))
    }
}

fn failure(error: LlmError) -> Failure {
    match error {
        LlmError::Fault(_) => Failure::new(Exit::Server, error),
        LlmError::Drive(_) => Failure::usage(error),
    }
}

fn named(cell: &Cell) -> String {
    let thinking = match cell.thinking {
        Thinking::AsIs { thinks: false } => String::new(),
        Thinking::AsIs { thinks: true } => ", thinking".to_owned(),
        Thinking::Off(lever) => format!(", no thinking by {}", lever.name()),
        Thinking::CannotDisable => ", thinking whatever is said".to_owned(),
    };
    format!("{} × {}{thinking}", cell.shape.name, cell.users)
}

fn told(name: &str, step: Step<'_>, wish: &Wish, begun: Instant) -> String {
    match step {
        Step::Warmed { block } => format!("{name}: warming up, {block}"),
        Step::Calibrated(calibration) => {
            let error = calibration.ttft_err_ms.mean().unwrap_or_default();
            let busy = calibration.cpu_share * 100.0;
            format!("{name}: this client is off by {error:.2} ms and takes {busy:.0} % of a core")
        }
        Step::Ran { run, half_width_pct } => {
            let wide = half_width_pct.map_or(String::new(), |pct| format!(", ±{pct:.1} %"));
            let each = begun.elapsed() / u32::try_from(run).unwrap_or(u32::MAX).max(1);
            let left = each * u32::try_from(wish.runs_min.saturating_sub(run)).unwrap_or(0);
            let left = match left.as_secs() {
                0 => String::new(),
                seconds => format!(", about {seconds} s left"),
            };
            format!("{name}: run {run} of {} to {}{wide}{left}", wish.runs_min, wish.runs_max)
        }
    }
}

fn shown(records: &[Record]) -> String {
    let mut table = table([
        "shape",
        "users",
        "thinking",
        "first token",
        "first answer",
        "per token",
        "tok/s",
        "together",
        "thought",
        "errors",
        "client off by",
        "",
    ]);
    for record in records {
        let figure = |metric| record.metrics.figure(metric);
        let ms = |metric| figure(metric).map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
        let rate = |metric| figure(metric).map_or("–".to_owned(), |rate| format!("{rate:.1}"));
        let selftest = record.harness.as_ref().and_then(|harness| harness.selftest.as_ref());
        let off =
            selftest.map_or("–".to_owned(), |test| format!("{:.2} ms", test.ttft_err_ms.p50));
        let workload = &record.workload;
        table.add_row([
            workload.shape.clone().unwrap_or_default(),
            workload.concurrency.map_or(String::new(), |users| users.to_string()),
            workload
                .reasoning
                .map_or(String::new(), |reasoning| format!("{reasoning:?}").to_lowercase()),
            ms(Metric::TtftMs),
            ms(Metric::TtfatMs),
            ms(Metric::TpotMs),
            rate(Metric::DecodeTokS),
            rate(Metric::ThroughputTokS),
            rate(Metric::ReasoningTokens),
            record.metrics.errors.unwrap_or_default().to_string(),
            off,
            badge(record).to_owned(),
        ]);
    }
    table.trim_fmt()
}

fn badge(record: &Record) -> &'static str {
    match (record.invalid_reasons.is_empty(), record.confidence.label) {
        (false, _) => "no measurement",
        (true, Label::Hard) => "HARD",
        (true, Label::Soft) => "SOFT",
    }
}

/// Why each is soft, or nothing at all; what is said of all is said once.
fn doubts(records: &[Record], printer: &Printer) {
    let mut said: Vec<String> = Vec::new();
    for record in records {
        let soft =
            record.confidence.reasons.iter().map(|doubt| format!("soft: {}", doubt.meaning()));
        let invalid =
            record.invalid_reasons.iter().map(|reason| format!("no measurement: {reason}"));
        for line in invalid.chain(soft) {
            if !said.contains(&line) {
                printer.note(&line);
                said.push(line);
            }
        }
    }
}
