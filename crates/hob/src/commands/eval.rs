//! `hob eval`: quality and time of a chat model together. Measuring is a verb of `hob bench`, as all measuring is.
//! The other verbs read what it has stored.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hob_bench::eval::{EVAL_SEED, HandGrade, TaskName, regraded};
use hob_bench::record::{Record, RecordKind, RecordStore};
use hob_eval::{TaskFamily, Verdict};
use serde_json::json;

use super::bench::{
    self, AnsweredRecord, BenchArgs, BoundsArgs, EvalArgs, ItemArgs, JudgeArgs, Measure, RECORDS,
};
use crate::arguments::number;
use crate::eval_setup;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::{Printer, table};

/// Measure how good a model's answers are and how long they take; programs grade them
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EvalCommand {
    #[command(subcommand)]
    verb: Option<EvalVerb>,
    #[command(flatten)]
    measure: Box<Measure<EvalArgs>>,
}

#[derive(Debug, Subcommand)]
enum EvalVerb {
    /// List all tasks with their sizes
    Tasks(TasksArgs),
    Items(ItemsArgs),
    Report(ReportArgs),
    Grade(GradeArgs),
    Judge(Box<JudgeArgs>),
}

#[derive(Debug, Args)]
struct TasksArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Print the items that would be asked, as JSON; no server is asked
#[derive(Debug, Args)]
struct ItemsArgs {
    /// The seed of the items
    #[arg(long, default_value_t = EVAL_SEED)]
    seed: u64,
    #[command(flatten)]
    which: ItemArgs,
}

