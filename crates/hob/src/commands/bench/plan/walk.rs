//! Runs one plan, cell after cell: which server each needs, whether it is done, and what follows a failure.
//! A server stays up as long as the next cell needs the same one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hob_bench::drive::Patience;
use hob_bench::eval::{EVAL_SEED, ItemSet};
use hob_bench::experiment::Workload;
use hob_bench::plan::{
    BenchPlan, CellKey, OnFail, PlanApi, PlanCell, PlanFacts, PlanKind, PlanTarget,
};
use hob_bench::record::{Record, RecordKind, RecordStore};
use hob_bench::runs::{BenchError, RecordContext, StopRule};
use hob_bench::workbench::Workbench;

use super::super::measuring::{context, duration, keep, progress, purpose};
use super::super::server::{ApiName, Purpose, READY, READY_S, Reached, ServerArgs, failure};
use super::visits::Visit;
use crate::failure::CliResult;
use crate::globals::Globals;
use crate::judging;
use crate::printer::Printer;
use crate::settings::ModelChoice;

/// A plan while it is carried out.
pub(super) struct Walk<'a> {
    plan: &'a BenchPlan,
    /// The items of its evaluations.
    items: Option<Arc<ItemSet>>,
    /// Keys of cells that need not be measured again.
    known: BTreeSet<String>,
    globals: &'a Globals,
    printer: &'a Printer,
    out: &'a Path,
    stop: &'a AtomicBool,
    /// The server of the last cell, with the words that it was reached by.
    reached: Option<(Vec<String>, Reached)>,
    begun: Instant,
    /// What each cell took that was measured.
    spent: Vec<Duration>,
}

/// What became of the cells.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) records: Vec<Record>,
    cells: usize,
    before: usize,
    now: usize,
    failed: usize,
}

impl Walked {
    pub(super) fn summary(&self) -> String {
        let Walked { cells, before, now, failed, .. } = self;
        let left = cells - before - now - failed;
        format!("{cells} cells: {now} measured, {before} done before, {failed} failed, {left} left")
    }
}

/// What became of one.
enum Fate {
    DoneBefore,
    /// A part of its items was asked.
    Begun,
    Measured(Vec<Record>),
}

