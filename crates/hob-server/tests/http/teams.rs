//! The events of a run over HTTP, with a `TeamService` that gives the progress which the test scripts.
//! What runs do is tested with the real service, in `hob/tests/cli/team_http.rs`.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hob_server::{RunProgress, RunRefusal, RunStage, ServerOptions, SpendTokens, TeamService};
use hob_wire::{RunAnswer, RunRow, RunVerdict, StartRun, TeamView};
use serde_json::json;

use crate::client::request;
use crate::keys::{PHONE, named, post_as, with_keys};
use crate::server::Server;

/// Tokens that each run uses.
const RUN_TOKENS: u64 = 5;

/// The answers to `progress`, in order. A call too many panics.
#[derive(Debug, Default)]
struct ScriptedTeams(Mutex<VecDeque<Result<RunProgress, RunRefusal>>>);

fn refused<T>() -> Result<T, RunRefusal> {
    Err(RunRefusal::Failed("not scripted".to_owned()))
}

impl TeamService for ScriptedTeams {
    fn default_team(&self) -> &str {
        "builders"
    }

    fn teams(&self) -> Vec<TeamView> {
        Vec::new()
    }

    fn runs(&self, _: usize, _: &dyn Fn(&str) -> bool) -> Result<Vec<RunRow>, RunRefusal> {
        refused()
    }

    fn run(&self, _: &str) -> Result<RunAnswer, RunRefusal> {
        refused()
    }

    fn team_of(&self, _: &str) -> Result<String, RunRefusal> {
        Ok("builders".to_owned())
    }

    fn owner_of(&self, _: &str) -> Result<Option<String>, RunRefusal> {
        Ok(None)
    }

    fn progress(&self, _: &str, offset: u64) -> Result<RunProgress, RunRefusal> {
        let next = self.0.lock().expect("no panic").pop_front().expect("another answer");
        next.map(|progress| RunProgress { offset: offset + progress.offset, ..progress })
    }

    fn file(&self, _: &str, _: &str) -> Result<Vec<u8>, RunRefusal> {
        refused()
    }

    /// The run ends within the call.
    fn start(
        &self,
        _: &StartRun,
        _: Option<&str>,
        spend: SpendTokens,
    ) -> Result<RunRow, RunRefusal> {
        spend(RUN_TOKENS);
        refused()
    }

    fn cancel(&self, _: &str) -> Result<(), RunRefusal> {
        std::panic::resume_unwind(Box::new("a defect of the service"))
    }

    fn delete(&self, _: &str) -> Result<(), RunRefusal> {
        refused()
    }

    fn go_on(
        &self,
        _: &str,
        _: Option<(&str, RunVerdict)>,
        _: SpendTokens,
    ) -> Result<(), RunRefusal> {
        refused()
    }
}

fn line(seq: u64, kind: &str) -> String {
    format!(r#"{{"v":1,"seq":{seq},"ts":5,"run_id":"r","depth":0,"type":"{kind}","data":{{}}}}"#)
}

fn event(seq: u64, kind: &str) -> String {
    format!("id: {seq}\ndata: {}\n\n", line(seq, kind))
}

fn reading(lines: &[String], has_more: bool, stage: RunStage) -> Result<RunProgress, RunRefusal> {
    Ok(RunProgress { lines: lines.to_vec(), offset: 1, has_more, stage })
}

/// The text for a client that has read the events up to number `seen`.
async fn read(script: Vec<Result<RunProgress, RunRefusal>>, seen: u64) -> String {
    let teams = Arc::new(ScriptedTeams(Mutex::new(script.into())));
    let options = ServerOptions {
        teams: Some(teams),
        keep_alive_every: Duration::ZERO,
        ..ServerOptions::default()
    };
    let server = Server::start_with(options).await;
    let headers = format!("Host: localhost\r\nLast-Event-ID: {seen}\r\n");
    let answer = server.ask(request("GET", "/v1/runs/r/events", &headers)).await;
    let kind = answer.header("content-type").expect("a type").to_owned();
    assert_eq!((answer.status(), kind.as_str()), (200, "text/event-stream; charset=utf-8"));
    answer.text().to_owned()
}

#[tokio::test]
async fn a_reader_gets_new_events_signs_of_life_and_an_end() {
    let damaged = "{\"v\":1,\"seq\":9".to_owned();
    let script = || {
        vec![
            reading(&[line(1, "run.started"), damaged.clone()], true, RunStage::Working),
            reading(&[line(2, "agent.started")], false, RunStage::Working),
            reading(&[], false, RunStage::Working),
            reading(&[], false, RunStage::Idle),
            reading(&[line(3, "run.ended")], false, RunStage::Stopped),
            reading(&[], false, RunStage::Stopped),
        ]
    };
    let whole = [
        event(1, "run.started"),
        event(2, "agent.started"),
        ": ping\n\n: ping\n\n".to_owned(),
        event(3, "run.ended"),
    ];
    assert_eq!(read(script(), 0).await, whole.concat());
    let rest = read(script(), 2).await;
    assert!(rest.starts_with(": ping\n\n") && rest.ends_with(&event(3, "run.ended")), "{rest}");
    assert!(!rest.contains("agent.started"), "{rest}");
}

#[tokio::test]
async fn events_of_a_run_that_goes_on_after_a_crash_are_sent_again() {
    let lines = [line(1, "run.started"), line(2, "lost"), line(2, "run.resumed")];
    let script = vec![
        reading(&lines, false, RunStage::Working),
        reading(&[line(3, "run.ended")], false, RunStage::Stopped),
        reading(&[], false, RunStage::Stopped),
    ];
    let expected = event(2, "run.resumed") + &event(3, "run.ended");
    assert_eq!(read(script, 2).await, expected);
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_error() {
    let script = vec![
        reading(&[line(1, "run.started")], false, RunStage::Working),
        Err(RunRefusal::Failed("the disk is gone".to_owned())),
    ];
    let text = read(script, 0).await;
    assert!(text.starts_with(&event(1, "run.started")), "{text}");
    assert!(
        text.ends_with("\n\n") && text.contains(r#"{"error":{"message":"the disk is gone""#),
        "{text}"
    );
}

#[tokio::test]
async fn the_tokens_of_runs_count_against_the_key() {
    let mut phone = named("phone", PHONE);
    phone.tokens_per_day = NonZeroU64::new(RUN_TOKENS);
    let teams = Some(Arc::new(ScriptedTeams::default()) as Arc<dyn TeamService>);
    let server = Server::start_with(ServerOptions { teams, ..with_keys([phone]) }).await;
    let start = ("/v1/runs", r#"{"task":"Build"}"#);
    let started = server.ask(post_as(PHONE, start.0, start.1)).await;
    assert_eq!(started.status(), 500, "{started:?}");
    let decide = ("/v1/runs/r/approvals/a", r#"{"decision":"approve"}"#);
    for (path, body) in [start, ("/v1/runs/r/resume", "{}"), decide] {
        let refused = server.ask(post_as(PHONE, path, body)).await;
        assert_eq!(refused.error("code"), (429, json!("budget_exceeded")), "{path}");
    }
}

#[tokio::test]
async fn a_service_that_panics_is_an_error_of_the_server() {
    let teams = Some(Arc::new(ScriptedTeams::default()) as Arc<dyn TeamService>);
    let options = ServerOptions { teams, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let answer = server.ask(request("POST", "/v1/runs/r/cancel", "Host: localhost\r\n")).await;
    assert_eq!(answer.status(), 500, "{answer:?}");
    assert_eq!(server.get("/teams").await.text(), r#"{"teams":[]}"#);
}
