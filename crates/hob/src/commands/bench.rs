//! `hob bench`: what was measured, by hob or by somebody else. One file per verb.
//! Records are files; whoever has the folder has everything that is known.

mod aim;
mod campaign;
mod import;
mod llm;
mod show;
mod stream;
mod tts;

use clap::{Args, Subcommand};

use crate::cli::Globals;
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::Printer;
use crate::reference;

/// Where records are looked for and written: in the working folder, as the repository has it.
pub(crate) const RECORDS: &str = "bench/records";

/// Measure, and keep what was measured
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Llm(Box<llm::LlmArgs>),
    Tts(Box<tts::TtsArgs>),
    Stream(Box<stream::StreamArgs>),
    Import(import::ImportArgs),
    Show(show::ShowArgs),
    /// Print the JSON schema of a record
    Schema,
}

const AFTER_HELP: &str = "\
Examples:
  hob bench llm --target http://127.0.0.1:8484   how fast a server writes, by one user and by four
  hob bench tts                        how fast hob speaks, and what tier that is
  hob bench stream --target http://127.0.0.1:8880 --model kokoro   whether sound comes while it is made
  hob bench import llama-bench.json    keep what another program measured, as soft
  hob bench show 6b2d8c11              one run, with its doubts
  hob site build --out site            all runs, as a page";

pub(crate) fn run(args: &BenchArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    match &args.verb {
        Verb::Llm(args) => llm::run(args, globals, printer),
        Verb::Tts(args) => tts::run(args, globals, printer),
        Verb::Stream(args) => stream::run(args, globals, printer),
        Verb::Import(args) => import::run(args, printer),
        Verb::Show(args) => show::run(args, printer),
        Verb::Schema => schema(printer),
    }
}

fn schema(printer: &Printer) -> Outcome<Exit> {
    let schema = serde_json::to_string_pretty(&reference::record::schema());
    printer.data(schema.map_err(|error| Failure::new(Exit::Internal, error))?)?;
    Ok(Exit::Done)
}
