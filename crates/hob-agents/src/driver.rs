//! Carries out the effects of a run: asks models, runs tools, stores and shows what happened.
//! Dropping [`Driver::drive`] stops the work behind it; the state on disk is that of the last step.

mod deadline;
mod streamed;
mod watchdog;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use hob_core::chat::{ChatEvent, ChatRequest, FinishReason, ToolCall};
use hob_core::{ModelError, locked};
use tokio::time::{Instant, sleep, timeout};

use self::streamed::StreamedAnswer;
pub use self::watchdog::Watchdog;
use self::watchdog::{FirstWait, LOOK_EVERY};

use crate::event::{DeltaKind, EventKind, RunEvent};
use crate::machine::{Effect, Input, ModelAnswer, ModelFailure, Now, request_of, step};
use crate::price::ModelPrice;
use crate::redaction::Redaction;
use crate::state::{RunState, TeamRunStatus};
use crate::store::StoredRun;
use crate::tool::{AgentTool, ToolOutput, ToolSource, ToolSpec};

/// What the model reads about a call that was stopped when the time of the budget was used up.
const STOPPED: &str = "The call was stopped, because the time of the budget is used up. What it has done so far is unknown.";

/// The events of an answer as they arrive.
pub type AnswerStream = BoxStream<'static, Result<ChatEvent, AnswerFailure>>;

/// Why a model gave no whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerFailure {
    /// A sentence for people.
    pub sentence: String,
    /// The same request to the same model would fail again.
    pub is_permanent: bool,
}

impl From<ModelError> for AnswerFailure {
    fn from(error: ModelError) -> AnswerFailure {
        AnswerFailure { sentence: error.to_string(), is_permanent: error.is_permanent() }
    }
}

/// The models that agents may name.
pub trait AgentModels: Send + Sync {
    /// Asks the model or alias of this name. Dropping the stream stops the work.
    ///
    /// # Errors
    /// There is no such model, or no target of the alias answers.
    fn chat<'m>(
        &'m self,
        name: &'m str,
        request: ChatRequest,
    ) -> BoxFuture<'m, Result<AnswerStream, AnswerFailure>>;

    /// Whether another machine answers for this name, so that several agents can ask it at the same time. Models of this
    /// machine share its processor.
    fn is_remote(&self, _name: &str) -> bool {
        false
    }

    /// The price of the model that answered, such as `openai/gpt-4o`. Models of this machine have none.
    fn price(&self, _target: &str) -> Option<ModelPrice> {
        None
    }
}

/// Where a run is stored, and where its events are shown.
pub trait RunHost: Send + Sync {
    /// Stores the state and its new events. If `must_sync`, they must be on the disk when it returns, because an effect
    /// follows that must not happen twice; otherwise the operating system may write them later.
    ///
    /// # Errors
    /// Nothing was stored. The run stops before its next effect.
    fn store(&self, state: &RunState, events: &[RunEvent], must_sync: bool) -> io::Result<()>;

    /// Shows an event. Pieces of answers are shown and never stored.
    fn show(&self, event: &RunEvent);

    /// Called when the tokens of a stopped answer have been added to the state. If another step follows, it stores them
    /// with an event.
    fn counted(&self, _state: &RunState) {}

    /// Asks a person. `None`: no person can be asked now, so the run waits on disk.
    fn ask<'h>(&'h self, call: &'h ToolCall, reason: &'h str) -> BoxFuture<'h, Option<bool>>;

    /// The results of the client's own tools. The keys are the places of the calls among the calls of these tools, from 0.
    /// `None`: the client has not sent them yet, so the run waits on disk.
    fn client_outputs(&self, _id: u64) -> Option<BTreeMap<usize, String>> {
        None
    }
}

/// Everything that a run needs, except its state.
pub struct Driver<'d> {
    pub models: &'d dyn AgentModels,
    pub tools: &'d [Arc<dyn AgentTool>],
    /// Opens further tools, such as those of MCP servers, when an agent that names them works.
    pub source: &'d dyn ToolSource,
    pub host: &'d dyn RunHost,
    pub watchdog: Watchdog,
    /// Removes secrets from events.
    pub redaction: Redaction,
}

impl fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}

