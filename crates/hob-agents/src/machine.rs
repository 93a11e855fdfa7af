//! A run as a state machine: an input changes the state and gives effects, which the driver carries out.
//! It reads no clock and does no I/O. If the driver stores the state before it carries out the effects, a crash loses
//! nothing, and no tool with side effects runs twice.

mod branches;
mod budget;
mod calls;
mod failures;
mod prompt;
mod reading;
mod strict;
mod text_calls;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hob_core::chat::{ChatRequest, Message, ToolCall, ToolChoice};

pub(crate) use self::budget::count_stopped;
use self::prompt::DelegateOutcome;
pub(crate) use self::text_calls::OPEN as CALL_BEGIN;
use crate::event::{EventKind, RunEvent};
use crate::state::{AgentFrame, AgentRole, Pending, RunState, TeamRunStatus, Used};
use crate::team::{LAST_ANSWER_TOKENS, Team};
use crate::tool::{ToolOutput, ToolSpec};

/// Version of the state and of the events.
const VERSION: u32 = 1;

/// The time of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Now {
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// Seconds since the step before, or since this process continued the run.
    pub since_s: f64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The run begins, or goes on after a crash.
    Start,
    ModelAnswered {
        id: u64,
        answer: ModelAnswer,
    },
    /// No target of the model's alias gave a whole answer. `how` decides whether another try can help.
    ModelFailed {
        id: u64,
        error: String,
        how: ModelFailure,
    },
    /// The time of the budget was used up before the model had answered.
    OutOfTime {
        id: u64,
        /// What the model had written.
        said: String,
    },
    ToolEnded {
        id: u64,
        output: ToolOutput,
    },
    /// The driver saw something that the trace must show. It changes nothing else.
    Noted {
        /// The call of a model that the note is about.
        id: Option<u64>,
        what: EventKind,
    },
    /// A person decided.
    Resolved {
        approval: String,
        is_approved: bool,
    },
    /// The client has made its calls. `outputs` has the result of each, by the number of the call.
    ClientAnswered {
        id: u64,
        outputs: BTreeMap<usize, String>,
    },
    Cancel,
}

/// How a model failed to give a whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFailure {
    /// It cannot be asked, it answered with an error, or the connection broke.
    Broke,
    /// It would answer the same request with the same error: the request, its name or a key is wrong.
    Refused,
    /// It began an answer, and then sent nothing for too long.
    Stalled,
    /// It did not begin an answer in time.
    Silent,
}

/// A whole answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelAnswer {
    /// What the model thought before it wrote the text and the calls.
    pub reasoning: String,
    pub text: String,
    pub calls: Vec<ToolCall>,
    /// Whether the token limit ended the answer before the model did.
    pub is_cut: bool,
    pub prompt_tokens: u64,
    pub answer_tokens: u64,
    /// In US dollars, for a model that has a price.
    pub cost: Option<f64>,
    /// The model that answered, which an alias chose.
    pub target: String,
    /// Milliseconds from the request to the end of the answer.
    pub ms: u64,
}

/// What the driver must do. Several effects can be at work at the same time, one for each branch.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Store and show this event. Events before a tool with side effects must be on disk before the tool runs.
    Emit(RunEvent),
    CallModel {
        id: u64,
        model: String,
        request: Box<ChatRequest>,
        /// How long to wait before the call, because the model has just failed.
        pause: Duration,
    },
    RunTool {
        id: u64,
        call: ToolCall,
    },
    /// Ask a person, and then send [`Input::Resolved`].
    Ask {
        approval: String,
        call: ToolCall,
        reason: String,
    },
    /// Let the client make calls of its tools, and then send [`Input::ClientAnswered`].
    AskClient {
        id: u64,
    },
    /// The run has ended; its status and its last event say how.
    Finish,
}

impl RunState {
    /// A run that has not begun. `run_id` must be unique.
    pub fn new(team: Team, run_id: String, task: String) -> RunState {
        let root = AgentFrame {
            messages: prompt::opening(&team, &team.entry, &task, &[]).into(),
            ..AgentFrame::new(&team.entry, AgentRole::Root)
        };
        RunState {
            v: VERSION,
            run_id,
            task,
            owner: None,
            stack: vec![root],
            pending: Pending::Nothing,
            branches: Vec::new(),
            remote_models: BTreeSet::new(),
            client_tools: Vec::new(),
            used: Used::default(),
            seq: 0,
            status: TeamRunStatus::Running,
            last_texts: BTreeMap::new(),
            exhausted: None,
            spent: None,
            is_nudged: false,
            stopped: Vec::new(),
            team,
        }
    }

    /// The model of the active agent.
    fn model(&self) -> Option<&str> {
        let frame = self.stack.last()?;
        let fallback = self.team.fallback.as_deref().filter(|_| frame.uses_fallback);
        fallback.or_else(|| Some(self.team.agent(&frame.agent)?.model.as_str()))
    }

