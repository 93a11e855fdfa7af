//! What must be true of a team besides its form: names are unique and known, limits are above zero.
//! An error points at the first place of the file that has the wrong word.

use std::collections::BTreeSet;

use super::{LAST_ANSWER_TOKENS, SandboxMode, Team, TeamError, WorkLimits, mcp};
use crate::call_name::handoff_name;

const NAME_MAX: usize = 63;
const AGENTS_MAX: usize = 32;
const CONTAINER_NAME_MAX: usize = 128;
const PROBE_HOSTS_MAX: usize = 64;
/// A name of 253 characters, a colon and a port.
const PROBE_HOST_MAX: usize = 259;
/// First parts of hob's paths. A team with such an id could not be addressed.
const RESERVED: [&str; 10] = [
    "v1",
    "models",
    "pipelines",
    "api",
    "health",
    "metrics",
    "chat",
    "benchmarks",
    "teams",
    "runs",
];

pub(super) fn check(team: &Team, text: &str) -> Result<(), TeamError> {
    let wrong = |word: &str, reason: String| Err(TeamError::at(text, position(text, word), reason));
    if !is_name(&team.id) || RESERVED.contains(&team.id.as_str()) {
        let reason = format!(
            "the id '{}' must have 1 to {NAME_MAX} characters of a-z0-9_- and be no part of hob's paths",
            team.id
        );
        return wrong(&team.id, reason);
    }
    if team.agents.len() > AGENTS_MAX {
        return wrong("agent", format!("a team has at most {AGENTS_MAX} agents"));
    }
    let mut calls = BTreeSet::new();
    for agent in &team.agents {
        if !is_name(&agent.name) {
            let reason = format!(
                "the name '{}' must have 1 to {NAME_MAX} characters of a-z0-9_-",
                agent.name
            );
            return wrong(&agent.name, reason);
        }
        if !calls.insert(handoff_name(&agent.name)) {
            return wrong(&agent.name, format!("two agents are called '{}'", agent.name));
        }
    }
    let names: Vec<&str> = team.agents.iter().map(|agent| agent.name.as_str()).collect();
    let others = team.agents.iter().flat_map(|agent| agent.handoffs.iter().chain(&agent.delegates));
    if let Some(unknown) = others.chain([&team.entry]).find(|name| !names.contains(&name.as_str()))
    {
        return wrong(unknown, no_agent(unknown, &names));
    }
    for agent in &team.agents {
        if agent.handoffs.iter().chain(&agent.delegates).any(|other| *other == agent.name) {
            return wrong(&agent.name, format!("'{}' cannot hand over to itself", agent.name));
        }
        let callable = [&agent.tools, &agent.handoffs, &agent.delegates];
        if agent.must_call && callable.iter().all(|names| names.is_empty()) {
            let reason = format!(
                "'{}' must call something, and has no tools or agents; add some, or remove `must_call`",
                agent.name
            );
            return wrong("must_call", reason);
        }
        if agent.turns == 0 {
            return wrong(&agent.name, format!("'{}' needs at least one turn", agent.name));
        }
        if let Some((_, reason)) = wrong_limit(&agent.limits()) {
            return wrong(&agent.name, format!("'{}': {reason}", agent.name));
        }
    }
    if let Some((word, reason)) =
        servers_and_containers(team).or_else(|| hosts(team)).or_else(|| policy(team))
    {
        return wrong(word, reason);
    }
    if let Some((word, reason)) = wrong_limit(&team.budget.limits()) {
        return wrong(word, reason);
    }
    match team.rules.iter().find_map(|rule| Some((rule, rule.problem()?))) {
        Some((rule, reason)) => wrong(rule.argv.first().map_or("rule", String::as_str), reason),
        None => Ok(()),
    }
}