impl Driver<'_> {
    /// Begins or continues a run, until it has ended or waits for a person or its client.
    ///
    /// # Errors
    /// The run could not be stored.
    pub async fn drive(&self, state: &mut RunState) -> io::Result<TeamRunStatus> {
        let models = state.team.models().into_iter();
        let remote = models.filter(|model| self.models.is_remote(model)).map(str::to_owned);
        state.remote_models = remote.collect();
        let mut tools = OpenTools::default();
        tools.add(self.tools.to_vec());
        let work = Work {
            driver: self,
            run: Mutex::new(LockedRun { state, last: Instant::now() }),
            tools: Mutex::new(tools),
        };
        work.reopen_tools().await?;
        let mut running = FuturesUnordered::new();
        let mut input = Some(Input::Start);
        loop {
            if let Some(input) = input.take() {
                running.extend(
                    work.take_step(input)?.into_iter().map(|action| work.carry_out(action)),
                );
            }
            match running.next().await {
                Some(next) => input = next?,
                None => return Ok(work.lock_run().state.status),
            }
        }
    }
}

/// A run with what its branches share. They wait at the same time, and hold no lock while they wait.
struct Work<'w> {
    driver: &'w Driver<'w>,
    run: Mutex<LockedRun<'w>>,
    tools: Mutex<OpenTools>,
}

struct LockedRun<'w> {
    state: &'w mut RunState,
    /// When the run took its last step, or a person answered its question.
    last: Instant,
}

impl<'w> Work<'w> {
    fn lock_run(&self) -> MutexGuard<'_, LockedRun<'w>> {
        locked(&self.run)
    }

