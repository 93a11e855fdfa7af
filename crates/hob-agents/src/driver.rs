//! Carries out the effects of a run: asks models, runs tools, stores and shows what happened.
//! Dropping [`drive`] stops the work behind it; the state on disk is that of the last step.

mod watchdog;

use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use hob_core::chat::{ChatEvent, ChatRequest, JsonText, ToolCall};
use tokio::time::timeout;

pub use self::watchdog::Watchdog;
use self::watchdog::{FirstWait, LOOK_EVERY};

use crate::event::{DeltaKind, EventKind, RunEvent};
use crate::machine::{Effect, Input, ModelAnswer, Now, request_of, step};
use crate::price::ModelPrice;
use crate::state::{Pending, RunState, TeamRunStatus};
use crate::store::StoredRun;
use crate::tool::{AgentTool, ToolOutput, ToolSource, ToolSpec};

/// Longest text and arguments of one answer in bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Calls of one answer.
const CALLS_MAX: usize = 64;

/// An answer as it comes. Errors are sentences for people.
pub type AnswerStream = BoxStream<'static, Result<ChatEvent, String>>;

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
    ) -> BoxFuture<'m, Result<AnswerStream, String>>;

    /// The price of the model that answered, such as `openai/gpt-4o`. Models of this machine have none.
    fn price(&self, _target: &str) -> Option<ModelPrice> {
        None
    }
}

/// Where a run is kept, and who watches it.
pub trait RunHost: Send + Sync {
    /// Stores the state and its new events. If `must_sync`, they must be on the disk when it returns, because an effect
    /// follows that must not happen twice; otherwise the operating system may write them later.
    ///
    /// # Errors
    /// Nothing was stored. The run stops before its next effect.
    fn store(&self, state: &RunState, events: &[RunEvent], must_sync: bool) -> io::Result<()>;

    /// Shows an event. Pieces of answers come here only.
    fn show(&self, event: &RunEvent);

    /// Asks a person. `None`: no person can be asked now, so the run waits on disk.
    fn ask<'h>(&'h self, call: &'h ToolCall, reason: &'h str) -> BoxFuture<'h, Option<bool>>;
}

/// What a run needs besides its state.
pub struct Driver<'d> {
    pub models: &'d dyn AgentModels,
    pub tools: &'d [Arc<dyn AgentTool>],
    /// Further tools, opened when an agent that names them works.
    pub source: &'d dyn ToolSource,
    pub host: &'d dyn RunHost,
    pub watchdog: Watchdog,
}

impl fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}

