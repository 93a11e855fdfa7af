//! `hob config`: is the file right, what may be in it, and what is in force.
//! It changes nothing: the file is its owner's.

use clap::{Args, Subcommand};
use hob_core::routing::Switchboard;

use crate::app::App;
use crate::cli::Globals;
use crate::config::{self, ConfigFile};
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::Printer;
use crate::settings::{KeySource, Overrides};
use crate::wire_up;

/// Check the configuration, or show it
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
  hob config schema > hob.schema.json  let an editor complete the keys";

#[derive(Debug, Subcommand)]
enum Action {
    /// Say whether the configuration is right, and where it is not
    Check,
    /// Print the JSON schema of hob.toml
    Schema,
    /// Print what is in force: flags, environment, file and defaults together, as TOML
    Print,
}

pub(crate) fn run(args: &ConfigArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    match args.action {
        Action::Check => check(&App::open(globals, Overrides::default(), printer)?)?,
        Action::Schema => printer.data(schema()?)?,
        Action::Print => print(&App::open(globals, Overrides::default(), printer)?)?,
    }
    Ok(Exit::Done)
}

/// The key's file is part of the configuration: one that is missing would stop `hob serve`.
fn check(app: &App<'_>) -> Outcome<()> {
    let of_server = app.settings.server.api_key.read()?;
    let locals = wire_up::stand_ins(app);
    let known: Vec<String> = locals.iter().map(|local| local.name.clone()).collect();
    let gateway = wire_up::gateway(&app.written, &app.environment, locals, None)?;
    let is_known = |name: &str| {
        known.iter().any(|known| known == name)
            || app.written.config.alias.contains_key(name)
            || gateway.find_chat(name).is_some()
    };
    wire_up::keys(&app.written, &app.environment, of_server, is_known)?;
    match &app.written.path {
        Some(path) => app.printer.data(format_args!("{} is right", path.display())),
        None => app.printer.data("there is no hob.toml, and hob needs none"),
    }
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
