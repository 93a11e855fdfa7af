//! The trace of a run: what happened, in order.
//! The same events go to disk, to clients and to the terminal, so all of them show the same run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::state::{TeamRunStatus, Used};
use crate::team::WorkLimits;
use crate::tool::ToolOutput;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// Version of this format.
    pub v: u32,
    /// From 1, without gaps.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub ts: u64,
    pub run_id: String,
    /// The agent that works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// 0 for the entry agent, one more for each agent below.
    pub depth: usize,
    /// The work of one agent from its start to its return: the `seq` of its `agent.started`. 0 before the first one.
    #[serde(default)]
    pub span_id: u64,
    /// The span of the agent that called this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<u64>,
    /// While several delegates work at the same time: the number of this one among those with its name, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    #[serde(flatten)]
    pub what: EventKind,
}

/// What happened. `type` is the name in the trace, `data` the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum EventKind {
    #[serde(rename = "run.started")]
    RunStarted { team: String, task: String },
    #[serde(rename = "run.resumed")]
    RunResumed {},
    #[serde(rename = "run.waiting")]
    RunWaiting { approval: String },
    #[serde(rename = "run.ended")]
    RunEnded {
        status: TeamRunStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    #[serde(rename = "agent.started")]
    AgentStarted { model: String },
    #[serde(rename = "model.requested")]
    ModelRequested { model: String, turn: u32 },
    /// The answer began.
    #[serde(rename = "model.first_token")]
    ModelFirstToken { target: String, ms: u64 },
    /// The model is not in memory, and its answer waits for that.
    #[serde(rename = "model.loading")]
    ModelLoading { model: String },
    /// Another model goes on, because the first one failed or could not do the task.
    #[serde(rename = "model.fallback")]
    ModelFallback { from: String, to: String, reason: String },
    /// The model cannot be asked, answered with an error, or broke off.
    #[serde(rename = "model.failed")]
    ModelFailed { error: String },
    /// The model has sent nothing for too long, and was given up.
    #[serde(rename = "model.stalled")]
    ModelStalled { error: String },
    /// The run cannot use the answer, and the model reads why.
    #[serde(rename = "model.reminded")]
    ModelReminded { reason: String },
    #[serde(rename = "model.answered")]
    ModelAnswered {
        target: String,
        prompt_tokens: u64,
        answer_tokens: u64,
        /// In US dollars, for a model that has a price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        ms: u64,
    },
    /// The answer was stopped before its end. hob counted the tokens until then, and no `model.answered` has them.
    #[serde(rename = "model.stopped")]
    ModelStopped {
        target: String,
        prompt_tokens: u64,
        answer_tokens: u64,
        /// In US dollars, for a model that has a price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// A piece of an answer. Not stored.
    #[serde(rename = "model.delta")]
    ModelDelta { kind: DeltaKind, text: String },
    #[serde(rename = "handoff.occurred")]
    HandoffOccurred { to: String, brief: String },
    #[serde(rename = "handoff.returned")]
    HandoffReturned {
        from: String,
        text: String,
        /// The span that has ended.
        #[serde(default)]
        span_id: u64,
        /// The number of the agent that returns, as in [`RunEvent::number`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    #[serde(rename = "delegate.occurred")]
    DelegateOccurred {
        to: String,
        brief: Value,
        /// The limits of this work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<WorkLimits>,
    },
    #[serde(rename = "delegate.returned")]
    DelegateReturned {
        from: String,
        text: String,
        /// The span that has ended.
        #[serde(default)]
        span_id: u64,
        /// The number of the agent that returns, as in [`RunEvent::number`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
        /// What it used, together with the agents that worked for it.
        #[serde(default)]
        used: Used,
    },
    #[serde(rename = "tool.called")]
    ToolCalled { call_id: String, name: String, arguments: Value },
    #[serde(rename = "tool.output")]
    ToolOutput { call_id: String, output: ToolOutput },
    /// Tools of the agent could not be opened, such as those of an MCP server.
    #[serde(rename = "tools.missing")]
    ToolsMissing { note: String },
    /// The call was not made; the model reads the reason.
    #[serde(rename = "tool.invalid")]
    ToolInvalid { call_id: String, name: String, reason: String },
    #[serde(rename = "tool.repaired")]
    ToolRepaired { call_id: String, name: String, repairs: Vec<String> },
    #[serde(rename = "approval.requested")]
    ApprovalRequested { approval: String, name: String, arguments: Value, reason: String },
    #[serde(rename = "approval.resolved")]
    ApprovalResolved { approval: String, is_approved: bool },
    #[serde(rename = "budget.nudge")]
    BudgetNudge { turns_left: u32 },
    #[serde(rename = "budget.exhausted")]
    BudgetExhausted { limit: String, used: String },
    /// The answer of the run.
    #[serde(rename = "message.output")]
    MessageOutput { text: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeltaKind {
    Text,
    Reasoning,
}

#[cfg(test)]
mod tests {
    const SOURCE: &str = include_str!("event.rs");
    const GUIDE: &str = include_str!("../../../docs/guides/teams.md");

    /// The kinds by their names in the trace, with their fields, as this file has them.
    fn kinds() -> Vec<(&'static str, Vec<String>)> {
        let (_, kinds) = SOURCE.split_once("pub enum EventKind {").expect("the kinds");
        let (kinds, _) = kinds.split_once("\n}\n").expect("their end");
        let kind = |text: &'static str| {
            let (name, text) = text.split_once('"').expect("a name");
            let (_, fields) = text.split_once('{').expect("fields");
            let (fields, _) = fields.split_once('}').expect("their end");
            let is_code = |line: &&str| !line.starts_with("//") && !line.starts_with("#[");
            let code: Vec<&str> = fields.lines().map(str::trim).filter(is_code).collect();
            let code = code.join(" ");
            let fields = code.split(',').filter_map(|field| field.split_once(':'));
            (name, fields.map(|(name, _)| name.trim().to_owned()).collect())
        };
        kinds.split("#[serde(rename = \"").skip(1).map(kind).collect()
    }

    #[test]
    fn the_guide_has_every_kind_with_its_fields() {
        let kinds = kinds();
        let (_, section) = GUIDE.split_once("\n## Events\n").expect("the section");
        let section = section.split("\n## ").next().unwrap_or_default();
        for (name, fields) in &kinds {
            let row = section.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let data = row.and_then(|row| row.split('|').nth(2));
            let named = data.unwrap_or_else(|| panic!("docs/guides/teams.md has no {name}"));
            let expected: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
            assert_eq!(named.trim(), expected.join(", "), "{name}");
        }
        let rows = section.lines().filter(|line| line.starts_with("| `") && line.contains("` | "));
        assert_eq!(rows.count(), kinds.len() + 1, "a kind that does not exist, below the head");
        assert!(kinds.iter().any(|(name, fields)| *name == "model.answered" && fields.len() == 5));
    }
}
