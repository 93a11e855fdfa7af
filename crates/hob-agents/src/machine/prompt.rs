//! What models read: instructions, briefs, results and the tools by which agents call each other.
//! Each agent gets messages of its own, because a model imitates the tool dialect of a conversation that it reads.

use std::borrow::Cow;

use hob_core::chat::{ChatRequest, Conversation, Message, Prompt, Role, Tool, ToolChoice};
use hob_core::count_text;
use serde_json::{Value, json};

use super::strict::strict;
use crate::call_name::{delegate_name, handoff_name};
use crate::state::{AgentFrame, AgentRole, RunState};
use crate::team::{Agent, HandoffHistory, HandoffMode, Team};
use crate::tool::{ToolClass, ToolSpec};

/// Longest brief of a handoff in characters.
pub(super) const BRIEF_MAX: usize = 2_000;

/// The first messages of an agent.
pub(super) fn opening(team: &Team, agent: &str, task: &str, before: &[Message]) -> Vec<Message> {
    let instructions = team.agent(agent).map(|agent| agent.instructions.trim()).unwrap_or_default();
    let system = (!instructions.is_empty()).then(|| Message::new(Role::System, instructions));
    let before = before.iter().filter(|message| message.role != Role::System).cloned();
    system.into_iter().chain(before).chain([Message::new(Role::User, task)]).collect()
}

/// The first messages of an agent that takes over from `caller`.
pub(super) fn handoff(
    team: &Team,
    agent: &Agent,
    caller: &AgentFrame,
    (task, brief): (&str, &str),
) -> Vec<Message> {
    let before: Vec<Message> = match agent.history {
        HandoffHistory::Brief => Vec::new(),
        HandoffHistory::Summary => texts_of(caller).collect(),
        HandoffHistory::Full => caller.messages.iter().map(in_words).collect(),
    };
    let task = match brief.trim() {
        "" => task.to_owned(),
        brief => format!("{task}\n\nYour part, as {} puts it: {brief}", caller.agent),
    };
    opening(team, &agent.name, &task, &before)
}

fn texts_of(frame: &AgentFrame) -> impl Iterator<Item = Message> {
    let is_said = |message: &&Message| {
        matches!(message.role, Role::User | Role::Assistant) && !message.text.is_empty()
    };
    frame
        .messages
        .iter()
        .filter(is_said)
        .map(|message| Message::new(message.role, message.text.clone()))
}

/// Calls and results as plain text.
fn in_words(message: &Message) -> Message {
    let calls = message
        .tool_calls
        .iter()
        .map(|call| format!("\n[called {} with {}]", call.name, call.arguments.as_str()));
    let text = format!("{}{}", message.text, calls.collect::<String>());
    match message.role {
        Role::Tool => Message::new(Role::User, format!("[result of a tool]\n{text}")),
        role => Message::new(role, text),
    }
}

/// The brief of a delegate, as its only message from outside.
pub(super) fn delegate(team: &Team, agent: &str, brief: &Value) -> Vec<Message> {
    let field = |name: &str| brief[name].as_str().unwrap_or_default().trim().to_owned();
    let inputs: Vec<String> = brief["inputs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|input| format!("- {input}"))
        .collect();
    let parts = [
        ("Goal", field("goal")),
        ("Context", field("context")),
        ("Constraints", field("constraints")),
        ("Inputs", inputs.join("\n")),
        ("Expected output", field("expected_output")),
        ("If it fails", field("on_failure")),
    ];
    let text: Vec<String> = parts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(title, text)| format!("{title}:\n{text}"))
        .collect();
    let rules =
        "You cannot ask back. Where a fact is missing, state your assumption; do not invent it.";
    opening(team, agent, &format!("{}\n\n{rules}", text.join("\n\n")), &[])
}

/// How the work of a delegate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DelegateOutcome {
    Done,
    /// It was stopped, or its answer was its last one.
    Partial,
    Failed,
}

impl DelegateOutcome {
    /// The outcome of an agent with this answer.
    pub(super) fn of_answer(text: &str, is_partial: bool) -> DelegateOutcome {
        match (is_partial, text.is_empty()) {
            (false, false) => DelegateOutcome::Done,
            (true, false) => DelegateOutcome::Partial,
            (_, true) => DelegateOutcome::Failed,
        }
    }
}

/// What the caller of a delegate reads.
pub(super) fn delegate_result(
    text: &str,
    outcome: DelegateOutcome,
    artifacts: &[String],
) -> String {
    let status = match outcome {
        DelegateOutcome::Done => "done",
        DelegateOutcome::Partial => "partial",
        DelegateOutcome::Failed => "failed",
    };
    json!({ "status": status, "summary": text, "artifacts": artifacts }).to_string()
}

pub(super) fn tool_message(call_id: &str, text: &str) -> Message {
    let mut message = Message::new(Role::Tool, text);
    message.tool_call_id = Some(call_id.to_owned());
    message
}

pub(super) fn last_answer(limit: &str) -> Message {
    let text = format!(
        "The limit of {limit} is reached. Answer now from what you have, and say what is missing."
    );
    Message::new(Role::User, text)
}

pub(super) fn nudge(turns_left: u32) -> Message {
    Message::new(
        Role::User,
        format!("Left for the whole task: {}. Come to an end.", count_text(turns_left, "turn")),
    )
}