    /// Keeps what the active agent has said last, for its caller and for an answer that hob joins from several agents.
    fn keep_text(&mut self, text: &str) {
        let Some(frame) = self.stack.last_mut().filter(|_| !text.is_empty()) else { return };
        text.clone_into(&mut frame.last_text);
        self.last_texts.insert(frame.agent.clone(), text.to_owned());
    }

    /// Puts an earlier conversation before the task.
    #[must_use]
    pub fn with_history(mut self, history: &[Message]) -> RunState {
        if let Some(root) = self.stack.first_mut() {
            let opening = prompt::opening(&self.team, &self.team.entry, &self.task, history);
            root.messages = opening.into();
        }
        self
    }
}

impl AgentFrame {
    fn new(agent: &str, role: AgentRole) -> AgentFrame {
        AgentFrame { agent: agent.to_owned(), role, number: 1, ..AgentFrame::default() }
    }
}

/// Takes one step. Inputs that do not belong to what the run waits for are ignored, so that a late answer does no harm.
pub fn step(state: &mut RunState, tools: &[ToolSpec], input: Input, now: Now) -> Vec<Effect> {
    if input == Input::Start && state.status == TeamRunStatus::Failed {
        // Its model may work again.
        state.status = TeamRunStatus::Running;
    }
    if state.status.has_ended() {
        return Vec::new();
    }
    state.used.time_s += now.since_s.max(0.0);
    let mut step = Step { state, tools, now, effects: Vec::new() };
    step.emit_stopped();
    match input {
        Input::Start => step.start(),
        Input::ModelAnswered { id, answer } if step.state.switch_to_model(id) => {
            step.model_answered(answer);
        }
        Input::ModelFailed { id, error, how } if step.state.switch_to_model(id) => {
            step.model_failed(error, how);
        }
        Input::OutOfTime { id, said } if step.state.switch_to_model(id) => step.out_of_time(&said),
        Input::ModelAnswered { .. } | Input::ModelFailed { .. } | Input::OutOfTime { .. } => {}
        Input::ToolEnded { id, output } => step.tool_ended(id, output),
        Input::Noted { id, what } => {
            if let Some(id) = id {
                step.state.switch_to_model(id);
            }
            step.emit(what);
        }
        Input::Resolved { approval, is_approved } => step.resolved(&approval, is_approved),
        Input::ClientAnswered { id, outputs } => step.client_answered(id, outputs),
        Input::Cancel => step.end(TeamRunStatus::Cancelled, None),
    }
    step.set_status();
    step.effects
}

/// What the agent that waits for this call asks its model, with the tools that are open now.
pub(crate) fn request_of(state: &mut RunState, tools: &[ToolSpec], id: u64) -> Option<ChatRequest> {
    state.switch_to_model(id).then(|| present_request(state, tools))?
}

/// What the active agent asks its model.
fn present_request(state: &RunState, tools: &[ToolSpec]) -> Option<ChatRequest> {
    let frame = state.stack.last()?;
    let is_last = state.exhausted.is_some() || frame.is_last_turn;
    let tools = if is_last { Vec::new() } else { prompt::specs(state, frame, tools) };
    let is_remote = state.model().is_some_and(|model| state.remote_models.contains(model));
    let choice = match !is_last && reading::must_call(state) {
        true => ToolChoice::Required,
        false => ToolChoice::Auto,
    };
    let mut request = prompt::request(frame, &tools, is_remote, choice);
    request.tokens_max = is_last.then_some(LAST_ANSWER_TOKENS);
    Some(request)
}

/// A step in progress. Collects the effects.
struct Step<'s> {
    state: &'s mut RunState,
    tools: &'s [ToolSpec],
    now: Now,
    effects: Vec<Effect>,
}