    fn tools(&self) -> MutexGuard<'_, OpenTools> {
        locked(&self.tools)
    }

    /// Opens the tools of all agents of a run that is continued. They may have calls left, which the machine checks before
    /// it asks a model.
    async fn reopen_tools(&self) -> io::Result<()> {
        let agents: Vec<String> = {
            let state = &self.lock_run().state;
            let frames = state.branches.iter().flat_map(|branch| &branch.frames);
            let frames = state.stack.iter().chain(frames).filter(|_| state.seq > 0);
            frames.map(|frame| frame.agent.clone()).collect()
        };
        for agent in agents {
            self.open_tools(&agent, None).await?;
        }
        Ok(())
    }

    /// Carries out an effect, and returns its result as the next input. `None`: the run has ended, or it waits for a
    /// person or a client that cannot answer now.
    async fn carry_out(&self, action: Action) -> io::Result<Option<Input>> {
        match action.effect {
            Effect::CallModel { id, model, request, pause } => {
                let cause = action.cause;
                let agent = cause.as_ref().and_then(|cause| cause.agent.as_deref());
                // A last answer has no tools, so it waits for none.
                let agent = agent.filter(|_| request.tokens_max.is_none());
                let opening = self.open_tools(agent.unwrap_or_default(), Some(id));
                let Some(has_new_tools) = self.in_time(id, opening).await else {
                    return Ok(Some(Input::OutOfTime { id, said: String::new() }));
                };
                let renewed = has_new_tools?
                    .then(|| request_of(self.lock_run().state, &self.tools().specs, id))
                    .flatten();
                let call = ModelCall { id, model, pause, cause };
                let request = renewed.unwrap_or(*request);
                let mut streamed = StreamedAnswer::of(self, &call, &request);
                let answer = self.answer(&call, request, &mut streamed);
                let answered = self.in_time(id, answer).await;
                match answered {
                    Some(Ok(answer)) => Ok(Some(Input::ModelAnswered { id, answer })),
                    Some(Err(NoAnswer::Failed(error, how))) => {
                        Ok(Some(Input::ModelFailed { id, error, how }))
                    }
                    Some(Err(NoAnswer::NotStored(error))) => Err(error),
                    None => Ok(Some(Input::OutOfTime { id, said: streamed.take_text() })),
                }
            }
            Effect::RunTool { id, call } => {
                let output = self.in_time(id, self.run_tool(&call)).await;
                let output = output.unwrap_or_else(|| ToolOutput::error(STOPPED));
                Ok(Some(Input::ToolEnded { id, output }))
            }
            Effect::Ask { approval, call, reason } => {
                let decision = self.driver.host.ask(&call, &reason).await;
                // The time in which a person decides does not count against the budget.
                self.lock_run().last = Instant::now();
                Ok(decision.map(|is_approved| Input::Resolved { approval, is_approved }))
            }
            Effect::AskClient { id } => {
                let outputs = self.driver.host.client_outputs(id);
                Ok(outputs.map(|outputs| Input::ClientAnswered { id, outputs }))
            }
            Effect::Finish | Effect::Emit(_) => Ok(None),
        }
    }

    /// Opens the tools of an agent, and stores a note for each missing one. Returns whether there are more tools than before.
    async fn open_tools(&self, agent: &str, id: Option<u64>) -> io::Result<bool> {
        let agent = self.lock_run().state.team.agent(agent).cloned();
        let Some(agent) = agent else { return Ok(false) };
        let opened = self.driver.source.open(&agent).await;
        for note in opened.notes {
            self.note(id, EventKind::ToolsMissing { note })?;
        }
        let has_new_tools = !opened.tools.is_empty();
        self.tools().add(opened.tools);
        Ok(has_new_tools)
    }

    async fn run_tool(&self, call: &ToolCall) -> ToolOutput {
        let tool = self.tools().find(&call.name);
        match (tool, serde_json::from_str(call.arguments.as_str())) {
            (Some(tool), Ok(arguments)) => tool.call(arguments).await,
            _ => ToolOutput::error(format!("there is no tool '{}'", call.name)),
        }
    }

    /// Takes one step with the current time, stores and shows it. Returns the effects to carry out.
    fn take_step(&self, input: Input) -> io::Result<Vec<Action>> {
        let mut run = self.lock_run();
        let since_s = run.last.elapsed().as_secs_f64();
        run.last = Instant::now();
        self.step(run.state, input, since_s)
    }

    /// Stores and shows an event that the driver has noticed itself.
    fn note(&self, id: Option<u64>, what: EventKind) -> io::Result<()> {
        self.step(self.lock_run().state, Input::Noted { id, what }, 0.0).map(|_| ())
    }

    /// Takes one step of the machine. Events are stored and shown here; the other effects are returned.
    fn step(&self, state: &mut RunState, input: Input, since_s: f64) -> io::Result<Vec<Action>> {
        let tools = self.tools();
        let specs = &tools.specs;
        let had_effect = match &input {
            Input::ToolEnded { id, .. } => {
                state.tool_call(*id).is_some_and(|call| has_side_effect(specs, call))
            }
            _ => false,
        };
        let (mut events, mut actions) = (Vec::new(), Vec::new());
        for effect in step(state, specs, input, Now { unix_ms: unix_ms(), since_s }) {
            match effect {
                Effect::Emit(event) => events.push(event),
                effect => actions.push(Action { effect, cause: events.last().cloned() }),
            }
        }
        let must_sync = had_effect || actions.iter().any(|action| action.must_sync(specs));
        let redacted = self.driver.redaction.events(&events);
        self.driver.host.store(state, &redacted, must_sync)?;
        for (event, redacted) in events.iter().zip(&*redacted) {
            // These stay unredacted: the client has read the answer already, and a person must see all of a call to approve.
            let is_whole = matches!(
                event.what,
                EventKind::MessageOutput { .. } | EventKind::ApprovalRequested { .. }
            );
            self.driver.host.show(if is_whole { event } else { redacted });
        }
        Ok(actions)
    }

    /// Waits for the whole answer of a model. `streamed` has what arrived so far, so that it counts if the wait is dropped.
    async fn answer(
        &self,
        call: &ModelCall,
        request: ChatRequest,
        streamed: &mut StreamedAnswer<'_, '_>,
    ) -> Result<ModelAnswer, NoAnswer> {
        if !call.pause.is_zero() {
            sleep(call.pause).await;
        }
        let (begun, name) = (Instant::now(), &*call.model);
        let trace = request.trace.clone();
        let agent = call.cause.as_ref().and_then(|cause| cause.agent.clone());
        trace.note(|data| data.agent = agent);
        let idle = self.driver.watchdog.idle;
        let is_remote = self.driver.models.is_remote(name);
        let mut wait = FirstWait::new(name, &request, is_remote);
        let starting = self.driver.models.chat(name, request);
        let mut stream = self.wait_for_first(call, &mut wait, starting).await??;
        let mut next = self.wait_for_first(call, &mut wait, stream.next()).await?;
        loop {
            let event = next.ok_or_else(|| "the answer was cut off".to_owned())??;
            if streamed.begin() {
                for attempt in trace.snapshot().failed {
                    let (from, reason) = (attempt.target, attempt.message);
                    let what = EventKind::ModelFallback { from, to: streamed.target(), reason };
                    self.note(Some(call.id), what)?;
                }
                let ms = begun.elapsed().as_millis() as u64;
                self.show(call, EventKind::ModelFirstToken { target: streamed.target(), ms });
            }
            if let ChatEvent::Done(completion) = event {
                if let Some(text) = streamed.held_back() {
                    self.show(call, EventKind::ModelDelta { kind: DeltaKind::Text, text });
                }
                let usage = completion.usage;
                let (prompt_tokens, answer_tokens) =
                    (u64::from(usage.prompt_tokens), u64::from(usage.completion_tokens));
                return Ok(ModelAnswer {
                    cost: streamed.cost(prompt_tokens, answer_tokens),
                    ms: begun.elapsed().as_millis() as u64,
                    is_cut: completion.finish == FinishReason::Length,
                    prompt_tokens,
                    answer_tokens,
                    target: streamed.target(),
                    ..streamed.finish()
                });
            }
            if let Some((kind, text)) = streamed.take(event)? {
                self.show(call, EventKind::ModelDelta { kind, text });
            }
            let late = |_| {
                let error = format!("'{name}' has sent nothing for {} s", idle.as_secs());
                NoAnswer::Failed(error, ModelFailure::Stalled)
            };
            next = timeout(idle, stream.next()).await.map_err(late)?;
        }
    }

    /// Waits for the beginning of an answer, and stores an event when the model has to load first.
    async fn wait_for_first<T>(
        &self,
        call: &ModelCall,
        wait: &mut FirstWait,
        coming: impl Future<Output = T>,
    ) -> Result<T, NoAnswer> {
        let mut coming = pin!(coming);
        loop {
            if let Ok(come) = timeout(LOOK_EVERY, &mut coming).await {
                return Ok(come);
            }
            let looked = wait.look(&self.driver.watchdog);
            let late = |error| NoAnswer::Failed(error, ModelFailure::Silent);
            if let Some(model) = looked.map_err(late)? {
                self.note(Some(call.id), EventKind::ModelLoading { model })?;
            }
        }
    }

    /// Shows an event that is not stored. It has the number of the last stored event.
    fn show(&self, call: &ModelCall, what: EventKind) {
        let Some(cause) = &call.cause else { return };
        let seq = self.lock_run().state.seq;
        self.driver.host.show(&RunEvent { seq, ts: unix_ms(), what, ..cause.clone() });
    }
}

