//! A team file: agents with their models, tools and limits, in TOML. Unknown fields are errors.
//! Reading it needs neither models nor tools; what they must provide is checked by the program that has them.

mod check;
mod mcp;
mod rule;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call_name::{delegate_name, handoff_name};
pub use mcp::McpServer;
pub(crate) use rule::decide;
pub use rule::{CommandRule, RuleDecision};

/// Tokens of the last answer, which follows when a limit has ended the work. A limit of tokens ends the work so much earlier.
pub const LAST_ANSWER_TOKENS: u32 = 1024;

/// A team of agents, as its file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Team {
    /// 1 to 63 characters of `a-z0-9_-`. Default: the file's name without its extension.
    #[serde(default)]
    pub id: String,
    /// For people who choose a team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The agent that gets the task.
    pub entry: String,
    /// A model or alias that goes on for an agent when the agent's own model fails or hangs twice, answers nothing twice, writes
    /// prose twice where a call is needed, or makes invalid calls three times in sequence. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Containers in which `container_run` may run commands and `write_file` may replace files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
    /// Hosts that `http_probe` may reach besides this machine and the upstreams of `hob.toml`, such as `db.lan` or
    /// `db.lan:8080`. Without a port, every port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probe_allow: Vec<String>,
    /// Limits of a whole run. When one is reached, the run ends with an answer that says what is missing.
    #[serde(default)]
    pub budget: Budget,
    #[serde(default)]
    pub policy: Policy,
    #[serde(rename = "agent")]
    pub agents: Vec<Agent>,
    /// Decisions about commands, before the approval table.
    #[serde(default, rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<CommandRule>,
    /// Servers of the Model Context Protocol by their names: 1 to 32 characters of `a-z0-9-`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpServer>,
}

/// Limits of a run. Sub-agents count against them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Calls of models. A fallback to another target is the same turn.
    pub turns: u32,
    /// Tokens of all prompts and answers, above 1,024: so many are kept for the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars, by the prices in `hob.toml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Seconds of work. Then a turn in progress is stopped, and the last answer has two minutes more.
    pub time_s: u64,
    /// With this many turns left, hob tells the model.
    pub nudge_at: u32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { turns: 40, tokens: None, cost: None, time_s: 15 * 60, nudge_at: 3 }
    }
}

/// Limits of work: of an agent each time it works, or of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkLimits {
    pub turns: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<u64>,
}

impl Budget {
    /// The limits of the whole run.
    pub(crate) fn limits(&self) -> WorkLimits {
        let Budget { turns, tokens, cost, time_s, .. } = *self;
        WorkLimits { turns, tokens, cost, time_s: Some(time_s) }
    }
}

/// What the team's agents may do without asking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    pub approval: Approval,
    /// What commands of `shell` may change.
    pub sandbox: SandboxMode,
    /// Whether commands in the sandbox have the network of this machine.
    pub network: SandboxNetwork,
    /// An image of podman or docker, such as `docker.io/library/debian:bookworm-slim`. Each command of `shell` then runs in a
    /// new container of it. Default: commands run in bubblewrap or Landlock, with the programs of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What a run does when the client of its chat leaves.
    pub on_disconnect: OnDisconnect,
    /// What the tools of a request mean for the team, when a client chats with it.
    pub client_tools: ClientTools,
}

/// What the tools of a request mean for the team, when a client chats with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientTools {
    /// Nothing: agents have the tools of their file.
    #[default]
    Ignore,
    /// The entry agent may call them, and the client makes the calls.
    Passthrough,
}

/// What commands of `shell` may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Nothing but a `/tmp` of their own.
    ReadOnly,
    /// Also the files of the workspace.
    #[default]
    WorkspaceWrite,
    /// There is no sandbox, so they count as tools that act outside the workspace. hob needs `--allow-danger`.
    DangerFullAccess,
}

/// Whether commands in the sandbox have the network of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxNetwork {
    /// They reach nothing.
    #[default]
    Off,
    /// They reach the Internet, the local network, and the servers of this machine.
    On,
}

/// What a run does when the client of its chat leaves. A button to stop looks the same as a lost connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It goes on, and `hob team show` or the page has its answer.
    Detach,
}

/// When a person is asked before a tool runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// No person is asked. Tools that act outside the workspace are refused.
    Never,
    /// Before commands that no rule allows, and before tools that act outside the workspace.
    #[default]
    OnRequest,
    /// Before every tool that does more than read.
    Untrusted,
    /// Before every tool.
    Always,
}

