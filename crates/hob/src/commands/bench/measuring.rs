//! What all measuring verbs share: options, the experiment itself, and where records go. Ctrl-C keeps what is done.
//! A record is on the disk before the next cell begins, so that nothing is lost with the process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use hob_bench::drive::{ANSWER_SECONDS_MAX, RequestLimits};
use hob_bench::experiment::{Experiment, OtherServer, Workload};
use hob_bench::host::host;
use hob_bench::record::{
    RawSample, Record, RecordError, RecordKind, RecordStore, RecordedWorkload, RunStatus,
};
use hob_bench::runs::{BenchError, RecordContext, Step, StopRule};
use hob_bench::server::ServerFacts;
use hob_bench::terms::Metric;
use hob_bench::workbench::Workbench;
use hob_core::Kind;
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::eval_report::EvalReport;
use super::queue::Turn;
use super::record_report::in_turns;
use super::server::{Reached, ServerArgs, ServerPlan, failure};
use super::tables;
use super::{BoundsArgs, RECORDS};
use crate::app::block_on;
use crate::build;
use crate::eval_setup;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::{Printer, duration_text};
use crate::signals::{StopSignals, interrupted};

/// The most runs of a cell that is measured until it is verified.
const RERUN_RUNS_MAX: usize = 120;

#[derive(Clone, Debug, Args)]
pub(crate) struct MeasuringArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Minimum runs of a cell (one server, model and load); a confidence interval needs six [default: 6]
    #[arg(long, value_name = "N")]
    pub(super) runs_min: Option<usize>,
    /// Maximum runs of a cell [default: 10]
    #[arg(long, value_name = "N")]
    pub(super) runs_max: Option<usize>,
    /// Time limit of a cell after its warm-up; it ends with the runs that it has [default: 900]
    #[arg(long, value_name = "SECONDS")]
    pub(super) budget_s: Option<u64>,
    /// Seconds without an answer after which the server counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    timeout_s: u64,
    /// Time limit of a whole answer; a longer one counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = ANSWER_SECONDS_MAX, value_parser = clap::value_parser!(u64).range(1..))]
    answer_s: u64,
    /// The seed of the prompts, to repeat them; otherwise they are new each time, so that no cache has them
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// The folder that keeps the records
    #[arg(long, value_name = "FOLDER", default_value = RECORDS)]
    pub(crate) out: PathBuf,
    /// Measure the cells of this kind in this plan instead; with --target, only those of that target
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Fail instead of waiting for another measurement to end
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Print the records as JSON, one per line
    #[arg(long)]
    pub(crate) json: bool,
    /// A record that the new record of the same cell corrects.
    #[arg(skip)]
    corrects: Option<Box<Record>>,
    /// The command line that records keep, where it is not what was typed.
    #[arg(skip)]
    argv: Option<Vec<String>>,
}

/// How a record is measured again until it is verified.
#[derive(Clone, Debug)]
pub(crate) struct Rerun {
    pub(crate) unverified: Record,
    pub(crate) launch: Option<String>,
    pub(crate) model_file: Option<PathBuf>,
    pub(crate) records: PathBuf,
}

// It has no doc comment, because clap would show that as the help of each verb.
#[derive(Clone, Debug, Args)]
pub(crate) struct Measure<V: Args> {
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    #[command(flatten)]
    pub(crate) own: V,
}

/// A verb that measures, with its own options.
pub(crate) trait MeasuringVerb {
    /// What the options ask for.
    ///
    /// # Errors
    /// They do not fit together.
    fn experiment(&self, measuring: &MeasuringArgs) -> CliResult<Experiment>;

    /// The context that a server is started with, if the experiment starts it with several.
    fn starts_with(&self, _: &ServerArgs, _: &Experiment) -> Option<u64> {
        None
    }

    /// A second server that is measured alternately with the first.
    fn other_server(&self, _: &ServerArgs) -> Option<ServerArgs> {
        None
    }

