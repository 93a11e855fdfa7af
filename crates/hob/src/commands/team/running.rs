//! A run in this process: stored step by step, shown as a tree, stopped by Ctrl-C.
//! Another process can follow it by its files, and end it by a signal.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_agents::{
    DeltaKind, Driver, EventKind, RunEvent, RunHost, RunState, RunStore, StoredRun, TeamRunStatus,
    Watchdog,
};
use hob_core::chat::ToolCall;
use rustix::process::{Pid, Signal, kill_process};

use super::models::RemoteModels;
use super::{can_ask, exit_of};
use crate::app::App;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Printer, harmless};
use crate::remote::Remote;
use crate::signals::StopSignals;
use crate::teams::tools::ToolSetup;
use crate::teams::tree;

const WORKSPACE: &str = "workspace";
const PID: &str = "pid";
const LOG: &str = "log.txt";
/// How often the files of another process's run are read.
const TAIL_PAUSE: Duration = Duration::from_millis(200);
/// How long `tail` waits for a process that works on the run: it may just be starting.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// How long a process may take to end its run.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// A run and how it goes on.
#[derive(Debug)]
pub(super) struct RunSetup {
    pub(super) stored: StoredRun,
    pub(super) state: RunState,
    pub(super) decision: Decision,
    pub(super) workspace: PathBuf,
}

/// What the user has decided about the call that the run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    None,
    Approve,
    Deny,
}

/// Works on a run until it has ended or waits for a person. Ctrl-C cancels it.
pub(super) async fn drive(
    setup: RunSetup,
    remote: Remote,
    is_json: bool,
    app: &App<'_>,
) -> CliResult<Exit> {
    let RunSetup { stored, mut state, decision, workspace } = setup;
    let mut signals = StopSignals::listen()?;
    let models = Arc::new(signals.or(RemoteModels::of(remote)).await?);
    note_default_model(&models, &state, app);
    let opened = |error| Failure::io(format!("cannot open {}", workspace.display()), &error);
    let setup = ToolSetup::of(app);
    let tools = setup.tools(&state.team, &workspace, Arc::clone(&models) as _).map_err(opened)?;
    let source = setup.mcp(&state.team);
    let pid = stored.folder().join(PID);
    std::fs::write(&pid, std::process::id().to_string())
        .map_err(|error| Failure::io("cannot store the run", &error))?;
    let host = Host {
        stored,
        printer: *app.printer,
        is_json,
        decision,
        is_decided: AtomicBool::new(false),
    };
    let driver = Driver {
        models: &*models,
        tools: &tools,
        source: &source,
        host: &host,
        watchdog: Watchdog::default(),
    };
    let failed = |error: io::Error| Failure::io("cannot store the run", &error);
    let driving = async {
        let driven = driver.drive(&mut state).await.map_err(failed);
        source.close().await;
        driven
    };
    let driven = signals.or(driving).await;
    if let Err(Failure { exit: Exit::Interrupted, .. }) = &driven {
        hob_agents::cancel(&host.stored, &mut state).map_err(failed)?;
    }
    // Only `hob team cancel` reads it, and only while the run is locked.
    let _gone = std::fs::remove_file(&pid);
    driven?;
    app.printer.faint(tree::summary(&state));
    if state.status == TeamRunStatus::WaitingApproval {
        let id = &state.run_id;
        app.printer.note(format_args!("`hob team approve {id}` or `hob team deny {id}` goes on"));
    }
    Ok(exit_of(state.status))
}

fn note_default_model(models: &RemoteModels, state: &RunState, app: &App<'_>) {
    let unknown = models.unknown(&state.team.models());
    if let (Some(default), [_, ..]) = (models.default_name(), &unknown[..]) {
        let names = unknown.join(", ");
        app.printer.note(format_args!("the server has no {names}; {default} answers for it. An [alias.NAME] table in hob.toml names another model"));
    }
}

/// Shows and stores a run.
struct Host {
    stored: StoredRun,
    printer: Printer,
    is_json: bool,
    decision: Decision,
    /// The decision of the command line counts for one call.
    is_decided: AtomicBool,
}

impl RunHost for Host {
    fn store(&self, state: &RunState, events: &[RunEvent], must_sync: bool) -> io::Result<()> {
        self.stored.store(state, events, must_sync)
    }

    fn show(&self, event: &RunEvent) {
        if self.is_json {
            // A closed reader does not stop the run, which is stored.
            let _closed = serde_json::to_string(event).map(|line| self.printer.data(line));
            return;
        }
        match &event.what {
            EventKind::MessageOutput { text } => {
                let _closed = self.printer.data(harmless(text));
            }
            EventKind::ModelDelta { kind: DeltaKind::Reasoning | DeltaKind::Text, .. } => {}
            _ => {
                if let Some(line) = tree::line(event) {
                    self.printer.note(harmless(&line));
                }
            }
        }
    }