/// What a visit came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visited {
    /// The cell has a valid record.
    Good,
    Begun,
    Failed,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        (plan, items): (&'a BenchPlan, Option<Arc<ItemSet>>),
        known: BTreeSet<String>,
        (globals, printer): (&'a Globals, &'a Printer),
        out: &'a Path,
        stop: &'a AtomicBool,
    ) -> Walk<'a> {
        let (reached, begun, spent) = (None, Instant::now(), Vec::new());
        Walk { plan, items, known, globals, printer, out, stop, reached, begun, spent }
    }

    pub(super) fn all(&mut self, visits: &[Visit], walked: &mut Walked) -> CliResult<()> {
        let count = visits.iter().map(|visit| visit.number).max().unwrap_or_default();
        walked.cells += count;
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
            let result = self.cell(visit, &name, walked)?;
            if result != Visited::Begun {
                settled.insert(visit.number);
            }
            let left = visits[at + 1..].iter().map(|next| next.number);
            let left: Vec<usize> = left.filter(|number| !settled.contains(number)).collect();
            if let Some(time) = self.left(left.len()) {
                let cells = left.iter().collect::<BTreeSet<_>>().len();
                self.printer.faint(format_args!("{cells} cells left, about {time}"));
            }
            if result == Visited::Failed && self.plan.on_fail == OnFail::Stop {
                self.printer.note("a cell has failed, and this plan stops at that");
                break;
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let total_s = self.plan.budget.total_s;
        let is_over = total_s.is_some_and(|total_s| self.begun.elapsed().as_secs() >= total_s);
        if is_over {
            self.printer.note("the plan's time is over; run it again to go on");
        }
        is_over
    }

    /// How long so many visits will take, once one has ended.
    fn left(&self, visits: usize) -> Option<String> {
        let count = u32::try_from(self.spent.len()).ok().filter(|count| *count > 0)?;
        let mean = self.spent.iter().sum::<Duration>() / count;
        Some(duration(mean * u32::try_from(visits).ok().filter(|visits| *visits > 0)?))
    }

    fn cell(&mut self, visit: &Visit, name: &str, walked: &mut Walked) -> CliResult<Visited> {
        let tries = if self.plan.on_fail == OnFail::Retry { 2 } else { 1 };
        for _ in 0..tries {
            let begun = Instant::now();
            let fate = self.measure(visit, name)?;
            if !matches!(fate, Fate::DoneBefore) {
                self.spent.push(begun.elapsed());
            }
            let records = match fate {
                Fate::DoneBefore => {
                    self.printer.faint(format_args!("{name}: done before"));
                    walked.before += 1;
                    return Ok(Visited::Good);
                }
                Fate::Begun => return Ok(Visited::Begun),
                Fate::Measured(records) => records,
            };
            let is_good = !records.is_empty()
                && records.iter().all(|record| record.invalid_reasons.is_empty());
            walked.records.extend(records);
            if self.stop.load(Ordering::Relaxed) {
                return Ok(if is_good { Visited::Good } else { Visited::Failed });
            }
            if is_good {
                walked.now += 1;
                return Ok(Visited::Good);
            }
        }
        walked.failed += 1;
        Ok(Visited::Failed)
    }

    fn measure(&mut self, visit: &Visit, name: &str) -> CliResult<Fate> {
        let cell = &visit.cell;
        let server = server(self.plan, cell);
        let argv = argv(&server, cell);
        let Reached { target, started, facts } = match self.reach(&server, cell)? {
            Ok(reached) => reached,
            Err(error) => {
                let context = self.context(cell, hob_bench::server::ServerFacts::default(), argv);
                return self.failed(cell, name, (&context, &error), Vec::new());
            }
        };
        let context = self.context(cell, facts.clone(), argv);
        let key = CellKey::new(cell, &PlanFacts::from_context(&context));
        if self.known.contains(&key.to_string()) {
            self.reached = Some((words_of(&server, cell), Reached { target, started, facts }));
            return Ok(Fate::DoneBefore);
        }
        let (out, printer, stop_rule, mut records) =
            (self.out, self.printer, stop_rule(self.plan), Vec::new());
        let mut bench = Workbench {
            target: target.clone(),
            started,
            context: context.clone(),
            stop_rule,
            patience: patience(self.plan),
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
            workload.bounds = self.plan.bounds.into();
            workload.until = visit.part.until(workload.items.len());
            judging::prepare(workload, out)?;
        }
        let measured = experiment.measure(&mut bench);
        let started = bench.started.take();
        self.reached = Some((words_of(&server, cell), Reached { target, started, facts }));
        if let Err(error) = measured {
            return self.failed(cell, name, (&context, &error), records);
        }
        if !visit.part.is_last() && !self.stop.load(Ordering::Relaxed) {
            return Ok(Fate::Begun);
        }
        let is_whole = !self.stop.load(Ordering::Relaxed) && records.iter().all(Record::is_valid);
        // One of them says for all that the cell is done.
        if let Some(last) = records.last_mut().filter(|_| is_whole) {
            let complete = RecordStore::new(out).complete(last, &key.to_string());
            *last = complete.map_err(|error| failure(error.into()))?;
        }
        Ok(Fate::Measured(records))
    }

    /// The server of the last cell if this one needs the same, or else its own.
    fn reach(
        &mut self,
        server: &ServerArgs,
        cell: &PlanCell,
    ) -> CliResult<Result<Reached, BenchError>> {
        let words = words_of(server, cell);
        // Another server ends here, before the next is started: both may have one port.
        let kept = self.reached.take().filter(|(known, _)| *known == words);
        if let Some((_, reached)) = kept {
            return Ok(Ok(reached));
        }
        let purpose = purpose(&cell.experiment(false));
        let reached = server.settle(purpose, self.globals, self.printer)?.reach(self.stop);
        // Where the plan has a start command, that says the model, whatever the server calls it.
        let is_checked = server.launch.is_none() && purpose == Purpose::Chat;
        Ok(reached.and_then(|reached| match is_checked {
            true => reached.target.check_listed().map(|()| reached).map_err(BenchError::from),
            false => Ok(reached),
        }))
    }

    /// A failure gets a record too, unless hob caused it or the user did not wait for it.
    fn failed(
        &mut self,
        cell: &PlanCell,
        name: &str,
        (context, error): (&RecordContext, &BenchError),
        mut records: Vec<Record>,
    ) -> CliResult<Fate> {
        if let BenchError::Record(error) = error {
            return Err(crate::failure::Failure::new(crate::failure::Exit::Internal, error));
        }
        // Whatever it was, the server is not what it should be.
        self.reached = None;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Fate::Measured(records));
        }
        self.printer.note(format_args!("{name}: {error}"));
        let mut record = context.failed(cell.record_kind(), cell.workload(), error);
        record.labels = cell.labels.clone();
        keep(self.out, &record, &[], self.printer).map_err(|error| failure(error.into()))?;
        records.push(record);
        Ok(Fate::Measured(records))
    }

    fn context(
        &self,
        cell: &PlanCell,
        facts: hob_bench::server::ServerFacts,
        argv: Vec<String>,
    ) -> RecordContext {
        // The same items and marks at each start, so that a cell goes on where it was killed.
        let is_eval = cell.record_kind() == RecordKind::Eval;
        let seed = self.plan.seed.or(is_eval.then_some(EVAL_SEED));
        let mut context = context(facts, argv, seed);
        let RecordContext { engine, model, .. } = &mut context;
        engine.backend = cell.backend.clone().or(engine.backend.take());
        if is_eval {
            // A server that says its context knows it better.
            engine.params.ctx = engine.params.ctx.or(cell.room());
        }
        model.quant = cell.quant.clone().or(model.quant.take());
        if model.name.is_empty() {
            model.name = cell.model.clone().unwrap_or_default();
        }
        context
    }
}

