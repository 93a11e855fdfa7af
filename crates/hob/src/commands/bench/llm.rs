//! `hob bench llm`: how fast a server writes. Progress goes to stderr, the table to stdout.
//! Each cell is a record as soon as it is done; what Ctrl-C leaves is kept, as far as it is whole.

use clap::{Args, ValueEnum};
use hob_bench::drive::{Arrivals, CONNECTIONS_MAX};
use hob_bench::llm::{Prompts, SHAPES, Shape, ThinkingWish, Wish, measure};
use hob_bench::record::{Arrival, Cache, Kind, Reasoning, Record};
use hob_bench::runs::BenchError;
use hob_bench::terms::Metric;
use hob_bench::workbench::Workbench;
use hob_bench::written;

use super::campaign::{self, CampaignArgs, badge, off_by};
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::{Printer, table};

/// Connections that requests at a rate may use at once.
const OPEN_CONNECTIONS: usize = 128;

/// How fast a server writes: four shapes of prompts, by one user and by four, with thinking and without
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LlmArgs {
    #[command(flatten)]
    pub(crate) campaign: CampaignArgs,
    /// Shapes of prompt and answer
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = shape,
        default_value = "short_short,long_short,short_long,agentic")]
    shape: Vec<Shape>,
    /// Users at once; each waits for its answer
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4")]
    users: Vec<usize>,
    /// Requests a second, at random, whether or not they are answered, instead of users that wait;
    /// times then count from when a request was due
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "users")]
    rate: Vec<f64>,
    /// With --rate: evenly, and not at random
    #[arg(long, requires = "rate")]
    even: bool,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_enum, default_value_t = ThinkingName::Auto)]
    thinking: ThinkingName,
    /// Ask the same prompt again and again, to measure what the cache is worth
    #[arg(long)]
    cached: bool,
    /// Requests of each user in a run
    #[arg(long, value_name = "N", default_value_t = 2)]
    rounds: usize,
    /// How long a run at a rate is
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "rate")]
    span_s: u16,
}

const AFTER_HELP: &str = "\
Shapes, as tokens of prompt and answer: short_short 64/128, long_short 8192/128, short_long 64/1024,
agentic 2048/512 with six tools; and the questions quick_word, quick_reasoning, quick_coding.

Examples:
  hob bench llm                        of the model that hob serve would load
  hob bench llm --target http://127.0.0.1:8484
  hob bench llm --target http://127.0.0.1:11434 --model qwen3:8b --shape short_short --users 1,4,8
  hob bench llm --target http://127.0.0.1:8484 --shape short_short --rate 0.5,1,2
  hob bench llm --target http://127.0.0.1:8080 --launch 'llama-server -m model.gguf --port 8080'";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ThinkingName {
    Auto,
    On,
    Off,
}

impl ThinkingName {
    pub(super) fn wish(self) -> ThinkingWish {
        match self {
            ThinkingName::Auto => ThinkingWish::Auto,
            ThinkingName::On => ThinkingWish::On,
            ThinkingName::Off => ThinkingWish::Off,
        }
    }
}

pub(super) fn shape(name: &str) -> Result<Shape, String> {
    let known = SHAPES.map(|shape| shape.name).join(", ");
    Shape::named(name.trim()).ok_or_else(|| format!("there are {known}"))
}

pub(crate) fn run(args: &LlmArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    campaign::run(&args.campaign, (globals, printer), Kind::Llm, args.work()?, shown)
}

impl LlmArgs {
    /// What is done on the workbench.
    pub(crate) fn work(
        &self,
    ) -> Outcome<impl FnOnce(&mut Workbench<'_>) -> Result<Vec<Record>, BenchError> + use<>> {
        let wish = self.wish()?;
        Ok(move |bench: &mut Workbench<'_>| measure(bench, &wish))
    }

    /// The cell of this record alone.
    pub(crate) fn only(&mut self, record: &Record) -> Outcome<()> {
        let workload = &record.workload;
        let name = workload.shape.as_deref().unwrap_or_default();
        self.shape = vec![shape(name).map_err(Failure::usage)?];
        self.users = workload.concurrency.iter().map(|users| *users as usize).collect();
        self.rate = workload.rate.into_iter().collect();
        self.even = workload.arrival == Some(Arrival::Constant);
        self.cached = workload.cache == Some(Cache::Cached);
        self.thinking = match workload.reasoning {
            Some(Reasoning::Disabled) => ThinkingName::Off,
            Some(Reasoning::Enabled) => ThinkingName::On,
            Some(Reasoning::CannotDisable) | None => ThinkingName::Auto,
        };
        Ok(())
    }

    fn wish(&self) -> Outcome<Wish> {
        let is_possible = |users: &usize| (1..=CONNECTIONS_MAX).contains(users);
        if !self.users.iter().all(is_possible) {
            return Err(Failure::usage(format!("from 1 to {CONNECTIONS_MAX} users are possible")));
        }
        if !self.rate.iter().all(|rate| rate.is_finite() && *rate > 0.0) {
            return Err(Failure::usage("a rate is above zero"));
        }
        if self.rounds == 0 {
            return Err(Failure::usage("each user asks once at least"));
        }
        Ok(Wish {
            shapes: self.shape.clone(),
            arrivals: self.arrivals(),
            thinking: self.thinking.wish(),
            prompts: if self.cached { Prompts::Cached } else { Prompts::Cold },
            rounds: self.rounds,
            span_s: f64::from(self.span_s),
        })
    }

    fn arrivals(&self) -> Vec<Arrivals> {
        let connections = OPEN_CONNECTIONS;
        if self.rate.is_empty() {
            return self.users.iter().map(|users| Arrivals::Closed { users: *users }).collect();
        }
        let at = |rate: &f64| match self.even {
            true => Arrivals::Constant { per_second: *rate, connections },
            false => Arrivals::Poisson { per_second: *rate, connections },
        };
        self.rate.iter().map(at).collect()
    }
}

pub(crate) fn shown(records: &[Record]) -> String {
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
        "stalls",
        "errors",
        "client off by",
        "",
    ]);
    for record in records {
        let figure = |metric| record.metrics.figure(metric);
        let ms = |metric| figure(metric).map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
        let rate = |metric| figure(metric).map_or("–".to_owned(), |rate| format!("{rate:.1}"));
        let workload = &record.workload;
        let users = workload.concurrency.map_or(String::new(), |users| users.to_string());
        table.add_row([
            workload.shape.clone().unwrap_or_default(),
            workload.rate.map_or(users, |rate| format!("{rate}/s")),
            workload
                .reasoning
                .map_or(String::new(), |reasoning| format!("{reasoning:?}").to_lowercase()),
            figure(Metric::TtftSchedMs).map_or(ms(Metric::TtftMs), |_| ms(Metric::TtftSchedMs)),
            figure(Metric::TtfatSchedMs).map_or(ms(Metric::TtfatMs), |_| ms(Metric::TtfatSchedMs)),
            ms(Metric::TpotMs),
            rate(Metric::DecodeTokS),
            rate(Metric::ThroughputTokS),
            rate(Metric::ReasoningTokens),
            written::stalls(record),
            record.metrics.errors.unwrap_or_default().to_string(),
            off_by(record),
            badge(record).to_owned(),
        ]);
    }
    table.trim_fmt()
}
