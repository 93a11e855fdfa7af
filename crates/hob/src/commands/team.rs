//! `hob team`: teams of agents, and their runs.
//! Each subcommand is a few lines here; `teams` finds the files, `running` drives a run and shows it.

mod models;
mod running;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use hob_agents::{Prices, RunState, RunStore, Team, TeamRunStatus};

use crate::app::{App, block_on, run_until_stopped};
use crate::bounded_file::read_text_once;
use crate::config::{ConfigFile, TargetEntry};
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::printer::{Column, Printer, count_text, harmless, rows, table};
use crate::running_server::ServerOption;
use crate::settings::Overrides;
use crate::teams::stored_run::{self, Decision};
use crate::teams::tools::ToolSetup;
use crate::teams::{self, Teams, mcp, tree};
use crate::wire_up;
use running::RunSetup;

/// Longest task in bytes.
const TASK_BYTES_MAX: u64 = 1 << 20;

/// Let a team of agents work on a task
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TeamArgs {
    #[command(subcommand)]
    verb: TeamVerb,
}

const AFTER_HELP: &str = "\
Examples:
  hob team run \"Write a Python script that prints the lines with ERROR of a log file\"
  hob team run devops \"Which models are loaded, and is the server healthy?\"
  hob team run --brief task.md --detach
  hob team check my_team.toml

A team is a TOML file in the folder `teams`, which is in the folder of hob.toml or in the
working folder. Agents use the models and aliases of the running hob. `hob team list` shows
the teams, `hob team runs` what they did.";

#[derive(Debug, Subcommand)]
enum TeamVerb {
    /// Give a task to a team, and show how it works on it
    Run(RunArgs),
    /// List the teams
    List(JsonArgs),
    /// Check a team file, or all of them
    Check {
        /// A team, or a file [default: all teams]
        team: Option<String>,
    },
    /// Print the JSON schema of team files
    Schema,
    /// List the runs, the newest first
    Runs(JsonArgs),
    /// Show what happened in a run, and the files that it has made
    Show(ShowArgs),
    /// Follow a run that another process works on
    Tail(RunId),
    /// Continue a run that was interrupted, or that failed with its model
    Resume(ContinueArgs),
    /// Allow the call that a run waits for, and continue the run
    Approve(ContinueArgs),
    /// Deny the call that a run waits for, and continue the run
    Deny(ContinueArgs),
    /// End a run
    Cancel(RunId),
    /// Delete runs that have ended, with the files in their own folders
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct DeleteArgs {
    /// The ids of runs, or their last characters
    runs: Vec<String>,
    /// Also delete the runs that started more than this many days ago
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The team [default: agent_team], and the task
    #[arg(value_names = ["TEAM", "TASK"], num_args = 0..=2)]
    words: Vec<String>,
    /// Read the task from this file
    #[arg(long, value_name = "FILE")]
    brief: Option<PathBuf>,
    /// Calls of models, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_turns: Option<u32>,
    /// The folder in which agents read and write files [default: the working folder]
    #[arg(long, value_name = "FOLDER")]
    workspace: Option<PathBuf>,
    /// Work in the background, and print the run's id
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Debug, Args)]
struct OutputArgs {
    /// Print each event as a line of JSON instead of the answer
    #[arg(long)]
    json: bool,
    /// Let commands run without a sandbox if the team file says so
    #[arg(long)]
    allow_danger: bool,
    #[command(flatten)]
    server: ServerOption,
}

