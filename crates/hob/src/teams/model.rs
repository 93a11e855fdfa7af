//! A team as a chat model: the conversation goes in, what the agents do comes as reasoning, and the answer as text.
//! So every program that chats with hob can use a team. Runs are stored. A reader that leaves cancels its run, unless the
//! team says `on_disconnect = "detach"`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::SystemTime;

use futures::future::BoxFuture;
use futures::stream::StreamExt;
use futures::{FutureExt, Stream};
use hob_agents::{
    DeltaKind, Driver, EventKind, OnDisconnect, Prices, RunEvent, RunHost, RunState, RunStore,
    StoredRun, Team, TeamRunStatus, Used, WaitingApproval, Watchdog,
};
use hob_core::chat::{
    ChatCard, ChatEvent, ChatStream, Completion, EmbedRequest, Embeddings, FinishReason, Message,
    PipelineJob, Prompt, Role, StatusProgress, Timings, ToolCall, Usage,
};
use hob_core::{
    Admission, ChatModel, ChatRequest, ModelError, RegisteredModel, Registry, Timeouts, locked,
    one_line, task,
};

use super::ask_user::{self, ASK_USER, Decided};
use super::client_calls::{self, ClientOutputs};
use super::detached::{DetachedRuns, UncountedTokens};
use super::registry_models::{RegistryModels, unknown_models};
use super::tools::ToolSetup;
use super::{OtherMachines, TeamMistake, Teams, ignored, tree};
use crate::app::App;
use crate::printer::harmless;

const ENGINE: &str = "team";
/// Runs of one team at the same time.
const RUNS_MAX: usize = 128;
const CONTEXT_TOKENS: u32 = 131_072;
/// Bytes after which a line of a delegate is shown although it goes on.
const OPEN_LINE_BYTES_MAX: usize = 4 * 1024;

/// Makes models of the teams in the user's folder.
#[derive(Debug)]
pub(crate) struct TeamModels {
    teams: Teams,
    store: RunStore,
    setup: ToolSetup,
    /// The models of the configuration in force.
    models: Mutex<Arc<RegistryModels>>,
    /// What the log says about models that teams name and this hob does not have.
    unknown: Mutex<BTreeSet<String>>,
    pub(crate) detached: DetachedRuns,
}

impl TeamModels {
    pub(crate) fn of(app: &App<'_>) -> TeamModels {
        let store = RunStore::new(app.settings.home.join("runs"));
        TeamModels {
            teams: Teams::of(app),
            store,
            setup: ToolSetup::of(app),
            models: Mutex::default(),
            unknown: Mutex::default(),
            detached: DetachedRuns::default(),
        }
    }

    /// Logs the models that do not exist, once until a file changes that.
    fn warn_of_unknown(&self, teams: &[Team], registry: &Registry) {
        let now: BTreeSet<String> =
            teams.iter().flat_map(|team| unknown_models(team, registry)).collect();
        let mut unknown = locked(&self.unknown);
        for sentence in now.difference(&unknown) {
            tracing::warn!("team {}; the first chat model answers for it", harmless(sentence));
        }
        *unknown = now;
    }

    pub(super) fn store(&self) -> &RunStore {
        &self.store
    }

    pub(super) fn setup(&self) -> &ToolSetup {
        &self.setup
    }

    pub(super) fn models(&self) -> Arc<RegistryModels> {
        Arc::clone(&locked(&self.models))
    }

    /// Lets runs that start from now on use these models.
    pub(crate) fn use_models(&self, models: Arc<RegistryModels>) {
        *locked(&self.models) = models;
    }

    pub(crate) fn teams(&self) -> &Teams {
        &self.teams
    }

    /// Adds a model for each team, except where a model or alias has its name. `default` answers for models that agents name
    /// and the registry does not have. Gives the models of the agents, and the mistakes in team files.
    pub(crate) fn add_to(
        &self,
        registry: &mut Registry,
        default: Option<&str>,
        (prices, others): (Prices, OtherMachines),
    ) -> (Arc<RegistryModels>, Vec<TeamMistake>) {
        let (known, default) = (Arc::new(registry.clone()), default.map(str::to_owned));
        let models = Arc::new(RegistryModels::new(Arc::clone(&known), default, prices, others));
        let (teams, mistakes) = self.teams.served();
        self.warn_of_unknown(&teams, &known);
        for team in teams {
            if registry.has(&team.id) {
                continue;
            }
            let name = team.id.clone();
            let model: Arc<dyn ChatModel> = Arc::new(TeamModel {
                card: card(),
                team,
                store: self.store.clone(),
                setup: self.setup.clone(),
                models: Arc::clone(&models),
                detached: self.detached.clone(),
            });
            let registered =
                RegisteredModel::<task::Chat>::new(&name, model, Admission::new(RUNS_MAX, 0.0));
            // The agents' models have time limits of their own.
            registry.add(RegisteredModel { timeouts: Timeouts::ByModel, ..registered });
        }
        (models, mistakes)
    }
}

