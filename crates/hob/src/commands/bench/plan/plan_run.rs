//! Runs one plan, cell after cell: which server each needs, whether it is done, and what follows a failure.
//! A server stays up as long as the next cell needs the same one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hob_bench::drive::RequestLimits;
use hob_bench::eval::{EVAL_SEED, ItemSet};
use hob_bench::experiment::Workload;
use hob_bench::plan::{
    BenchPlan, CellKey, OnFail, PlanApi, PlanCell, PlanFacts, PlanKind, PlanTarget,
};
use hob_bench::record::{Record, RecordKind, RecordStore};
use hob_bench::runs::{BenchError, RecordContext, StopRule};
use hob_bench::server::ServerFacts;
use hob_bench::workbench::Workbench;
use hob_core::Kind;

use super::super::measuring::{context, keep, progress, purpose};
use super::super::server::{READY, READY_S, Reached, ServerArgs, failure};
use super::visits::Visit;
use crate::eval_setup;
use crate::failure::{CliResult, Failure};
use crate::globals::Globals;
use crate::printer::{Printer, duration_text};
use crate::settings::ModelChoice;

/// A plan that is being measured.
pub(super) struct PlanRun<'a> {
    plan: &'a BenchPlan,
    /// The items of its evaluations.
    items: Option<Arc<ItemSet>>,
    /// Keys of cells that need not be measured again.
    known: BTreeSet<String>,
    globals: &'a Globals,
    printer: &'a Printer,
    out: &'a Path,
    stop: &'a AtomicBool,
    /// The server of the last cell, with the words of [`words_of`].
    reached: Option<(Vec<String>, Reached)>,
    started_at: Instant,
    /// How long each visit took that measured something.
    visit_times: Vec<Duration>,
}

/// Records of the plans so far, and numbers of cells.
#[derive(Debug, Default)]
pub(super) struct PlanResults {
    pub(super) records: Vec<Record>,
    /// The plan's name for the server of each record.
    pub(super) targets: Vec<String>,
    cells: usize,
    /// Cells with a valid record of an earlier call.
    before: usize,
    /// Cells that this call has measured.
    now: usize,
    pub(super) failed: usize,
}

impl PlanResults {
    pub(super) fn summary(&self) -> String {
        let PlanResults { cells, before, now, failed, .. } = self;
        let left = cells - before - now - failed;
        format!("{cells} cells: {now} measured, {before} done before, {failed} failed, {left} left")
    }
}

/// What measuring a cell gave.
enum CellOutcome {
    DoneBefore,
    /// A part of its items is done.
    PartDone,
    Measured(Vec<Record>),
}

/// The result of one visit, or of its second try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisitResult {
    /// The cell has a valid record.
    Valid,
    /// Further visits ask the other items, the user stopped the plan, or the cell was left out because the server's context
    /// is too short for it.
    PartDone,
    Failed,
}

impl<'a> PlanRun<'a> {
    pub(super) fn new(
        (plan, items): (&'a BenchPlan, Option<Arc<ItemSet>>),
        known: BTreeSet<String>,
        (globals, printer): (&'a Globals, &'a Printer),
        out: &'a Path,
        stop: &'a AtomicBool,
    ) -> PlanRun<'a> {
        let (reached, started_at, visit_times) = (None, Instant::now(), Vec::new());
        PlanRun {
            plan,
            items,
            known,
            globals,
            printer,
            out,
            stop,
            reached,
            started_at,
            visit_times,
        }
    }

