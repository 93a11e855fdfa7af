//! What must be true of a team besides its form: names are unique and known, limits are above zero.
//! An error points at the first place of the file that has the wrong word.

use std::collections::BTreeSet;

use super::{Team, TeamError};
use crate::call_name::handoff_name;

const NAME_MAX: usize = 63;
const AGENTS_MAX: usize = 32;
/// First parts of hob's paths. Such a team could not be addressed.
const RESERVED: [&str; 8] =
    ["v1", "models", "pipelines", "api", "health", "metrics", "chat", "benchmarks"];

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
        if agent.turns == 0 {
            return wrong(&agent.name, format!("'{}' needs at least one turn", agent.name));
        }
    }
    let budget = &team.budget;
    let is_spent = budget.turns == 0 || budget.time_s == 0 || budget.tokens == Some(0);
    if is_spent {
        return wrong("budget", "each limit of the budget must be above 0".to_owned());
    }
    match team.rules.iter().find_map(|rule| Some((rule, rule.problem()?))) {
        Some((rule, reason)) => wrong(rule.argv.first().map_or("rule", String::as_str), reason),
        None => Ok(()),
    }
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

fn position(text: &str, word: &str) -> Option<std::ops::Range<usize>> {
    let quoted = format!("\"{word}\"");
    let start = text.find(&quoted).or_else(|| text.find(word)).filter(|_| !word.is_empty())?;
    Some(start..start + word.len())
}
