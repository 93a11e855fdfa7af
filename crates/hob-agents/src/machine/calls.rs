//! The calls of an answer: handoffs, delegates and tools. If anything is wrong with a call, the model reads the reason; a
//! call never ends a run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hob_core::chat::ToolCall;
use serde_json::Value;

use super::{Effect, Step, prompt};
use crate::arguments::{self, CheckedArguments};
use crate::event::EventKind;
use crate::policy::{Permission, permission};
use crate::state::{AgentFrame, AgentRole, FrameMessages, Pending};
use crate::team::{Agent, HandoffMode};
use crate::tool::{ToolOutput, ToolSpec};

/// Maximum number of agents that wait for an agent that they have called.
const DEPTH_MAX: usize = 5;
/// From this number of equal calls on, the result says how often the call was made.
const REPEATS_NOTED: u32 = 3;
/// After this number of equal calls, the tool is switched off for the agent.
const REPEATS_MAX: u32 = 5;
/// Maximum number of similar names in the message about an unknown tool. Without a similar name, it lists all tools.
const NAMES_SHOWN_MAX: usize = 5;

impl AgentFrame {
    /// Whether the agent has made one call of this tool so often that the tool is switched off for it.
    pub(super) fn is_off(&self, tool: &str) -> bool {
        let is_of_tool = |call: &str| call.split(' ').next() == Some(tool);
        self.repeats.iter().any(|(call, &count)| count >= REPEATS_MAX && is_of_tool(call))
    }
}

