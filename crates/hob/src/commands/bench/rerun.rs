//! `hob bench rerun`: measures an unverified figure again until it is verified, or names the doubts that no run removes.
//! The result is a record of its own that supersedes the first one; no record is changed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hob_bench::host::{PSI_PCT_MAX, noise};
use hob_bench::record::{Doubt, Label, Record, RecordStore, SourceType};
use uuid::Uuid;

use super::measuring::{self, Rerun, are_of_one_cell, stoppable};
use super::{RECORDS, Verb};
use crate::build;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::signals::interrupted;

/// Time between two checks. The kernel reports the share of the last ten seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Measure an unverified figure again until it is verified, or say why it cannot be
#[derive(Clone, Debug, Args)]
pub(crate) struct RerunArgs {
    /// The record: its file, its id, or the end of its id
    #[arg(value_name = "ID|FILE")]
    which: String,
    /// Maximum number of attempts
    #[arg(long, value_name = "N", default_value_t = 3)]
    attempts: u32,
    /// The command line that starts the server, if the record has none
    #[arg(long, value_name = "COMMAND")]
    launch: Option<String>,
    /// The file of the weights, if the record has no hash of them
    #[arg(long, value_name = "FILE")]
    model_file: Option<PathBuf>,
    /// The longest wait for other programs to leave the processor free
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    wait_s: u64,
    /// The folder of the records
    #[arg(long, value_name = "FOLDER", default_value = RECORDS)]
    records: PathBuf,
}

pub(crate) fn run(args: &RerunArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let (_, mut unverified) =
        RecordStore::new(&args.records).pick(&args.which).map_err(Failure::usage)?;
    if unverified.confidence.label == Label::Verified {
        printer.data(format_args!("{} is verified already", unverified.short_id()))?;
        return Ok(Exit::Done);
    }
    // Why the last record is invalid; empty if it is valid.
    let mut invalid: Vec<String> = Vec::new();
    for number in 1..=args.attempts {
        let hopeless = hopeless(&unverified, args);
        if !hopeless.is_empty() {
            return Err(given_up(&unverified, &hopeless));
        }
        wait_for_quiet(args.wait_s, printer)?;
        let command = command_line(&unverified);
        printer.note(format_args!("attempt {number} of {}: {command}", args.attempts));
        let again = again(&unverified, args, globals, printer)?;
        if !again.is_valid() {
            invalid = again.invalid_reasons;
            continue;
        }
        invalid = Vec::new();
        if again.confidence.label == Label::Verified {
            let (new, old) = (again.short_id(), unverified.short_id());
            printer.data(format_args!("{new} is verified and supersedes {old}"))?;
            return Ok(Exit::Done);
        }
        unverified = again;
    }
    let doubts = unverified.confidence.reasons.iter().map(|doubt| doubt.meaning());
    let reasons: Vec<&str> = invalid.iter().map(String::as_str).chain(doubts).collect();
    Err(given_up(&unverified, &reasons))
}

fn given_up(unverified: &Record, reasons: &[&str]) -> Failure {
    let sentence = format!("{} stays unverified: {}", unverified.short_id(), reasons.join("; "));
    Failure::server(sentence)
}

fn command_line(record: &Record) -> String {
    record.harness.as_ref().map_or(String::new(), |harness| harness.argv.join(" "))
}

