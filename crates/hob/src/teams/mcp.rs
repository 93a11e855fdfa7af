//! Tools of MCP servers. A server starts when the first agent that names its tools works, and ends with the run.
//! A server never fails a run: whatever goes wrong, the model reads it as the output of a call.

mod connection;
mod names;
mod output;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use hob_agents::{
    Agent, AgentTool, McpServer, OpenedTools, Redaction, Team, ToolClass, ToolOutput, ToolSource,
    ToolSpec, schema_problem,
};
use hob_engines::chat::constraint::schema_excess;
use rmcp::model::Tool;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::settings::Secret;
use connection::{CallError, Connection};

/// More tools than this confuse small models.
pub(crate) const TOOLS_ADVISED: usize = 20;
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const CALL_LIMIT: Duration = Duration::from_secs(20);
/// A server is started once, and once more after its end.
const STARTS_MAX: u32 = 2;
const NOTES_MAX: usize = 32;
const NOTE_BYTES_MAX: usize = 500;
/// Longest description of a tool in bytes.
const DESCRIPTION_BYTES_MAX: usize = 8 * 1024;

/// The part of hob's environment from which servers get theirs.
#[derive(Clone, Debug)]
pub(super) struct ServerEnvironment {
    pub(super) path: OsString,
    pub(super) variables: Arc<BTreeMap<String, Secret>>,
    /// What the log does not show of what servers print.
    pub(super) redaction: Redaction,
}

/// The MCP servers of a run.
pub(crate) struct McpTools {
    servers: BTreeMap<String, Arc<Server>>,
    opened: Mutex<Opened>,
}

/// What was opened so far.
#[derive(Default)]
struct Opened {
    /// The agents that had their servers started.
    agents: BTreeSet<String>,
    /// The names of the tools of each server that was started, or that could not be.
    names: BTreeMap<String, BTreeSet<String>>,
}

impl McpTools {
    pub(super) fn new(team: &Team, environment: &ServerEnvironment) -> McpTools {
        let server = |(name, settings): (&String, &McpServer)| {
            let failure = "it was stopped while it started".to_owned();
            let server = Server {
                name: name.clone(),
                settings: settings.clone(),
                environment: environment.clone(),
                link: Mutex::new(Link { connection: None, starts: 0, failure }),
            };
            (name.clone(), Arc::new(server))
        };
        let servers = team.mcp.iter().map(server).collect();
        McpTools { servers, opened: Mutex::default() }
    }

    /// Ends the servers, and gives each the time to end in order. Dropping this value kills them.
    pub(crate) async fn close(&self) {
        join_all(self.servers.values().map(|server| async move {
            let connection = server.link.lock().await.connection.take();
            if let Some(connection) = connection.and_then(Arc::into_inner) {
                connection.close().await;
            }
        }))
        .await;
    }
}

impl ToolSource for McpTools {
    fn open<'s>(&'s self, agent: &'s Agent) -> BoxFuture<'s, OpenedTools> {
        async move {
            let Opened { agents, names: opened } = &mut *self.opened.lock().await;
            if agents.contains(&agent.name) {
                return OpenedTools::default();
            }
            let named = agent.mcp_servers();
            let is_new = |(name, _): &(&String, &Arc<Server>)| {
                named.contains(name.as_str()) && !opened.contains_key(*name)
            };
            let new = self.servers.iter().filter(is_new);
            let found = join_all(new.map(|(_, server)| Server::open(server, agent))).await;
            let mut all = OpenedTools::default();
            for (name, mut tools) in found {
                let names = tools.tools.iter().map(|tool| tool.spec().name.clone()).collect();
                opened.insert(name, names);
                all.tools.append(&mut tools.tools);
                all.notes.append(&mut tools.notes);
            }
            for named in agent.tools.iter().filter(|named| !named.ends_with('*')) {
                let server = named.split_once("__").and_then(|(server, _)| opened.get(server));
                if server.is_some_and(|names| !names.contains(named)) {
                    all.notes.push(format!("the agent '{}' misses the tool '{named}'", agent.name));
                }
            }
            all.notes.truncate(NOTES_MAX);
            // Servers choose parts of these texts.
            let cut = |note: &mut String| note.truncate(note.floor_char_boundary(NOTE_BYTES_MAX));
            all.notes.iter_mut().for_each(cut);
            // Not earlier: an agent whose time ends before has no tools yet.
            agents.insert(agent.name.clone());
            all
        }
        .boxed()
    }
}

