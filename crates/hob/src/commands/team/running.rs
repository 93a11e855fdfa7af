//! A run in this process: stored step by step, shown as a tree, stopped by Ctrl-C.
//! Another process can follow it by its files, and end it by a signal.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_agents::{
    DeltaKind, Driver, EventKind, PID_FILE, RunEvent, RunHost, RunState, RunStore, StoredRun,
    TeamRunStatus, Watchdog,
};
use hob_core::chat::ToolCall;
use hob_core::one_line;

use super::models::RemoteModels;
use super::{can_ask, exit_of};
use crate::app::App;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Printer, confirmed, harmless};
use crate::remote::Remote;
use crate::signals::StopSignals;
use crate::sink::PipeState;
use crate::teams::stored_run::{DecidedOnce, Decision};
use crate::teams::tools::ToolSetup;
use crate::teams::tree;

const LOG: &str = "log.txt";
/// How long a server may take until an answer begins.
const SERVER_SILENCE_MAX: Duration = Duration::from_mins(5);
/// How often the files of another process's run are read.
const TAIL_PAUSE: Duration = Duration::from_millis(200);
/// How long `tail` waits for a process that works on the run: it may just be starting.
const IDLE_LIMIT: Duration = Duration::from_secs(5);

/// A run and how it goes on.
#[derive(Debug)]
pub(super) struct RunSetup {
    pub(super) stored: StoredRun,
    pub(super) state: RunState,
    pub(super) decision: Decision,
    pub(super) workspace: PathBuf,
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
    let models = Arc::new(signals.or(RemoteModels::of(remote, &app.written.config)).await?);
    note_default_model(&models, &state, app);
    let opened = |error| Failure::io(format!("cannot open {}", workspace.display()), &error);
    let setup = ToolSetup::of(app);
    let tools = setup.tools(&state.team, &workspace, Arc::clone(&models) as _).map_err(opened)?;
    let source = setup.mcp(&state.team);
    let pid = stored.folder().join(PID_FILE);
    std::fs::write(&pid, std::process::id().to_string())
        .map_err(|error| Failure::io("cannot store the run", &error))?;
    let host =
        Host { stored, printer: *app.printer, is_json, decision: DecidedOnce::new(decision) };
    let driver = Driver {
        models: &*models,
        tools: &tools,
        source: &source,
        host: &host,
        // The server watches its models itself, and its aliases ask one target after the other.
        watchdog: Watchdog {
            first_token: SERVER_SILENCE_MAX,
            first_token_local: SERVER_SILENCE_MAX,
            ..Watchdog::default()
        },
        redaction: setup.redaction(),
    };
    let run_id = state.run_id.clone();
    let failed = |error: io::Error| not_stored(&error, &run_id);
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

/// The last stored state stays, and nothing that follows from a later one has happened.
fn not_stored(error: &io::Error, run_id: &str) -> Failure {
    let first = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space; ",
        _ => "",
    };
    Failure::io("cannot store the run", error)
        .hint(format!("{first}`hob team resume {run_id}` then goes on"))
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
    decision: DecidedOnce,
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
        if let Some(is_approved) = self.decision.take() {
            return async move { Some(is_approved) }.boxed();
        }
        if self.is_json || !can_ask() {
            return async { None }.boxed();
        }
        let question = question(call, reason);
        let asking = move || confirmed(&question).unwrap_or(false);
        async move { tokio::task::spawn_blocking(asking).await.ok() }.boxed()
    }
}

/// In one line and from left to right, so that the arguments cannot look like another question.
fn question(call: &ToolCall, reason: &str) -> String {
    one_line(&format!("Allow {} {}? ({reason})", call.name, call.arguments.as_str()))
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
    if app.settings.allow_danger {
        command.arg("--allow-danger");
    }
    if let Some(server) = server {
        command.args(["--server", server]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
    command.spawn().map(|_| ()).map_err(failed)
}

/// Shows the events of a run until it has ended or waits, or until nothing reads them any more.
pub(super) async fn tail(run_id: &str, store: &RunStore, app: &App<'_>) -> CliResult<Exit> {
    let mut signals = StopSignals::listen()?;
    let read = |error: io::Error| Failure::io("cannot read the run", &error);
    let following = async {
        let (mut offset, mut worked_at) = (0, Instant::now());
        loop {
            // The state first: events that it counts are there already.
            let state = store.read(run_id).map_err(read)?;
            let new = store.new_lines(run_id, offset).map_err(read)?;
            offset = new.offset;
            let events =
                new.lines.iter().filter_map(|line| serde_json::from_str::<RunEvent>(line).ok());
            for event in events {
                let shown = match &event.what {
                    EventKind::MessageOutput { text } => Some(text.clone()),
                    _ => tree::line(&event),
                };
                let Some(shown) = shown else { continue };
                if app.printer.piece(&format!("{}\n", harmless(&shown)))? == PipeState::Closed {
                    return Ok(Exit::Done);
                }
            }
            if !new.is_at_end {
                continue;
            }
            // Before its first step, a run that goes on still has the state in which it waited or failed.
            if state.status.can_resume() && store.is_locked(run_id) {
                worked_at = Instant::now();
            } else if state.status != TeamRunStatus::Running {
                app.printer.faint(tree::summary(&state));
                return Ok(exit_of(state.status));
            } else if worked_at.elapsed() > IDLE_LIMIT {
                let log = store.folder_of(run_id).join(LOG);
                return Err(Failure::server("no process works on this run").hint(format!(
                    "`hob team resume {run_id}` goes on; {} may say why it ended",
                    log.display()
                )));
            }
            tokio::time::sleep(TAIL_PAUSE).await;
        }
    };
    signals.or(following).await
}

#[cfg(test)]
mod tests {
    use hob_core::JsonText;

    use super::*;

    #[test]
    fn the_arguments_of_a_call_do_not_look_like_another_question() {
        let arguments = "{\"command\":\n\n\"rm x \u{202e}\"}";
        let call = ToolCall {
            id: "c".to_owned(),
            name: "shell".to_owned(),
            arguments: JsonText::parsed(arguments),
        };
        let asked = r#"Allow shell {"command":  "rm x  "}? (no rule allows it)"#;
        assert_eq!(question(&call, "no rule allows it"), asked);
    }
}