/// Doubts that another run cannot remove, each with its cause or with what would remove it.
fn hopeless(unverified: &Record, args: &RerunArgs) -> Vec<&'static str> {
    if unverified.source.r#type == SourceType::Import {
        return vec!["it was measured by another program, so there is nothing to run again"];
    }
    if unverified.harness.as_ref().is_none_or(|harness| harness.argv.is_empty()) {
        return vec!["the record has no command line to repeat"];
    }
    let is_started = args.launch.is_some() || !unverified.engine.argv.is_empty();
    let has_weights = args.model_file.is_some() || unverified.model.sha256.is_some();
    // The next record is made by this build, so this build must know its commit.
    let is_built = build::commit().is_some();
    let rows = [
        (Doubt::OneStart, !is_started, "the server must be started again: give --launch"),
        (
            Doubt::NoProvenance,
            !is_started,
            "how the server was started is not known: give --launch",
        ),
        (Doubt::NoProvenance, !has_weights, "the weights have no hash: give --model-file"),
        (
            Doubt::NoProvenance,
            !is_built,
            "this hob does not know its commit: build it in a git checkout",
        ),
        (
            Doubt::NoProvenance,
            unverified.engine.name.is_none() || unverified.engine.version.is_none(),
            "the server does not report its name and version",
        ),
        (
            Doubt::DirtyBuild,
            build::is_dirty() == Some(true),
            "this hob has uncommitted changes: build it from a clean checkout",
        ),
        (Doubt::CountsNotUsage, true, "the server does not count its tokens"),
        (Doubt::CacheUnverified, true, "the server does not say what was cached"),
        (Doubt::ReasoningUnverified, true, "the model thinks although thinking is switched off"),
        (Doubt::OnBattery, true, "the machine runs on its battery"),
        (Doubt::NoiseUnknown, true, "this system does not say how busy it is (/proc/pressure/cpu)"),
    ];
    let holds = |doubt: &Doubt| unverified.confidence.reasons.contains(doubt);
    rows.into_iter().filter(|(doubt, is_so, _)| *is_so && holds(doubt)).map(|row| row.2).collect()
}

/// Measures the cell of a record again, as its command line says.
fn again(
    unverified: &Record,
    args: &RerunArgs,
    globals: &Globals,
    printer: &Printer,
) -> CliResult<Record> {
    let words = unverified.harness.iter().flat_map(|harness| harness.argv.iter());
    let verb = Verb::parse(words).map_err(|error| {
        Failure::usage(error).hint("the record was made by a hob with other options")
    })?;
    let rerun = Rerun {
        unverified: unverified.clone(),
        launch: args.launch.clone(),
        model_file: args.model_file.clone(),
        records: args.records.clone(),
    };
    let begun = Uuid::now_v7();
    // The exit code does not matter: the record says whether the measurement is valid.
    let ended = match verb.measuring() {
        Some((args, verb, _)) => {
            measuring::run(args.clone(), verb, Some(&rerun), (globals, printer))
        }
        None => {
            let typed = command_line(unverified);
            Err(Failure::usage(format!("the record's command is not a measurement: {typed}")))
        }
    };
    if let Err(failure) = &ended
        && failure.exit == Exit::Interrupted
    {
        return Err(interrupted().hint("finished records are stored"));
    }
    let found = RecordStore::new(&args.records).read().map_err(Failure::usage)?;
    let records = found.records.into_iter().map(|(_, record)| record);
    // Other measurements may have stored records of the same cell while this one waited in the queue.
    let is_ours = |record: &Record| !record.is_valid() || record.supersedes == Some(unverified.id);
    let again = records.filter(|record| record.id > begun && are_of_one_cell(unverified, record));
    let newest = again.filter(is_ours).max_by_key(|record| record.id);
    match (newest, ended) {
        (Some(record), _) => Ok(record),
        (None, Err(failure)) => Err(failure),
        (None, Ok(_)) => Err(Failure::server("the measurement made no record")),
    }
}

/// Waits until other programs leave the processor free, at most for `wait_s`.
fn wait_for_quiet(wait_s: u64, printer: &Printer) -> CliResult<()> {
    let is_quiet = || noise().psi_cpu.is_none_or(|pct| pct < PSI_PCT_MAX);
    if is_quiet() {
        return Ok(());
    }
    printer.note("the machine is busy; waiting until it is quiet");
    let was_stopped = stoppable(move |stop: &AtomicBool| {
        let begun = Instant::now();
        while !is_quiet() && begun.elapsed().as_secs() < wait_s && !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK_EVERY);
        }
        Ok(stop.load(Ordering::Relaxed))
    })?;
    if was_stopped { Err(interrupted()) } else { Ok(()) }
}