impl Step<'_> {
    fn emit(&mut self, what: EventKind) {
        self.state.seq += 1;
        let event = RunEvent {
            v: VERSION,
            seq: self.state.seq,
            ts: self.now.unix_ms,
            run_id: self.state.run_id.clone(),
            agent: self.state.stack.last().map(|frame| frame.agent.clone()),
            depth: self.state.stack.len().saturating_sub(1),
            span_id: self.state.stack.last().map_or(0, |frame| frame.span),
            parent_id: self.state.stack.iter().nth_back(1).map(|frame| frame.span),
            number: self.number(),
            what,
        };
        self.effects.push(Effect::Emit(event));
    }

    /// The number of the active agent, while several delegates work at the same time.
    fn number(&self) -> Option<u32> {
        let number = self.state.stack.last()?.number;
        let branch = self.state.branches.first();
        let is_in_branch = branch.is_some_and(|branch| self.state.stack.len() > branch.above);
        (is_in_branch || number > 1).then_some(number)
    }

    fn start(&mut self) {
        if self.state.seq == 0 {
            let (team, task) = (self.state.team.id.clone(), self.state.task.clone());
            self.emit(EventKind::RunStarted { team, task });
            self.emit_agent();
        } else {
            self.emit(EventKind::RunResumed {});
        }
        let branches = self.state.branches.iter().map(|branch| &branch.pending);
        let waiting: Vec<Pending> =
            std::iter::once(&self.state.pending).chain(branches).cloned().collect();
        for pending in waiting {
            self.state.switch_to(|own| *own == pending);
            match pending {
                // The answer was lost, and nothing else was.
                Pending::Model { .. } => self.call_model(),
                Pending::Tool { id, call } => self.resume_tool(id, call),
                Pending::Approval { approval, call, reason } => {
                    self.effects.push(Effect::Ask { approval, call, reason });
                }
                Pending::Client { id, .. } => self.effects.push(Effect::AskClient { id }),
                Pending::Nothing | Pending::Queued { .. } => {}
            }
        }
        self.advance();
    }

    /// Emits the start of the active agent. The number of this event is the agent's span.
    fn emit_agent(&mut self) {
        let (model, span) = (self.model(), self.state.seq + 1);
        if let Some(frame) = self.state.stack.last_mut() {
            frame.span = span;
        }
        self.emit(EventKind::AgentStarted { model });
    }

    /// The model of the active agent.
    fn model(&self) -> String {
        self.state.model().unwrap_or_default().to_owned()
    }

    /// Makes the calls of the last answer, and then asks the model again.
    fn advance(&mut self) {
        while !self.state.status.has_ended()
            && self.state.switch_to(|pending| *pending == Pending::Nothing)
        {
            let is_out_of_time = self.is_out_of_time();
            let Some(frame) = self.state.stack.last_mut() else { return };
            match frame.calls.pop_front() {
                // The next turn is the last one, and says that the calls were not made.
                Some(call) if is_out_of_time => {
                    frame.calls.push_front(call);
                    self.next_turn();
                }
                Some(call) => {
                    self.make_call(call);
                    self.start_branches();
                }
                None if !is_out_of_time && !frame.client_calls.is_empty() => self.ask_client(),
                None => self.next_turn(),
            }
        }
    }

    /// Asks the model again. First checks the limits, which may make this turn the last one or end a branch.
    fn next_turn(&mut self) {
        if self.state.exhausted.is_none() {
            if let Some(spent) = self.spent_limit() {
                if self.stop_branch() {
                    return;
                }
                self.exhaust(spent);
            } else if self.check_agents() {
                return;
            } else {
                self.nudge();
            }
        }
        self.count_invalid_answers();
        self.state.used.turns += 1;
        for frame in &mut self.state.stack {
            frame.used.turns += 1;
        }
        if let Some(frame) = self.state.stack.last_mut() {
            frame.turns += 1;
        }
        self.call_model();
    }

    fn call_model(&mut self) {
        self.call_model_after(Duration::ZERO);
    }

    fn call_model_after(&mut self, pause: Duration) {
        let Some(request) = present_request(self.state, self.tools) else { return };
        let (model, turn) = (self.model(), self.state.used.turns);
        self.emit(EventKind::ModelRequested { model: model.clone(), turn });
        let id = self.state.seq;
        self.state.pending = Pending::Model { id };
        self.effects.push(Effect::CallModel { id, model, request: Box::new(request), pause });
    }

    /// The agent has answered without calls: its caller reads the text, or the run has ended.
    fn agent_answered(&mut self, text: String, is_partial: bool) {
        if self.state.stack.len() > 1 {
            let said = self.state.stack.last().map(|frame| frame.last_text.clone());
            let text = if text.is_empty() { said.unwrap_or_default() } else { text };
            self.return_to_caller(&text, DelegateOutcome::of_answer(&text, is_partial));
            return self.advance();
        }
        let text = if text.is_empty() { self.joined_texts() } else { text };
        self.emit(EventKind::MessageOutput { text });
        let status =
            if is_partial { TeamRunStatus::CompletedPartial } else { TeamRunStatus::Completed };
        self.end(status, None);
    }

    /// Removes the active agent. Its caller reads `text` as the result of its call.
    fn return_to_caller(&mut self, text: &str, outcome: DelegateOutcome) {
        let number = self.number();
        let Some(frame) = self.state.stack.pop() else { return };
        let (from, span_id) = (frame.agent.clone(), frame.span);
        let (call_id, output) = match &frame.role {
            AgentRole::Root => return,
            AgentRole::Handoff { call_id } => {
                let said = text.to_owned();
                self.emit(EventKind::HandoffReturned { from, text: said, span_id, number });
                (call_id.clone(), text.to_owned())
            }
            AgentRole::Delegate { call_id } => {
                let (said, used) = (text.to_owned(), self.state.used_by(&frame));
                self.emit(EventKind::DelegateReturned { from, text: said, span_id, number, used });
                (call_id.clone(), prompt::delegate_result(text, outcome, &frame.artifacts))
            }
        };
        if let Some(caller) = self.state.stack.last_mut() {
            caller.messages.push(prompt::tool_message(&call_id, &output));
            caller.is_tainted |= frame.is_tainted;
            caller.artifacts.extend(frame.artifacts);
        }
        self.end_branch();
    }

    fn end(&mut self, status: TeamRunStatus, error: Option<String>) {
        self.state.pending = Pending::Nothing;
        self.state.status = status;
        self.emit(EventKind::RunEnded { status, error });
        self.effects.push(Effect::Finish);
    }
}

#[cfg(test)]
mod tests;