    pub(super) fn measure_all(
        &mut self,
        visits: &[Visit],
        results: &mut PlanResults,
    ) -> CliResult<()> {
        let count = visits.iter().map(|visit| visit.number).max().unwrap_or_default();
        results.cells += count;
        // Cells that need no further visit.
        let mut settled: BTreeSet<usize> = BTreeSet::new();
        for (at, visit) in visits.iter().enumerate() {
            if settled.contains(&visit.number) {
                continue;
            }
            if self.stop.load(Ordering::Relaxed) || self.is_over() {
                break;
            }
            let name =
                format!("{}/{count} {}{}", visit.number, visit.cell.name(), visit.part.name());
            let result = self.visit(visit, &name, results)?;
            if result != VisitResult::PartDone {
                settled.insert(visit.number);
            }
            let left = visits[at + 1..].iter().map(|next| next.number);
            let left: Vec<usize> = left.filter(|number| !settled.contains(number)).collect();
            if let Some(time) = self.time_left(left.len()) {
                let cells = left.iter().collect::<BTreeSet<_>>().len();
                self.printer.faint(format_args!("{cells} cells left, about {time}"));
            }
            if result == VisitResult::Failed && self.plan.on_fail == OnFail::Stop {
                self.printer.note("a cell failed, and the plan says `on_fail: stop`");
                break;
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let total_s = self.plan.budget.total_s;
        let is_over = total_s.is_some_and(|total_s| self.started_at.elapsed().as_secs() >= total_s);
        if is_over {
            self.printer.note("the time of the plan is used up; run it again to continue");
        }
        is_over
    }

    /// How long this number of visits will take, estimated from the visits before.
    fn time_left(&self, visits: usize) -> Option<String> {
        let count = u32::try_from(self.visit_times.len()).ok().filter(|count| *count > 0)?;
        let mean = self.visit_times.iter().sum::<Duration>() / count;
        Some(duration_text(mean * u32::try_from(visits).ok().filter(|visits| *visits > 0)?))
    }

    /// Measures one part of a cell, twice if it fails and the plan says so.
    fn visit(
        &mut self,
        visit: &Visit,
        name: &str,
        results: &mut PlanResults,
    ) -> CliResult<VisitResult> {
        let tries = if self.plan.on_fail == OnFail::Retry { 2 } else { 1 };
        for _ in 0..tries {
            let started_at = Instant::now();
            let outcome = self.measure(visit, name)?;
            if !matches!(outcome, CellOutcome::DoneBefore) {
                self.visit_times.push(started_at.elapsed());
            }
            let records = match outcome {
                CellOutcome::DoneBefore => {
                    self.printer.faint(format_args!("{name}: done before"));
                    results.before += 1;
                    return Ok(VisitResult::Valid);
                }
                CellOutcome::PartDone => return Ok(VisitResult::PartDone),
                CellOutcome::Measured(records) => records,
            };
            let is_unfinished = records.is_empty() || self.stop.load(Ordering::Relaxed);
            let is_valid = records.iter().all(|record| record.invalid_reasons.is_empty());
            results.targets.extend(records.iter().map(|_| visit.cell.target.clone()));
            results.records.extend(records);
            if is_unfinished {
                return Ok(VisitResult::PartDone);
            }
            if is_valid {
                results.now += 1;
                return Ok(VisitResult::Valid);
            }
        }
        results.failed += 1;
        Ok(VisitResult::Failed)
    }

    fn measure(&mut self, visit: &Visit, name: &str) -> CliResult<CellOutcome> {
        let cell = &visit.cell;
        let server = server(self.plan, cell);
        let argv = argv(&server, cell);
        let Reached { target, started, facts } = match self.reach(&server, cell)? {
            Ok(reached) => reached,
            Err((known, error)) => {
                let context = self.context(cell, known, argv);
                return self.failed(cell, name, (&context, &error), Vec::new());
            }
        };
        let context = self.context(cell, facts.clone(), argv);
        let key = CellKey::new(cell, &PlanFacts::from_context(&context));
        if self.known.contains(&key.to_string()) {
            self.reached = Some((words_of(&server, cell), Reached { target, started, facts }));
            return Ok(CellOutcome::DoneBefore);
        }
        let (out, printer, stop_rule, mut records) =
            (self.out, self.printer, stop_rule(self.plan), Vec::new());
        let mut bench = Workbench {
            target: target.clone(),
            started,
            context: context.clone(),
            stop_rule,
            limits: limits(self.plan),
            stop: self.stop,
            tell: &mut |_, step| printer.faint(progress(name, step, stop_rule)),
            keep: &mut |record, samples| {
                let mut record = Record { labels: cell.labels.clone(), ..record.clone() };
                record.check_setup(&hob_machine::power_caps_w());
                keep(out, &record, samples, printer)?;
                records.push(record);
                Ok(())
            },
        };
        let has_weights = bench.started.as_ref().is_some_and(|started| started.weights.is_some());
        let mut experiment = cell.experiment(has_weights);
        if let Workload::Eval(workload) = &mut experiment.workload {
            workload.items = self.items.clone().unwrap_or_else(|| Arc::clone(&workload.items));
            workload.cell = Some(key.to_string());
            workload.bounds = self.plan.bounds;
            workload.until = visit.part.until(workload.items.len());
            eval_setup::prepare(workload, out)?;
        }
        let measured = experiment.measure(&mut bench);
        let started = bench.started.take();
        self.reached = Some((words_of(&server, cell), Reached { target, started, facts }));
        if let Err(error) = measured {
            return self.failed(cell, name, (&context, &error), records);
        }
        if !visit.part.is_last() && !self.stop.load(Ordering::Relaxed) {
            return Ok(CellOutcome::PartDone);
        }
        let is_whole = !self.stop.load(Ordering::Relaxed) && records.iter().all(Record::is_valid);
        // The last record marks the whole cell as done.
        if let Some(last) = records.last_mut().filter(|_| is_whole) {
            let complete = RecordStore::new(out).complete(last, &key.to_string());
            *last = complete.map_err(|error| failure(error.into()))?;
        }
        Ok(CellOutcome::Measured(records))
    }

    /// The server of the last cell if this cell needs the same one; otherwise this cell's own server. An error has
    /// what was known before.
    fn reach(
        &mut self,
        server: &ServerArgs,
        cell: &PlanCell,
    ) -> CliResult<Result<Reached, (ServerFacts, BenchError)>> {
        let words = words_of(server, cell);
        // If the cell needs another server, the last one ends here, before the next starts: both may use the same port.
        let kept = self.reached.take().filter(|(known, _)| *known == words);
        if let Some((_, reached)) = kept {
            return Ok(Ok(reached));
        }
        let purpose = purpose(&cell.experiment(false));
        let settled = server.settle(purpose, self.globals, self.printer)?;
        let known = settled.facts();
        let reached = settled.reach(self.stop);
        // A start command decides which model is served, so the name in the list may differ.
        let is_checked = server.launch.is_none() && purpose == Kind::Chat;
        let reached = reached.and_then(|reached| match is_checked {
            true => reached.target.check_listed().map(|()| reached).map_err(BenchError::from),
            false => Ok(reached),
        });
        Ok(reached.map_err(|error| (known, error)))
    }

    /// A failure also gets a record, unless hob caused it or the user stopped the plan.
    fn failed(
        &mut self,
        cell: &PlanCell,
        name: &str,
        (context, error): (&RecordContext, &BenchError),
        mut records: Vec<Record>,
    ) -> CliResult<CellOutcome> {
        if let BenchError::Record(error) = error {
            return Err(Failure::internal(error));
        }
        // After a failure, the server is not trusted: the next cell starts or reaches it again.
        self.reached = None;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(CellOutcome::Measured(records));
        }
        self.printer.note(format_args!("{name}: {error}"));
        let mut record = context.failed(cell.record_kind(), cell.workload(), error);
        record.labels = cell.labels.clone();
        keep(self.out, &record, &[], self.printer).map_err(|error| failure(error.into()))?;
        records.push(record);
        Ok(CellOutcome::Measured(records))
    }

    fn context(&self, cell: &PlanCell, facts: ServerFacts, argv: Vec<String>) -> RecordContext {
        // The same seed at each start gives the same items, so an interrupted cell continues.
        let is_eval = cell.record_kind() == RecordKind::Eval;
        let seed = self.plan.seed.or(is_eval.then_some(EVAL_SEED));
        let mut context = context(facts, argv, seed);
        let RecordContext { engine, model, .. } = &mut context;
        engine.backend = cell.backend.clone().or(engine.backend.take());
        if is_eval {
            // The context that the server reports has priority.
            engine.params.ctx = engine.params.ctx.or(cell.room());
        }
        model.quant = cell.quant.clone().or(model.quant.take());
        if model.name.is_empty() {
            model.name = cell.model.clone().unwrap_or_default();
        }
        context
    }
}

fn limits(plan: &BenchPlan) -> RequestLimits {
    RequestLimits { total: Duration::from_secs(plan.budget.answer_s), ..RequestLimits::default() }
}

fn stop_rule(plan: &BenchPlan) -> StopRule {
    StopRule {
        runs_min: plan.runs.min,
        runs_max: plan.runs.max,
        half_width_pct: plan.runs.half_width_pct,
        budget: Duration::from_secs(plan.budget.cell_s),
        starts: plan.runs.server_starts,
    }
}

/// The server of a cell, as command-line arguments.
fn server(plan: &BenchPlan, cell: &PlanCell) -> ServerArgs {
    let usual = PlanTarget::default();
    // `BenchPlan::parse` checks that every target exists, so the default is never used.
    let target = plan.targets.iter().find(|target| target.name == cell.target).unwrap_or(&usual);
    let filled = |text: &String| PlanTarget::filled(text, cell);
    let context = match cell.kind {
        // An evaluation measures this context itself; other kinds only need enough for their prompts.
        PlanKind::Eval => cell.room().or(target.context),
        _ => target.context.or(cell.room()),
    };
    ServerArgs {
        target: target.url.as_ref().map(filled),
        model: target.model.as_ref().map(filled).or_else(|| usual_model(target, cell)),
        api: target.api,
        key_env: target.key_env.clone(),
        launch: target.launch.as_ref().map(filled),
        ready: target.ready.clone().unwrap_or_else(|| READY.to_owned()),
        ready_s: READY_S,
        context,
        model_file: target.model_file.as_ref().map(filled).map(PathBuf::from),
    }
}

/// The model to request from a target without `model`. A hob has one name for each quant of a model: `qwen3:8b-q8_0`, or
/// `owner/name:Q8_0` for a repository.
fn usual_model(target: &PlanTarget, cell: &PlanCell) -> Option<String> {
    let model = cell.model.as_ref()?;
    let is_hob = target.url.is_none() || target.api == PlanApi::Hob;
    Some(match cell.quant.as_ref().filter(|_| is_hob) {
        None => model.clone(),
        Some(quant) if model.contains('/') => format!("{model}:{quant}"),
        Some(quant) => ModelChoice::new(&format!("{model}-{quant}"), Path::to_owned).name(),
    })
}

/// Words that identify a server and its model. One address may serve one model of each kind.
fn words_of(server: &ServerArgs, cell: &PlanCell) -> Vec<String> {
    let purpose = format!("{:?}", purpose(&cell.experiment(false)));
    server.words().into_iter().chain([purpose]).collect()
}

fn argv(server: &ServerArgs, cell: &PlanCell) -> Vec<String> {
    let first = ["hob", "bench"].map(str::to_owned);
    first.into_iter().chain(cell.words()).chain(server.words()).collect()
}

#[cfg(test)]
mod tests {
    use hob_bench::plan::cells;

