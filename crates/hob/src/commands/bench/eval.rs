//! `hob eval`: how good the answers of a chat model are, and how long they take.
//! Its options become an `Experiment`, as those of every measuring verb.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, Args};
use hob_bench::chat::ThinkingChoice;
use hob_bench::drive::Arrivals;
use hob_bench::eval::{
    EVAL_ITEMS, EVAL_SEED, EvalWorkload, ItemSet, PromptForm, TEMPERATURE_MAX, TaskName,
};
use hob_bench::experiment::{Axis, Experiment, Workload};
use hob_eval::TaskFamily;
use hob_eval::report::UseBounds;

use super::bounds::BoundsArgs;
use super::measuring::{MeasuringArgs, MeasuringVerb};
use super::plan::unless_planned;
use super::workload::{THINKING, run_size};
use crate::arguments::{number, one_of};
use crate::eval_setup;
use crate::failure::{CliResult, Failure};
use crate::printer::Printer;

const ITEMS_MAX: usize = 100_000;
const BUDGET_MAX: u32 = 1 << 20;

/// Which items are asked.
#[derive(Clone, Debug, Args)]
pub(crate) struct ItemArgs {
    /// Tasks, as FAMILY or FAMILY:SIZE [default: eight families; `hob eval tasks` lists all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = task)]
    tasks: Vec<TaskName>,
    /// Items of each task [default: 10]
    #[arg(long, value_name = "N")]
    items: Option<usize>,
    /// Your own items: a JSONL file with prompts, and references or checkers if there are any
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    file: Vec<PathBuf>,
}

/// Measure how good a model's answers are, and how long they take: tasks that a program checks
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP, mut_args(of_items), mut_args(unless_planned))]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    items: ItemArgs,
    /// With thinking, without, or both where the model thinks
    #[arg(long, value_parser = one_of(THINKING), default_value = "auto")]
    thinking: ThinkingChoice,
    /// Maximum tokens of an answer, thinking included [default: what the item needs, and 8192 for thinking]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(BUDGET_MAX)))]
    budget_tokens: Vec<u32>,
    /// The temperature of the answers; each of several is an arm [default: 0]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = temperature)]
    temperature: Vec<f64>,
    /// Send each item as a text that the model continues, for base models without a chat template
    #[arg(long, conflicts_with_all = ["thinking", "enforce_schemas"])]
    completion: bool,
    /// For choices, compare the log-probabilities of the options' texts instead of asking; the likeliest option is the
    /// answer
    #[arg(long, conflicts_with_all = ["completion", "temperature", "budget_tokens", "enforce_schemas"])]
    choices_by_logprob: bool,
    /// Have the server enforce the JSON schema of items that have one
    #[arg(long)]
    enforce_schemas: bool,
    #[command(flatten)]
    bounds: BoundsArgs,
}

const AFTER_HELP: &str = "\
Each item is asked once in each arm, and the arms alternate: with thinking and without, with each
budget, and at each temperature. A program reads the visible answer and grades it; a thought is
never graded. Answers are kept: after an interruption, the same command goes on.

The items are the same each time; --seed makes others.

Examples:
  hob eval                             the model that hob serve would load, on eight tasks
  hob eval --tasks logic-grid:3x3,arithmetic:4x2 --items 50
  hob eval --target http://127.0.0.1:11434 --model qwen3:8b --budget-tokens 1000,2000
  hob eval --file questions.jsonl      your own questions, with references, checkers or neither
  hob eval tasks                       all tasks with their sizes
  hob eval items --tasks code          what would be asked, as JSON; no server is asked
  hob eval report                      quality against time of all stored evaluations
  hob eval grade 6b2d8c11 logic-grid/3x3/7 correct   correct a grade by hand
  hob eval judge 6b2d8c11 0a91f3e7 --judge qwen3:32b   compare open answers with a judge model";

impl MeasuringVerb for EvalArgs {
    fn experiment(&self, measuring: &MeasuringArgs) -> CliResult<Experiment> {
        let items = Arc::new(self.item_set(measuring.seed)?);
        let workload = EvalWorkload {
            thinking: self.thinking,
            budgets: match &self.budget_tokens[..] {
                [] => vec![None],
                budgets => budgets.iter().copied().map(Some).collect(),
            },
            temperatures: match &self.temperature[..] {
                [] => vec![0.0],
                temperatures => temperatures.to_vec(),
            },
            form: self.form()?,
            enforces_schemas: self.enforce_schemas,
            bounds: self.bounds.over(UseBounds::default()),
            ..EvalWorkload::new(items)
        };
        Ok(Experiment {
            workload: Workload::Eval(workload),
            axis: Axis::Load(vec![Arrivals::Closed { users: 1 }]),
            run_size: run_size(1, 0)?,
        })
    }

    /// The same items, marks and samples each time; other seeds are for other items.
    fn usual_seed(&self) -> Option<u64> {
        Some(EVAL_SEED)
    }
}

