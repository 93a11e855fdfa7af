//! `hob config`: is the file right, what may be in it, what is in force, and what another gateway's
//! file would say in it. It changes nothing that is there: the file is its owner's.

mod check;

use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::app::App;
use crate::config::{self, ConfigFile};
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::import::{self, Imported, Note};
use crate::printer::Printer;
use crate::settings::{KeySource, Overrides};

/// Check the configuration, show it, or make it from another gateway's
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

const AFTER_HELP: &str = "\
Examples:
  hob config check                     is hob.toml right?
  hob config print                     everything in force, as a file would say it
  hob config schema > hob.schema.json  let an editor complete the keys
  hob config import config.yaml        what LiteLLM's or llama-swap's would be as hob.toml";

#[derive(Debug, Subcommand)]
enum Action {
    /// Say whether the configuration is right, and where it is not
    Check,
    /// Print the JSON schema of hob.toml
    Schema,
    /// Print what is in force: flags, environment, file and defaults together, as TOML
    Print,
    Import(ImportArgs),
}

/// Make a hob.toml of LiteLLM's or llama-swap's config.yaml, and say what it leaves out
#[derive(Debug, Args)]
struct ImportArgs {
    /// The configuration to read; whose it is, it says itself
    file: PathBuf,
    /// The file to write, instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long, requires = "output")]
    force: bool,
    /// Print the file and the notes as JSON
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct ImportedJson<'a> {
    toml: &'a str,
    notes: &'a [Note],
}

pub(crate) fn run(args: &ConfigArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    match &args.action {
        Action::Check => check::run(globals, printer)?,
        Action::Schema => printer.data(schema()?)?,
        Action::Print => print(&App::open(globals, Overrides::default(), printer)?)?,
        Action::Import(args) => import(args, printer)?,
    }
    Ok(Exit::Done)
}

fn schema() -> Outcome<String> {
    serde_json::to_string_pretty(&config::schema())
        .map_err(|error| Failure::new(Exit::Internal, error))
}

fn print(app: &App<'_>) -> Outcome<()> {
    let written = app.written.config.clone();
    let in_force = ConfigFile {
        defaults: written.defaults,
        upstream: written.upstream,
        alias: written.alias,
        keys: written.keys,
        ..app.settings.as_written()
    };
    let text = toml::to_string(&in_force).map_err(|error| Failure::new(Exit::Internal, error))?;
    let from = match &app.written.path {
        Some(path) => format!("# in force, from {} and the defaults", path.display()),
        None => "# in force: the defaults, for there is no hob.toml".to_owned(),
    };
    let key = match app.settings.server.api_key {
        KeySource::None => "# no API key is set",
        KeySource::Environment(_) => "# the API key comes from HOB_API_KEY",
        KeySource::File(_) => "# the API key comes from server.api_key_file",
    };
    app.printer.data(format_args!("{from}\n{key}\n{}", text.trim_end()))
}

/// The notes go to stderr, so that stdout is a file that hob can read.
fn import(args: &ImportArgs, printer: &Printer) -> Outcome<()> {
    let name = args.file.file_name().unwrap_or(args.file.as_os_str()).to_string_lossy();
    let text = source(&args.file)?;
    let imported = import::import(&text, &name).map_err(Failure::usage)?;
    let Imported { toml, kind, notes } = &imported;
    if args.json {
        return printer.data(json(&ImportedJson { toml, notes })?);
    }
    match &args.output {
        Some(path) => write(path, toml, args)?,
        None => printer.data(toml.trim_end())?,
    }
    for note in notes {
        printer.note(note);
    }
    printer.faint(match notes.len() {
        0 => format!("all that {kind}'s {name} says is in it"),
        1 => format!("1 note on what {kind}'s {name} says beside it"),
        count => format!("{count} notes on what {kind}'s {name} says beside it"),
    });
    Ok(())
}

/// One byte more than a configuration may have is enough to see that it has too many.
fn source(path: &Path) -> Outcome<String> {
    let limit = import::BYTES_MAX as u64 + 1;
    let text = fs_err::File::open(path).and_then(|file| io::read_to_string(file.take(limit)));
    text.map_err(|error| {
        Failure::usage(format!("the file cannot be read: {error}"))
            .hint("name LiteLLM's or llama-swap's config.yaml")
    })
}

fn write(path: &Path, toml: &str, args: &ImportArgs) -> Outcome<()> {
    let mut options = fs_err::OpenOptions::new();
    options.write(true);
    match args.force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let written = options.open(path).and_then(|mut file| file.write_all(toml.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} is there already", path.display()))
                .hint("name another file with --output, or write over it with --force")
        }
        _ => Failure::io("the output cannot be written", &error),
    })
}

fn json(imported: &ImportedJson<'_>) -> Outcome<String> {
    serde_json::to_string_pretty(imported).map_err(|error| Failure::new(Exit::Internal, error))
}
