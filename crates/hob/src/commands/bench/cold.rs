//! `hob bench cold`: from a start to the first answer, by a new process each time; or one model in another's place.
//! Progress goes to stderr, the table to stdout.

use clap::{Args, ValueEnum};
use hob_bench::cold::{Of, Spoken, State, Weights, Wish, measure};
use hob_bench::record::{Kind, Record};
use hob_bench::terms::Metric;
use hob_bench::workbench::Workbench;

use super::campaign::{self, CampaignArgs, badge, off_by};
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::{Printer, table};
use crate::settings::DEFAULT_SPEECH;

/// From a start to the first token or the first sound: with the weights on the disk, and in memory
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ColdArgs {
    #[command(flatten)]
    pub(super) campaign: CampaignArgs,
    /// What the machine still knows of the model; without it both starts, or with --swap-with the swap
    #[arg(long, value_enum, value_name = "STATE", value_delimiter = ',')]
    state: Vec<StateName>,
    /// Another model of the same server, which is asked in between: how long until the first answers again
    #[arg(long, value_name = "NAME")]
    swap_with: Option<String>,
    /// Ask for sound instead of words
    #[arg(long)]
    speech: bool,
    /// Who speaks
    #[arg(long, value_name = "NAME", default_value = "alloy", requires = "speech")]
    voice: String,
    /// What is said
    #[arg(
        long,
        value_name = "TEXT",
        requires = "speech",
        default_value = "Good evening. The kettle is on, and the door is open."
    )]
    text: String,
    /// Requests behind the first of each start, for how fast it is once it is warm
    #[arg(long, value_name = "N", default_value_t = 3)]
    warm: usize,
}

const AFTER_HELP: &str = "\
Each sample is a new process: load is from its start until it is ready, the first request is whole,
and cold / warm is that against the same request later. For page_cache_cold the machine forgets the
weights' file before each start; whether it has is looked at, and said.

Examples:
  hob bench cold                       of the model that hob serve would load
  hob bench cold --speech              of its voice; --model-file names its weights
  hob bench cold --target http://127.0.0.1:8080 --model-file model.gguf --launch \\
    'llama-server -m model.gguf --port 8080'
  hob bench cold --target http://127.0.0.1:11434 --model qwen3:8b --swap-with qwen3:4b";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum StateName {
    PageCacheCold,
    PageCacheWarm,
    ModelSwap,
}

pub(crate) fn run(args: &ColdArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let wish = args.wish()?;
    let work = move |bench: &mut Workbench<'_>| measure(bench, &wish);
    campaign::run(&args.campaign, (globals, printer), Kind::Cold, work, shown)
}

impl ColdArgs {
    /// The state of this record alone.
    pub(super) fn only(&mut self, record: &Record) {
        let shape = record.workload.shape.as_deref().unwrap_or_default();
        if let Ok(state) = StateName::from_str(shape, false) {
            self.state = vec![state];
        }
    }

    fn wish(&self) -> Outcome<Wish> {
        let is_own = self.campaign.aim.is_own();
        // What is known of a hob's weights is of its chat model.
        let is_blind = self.speech && is_own && !self.campaign.aim.names_weights();
        let states = match (&self.state[..], &self.swap_with) {
            ([], Some(_)) => &[StateName::ModelSwap][..],
            ([], None) if is_blind => &[StateName::PageCacheWarm],
            ([], None) => &[StateName::PageCacheCold, StateName::PageCacheWarm],
            (states, _) => states,
        };
        let states: Outcome<Vec<State>> = states.iter().map(|name| self.state(*name)).collect();
        let of = if self.speech {
            Of::Speech(Spoken {
                model: is_own.then(|| DEFAULT_SPEECH.to_owned()),
                voice: self.voice.clone(),
                text: self.text.clone(),
            })
        } else {
            Of::Words
        };
        let weights = if is_blind { Weights::Unknown } else { Weights::OfTheServer };
        Ok(Wish { states: states?, of, warm: self.warm, weights })
    }

    fn state(&self, name: StateName) -> Outcome<State> {
        match (name, &self.swap_with) {
            (StateName::PageCacheCold, _) => Ok(State::PageCacheCold),
            (StateName::PageCacheWarm, _) => Ok(State::PageCacheWarm),
            (StateName::ModelSwap, Some(with)) => Ok(State::ModelSwap { with: with.clone() }),
            (StateName::ModelSwap, None) => {
                Err(Failure::usage("--swap-with names the model that takes the other's place"))
            }
        }
    }
}

fn shown(records: &[Record]) -> String {
    let head = [
        "state",
        "load",
        "first request",
        "first token",
        "first sound",
        "swap",
        "warm",
        "cold / warm",
        "client off by",
        "",
    ];
    let mut table = table(head);
    for record in records {
        let figure = |metric| record.metrics.figure(metric);
        let ms = |metric| figure(metric).map_or("–".to_owned(), |ms| format!("{ms:.0} ms"));
        table.add_row([
            record.workload.shape.clone().unwrap_or_default(),
            ms(Metric::LoadMs),
            ms(Metric::ColdFirstMs),
            ms(Metric::TtftMs),
            ms(Metric::TtfaMs),
            ms(Metric::SwapMs),
            ms(Metric::WarmMs),
            figure(Metric::ColdX).map_or("–".to_owned(), |times| format!("{times:.1} ×")),
            off_by(record),
            badge(record).to_owned(),
        ]);
    }
    table.trim_fmt()
}
