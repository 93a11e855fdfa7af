//! What all kinds of measurement share: whom they ask, how often, and where records go. Ctrl-C ends them well.
//! What is done is on the disk before the next begins, so that nothing is lost with the process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use hob_bench::drive::Patience;
use hob_bench::host::host;
use hob_bench::record::{Kind, Label, RawSample, Record, RecordError, Shelf, Status};
use hob_bench::runs::{BenchError, Care, Context, Step};
use hob_bench::server::Facts;
use hob_bench::workbench::Workbench;
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::RECORDS;
use super::aim::{Aim, AimArgs, Reached, failure};
use super::queue::Turn;
use crate::app::block_on;
use crate::build;
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::signals::{StopSignals, interrupted};

/// Of a figure that has to become sure.
const HARD_RUNS_MAX: usize = 120;

#[derive(Clone, Debug, Args)]
pub(crate) struct CampaignArgs {
    #[command(flatten)]
    pub(crate) aim: AimArgs,
    /// The fewest runs of a cell; an interval needs six
    #[arg(long, value_name = "N", default_value_t = 6)]
    runs_min: usize,
    /// The most runs of a cell
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs_max: usize,
    /// A cell that takes longer ends with the runs that it has
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    budget_s: u64,
    /// A server that says nothing for so long has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    silence_s: u64,
    /// For the same prompts again; otherwise they are new each time, so that no cache knows them
    #[arg(long)]
    seed: Option<u64>,
    /// Where records are kept
    #[arg(long, value_name = "FOLDER", default_value = RECORDS)]
    pub(crate) out: PathBuf,
    /// Instead of what is said here: the cells of this kind that a plan names, of this --target if one is said
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Fail instead of waiting for another measurement to end
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Print the records as JSON, one a line
    #[arg(long)]
    pub(crate) json: bool,
    /// What a record of the same cell corrects.
    #[arg(skip)]
    corrects: Option<Box<Record>>,
    /// What would measure the same again, where that is not what was typed.
    #[arg(skip)]
    argv: Option<Vec<String>>,
}

/// What is done otherwise when a soft figure is run again.
#[derive(Clone, Debug)]
pub(crate) struct Hardening {
    pub(crate) soft: Record,
    pub(crate) launch: Option<String>,
    pub(crate) model_file: Option<PathBuf>,
    pub(crate) records: PathBuf,
}

