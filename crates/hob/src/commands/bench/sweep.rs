//! `hob bench sweep`: what becomes of a server as the context grows. Progress goes to stderr, the table to stdout.
//! Prompts that are new and prompts that are known stand in rows of their own.

use clap::Args;
use hob_bench::llm::room;
use hob_bench::record::{Cache, Kind, Record};
use hob_bench::sweep::{AGAIN_MIN, Room, Wish, measure};
use hob_bench::terms::Metric;
use hob_bench::workbench::Workbench;

use super::campaign::{self, CampaignArgs, badge, off_by};
use super::llm::ThinkingName;
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::{Printer, table};

/// What becomes of a server as the context grows: how fast it reads a new prompt and finds a known one, and how fast
/// it writes behind each
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(super) campaign: CampaignArgs,
    /// Tokens of the prompt
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "512,4096,16384,65536,131072"
    )]
    context_tokens: Vec<u32>,
    /// Tokens that are written behind it
    #[arg(long, value_name = "N", default_value_t = 512)]
    answer: u32,
    /// Requests whose prompt is known, behind each whose prompt is new
    #[arg(long, value_name = "N", default_value_t = AGAIN_MIN)]
    again: usize,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_enum, default_value_t = ThinkingName::On)]
    thinking: ThinkingName,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench sweep                      of the model that hob serve would load
  hob bench sweep --target http://127.0.0.1:8080 --context-tokens 4096,32768 --runs-max 6
  hob bench sweep --target http://127.0.0.1:11434 --model qwen3:8b --answer 128
  hob bench sweep --target http://127.0.0.1:8080 --launch 'llama-server -m model.gguf -c {ctx} --port 8080'

A server that is started for this is started anew for each length, with room for it where {ctx} stands in its command
line, unless --context says how much: its memory is then that of this length. Lengths that the server says it cannot
hold are left out; one that it refuses ends the sweep, with a record that says why.";

pub(crate) fn run(args: &SweepArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let shortest = args.context_tokens.iter().min().copied().filter(|tokens| *tokens > 0);
    let shortest = shortest.ok_or_else(|| Failure::usage("a context has tokens"))?;
    if args.answer < 2 {
        return Err(Failure::usage("an answer of fewer than 2 tokens has no pace"));
    }
    if args.again < AGAIN_MIN {
        return Err(Failure::usage(format!("--again is {AGAIN_MIN} at least")));
    }
    let grown = args.campaign.with_room(room(shortest, args.answer).into());
    let wish = Wish {
        lengths: args.context_tokens.clone(),
        answer: args.answer,
        cached: args.again,
        thinking: args.thinking.wish(),
        room: if grown.is_some() { Room::OfEach } else { Room::AsStarted },
    };
    let work = move |bench: &mut Workbench<'_>| measure(bench, &wish);
    let campaign = grown.as_ref().unwrap_or(&args.campaign);
    campaign::run(campaign, (globals, printer), Kind::CtxSweep, work, shown)
}

impl SweepArgs {
    /// The length of this record alone.
    pub(super) fn only(&mut self, record: &Record) {
        let target = record.workload.prompt_tokens.and_then(|tokens| tokens.target);
        let length = target.and_then(|tokens| u32::try_from(tokens).ok());
        self.context_tokens = length.map_or(self.context_tokens.clone(), |length| vec![length]);
    }
}

fn shown(records: &[Record]) -> String {
    let mut table = table([
        "context",
        "prompt",
        "first token",
        "prefill tok/s",
        "prompt / first token",
        "gen tok/s",
        "memory",
        "errors",
        "client off by",
        "",
    ]);
    for record in records {
        table.add_row(row(record));
    }
    table.trim_fmt()
}

fn row(record: &Record) -> [String; 10] {
    let figure = |metric| record.metrics.figure(metric);
    let rate = |metric| figure(metric).map_or("–".to_owned(), |rate| format!("{rate:.1}"));
    let tokens = record.workload.prompt_tokens.and_then(|tokens| tokens.target);
    let cache = match record.workload.cache {
        Some(Cache::Cold) => "new",
        Some(Cache::Cached) => "known",
        Some(Cache::Mixed) | None => "mixed",
    };
    let memory = record.resources.memory_mb();
    [
        tokens.map_or(String::new(), |tokens| tokens.to_string()),
        cache.to_owned(),
        figure(Metric::TtftMs).map_or("–".to_owned(), |ms| format!("{ms:.1} ms")),
        rate(Metric::PrefillTokS),
        rate(Metric::PromptTtftTokS),
        rate(Metric::DecodeTokS),
        memory.map_or("–".to_owned(), |mb| format!("{mb:.0} MB")),
        record.metrics.errors.unwrap_or_default().to_string(),
        off_by(record),
        badge(record).to_owned(),
    ]
}