/// What is wrong about the limits of a run or of an agent.
fn wrong_limit(limits: &WorkLimits) -> Option<(&'static str, String)> {
    let is_wrong_cost = limits.cost.is_some_and(|cost| !cost.is_finite() || cost <= 0.0);
    if is_wrong_cost || limits.turns == 0 || limits.time_s == Some(0) {
        return Some(("budget", "each limit of the budget must be above 0".to_owned()));
    }
    let kept = LAST_ANSWER_TOKENS;
    let is_small = limits.tokens.is_some_and(|tokens| tokens <= u64::from(kept));
    let reason =
        || format!("the limit of tokens must be above {kept}, which the last answer may have");
    is_small.then(|| ("tokens", reason()))
}

/// What is wrong about the team's MCP servers, their tools and containers: a word of the file, and the reason.
fn servers_and_containers(team: &Team) -> Option<(&str, String)> {
    let servers: Vec<&str> = team.mcp.keys().map(String::as_str).collect();
    if servers.len() > mcp::SERVERS_MAX {
        return Some(("mcp", format!("a team has at most {} MCP servers", mcp::SERVERS_MAX)));
    }
    let mut entries = team.mcp.iter();
    if let Some(wrong) =
        entries.find_map(|(name, server)| Some((name.as_str(), server.problem(name)?)))
    {
        return Some(wrong);
    }
    if let Some(wrong) = team.agents.iter().find_map(|agent| mcp::wrong_tool(agent, &servers)) {
        return Some(wrong);
    }
    let uses_containers = team.agents.iter().any(|agent| agent.has_tool("container_run"));
    if uses_containers && team.containers.is_empty() {
        return Some(("container_run", "'container_run' needs a list `containers`".to_owned()));
    }
    let container = team.containers.iter().find(|name| !is_container(name))?;
    let reason = format!(
        "'{container}' is not a name of a container (expected 1 to {CONTAINER_NAME_MAX} characters of a-zA-Z0-9_.-, with a \
         letter or a digit first)"
    );
    Some((container, reason))
}

/// What is wrong about the hosts of `http_probe`.
fn hosts(team: &Team) -> Option<(&str, String)> {
    if team.probe_allow.len() > PROBE_HOSTS_MAX {
        return Some(("probe_allow", format!("a team lists at most {PROBE_HOSTS_MAX} hosts")));
    }
    let is_host = |host: &str| {
        let rest = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        (1..=PROBE_HOST_MAX).contains(&host.len()) && host.chars().all(rest)
    };
    let wrong = team.probe_allow.iter().find(|host| !is_host(host))?;
    let reason = format!("'{wrong}' is not a host, such as `db.lan` or `db.lan:8080`");
    Some((wrong, reason))
}

/// A setting of the team's policy that contradicts another one.
fn policy(team: &Team) -> Option<(&'static str, String)> {
    let writes = || team.agents.iter().any(|agent| agent.has_tool("write_file"));
    let reason = match team.policy.sandbox {
        SandboxMode::ReadOnly if writes() => {
            "`sandbox = \"read-only\"` allows no 'write_file'; remove the tool, or the setting"
        }
        SandboxMode::DangerFullAccess if team.policy.image.is_some() => {
            "`sandbox = \"danger-full-access\"` has no use for `image`; remove one of them"
        }
        _ => return None,
    };
    Some(("sandbox", reason.to_owned()))
}

/// Whether an engine takes the word for a container of this machine: `--x` would be an option, and `SERVER:x` a container of
/// another server.
fn is_container(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    name.len() <= CONTAINER_NAME_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(rest)
}

fn no_agent(unknown: &str, names: &[&str]) -> String {
    match hob_core::nearest(unknown, names.iter().copied(), 1).first() {
        Some(near) => format!("there is no agent '{unknown}'; did you mean '{near}'?"),
        None => format!("there is no agent '{unknown}'; the team has {}", names.join(", ")),
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(allowed)
}

pub(super) fn position(text: &str, word: &str) -> Option<std::ops::Range<usize>> {
    let quoted = format!("\"{word}\"");
    let start = text.find(&quoted).or_else(|| text.find(word)).filter(|_| !word.is_empty())?;
    Some(start..start + word.len())
}
