//! Valves: settings of a team that clients may change. The changes are in `ID.valves.toml` next to the team file.
//! The team file stays as its author wrote it, and its later changes count where no valve was changed.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hob_agents::{Approval, LAST_ANSWER_TOKENS, Team};
use hob_wire::{Valve, ValveChange, ValveKind};
use serde::Deserialize;
use serde_json::Value;

use crate::bounded_file::read_text;

/// The end of the file's name.
pub(super) const SUFFIX: &str = ".valves.toml";

const FILE_BYTES_MAX: u64 = 64 << 10;
const MODEL_CHARS_MAX: usize = 256;
/// US dollars.
const COST_MAX: f64 = 1e6;
/// Before the name of an agent, in the name of the valve with its model.
const MODEL: &str = "model_";
const APPROVALS: [&str; 4] = ["never", "on-request", "untrusted", "always"];

/// A value as the file has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(i64),
    Amount(f64),
    Text(String),
}

/// The file with the valves of a team.
pub(super) fn file_of(team_file: &Path, id: &str) -> PathBuf {
    team_file.with_file_name(format!("{id}{SUFFIX}"))
}

/// The team with the changed values of its file of valves.
///
/// # Errors
/// Why the file of valves cannot be used.
pub(super) fn applied(mut team: Team, file: &Path) -> Result<Team, String> {
    for (name, text) in changed(file)? {
        put(&mut team, &name, Some(&text)).map_err(|reason| format!("'{name}' {reason}"))?;
    }
    Ok(team)
}

/// All valves. `base` is the team as its own file says.
pub(super) fn valves(team: &Team, base: &Team) -> Vec<Valve> {
    let valve = |name: String| Valve {
        description: description(&name),
        kind: kind(&name),
        value: get(team, &name),
        default: get(base, &name),
        name,
    };
    names(base).into_iter().map(valve).collect()
}

/// Stores new values of valves. Only what differs from the team file is stored.
///
/// # Errors
/// There is no such valve, a value is wrong, or the file cannot be written.
pub(super) fn store(base: &Team, file: &Path, changes: &[ValveChange]) -> Result<(), String> {
    let mut team = base.clone();
    for (name, text) in changed(file)? {
        // A valve of an agent that the team has no longer is dropped.
        let _dropped = put(&mut team, &name, Some(&text));
    }
    for (name, value) in changes {
        let value = value.clone().or_else(|| get(base, name));
        put(&mut team, name, value.as_deref()).map_err(|reason| format!("'{name}' {reason}"))?;
    }
    let differs = |name: &String| get(&team, name) != get(base, name);
    let line = |name: String| {
        let text = get(&team, &name)?;
        let value = match kind(&name) {
            ValveKind::Number | ValveKind::Amount => text,
            ValveKind::Text | ValveKind::Choice(_) => toml::Value::from(text).to_string(),
        };
        Some(format!("{name} = {value}\n"))
    };
    let lines: String = names(base).into_iter().filter(differs).filter_map(line).collect();
    let written = if lines.is_empty() { removed(file) } else { write(file, &lines) };
    written.map_err(|error| format!("the valves cannot be stored: {error}"))
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut next = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    next.write_all(text.as_bytes())?;
    next.persist(file).map_err(|error| error.error)?;
    Ok(())
}