    use super::*;

    #[test]
    fn the_context_of_an_evaluation_replaces_that_of_the_target() {
        let plan = "schema: bench-plan/1\nname: n\n\
                    targets: [{name: a, url: \"http://a\", launch: \"serve {ctx}\", context: 8192}]\n\
                    matrix: {kind: [eval, sweep], context: [2048]}\n";
        let plan = BenchPlan::parse("p", plan).expect("a plan");
        let contexts: Vec<_> =
            cells(&plan).iter().map(|cell| server(&plan, cell).context).collect();
        assert_eq!(contexts, [Some(2048), Some(8192)]);
    }

    #[test]
    fn a_hob_is_asked_for_the_quant_of_each_cell() {
        let rows = [
            ("{name: own}", "qwen3:8b", "Q8_0", "qwen3:8b-q8_0"),
            ("{name: own}", "qwen3:8b", "Q4_K_M", "qwen3:8b"),
            ("{name: own}", "owner/name", "Q8_0", "owner/name:Q8_0"),
            ("{name: own, model: \"{model}-{quant}\"}", "qwen3:8b", "q8_0", "qwen3:8b-q8_0"),
            ("{name: own, model: \"{model}-{quant}.gguf\"}", "a", "Q8_0", "a-Q8_0.gguf"),
            ("{name: there, url: \"http://a\", api: hob}", "qwen3:8b", "Q8_0", "qwen3:8b-q8_0"),
            (
                "{name: there, url: \"http://a\", launch: \"serve {quant}\"}",
                "qwen3:8b",
                "Q8_0",
                "qwen3:8b",
            ),
        ];
        for (target, model, quant, expected) in rows {
            let plan = format!(
                "schema: bench-plan/1\nname: n\ntargets: [{target}]\n\
                 matrix: {{kind: [llm], model: [\"{model}\"], quant: [{quant}]}}\n"
            );
            let plan = BenchPlan::parse("p", &plan).expect("a plan");
            let server = server(&plan, &cells(&plan)[0]);
            assert_eq!(server.model.as_deref(), Some(expected), "{target} {model} {quant}");
        }
    }
}
