//! `hob bench`: measures servers, and reads, imports and compares records. One file per verb.
//! Records are files in a folder; there is no other store.

mod bounds;
mod cold;
mod compare;
mod comparison_table;
mod concurrency;
mod eval;
mod eval_judge;
mod eval_report;
mod import;
mod llm;
mod max_context;
mod measuring;
mod plan;
mod queue;
mod record_report;
mod rerun;
mod server;
mod short_eval;
mod show;
mod stream;
mod stt;
mod sweep;
mod tables;
mod tts;
mod two_servers;
mod voice;
mod workload;

use clap::{Args, Command, Parser, Subcommand};
use hob_bench::plan::PlanKind;

pub(crate) use bounds::BoundsArgs;
pub(crate) use eval::{EvalArgs, ItemArgs, task};
pub(crate) use eval_judge::{JudgeArgs, judge};
pub(crate) use eval_report::{AnsweredRecord, EvalReport};
pub(crate) use measuring::Measure;
use measuring::{MeasuringArgs, MeasuringVerb};
use plan::unless_planned;
pub(crate) use short_eval::{ShortEval, short_eval};

pub(crate) use crate::benchmarks::RECORDS;
use crate::failure::{CliResult, Exit};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::reference;

/// Default folder of plans, for the results page.
pub(crate) const PLANS: &str = "bench/plans";