fn card() -> ChatCard {
    // A team is as old as the configuration in force.
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    ChatCard {
        modified_unix_s: since.map_or(0, |since| since.as_secs()),
        context_tokens: CONTEXT_TOKENS,
        trained_context_tokens: CONTEXT_TOKENS,
        architecture: ENGINE.to_owned(),
        template: Some(String::new()),
        // Clients that send tools with every request are answered, also by teams that ignore them.
        calls_tools: true,
        thinks: true,
        is_team: true,
        ..ChatCard::default()
    }
}

#[derive(Debug)]
struct TeamModel {
    card: ChatCard,
    team: Team,
    store: RunStore,
    setup: ToolSetup,
    models: Arc<RegistryModels>,
    detached: DetachedRuns,
}

impl ChatModel for TeamModel {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        async move {
            if is_small_job(&request) {
                let lead = self.team.agent(&self.team.entry).map_or("", |agent| &agent.model);
                // Fields for Pipelines, such as the object `user`, are mistakes elsewhere.
                let job = ChatRequest { extra: None, ..request };
                return self.models.small_job(lead, job).await;
            }
            ignored::note(&request);
            let key = request.trace.snapshot().key;
            let Prompt::Chat(conversation) = request.prompt else {
                return Err(invalid("a team answers conversations only"));
            };
            let asks = conversation.tools.iter().any(|tool| tool.name == ASK_USER);
            let client_tools = client_calls::passed(&self.team, &conversation, &request.trace)?;
            let decided = Decided::of(&conversation.messages);
            let given = ClientOutputs::of(&conversation.messages);
            let (stored, mut run) = match (&decided, &given) {
                (Some(decided), _) => {
                    self.waiting(&decided.run_id, |run| decided.is_for(run, key.as_deref()))?
                }
                (None, Some(given)) => {
                    self.waiting(&given.run_id, |run| given.is_for(run, key.as_deref()))?
                }
                (None, None) => self.begin(&conversation.messages, key)?,
            };
            run.client_tools = client_tools;
            let used_before = run.used;
            let decision = decided.zip(run.approval());
            let decision =
                decision.map(|(decided, asked)| (asked.call.clone(), decided.is_approved));
            let workspace = stored.files_folder();
            let tools = self.setup.tools(&run.team, &workspace, Arc::clone(&self.models) as _);
            let tools = tools.map_err(failed)?;
            let source = self.setup.mcp(&run.team);
            let host = Arc::new(StreamHost {
                shared: Mutex::default(),
                stored,
                is_running: AtomicBool::new(false),
                counted: Mutex::default(),
                decision: Mutex::new(decision),
                given: Mutex::new(given),
                shows_status: request.job.is_some(),
                detaches: run.team.policy.on_disconnect == OnDisconnect::Detach,
                has_left: AtomicBool::new(false),
                uncounted: UncountedTokens::of(&request.trace, used_before.tokens()),
            });
            let (models, driving) = (Arc::clone(&self.models), Arc::clone(&host));
            let redaction = self.setup.redaction();
            let drive = async move {
                let mut run = run;
                let driver = Driver {
                    models: &*models,
                    tools: &tools,
                    source: &source,
                    host: &*driving,
                    watchdog: Watchdog::default(),
                    redaction,
                };
                let driven = driver.drive(&mut run).await;
                source.close().await;
                if driving.has_left.load(Ordering::Relaxed) {
                    driving.uncounted.spend(&run);
                }
                driven.map(|_| run)
            };
            let (drive, detached) = (Some(drive.boxed()), self.detached.clone());
            Ok(RunStream { drive, host, detached, asks, used_before, error: None }.boxed())
        }
        .boxed()
    }

    fn embed(&self, _request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        async { Err(invalid("a team has no embeddings")) }.boxed()
    }
}