    /// The seed without `--seed`, if it is not another one each time.
    fn usual_seed(&self) -> Option<u64> {
        None
    }
}

/// Measures what a verb asks for, and shows it as a table or as JSON.
pub(crate) fn run(
    mut args: MeasuringArgs,
    verb: &dyn MeasuringVerb,
    rerun: Option<&Rerun>,
    (globals, printer): (&Globals, &Printer),
) -> CliResult<Exit> {
    args.seed = args.seed.or(verb.usual_seed());
    let mut experiment = verb.experiment(&args)?;
    if let Some(rerun) = rerun {
        experiment.narrow_to(&rerun.unverified);
        args.measure_again(rerun);
    }
    args.server.context = verb.starts_with(&args.server, &experiment).or(args.server.context);
    let other = verb.other_server(&args.server);
    if let (Some(_), Some(_)) = (&other, rerun) {
        return Err(Failure::usage("the record was measured alternately with another server")
            .hint("run hob bench stt again: with --compare for both servers, without it for one"));
    }
    let kind = experiment.kind();
    let (done, mut below) =
        measured(&args, (experiment, keep), other.as_ref(), (globals, printer))?;
    if let (Some(_), false) = (&other, args.json) {
        let store = RecordStore::new(&args.out);
        for pair in done.records.chunks_exact(2) {
            let [base, new] = [0, 1].map(|side: usize| pair[side].id.to_string());
            below.push(in_turns(&store, &base, &new)?);
        }
    }
    if kind == RecordKind::Eval && !args.json && !done.records.is_empty() {
        let store = RecordStore::new(&args.out);
        below.push(EvalReport::of(&store, &done.records, BoundsArgs::default())?.findings());
    }
    done.show(args.json, printer, |records| match below.is_empty() {
        true => tables::record_table(kind, records),
        false => format!("{}\n\n{}", tables::record_table(kind, records), below.join("\n")),
    })?;
    let is_measured = |record: &Record| record.metrics.figure(Metric::TtfaMs).is_some();
    let has_any = done.records.iter().any(is_measured);
    done.exit(|record| match kind {
        // Both verdicts on streaming are results, so only missing figures are a failure.
        RecordKind::Stream => !has_any,
        _ => done.is_spoilt_by(record),
    })
}

/// The records of a measurement.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) records: Vec<Record>,
    pub(crate) was_stopped: bool,
}

/// Stores one record in a folder.
pub(super) type Keep = fn(&Path, &Record, &[RawSample], &Printer) -> Result<(), RecordError>;

