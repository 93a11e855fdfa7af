//! `hob bench ceiling`: the longest context that starts, can be filled, and still writes. The server is started anew with each.
//! Progress goes to stderr, what was found to stdout; Ctrl-C keeps what is known so far.

use clap::{Args, ValueEnum};
use hob_bench::ceiling::{Span, What, Wish, measure};
use hob_bench::record::{AttemptResult, Kind, Record};
use hob_bench::terms::Metric;
use hob_bench::workbench::Workbench;

use super::campaign::{self, CampaignArgs, badge};
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::{Printer, table};

/// So many tokens are left for a prompt at least.
const LO_MIN: u64 = 512;

/// The longest context: starts the server with one after the other until it is known
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CeilingArgs {
    #[command(flatten)]
    pub(super) campaign: CampaignArgs,
    /// The shortest context that is tried, and the first
    #[arg(long, value_name = "TOKENS", default_value_t = 4096)]
    lo: u64,
    /// The longest that is tried
    #[arg(long, value_name = "TOKENS", default_value_t = 262_144)]
    hi: u64,
    /// How exactly it is wanted
    #[arg(long, value_name = "TOKENS", default_value_t = 256)]
    granule: u64,
    /// What a context has to be good for
    #[arg(long, value_enum, default_value_t = WhatName::Usable)]
    what: WhatName,
    /// Bytes that a token of context takes, if they are known: for the first guess
    #[arg(long, value_name = "BYTES")]
    token_bytes: Option<f64>,
}

const AFTER_HELP: &str = "\
Each attempt is a start of its own: the server before is gone and its port closed. A context counts if
the server says that it has it, or has counted a prompt that long. The longest has to work twice, and
the next granule to fail. Reading a long prompt may take longer than --silence-s: raise it then.

Examples:
  hob bench ceiling                    of the model that hob serve would load
  hob bench ceiling --lo 2048 --hi 32768 --what load
  hob bench ceiling --target http://127.0.0.1:8080 --launch \\
    'llama-server -m model.gguf --port 8080 --parallel 1 -c {ctx}'
  hob bench ceiling --target http://127.0.0.1:11434 --model qwen3:8b --launch \\
    'OLLAMA_CONTEXT_LENGTH={ctx} ollama serve'";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WhatName {
    /// It starts with it
    Load,
    /// It can be filled, and the model still writes
    Usable,
}

pub(crate) fn run(args: &CeilingArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let wish = args.wish()?;
    let mut campaign = args.campaign.clone();
    campaign.aim.beginning_with(args.lo)?;
    let work = move |bench: &mut Workbench<'_>| measure(bench, &wish);
    campaign::run(&campaign, (globals, printer), Kind::MaxContext, work, shown)
}

impl CeilingArgs {
    fn wish(&self) -> Outcome<Wish> {
        let CeilingArgs { lo, hi, granule, token_bytes, .. } = *self;
        if lo < LO_MIN || hi < lo || granule == 0 || u32::try_from(hi).is_err() {
            return Err(Failure::usage(format!(
                "--lo is {LO_MIN} at least, --hi not below it, and --granule above zero"
            )));
        }
        if token_bytes.is_some_and(|bytes| !(bytes.is_finite() && bytes > 0.0)) {
            return Err(Failure::usage("a token takes more than no bytes"));
        }
        let what = match self.what {
            WhatName::Load => What::Load,
            WhatName::Usable => What::Usable,
        };
        Ok(Wish { span: Span { lo, hi, granule }, what, bytes_per_token: token_bytes })
    }
}

fn shown(records: &[Record]) -> String {
    let mut table = table(["context", "took", "memory", "", ""]);
    for record in records {
        let Some(ceiling) = &record.max_context else { continue };
        for attempt in &ceiling.attempts {
            let mb = attempt.vram_mb.or(attempt.rss_mb);
            table.add_row([
                attempt.ctx.to_string(),
                attempt.s.map_or(String::new(), |s| format!("{s:.1} s")),
                mb.map_or(String::new(), |mb| format!("{mb:.0} MB")),
                attempt.result.name().to_owned(),
                said(attempt.said.as_deref()),
            ]);
        }
    }
    let found: Vec<String> = records.iter().map(sentence).collect();
    format!("{}\n{}", table.trim_fmt(), found.join("\n"))
}

/// The first line of it; the record has the rest.
fn said(text: Option<&str>) -> String {
    let line = text.and_then(|text| text.lines().next()).unwrap_or_default();
    line.chars().take(80).collect()
}

fn sentence(record: &Record) -> String {
    let Some(ceiling) = &record.max_context else { return String::new() };
    let Some(tokens) = ceiling.lo_ok else { return "no context was found that works".to_owned() };
    let times = ceiling.confirmed.unwrap_or_default();
    let what = if ceiling.usable.is_some() { "can be used" } else { "can be loaded" };
    let speed = record.metrics.figure(Metric::DecodeTokS);
    let speed = speed.map_or(String::new(), |speed| format!(", at {speed:.1} tok/s"));
    let limit = match (ceiling.hi_fail, ceiling.limited_by) {
        (Some(fail), Some(AttemptResult::Unsupported)) => {
            format!("{fail} is more than the model or its engine takes, whatever the memory")
        }
        (Some(fail), Some(result)) => format!("{fail} {}", result.name()),
        _ => "nothing longer was tried".to_owned(),
    };
    format!("{tokens} tokens {what}{speed} (worked {times} times; {limit})  {}", badge(record))
}