/// Open WebUI asks the model of a chat for its title, its tags and its next questions, too. Their default prompts all begin
/// and quote the chat like this. Where hob is connected as Pipelines, the request says its task instead.
fn is_small_job(request: &ChatRequest) -> bool {
    let conversation = match (&request.prompt, request.job) {
        (_, Some(PipelineJob::Background)) => return true,
        (_, Some(PipelineJob::Chat)) => return false,
        (Prompt::Chat(conversation), Some(PipelineJob::Unnamed) | None) => conversation,
        _ => return false,
    };
    matches!(&conversation.messages[..], [job] if job.role == Role::User
        && job.text.starts_with("### Task:")
        && job.text.contains("<chat_history>"))
}

impl TeamModel {
    /// A new run for the last message of the user.
    fn begin(
        &self,
        messages: &[Message],
        key: Option<String>,
    ) -> Result<(StoredRun, RunState), ModelError> {
        let last = messages.iter().rposition(|message| message.role == Role::User);
        let last = last.ok_or_else(|| invalid("a team needs a message of the user"))?;
        let task = messages[last].text.clone();
        let mut run = RunState::new(self.team.clone(), uuid::Uuid::now_v7().to_string(), task)
            .with_history(&plain(&messages[..last]));
        run.owner = key;
        let stored = self.store.create(&run.run_id).map_err(failed)?;
        stored.make_files_folder().map_err(failed)?;
        Ok((stored, run))
    }

    /// The run of this team that waits for what the client has sent.
    fn waiting(
        &self,
        run_id: &str,
        waits: impl FnOnce(&RunState) -> bool,
    ) -> Result<(StoredRun, RunState), ModelError> {
        let (stored, run) = self.store.open(run_id).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => invalid(&format!("answers a call of hob: {error}")),
            _ => failed(error),
        })?;
        if run.team.id != self.team.id || !waits(&run) {
            return Err(invalid(&format!(
                "answers a call of run {run_id}, which does not wait for it any more"
            )));
        }
        Ok((stored, run))
    }
}

/// Earlier turns, without calls of the client's tools, which the agents do not have.
fn plain(messages: &[Message]) -> Vec<Message> {
    let is_text = |message: &&Message| message.role != Role::Tool && !message.text.is_empty();
    messages
        .iter()
        .filter(is_text)
        .map(|message| Message::new(message.role, message.text.clone()))
        .collect()
}

fn invalid(reason: &str) -> ModelError {
    ModelError::InvalidField { field: "messages", reason: reason.to_owned() }
}

fn failed(error: io::Error) -> ModelError {
    ModelError::EngineFailed { engine: ENGINE, detail: error.to_string() }
}

/// Keeps what the reader has not taken yet.
struct StreamHost {
    shared: Mutex<AnswerQueue>,
    stored: StoredRun,
    /// A step was stored, after which the run goes on.
    is_running: AtomicBool,
    /// The run with what came of an answer that was stopped after its last step.
    counted: Mutex<Option<RunState>>,
    /// The call for which the run waited, and whether the client's user has approved it.
    decision: Mutex<Option<(ToolCall, bool)>>,
    /// The results of the client's tools for which the run waited.
    given: Mutex<Option<ClientOutputs>>,
    /// The client shows what the team does in lines apart from the answer.
    shows_status: bool,
    /// The run goes on when the reader leaves.
    detaches: bool,
    /// No reader takes events any more.
    has_left: AtomicBool,
    uncounted: UncountedTokens,
}

impl StreamHost {
    fn queue(&self) -> MutexGuard<'_, AnswerQueue> {
        locked(&self.shared)
    }

    fn show_status(&self, text: String, progress: StatusProgress) {
        if self.shows_status {
            self.queue().events.push_back(ChatEvent::Status { text, progress });
        }
    }
}

impl RunHost for StreamHost {
    fn store(&self, run: &RunState, events: &[RunEvent], must_sync: bool) -> io::Result<()> {
        self.stored.store(run, events, must_sync)?;
        self.is_running.store(run.status == TeamRunStatus::Running, Ordering::Relaxed);
        *locked(&self.counted) = None;
        Ok(())
    }

    fn counted(&self, run: &RunState) {
        *locked(&self.counted) = Some(run.clone());
    }