/// One agent of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// 1 to 63 characters of `a-z0-9_-`.
    pub name: String,
    /// What it is good at. Other agents choose by this text.
    #[serde(default)]
    pub description: String,
    /// A model, or an alias of `hob.toml`.
    pub model: String,
    /// The system message.
    #[serde(default)]
    pub instructions: String,
    /// Agents that may take over the conversation and return with an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<String>,
    /// Agents that work on a brief, in a context of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegates: Vec<String>,
    /// Names of tools. Those of an MCP server are `SERVER__TOOL`, or `SERVER__*` for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The first answers must call a tool or another agent. An answer without a call gets one reminder, then the team's
    /// `fallback` goes on; without one, the text counts as a partial answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must_call: bool,
    /// Calls of the model each time the agent works.
    #[serde(default = "agent_turns")]
    pub turns: u32,
    /// Tokens each time the agent works, above 1,024. Those of the agents that work for it count, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars each time the agent works, with the agents that work for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Seconds each time the agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<u64>,
    /// What the agent sees of the caller's conversation after a handoff.
    #[serde(default)]
    pub history: HandoffHistory,
    /// Whether this agent goes on after its own handoffs.
    #[serde(default)]
    pub handoff: HandoffMode,
}

fn agent_turns() -> u32 {
    10
}

/// What an agent does after it has handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HandoffMode {
    /// It reads the answer of the other agent, and goes on.
    #[default]
    Return,
    /// It has ended. The other agent answers in its place, and no further call of the same answer is made.
    Tail,
}

/// What an agent sees of the conversation of the agent that hands over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HandoffHistory {
    /// The task and the caller's brief.
    #[default]
    Brief,
    /// In addition the texts of the caller's conversation, without calls of tools.
    Summary,
    /// The whole conversation.
    Full,
}

/// Why a team file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct TeamError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub reason: String,
}

impl TeamError {
    fn at(text: &str, span: Option<Range<usize>>, reason: impl Into<String>) -> TeamError {
        let before = &text[..span.map_or(0, |span| span.start.min(text.len()))];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        TeamError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            reason: reason.into(),
        }
    }
}

impl Team {
    /// Reads a team file. `name` is the file's name without its extension.
    ///
    /// # Errors
    /// The text is not TOML, has unknown or missing fields, or names agents that do not exist.
    pub fn parse(text: &str, name: &str) -> Result<Team, TeamError> {
        let mut team: Team = toml::from_str(text).map_err(|error| {
            TeamError::at(text, error.span(), error.message().replace('\n', "; "))
        })?;
        if team.id.is_empty() {
            name.clone_into(&mut team.id);
        }
        check::check(&team, text)?;
        Ok(team)
    }

    /// Line and column, from 1, of the first place in a team file that has this word.
    pub fn place_of(text: &str, word: &str) -> Option<(usize, usize)> {
        let position = check::position(text, word)?;
        let TeamError { line, column, .. } = TeamError::at(text, Some(position), "");
        Some((line, column))
    }

    /// The agent of this name.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The models and aliases that the team uses, in order, each once.
    pub fn models(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let models = self.agents.iter().map(|agent| agent.model.as_str());
        models.chain(self.fallback.as_deref()).filter(|model| seen.insert(*model)).collect()
    }
}

impl Agent {
    /// The agent's own limits.
    pub fn limits(&self) -> WorkLimits {
        let Agent { turns, tokens, cost, time_s, .. } = *self;
        WorkLimits { turns, tokens, cost, time_s }
    }

    /// The agent that this call of a tool hands over to.
    pub fn handoff_of(&self, tool: &str) -> Option<&str> {
        self.handoffs.iter().map(String::as_str).find(|name| handoff_name(name) == tool)
    }

    /// Whether the agent's file names this tool.
    pub fn has_tool(&self, tool: &str) -> bool {
        self.tools.iter().any(|named| match named.strip_suffix('*') {
            Some(prefix) => tool.starts_with(prefix),
            None => named == tool,
        })
    }

    /// The MCP servers that the agent's tools name, each once.
    pub fn mcp_servers(&self) -> BTreeSet<&str> {
        self.tools.iter().filter_map(|tool| Some(tool.split_once("__")?.0)).collect()
    }

    /// The agent that this call of a tool delegates to.
    pub fn delegate_of(&self, tool: &str) -> Option<&str> {
        self.delegates.iter().map(String::as_str).find(|name| delegate_name(name) == tool)
    }
}

#[cfg(test)]
mod tests;
