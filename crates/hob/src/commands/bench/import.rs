//! `hob bench import`: results of other programs as records.
//! A file that cannot be read does not stop the others. The exit code reports it.

use std::path::{Path, PathBuf};

use clap::Args;
use hob_bench::import::{
    ImportError, ImportFormat, Imported, ORIGINAL_BYTES_MAX, complete, import, store_imported,
};
use hob_bench::record::{RecordStore, relative_path};
use serde_json::{Value, json};

use super::RECORDS;
use crate::bounded_file::{read_bytes, read_bytes_once};
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Printer, count_text};

/// Import results of other programs, always as unverified
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ImportArgs {
    /// Result files of other programs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Program that wrote the files: auto, llama-bench, vllm, guidellm, aiperf, llama-benchy,
    /// published
    #[arg(long, default_value = "auto", value_parser = format)]
    format: AnyFormat,
    /// Folder for the records
    #[arg(long, default_value = RECORDS, value_name = "FOLDER")]
    out: PathBuf,
    /// Show what would be imported, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  llama-bench -m model.gguf -o json > out.json && hob bench import out.json
  hob bench import profile_export.jsonl --format aiperf --dry-run

A file is imported once: the record keeps its hash. Prompts and answers are not kept.";

/// The given format, or none where the contents of the file decide.
#[derive(Clone, Copy, Debug)]
struct AnyFormat(Option<ImportFormat>);

fn format(text: &str) -> Result<AnyFormat, String> {
    if text == "auto" {
        return Ok(AnyFormat(None));
    }
    let known = ImportFormat::ALL.into_iter().find(|format| format.name() == text);
    let names = ImportFormat::ALL.map(ImportFormat::name).join(", ");
    known.map(|format| AnyFormat(Some(format))).ok_or_else(|| format!("one of auto, {names}"))
}

pub(crate) fn run(args: &ImportArgs, printer: &Printer) -> CliResult<Exit> {
    let store = RecordStore::new(&args.out);
    let (mut all, mut exit) = (Vec::new(), Exit::Done);
    for file in &args.files {
        match one(args, file, &store) {
            Ok(imported) => {
                if !args.json {
                    say(args, file, &imported, printer)?;
                }
                all.extend(imported.iter().map(|one| import_json(file, &store, one)));
            }
            Err(failure) => {
                exit = failure.exit;
                printer.failure(&failure);
            }
        }
    }
    if args.json {
        printer.json(&all)?;
    }
    Ok(exit)
}

fn one(args: &ImportArgs, file: &Path, store: &RecordStore) -> CliResult<Vec<Imported>> {
    let name = file.display().to_string();
    let bytes = read_bytes_once(file, ORIGINAL_BYTES_MAX as u64).map_err(Failure::usage)?;
    let mut imported =
        import(&name, &bytes, args.format.0).map_err(|error| import_failure(&error))?;
    if let Some(summary) = summary_beside(file, &imported) {
        complete(&name, &mut imported, &summary).map_err(|error| import_failure(&error))?;
    }
    if !args.dry_run {
        store_imported(&name, &imported, store).map_err(|error| import_failure(&error))?;
    }
    Ok(imported)
}

/// AIPerf's file of requests has neither model nor load. The summary in the same folder has both.
fn summary_beside(file: &Path, imported: &[Imported]) -> Option<Vec<u8>> {
    let is_requests = imported.iter().all(|one| one.record.source.tool == "aiperf")
        && imported.iter().any(|one| !one.samples.is_empty());
    let beside = file.with_file_name("profile_export_aiperf.json");
    is_requests.then(|| read_bytes(&beside, ORIGINAL_BYTES_MAX as u64).ok()).flatten()
}

fn import_failure(error: &ImportError) -> Failure {
    match error {
        ImportError::Record(error) => Failure::internal(error),
        ImportError::AlreadyImported { .. } => {
            Failure::usage(error).hint("delete those records to import the file again")
        }
        error => Failure::usage(error),
    }
}

fn say(args: &ImportArgs, file: &Path, imported: &[Imported], printer: &Printer) -> CliResult<()> {
    let verb = if args.dry_run { "would be kept" } else { "kept" };
    let tool = imported.first().map_or("", |one| one.record.source.tool.as_str());
    let count = count_text(imported.len(), "record");
    printer.data(format_args!(
        "{}: {count} of {tool} {verb} in {}",
        file.display(),
        args.out.display()
    ))?;
    let mut lost: Vec<&str> =
        imported.iter().flat_map(|one| &one.record.source.lossy).map(String::as_str).collect();
    lost.sort_unstable();
    lost.dedup();
    for lost in lost {
        printer.faint(format_args!("  lost: {lost}"));
    }
    Ok(())
}

/// What `--json` prints of each record.
fn import_json(file: &Path, store: &RecordStore, imported: &Imported) -> Value {
    let record = &imported.record;
    json!({
        "original": file.display().to_string(),
        "record": store.folder().join(relative_path(record)).display().to_string(),
        "id": record.id, "kind": record.kind.name(), "model": record.model.name,
        "lossy": record.source.lossy,
    })
}