    fn show(&self, event: &RunEvent) {
        tree::log(event);
        if self.has_left.load(Ordering::Relaxed) {
            return;
        }
        if let Some(text) = tree::status(event) {
            self.show_status(text, StatusProgress::Running);
        }
        let mut queue = self.queue();
        if !matches!(event.what, EventKind::ModelDelta { .. }) {
            queue.end_line(event);
        }
        match &event.what {
            EventKind::ModelDelta { kind: DeltaKind::Text, text } if event.depth == 0 => {
                queue.write(text);
            }
            EventKind::ModelDelta { text, .. } if event.number.is_some() => {
                queue.think_in_lines(event, text);
            }
            EventKind::ModelDelta { text, .. } => queue.think(text),
            EventKind::MessageOutput { text } => queue.finish(text),
            EventKind::ModelRequested { .. } if event.depth == 0 => queue.end_turn(),
            _ => tree::line(event).into_iter().for_each(|line| queue.add_line(&line)),
        }
    }

    fn ask<'h>(&'h self, call: &'h ToolCall, _reason: &'h str) -> BoxFuture<'h, Option<bool>> {
        let mut decision = locked(&self.decision);
        let decided = decision.take_if(|(asked, _)| *asked == *call);
        async move { decided.map(|(_, is_approved)| is_approved) }.boxed()
    }

    fn client_outputs(&self, id: u64) -> Option<BTreeMap<usize, String>> {
        let mut given = locked(&self.given);
        given.take_if(|given| given.id == id).map(|given| given.outputs)
    }
}

/// The answer of a run: the entry agent's text while it is written, and everything else as reasoning.
#[derive(Default)]
struct AnswerQueue {
    events: VecDeque<ChatEvent>,
    /// The reasoning ends inside a line.
    is_line_open: bool,
    /// The text of the present turn so far.
    turn: String,
    /// Earlier turns had text.
    has_text: bool,
    /// The last lines of delegates that work at the same time, by their spans. They are not whole yet.
    lines: BTreeMap<u64, String>,
}

impl AnswerQueue {
    fn write(&mut self, text: &str) {
        let is_first = self.turn.is_empty();
        self.turn += text;
        let gap = if is_first && self.has_text { "\n\n" } else { "" };
        self.events.push_back(ChatEvent::Text(format!("{gap}{text}")));
    }

    /// Thoughts, and texts of other agents.
    fn think(&mut self, text: &str) {
        self.is_line_open = !text.ends_with('\n');
        self.events.push_back(ChatEvent::Reasoning(text.to_owned()));
    }

    /// Thoughts and texts of delegates that work at the same time: whole lines, because pieces would mix.
    fn think_in_lines(&mut self, event: &RunEvent, text: &str) {
        let open = self.lines.entry(event.span_id).or_default();
        open.push_str(text);
        let is_full = open.len() >= OPEN_LINE_BYTES_MAX;
        let end = if is_full { open.len() } else { open.rfind('\n').map_or(0, |at| at + 1) };
        let rest = open.split_off(end);
        let whole = std::mem::replace(open, rest);
        for line in whole.lines().filter(|line| !line.trim().is_empty()) {
            self.add_line(&tree::tree_line(event, line));
        }
    }

    /// The answer of a delegate has ended inside a line.
    fn end_line(&mut self, event: &RunEvent) {
        let open = self.lines.remove(&event.span_id).unwrap_or_default();
        if !open.trim().is_empty() {
            self.add_line(&tree::tree_line(event, &open));
        }
    }

    /// A line of the trace.
    fn add_line(&mut self, line: &str) {
        let gap = if std::mem::take(&mut self.is_line_open) { "\n" } else { "" };
        self.events.push_back(ChatEvent::Reasoning(format!("{gap}{line}\n")));
    }

    /// A text that belongs to no turn.
    fn write_apart(&mut self, text: &str) {
        self.end_turn();
        self.write(text);
    }

    /// The next text belongs to another turn.
    fn end_turn(&mut self) {
        self.has_text |= !std::mem::take(&mut self.turn).is_empty();
    }

    /// The answer of the run is the text of the last turn, unless hob has put it together.
    fn finish(&mut self, answer: &str) {
        let shown = self.turn.trim();
        if shown == answer {
            return;
        }
        // The driver held back what looked like a call.
        let rest = answer.strip_prefix(self.turn.trim_start()).filter(|_| !shown.is_empty());
        match rest.map(str::to_owned) {
            Some(rest) => self.write(&rest),
            None => self.write_apart(answer),
        }
    }
}