/// A server of a run, whether it is connected or not.
struct Server {
    name: String,
    settings: McpServer,
    environment: ServerEnvironment,
    link: Mutex<Link>,
}

/// The connection to a server.
struct Link {
    connection: Option<Arc<Connection>>,
    starts: u32,
    /// Why the last connection ended, or could not be made.
    failure: String,
}

impl Server {
    /// The server's tools that the team file allows. If the server cannot be reached: the tools that the agent names, whose
    /// calls answer that it is unavailable.
    async fn open(self: &Arc<Server>, agent: &Agent) -> (String, OpenedTools) {
        let mut opened = OpenedTools::default();
        let listed = match self.connected().await {
            Ok(connection) => connection.tools.clone(),
            Err(reason) => {
                let prefix = format!("{}__", self.name);
                let named = agent.tools.iter().filter(|named| named.starts_with(&prefix));
                opened.tools = named
                    .filter(|named| !named.ends_with('*'))
                    .map(|named| Arc::new(McpTool::missing(named, self)) as Arc<dyn AgentTool>)
                    .collect();
                opened
                    .notes
                    .push(format!("the MCP server '{}' is unavailable: {reason}", self.name));
                return (self.name.clone(), opened);
            }
        };
        let allowed = self.settings.tools.as_deref();
        for name in allowed.into_iter().flatten() {
            if !listed.iter().any(|tool| tool.name == *name) {
                opened.notes.push(format!("the MCP server '{}' has no tool '{name}'", self.name));
            }
        }
        let is_allowed =
            |tool: &&Tool| allowed.is_none_or(|names| names.iter().any(|name| *name == tool.name));
        let mut names = BTreeSet::new();
        for tool in listed.iter().filter(is_allowed) {
            let found = McpTool::of(tool, self);
            let problem = schema_problem(&found.spec.schema)
                .or_else(|| (!names.insert(found.spec.name.clone())).then(|| SAME_NAME.to_owned()));
            match problem {
                None => {
                    opened.notes.extend(self.excess(&found));
                    opened.tools.push(Arc::new(found));
                }
                Some(problem) => opened.notes.push(format!(
                    "the tool '{}' of the MCP server '{}' is left out: {problem}",
                    tool.name, self.name
                )),
            }
        }
        (self.name.clone(), opened)
    }

    /// Says that hob's own engine does not enforce the schema of a tool. Calls are checked all the same.
    fn excess(&self, tool: &McpTool) -> Option<String> {
        let excess = schema_excess(&tool.spec.schema)?;
        Some(format!(
            "the tool '{}' of the MCP server '{}' has a schema that hob's own engine cannot enforce: {excess}",
            tool.name, self.name
        ))
    }

    /// The connection. It is made if the server has not been started yet, or has ended for the first time.
    ///
    /// # Errors
    /// Why the server cannot be used.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        let mut link = self.link.lock().await;
        if let Some(connection) = &link.connection {
            if connection.is_open() {
                return Ok(Arc::clone(connection));
            }
            link.failure = connection.end();
            link.connection = None;
        }
        if link.starts >= STARTS_MAX {
            return Err(link.failure.clone());
        }
        link.starts += 1;
        let limit = self.connect_limit();
        let connecting = Connection::open(&self.name, &self.settings, &self.environment);
        let late = || Err(format!("it was not ready within {} s", limit.as_secs()));
        match timeout(limit, connecting).await.unwrap_or_else(|_| late()) {
            Ok(connection) => {
                let connection = Arc::new(connection);
                link.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(reason) => {
                // A server that did not start is not waited for again with each call.
                link.starts = STARTS_MAX;
                link.failure.clone_from(&reason);
                Err(reason)
            }
        }
    }

    fn connect_limit(&self) -> Duration {
        self.settings.timeout_s.map_or(CONNECT_LIMIT, Duration::from_secs).max(CONNECT_LIMIT)
    }

