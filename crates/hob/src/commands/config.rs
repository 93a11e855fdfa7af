//! `hob config` checks the configuration, prints it or its schema, and converts another gateway's file.
//! It never changes an existing file unless the user says `--force`.

mod check;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::app::App;
use crate::config::{self, ConfigFile};
use crate::convert::{self, Imported};
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::settings::{KeySource, Overrides};
use crate::sink::write_new;

/// Check or print the configuration, or convert another gateway's
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

const AFTER_HELP: &str = "\
Examples:
  hob config check                     find mistakes in hob.toml
  hob config print                     print all settings in effect, defaults included
  hob config schema > hob.schema.json  let an editor complete the keys
  hob config import config.yaml        convert a file of LiteLLM or llama-swap";

#[derive(Debug, Subcommand)]
enum Action {
    /// Check the configuration and report every mistake with its line
    Check,
    /// Print the JSON schema of hob.toml
    Schema,
    /// Print all settings in effect (flags, environment, file and defaults) as TOML
    Print,
    Import(ImportArgs),
}

/// Convert a config.yaml of LiteLLM or llama-swap into a hob.toml, and list the keys it drops
#[derive(Debug, Args)]
struct ImportArgs {
    /// The configuration to read; its keys tell which program it belongs to
    file: PathBuf,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    force: bool,
    /// Print the file and the notes as JSON
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

pub(crate) fn run(args: &ConfigArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    match &args.action {
        Action::Check => check::run(globals, printer)?,
        Action::Schema => printer.json(&config::schema())?,
        Action::Print => print(&App::open(globals, Overrides::default(), printer)?)?,
        Action::Import(args) => import(args, printer)?,
    }
    Ok(Exit::Done)
}

fn print(app: &App<'_>) -> CliResult<()> {
    let written = app.written.config.clone();
    let settings = toml::to_string(&app.settings).map_err(Failure::internal)?;
    // They have no defaults of their own.
    let others = ConfigFile {
        defaults: written.defaults,
        upstream: written.upstream,
        alias: written.alias,
        price: written.price,
        keys: written.keys,
        ..ConfigFile::default()
    };
    let others = toml::to_string(&others).map_err(Failure::internal)?;
    let from = match &app.written.path {
        Some(path) => format!("# in effect: {} and the defaults", path.display()),
        None => "# in effect: the defaults (no hob.toml found)".to_owned(),
    };
    let key = match app.settings.server.api_key {
        KeySource::None => "# no API key is set",
        KeySource::Environment(_) => "# the API key comes from HOB_API_KEY",
        KeySource::File(_) => "# the API key comes from server.api_key_file",
    };
    app.printer.data(format_args!("{from}\n{key}\n{}", format!("{settings}\n{others}").trim_end()))
}

/// Notes go to stderr, so that stdout is a valid hob.toml.
fn import(args: &ImportArgs, printer: &Printer) -> CliResult<()> {
    let name = args.file.file_name().unwrap_or(args.file.as_os_str()).to_string_lossy();
    let text = source(&args.file)?;
    let imported = convert::import(&text, &name).map_err(Failure::usage)?;
    let Imported { config, kind, notes } = &imported;
    let text = toml::to_string(config).map_err(Failure::internal)?;
    let name = name.replace(char::is_control, "\u{fffd}");
    let toml = &format!("# Made by `hob config import` from {kind}'s {name}.\n\n{text}");
    if args.json {
        return printer.json(&json!({ "toml": toml, "notes": notes }));
    }
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => write(path, toml, args)?,
        None => printer.data(toml.trim_end())?,
    }
    for note in notes {
        printer.note(note);
    }
    printer.faint(match notes.len() {
        0 => format!("every key of {kind}'s {name} is carried over"),
        1 => format!("1 key of {kind}'s {name} is changed or dropped"),
        count => format!("{count} keys of {kind}'s {name} are changed or dropped"),
    });
    Ok(())
}

/// Reads one byte more than the limit, so that the importer sees a file that is too large.
fn source(path: &Path) -> CliResult<String> {
    let limit = convert::BYTES_MAX as u64 + 1;
    let text = fs_err::File::open(path).and_then(|file| io::read_to_string(file.take(limit)));
    text.map_err(|error| {
        Failure::usage(format!("cannot read the file: {error}"))
            .hint("give the path of a config.yaml of LiteLLM or llama-swap")
    })
}

fn write(path: &Path, toml: &str, args: &ImportArgs) -> CliResult<()> {
    if !args.force {
        let if_taken = "choose another file with --output, or overwrite it with --force";
        return write_new(path, toml, if_taken);
    }
    fs_err::write(path, toml).map_err(|error| Failure::io("cannot write the file", &error))
}