/// Show quality against time of all stored evaluations of the same items
#[derive(Debug, Args)]
struct ReportArgs {
    /// Records, by id or file [default: the newest of each model and arm]
    #[arg(value_name = "ID|FILE")]
    which: Vec<String>,
    /// The folder of the records
    #[arg(long, default_value = RECORDS, value_name = "FOLDER")]
    records: PathBuf,
    #[command(flatten)]
    bounds: BoundsArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Correct a grade by hand; it holds wherever the same question gets the same answer
#[derive(Debug, Args)]
struct GradeArgs {
    /// The record, by id or file
    #[arg(value_name = "ID|FILE")]
    which: String,
    /// The item, such as logic-grid/3x3/7
    #[arg(value_name = "ITEM")]
    item: String,
    /// correct, wrong, no_answer, budget, refused or malformed
    #[arg(value_name = "VERDICT", value_parser = verdict)]
    verdict: Verdict,
    /// 0 to 1 [default: 1 for a correct answer, else 0]
    #[arg(long, value_name = "N", value_parser = score)]
    score: Option<f64>,
    /// Why the checker was mistaken
    #[arg(long, value_name = "TEXT", default_value = "graded by hand")]
    why: String,
    /// The folder of the records
    #[arg(long, default_value = RECORDS, value_name = "FOLDER")]
    records: PathBuf,
}

pub(crate) fn run(args: EvalCommand, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    match args.verb {
        None => bench::run(&BenchArgs::eval(args.measure), globals, printer),
        Some(EvalVerb::Tasks(args)) => tasks(&args, printer),
        Some(EvalVerb::Items(args)) => items(&args, printer),
        Some(EvalVerb::Report(args)) => stored_report(&args, printer),
        Some(EvalVerb::Grade(args)) => grade(&args, printer),
        Some(EvalVerb::Judge(args)) => bench::judge(&args, globals, printer),
    }
}

fn tasks(args: &TasksArgs, printer: &Printer) -> CliResult<Exit> {
    let families = TaskFamily::ALL.map(|family| {
        json!({
            "name": family.name(), "sizes": family.sizes(), "usual": family.usual_size(),
            "about": family.about(),
        })
    });
    printer.report(args.json, &families, || {
        let mut table = table(["task", "sizes", "usual", "what is asked"]);
        for family in TaskFamily::ALL {
            let sizes = family.sizes().join(", ");
            table.add_row([family.name(), &sizes, family.usual_size(), family.about()]);
        }
        table.trim_fmt()
    })
}

fn items(args: &ItemsArgs, printer: &Printer) -> CliResult<Exit> {
    args.which.check_number()?;
    let set = args.which.set(TaskName::usual(), args.seed)?;
    for number in 0..set.len() {
        let item = set.item(number);
        printer.data(json!({
            "id": item.id, "family": item.family, "size": item.size, "system": item.system,
            "prompt": item.prompt, "tools": item.tools, "schema": item.schema,
            "checker": item.checker, "max_tokens": item.max_tokens,
        }))?;
    }
    Ok(Exit::Done)
}

fn stored_report(args: &ReportArgs, printer: &Printer) -> CliResult<Exit> {
    let store = RecordStore::new(&args.records);
    let report = match &args.which[..] {
        [] => {
            let records = newest(&store)?;
            if records.is_empty() {
                let none = format!("{} has no evaluation", args.records.display());
                return Err(Failure::usage(none).hint("`hob eval` makes one"));
            }
            bench::EvalReport::of(&store, &records, args.bounds)?
        }
        which => {
            let pick = |one: &String| AnsweredRecord::pick(&store, one);
            let answered: CliResult<Vec<AnsweredRecord>> = which.iter().map(pick).collect();
            bench::EvalReport::new(answered?, args.bounds)
        }
    };
    match args.json {
        true => printer.data(report.json())?,
        false => printer.data(report.report_text())?,
    }
    Ok(Exit::Done)
}

/// The newest evaluations that asked the same items as the newest of all: one of each model, arm,
/// server and context.
fn newest(store: &RecordStore) -> CliResult<Vec<Record>> {
    if !store.folder().is_dir() {
        return Ok(Vec::new());
    }
    let read = store.read().map_err(Failure::internal)?;
    let replaced: Vec<_> =
        read.records.iter().filter_map(|(_, record)| record.supersedes).collect();
    let is_current = |record: &Record| {
        record.kind == RecordKind::Eval && record.eval.is_some() && !replaced.contains(&record.id)
    };
    let mut records: Vec<Record> =
        read.records.into_iter().map(|(_, record)| record).filter(is_current).collect();
    records.sort_by_key(|record| std::cmp::Reverse((record.time.started, record.id)));
    let set = |record: &Record| record.eval.as_ref().and_then(|eval| eval.set_sha256.clone());
    let latest = records.first().and_then(set);
    records.retain(|record| set(record) == latest);
    let mut seen = Vec::new();
    records.retain(|record| {
        let context = record.engine.params.ctx;
        let arm = (record.eval_name(), record.typed_target().map(str::to_owned), context);
        let is_new = !seen.contains(&arm);
        seen.push(arm);
        is_new
    });
    records.reverse();
    Ok(records)
}

fn grade(args: &GradeArgs, printer: &Printer) -> CliResult<Exit> {
    let store = RecordStore::new(&args.records);
    let AnsweredRecord { record, mut answered, .. } = AnsweredRecord::pick(&store, &args.which)?;
    let found = answered.iter_mut().find(|answered| answered.id == args.item);
    let found = found.ok_or_else(|| {
        Failure::usage(format!("the record has no item '{}'", args.item))
            .hint("`hob eval items` and the page list the items")
    })?;
    let usual = if args.verdict == Verdict::Correct { 1.0 } else { 0.0 };
    let grade = HandGrade {
        item: args.item.clone(),
        question_sha256: Some(found.question_sha256()),
        answer_sha256: found.answer_sha256.clone(),
        verdict: args.verdict,
        score: args.score.unwrap_or(usual),
        why: args.why.clone(),
    };
    eval_setup::keep_hand_grade(&args.records, &grade)?;
    let before = found.verdict;
    *found = found.clone().with_hand_grades(&[grade]);
    let record = regraded(&store, &record, &answered);
    let record = record.map_err(Failure::internal)?;
    printer.data(format_args!(
        "{}: {before} is now {}; {} replaces the record",
        args.item,
        args.verdict,
        record.short_id()
    ))?;
    Ok(Exit::Done)
}

fn verdict(text: &str) -> Result<Verdict, String> {
    let known: Vec<&str> = Verdict::scored().map(Verdict::name).collect();
    let verdict = Verdict::scored().find(|verdict| verdict.name() == text);
    verdict.ok_or_else(|| format!("expected one of {}", known.join(", ")))
}

fn score(text: &str) -> Result<f64, String> {
    number(text, |score| (0.0..=1.0).contains(score), "0 to 1")
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{EvalFigures, RecordSource};
    use uuid::Uuid;

    use super::*;

    /// `tasks` prints what `TaskName::parse` takes.
    #[test]
    fn every_listed_task_can_be_asked() {
        for family in TaskFamily::ALL {
            for size in family.sizes() {
                let name = format!("{}:{size}", family.name());
                assert!(TaskName::parse(&name).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn a_newer_evaluation_of_other_items_hides_no_model() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = RecordStore::new(folder.path());
        for (number, model, items) in [(1, "a", "x"), (2, "b", "x"), (3, "a", "y"), (4, "b", "x")] {
            let (id, source) = (Uuid::from_u128(number), RecordSource::default());
            let mut record = Record::new(id, RecordKind::Eval, source);
            record.model.name = model.to_owned();
            let set_sha256 = Some(items.to_owned());
            record.eval = Some(EvalFigures { set_sha256, ..EvalFigures::default() });
            store.put(&record, &[]).expect("kept");
        }
        let found = newest(&store).expect("records");
        let ids: Vec<Uuid> = found.iter().map(|record| record.id).collect();
        assert_eq!(ids, [1, 4].map(Uuid::from_u128));
    }
}