/// Measure servers, and store the results as records
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, mut_subcommands(checked))]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Verb {
    Llm(Box<Measure<llm::LlmArgs>>),
    Tts(Box<Measure<tts::TtsArgs>>),
    Stream(Box<Measure<stream::StreamArgs>>),
    Stt(Box<Measure<stt::SttArgs>>),
    Voice(Box<Measure<voice::VoiceArgs>>),
    #[command(alias = "ceiling")]
    MaxContext(Box<Measure<max_context::MaxContextArgs>>),
    Cold(Box<Measure<cold::ColdArgs>>),
    Sweep(Box<Measure<sweep::SweepArgs>>),
    #[command(alias = "degrade")]
    Concurrency(Box<Measure<concurrency::ConcurrencyArgs>>),
    Batch(Box<Measure<concurrency::BatchArgs>>),
    Eval(Box<Measure<EvalArgs>>),
    Plan(plan::PlanArgs),
    #[command(alias = "harden")]
    Rerun(rerun::RerunArgs),
    Import(import::ImportArgs),
    Show(show::ShowArgs),
    Compare(Box<compare::CompareArgs>),
    #[command(hide = true)]
    Gate(Box<compare::CompareArgs>),
    /// Print the JSON schema of a record
    Schema,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench llm --target http://127.0.0.1:8484   speed of a server with one user and with four
  hob bench tts                        speed of hob's speech
  hob bench stream                     whether sound is sent while it is computed
  hob bench stt                        word errors and speed of transcription
  hob bench max-context                the longest context that fits here
  hob bench cold                       time to the first answer after a start
  hob bench sweep                      speed as the context grows
  hob bench concurrency --users 2,4    latency per user under concurrent load
  hob bench batch --users 1,4          throughput with several users at the same time
  hob bench eval                       how good the answers are; the same as hob eval
  hob bench plan nightly.yaml          all measurements of a file; resumes after an interruption
  hob bench import llama-bench.json    store another program's results, as unverified
  hob bench show 6b2d8c11              one run, with its doubts
  hob bench compare 6b2d8c11 0a91f3e7  two runs, figure by figure
  hob bench compare base/ new/ --fail-on-regression   exit code 1 if something became slower
  hob site build --out site            all runs, as a page";

impl BenchArgs {
    pub(crate) fn eval(args: Box<Measure<EvalArgs>>) -> BenchArgs {
        BenchArgs { verb: Verb::Eval(args) }
    }
}

/// A verb that measures refuses options that have no effect next to `--plan`.
fn checked(verb: Command) -> Command {
    let has_plan = verb.get_arguments().any(|option| option.get_id() == "plan");
    if has_plan { verb.mut_args(unless_planned) } else { verb }
}

pub(crate) fn run(args: &BenchArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    if let Verb::Eval(args) = &args.verb {
        args.own.begin(&args.measuring, printer)?;
    }
    if let Some((args, verb, kind)) = args.verb.measuring() {
        return match &args.plan {
            Some(file) => plan::part(file, kind, args, (globals, printer)),
            None => measuring::run(args.clone(), verb, None, (globals, printer)),
        };
    }
    match &args.verb {
        Verb::Plan(args) => plan::run(args, globals, printer),
        Verb::Rerun(args) => rerun::run(args, globals, printer),
        Verb::Import(args) => import::run(args, printer),
        Verb::Show(args) => show::run(args, printer),
        Verb::Compare(args) => compare::run(args, globals, printer),
        Verb::Gate(args) => compare::gate(args, globals, printer),
        _ => printer.json(&reference::record::schema()).map(|()| Exit::Done),
    }
}

impl Verb {
    /// The options of a verb that measures, the verb, and its name in a plan.
    fn measuring(&self) -> Option<(&MeasuringArgs, &dyn MeasuringVerb, PlanKind)> {
        Some(match self {
            Verb::Llm(args) => (&args.measuring, &args.own, PlanKind::Llm),
            Verb::Tts(args) => (&args.measuring, &args.own, PlanKind::Tts),
            Verb::Stream(args) => (&args.measuring, &args.own, PlanKind::Stream),
            Verb::Stt(args) => (&args.measuring, &args.own, PlanKind::Stt),
            Verb::Voice(args) => (&args.measuring, &args.own, PlanKind::Voice),
            Verb::MaxContext(args) => (&args.measuring, &args.own, PlanKind::MaxContext),
            Verb::Cold(args) => (&args.measuring, &args.own, PlanKind::Cold),
            Verb::Sweep(args) => (&args.measuring, &args.own, PlanKind::Sweep),
            Verb::Concurrency(args) => (&args.measuring, &args.own, PlanKind::Concurrency),
            Verb::Batch(args) => (&args.measuring, &args.own, PlanKind::Batch),
            Verb::Eval(args) => (&args.measuring, &args.own, PlanKind::Eval),
            _ => return None,
        })
    }
}

/// The command line of a stored record.
#[derive(Debug, Parser)]
#[command(name = "hob")]
struct StoredCommand {
    #[command(flatten)]
    _globals: Globals,
    #[command(subcommand)]
    verb: StoredVerb,
}

#[derive(Debug, Subcommand)]
enum StoredVerb {
    Bench(BenchArgs),
    Eval(Box<Measure<EvalArgs>>),
}

impl Verb {
    /// Parses the `hob bench …` or `hob eval …` command line of a stored record.
    ///
    /// # Errors
    /// It is another command, or one with options of another version.
    fn parse<'a>(words: impl Iterator<Item = &'a String>) -> Result<Verb, String> {
        let command = StoredCommand::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(match command.verb {
            StoredVerb::Bench(args) => args.verb,
            StoredVerb::Eval(args) => Verb::Eval(args),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    /// Why these words are refused, if they are.
    fn refusal(words: &str) -> Option<ErrorKind> {
        let parsed = crate::cli::command().try_get_matches_from(words.split(' '));
        parsed.err().map(|error| error.kind())
    }

    #[test]
    fn a_server_has_some_time_to_answer() {
        for option in ["--timeout-s", "--answer-s"] {
            let said = |seconds: u64| refusal(&format!("hob bench llm {option} {seconds}"));
            assert_eq!((said(0), said(1)), (Some(ErrorKind::ValueValidation), None), "{option}");
        }
    }

    #[test]
    fn options_without_effect_are_refused() {
        let rows = [
            ("bench llm --plan p --runs-max 3", false),
            ("bench tts --text short --plan p", false),
            ("bench cold --plan p --launch l --target t", false),
            ("bench eval --plan p --seed 3", false),
            ("eval --plan p --items 3", false),
            ("eval --completion --thinking off", false),
            ("eval --completion --enforce-schemas", false),
            ("eval --choices-by-logprob --budget-tokens 9", false),
            ("bench batch --plan p --target t --out o --no-wait --json --quiet", true),
            ("eval --plan p --target t --out o --no-wait --json", true),
            ("eval --choices-by-logprob --thinking off", true),
        ];
        for (words, is_taken) in rows {
            let expected = (!is_taken).then_some(ErrorKind::ArgumentConflict);
            assert_eq!(refusal(&format!("hob {words}")), expected, "{words}");
        }
        assert_eq!(refusal("hob eval items --model m"), Some(ErrorKind::UnknownArgument));
    }
}