impl Driver<'_> {
    /// Begins or continues a run, until it has ended or waits for a person.
    ///
    /// # Errors
    /// The run could not be stored.
    pub async fn drive(&self, state: &mut RunState) -> io::Result<TeamRunStatus> {
        let mut tools = OpenTools::default();
        tools.add(self.tools.to_vec());
        let mut last = Instant::now();
        let mut input = Input::Start;
        if state.seq > 0 {
            // Agents that wait may have calls left, and the machine checks these before it asks a model.
            let waiting: Vec<String> =
                state.stack.iter().map(|frame| frame.agent.clone()).collect();
            for agent in waiting {
                self.open_tools(state, &agent, &mut tools).await?;
            }
        }
        loop {
            let now = Now { unix_ms: unix_ms(), since_s: last.elapsed().as_secs_f64() };
            last = Instant::now();
            let action = self.take_step(state, &tools.specs, (input, now))?;
            input = match action {
                Some(Effect::CallModel { id, model, request }) => {
                    let agent = state.stack.last().map(|frame| frame.agent.clone());
                    let agent = agent.unwrap_or_default();
                    let is_more = self.open_tools(state, &agent, &mut tools).await?;
                    let more = is_more.then(|| request_of(state, &tools.specs)).flatten();
                    match self.answer(state, &model, more.unwrap_or(*request)).await {
                        Ok(answer) => Input::ModelAnswered { id, answer },
                        Err(NoAnswer::Failed(error)) => Input::ModelFailed { id, error },
                        Err(NoAnswer::NotStored(error)) => return Err(error),
                    }
                }
                Some(Effect::RunTool { call }) => tools.run(call).await,
                Some(Effect::Ask { approval }) => {
                    let Some(is_approved) = self.ask(state).await else { return Ok(state.status) };
                    // A person's time does not count against the budget.
                    last = Instant::now();
                    Input::Resolved { approval, is_approved }
                }
                Some(Effect::Finish | Effect::Emit(_)) | None => return Ok(state.status),
            };
        }
    }

    /// Opens the tools of an agent, and stores what is missing. True: there are more tools than before.
    async fn open_tools(
        &self,
        state: &mut RunState,
        agent: &str,
        tools: &mut OpenTools,
    ) -> io::Result<bool> {
        let Some(agent) = state.team.agent(agent) else { return Ok(false) };
        let opened = self.source.open(agent).await;
        for note in opened.notes {
            self.note(state, EventKind::ToolsMissing { note })?;
        }
        let is_more = !opened.tools.is_empty();
        tools.add(opened.tools);
        Ok(is_more)
    }

    /// One step, stored and shown. Gives its action: the machine asks for one thing at a time.
    fn take_step(
        &self,
        state: &mut RunState,
        specs: &[ToolSpec],
        (input, now): (Input, Now),
    ) -> io::Result<Option<Effect>> {
        let has_ended =
            matches!(&state.pending, Pending::Tool { call } if has_side_effect(specs, call));
        let (mut events, mut action) = (Vec::new(), None);
        for effect in step(state, specs, input, now) {
            match effect {
                Effect::Emit(event) => events.push(event),
                other => action = Some(other),
            }
        }
        let must_sync = match &action {
            Some(Effect::CallModel { .. }) => has_ended,
            Some(Effect::RunTool { call }) => has_ended || has_side_effect(specs, call),
            None => false,
            _ => true,
        };
        self.host.store(state, &events, must_sync)?;
        events.iter().for_each(|event| self.host.show(event));
        Ok(action)
    }

    async fn ask(&self, state: &RunState) -> Option<bool> {
        let Pending::Approval { call, reason, .. } = &state.pending else { return None };
        self.host.ask(call, reason).await
    }

    /// Stores and shows what the driver saw.
    fn note(&self, state: &mut RunState, what: EventKind) -> io::Result<()> {
        let now = Now { unix_ms: unix_ms(), since_s: 0.0 };
        self.take_step(state, &[], (Input::Noted(what), now)).map(|_| ())
    }

    async fn answer(
        &self,
        state: &mut RunState,
        name: &str,
        request: ChatRequest,
    ) -> Result<ModelAnswer, NoAnswer> {
        let begun = Instant::now();
        let trace = request.trace.clone();
        let idle = self.watchdog.idle;
        let mut wait = FirstWait::new(name, &request);
        let starting = self.models.chat(name, request);
        let mut stream = self.first(state, &mut wait, starting).await??;
        let mut next = self.first(state, &mut wait, stream.next()).await?;
        let mut collected = Collected::default();
        loop {
            let event = next.ok_or_else(|| "the answer was cut off".to_owned())??;
            let target = || trace.snapshot().target.unwrap_or_else(|| name.to_owned());
            if !std::mem::replace(&mut collected.has_begun, true) {
                for attempt in trace.snapshot().failed {
                    let (from, reason) = (attempt.target, attempt.message);
                    self.note(state, EventKind::ModelFallback { from, to: target(), reason })?;
                }
                let ms = begun.elapsed().as_millis() as u64;
                self.show(state, EventKind::ModelFirstToken { target: target(), ms });
            }
            if let ChatEvent::Done(completion) = event {
                let usage = completion.usage;
                let (prompt_tokens, answer_tokens) =
                    (u64::from(usage.prompt_tokens), u64::from(usage.completion_tokens));
                let price = self.models.price(&target());
                return Ok(ModelAnswer {
                    cost: price.map(|price| price.cost(prompt_tokens, answer_tokens)),
                    ms: begun.elapsed().as_millis() as u64,
                    text: collected.text,
                    calls: collected.calls.into_iter().map(CollectedCall::finished).collect(),
                    prompt_tokens,
                    answer_tokens,
                    target: target(),
                });
            }
            if let Some((kind, text)) = collected.take(event)? {
                self.show(state, EventKind::ModelDelta { kind, text });
            }
            let late = |_| format!("'{name}' has sent nothing for {} s", idle.as_secs());
            next = timeout(idle, stream.next()).await.map_err(late)?;
        }
    }

    /// Waits for the first sign of a model, and notes when it is loaded.
    async fn first<T>(
        &self,
        state: &mut RunState,
        wait: &mut FirstWait,
        coming: impl Future<Output = T>,
    ) -> Result<T, NoAnswer> {
        let mut coming = pin!(coming);
        loop {
            if let Ok(come) = timeout(LOOK_EVERY, &mut coming).await {
                return Ok(come);
            }
            if let Some(model) = wait.look(&self.watchdog)? {
                self.note(state, EventKind::ModelLoading { model })?;
            }
        }
    }

    /// Events that are not stored: they have the number of the last stored one.
    fn show(&self, state: &RunState, what: EventKind) {
        self.host.show(&RunEvent {
            v: state.v,
            seq: state.seq,
            ts: unix_ms(),
            run_id: state.run_id.clone(),
            agent: state.stack.last().map(|frame| frame.agent.clone()),
            depth: state.stack.len().saturating_sub(1),
            what,
        });
    }
}