/// The records, and of `stream` a line for each cell that shows when its sound arrived.
pub(super) fn measured(
    args: &MeasuringArgs,
    (mut experiment, keep): (Experiment, Keep),
    other: Option<&ServerArgs>,
    (globals, printer): (&Globals, &Printer),
) -> CliResult<(Done, Vec<String>)> {
    let server = args.server.settle(purpose(&experiment), globals, printer)?;
    let settle = |other: &ServerArgs| other.settle(purpose(&experiment), globals, printer);
    let other = other.map(settle).transpose()?;
    let stop_rule = args.stop_rule()?;
    RecordStore::new(&args.out).prepare().map_err(|error| failure(error.into()))?;
    let (args, printer_there) = (args.clone(), *printer);
    let limits = args.limits();
    let argv = args.argv.clone().unwrap_or_else(typed);
    let (turn, name) = (Turn::of(args.no_wait), argv[..argv.len().min(3)].join(" "));
    stoppable(move |stop| {
        let mut timelines = Vec::new();
        let _turn = turn.take(&args.out, &name, (stop, &printer_there))?;
        let (known, kind) = (server.facts(), experiment.kind());
        let about = |facts| context(facts, argv.clone(), args.seed);
        let Reached { target, started, facts } = server.reach(stop).map_err(|error| {
            let keep = |record: &Record| keep(&args.out, record, &[], &printer_there);
            failed_start(error, (&about(known), kind), keep)
        })?;
        let context = about(facts);
        let reach = |other: ServerPlan| {
            let Reached { target, facts, .. } = other.reach(stop).map_err(failure)?;
            let ServerFacts { engine, model } = facts;
            let context = RecordContext { engine, model, ..context.clone() };
            Ok::<_, Failure>(OtherServer { target, context })
        };
        if let Workload::Transcription(workload) = &mut experiment.workload {
            workload.other = other.map(reach).transpose()?.map(Box::new);
        }
        if let Workload::Eval(workload) = &mut experiment.workload {
            eval_setup::prepare(workload, &args.out)?;
        }
        let mut bench = Workbench {
            target,
            started,
            context,
            stop_rule,
            limits,
            stop,
            tell: &mut |name, step| printer_there.faint(progress(name, step, stop_rule)),
            keep: &mut |record, samples| {
                let corrected = args.corrects.as_ref().filter(|old| are_of_one_cell(old, record));
                let record =
                    corrected.map_or_else(|| record.clone(), |old| correction(old, record));
                keep(&args.out, &record, samples, &printer_there)
            },
        };
        let worked = experiment.measure_and_show(&mut bench, &mut |record, arrivals| {
            if kind == RecordKind::Stream {
                timelines.push(tables::timeline(record, arrivals));
            }
        });
        if let Err(error) = &worked {
            bench.keep_failure(kind, error).map_err(|error| failure(error.into()))?;
        }
        let records = worked.map_err(failure)?;
        Ok((Done { records, was_stopped: stop.load(Ordering::Relaxed) }, timelines))
    })
}

/// The error of a server that failed to start. `keep` stores a record of it, as a plan does.
fn failed_start(
    error: BenchError,
    (context, kind): (&RecordContext, RecordKind),
    keep: impl FnOnce(&Record) -> Result<(), RecordError>,
) -> Failure {
    let record = context.failed(kind, RecordedWorkload::default(), &error);
    let kept = if error.is_the_servers() { keep(&record) } else { Ok(()) };
    failure(kept.map_or_else(BenchError::from, |()| error))
}

pub(super) fn purpose(experiment: &Experiment) -> Kind {
    match &experiment.workload {
        Workload::Chat(_) | Workload::Voice(_) | Workload::Eval(_) => Kind::Chat,
        Workload::Speech(_) => Kind::Speech,
        Workload::Transcription(_) => Kind::Transcription,
    }
}

impl Done {
    pub(crate) fn show(
        &self,
        as_json: bool,
        printer: &Printer,
        shown: impl FnOnce(&[Record]) -> String,
    ) -> CliResult<()> {
        if !as_json {
            printer.data(shown(&self.records))?;
            if self.records.is_empty() {
                return Ok(());
            }
            if self.records.iter().all(|record| record.kind == RecordKind::Eval) {
                printer.note("intervals are over items, each of which was asked once");
                return Ok(());
            }
            printer.note(
                "each figure is the median of its runs; a run's is the median of its requests",
            );
            doubts(&self.records, printer);
            return Ok(());
        }
        for record in &self.records {
            let line = serde_json::to_string(record);
            printer.data(line.map_err(Failure::internal)?)?;
        }
        Ok(())
    }

    /// Whether a record makes the command fail: it is invalid, and not the expected end of a context sweep.
    pub(crate) fn is_spoilt_by(&self, record: &Record) -> bool {
        !record.invalid_reasons.is_empty() && !is_an_end(record, &self.records)
    }

    /// The exit of the command, once the records are shown; `spoils` says which record makes it a failure.
    pub(crate) fn exit(&self, spoils: impl Fn(&Record) -> bool) -> CliResult<Exit> {
        if self.was_stopped {
            return Err(interrupted().hint("finished records are stored"));
        }
        match self.records.iter().find(|record| spoils(record)) {
            Some(record) => Err(Failure::server(refusal(record, self.records.len()))
                .hint("`hob bench show ID` says why a run is not a valid measurement")),
            None => Ok(Exit::Done),
        }
    }
}

