//! `hob bench`: what was measured, by hob or by somebody else. One file per verb.
//! Records are files; whoever has the folder has everything that is known.

mod aim;
mod batch;
mod campaign;
mod ceiling;
mod cold;
mod compare;
mod compared;
mod crowd;
mod degrade;
mod duel;
mod gate;
mod harden;
mod import;
mod llm;
mod plan;
mod queue;
mod show;
mod stream;
mod sweep;
mod tts;

use clap::{Args, Subcommand};
use hob_bench::plan::PlanKind;

use campaign::CampaignArgs;

use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::reference;

/// Where records are looked for and written: in the working folder, as the repository has it.
pub(crate) const RECORDS: &str = "bench/records";
/// Where the page looks for plans.
pub(crate) const PLANS: &str = "bench/plans";

/// Measure, and keep what was measured
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Llm(Box<llm::LlmArgs>),
    Tts(Box<tts::TtsArgs>),
    Stream(Box<stream::StreamArgs>),
    #[command(alias = "ceiling")]
    MaxContext(Box<ceiling::CeilingArgs>),
    Cold(Box<cold::ColdArgs>),
    Sweep(Box<sweep::SweepArgs>),
    #[command(alias = "degrade")]
    Concurrency(Box<degrade::DegradeArgs>),
    Batch(Box<batch::BatchArgs>),
    Plan(plan::PlanArgs),
    #[command(alias = "harden")]
    Rerun(harden::HardenArgs),
    Import(import::ImportArgs),
    Show(show::ShowArgs),
    Compare(Box<compare::CompareArgs>),
    Gate(gate::GateArgs),
    /// Print the JSON schema of a record
    Schema,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench llm --target http://127.0.0.1:8484   how fast a server writes, by one user and by four
  hob bench tts                        how fast hob speaks, and what tier that is
  hob bench stream --target http://127.0.0.1:8880 --model kokoro   whether sound comes while it is made
  hob bench max-context                the longest context that fits here
  hob bench cold                       how long the first answer of a new start takes
  hob bench sweep                      what becomes of that as the context grows
  hob bench concurrency --users 2,4    latency per user under concurrent load
  hob bench batch --users 1,4          what a machine gives when several ask together
  hob bench plan nightly.yaml          everything that a file names, resumed where it was cut off
  hob bench import llama-bench.json    keep what another program measured, as unverified
  hob bench show 6b2d8c11              one run, with its doubts
  hob bench compare 6b2d8c11 0a91f3e7  two of them, figure by figure
  hob bench gate new/ --against base/  whether something became slower, for a script
  hob site build --out site            all runs, as a page";

pub(crate) fn run(args: &BenchArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    if let Some((kind, campaign)) = args.verb.kind()
        && let Some(file) = &campaign.plan
    {
        return plan::part(file, kind, campaign, (globals, printer));
    }
    match &args.verb {
        Verb::Llm(args) => llm::run(args, globals, printer),
        Verb::Tts(args) => tts::run(args, globals, printer),
        Verb::Stream(args) => stream::run(args, globals, printer),
        Verb::MaxContext(args) => ceiling::run(args, globals, printer),
        Verb::Cold(args) => cold::run(args, globals, printer),
        Verb::Sweep(args) => sweep::run(args, globals, printer),
        Verb::Concurrency(args) => degrade::run(args, globals, printer),
        Verb::Batch(args) => batch::run(args, globals, printer),
        Verb::Plan(args) => plan::run(args, globals, printer),
        Verb::Rerun(args) => harden::run(args, globals, printer),
        Verb::Import(args) => import::run(args, printer),
        Verb::Show(args) => show::run(args, printer),
        Verb::Compare(args) => compare::run(args, globals, printer),
        Verb::Gate(args) => gate::run(args, printer),
        Verb::Schema => schema(printer),
    }
}

impl Verb {
    /// Of those that measure, and that a plan may name.
    fn kind(&self) -> Option<(PlanKind, &CampaignArgs)> {
        Some(match self {
            Verb::Llm(args) => (PlanKind::Llm, &args.campaign),
            Verb::Sweep(args) => (PlanKind::Sweep, &args.campaign),
            Verb::MaxContext(args) => (PlanKind::MaxContext, &args.campaign),
            Verb::Concurrency(args) => (PlanKind::Concurrency, &args.campaign),
            Verb::Batch(args) => (PlanKind::Batch, &args.campaign),
            Verb::Tts(args) => (PlanKind::Tts, &args.campaign),
            Verb::Stream(args) => (PlanKind::Stream, &args.campaign),
            Verb::Cold(args) => (PlanKind::Cold, &args.campaign),
            _ => return None,
        })
    }
}

impl BenchArgs {
    pub(crate) fn into_verb(self) -> Verb {
        self.verb
    }
}

fn schema(printer: &Printer) -> Outcome<Exit> {
    let schema = serde_json::to_string_pretty(&reference::record::schema());
    printer.data(schema.map_err(|error| Failure::new(Exit::Internal, error))?)?;
    Ok(Exit::Done)
}