fn patience(plan: &BenchPlan) -> Patience {
    Patience { total: Duration::from_secs(plan.budget.answer_s), ..Patience::default() }
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

/// Whom a cell asks, as it would be typed.
fn server(plan: &BenchPlan, cell: &PlanCell) -> ServerArgs {
    let usual = PlanTarget::default();
    // A plan that was read has the targets of its cells.
    let target = plan.targets.iter().find(|target| target.name == cell.target).unwrap_or(&usual);
    let filled = |text: &String| PlanTarget::filled(text, cell);
    let context = match cell.kind {
        // An axis of its own, and not only room for a prompt.
        PlanKind::Eval => cell.room().or(target.context),
        _ => target.context.or(cell.room()),
    };
    ServerArgs {
        target: target.url.as_ref().map(filled),
        model: target.model.as_ref().map(filled).or_else(|| usual_model(target, cell)),
        api: match target.api {
            PlanApi::Auto => ApiName::Auto,
            PlanApi::Openai => ApiName::Openai,
            PlanApi::Ollama => ApiName::Ollama,
            PlanApi::Hob => ApiName::Hob,
        },
        key_env: target.key_env.clone(),
        launch: target.launch.as_ref().map(filled),
        ready: target.ready.clone().unwrap_or_else(|| READY.to_owned()),
        ready_s: READY_S,
        context,
        model_file: target.model_file.as_ref().map(filled).map(PathBuf::from),
    }
}

/// The model that a target without `model` is asked for. A hob names each quant of a model: `qwen3:8b-q8_0`, or of a
/// repository `owner/name:Q8_0`.
fn usual_model(target: &PlanTarget, cell: &PlanCell) -> Option<String> {
    let model = cell.model.as_ref()?;
    let is_hob = target.url.is_none() || target.api == PlanApi::Hob;
    Some(match cell.quant.as_ref().filter(|_| is_hob) {
        None => model.clone(),
        Some(quant) if model.contains('/') => format!("{model}:{quant}"),
        Some(quant) => ModelChoice::new(&format!("{model}-{quant}"), Path::to_owned).name(),
    })
}

/// Words that identify a server and its model. At one address, each kind of model is another model.
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