/// The record that is measured again. A failed run corrects nothing. The server need not know the variant that a plan named.
fn correction(old: &Record, again: &Record) -> Record {
    let mut again = again.clone();
    again.supersedes = again.is_valid().then_some(old.id);
    again.model.quant = again.model.quant.or(old.model.quant.clone());
    again.engine.backend = again.engine.backend.or(old.engine.backend.clone());
    again
}

/// Whether one of them could be the other, measured again.
pub(super) fn are_of_one_cell(one: &Record, other: &Record) -> bool {
    let cell = |record: &Record| {
        let asked = record.workload.clone();
        let target = asked.prompt_tokens.and_then(|tokens| tokens.target);
        let asked = (asked.shape, asked.concurrency, asked.cache, asked.reasoning, target);
        let spoken =
            record.tts.clone().map(|tts| (tts.text_sha256, tts.voice, tts.format, tts.stream));
        let is_streamed = record.stt.as_ref().map(|stt| stt.stream);
        (record.kind, record.model.name.clone(), asked, spoken, is_streamed)
    };
    cell(one) == cell(other) && one.workload.rate == other.workload.rate
}

impl MeasuringArgs {
    /// With more runs and new prompts. An evaluation has no runs, and keeps its items.
    fn measure_again(&mut self, rerun: &Rerun) {
        let Rerun { unverified, launch, model_file, records } = rerun.clone();
        let usual = StopRule::default();
        self.runs_min = self.runs_min.max(Some(usual.runs_min));
        self.runs_max = self.runs_max.max(Some(RERUN_RUNS_MAX));
        let has_runs = unverified.kind != RecordKind::Eval;
        let runs_max = self.runs_max.filter(|_| has_runs).map(|runs| runs.to_string());
        let file = model_file.as_deref().map(|file| file.display().to_string());
        let said = [
            ("--runs-max", runs_max.as_ref()),
            ("--launch", launch.as_ref()),
            ("--model-file", file.as_ref()),
        ];
        let words = unverified.harness.as_ref().map(|harness| harness.argv.clone());
        self.argv = words.map(|words| {
            let words = if has_runs { without_option(words, "--seed") } else { words };
            let said = said.into_iter().filter_map(|(option, value)| Some((option, value?)));
            said.fold(words, |words, (option, value)| with_option(words, option, value))
        });
        self.seed = self.seed.filter(|_| !has_runs);
        (self.out, self.corrects) = (records, Some(Box::new(unverified)));
        self.no_wait = false;
        self.server.launch = launch.or(self.server.launch.take());
        self.server.model_file = model_file.or(self.server.model_file.take());
    }

    fn limits(&self) -> RequestLimits {
        RequestLimits {
            silence: Duration::from_secs(self.timeout_s),
            total: Duration::from_secs(self.answer_s),
            ..RequestLimits::default()
        }
    }

    fn stop_rule(&self) -> CliResult<StopRule> {
        let usual = StopRule::default();
        let runs_min = self.runs_min.unwrap_or(usual.runs_min);
        let runs_max = self.runs_max.unwrap_or(usual.runs_max);
        if runs_min == 0 || runs_max < runs_min {
            return Err(Failure::usage(format!(
                "--runs-min {runs_min}, --runs-max {runs_max}; at least 1 run, and the maximum not below the minimum"
            )));
        }
        let budget = self.budget_s.map_or(usual.budget, Duration::from_secs);
        Ok(StopRule { runs_min, runs_max, budget, ..usual })
    }
}

/// Gives an option this value, whether or not the words had another one.
fn with_option(words: Vec<String>, option: &str, value: &str) -> Vec<String> {
    let mut words = without_option(words, option);
    words.extend([option, value].map(str::to_owned));
    words
}