impl EvalArgs {
    /// Refuses options without effect, and says what so many items can show. A plan has items of its own.
    pub(super) fn begin(&self, measuring: &MeasuringArgs, printer: &Printer) -> CliResult<()> {
        let MeasuringArgs { runs_min, runs_max, budget_s, plan, seed, .. } = measuring;
        let typed = [
            (runs_min.is_some(), "--runs-min"),
            (runs_max.is_some(), "--runs-max"),
            (budget_s.is_some(), "--budget-s"),
        ];
        if let Some((_, name)) = typed.iter().find(|(is_typed, _)| *is_typed) {
            let sentence = format!("{name} has no effect: each item is asked once in each arm");
            return Err(Failure::usage(sentence).hint("leave it out"));
        }
        self.items.check_number()?;
        if plan.is_none() {
            eval_setup::item_notes(&self.item_set(*seed)?)
                .iter()
                .for_each(|note| printer.note(note));
        }
        Ok(())
    }

    fn item_set(&self, seed: Option<u64>) -> CliResult<ItemSet> {
        let mut usual = TaskName::usual();
        // A completion offers no tools.
        usual.retain(|task| !self.completion || task.family != TaskFamily::ToolUse);
        self.items.set(usual, seed.unwrap_or(EVAL_SEED))
    }

    fn form(&self) -> CliResult<PromptForm> {
        match (self.completion, self.choices_by_logprob) {
            (false, false) => Ok(PromptForm::Chat),
            (true, _) => Ok(PromptForm::Completion),
            (false, true) if self.thinking == ThinkingChoice::On => {
                Err(Failure::usage("a thought has no log-probability that could be compared")
                    .hint("leave out --thinking on, or --choices-by-logprob"))
            }
            (false, true) => Ok(PromptForm::ScoredOptions),
        }
    }
}

impl ItemArgs {
    /// Refuses a number of items without tasks. Command lines of older records can have one.
    ///
    /// # Errors
    /// There are only files.
    pub(crate) fn check_number(&self) -> CliResult<()> {
        if self.items.is_some() && self.tasks.is_empty() && !self.file.is_empty() {
            let sentence =
                "--items has no effect: it is for tasks, and all items of a file are asked";
            return Err(Failure::usage(sentence).hint("leave it out, or name tasks with --tasks"));
        }
        Ok(())
    }

    /// The items that these options select; those of the `usual` tasks if they name none.
    ///
    /// # Errors
    /// A file cannot be read, or there are no items or too many.
    pub(crate) fn set(&self, usual: Vec<TaskName>, seed: u64) -> CliResult<ItemSet> {
        let own = eval_setup::own_items(&self.file)?;
        let tasks = match &self.tasks[..] {
            [] if own.is_empty() => usual,
            named => named.to_vec(),
        };
        let per_task = self.items.unwrap_or(EVAL_ITEMS);
        let count = tasks.len().saturating_mul(per_task) + own.len();
        if !(1..=ITEMS_MAX).contains(&count) {
            return Err(Failure::usage(format!("{count} items (expected 1 to {ITEMS_MAX})")));
        }
        Ok(ItemSet::new(tasks, per_task, seed, own))
    }
}

/// Keeps the options of repeated runs out of the help, and says what the seed makes here.
fn of_items(option: Arg) -> Arg {
    let id = option.get_id().as_str();
    let is_of_runs = ["runs_min", "runs_max", "budget_s"].contains(&id);
    let is_seed = id == "seed";
    let option = option.hide(is_of_runs);
    let seed = format!("The seed of the items; another one makes others [default: {EVAL_SEED}]");
    if is_seed { option.help(seed) } else { option }
}

pub(crate) fn task(name: &str) -> Result<TaskName, String> {
    TaskName::parse(name).map_err(|error| error.to_string())
}

fn temperature(text: &str) -> Result<f64, String> {
    let suits = |value: &f64| (0.0..=TEMPERATURE_MAX).contains(value);
    number(text, suits, format_args!("0 to {TEMPERATURE_MAX}"))
}

#[cfg(test)]
mod tests {
    use crate::commands::bench::Verb;
    use crate::printer::{Printer, Volume};

    #[test]
    fn a_completion_is_asked_for_no_task_with_tools_unless_one_is_named() {
        for (words, expected) in [
            ("hob eval", true),
            ("hob eval --completion", false),
            ("hob eval --completion --tasks units,tool-use", true),
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let Ok(Verb::Eval(args)) = Verb::parse(words.iter()) else { panic!("{words:?}") };
            let set = args.own.item_set(None).expect("items");
            let has_tools = (0..set.len()).any(|number| !set.item(number).tools.is_empty());
            assert_eq!(has_tools, expected, "{words:?}");
        }
    }

    #[test]
    fn a_number_of_items_without_tasks_is_refused_and_can_be_run_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("own.jsonl").display().to_string();
        fs_err::write(&file, r#"{"prompt":"?","reference":1}"#).expect("written");
        let words = ["hob", "eval", "--items", "3", "--file", &file].map(str::to_owned);
        let Ok(Verb::Eval(args)) = Verb::parse(words.iter()) else { panic!("{words:?}") };
        let printer = Printer::new(Volume::ErrorsOnly);
        let refused = args.own.begin(&args.measuring, &printer).expect_err("no effect").to_string();
        assert!(refused.contains("--items has no effect"), "{refused}");
        assert_eq!(args.own.item_set(None).expect("as an older record was made").len(), 1);
    }
}