#[derive(Debug, Args)]
struct JsonArgs {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RunId {
    /// The id of a run, or its last characters
    run: String,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    run: RunId,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ContinueArgs {
    #[command(flatten)]
    run: RunId,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &TeamArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    let allow_danger = match &args.verb {
        TeamVerb::Run(RunArgs { output, .. })
        | TeamVerb::Resume(ContinueArgs { output, .. })
        | TeamVerb::Approve(ContinueArgs { output, .. })
        | TeamVerb::Deny(ContinueArgs { output, .. }) => output.allow_danger,
        _ => false,
    };
    let app = App::open(globals, Overrides { allow_danger, ..Overrides::default() }, printer)?;
    let store = RunStore::new(app.settings.home.join("runs"));
    match &args.verb {
        TeamVerb::Run(args) => start(args, &store, &app),
        TeamVerb::List(args) => list(args, &app),
        TeamVerb::Check { team } => check(team.as_deref(), &app),
        TeamVerb::Schema => printer.json(&schemars::schema_for!(Team)).map(|()| Exit::Done),
        TeamVerb::Runs(args) => runs(args, &store, &app),
        TeamVerb::Show(args) => show(args, &store, &app),
        TeamVerb::Tail(args) => block_on(running::tail(&found(&args.run, &store)?, &store, &app)),
        TeamVerb::Resume(args) => go_on(args, Decision::None, &store, &app),
        TeamVerb::Approve(args) => go_on(args, Decision::Approve, &store, &app),
        TeamVerb::Deny(args) => go_on(args, Decision::Deny, &store, &app),
        TeamVerb::Cancel(args) => cancel(&args.run, &store, &app),
        TeamVerb::Delete(args) => delete(args, &store, &app),
    }
}

fn start(args: &RunArgs, store: &RunStore, app: &App<'_>) -> CliResult<Exit> {
    let (name, task) = match (&args.words[..], &args.brief) {
        ([team, task], None) => (team.as_str(), task.clone()),
        ([task], None) => (teams::DEFAULT, task.clone()),
        ([team], Some(path)) => (team.as_str(), read_brief(path)?),
        ([], Some(path)) => (teams::DEFAULT, read_brief(path)?),
        _ => {
            return Err(Failure::usage("give a task, or a file with it (--brief)")
                .hint("for example hob team run \"Count the words of notes.txt\""));
        }
    };
    if task.trim().is_empty() {
        return Err(Failure::usage("the task is empty"));
    }
    let mut team = Teams::of(app).find(name)?;
    team.budget.turns = args.max_turns.unwrap_or(team.budget.turns);
    let workspace =
        args.workspace.clone().unwrap_or_else(|| app.environment.folders.working.clone());
    // Before anything is stored: a run without its folder could not go on.
    let path = stored_run::whole_path(&workspace)?;
    let state = RunState::new(team, uuid::Uuid::now_v7().to_string(), task);
    let stored =
        store.create(&state.run_id).map_err(|error| Failure::io("cannot store the run", &error))?;
    stored.store(&state, &[], true).map_err(|error| Failure::io("cannot store the run", &error))?;
    stored_run::keep_workspace(stored.folder(), &path)?;
    if args.detach {
        let folder = stored.folder().to_owned();
        drop(stored);
        running::detach(&state.run_id, &folder, args.output.server.named(), app)?;
        return app.printer.data(&state.run_id).map(|()| Exit::Done);
    }
    drive(RunSetup { stored, state, decision: Decision::None, workspace }, &args.output, app)
}

fn read_brief(path: &Path) -> CliResult<String> {
    read_text_once(path, TASK_BYTES_MAX)
        .map_err(|error| Failure::usage(format!("cannot read the task: {error}")))
}

fn go_on(
    args: &ContinueArgs,
    decision: Decision,
    store: &RunStore,
    app: &App<'_>,
) -> CliResult<Exit> {
    let id = found(&args.run.run, store)?;
    let (stored, state) = stored_run::open(&id, decision, store)?;
    let workspace = stored_run::workspace(&stored)?;
    drive(RunSetup { stored, state, decision, workspace }, &args.output, app)
}

fn drive(setup: RunSetup, output: &OutputArgs, app: &App<'_>) -> CliResult<Exit> {
    let remote = output.server.remote(app)?;
    let ended = block_on(running::drive(setup, remote, output.json, app));
    ended.map_err(|failure| output.server.explained(failure))
}

fn list(args: &JsonArgs, app: &App<'_>) -> CliResult<Exit> {
    let teams = Teams::of(app).all();
    if args.json {
        for mistake in teams.iter().filter_map(|(_, team)| team.as_ref().err()) {
            app.printer.note(harmless(&format!("left out: {mistake}")));
        }
        app.printer
            .json(&teams.iter().filter_map(|(_, team)| team.as_ref().ok()).collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    let mut table = table(["team", "agents", "models", "description"]);
    for (name, team) in &teams {
        match team {
            Ok(team) => table.add_row([
                team.id.clone(),
                team.agents.len().to_string(),
                team.models().join(", "),
                team.description.clone().unwrap_or_default(),
            ]),
            Err(mistake) => {
                table.add_row([name.clone(), "-".to_owned(), "-".to_owned(), mistake.to_string()])
            }
        };
    }
    app.printer.data(harmless(&table.trim_fmt())).map(|()| Exit::Done)
}

fn check(team: Option<&str>, app: &App<'_>) -> CliResult<Exit> {
    let teams = Teams::of(app);
    let checked: Vec<CliResult<Team>> = match team {
        Some(name) => vec![teams.find(name)],
        None => teams.all().into_iter().map(|(_, team)| Ok(team?)).collect(),
    };
    let failures: Vec<Failure> =
        checked.iter().filter_map(|team| team.as_ref().err().cloned()).collect();
    if let Some(failure) = Failure::together(failures) {
        return Err(failure);
    }
    let teams: Vec<&Team> = checked.iter().filter_map(|team| team.as_ref().ok()).collect();
    // Ctrl-C drops the servers, which ends their processes.
    let failures = run_until_stopped(check_servers(&teams, app))?;
    warn_of_unknown_models(&teams, app);
    for team in teams {
        warn_of_missing_prices(team, app);
        app.printer.note(format_args!(
            "{}: {}, models {}",
            team.id,
            count_text(team.agents.len(), "agent"),
            team.models().join(", ")
        ));
    }
    Failure::together(failures).map_or(Ok(Exit::Done), Err)
}

/// A team works also without its models, so an unknown one is not a mistake.
fn warn_of_unknown_models(teams: &[&Team], app: &App<'_>) {
    let locals = wire_up::placeholder_models(app);
    let gateway = match wire_up::gateway(&app.written, &app.environment, &locals, None) {
        Ok(gateway) => Arc::new(gateway),
        // A team can be checked where the keys of the server are not known.
        Err(failure) => {
            let reason = failure.to_string();
            return app.printer.note(harmless(&format!("the models were not checked: {reason}")));
        }
    };
    let registry = wire_up::registry(&app.settings, locals, &gateway);
    for sentence in teams.iter().flat_map(|team| teams::unknown_models(team, &registry)) {
        app.printer
            .note(format_args!("{}; the first chat model answers for it", harmless(&sentence)));
    }
}

/// A limit in money needs prices. Models of this machine cost nothing.
fn warn_of_missing_prices(team: &Team, app: &App<'_>) {
    if team.budget.cost.is_none() && team.agents.iter().all(|agent| agent.cost.is_none()) {
        return;
    }
    let config = &app.written.config;
    let prices = Prices(config.price.clone());
    let is_unpriced = |target: &&str| target.contains('/') && prices.of(target).is_none();
    for target in targets(team.models(), config).into_iter().filter(is_unpriced) {
        app.printer.note(format_args!(
            "{}: the cost limit does not count {target}; give it a [price.\"{target}\"] in hob.toml",
            team.id
        ));
    }
}

/// The models that answer for these names, also behind aliases of aliases.
fn targets<'c>(mut names: Vec<&'c str>, config: &'c ConfigFile) -> BTreeSet<&'c str> {
    let mut seen = BTreeSet::new();
    while let Some(name) = names.pop() {
        if seen.insert(name) {
            let alias = config.alias.get(name).into_iter();
            names.extend(alias.flat_map(|alias| &alias.to).map(TargetEntry::name));
        }
    }
    seen.retain(|name| !config.alias.contains_key(*name));
    seen
}

/// Starts the MCP servers of the teams, shows advice, and gives what is missing.
async fn check_servers(teams: &[&Team], app: &App<'_>) -> CliResult<Vec<Failure>> {
    let setup = ToolSetup::of(app);
    let mut failures = Vec::new();
    for team in teams {
        if let Err(reason) = setup.check_sandbox(team).await {
            let refused = format!("{}: commands are refused: {reason}", team.id);
            app.printer.note(harmless(&refused));
        }
        let (problems, advice) = mcp::survey(team, &setup.mcp(team)).await;
        for line in advice {
            app.printer.note(harmless(&format!("{}: {line}", team.id)));
        }
        let failure =
            |problem: &String| Failure::usage(harmless(&format!("{}: {problem}", team.id)));
        failures.extend(problems.iter().map(failure));
    }
    Ok(failures)
}

fn runs(args: &JsonArgs, store: &RunStore, app: &App<'_>) -> CliResult<Exit> {
    let runs = store.list().map_err(|error| Failure::io("cannot list the runs", &error))?;
    if args.json {
        return app.printer.json(&runs).map(|()| Exit::Done);
    }
    let columns: &[Column<'_, RunState>] = &[
        ("run", &|run| run.run_id.clone()),
        ("team", &|run| run.team.id.clone()),
        ("state", &|run| status_text(run, store).to_owned()),
        ("turns", &|run| run.used.turns.to_string()),
        ("tokens", &|run| run.used.tokens().to_string()),
        ("time", &|run| format!("{:.0} s", run.used.time_s)),
        ("task", &|run| run.task.lines().next().unwrap_or_default().chars().take(50).collect()),
    ];
    app.printer.data(harmless(&rows(columns, &runs).trim_fmt())).map(|()| Exit::Done)
}

fn show(args: &ShowArgs, store: &RunStore, app: &App<'_>) -> CliResult<Exit> {
    let id = found(&args.run.run, store)?;
    let events = store.events(&id).map_err(|error| Failure::io("cannot read the run", &error))?;
    if args.json {
        return app.printer.json(&events).map(|()| Exit::Done);
    }
    for line in events.iter().filter_map(tree::line) {
        app.printer.data(harmless(&line))?;
    }
    for (path, bytes) in stored_run::made_files(&id, &events, store)? {
        let size = bytes.map_or("not there any more".to_owned(), |bytes| format!("{bytes} bytes"));
        app.printer.data(harmless(&format!("file {path}: {size}")))?;
    }
    let state = store.read(&id).map_err(|error| Failure::io("cannot read the run", &error))?;
    let summary = tree::summary_with(status_text(&state, store), &state);
    app.printer.data(summary).map(|()| Exit::Done)
}

/// The status of a run, on which another process may work.
fn status_text(run: &RunState, store: &RunStore) -> &'static str {
    match run.status {
        TeamRunStatus::Running if store.is_locked(&run.run_id) => "running",
        status => tree::status_text(status),
    }
}

fn cancel(run: &str, store: &RunStore, app: &App<'_>) -> CliResult<Exit> {
    let id = found(run, store)?;
    stored_run::cancel(&id, store)?;
    app.printer.note(format_args!("the run {id} is cancelled"));
    Ok(Exit::Done)
}

fn delete(args: &DeleteArgs, store: &RunStore, app: &App<'_>) -> CliResult<Exit> {
    let named = args.runs.iter().map(|run| found(run, store));
    let mut ids: Vec<String> = named.collect::<CliResult<_>>()?;
    if let Some(days) = args.older_than {
        let day = Duration::from_hours(24);
        let oldest = SystemTime::now().checked_sub(day * days).unwrap_or(SystemTime::UNIX_EPOCH);
        let runs = store.list().map_err(|error| Failure::io("cannot list the runs", &error))?;
        let is_old = |run: &RunState| {
            run.status.has_ended() && stored_run::started(&run.run_id).is_some_and(|at| at < oldest)
        };
        ids.extend(runs.into_iter().filter(is_old).map(|run| run.run_id));
    }
    ids.sort();
    ids.dedup();
    for id in &ids {
        store.delete(id).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => Failure::usage(error),
            _ => Failure::io("cannot delete the run", &error),
        })?;
    }
    app.printer.note(format_args!("deleted {}", count_text(ids.len(), "run")));
    Ok(Exit::Done)
}

/// The run with this id, or the only run with an id that ends so.
fn found(wanted: &str, store: &RunStore) -> CliResult<String> {
    // Each id ends with an empty text, and the only run would be deleted.
    if wanted.is_empty() {
        return Err(Failure::usage("the id of the run is empty").hint("`hob team runs` lists them"));
    }
    let runs = store.ids().map_err(|error| Failure::io("cannot list the runs", &error))?;
    let mut ids = runs.into_iter().filter(|id| id.ends_with(wanted));
    match (ids.next(), ids.next()) {
        (Some(id), None) => Ok(id),
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("several runs end with '{wanted}'; give more characters")))
        }
        (None, _) => Err(Failure::usage(format!("there is no run '{wanted}'"))
            .hint("`hob team runs` lists them")),
    }
}

/// The exit code of a run that stopped.
fn exit_of(status: TeamRunStatus) -> Exit {
    match status {
        TeamRunStatus::Completed
        | TeamRunStatus::CompletedPartial
        | TeamRunStatus::WaitingApproval
        | TeamRunStatus::WaitingClient
        | TeamRunStatus::Running => Exit::Done,
        TeamRunStatus::Failed => Exit::Engine,
        TeamRunStatus::Cancelled => Exit::Interrupted,
    }
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
