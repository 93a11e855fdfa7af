//! `hob bench`: what was measured, by hob or by somebody else. One file per verb.
//! Records are files; whoever has the folder has everything that is known.

mod cold;
mod compare;
mod comparison_table;
mod concurrency;
mod gate;
mod import;
mod llm;
mod max_context;
mod measuring;
mod plan;
mod queue;
mod rerun;
mod server;
mod show;
mod stream;
mod sweep;
mod tables;
mod tts;
mod two_servers;
mod workload;

use clap::{Args, Subcommand};
use hob_bench::plan::PlanKind;

use measuring::MeasuringVerb;

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

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Verb {
    Llm(Box<llm::LlmArgs>),
    Tts(Box<tts::TtsArgs>),
    Stream(Box<stream::StreamArgs>),
    #[command(alias = "ceiling")]
    MaxContext(Box<max_context::MaxContextArgs>),
    Cold(Box<cold::ColdArgs>),
    Sweep(Box<sweep::SweepArgs>),
    #[command(alias = "degrade")]
    Concurrency(Box<concurrency::ConcurrencyArgs>),
    Batch(Box<concurrency::BatchArgs>),
    Plan(plan::PlanArgs),
    #[command(alias = "harden")]
    Rerun(rerun::RerunArgs),
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
    let mut verb = args.verb.clone();
    if let Some(kind) = verb.kind()
        && let Some(measuring) = verb.measuring()
    {
        let args = measuring.measuring();
        return match args.plan.clone() {
            Some(file) => plan::part(&file, kind, args, (globals, printer)),
            None => measuring::run(measuring, None, (globals, printer)),
        };
    }
    match &args.verb {
        Verb::Plan(args) => plan::run(args, globals, printer),
        Verb::Rerun(args) => rerun::run(args, globals, printer),
        Verb::Import(args) => import::run(args, printer),
        Verb::Show(args) => show::run(args, printer),
        Verb::Compare(args) => compare::run(args, globals, printer),
        Verb::Gate(args) => gate::run(args, printer),
        _ => schema(printer),
    }
}

impl Verb {
    /// Of a verb that measures.
    fn measuring(&mut self) -> Option<&mut dyn MeasuringVerb> {
        Some(match self {
            Verb::Llm(args) => &mut **args,
            Verb::Tts(args) => &mut **args,
            Verb::Stream(args) => &mut **args,
            Verb::MaxContext(args) => &mut **args,
            Verb::Cold(args) => &mut **args,
            Verb::Sweep(args) => &mut **args,
            Verb::Concurrency(args) => &mut **args,
            Verb::Batch(args) => &mut **args,
            _ => return None,
        })
    }

    /// What a plan calls it.
    fn kind(&self) -> Option<PlanKind> {
        Some(match self {
            Verb::Llm(_) => PlanKind::Llm,
            Verb::Tts(_) => PlanKind::Tts,
            Verb::Stream(_) => PlanKind::Stream,
            Verb::MaxContext(_) => PlanKind::MaxContext,
            Verb::Cold(_) => PlanKind::Cold,
            Verb::Sweep(_) => PlanKind::Sweep,
            Verb::Concurrency(_) => PlanKind::Concurrency,
            Verb::Batch(_) => PlanKind::Batch,
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