/// Why there is no answer.
enum NoAnswer {
    Failed(String),
    /// The run cannot be stored, so it cannot go on.
    NotStored(io::Error),
}

impl From<String> for NoAnswer {
    fn from(error: String) -> NoAnswer {
        NoAnswer::Failed(error)
    }
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> NoAnswer {
        NoAnswer::NotStored(error)
    }
}

/// Tools that only read may run again after a crash.
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

    async fn run(&self, call: ToolCall) -> Input {
        let tool = self.tools.iter().find(|tool| tool.spec().name == call.name);
        let output = match (tool, serde_json::from_str(call.arguments.as_str())) {
            (Some(tool), Ok(arguments)) => tool.call(arguments).await,
            _ => ToolOutput::error(format!("there is no tool '{}'", call.name)),
        };
        Input::ToolEnded { call_id: call.id, output }
    }
}

/// An answer on its way.
#[derive(Default)]
struct Collected {
    text: String,
    calls: Vec<CollectedCall>,
    bytes: usize,
    has_begun: bool,
}

struct CollectedCall {
    index: u32,
    id: String,
    name: String,
    arguments: String,
}

impl CollectedCall {
    fn finished(self) -> ToolCall {
        ToolCall { id: self.id, name: self.name, arguments: JsonText::parsed(self.arguments) }
    }
}

impl Collected {
    /// Adds an event, and gives what can be shown of it.
    fn take(&mut self, event: ChatEvent) -> Result<Option<(DeltaKind, String)>, String> {
        let shown = match event {
            ChatEvent::Reasoning(text) => {
                self.bytes += text.len();
                Some((DeltaKind::Reasoning, text))
            }
            ChatEvent::Text(text) => {
                self.bytes += text.len();
                self.text += &text;
                Some((DeltaKind::Text, text))
            }
            ChatEvent::ToolCall { index, id, name } => {
                self.calls.push(CollectedCall { index, id, name, arguments: String::new() });
                None
            }
            ChatEvent::ToolArguments { index, piece } => {
                self.bytes += piece.len();
                let call = self.calls.iter_mut().rfind(|call| call.index == index);
                call.ok_or("the server sent arguments of a call that it did not begin")?
                    .arguments += &piece;
                None
            }
            ChatEvent::Status { .. } | ChatEvent::Logprobs(_) | ChatEvent::Done(_) => None,
        };
        if self.bytes > ANSWER_BYTES_MAX || self.calls.len() > CALLS_MAX {
            return Err(format!(
                "the answer has more than {ANSWER_BYTES_MAX} bytes or {CALLS_MAX} calls"
            ));
        }
        Ok(shown)
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
