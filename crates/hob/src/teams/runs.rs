//! Teams and runs for the clients of a server: starts runs that go on in the server, and reports all runs of this hob.
//! Everything that is reported comes from the files of a run, so it is the same for runs of other processes.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::UNIX_EPOCH;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_agents::{
    Agent, AgentTool, Driver, EventKind, Pending, Redaction, RunEvent, RunHost, RunState,
    RunSummary, StoredRun, Team, TeamRunStatus, Watchdog,
};
use hob_core::chat::ToolCall;
use hob_core::locked;
use hob_server::{RunProgress, RunRefusal, RunStage, SpendTokens, TeamService};
use hob_wire::{
    RunAnswer, RunApproval, RunFileView, RunRow, RunVerdict, StartRun, TeamAgentView,
    TeamFileError, TeamView,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::mcp::McpTools;
use super::registry_models::RegistryModels;
use super::stored_run::{self, DecidedOnce, Decision};
use super::{DEFAULT, ListedTeam, TeamModels};
use crate::failure::{Exit, Failure};

/// Runs at the same time that clients have started or continued.
const RUNS_MAX: usize = 8;
/// Runs that are looked at for one list, the newest first.
const LOOKED_AT_MAX: usize = 2_000;

/// The teams and runs of this hob.
#[derive(Debug)]
pub(crate) struct TeamRuns {
    models: Arc<TeamModels>,
    /// A sender for each run that goes on here; it ends the run. It is closed when the run has stopped.
    working: Mutex<BTreeMap<String, mpsc::Sender<()>>>,
    /// Dropped with the server. Runs are then as after a crash, and can be resumed.
    tasks: Mutex<JoinSet<()>>,
}

impl TeamRuns {
    pub(crate) fn new(models: Arc<TeamModels>) -> TeamRuns {
        TeamRuns { models, working: Mutex::default(), tasks: Mutex::default() }
    }

    fn working(&self) -> MutexGuard<'_, BTreeMap<String, mpsc::Sender<()>>> {
        locked(&self.working)
    }

    /// A place among the runs that go on. It is free again when the receiver is dropped.
    fn place(&self, id: &str) -> Result<mpsc::Receiver<()>, RunRefusal> {
        let mut working = self.working();
        working.retain(|_, stop| !stop.is_closed());
        if working.len() >= RUNS_MAX {
            return Err(RunRefusal::Full { runs_max: RUNS_MAX });
        }
        let (stop, stopped) = mpsc::channel(1);
        working.insert(id.to_owned(), stop);
        Ok(stopped)
    }

    /// Works on a run until it has ended or waits.
    fn work(
        &self,
        (stored, run): (StoredRun, RunState),
        decision: Decision,
        stopped: mpsc::Receiver<()>,
        spend: SpendTokens,
    ) -> Result<(), RunRefusal> {
        let models = self.models.models();
        let workspace = stored_run::workspace(&stored).map_err(failed)?;
        let setup = self.models.setup();
        let tools = setup.tools(&run.team, &workspace, Arc::clone(&models) as _);
        let tools = tools.map_err(|error| {
            RunRefusal::Failed(format!("the run's folder cannot be opened: {error}"))
        })?;
        let host = ServedHost { stored, decision: DecidedOnce::new(decision) };
        let source = setup.mcp(&run.team);
        let redaction = setup.redaction();
        let work = RunWork { run, host, models, tools, source, redaction, stopped, spend };
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work.drive().boxed());
        Ok(())
    }

    fn read(&self, id: &str) -> Result<RunState, RunRefusal> {
        self.models.store().read(id).map_err(|error| unread(id, &error))
    }

    fn summary(&self, id: &str) -> Result<RunSummary, RunRefusal> {
        self.models.store().summary(id).map_err(|error| unread(id, &error))
    }

    fn row(&self, run: RunSummary) -> RunRow {
        let status = match run.status {
            TeamRunStatus::Running if self.models.store().is_locked(&run.run_id) => "running",
            TeamRunStatus::Running => "interrupted",
            TeamRunStatus::WaitingApproval => "waiting_approval",
            TeamRunStatus::WaitingClient => "waiting_client",
            TeamRunStatus::Completed => "completed",
            TeamRunStatus::CompletedPartial => "completed_partial",
            TeamRunStatus::Failed => "failed",
            TeamRunStatus::Cancelled => "cancelled",
        };
        let used = &run.used;
        RunRow {
            started_unix_ms: started_unix_ms(&run.run_id),
            id: run.run_id,
            team: run.team.id,
            task: run.task,
            status,
            time_s: used.time_s,
            turns: used.turns,
            prompt_tokens: used.prompt_tokens,
            answer_tokens: used.answer_tokens,
            cost_usd: used.cost,
        }
    }

    /// Why a run cannot go on with this decision.
    fn check_approval(&self, run: &RunState, approval: &str) -> Result<(), RunRefusal> {
        if run.approval().is_some_and(|waiting| waiting.id == approval) {
            return Ok(());
        }
        let events = self.models.store().events(&run.run_id).unwrap_or_default();
        let was_asked = events.iter().any(|event| {
            matches!(&event.what, EventKind::ApprovalRequested { approval: asked, .. } if asked == approval)
        });
        Err(match was_asked {
            true => decided_before(approval),
            false => RunRefusal::Conflict(format!("the run has no approval '{approval}'")),
        })
    }
}

