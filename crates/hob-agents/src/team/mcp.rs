//! `[mcp.NAME]` of a team file: a server of the Model Context Protocol, as a program or at an address.
//! Only the form of its description is checked here. hob calls the server when an agent that names it works.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Agent;

/// Maximum characters of a server's name.
const NAME_MAX: usize = 32;
pub(super) const SERVERS_MAX: usize = 16;
const TIMEOUT_S_MAX: u64 = 600;

/// A server of the Model Context Protocol. It has either a command or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// A program and its arguments. The program talks over its standard input and output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Names of environment variables that the program may see besides PATH, HOME and LANG.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// An http or https address (streamable HTTP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable with the bearer token for the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The tools that agents may use, by the server's own names. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Maximum seconds of a call, 1 to 600. Default: 20. The start may take 10 s, or longer if this is set to more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
}

impl McpServer {
    /// What is wrong with the description of the server, if anything.
    pub(super) fn problem(&self, name: &str) -> Option<String> {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(1..=NAME_MAX).contains(&name.len()) || !name.chars().all(is_allowed) {
            return Some(format!(
                "the name '{name}' of an MCP server must have 1 to {NAME_MAX} characters of a-z0-9-"
            ));
        }
        let is_web = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        let wrong = match (self.command.first(), &self.url) {
            (None, None) => "needs `command` or `url`",
            (Some(_), Some(_)) => "has `command` and `url`; keep one of them",
            (Some(program), _) if program.is_empty() => "has an empty program",
            (Some(_), _) if self.token_env.is_some() => "has `token_env`, which needs `url`",
            (_, Some(_)) if !self.env.is_empty() => "has `env`, which needs `command`",
            (_, Some(url)) if !is_web(url) => "needs an http or https address",
            _ if self.tools.as_ref().is_some_and(Vec::is_empty) => {
                "allows no tool; name some in `tools`, or remove it"
            }
            _ if self.timeout_s.is_some_and(|limit| !(1..=TIMEOUT_S_MAX).contains(&limit)) => {
                "needs a `timeout_s` of 1 to 600"
            }
            _ => return None,
        };
        Some(format!("the MCP server '{name}' {wrong}"))
    }
}

/// The first tool in an agent's list that names an MCP server wrongly, and the reason.
pub(super) fn wrong_tool<'a>(agent: &'a Agent, servers: &[&str]) -> Option<(&'a str, String)> {
    agent.tools.iter().find_map(|named| {
        let (server, tool) = match named.split_once("__") {
            Some(parts) => parts,
            None if named.contains('*') => return Some((named.as_str(), wrong_form(named))),
            None => return None,
        };
        if !servers.contains(&server) {
            let known = if servers.is_empty() { "none".to_owned() } else { servers.join(", ") };
            let reason = format!("'{named}' needs an MCP server '{server}'; the file has {known}");
            return Some((named.as_str(), reason));
        }
        let is_wrong = tool.is_empty() || (tool != "*" && tool.contains('*'));
        is_wrong.then(|| (named.as_str(), wrong_form(named)))
    })
}

fn wrong_form(named: &str) -> String {
    format!(
        "'{named}' is not a tool; write `SERVER__TOOL`, or `SERVER__*` for all tools of a server"
    )
}