    fn ask<'h>(&'h self, call: &'h ToolCall, reason: &'h str) -> BoxFuture<'h, Option<bool>> {
        let decided = match self.decision {
            Decision::None => None,
            Decision::Approve => Some(true),
            Decision::Deny => Some(false),
        };
        if decided.is_some() && !self.is_decided.swap(true, Ordering::Relaxed) {
            return async move { decided }.boxed();
        }
        if self.is_json || !can_ask() {
            return async { None }.boxed();
        }
        let question =
            format!("Allow {} {}? ({reason}) [y/N] ", call.name, call.arguments.as_str());
        async move { tokio::task::spawn_blocking(move || confirm(&question)).await.ok() }.boxed()
    }
}

fn confirm(question: &str) -> bool {
    let mut answer = String::new();
    let asked = write!(anstream::stderr(), "{}", harmless(question))
        .and_then(|()| io::stdin().read_line(&mut answer));
    asked.is_ok() && matches!(answer.trim(), "y" | "yes" | "Y")
}

/// Stores the workspace, for a run that goes on in another process.
pub(super) fn keep_workspace(folder: &Path, workspace: &Path) -> CliResult<()> {
    let place = workspace
        .canonicalize()
        .map_err(|error| Failure::io(format!("cannot open {}", workspace.display()), &error))?;
    let text =
        place.to_str().ok_or_else(|| Failure::usage("the workspace's path must be UTF-8"))?;
    std::fs::write(folder.join(WORKSPACE), text)
        .map_err(|error| Failure::io("cannot store the run", &error))
}

pub(super) fn kept_workspace(folder: &Path) -> CliResult<PathBuf> {
    let text = std::fs::read_to_string(folder.join(WORKSPACE));
    text.map(PathBuf::from).map_err(|error| Failure::io("cannot read the run", &error))
}

/// Starts a process of its own that goes on with the run, and does not wait for it. Its errors are in the run's folder.
pub(super) fn detach(
    run_id: &str,
    folder: &Path,
    server: Option<&str>,
    app: &App<'_>,
) -> CliResult<()> {
    use std::os::unix::process::CommandExt as _;
    let failed = |error: io::Error| Failure::io("cannot start hob", &error);
    let log = std::fs::File::create(folder.join(LOG)).map_err(failed)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("--home").arg(&app.settings.home);
    if let Some(path) = &app.written.path {
        command.arg("--config").arg(path);
    }
    command.args(["team", "resume", run_id, "--json"]);
    if let Some(server) = server {
        command.args(["--server", server]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
    command.spawn().map(|_| ()).map_err(failed)
}

/// Shows the events of a run until it has ended or waits.
pub(super) async fn tail(run_id: &str, store: &RunStore, app: &App<'_>) -> CliResult<Exit> {
    let mut signals = StopSignals::listen()?;
    let read = |error: io::Error| Failure::io("cannot read the run", &error);
    let following = async {
        let (mut shown, mut worked_at) = (0, Instant::now());
        loop {
            // The state first: events that it counts are there already.
            let state = store.read(run_id).map_err(read)?;
            for event in
                store.events(run_id).map_err(read)?.iter().filter(|event| event.seq > shown)
            {
                if let Some(line) = tree::line(event) {
                    app.printer.data(harmless(&line))?;
                }
                if let EventKind::MessageOutput { text } = &event.what {
                    app.printer.data(harmless(text))?;
                }
            }
            shown = state.seq.max(shown);
            if state.status != TeamRunStatus::Running {
                app.printer.faint(tree::summary(&state));
                return Ok(exit_of(state.status));
            }
            if store.is_locked(run_id) {
                worked_at = Instant::now();
            } else if worked_at.elapsed() > IDLE_LIMIT {
                let log = store.folder_of(run_id).join(LOG);
                return Err(Failure::new(Exit::Server, "no process works on this run").hint(
                    format!(
                        "`hob team resume {run_id}` goes on; {} may say why it ended",
                        log.display()
                    ),
                ));
            }
            tokio::time::sleep(TAIL_PAUSE).await;
        }
    };
    signals.or(following).await
}

/// Ends a run, also if another process works on it.
pub(super) fn cancel(run_id: &str, store: &RunStore) -> CliResult<()> {
    let stored = match store.open(run_id) {
        Ok((stored, mut state)) => {
            if state.status.has_ended() {
                return Err(Failure::usage(format!(
                    "the run has ended: {}",
                    tree::status_text(state.status)
                )));
            }
            return hob_agents::cancel(&stored, &mut state)
                .map_err(|error| Failure::io("cannot store the run", &error));
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => store.folder_of(run_id),
        Err(error) => return Err(Failure::usage(error)),
    };
    let pid = std::fs::read_to_string(stored.join(PID))
        .ok()
        .and_then(|text| Pid::from_raw(text.trim().parse().ok()?));
    let Some(pid) = pid else {
        return Err(Failure::usage("another process begins this run; try again"));
    };
    kill_process(pid, Signal::TERM)
        .map_err(|error| Failure::io("cannot end the process of the run", &error.into()))?;
    let begun = Instant::now();
    while begun.elapsed() < CANCEL_LIMIT {
        if store.read(run_id).is_ok_and(|state| state.status.has_ended()) {
            return Ok(());
        }
        std::thread::sleep(TAIL_PAUSE);
    }
    Err(Failure::new(
        Exit::Internal,
        format!("process {} has not ended the run yet", pid.as_raw_nonzero()),
    ))
}
