//! `hob fit machine`: shows this machine, or one of a profile, with the source of each fact.
//! Facts go to stdout, notes to stderr.

use std::path::{Path, PathBuf};

use clap::Args;
use hob_machine::profile::{self, MachineFile};
use hob_machine::{FactRow, MachineFacts};
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::machine_args::MachineArgs;
use crate::printer::{Printer, narrow, table};
use crate::settings::Overrides;
use crate::sink::write_new;

/// Show what hob knows about this machine, with the source of each fact
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct FitMachineArgs {
    #[command(flatten)]
    machine: MachineArgs,
    /// Measure the memory bandwidth again
    #[arg(long, conflicts_with = "machine")]
    measure: bool,
    /// Write the machine as a profile, to edit, share, or pass to --machine
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// List the built-in profiles
    #[arg(long, conflicts_with_all = ["machine", "measure", "save", "pool"])]
    list: bool,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
The first time, hob measures the memory bandwidth in a second or two, and stores it in
machine.toml in its home.

Examples:
  hob fit machine
  hob fit machine --save box.toml       then, anywhere: hob fit MODEL --machine box.toml
  hob fit machine --machine rtx-4070-laptop --pool gpu0=6GiB";

/// Maximum width of the columns VALUE and SOURCE.
const COLUMN_CHARS_MAX: u16 = 36;

/// A built-in profile.
#[derive(Debug, Serialize)]
struct ListedJson {
    name: &'static str,
    machine: String,
}

pub(crate) fn run(args: &FitMachineArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    if args.list {
        list(args, printer)?;
        return Ok(Exit::Done);
    }
    let app = App::open(globals, Overrides::default(), printer)?;
    let known = match args.measure {
        true => args.machine.measured_again(&app)?,
        false => args.machine.measured(&app)?,
    };
    if let Some(path) = &args.save {
        save(&known, path)?;
        printer.note(format_args!("written to {}", path.display()));
    }
    printer.report(args.json, &machine_json(&known), || machine_text(&known))
}

fn list(args: &FitMachineArgs, printer: &Printer) -> CliResult<()> {
    let named = |name| {
        let machine = profile::builtin(name).map(|known| known.machine.name);
        ListedJson { name, machine: machine.unwrap_or_default() }
    };
    let listed: Vec<ListedJson> = profile::names().into_iter().map(named).collect();
    if args.json {
        return printer.json(&listed);
    }
    let mut table = table(["PROFILE", "MACHINE"]);
    for listed in &listed {
        table.add_row([listed.name, &listed.machine]);
    }
    printer.data(table)
}

fn machine_text(known: &MachineFacts) -> String {
    format!("{}\n{}", known.machine.name, facts(known.rows()))
}

pub(super) fn facts(rows: impl IntoIterator<Item = FactRow>) -> String {
    let mut table = table(["FACT", "VALUE", "BASIS", "SOURCE"]);
    for FactRow { name, value, basis, source } in rows {
        let basis = basis.map_or("", |basis| basis.name());
        table.add_row([&name, value.as_deref().unwrap_or("unknown"), basis, &source]);
    }
    narrow(&mut table, [(1, COLUMN_CHARS_MAX), (3, COLUMN_CHARS_MAX)]);
    table.trim_fmt()
}

fn machine_json(known: &MachineFacts) -> Value {
    json!({ "machine": MachineFile::of(known), "facts": known.rows(), "notes": known.notes })
}

/// Never overwrites a file, which the user may have edited.
fn save(known: &MachineFacts, path: &Path) -> CliResult<()> {
    let toml = MachineFile::of(known).to_toml();
    write_new(path, &toml.map_err(Failure::internal)?, "name another file, or delete it first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_shown_with_its_source_and_written_once() {
        let known = profile::builtin("rtx-4070-laptop").expect("a profile");
        let text = machine_text(&known);
        for part in ["256.0 GB/s", "PCIe 4.0 x8", "8.6 GB, 8.2 GB free", "profile", "stated"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(machine_json(&known)["machine"]["gpu"][0]["bandwidth"]["gb_s"], 256.0);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("box.toml");
        save(&known, &path).expect("written");
        let again = profile::named(&path.display().to_string()).expect("a profile");
        assert_eq!(again.machine, known.machine);
        assert_eq!(save(&known, &path).expect_err("the file exists").exit, Exit::Usage);
    }
}