impl Step<'_> {
    pub(super) fn make_call(&mut self, call: ToolCall) {
        let Some(frame) = self.state.stack.last() else { return };
        if frame.is_off(&call.name) {
            let reason = format!(
                "'{}' is switched off, because it was called {REPEATS_MAX} times with the same arguments; do \
                 something else",
                call.name
            );
            return self.reject(&call, &reason);
        }
        let specs = prompt::specs(self.state, frame, self.tools);
        let Some(spec) = specs.iter().find(|spec| spec.name == call.name).cloned() else {
            return self.reject_invalid(&call, &unknown(&call.name, &specs));
        };
        let checked = match arguments::check(&spec, call.arguments.as_str()) {
            Ok(checked) => checked,
            Err(reason) => return self.reject_invalid(&call, &reason),
        };
        let CheckedArguments { value, repairs } = checked;
        if !repairs.is_empty() {
            let (call_id, name) = (call.id.clone(), call.name.clone());
            self.emit(EventKind::ToolRepaired { call_id, name, repairs });
        }
        let call =
            ToolCall { arguments: hob_core::chat::JsonText::parsed(value.to_string()), ..call };
        self.count_repeat(&call);
        let Some(frame) = self.state.stack.last() else { return };
        let agent = self.state.team.agent(&frame.agent);
        let handoff = agent.and_then(|agent| agent.handoff_of(&call.name)).map(str::to_owned);
        let delegate = agent.and_then(|agent| agent.delegate_of(&call.name)).map(str::to_owned);
        if let Some(name) = handoff {
            self.hand_over(call, &name, &value);
        } else if let Some(name) = delegate {
            self.delegate(call, &name, &value);
        } else if spec.is_from_client {
            if let Some(frame) = self.state.stack.last_mut() {
                frame.client_calls.push(call);
            }
        } else {
            self.ask_or_run(call, &spec, &value);
        }
    }

    /// Lets the client make the calls of its own tools. The run waits for their results.
    pub(super) fn ask_client(&mut self) {
        let Some(frame) = self.state.stack.last_mut() else { return };
        let calls = std::mem::take(&mut frame.client_calls);
        for call in &calls {
            let (call_id, name) = (call.id.clone(), call.name.clone());
            self.emit(EventKind::ToolCalled { call_id, name, arguments: arguments_of(call) });
        }
        let id = self.state.seq;
        self.state.pending = Pending::Client { id, calls };
        self.effects.push(Effect::AskClient { id });
    }

    pub(super) fn client_answered(&mut self, id: u64, mut outputs: BTreeMap<usize, String>) {
        let waits_for_it =
            |pending: &Pending| matches!(pending, Pending::Client { id: own, .. } if *own == id);
        if !self.state.switch_to(waits_for_it) {
            return;
        }
        let Pending::Client { calls, .. } = std::mem::take(&mut self.state.pending) else { return };
        for (number, call) in calls.iter().enumerate() {
            let missing = || ToolOutput::error("the client has sent no result");
            let output = outputs.remove(&number).map_or_else(missing, ToolOutput::ok);
            self.answer_tool(call, output);
        }
        if let Some(frame) = self.state.stack.last_mut() {
            frame.is_tainted = true;
        }
        self.advance();
    }

    /// Rejects a call with a wrong name or wrong arguments. After several answers in a row with such calls, the fallback
    /// model is asked.
    fn reject_invalid(&mut self, call: &ToolCall, reason: &str) {
        self.reject(call, reason);
        if let Some(frame) = self.state.stack.last_mut() {
            frame.has_invalid_call = true;
        }
    }

    /// Rejects a call. The model reads why.
    fn reject(&mut self, call: &ToolCall, reason: &str) {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        self.emit(EventKind::ToolInvalid { call_id, name, reason: reason.to_owned() });
        self.answer_call(&call.id, &format!("Error: {reason}"));
    }

    fn answer_call(&mut self, call_id: &str, text: &str) {
        if let Some(frame) = self.state.stack.last_mut() {
            frame.messages.push(prompt::tool_message(call_id, text));
        }
    }

    fn count_repeat(&mut self, call: &ToolCall) {
        let Some(frame) = self.state.stack.last_mut() else { return };
        let key = format!("{} {}", call.name, call.arguments.as_str());
        *frame.repeats.entry(key).or_default() += 1;
    }

    fn hand_over(&mut self, call: ToolCall, name: &str, arguments: &Value) {
        if let Some(reason) = self.refusal_to_start(name) {
            return self.reject(&call, &reason);
        }
        let (Some(agent), Some(caller)) = (self.state.team.agent(name), self.state.stack.last())
        else {
            return;
        };
        let mode = self.state.team.agent(&caller.agent).map(|agent| agent.handoff);
        let is_tail = mode == Some(HandoffMode::Tail);
        // The brief may repeat what the caller has read.
        let is_tainted = caller.is_tainted;
        let brief = arguments["brief"].as_str().unwrap_or_default().to_owned();
        let messages = prompt::handoff(&self.state.team, agent, caller, (&self.state.task, &brief));
        let messages = FrameMessages::from(messages);
        self.ignore_other_handoffs();
        self.emit(EventKind::HandoffOccurred { to: name.to_owned(), brief });
        if !is_tail {
            let role = AgentRole::Handoff { call_id: call.id };
            return self.push(AgentFrame { messages, is_tainted, ..AgentFrame::new(name, role) });
        }
        let Some(caller) = self.state.stack.pop() else { return };
        let AgentFrame { role, artifacts, .. } = caller;
        let next = AgentFrame { messages, artifacts, is_tainted, ..AgentFrame::new(name, role) };
        self.push(next);
    }

    fn delegate(&mut self, call: ToolCall, name: &str, brief: &Value) {
        if let Some(reason) = self.refusal_to_start(name) {
            return self.reject(&call, &reason);
        }
        let is_blank =
            |field: &str| brief[field].as_str().is_none_or(|text| text.trim().is_empty());
        if let Some(blank) = ["goal", "expected_output"].into_iter().find(|field| is_blank(field)) {
            return self.reject_invalid(&call, &format!("'{blank}' must not be blank"));
        }
        let messages = FrameMessages::from(prompt::delegate(&self.state.team, name, brief));
        let budget = self.state.team.agent(name).map(Agent::limits);
        let (to, brief) = (name.to_owned(), brief.clone());
        self.emit(EventKind::DelegateOccurred { to, brief, budget });
        let role = AgentRole::Delegate { call_id: call.id };
        let is_tainted = self.state.stack.last().is_some_and(|caller| caller.is_tainted);
        self.push(AgentFrame { messages, is_tainted, ..AgentFrame::new(name, role) });
    }

    fn push(&mut self, mut frame: AgentFrame) {
        let others = self.state.branches.iter().flat_map(|branch| &branch.frames);
        let same = others.filter(|other| other.agent == frame.agent);
        let taken: Vec<u32> = same.map(|other| other.number).collect();
        frame.begun_s = self.state.used.time_s;
        frame.number = (1..).find(|number| !taken.contains(number)).unwrap_or(1);
        self.state.stack.push(frame);
        self.emit_agent();
    }

    /// Why the active agent cannot call the agent of this name. `None`: it can.
    fn refusal_to_start(&self, name: &str) -> Option<String> {
        if self.state.stack.iter().any(|frame| frame.agent == name) {
            return Some(format!(
                "'{name}' already works on this task, and waits for you; answer it instead"
            ));
        }
        let is_deep = self.state.stack.len() > DEPTH_MAX;
        is_deep.then(|| format!("{DEPTH_MAX} agents already wait for each other; do it yourself"))
    }

    /// Removes all handoffs of an answer after the first, with a note for the model.
    fn ignore_other_handoffs(&mut self) {
        let Some(frame) = self.state.stack.last_mut() else { return };
        let Some(agent) = self.state.team.agent(&frame.agent) else { return };
        let is_handoff = |call: &ToolCall| agent.handoff_of(&call.name).is_some();
        let (ignored, kept) = std::mem::take(&mut frame.calls).into_iter().partition(is_handoff);
        frame.calls = kept;
        let ignored: std::collections::VecDeque<ToolCall> = ignored;
        let note = "Ignored: only the first handoff of an answer is made.";
        frame.messages.extend(ignored.iter().map(|call| prompt::tool_message(&call.id, note)));
    }

    fn ask_or_run(&mut self, call: ToolCall, spec: &ToolSpec, arguments: &Value) {
        let is_tainted = self.state.stack.last().is_some_and(|frame| frame.is_tainted);
        match permission(&self.state.team, spec, arguments, is_tainted) {
            Permission::Run => self.run_tool(call),
            Permission::Refuse(reason) => self.reject(&call, &reason),
            Permission::Ask(reason) if self.state.approval().is_some() => {
                self.state.pending = Pending::Queued { call, reason };
            }
            Permission::Ask(reason) => self.ask(call, reason),
        }
    }

    fn ask(&mut self, call: ToolCall, reason: String) {
        let approval = format!("{}-{}", self.state.run_id, self.state.seq + 1);
        self.emit(EventKind::ApprovalRequested {
            approval: approval.clone(),
            name: call.name.clone(),
            arguments: arguments_of(&call),
            reason: reason.clone(),
        });
        self.emit(EventKind::RunWaiting { approval: approval.clone() });
        self.state.pending = Pending::Approval {
            approval: approval.clone(),
            call: call.clone(),
            reason: reason.clone(),
        };
        self.effects.push(Effect::Ask { approval, call, reason });
    }

    fn run_tool(&mut self, call: ToolCall) {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        self.emit(EventKind::ToolCalled { call_id, name, arguments: arguments_of(&call) });
        let id = self.state.seq;
        self.state.pending = Pending::Tool { id, call: call.clone() };
        self.effects.push(Effect::RunTool { id, call });
    }

    /// Continues after the process ended while a tool ran. The tool runs again only if it may be repeated.
    pub(super) fn resume_tool(&mut self, id: u64, call: ToolCall) {
        if self.tools.iter().any(|tool| tool.name == call.name && tool.may_repeat) {
            return self.effects.push(Effect::RunTool { id, call });
        }
        let text =
            "The call was interrupted, and its outcome is unknown. Check before you call again.";
        self.answer_tool(&call, ToolOutput::error(text));
    }

    pub(super) fn tool_ended(&mut self, id: u64, output: ToolOutput) {
        let waits_for_it =
            |pending: &Pending| matches!(pending, Pending::Tool { id: own, .. } if *own == id);
        if self.state.switch_to(waits_for_it)
            && let Pending::Tool { call, .. } = self.state.pending.clone()
        {
            self.answer_tool(&call, output);
            self.advance();
        }
    }

    fn answer_tool(&mut self, call: &ToolCall, output: ToolOutput) {
        self.state.pending = Pending::Nothing;
        let (call_id, output) = (call.id.clone(), output.bounded());
        self.emit(EventKind::ToolOutput { call_id, output: output.clone() });
        let is_foreign = self.tools.iter().any(|tool| tool.name == call.name && tool.is_foreign);
        let Some(frame) = self.state.stack.last_mut() else { return };
        frame.is_tainted |= is_foreign;
        frame.artifacts.extend(output.artifacts.iter().cloned());
        let key = format!("{} {}", call.name, call.arguments.as_str());
        let repeats = frame.repeats.get(&key).copied().unwrap_or_default();
        let note = if repeats >= REPEATS_NOTED {
            format!("\n[you have made this call {repeats} times with the same arguments]")
        } else {
            String::new()
        };
        self.answer_call(&call.id, &format!("{}{note}", output.text));
    }

    pub(super) fn resolved(&mut self, approval: &str, is_approved: bool) {
        let waits_for_it = |pending: &Pending| matches!(pending, Pending::Approval { approval: asked, .. } if asked == approval);
        if !self.state.switch_to(waits_for_it) {
            return;
        }
        let Pending::Approval { call, .. } = std::mem::take(&mut self.state.pending) else {
            return;
        };
        self.emit(EventKind::ApprovalResolved { approval: approval.to_owned(), is_approved });
        if is_approved {
            self.run_tool(call);
        } else {
            self.answer_call(&call.id, "The user denied this call. Do not try it again.");
        }
        if self.state.switch_to(|pending| matches!(pending, Pending::Queued { .. }))
            && let Pending::Queued { call, reason } = std::mem::take(&mut self.state.pending)
        {
            self.ask(call, reason);
        }
        self.advance();
    }
}

fn arguments_of(call: &ToolCall) -> Value {
    serde_json::from_str(call.arguments.as_str()).unwrap_or_default()
}

fn unknown(name: &str, specs: &[Cow<'_, ToolSpec>]) -> String {
    let known = specs.iter().map(|spec| spec.name.as_str());
    let near = hob_core::nearest(name, known.clone(), NAMES_SHOWN_MAX);
    let shown: Vec<&str> =
        if near.is_empty() { known.collect() } else { near.iter().map(String::as_str).collect() };
    match shown.is_empty() {
        true => format!("there is no tool '{name}', and you have no tools"),
        false => format!("there is no tool '{name}'; there are {}", shown.join(", ")),
    }
}