fn removed(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What the file says; nothing if there is no file.
fn changed(file: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = match read_text(file, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    let written: BTreeMap<String, Written> =
        toml::from_str(&text).map_err(|error| error.message().replace('\n', "; "))?;
    let text = |written| match written {
        Written::Number(number) => number.to_string(),
        Written::Amount(amount) => amount.to_string(),
        Written::Text(text) => text,
    };
    Ok(written.into_iter().map(|(name, value)| (name, text(value))).collect())
}

fn names(team: &Team) -> Vec<String> {
    let models = team.agents.iter().map(|agent| format!("{MODEL}{}", agent.name));
    let same = ["turns", "tokens", "cost", "time_s", "approval", "fallback"].map(str::to_owned);
    same.into_iter().chain(models).collect()
}

fn kind(name: &str) -> ValveKind {
    match name {
        "approval" => ValveKind::Choice(&APPROVALS),
        "cost" => ValveKind::Amount,
        "turns" | "tokens" | "time_s" => ValveKind::Number,
        _ => ValveKind::Text,
    }
}

fn description(name: &str) -> String {
    match (name, name.strip_prefix(MODEL)) {
        (_, Some(agent)) => format!("The model or alias of the agent {agent}."),
        ("turns", _) => "Calls of models in a run.".to_owned(),
        ("tokens", _) => {
            format!("Tokens of all prompts and answers of a run, above {LAST_ANSWER_TOKENS}.")
        }
        ("cost", _) => "US dollars of a run, by the prices of hob.toml.".to_owned(),
        ("time_s", _) => "Seconds of a run.".to_owned(),
        ("fallback", _) => "The model or alias that goes on when one fails.".to_owned(),
        _ => "When a person is asked before a tool runs.".to_owned(),
    }
}

/// `None`: there is no such limit or valve.
fn get(team: &Team, name: &str) -> Option<String> {
    let budget = &team.budget;
    match name {
        "turns" => Some(budget.turns.to_string()),
        "tokens" => budget.tokens.map(|tokens| tokens.to_string()),
        "cost" => budget.cost.map(|cost| cost.to_string()),
        "time_s" => Some(budget.time_s.to_string()),
        "fallback" => team.fallback.clone(),
        "approval" => match serde_json::to_value(team.policy.approval) {
            Ok(Value::String(word)) => Some(word),
            _ => None,
        },
        _ => team.agent(name.strip_prefix(MODEL)?).map(|agent| agent.model.clone()),
    }
}

/// The error completes a sentence that begins with the name.
fn put(team: &mut Team, name: &str, value: Option<&str>) -> Result<(), String> {
    let text = value.unwrap_or_default();
    let number = || text.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok());
    let number = || number().filter(|number| *number > 0);
    let wrong = || "must be a whole number from 1".to_owned();
    let known = names(team).join(", ");
    let budget = &mut team.budget;
    match (name, name.strip_prefix(MODEL)) {
        ("turns", _) => {
            let turns = number().and_then(|number| u32::try_from(number).ok());
            budget.turns = turns.ok_or_else(wrong)?;
        }
        ("tokens", _) => {
            let kept = LAST_ANSWER_TOKENS;
            let tokens = || number().filter(|tokens| *tokens > u64::from(kept));
            let wrong =
                || format!("must be a whole number above {kept}, which the last answer may have");
            budget.tokens = value.map(|_| tokens().ok_or_else(wrong)).transpose()?;
        }
        ("cost", _) => {
            let cost = || text.parse::<f64>().ok().filter(|cost| *cost > 0.0 && *cost <= COST_MAX);
            let wrong = || format!("must be a number above 0, at most {COST_MAX}");
            budget.cost = value.map(|_| cost().ok_or_else(wrong)).transpose()?;
        }
        ("time_s", _) => budget.time_s = number().ok_or_else(wrong)?,
        ("fallback", _) => team.fallback = value.map(model_name).transpose()?,
        ("approval", _) => {
            let approval = serde_json::from_value::<Approval>(text.into());
            team.policy.approval =
                approval.map_err(|_| format!("must be one of {}", APPROVALS.join(", ")))?;
        }
        (_, Some(agent)) => {
            let agent = team.agents.iter_mut().find(|known| known.name == agent);
            let agent =
                agent.ok_or_else(|| format!("is not a valve of this team; it has {known}"))?;
            agent.model = model_name(text)?;
        }
        _ => return Err(format!("is not a valve of this team; it has {known}")),
    }
    Ok(())
}

fn model_name(text: &str) -> Result<String, String> {
    let is_name = (1..=MODEL_CHARS_MAX).contains(&text.chars().count());
    match is_name && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err("must be the name of a model or alias".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, value: Option<&str>) -> ValveChange {
        (name.to_owned(), value.map(str::to_owned))
    }

    #[test]
    fn only_what_differs_is_stored_and_null_goes_back() {
        let text = "entry = \"lead\"\n[[agent]]\nname = \"lead\"\nmodel = \"m\"\n";
        let base = Team::parse(text, "t").expect("a team");
        let folder = tempfile::tempdir().expect("a folder");
        let file = file_of(&folder.path().join("t.toml"), "t");
        let changes = [
            change("turns", Some("7")),
            change("tokens", Some("2000")),
            change("cost", Some("0.50")),
            change("time_s", Some("900")),
            change("approval", Some("never")),
            change("model_lead", Some("4")),
        ];
        store(&base, &file, &changes).expect("stored");
        let stored = std::fs::read_to_string(&file).expect("a file");
        let expected =
            "turns = 7\ntokens = 2000\ncost = 0.5\napproval = \"never\"\nmodel_lead = \"4\"\n";
        assert_eq!(stored, expected, "900 is the value of the team file");
        let team = applied(base.clone(), &file).expect("a team");
        let budget = &team.budget;
        assert_eq!((budget.turns, budget.tokens, budget.cost), (7, Some(2000), Some(0.5)));
        assert_eq!((team.policy.approval, team.agents[0].model.as_str()), (Approval::Never, "4"));

        for (name, value, reason) in [
            ("turns", Some("0"), "whole number from 1"),
            ("turns", Some("-1"), "whole number from 1"),
            ("tokens", Some("1024"), "above 1024"),
            ("time_s", Some("soon"), "whole number from 1"),
            ("cost", Some("inf"), "at most 1000000"),
            ("fallback", Some("a\u{7}"), "name of a model"),
            ("approval", Some("perhaps"), "one of never, on-request"),
            ("model_lead", Some("a\nb"), "name of a model"),
            (
                "model_other",
                Some("m"),
                "it has turns, tokens, cost, time_s, approval, fallback, model_lead",
            ),
            ("colour", None, "is not a valve"),
        ] {
            let refused = store(&base, &file, &[change("turns", Some("9")), change(name, value)]);
            assert!(refused.as_ref().is_err_and(|said| said.contains(reason)), "{refused:?}");
        }
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), stored, "all or none");

        let back =
            ["turns", "tokens", "cost", "approval", "model_lead"].map(|name| change(name, None));
        store(&base, &file, &back).expect("stored");
        assert!(!file.exists());
        std::fs::write(&file, "colour = 1\n").expect("written");
        assert!(applied(base, &file).expect_err("a mistake").contains("'colour' is not a valve"));
    }
}
