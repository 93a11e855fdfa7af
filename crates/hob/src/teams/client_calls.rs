//! Tools of a client in a chat with a team that passes them through: the client gets the entry agent's calls as its own.
//! The id of a call names the run, its step and the number of the call, so the results find the run and count once.

use std::collections::BTreeMap;

use hob_agents::{ClientTools, Pending, RunState, Team, schema_problem};
use hob_core::chat::{ChatEvent, Conversation, Message, Role, Tool, ToolChoice};
use hob_core::{ModelError, Trace};

use super::ask_user::ASK_USER;

const ID_PREFIX: &str = "team_";

/// What a client's tools gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientOutputs {
    pub(super) run_id: String,
    /// The step at which the run asked.
    pub(super) id: u64,
    /// By the numbers of the calls.
    pub(super) outputs: BTreeMap<usize, String>,
}

impl ClientOutputs {
    /// The results of one step of a run, if the conversation ends with them.
    pub(super) fn of(messages: &[Message]) -> Option<ClientOutputs> {
        let results = messages.iter().rev().take_while(|message| message.role == Role::Tool);
        let mut found: Option<ClientOutputs> = None;
        for message in results {
            let step = message.tool_call_id.as_deref()?.strip_prefix(ID_PREFIX)?;
            let (step, number) = step.rsplit_once('_')?;
            let (run_id, id) = step.rsplit_once('_')?;
            let (id, number) = (id.parse().ok()?, number.parse().ok()?);
            let found = found.get_or_insert_with(|| {
                let (run_id, outputs) = (run_id.to_owned(), BTreeMap::new());
                ClientOutputs { run_id, id, outputs }
            });
            if (found.run_id.as_str(), found.id) == (run_id, id) {
                found.outputs.insert(number, message.text.clone());
            }
        }
        found
    }

    /// Whether the run of this key still waits for these results.
    pub(super) fn is_for(&self, run: &RunState, key: Option<&str>) -> bool {
        let is_its = matches!(run.pending, Pending::Client { id, .. } if id == self.id);
        is_its && run.owner.as_deref() == key
    }
}

/// The tools of a request that the entry agent may call. Tools without effect are noted in the trace.
///
/// # Errors
/// The arguments of a tool cannot be checked.
pub(super) fn passed(
    team: &Team,
    conversation: &Conversation,
    trace: &Trace,
) -> Result<Vec<Tool>, ModelError> {
    let may_call = conversation.tool_choice != ToolChoice::None;
    let tools = conversation.tools.iter().filter(|tool| may_call && tool.name != ASK_USER);
    let tools: Vec<Tool> = tools.cloned().collect();
    if team.policy.client_tools == ClientTools::Ignore {
        if !tools.is_empty() {
            trace.note(|data| data.dropped.push("tools".to_owned()));
        }
        return Ok(Vec::new());
    }
    match tools.iter().find_map(problem) {
        Some(reason) => Err(ModelError::InvalidField { field: "tools", reason }),
        None => Ok(tools),
    }
}

fn problem(tool: &Tool) -> Option<String> {
    let schema = serde_json::from_str(tool.parameters.as_ref()?.as_str()).unwrap_or_default();
    Some(format!("has '{}', and {}", tool.name, schema_problem(&schema)?))
}

/// The calls for the client.
pub(super) fn calls(run: &RunState) -> Vec<ChatEvent> {
    let Pending::Client { id, calls } = &run.pending else { return Vec::new() };
    let events = (0..).zip(calls).flat_map(|(index, call)| {
        let (name, piece) = (call.name.clone(), call.arguments.as_str().to_owned());
        let id = format!("{ID_PREFIX}{}_{id}_{index}", run.run_id);
        [ChatEvent::ToolCall { index, id, name }, ChatEvent::ToolArguments { index, piece }]
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_find_their_run() {
        let result = |id: &str, text: &str| Message {
            tool_call_id: Some(id.to_owned()),
            ..Message::new(Role::Tool, text)
        };
        let asked = [Message::new(Role::User, "Weather?"), Message::new(Role::Assistant, "")];
        let results = [result("team_0192-ab_17_1", "Sun."), result("team_0192-ab_17_0", "Rain.")];
        let messages = [&asked[..], &results[..]].concat();
        let outputs = BTreeMap::from([(0, "Rain.".to_owned()), (1, "Sun.".to_owned())]);
        let expected = ClientOutputs { run_id: "0192-ab".to_owned(), id: 17, outputs };
        assert_eq!(ClientOutputs::of(&messages), Some(expected));
        let next = [Message::new(Role::User, "And now?")];
        assert_eq!(ClientOutputs::of(&[&messages[..], &next[..]].concat()), None);
        for other in ["call_1", "approval_0192-ab_17", "team_0192-ab_17", "team_0192-ab_x_0"] {
            assert_eq!(ClientOutputs::of(&[result(other, "")]), None, "{other}");
        }
    }
}