    fn call_limit(&self) -> Duration {
        self.settings.timeout_s.map_or(CALL_LIMIT, Duration::from_secs)
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        let connection = match self.connected().await {
            Ok(connection) => connection,
            Err(reason) => return ToolOutput::error(format!("unavailable: {reason}")),
        };
        let limit = self.call_limit();
        match timeout(limit, connection.call(tool, arguments)).await {
            Ok(Ok(result)) => output::of(result),
            Ok(Err(CallError::Refused(reason))) => ToolOutput::error(reason),
            Ok(Err(CallError::Lost(reason))) => ToolOutput::error(format!(
                "the MCP server '{}' was lost during the call, and the outcome is unknown: {reason}",
                self.name
            )),
            Err(_) => ToolOutput::error(format!(
                "the MCP server '{}' did not answer within {} s, and the outcome is unknown",
                self.name,
                limit.as_secs()
            )),
        }
    }
}

const SAME_NAME: &str = "models cannot tell its name from that of another tool";

/// A tool of a server.
struct McpTool {
    spec: ToolSpec,
    /// The server's name of the tool.
    name: String,
    server: Arc<Server>,
}

impl McpTool {
    fn of(tool: &Tool, server: &Arc<Server>) -> McpTool {
        let mut description = tool.description.as_deref().unwrap_or_default().to_owned();
        description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
        // A server that says that its tools are harmless is not believed; one that warns is.
        let is_destructive =
            tool.annotations.as_ref().and_then(|hints| hints.destructive_hint) == Some(true);
        let class = if is_destructive { ToolClass::System } else { ToolClass::Network };
        let name = names::for_models(&server.name, &tool.name);
        let mut schema = tool.input_schema.as_ref().clone();
        // Some chat APIs reject a schema without these, which would end the run.
        schema.entry("type").or_insert_with(|| json!("object"));
        schema.entry("properties").or_insert_with(|| json!({}));
        McpTool {
            spec: spec(name, description, Value::Object(schema), class),
            name: tool.name.clone().into_owned(),
            server: Arc::clone(server),
        }
    }

    /// A tool of a server that did not start.
    fn missing(name: &str, server: &Arc<Server>) -> McpTool {
        let schema = json!({ "type": "object", "properties": {} });
        let description = format!("Unavailable: the MCP server '{}' did not start.", server.name);
        McpTool {
            spec: spec(name.to_owned(), description, schema, ToolClass::Network),
            name: name.to_owned(),
            server: Arc::clone(server),
        }
    }
}

/// What a call does is not known, so an interrupted one is not made again.
fn spec(name: String, description: String, schema: Value, class: ToolClass) -> ToolSpec {
    let spec = ToolSpec::new(name, description, schema, class);
    ToolSpec { is_foreign: true, may_repeat: false, ..spec }
}

impl AgentTool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, arguments: Value) -> BoxFuture<'_, ToolOutput> {
        self.server.call(&self.name, arguments).boxed()
    }
}

/// What is missing or doubtful about the tools of a team, after its servers were asked. Problems first, then advice.
pub(crate) async fn survey(team: &Team, source: &McpTools) -> (Vec<String>, Vec<String>) {
    let (mut problems, mut advice) = (Vec::new(), Vec::new());
    let mut names = Vec::new();
    for agent in &team.agents {
        let opened = source.open(agent).await;
        problems.extend(opened.notes);
        names.extend(opened.tools.iter().map(|tool| tool.spec().name.clone()));
    }
    source.close().await;
    for agent in &team.agents {
        let own = agent.tools.iter().filter(|named| !named.contains("__")).count();
        let count = own + names.iter().filter(|name| agent.has_tool(name)).count();
        if count > TOOLS_ADVISED {
            advice.push(format!(
                "the agent '{}' has {count} tools; more than {TOOLS_ADVISED} confuse models",
                agent.name
            ));
        }
    }
    (problems, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_agent_that_was_stopped_while_its_server_started_can_have_it_later() {
        let text = "entry = \"lead\"\n[[agent]]\nname = \"lead\"\nmodel = \"m\"\ntools = [\"docs__*\"]\n\
                    [mcp.docs]\ncommand = [\"/bin/sh\", \"-c\", \"while read line; do :; done\"]\n";
        let team = Team::parse(text, "t").expect("a team");
        let environment = ServerEnvironment {
            path: OsString::new(),
            variables: Arc::default(),
            redaction: Redaction::default(),
        };
        let source = McpTools::new(&team, &environment);
        for time in ["first", "second"] {
            let opened = source.open(&team.agents[0]).now_or_never();
            assert!(opened.is_none(), "the {time} start was not waited for");
        }
    }
}
