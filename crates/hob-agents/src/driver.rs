//! Carries out the effects of a run: asks models, runs tools, stores and shows what happened.
//! Dropping [`drive`] stops the work behind it; the state on disk is that of the last step.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use hob_core::chat::{ChatEvent, ChatRequest, JsonText, ToolCall};
use tokio::time::timeout;

use crate::event::{DeltaKind, EventKind, RunEvent};
use crate::machine::{Effect, Input, ModelAnswer, Now, request_of, step};
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

/// Limits of waiting for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// From the request to the first content.
    pub first_token: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
}

impl Default for Watchdog {
    fn default() -> Watchdog {
        // Loading a model is part of the first wait, and may take minutes.
        Watchdog { first_token: Duration::from_secs(300), idle: Duration::from_secs(30) }
    }
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
                    self.call(state, id, &model, more.unwrap_or(*request)).await
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
            let now = Now { unix_ms: unix_ms(), since_s: 0.0 };
            self.take_step(state, &tools.specs, (Input::ToolsMissing { note }, now))?;
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

    async fn call(&self, state: &RunState, id: u64, model: &str, request: ChatRequest) -> Input {
        match self.answer(state, model, request).await {
            Ok(answer) => Input::ModelAnswered { id, answer },
            Err(error) => Input::ModelFailed { id, error },
        }
    }

    async fn answer(
        &self,
        state: &RunState,
        name: &str,
        request: ChatRequest,
    ) -> Result<ModelAnswer, String> {
        let begun = Instant::now();
        let trace = request.trace.clone();
        let Watchdog { first_token, idle } = self.watchdog;
        let late = |limit: Duration| format!("'{name}' has sent nothing for {} s", limit.as_secs());
        let starting = timeout(first_token, self.models.chat(name, request)).await;
        let mut stream = starting.map_err(|_| late(first_token))??;
        let mut collected = Collected::default();
        loop {
            let limit = if collected.has_begun { idle } else { first_token };
            let event = timeout(limit, stream.next()).await.map_err(|_| late(limit))?;
            let event = event.ok_or("the answer was cut off")??;
            if let ChatEvent::Done(completion) = event {
                let usage = completion.usage;
                let (prompt_tokens, answer_tokens) =
                    (u64::from(usage.prompt_tokens), u64::from(usage.completion_tokens));
                let target = trace.snapshot().target.unwrap_or_else(|| name.to_owned());
                return Ok(ModelAnswer {
                    ms: begun.elapsed().as_millis() as u64,
                    text: collected.text,
                    calls: collected.calls.into_iter().map(CollectedCall::finished).collect(),
                    prompt_tokens,
                    answer_tokens,
                    target,
                });
            }
            if !std::mem::replace(&mut collected.has_begun, true) {
                let target = trace.snapshot().target.unwrap_or_else(|| name.to_owned());
                let ms = begun.elapsed().as_millis() as u64;
                self.show(state, EventKind::ModelFirstToken { target, ms });
            }
            if let Some((kind, text)) = collected.take(event)? {
                self.show(state, EventKind::ModelDelta { kind, text });
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
            ChatEvent::Logprobs(_) | ChatEvent::Done(_) => None,
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