fn without_option(words: Vec<String>, option: &str) -> Vec<String> {
    let assigned = format!("{option}=");
    let mut is_value = false;
    let mut is_other = |word: &String| {
        let is_kept = !is_value && word != option && !word.starts_with(&assigned);
        is_value = !is_value && word == option;
        is_kept
    };
    words.into_iter().filter(|word| is_other(word)).collect()
}

/// Where and with what it is measured.
pub(crate) fn context(facts: ServerFacts, argv: Vec<String>, seed: Option<u64>) -> RecordContext {
    RecordContext {
        host: host(),
        engine: facts.engine,
        model: facts.model,
        argv,
        seed: seed.unwrap_or_else(new_seed),
        git: build::commit(),
        dirty: build::is_dirty(),
    }
}

/// The command line as typed, with `hob` instead of the program's path, which means nothing on other machines.
pub(crate) fn typed() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    ["hob".to_owned()].into_iter().chain(words).collect()
}

/// Another in each campaign: a server that knows the prompts already would seem many times faster.
pub(crate) fn new_seed() -> u64 {
    Timestamp::now().as_nanosecond() as u64 & 0xFFFF_FFFF
}

/// Runs `work` on a thread of its own. The first Ctrl-C asks it to end; a second does not wait.
pub(crate) fn stoppable<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> CliResult<T> + Send + 'static,
) -> CliResult<T> {
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut work = spawn_blocking(move || work(&seen));
        let ended = |result: Result<CliResult<T>, tokio::task::JoinError>| {
            result.map_err(Failure::internal)?
        };
        tokio::select! {
            result = &mut work => return ended(result),
            () = signals.next() => stop.store(true, Ordering::Relaxed),
        }
        tokio::select! {
            result = &mut work => ended(result),
            () = signals.next() => Err(interrupted()),
        }
    })
}

/// Writes one record, and says where.
pub(crate) fn keep(
    folder: &Path,
    record: &Record,
    samples: &[RawSample],
    printer: &Printer,
) -> Result<(), RecordError> {
    let place = RecordStore::new(folder).put(record, samples)?;
    printer.faint(place.display());
    Ok(())
}

pub(crate) fn progress(name: &str, step: Step<'_>, stop_rule: StopRule) -> String {
    match step {
        Step::Warmed { run } => format!("{name}: warming up, {run}"),
        Step::LeftOut { why } => format!("{name}: {why}"),
        Step::Restarted { .. } => format!("{name}: the server was started again"),
        Step::ClientChecked(calibration) => {
            let error = calibration.ttft_err_ms.median().unwrap_or_default();
            let busy = calibration.cpu_share * 100.0;
            format!("{name}: this client is off by {error:.2} ms and takes {busy:.0} % of a core")
        }
        Step::Tried { attempt, lo_ok, hi_fail, left } => {
            let known = |ctx: Option<u64>| ctx.map_or("?".to_owned(), |ctx| ctx.to_string());
            let (lo, hi, came_to) = (known(lo_ok), known(hi_fail), attempt.result.name());
            let s = attempt.s.unwrap_or_default();
            let ctx = attempt.ctx;
            format!(
                "{name}: {ctx} {came_to} in {s:.0} s; {lo} works, {hi} does not, about {left} left"
            )
        }
        Step::Answered { id, verdict, total_ms, done, all, left } => {
            let (s, left) = (total_ms / 1e3, duration_text(left));
            let name = if name.is_empty() { "eval" } else { name };
            format!("{name}: {done} of {all}, {id}: {verdict} after {s:.1} s, about {left} left")
        }
        Step::Ran { run, half_width_pct, left } => {
            let wide = half_width_pct.map_or(String::new(), |pct| format!(", ±{pct:.1} %"));
            let left = left.map_or(0, |left| left.as_secs());
            let left = if left == 0 { String::new() } else { format!(", about {left} s left") };
            format!(
                "{name}: run {run} of {} to {}{wide}{left}",
                stop_rule.runs_min, stop_rule.runs_max
            )
        }
    }
}