/// Says that a call of the answer cannot be read.
pub(super) fn unread_call(reason: &str) -> Message {
    let text = format!("Error: your call cannot be read, and was not made: {reason}");
    Message::new(Role::User, text)
}

/// Asks for the call that the answer only described, or left out.
pub(super) fn call_needed() -> Message {
    let text = "You wrote about a call, or answered without one. Nothing was called. \
                Call the tool now, with its arguments, and do not describe it.";
    Message::new(Role::User, text)
}

pub(super) fn empty_answer() -> Message {
    Message::new(Role::User, "Your answer was empty. Answer the task, or call a tool.")
}

/// The tools of an agent: those of its `tools` that exist, its handoffs and delegates, and for the entry agent those of the
/// client that have other names. Tools that are switched off for the agent are left out.
pub(super) fn specs<'t>(
    state: &RunState,
    frame: &AgentFrame,
    tools: &'t [ToolSpec],
) -> Vec<Cow<'t, ToolSpec>> {
    let team = &state.team;
    let Some(agent) = team.agent(&frame.agent) else { return Vec::new() };
    let own = tools.iter().filter(|tool| agent.has_tool(&tool.name));
    let handoffs = agent
        .handoffs
        .iter()
        .filter_map(|name| team.agent(name))
        .map(|to| handoff_spec(to, agent.handoff));
    let delegates = agent.delegates.iter().filter_map(|name| team.agent(name)).map(delegate_spec);
    let made = handoffs.chain(delegates).map(Cow::Owned);
    let mut specs: Vec<Cow<'t, ToolSpec>> = own.map(Cow::Borrowed).chain(made).collect();
    if frame.role == AgentRole::Root && frame.agent == team.entry {
        let is_new = |tool: &&Tool| specs.iter().all(|spec| spec.name != tool.name);
        let more: Vec<ToolSpec> =
            state.client_tools.iter().filter(is_new).map(client_spec).collect();
        specs.extend(more.into_iter().map(Cow::Owned));
    }
    specs.retain(|spec| !frame.is_off(&spec.name));
    specs
}

fn client_spec(tool: &Tool) -> ToolSpec {
    let schema = tool.parameters.as_ref().and_then(|text| serde_json::from_str(text.as_str()).ok());
    let schema = schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    let description = tool.description.clone().unwrap_or_default();
    let spec = ToolSpec::new(tool.name.clone(), description, schema, ToolClass::System);
    ToolSpec { is_from_client: true, ..spec }
}

fn handoff_spec(agent: &Agent, mode: HandoffMode) -> ToolSpec {
    let end = match mode {
        HandoffMode::Return => "It returns with an answer.",
        HandoffMode::Tail => "It answers in your place, and your work ends.",
    };
    let description = format!(
        "Handoff to the {} agent to handle the request. {} {end}",
        agent.name, agent.description
    );
    let brief = json!({
        "type": "string", "maxLength": BRIEF_MAX,
        "description": "What the agent shall do, and what it must know for it",
    });
    let schema = json!({
        "type": "object", "properties": { "brief": brief }, "additionalProperties": false,
    });
    ToolSpec::new(handoff_name(&agent.name), description, schema, ToolClass::Read)
}

fn delegate_spec(agent: &Agent) -> ToolSpec {
    let description = format!(
        "Give the {} agent a task. {} It sees only these arguments, and cannot ask back.",
        agent.name, agent.description
    );
    let text = |description: &str| json!({ "type": "string", "maxLength": 4_000, "description": description });
    let needed = |description: &str| json!({ "type": "string", "minLength": 1, "maxLength": 4_000, "description": description });
    let schema = json!({
        "type": "object",
        "properties": {
            "goal": needed("What shall be true at the end"),
            "context": text("What the agent must know"),
            "constraints": text("What it must not do"),
            "inputs": { "type": "array", "maxItems": 16, "items": { "type": "string", "maxLength": 1_000 }, "description": "Files and addresses to use" },
            "expected_output": needed("The form of the result"),
            "on_failure": text("What to do if the goal cannot be reached"),
        },
        "required": ["goal", "context", "constraints", "inputs", "expected_output", "on_failure"],
        "additionalProperties": false,
    });
    ToolSpec::new(delegate_name(&agent.name), description, schema, ToolClass::Read)
}

/// The request of an agent. Models of other machines get tools in strict form where that is possible; hob's own engine enforces
/// the tool's schema with all its limits.
pub(super) fn request(
    frame: &AgentFrame,
    tools: &[Cow<'_, ToolSpec>],
    is_remote: bool,
    choice: ToolChoice,
) -> ChatRequest {
    let tools = tools.iter().map(|spec| {
        let strict = is_remote.then(|| spec.forms.strict(|| strict(&spec.schema))).flatten();
        Tool {
            name: spec.name.clone(),
            description: Some(spec.description.clone()),
            strict: strict.is_some(),
            parameters: strict.or_else(|| Some(spec.forms.plain(&spec.schema))),
        }
    });
    let conversation = Conversation {
        messages: frame.messages.to_vec(),
        tools: tools.collect(),
        tool_choice: choice,
        parallel_tool_calls: true,
        ..Conversation::default()
    };
    ChatRequest { prompt: Prompt::Chat(conversation), ..ChatRequest::default() }
}