/// Measures, keeps what came of it, and shows it as a table or as JSON.
pub(crate) fn run(
    args: &CampaignArgs,
    (globals, printer): (&Globals, &Printer),
    kind: Kind,
    work: impl FnOnce(&mut Workbench<'_>) -> Result<Vec<Record>, BenchError> + Send + 'static,
    shown: fn(&[Record]) -> String,
) -> Outcome<Exit> {
    let aim = args.aim.settle(globals, printer)?;
    run_at(args, aim, (printer, kind), work, shown)
}

/// The same at an aim that is settled.
pub(crate) fn run_at(
    args: &CampaignArgs,
    aim: Aim,
    (printer, kind): (&Printer, Kind),
    work: impl FnOnce(&mut Workbench<'_>) -> Result<Vec<Record>, BenchError> + Send + 'static,
    shown: fn(&[Record]) -> String,
) -> Outcome<Exit> {
    let done = measured(args, aim, (printer, kind), work)?;
    done.show(args.json, printer, shown)?;
    done.exit(|record| done.is_spoilt_by(record))
}

/// What a campaign came to.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) records: Vec<Record>,
    pub(crate) was_stopped: bool,
}

/// Measures at an aim that is settled, and keeps what came of it.
pub(crate) fn measured(
    args: &CampaignArgs,
    aim: Aim,
    (printer, kind): (&Printer, Kind),
    work: impl FnOnce(&mut Workbench<'_>) -> Result<Vec<Record>, BenchError> + Send + 'static,
) -> Outcome<Done> {
    let care = args.care()?;
    Shelf::new(&args.out).prepare().map_err(|error| failure(error.into()))?;
    let (printer_there, out, seed) = (*printer, args.out.clone(), args.seed);
    let patience = Patience { silence: Duration::from_secs(args.silence_s), ..Patience::default() };
    let corrects = args.corrects.clone();
    let argv = args.argv.clone().unwrap_or_else(typed);
    let (turn, name) = (Turn::of(args.no_wait), argv[..argv.len().min(3)].join(" "));
    stoppable(move |stop| {
        let _turn = turn.take(&out, &name, (stop, &printer_there))?;
        let Reached { target, started, facts } = aim.reach(stop).map_err(failure)?;
        let context = context(facts, argv, seed);
        let mut bench = Workbench {
            target,
            started,
            context,
            care,
            patience,
            stop,
            tell: &mut |name, step| printer_there.faint(told(name, step, care)),
            keep: &mut |record, samples| {
                let corrected = corrects.as_ref().filter(|soft| are_of_one_cell(soft, record));
                let record =
                    corrected.map_or_else(|| record.clone(), |soft| correction(soft, record));
                keep(&out, &record, samples, &printer_there)
            },
        };
        let worked = work(&mut bench);
        if let Err(error) = &worked {
            bench.keep_failure(kind, error).map_err(|error| failure(error.into()))?;
        }
        let records = worked.map_err(failure)?;
        Ok(Done { records, was_stopped: stop.load(Ordering::Relaxed) })
    })
}

impl Done {
    pub(crate) fn show(
        &self,
        as_json: bool,
        printer: &Printer,
        shown: impl FnOnce(&[Record]) -> String,
    ) -> Outcome<()> {
        if !as_json {
            printer.data(shown(&self.records))?;
            printer.note(
                "each figure is the median of its runs; a run's is the median of its requests",
            );
            doubts(&self.records, printer);
            return Ok(());
        }
        for record in &self.records {
            let line = serde_json::to_string(record);
            printer.data(line.map_err(|error| Failure::new(Exit::Internal, error))?)?;
        }
        Ok(())
    }

    /// Whether a record is no measurement, and not the end that a campaign came to by itself.
    pub(crate) fn is_spoilt_by(&self, record: &Record) -> bool {
        !record.invalid_reasons.is_empty() && !is_an_end(record, &self.records)
    }

    /// How it ends, once it is shown; `spoils` says which record makes it a failure.
    pub(crate) fn exit(&self, spoils: impl Fn(&Record) -> bool) -> Outcome<Exit> {
        if self.was_stopped {
            return Err(interrupted().hint("what was done is kept"));
        }
        match self.records.iter().find(|record| spoils(record)) {
            Some(record) => Err(Failure::new(Exit::Server, refusal(record, self.records.len()))
                .hint("the records say of each run why it is no measurement")),
            None => Ok(Exit::Done),
        }
    }
}

/// What was measured again. What came to nothing corrects nothing. Of the variant the server need not know what a plan said.
fn correction(soft: &Record, again: &Record) -> Record {
    let mut again = again.clone();
    again.supersedes = again.is_valid().then_some(soft.id);
    again.model.quant = again.model.quant.or(soft.model.quant.clone());
    again.engine.backend = again.engine.backend.or(soft.engine.backend.clone());
    again
}

/// As many as a record has; as was typed, where it does not say.
pub(super) fn users_of(record: &Record, typed: &[usize]) -> Vec<usize> {
    record.workload.concurrency.map_or_else(|| typed.to_vec(), |users| vec![users as usize])
}

/// Whether one of them could be the other, measured again.
pub(super) fn are_of_one_cell(one: &Record, other: &Record) -> bool {
    let cell = |record: &Record| {
        let asked = record.workload.clone();
        let target = asked.prompt_tokens.and_then(|tokens| tokens.target);
        let asked = (asked.shape, asked.concurrency, asked.cache, asked.reasoning, target);
        let spoken =
            record.tts.clone().map(|tts| (tts.text_sha256, tts.voice, tts.format, tts.stream));
        (record.kind, record.model.name.clone(), asked, spoken)
    };
    cell(one) == cell(other) && one.workload.rate == other.workload.rate
}

impl CampaignArgs {
    /// With more care, and new prompts.
    pub(crate) fn harden(&mut self, hardening: &Hardening) {
        let Hardening { soft, launch, model_file, records } = hardening.clone();
        let usual = Care::default();
        self.runs_min = self.runs_min.max(usual.runs_min);
        self.runs_max = self.runs_max.max(HARD_RUNS_MAX);
        let runs_max = self.runs_max.to_string();
        let file = model_file.as_deref().map(|file| file.display().to_string());
        let said = [
            ("--runs-max", Some(&runs_max)),
            ("--launch", launch.as_ref()),
            ("--model-file", file.as_ref()),
        ];
        let words = soft.harness.as_ref().map(|harness| harness.argv.clone());
        self.argv = words.map(|words| {
            let said = said.into_iter().filter_map(|(option, value)| Some((option, value?)));
            said.fold(words, |words, (option, value)| with_option(words, option, value))
        });
        (self.seed, self.out, self.corrects) = (None, records, Some(Box::new(soft)));
        self.no_wait = false;
        self.aim.launch = launch.or(self.aim.launch.take());
        self.aim.model_file = model_file.or(self.aim.model_file.take());
    }

    /// See [`AimArgs::with_room`].
    pub(crate) fn with_room(&self, tokens: u64) -> Option<CampaignArgs> {
        Some(CampaignArgs { aim: self.aim.with_room(tokens)?, ..self.clone() })
    }

    fn care(&self) -> Outcome<Care> {
        if self.runs_min == 0 || self.runs_max < self.runs_min {
            return Err(Failure::usage("there has to be a run, and --runs-max is the larger one"));
        }
        Ok(Care {
            runs_min: self.runs_min,
            runs_max: self.runs_max,
            budget: Duration::from_secs(self.budget_s),
            ..Care::default()
        })
    }
}

/// With this value, whether or not they had another.
fn with_option(words: Vec<String>, option: &str, value: &str) -> Vec<String> {
    let assigned = format!("{option}=");
    let mut is_value = false;
    let mut is_other = |word: &String| {
        let is_kept = !is_value && word != option && !word.starts_with(&assigned);
        is_value = !is_value && word == option;
        is_kept
    };
    let mut words: Vec<String> = words.into_iter().filter(|word| is_other(word)).collect();
    words.extend([option, value].map(str::to_owned));
    words
}

/// Where and with what it is measured.
pub(crate) fn context(facts: Facts, argv: Vec<String>, seed: Option<u64>) -> Context {
    Context {
        host: host(),
        engine: facts.engine,
        model: facts.model,
        argv,
        seed: seed.unwrap_or_else(new_seed),
        git: build::commit(),
        dirty: build::is_dirty(),
    }
}

/// What was typed; where the binary lies is this machine's affair.
pub(crate) fn typed() -> Vec<String> {
    ["hob".to_owned()].into_iter().chain(std::env::args().skip(1)).collect()
}

/// Another in each campaign: a server that knows the prompts already would seem many times faster.
pub(crate) fn new_seed() -> u64 {
    Timestamp::now().as_nanosecond() as u64 & 0xFFFF_FFFF
}

/// Runs `work` on a thread of its own. The first Ctrl-C asks it to end; a second does not wait.
pub(crate) fn stoppable<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut work = spawn_blocking(move || work(&seen));
        let ended = |result: Result<Outcome<T>, tokio::task::JoinError>| {
            result.map_err(|error| Failure::new(Exit::Internal, error))?
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
    let place = Shelf::new(folder).put(record, samples)?;
    printer.faint(place.display());
    Ok(())
}

pub(crate) fn told(name: &str, step: Step<'_>, care: Care) -> String {
    match step {
        Step::Warmed { block } => format!("{name}: warming up, {block}"),
        Step::LeftOut { why } => format!("{name}: {why}"),
        Step::Restarted { .. } => format!("{name}: the server was started anew"),
        Step::Calibrated(calibration) => {
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
        Step::Ran { run, half_width_pct, left } => {
            let wide = half_width_pct.map_or(String::new(), |pct| format!(", ±{pct:.1} %"));
            let left = left.map_or(0, |left| left.as_secs());
            let left = if left == 0 { String::new() } else { format!(", about {left} s left") };
            format!("{name}: run {run} of {} to {}{wide}{left}", care.runs_min, care.runs_max)
        }
    }
}

/// That a context has an end is a finding, if there is anything before it.
fn is_an_end(record: &Record, all: &[Record]) -> bool {
    let is_measured = |record: &Record| record.status == Status::Ok;
    record.kind == Kind::CtxSweep && !is_measured(record) && all.iter().any(is_measured)
}

fn refusal(record: &Record, all: usize) -> String {
    let reason = record.invalid_reasons.first().map_or("", String::as_str);
    let shape = record.workload.shape.as_deref().unwrap_or_default();
    match all {
        1 => format!("this is no measurement: {reason}"),
        _ => format!("not all of this is a measurement; {shape}: {reason}"),
    }
}

pub(crate) fn badge(record: &Record) -> &'static str {
    match (record.invalid_reasons.is_empty(), record.confidence.label) {
        (false, _) => "no measurement",
        (true, Label::Verified) => "verified",
        (true, Label::Unverified) => "unverified",
    }
}

/// How far off the client was by itself, as it stands beside every figure.
pub(crate) fn off_by(record: &Record) -> String {
    let selftest = record.harness.as_ref().and_then(|harness| harness.selftest.as_ref());
    selftest.map_or("–".to_owned(), |test| format!("{:.2} ms", test.ttft_err_ms.p50))
}

/// Why each is soft, or nothing at all; what is said of all is said once.
fn doubts(records: &[Record], printer: &Printer) {
    let mut said: Vec<String> = Vec::new();
    for record in records {
        let soft = record
            .confidence
            .reasons
            .iter()
            .map(|doubt| format!("unverified: {}", doubt.meaning()));
        let invalid =
            record.invalid_reasons.iter().map(|reason| format!("no measurement: {reason}"));
        for line in invalid.chain(soft) {
            if !said.contains(&line) {
                printer.note(&line);
                said.push(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{Harness, Source};
    use uuid::Uuid;

    use super::super::Verb;
    use super::*;
    use crate::cli;

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
        let soft = {
            let mut soft = Record::new(Uuid::from_u128(1), Kind::Llm, Source::default());
            soft.model.quant = Some("Q4_K_M".to_owned());
            soft
        };
        let again = Record::new(Uuid::from_u128(2), Kind::Llm, Source::default());
        let corrected = correction(&soft, &again);
        assert_eq!(corrected.supersedes, Some(soft.id));
        assert_eq!(corrected.model.quant, soft.model.quant, "as the plan said");
        let aborted = Record { status: Status::Aborted, ..again.clone() };
        let refused = Record { invalid_reasons: vec!["it was cut".to_owned()], ..again };
        for spoilt in [aborted, refused] {
            assert_eq!(correction(&soft, &spoilt).supersedes, None, "{spoilt:?}");
        }
    }

    #[test]
    fn what_was_hardened_can_be_hardened_again() {
        let typed = words("hob bench llm --target http://127.0.0.1:1 --shape quick_word --users 1");
        let harness = Harness { argv: typed, ..Harness::default() };
        let source = Source::default();
        let mut soft = Record::new(Uuid::nil(), Kind::Llm, source);
        soft.harness = Some(harness);
        let hardening = Hardening {
            soft,
            launch: Some("server --port 1".to_owned()),
            model_file: None,
            records: PathBuf::from("records"),
        };
        let verb = cli::bench_verb(words("hob bench llm").iter()).expect("a verb").into_verb();
        let Verb::Llm(mut args) = verb else { panic!("another verb: {verb:?}") };
        args.campaign.harden(&hardening);
        let argv = args.campaign.argv.expect("words");
        let (options, launch) = argv.split_at(argv.len() - 1);
        assert_eq!(
            (options.join(" ").as_str(), launch),
            (
                "hob bench llm --target http://127.0.0.1:1 --shape quick_word --users 1 --runs-max 120 --launch",
                &["server --port 1".to_owned()][..]
            )
        );
        assert!(cli::bench_verb(argv.iter()).is_ok(), "{argv:?}");
    }
}