/// The first length of a sweep that a server refuses is a finding, if a shorter one was measured.
fn is_an_end(record: &Record, all: &[Record]) -> bool {
    let is_measured = |record: &Record| record.status == RunStatus::Ok;
    record.kind == RecordKind::CtxSweep && !is_measured(record) && all.iter().any(is_measured)
}

fn refusal(record: &Record, all: usize) -> String {
    let reason = record.invalid_reasons.first().map_or("", String::as_str);
    let shape = record.workload.shape.as_deref().unwrap_or_default();
    match all {
        1 => format!("this is not a measurement: {reason}"),
        _ => format!("not all of this is a measurement; {shape}: {reason}"),
    }
}

/// Notes why records are invalid or unverified, each reason once.
fn doubts(records: &[Record], printer: &Printer) {
    let mut said: Vec<String> = Vec::new();
    for record in records {
        let unverified = record
            .confidence
            .reasons
            .iter()
            .map(|doubt| format!("unverified: {}", doubt.meaning()));
        let invalid =
            record.invalid_reasons.iter().map(|reason| format!("no measurement: {reason}"));
        for line in invalid.chain(unverified) {
            if !said.contains(&line) {
                printer.note(&line);
                said.push(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{Harness, RecordSource};
    use uuid::Uuid;

    use super::*;
    use crate::commands::bench::Verb;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_option_is_said_once() {
        let rows = [
            ("hob bench llm", "hob bench llm --runs-max 30"),
            ("hob bench llm --runs-max 8 --users 1", "hob bench llm --users 1 --runs-max 30"),
            ("hob bench llm --runs-max=8 --users 1", "hob bench llm --users 1 --runs-max 30"),
        ];
        for (typed, expected) in rows {
            assert_eq!(with_option(words(typed), "--runs-max", "30"), words(expected), "{typed}");
        }
    }

    #[test]
    fn what_came_to_nothing_corrects_nothing() {
        let old = {
            let mut old = Record::new(Uuid::from_u128(1), RecordKind::Llm, RecordSource::default());
            old.model.quant = Some("Q4_K_M".to_owned());
            old
        };
        let again = Record::new(Uuid::from_u128(2), RecordKind::Llm, RecordSource::default());
        let corrected = correction(&old, &again);
        assert_eq!(corrected.supersedes, Some(old.id));
        assert_eq!(corrected.model.quant, old.model.quant, "as the plan said");
        let aborted = Record { status: RunStatus::Aborted, ..again.clone() };
        let refused = Record { invalid_reasons: vec!["it was cut".to_owned()], ..again };
        for spoilt in [aborted, refused] {
            assert_eq!(correction(&old, &spoilt).supersedes, None, "{spoilt:?}");
        }
    }

    #[test]
    fn a_rerun_can_be_run_again() {
        let rows = [
            (RecordKind::Llm, "bench llm --users 1", " --seed 7", " --runs-max 120", None),
            (RecordKind::Eval, "eval --items 1 --seed 7", "", "", Some(7)),
        ];
        for (kind, typed, dropped, added, seed) in rows {
            let argv = words(&format!("hob {typed}{dropped} --target http://127.0.0.1:1"));
            let verb = Verb::parse(argv.iter()).expect("a verb");
            let mut unverified = Record::new(Uuid::nil(), kind, RecordSource::default());
            unverified.harness = Some(Harness { argv, ..Harness::default() });
            let (launch, records) = (Some("server --port 1".to_owned()), PathBuf::from("records"));
            let rerun = Rerun { unverified, launch, model_file: None, records };
            let mut args = verb.measuring().expect("it measures").0.clone();
            args.measure_again(&rerun);
            let argv = args.argv.expect("words");
            let expected = format!("hob {typed} --target http://127.0.0.1:1{added} --launch");
            let expected = [words(&expected), vec!["server --port 1".to_owned()]].concat();
            assert_eq!((&argv, args.seed), (&expected, seed));
            assert!(Verb::parse(argv.iter()).is_ok(), "{argv:?}");
        }
    }
}