/// An effect that the driver must carry out, other than an event.
struct Action {
    effect: Effect,
    /// The last event that the step emitted before the effect. It names the agent that the effect belongs to.
    cause: Option<RunEvent>,
}

impl Action {
    /// Whether the step must be on the disk before the effect is carried out.
    fn must_sync(&self, specs: &[ToolSpec]) -> bool {
        match &self.effect {
            Effect::CallModel { .. } => false,
            Effect::RunTool { call, .. } => has_side_effect(specs, call),
            _ => true,
        }
    }
}

/// One request of an agent to its model.
struct ModelCall {
    /// The id in [`Effect::CallModel`].
    id: u64,
    model: String,
    /// Time to wait before the request.
    pause: Duration,
    /// The event that announced the request.
    cause: Option<RunEvent>,
}

/// Why there is no whole answer.
enum NoAnswer {
    Failed(String, ModelFailure),
    /// The run cannot be stored, so it cannot go on.
    NotStored(io::Error),
}

impl From<String> for NoAnswer {
    fn from(error: String) -> NoAnswer {
        NoAnswer::Failed(error, ModelFailure::Broke)
    }
}

impl From<AnswerFailure> for NoAnswer {
    fn from(failure: AnswerFailure) -> NoAnswer {
        let AnswerFailure { sentence, is_permanent } = failure;
        let how = if is_permanent { ModelFailure::Refused } else { ModelFailure::Broke };
        NoAnswer::Failed(sentence, how)
    }
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> NoAnswer {
        NoAnswer::NotStored(error)
    }
}

/// Whether a call may have changed something when it is interrupted, so that it must not be made twice. True for an
/// unknown tool.
fn has_side_effect(specs: &[ToolSpec], call: &ToolCall) -> bool {
    specs.iter().find(|spec| spec.name == call.name).is_none_or(|spec| !spec.may_repeat)
}

/// The tools that are open, and their specs in the same order.
#[derive(Default)]
struct OpenTools {
    tools: Vec<Arc<dyn AgentTool>>,
    specs: Vec<ToolSpec>,
}

impl OpenTools {
    fn add(&mut self, tools: Vec<Arc<dyn AgentTool>>) {
        self.specs.extend(tools.iter().map(|tool| tool.spec().clone()));
        self.tools.extend(tools);
    }

    fn find(&self, name: &str) -> Option<Arc<dyn AgentTool>> {
        self.tools.iter().find(|tool| tool.spec().name == name).cloned()
    }
}

/// Ends a run on which no driver works.
///
/// # Errors
/// The end could not be stored.
pub fn cancel(stored: &StoredRun, state: &mut RunState) -> io::Result<()> {
    let now = Now { unix_ms: unix_ms(), since_s: 0.0 };
    let effects = step(state, &[], Input::Cancel, now);
    let event = |effect| match effect {
        Effect::Emit(event) => Some(event),
        _ => None,
    };
    let events: Vec<RunEvent> = effects.into_iter().filter_map(event).collect();
    stored.store(state, &events, true)
}

/// Milliseconds since 1970.
fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests;
