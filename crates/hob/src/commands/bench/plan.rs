//! `hob bench plan`: cell after cell of plans in YAML. A cell with a valid record is not measured again.
//! Each record is on the disk before the next cell begins, so an interrupted plan continues with the next cell.

mod plan_run;
mod visits;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{Arg, Args};
use hob_bench::display;
use hob_bench::eval::ItemSet;
use hob_bench::experiment::Workload;
use hob_bench::plan::{BenchPlan, CellKey, PlanError, PlanKind, cells, done};
use hob_bench::record::{Record, RecordStore};
use hob_bench::terms::Metric;
use serde_json::json;

use super::RECORDS;
use super::measuring::{Done, MeasuringArgs, stoppable};
use super::queue::{Turn, line_up};
use super::tables::{badge, first_ms, together};
use crate::eval_setup;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::{Printer, table};
use plan_run::{PlanResults, PlanRun};
use visits::visits;

/// Measure everything that a YAML plan lists; run it again to continue after an interruption
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PlanArgs {
    /// Plans, one after the other
    #[arg(value_name = "FILE", required_unless_present = "queue")]
    plans: Vec<PathBuf>,
    /// Show what would be measured and what is already measured, without a request to any server
    #[arg(long)]
    dry_run: bool,
    /// Show the measurement that now writes into this folder, and those that wait
    #[arg(long, conflicts_with_all = ["plans", "dry_run"])]
    queue: bool,
    /// Fail instead of waiting for another measurement to end
    #[arg(long)]
    no_wait: bool,
    /// The folder that keeps the records
    #[arg(long, value_name = "FOLDER", default_value = RECORDS)]
    out: PathBuf,
    /// Print the records as JSON, one per line; with --dry-run the cells, with --queue the measurements
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
A plan lists servers and cells, and says how precise a figure must be and how long all may take:

  schema: bench-plan/1
  name: nightly
  targets:
    - {name: here, url: \"http://127.0.0.1:8484\", api: hob}
    - name: llama
      url: \"http://127.0.0.1:8099\"
      launch: \"llama-server -m {model}-{quant}.gguf --port 8099\"
  matrix:
    {kind: [llm], model: [qwen3-8b], quant: [Q4_K_M], shape: [short_short], concurrency: [1, 4]}
  exclude: [{target: here, concurrency: 4}]
  runs: {min: 6, max: 10, half_width_pct: 2.5, server_starts: 2}
  budget: {cell_s: 900, total_s: 14400}
  on_fail: record

A matrix for speech:
    {kind: [tts], text: [short, long], format: [pcm, mp3], voice: [af_heart], concurrency: [1]}

Examples:
  hob bench plan bench/plans/nightly.yaml --dry-run
  hob bench plan bench/plans/nightly.yaml   run it again after an interruption: it continues";

pub(crate) fn run(args: &PlanArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    if args.queue {
        return line_up((&args.out, args.json), printer);
    }
    let plans: Vec<BenchPlan> = args
        .plans
        .iter()
        .map(|file| BenchPlan::read(file).map_err(unreadable))
        .collect::<CliResult<_>>()?;
    if args.dry_run {
        return plans
            .iter()
            .try_for_each(|plan| dry(plan, (&args.out, args.json), printer))
            .map(|()| Exit::Done);
    }
    carry_out(plans, Turn::of(args.no_wait), (&args.out, args.json), (globals, printer))
}

/// Refuses an option next to `--plan` where the plan itself says what the option would.
pub(super) fn unless_planned(option: Arg) -> Arg {
    let taken = ["plan", "target", "out", "no_wait", "json"];
    let has_effect = taken.contains(&option.get_id().as_str());
    if has_effect { option } else { option.conflicts_with("plan") }
}

/// Measures the cells of one kind in a plan; with `--target`, only those of that target.
pub(crate) fn part(
    file: &Path,
    kind: PlanKind,
    args: &MeasuringArgs,
    (globals, printer): (&Globals, &Printer),
) -> CliResult<Exit> {
    let mut plan = BenchPlan::read(file).map_err(unreadable)?;
    plan.matrix.kind.retain(|named| *named == kind);
    if let Some(name) = &args.server.target {
        plan.targets.retain(|target| target.name == *name);
    }
    if cells(&plan).is_empty() {
        let sentence = format!("{} names no cell of {} there", file.display(), kind.name());
        return Err(Failure::usage(sentence));
    }
    carry_out(vec![plan], Turn::of(args.no_wait), (&args.out, args.json), (globals, printer))
}

/// The items of a plan's evaluations, which are the same for all of them. `None`: the plan has no evaluation.
fn eval_items(plan: &BenchPlan) -> CliResult<Option<Arc<ItemSet>>> {
    let Some(cell) = cells(plan).into_iter().find(|cell| cell.kind == PlanKind::Eval) else {
        return Ok(None);
    };
    let Workload::Eval(mut workload) = cell.experiment(false).workload else { return Ok(None) };
    eval_setup::add_own_items(&mut workload, &cell.items_file)?;
    Ok(Some(workload.items))
}

fn carry_out(
    plans: Vec<BenchPlan>,
    turn: Turn,
    (out, as_json): (&Path, bool),
    (globals, printer): (&Globals, &Printer),
) -> CliResult<Exit> {
    let mut prepared = Vec::new();
    for plan in plans {
        let items = eval_items(&plan)?;
        for sentence in items.iter().flat_map(|items| eval_setup::item_notes(items)) {
            printer.note(format_args!("{}: {sentence}", plan.name));
        }
        prepared.push((plan, items));
    }
    let (globals, to, out) = (globals.clone(), *printer, out.to_owned());
    let (results, was_stopped) = stoppable(move |stop| {
        let mut results = PlanResults::default();
        for (plan, items) in &prepared {
            let _turn = turn.take(&out, &format!("the plan {}", plan.name), (stop, &to))?;
            let known = done(records(&out)?.iter());
            let count = items.as_ref().map_or(0, |items| items.len());
            let mut run = PlanRun::new((plan, items.clone()), known, (&globals, &to), &out, stop);
            run.measure_all(&visits(plan, count), &mut results)?;
        }
        Ok((results, stop.load(Ordering::Relaxed)))
    })?;
    printer.note(results.summary());
    let PlanResults { records, targets, failed, .. } = results;
    let done = Done { records, was_stopped };
    done.show(as_json, printer, |records| plan_table(records, &targets))?;
    // A cell whose second try succeeded has not failed.
    done.exit(|record| failed > 0 && !record.invalid_reasons.is_empty())
}

/// A table with one row for each record, and how to show a whole record. Two targets of a plan may have one address, so
/// the row has the plan's name of the target.
fn plan_table(records: &[Record], targets: &[String]) -> String {
    let labels: BTreeSet<&String> =
        records.iter().flat_map(|record| record.labels.keys()).collect();
    let head = ["record", "target", "model", "quant", "kind", "shape", "users", "first", "tok/s"];
    let names = labels.iter().map(|name| name.as_str());
    let mut table = table(head.into_iter().chain(["together", "errors", ""]).chain(names));
    for (record, target) in records.iter().zip(targets) {
        let figure = |metric| record.metrics.figure(metric);
        let model = &record.model;
        let row = [
            record.short_id(),
            target.clone(),
            model.name.clone(),
            model.quant.clone().unwrap_or_default(),
            record.kind.name().to_owned(),
            display::asked(record),
            record.workload.concurrency.map_or(String::new(), |users| users.to_string()),
            first_ms(record).map_or("–".to_owned(), |ms| format!("{ms:.1} ms")),
            figure(Metric::DecodeTokS).map_or("–".to_owned(), |rate| format!("{rate:.1}")),
            together(record),
            record.metrics.errors.unwrap_or_default().to_string(),
            badge(record).to_owned(),
        ];
        let label = |name: &&String| record.labels.get(*name).cloned().unwrap_or_default();
        table.add_row(row.into_iter().chain(labels.iter().map(label)));
    }
    format!("{}\n\n`hob bench show RECORD` shows a whole record.", table.trim_fmt())
}

/// All records of a folder. A missing folder has none.
fn records(folder: &Path) -> CliResult<Vec<Record>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let found = RecordStore::new(folder).read().map_err(Failure::internal)?;
    Ok(found.records.into_iter().map(|(_, record)| record).collect())
}

/// Shows what a plan would measure. A cell with a record is recognised by its point alone, because only the server could name
/// its engine.
fn dry(plan: &BenchPlan, (out, as_json): (&Path, bool), printer: &Printer) -> CliResult<()> {
    let known = done(records(out)?.iter());
    let (cells, items) = (cells(plan), eval_items(plan)?);
    let item_count = items.as_ref().map_or(0, |items| items.len() as u64);
    let mut table = table(["cell", ""]);
    let (mut left, mut most_s) = (0, 0_u64);
    for cell in &cells {
        let point = CellKey::point(cell);
        let is_done = known.iter().any(|key| CellKey::is_of_point(key, &point));
        if !is_done {
            left += 1;
            // An evaluation asks all of its items, however long that takes.
            most_s = most_s.saturating_add(match cell.kind {
                PlanKind::Eval => item_count.saturating_mul(plan.budget.answer_s),
                _ => plan.budget.cell_s,
            });
        }
        if as_json {
            let (plan, name) = (&plan.name, cell.name());
            printer.data(json!({ "plan": plan, "cell": name, "done": is_done }))?;
        }
        table.add_row([cell.name(), if is_done { "done".to_owned() } else { String::new() }]);
    }
    if !as_json {
        printer.data(table.trim_fmt())?;
    }
    let most_s = plan.budget.total_s.map_or(most_s, |total_s| total_s.min(most_s));
    let count = cells.len();
    printer.note(format_args!(
        "{left} of {count} cells are left, {} min at most, without starts and warm-up",
        most_s.div_ceil(60)
    ));
    for sentence in items.iter().flat_map(|items| eval_setup::item_notes(items)) {
        printer.note(sentence);
    }
    Ok(())
}

fn unreadable(error: PlanError) -> Failure {
    match error {
        PlanError::Io { .. } => Failure::internal(error),
        PlanError::Long { .. } | PlanError::Wrong { .. } => Failure::usage(error),
    }
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{Cache, RecordKind, RecordSource};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_row_names_record_target_model_quant_and_labels() {
        let source = RecordSource::default();
        let mut record = Record::new(Uuid::from_u128(0xabc), RecordKind::Llm, source);
        record.model.name = "qwen3-8b".to_owned();
        record.model.quant = Some("Q4_K_M".to_owned());
        record.workload.shape = Some("ctx_512".to_owned());
        record.workload.cache = Some(Cache::Cached);
        record.labels.insert("room".to_owned(), "attic".to_owned());
        let id = record.short_id();
        let text = plan_table(&[record.clone(), record], &["here".to_owned(), "there".to_owned()]);
        let words: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0][..5], ["record", "target", "model", "quant", "kind"], "{text}");
        for (row, target) in words[1..3].iter().zip(["here", "there"]) {
            assert_eq!(row[..5], [id.as_str(), target, "qwen3-8b", "Q4_K_M", "llm"], "{text}");
            assert_eq!(row[5..8], ["ctx_512", "known", "prompt"], "{text}");
            assert_eq!(row.last(), Some(&"attic"), "{text}");
        }
    }
}