/// The reader has left before the end.
impl Drop for StreamHost {
    fn drop(&mut self) {
        if !*self.is_running.get_mut() {
            return;
        }
        let counted = locked(&self.counted).take();
        // A disk error leaves the run as it is, and `hob team resume` can go on.
        if let Ok(mut run) = counted.map_or_else(|| self.stored.last_state(), Ok) {
            self.uncounted.spend(&run);
            let _stored = (!self.detaches).then(|| hob_agents::cancel(&self.stored, &mut run));
        }
    }
}

/// Drives a run while it is read.
struct RunStream {
    drive: Option<BoxFuture<'static, io::Result<RunState>>>,
    host: Arc<StreamHost>,
    detached: DetachedRuns,
    /// The client can show a question to its user.
    asks: bool,
    /// What earlier answers of the run have used.
    used_before: Used,
    /// Comes after all events.
    error: Option<ModelError>,
}

impl Drop for RunStream {
    fn drop(&mut self) {
        self.host.has_left.store(true, Ordering::Relaxed);
        if let Some(drive) = self.drive.take().filter(|_| self.host.detaches) {
            self.detached.keep(self.host.stored.folder(), drive);
        }
    }
}

impl Stream for RunStream {
    type Item = Result<ChatEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.host.queue().events.is_empty()
            && let Some(drive) = &mut self.drive
            && let Poll::Ready(ended) = drive.as_mut().poll(cx)
        {
            self.drive = None;
            let ended = ended.map_err(failed).and_then(|run| {
                self.host.show_status(tree::summary(&run), StatusProgress::Done);
                last_events(&run, self.used_before, self.asks)
            });
            match ended {
                Ok(events) => {
                    let mut queue = self.host.queue();
                    for event in events {
                        match event {
                            ChatEvent::Text(text) => queue.write_apart(&text),
                            event => queue.events.push_back(event),
                        }
                    }
                }
                Err(error) => self.error = Some(error),
            }
        }
        let next = self.host.queue().events.pop_front();
        if let Some(event) = next {
            self.host.uncounted.sent(&event);
            return Poll::Ready(Some(Ok(event)));
        }
        match self.error.take() {
            Some(error) => Poll::Ready(Some(Err(error))),
            None if self.drive.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// How the answer ends. Its tokens are those of this answer alone: each answer of a run counts against the key.
fn last_events(run: &RunState, before: Used, asks: bool) -> Result<Vec<ChatEvent>, ModelError> {
    let (mut events, mut finish) = (Vec::new(), FinishReason::Stop);
    match (run.status, run.approval()) {
        (TeamRunStatus::Failed, _) if run.last_texts.is_empty() => {
            let detail = "the model of the entry agent failed; the reasoning says why".to_owned();
            return Err(ModelError::EngineFailed { engine: ENGINE, detail });
        }
        (TeamRunStatus::WaitingClient, _) => {
            events.extend(client_calls::calls(run));
            finish = FinishReason::ToolCalls;
        }
        (_, Some(waiting)) if asks => {
            events.extend(ask_user::question(run, waiting.call, waiting.reason));
            finish = FinishReason::ToolCalls;
        }
        (_, Some(WaitingApproval { call, reason, .. })) => {
            let id = &run.run_id;
            events.push(ChatEvent::Text(format!(
                "The team waits for approval of `{} {}` ({reason}). `hob team approve {id}` or `hob team deny {id}` goes on.",
                call.name,
                one_line(call.arguments.as_str())
            )));
        }
        (TeamRunStatus::CompletedPartial | TeamRunStatus::Failed, _) => {
            finish = run.spent.map_or(FinishReason::Length, FinishReason::BudgetSpent);
        }
        _ => {}
    }
    let used = &run.used;
    let tokens =
        |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
    let usage = Usage {
        prompt_tokens: tokens(used.prompt_tokens, before.prompt_tokens),
        completion_tokens: tokens(used.answer_tokens, before.answer_tokens),
        ..Usage::default()
    };
    events.push(ChatEvent::Done(Completion { finish, usage, timings: Timings::default() }));
    Ok(events)
}

#[cfg(test)]
mod tests;
