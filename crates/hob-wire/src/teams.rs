//! Teams and their runs, as hob reports them over HTTP, and what starts and decides a run.
//! The binary fills these types; the server knows neither team files nor runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::request_value::Name;

/// Runs of one list.
const RUNS_MAX: usize = 500;
const RUNS_DEFAULT: usize = 50;

/// A team, by its file.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct TeamView {
    /// The name of the file, if no version of it could be read.
    pub id: String,
    pub description: Option<String>,
    /// The agent that gets the task.
    pub entry: Option<String>,
    /// The agents of the last version without a mistake.
    pub agents: Vec<TeamAgentView>,
    /// Null: hob brings this team.
    pub file: Option<String>,
    /// What is wrong with the file now. Runs use its last version without a mistake, if there is one.
    pub error: Option<TeamFileError>,
}

/// An agent of a team.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct TeamAgentView {
    pub name: String,
    pub description: String,
    /// A model, or an alias.
    pub model: String,
    pub tools: Vec<String>,
    /// Agents that may take over the conversation and return with an answer.
    pub handoffs: Vec<String>,
    /// Agents that work on a brief, in a context of their own.
    pub delegates: Vec<String>,
}

/// A mistake in a team file.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct TeamFileError {
    /// From 1. Null: the mistake has no place.
    pub line: Option<usize>,
    /// From 1, in characters.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// The answer of `GET /v1/teams`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct TeamList<'a> {
    teams: &'a [TeamView],
}

/// A run of a team in a list.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct RunRow {
    pub id: String,
    pub team: String,
    /// At most 200 characters in a list.
    pub task: String,
    /// `running`, `interrupted`, `waiting_approval`, `waiting_client`, `completed`, `completed_partial`, `failed` or
    /// `cancelled`. Interrupted: no process works on the run. It can be resumed, and so can a failed one.
    pub status: &'static str,
    pub started_unix_ms: Option<u64>,
    /// Seconds at work, without the time of people.
    pub time_s: f64,
    /// Calls of models.
    pub turns: u32,
    pub prompt_tokens: u64,
    pub answer_tokens: u64,
    /// By the prices in `hob.toml`. Models without a price count nothing.
    pub cost_usd: f64,
}

/// The answer of `GET /v1/runs`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct RunList<'a> {
    runs: &'a [RunRow],
}

/// A run of a team.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct RunAnswer {
    #[serde(flatten)]
    pub row: RunRow,
    /// The call that waits for a person.
    pub approval: Option<RunApproval>,
    pub answer: Option<String>,
    /// Why the run failed.
    pub error: Option<String>,
    /// Files in the run's own folder, at most 200. A run that works in a folder of the user lists none.
    pub files: Vec<RunFileView>,
}

/// A call of a tool that waits for a person.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct RunApproval {
    pub id: String,
    pub agent: Option<String>,
    pub tool: String,
    /// All arguments, as JSON text.
    pub arguments: String,
    /// Why the policy asks.
    pub reason: String,
}

/// A file in a run's own folder.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct RunFileView {
    /// The end of its address: `/v1/runs/{id}/files/{path}`.
    pub path: String,
    pub bytes: u64,
}

/// An event of a run. `id` of the server-sent event is `seq`.
#[derive(Deserialize, JsonSchema, Serialize)]
pub(crate) struct TeamRunEvent {
    /// Version of this format.
    v: u32,
    /// Number of the event, from 1. After a crash, numbers are used again: an event replaces those with its number and higher ones.
    seq: u64,
    /// Milliseconds since 1970.
    ts: u64,
    run_id: String,
    /// The agent that works.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// 0 for the entry agent, one more for each agent below.
    depth: u32,
    /// The work of one agent from its start to its return: the `seq` of its `agent.started`. 0 before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<u64>,
    /// The span of the agent that called this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<u64>,
    /// While several delegates work at the same time: the number of this one among those with its name, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    /// What happened: `run.started`, `tool.called`, `approval.requested` and so on.
    r#type: String,
    /// Fields of this type.
    #[schemars(with = "serde_json::Map<String, Value>")]
    data: Value,
}

/// What starts a run.
#[derive(Clone, Debug, PartialEq)]
pub struct StartRun {
    /// `None`: the default team.
    pub team: Option<String>,
    pub task: String,
}

/// The fields of `POST /v1/runs`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct StartRunFields {
    /// Default: `agent_team`.
    team: Option<Name>,
    /// The task, in words.
    task: String,
}