impl TeamService for TeamRuns {
    fn default_team(&self) -> &str {
        DEFAULT
    }

    fn teams(&self) -> Vec<TeamView> {
        self.models.teams().listed().into_iter().map(team_view).collect()
    }

    fn runs(
        &self,
        limit: usize,
        is_shown: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<RunRow>, RunRefusal> {
        let store = self.models.store();
        let ids = store
            .ids()
            .map_err(|error| RunRefusal::Failed(format!("the runs cannot be listed: {error}")))?;
        let runs = ids.iter().take(LOOKED_AT_MAX).filter_map(|id| store.summary(id).ok());
        let shown = runs.filter(|run| is_shown(&run.team.id)).take(limit);
        Ok(shown.map(|run| self.row(run)).collect())
    }

    fn run(&self, id: &str) -> Result<RunAnswer, RunRefusal> {
        let run = self.read(id)?;
        let store = self.models.store();
        let (mut answer, mut error) = (None, None);
        // The answer is among the last events, so a run that goes on has none.
        let ended = run.status.has_ended().then(|| store.events(id)).transpose();
        for event in ended.map_err(|error| unread(id, &error))?.into_iter().flatten() {
            match event.what {
                EventKind::MessageOutput { text } => answer = Some(text),
                EventKind::RunEnded { error: reason, .. } => error = reason,
                _ => {}
            }
        }
        let files = store.files(id).map_err(|error| unread(id, &error))?;
        let file = |file: hob_agents::RunFile| RunFileView { path: file.path, bytes: file.bytes };
        Ok(RunAnswer {
            row: self.row(RunSummary::from(&run)),
            approval: approval(&run),
            answer,
            error,
            files: files.into_iter().map(file).collect(),
        })
    }

    fn team_of(&self, id: &str) -> Result<String, RunRefusal> {
        Ok(self.summary(id)?.team.id)
    }

    fn owner_of(&self, id: &str) -> Result<Option<String>, RunRefusal> {
        Ok(self.read(id)?.owner)
    }

    fn progress(&self, id: &str, offset: u64) -> Result<RunProgress, RunRefusal> {
        let store = self.models.store();
        // The state first: events that it counts are there already.
        let stage = match self.summary(id)?.status {
            // Before its first step, a run that goes on still has the state in which it waited or failed.
            status if status.can_resume() && store.is_locked(id) => RunStage::Working,
            TeamRunStatus::Running => RunStage::Idle,
            _ => RunStage::Stopped,
        };
        let new = store.new_lines(id, offset).map_err(|error| unread(id, &error))?;
        Ok(RunProgress { lines: new.lines, offset: new.offset, has_more: !new.is_at_end, stage })
    }

    fn file(&self, id: &str, path: &str) -> Result<Vec<u8>, RunRefusal> {
        match self.models.store().file(id, path) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(RunRefusal::NoFile { path: path.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(RunRefusal::TooLarge(error.to_string()))
            }
            Err(error) => Err(unread(id, &error)),
        }
    }

    fn start(
        &self,
        new_run: &StartRun,
        owner: Option<&str>,
        spend: SpendTokens,
    ) -> Result<RunRow, RunRefusal> {
        let name = new_run.team.as_deref().unwrap_or(DEFAULT);
        // Names of clients are never paths.
        let listed = self.models.teams().listed().into_iter().find(|listed| listed.id == name);
        let team = match listed {
            Some(ListedTeam { team: Some(team), .. }) => team,
            Some(ListedTeam { mistake: Some(mistake), .. }) => {
                return Err(RunRefusal::BrokenTeam(mistake.to_string()));
            }
            _ => return Err(RunRefusal::NoTeam { name: name.to_owned() }),
        };
        let mut run = RunState::new(team, uuid::Uuid::now_v7().to_string(), new_run.task.clone());
        run.owner = owner.map(str::to_owned);
        let stopped = self.place(&run.run_id)?;
        let stored = self.models.store().create(&run.run_id).and_then(|stored| {
            stored.make_files_folder()?;
            stored.store(&run, &[], true)?;
            Ok(stored)
        });
        let stored = stored
            .map_err(|error| RunRefusal::Failed(format!("the run cannot be stored: {error}")))?;
        let row = self.row(RunSummary::from(&run));
        self.work((stored, run), Decision::None, stopped, spend)?;
        Ok(row)
    }

    fn cancel(&self, id: &str) -> Result<(), RunRefusal> {
        let stop = self.working().get(id).filter(|stop| !stop.is_closed()).cloned();
        let Some(stop) = stop else {
            let store = self.models.store();
            self.models.detached.stop(&store.folder_of(id));
            return stored_run::cancel(id, store).map_err(failed);
        };
        // A full or closed channel means that the run ends already.
        let _ends_already = stop.try_send(());
        match stored_run::has_ended_soon(id, self.models.store()) {
            true => Ok(()),
            false => Err(RunRefusal::Conflict(
                "the run has not ended yet; look at it again in a moment".to_owned(),
            )),
        }
    }

    fn delete(&self, id: &str) -> Result<(), RunRefusal> {
        self.models.store().delete(id).map_err(|error| unread(id, &error))
    }

    fn go_on(
        &self,
        id: &str,
        decision: Option<(&str, RunVerdict)>,
        spend: SpendTokens,
    ) -> Result<(), RunRefusal> {
        if let Some((approval, _)) = decision {
            self.check_approval(&self.read(id)?, approval)?;
        }
        let verdict = match decision {
            None => Decision::None,
            Some((_, RunVerdict::Approve)) => Decision::Approve,
            Some((_, RunVerdict::Deny)) => Decision::Deny,
        };
        let (stored, run) = self.models.store().open(id).map_err(|error| match decision {
            Some(_) if error.kind() == io::ErrorKind::ResourceBusy => RunRefusal::Conflict(
                "the run is still at work: other delegates have not ended, its terminal asks, or a decision was made already"
                    .to_owned(),
            ),
            _ => unread(id, &error),
        })?;
        match (&run.pending, decision) {
            // Looked at again behind the lock: another decision may have come in between.
            (_, Some((approval, _))) => self.check_approval(&run, approval)?,
            (Pending::Approval { approval, .. }, None) => {
                return Err(RunRefusal::Conflict(format!(
                    "the run waits for a decision about {approval}"
                )));
            }
            (Pending::Client { .. }, None) => {
                return Err(RunRefusal::Conflict(
                    "the run waits until its client has called tools".to_owned(),
                ));
            }
            _ if !run.status.can_resume() => {
                let status = super::tree::status_text(run.status);
                return Err(RunRefusal::Conflict(format!("the run has ended: {status}")));
            }
            _ => {}
        }
        let stopped = self.place(id)?;
        self.work((stored, run), verdict, stopped, spend)
    }
}

/// A run that goes on in the server.
struct RunWork {
    run: RunState,
    host: ServedHost,
    models: Arc<RegistryModels>,
    tools: Vec<Arc<dyn AgentTool>>,
    source: McpTools,
    redaction: Redaction,
    stopped: mpsc::Receiver<()>,
    spend: SpendTokens,
}

impl RunWork {
    async fn drive(self) {
        let RunWork { mut run, host, models, tools, source, redaction, mut stopped, spend } = self;
        let tokens_before = run.used.tokens();
        let driver = Driver {
            models: &*models,
            tools: &tools,
            source: &source,
            host: &host,
            watchdog: Watchdog::default(),
            redaction,
        };
        let ended = tokio::select! {
            driven = driver.drive(&mut run) => driven.map(|_| ()),
            Some(()) = stopped.recv() => hob_agents::cancel(&host.stored, &mut run),
        };
        spend(run.used.tokens().saturating_sub(tokens_before));
        source.close().await;
        if let Err(error) = ended {
            tracing::error!(run = run.run_id, %error, "the run cannot be stored; it can be resumed");
        }
    }
}

/// Stores a run. Its readers follow the file of events.
struct ServedHost {
    stored: StoredRun,
    decision: DecidedOnce,
}

impl RunHost for ServedHost {
    fn store(&self, run: &RunState, events: &[RunEvent], must_sync: bool) -> io::Result<()> {
        self.stored.store(run, events, must_sync)
    }