/// The query of `GET /v1/runs`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RunListFields {
    /// Runs in the answer, at most 500. Default: 50.
    limit: Option<usize>,
}

/// What a person has decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunVerdict {
    /// The call is made.
    Approve,
    /// The call is not made, and the model reads that.
    Deny,
}

/// The fields of `POST /v1/runs/{id}/approvals/{approval}`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct DecisionFields {
    /// The decision. Only the first one for an approval counts.
    decision: RunVerdict,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_start_run(body: &[u8]) -> Result<StartRun, WireError> {
    let StartRunFields { team, task } = Fields::parse(body)?.read()?;
    if task.trim().is_empty() {
        return Err(WireError::invalid("task", "is empty; say in words what the team has to do"));
    }
    Ok(StartRun { team: team.map(|name| name.0), task })
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_decision(body: &[u8]) -> Result<RunVerdict, WireError> {
    let DecisionFields { decision } = Fields::parse(body)?.read()?;
    Ok(decision)
}

/// How many runs a list has.
///
/// # Errors
/// The limit is not a number from 1 to 500.
pub fn parse_run_list(pairs: &[(String, String)]) -> Result<usize, WireError> {
    let number =
        |text: &String| text.parse::<u64>().map_or_else(|_| text.as_str().into(), Value::from);
    let fields = pairs.iter().map(|(name, text)| (name.clone(), number(text))).collect();
    let RunListFields { limit } = Fields::of(fields).read()?;
    match limit.unwrap_or(RUNS_DEFAULT) {
        limit @ 1..=RUNS_MAX => Ok(limit),
        _ => Err(WireError::invalid("limit", format!("must be from 1 to {RUNS_MAX}"))),
    }
}

/// `GET /v1/teams`.
pub fn teams(teams: &[TeamView]) -> String {
    json(&TeamList { teams })
}

/// `GET /v1/teams/{id}`.
pub fn team(team: &TeamView) -> String {
    json(team)
}

/// `GET /v1/runs`.
pub fn runs(runs: &[RunRow]) -> String {
    json(&RunList { runs })
}

/// `GET /v1/runs/{id}`.
pub fn run(run: &RunAnswer) -> String {
    json(run)
}

impl RunRow {
    pub fn to_json(&self) -> String {
        json(self)
    }
}

/// A stored event as a server-sent event, with its number. `None`: the line is damaged.
pub fn run_event(line: &str) -> Option<(u64, String)> {
    let event: TeamRunEvent = serde_json::from_str(line).ok()?;
    Some((event.seq, format!("id: {}\ndata: {}\n\n", event.seq, json(&event))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_stored_line_with_its_number() {
        let line = r#"{"v":1,"seq":7,"ts":5,"run_id":"r","agent":"lead","depth":0,"type":"tool.called","data":{"b":1,"a":"x\ny"}}"#;
        assert_eq!(run_event(line), Some((7, format!("id: 7\ndata: {line}\n\n"))));
        assert_eq!(run_event(&line[..40]), None);
        let line = r#"{"v":1,"seq":8,"ts":5,"run_id":"r","agent":"tester","depth":1,"span_id":6,"parent_id":2,"number":2,"type":"tool.called","data":{}}"#;
        assert_eq!(run_event(line), Some((8, format!("id: 8\ndata: {line}\n\n"))));
    }

    #[test]
    fn what_starts_and_decides_a_run_is_checked() {
        let started = parse_start_run(br#"{"team":"builders","task":"Build"}"#).expect("fields");
        assert_eq!(
            started,
            StartRun { team: Some("builders".to_owned()), task: "Build".to_owned() }
        );
        for (body, field) in
            [(&b"{}"[..], "task"), (br#"{"task":" "}"#, "task"), (br#"{"task":5}"#, "task")]
        {
            assert_eq!(parse_start_run(body).expect_err("a mistake").field(), Some(field));
        }
        assert_eq!(parse_decision(br#"{"decision":"deny"}"#), Ok(RunVerdict::Deny));
        let wrong = parse_decision(br#"{"decision":"maybe"}"#).expect_err("a mistake");
        assert_eq!(wrong.to_string(), "'decision' must be one of approve, deny, and is 'maybe'");
    }

    #[test]
    fn a_list_has_a_limit() {
        let query = |limit: &str| [("limit".to_owned(), limit.to_owned())];
        assert_eq!((parse_run_list(&[]), parse_run_list(&query("3"))), (Ok(50), Ok(3)));
        for limit in ["0", "501", "many"] {
            assert!(parse_run_list(&query(limit)).is_err(), "{limit}");
        }
    }
}