    fn show(&self, event: &RunEvent) {
        super::tree::log(event);
    }

    fn ask<'h>(&'h self, _call: &'h ToolCall, _reason: &'h str) -> BoxFuture<'h, Option<bool>> {
        let is_approved = self.decision.take();
        async move { is_approved }.boxed()
    }
}

fn approval(run: &RunState) -> Option<RunApproval> {
    let waiting = run.approval()?;
    Some(RunApproval {
        id: waiting.id.to_owned(),
        agent: waiting.agent.map(str::to_owned),
        tool: waiting.call.name.clone(),
        arguments: waiting.call.arguments.as_str().to_owned(),
        reason: waiting.reason.to_owned(),
    })
}

fn started_unix_ms(id: &str) -> Option<u64> {
    let since = stored_run::started(id)?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

fn team_view(listed: ListedTeam) -> TeamView {
    let ListedTeam { id, path, team, mistake } = listed;
    let error = mistake.map(|mistake| TeamFileError {
        line: mistake.place.map(|(line, _)| line),
        column: mistake.place.map(|(_, column)| column),
        message: mistake.reason,
        hint: mistake.hint,
    });
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    let file = path.as_deref().and_then(name);
    let Some(Team { description, entry, agents, .. }) = team else {
        return TeamView { id, description: None, entry: None, agents: Vec::new(), file, error };
    };
    let agents = agents.into_iter().map(agent_view).collect();
    TeamView { id, description, entry: Some(entry), agents, file, error }
}

fn agent_view(agent: Agent) -> TeamAgentView {
    let Agent { name, description, model, tools, handoffs, delegates, .. } = agent;
    TeamAgentView { name, description, model, tools, handoffs, delegates }
}

fn decided_before(approval: &str) -> RunRefusal {
    RunRefusal::Conflict(format!("a decision about {approval} was made already"))
}

fn unread(id: &str, error: &io::Error) -> RunRefusal {
    match error.kind() {
        io::ErrorKind::NotFound => RunRefusal::NoRun { id: id.to_owned() },
        io::ErrorKind::ResourceBusy => RunRefusal::Conflict(error.to_string()),
        _ => RunRefusal::Failed(format!("the run cannot be read: {error}")),
    }
}

/// A mistake of the client is one that the run's state does not allow.
fn failed(failure: Failure) -> RunRefusal {
    let exit = failure.exit;
    let text = failure.into_text();
    match exit {
        Exit::Usage => RunRefusal::Conflict(text),
        _ => RunRefusal::Failed(text),
    }
}
