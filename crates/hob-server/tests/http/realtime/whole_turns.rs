//! Who may be asked in a turn and before it, and what a turn counts: a team acts, and a key may have few answers at a time.

use std::num::NonZeroU32;
use std::time::Duration;

use futures::StreamExt as _;
use hob_core::{MemoryUse, ModelLifecycle as _, ModelState};
use hob_server::{KeyOptions, ServerOptions};
use serde_json::{Value, json};

use super::{options, stage_with, types};
use crate::chat_model::{chat_lost, done, text};
use crate::client::{no_hang, until};
use crate::keys::{get_as, named};
use crate::ledger::{rows, with_ledger};

/// A pause is too early for a team, because what it does cannot be taken back. Another model is asked in each pause.
#[tokio::test]
async fn a_team_is_asked_when_the_turn_is_over() {
    let stage = stage_with(options()).await;
    for (model, asked) in [("smol", &stage.chat), ("team", &stage.team)] {
        let path = format!("/v1/realtime?model={model}");
        let mut talker = stage.try_open(&path, &[]).await.expect("a session");
        talker.until("session.created").await;
        talker.say(12_000, 1.0).await;
        talker.say(0, 0.4).await;
        // The transcript of the pause is there, and an early answer has begun.
        let has_begun = || model != "smol" || !asked.requests().is_empty();
        until(async || has_begun().then_some(())).await;
        // No event says that a team was not asked: it has this time in which it must not be.
        tokio::time::sleep(Duration::from_millis(100)).await;
        talker.say(12_000, 0.5).await;
        talker.say(0, 1.0).await;
        talker.until("response.done").await;
        let count = asked.requests().len();
        assert_eq!((model, count > 1), (model, model == "smol"), "{count}");
    }
}

/// Transcript, answer and speech run at the same time, and are one of the key's answers.
#[tokio::test]
async fn a_key_with_one_answer_at_a_time_can_talk() {
    let key = KeyOptions { concurrency: NonZeroU32::new(1), ..named("laptop", "secret") };
    let stage = stage_with(ServerOptions { keys: vec![key], ..options() }).await;
    let bearer = [("authorization", "Bearer secret")];
    let mut talker = stage.try_open("/v1/realtime", &bearer).await.expect("a session");
    talker.until("session.created").await;
    assert_eq!(stage.refused(&bearer).await.0, 429, "a second session");
    talker.say(12_000, 1.0).await;
    talker.say(0, 1.0).await;
    let events = talker.until("response.done").await;
    let done = events.last().expect("the last");
    assert_eq!(done["response"]["status"], "completed", "{done}");
    assert!(types(&events).contains(&"response.output_audio.delta"), "{events:?}");
    talker.socket.close(None).await.expect("closed");
    while let Some(Ok(_)) = no_hang(talker.socket.next()).await {}
    // The server gives a session's place back after the socket is closed, and announces it to no client.
    until(async || Box::pin(stage.try_open("/v1/realtime", &bearer)).await.ok()).await;
}

#[tokio::test]
async fn a_session_begins_when_its_models_are_loaded() {
    let stage = stage_with(options()).await;
    stage.voice.occupy(ModelState::Cold, MemoryUse::default());
    stage.voice_loads.send(Ok(())).await.expect("a server");
    let mut talker = stage.open().await;
    talker.until("session.created").await;
    assert_eq!(stage.voice.state(), ModelState::Ready);
}

/// The first answer then waits for no long prompt.
#[tokio::test]
async fn a_model_of_this_hob_reads_the_instructions_before_the_first_word() {
    let stage = stage_with(options()).await;
    let mut talker = stage.try_open("/v1/realtime?model=own", &[]).await.expect("a session");
    talker.until("session.created").await;
    let session = json!({"instructions": "Be brief."});
    talker.send(json!({"type": "session.update", "session": session})).await;
    talker.until("session.updated").await;
    let read = until(async || stage.own.requests().into_iter().next()).await;
    assert_eq!(read.tokens_max, Some(0), "it writes nothing");
}

/// The voice says the first clause in a pause, and the person speaks on.
#[tokio::test]
async fn a_voice_that_spoke_too_early_counts_as_no_request() {
    let stage = stage_with(options()).await;
    let mut talker = stage.try_open("/v1/realtime?model=greeter", &[]).await.expect("a session");
    talker.until("session.created").await;
    talker.say(12_000, 1.0).await;
    talker.say(0, 0.4).await;
    let now = async || stage.server.get("/api/hob/now").await.json();
    let has_speech = |list: &Value| {
        list.as_array().is_some_and(|all| all.iter().any(|one| one["route"] == "speech"))
    };
    until(async || has_speech(&now().await["requests"]).then_some(())).await;
    talker.say(12_000, 0.5).await;
    until(async || (!has_speech(&now().await["requests"])).then_some(())).await;
    assert!(!has_speech(&now().await["recent"]));
    talker.say(0, 1.0).await;
    talker.until("response.done").await;
    let metrics = stage.server.get("/metrics").await;
    let voices = |line: &&str| line.starts_with("hob_speech_answers_total{");
    let counted: Vec<&str> = metrics.text().lines().filter(voices).collect();
    assert_eq!(counted, [r#"hob_speech_answers_total{model="kokoro",outcome="complete"} 1"#]);
}

/// An answer begins in a pause. It is dropped when the person speaks on, or it fails. The key has one request for the
/// session, and one for the answer.
#[tokio::test]
async fn an_answer_that_came_too_early_counts_as_no_request() {
    for fails in [false, true] {
        let requests_per_minute = NonZeroU32::new(2);
        let key = KeyOptions { requests_per_minute, ..named("laptop", "secret") };
        let stage = stage_with(ServerOptions { keys: vec![key], ..options() }).await;
        let bearer = [("authorization", "Bearer secret")];
        let opening = stage.try_open("/v1/realtime?model=staged", &bearer);
        let mut talker = opening.await.expect("a session");
        talker.until("session.created").await;
        let early = stage.staged.stage();
        talker.say(12_000, 1.0).await;
        talker.say(0, 0.4).await;
        stage.staged.asked(1).await;
        if fails {
            early.send(Err(chat_lost())).await.expect("a reader");
        } else {
            early.send(text("Yes")).await.expect("a reader");
            talker.say(12_000, 0.5).await;
        }
        no_hang(early.closed()).await;
        let answer = stage.staged.stage();
        talker.say(12_000, 0.5).await;
        talker.say(0, 1.0).await;
        for event in [text("Yes."), done(2)] {
            no_hang(answer.send(event)).await.expect("a reader");
        }
        let events = talker.until("response.done").await;
        let last = events.last().expect("the last");
        assert_eq!(last["response"]["status"], "completed", "{last}");
        let counted = async || {
            let metrics = stage.server.ask(get_as("secret", "/metrics")).await;
            let lines = metrics.text().lines().filter(|line| line.starts_with("hob_chat_answers"));
            let lines: Vec<String> = lines.map(str::to_owned).collect();
            (!lines.is_empty()).then_some(lines)
        };
        let only = r#"hob_chat_answers_total{model="staged",outcome="complete"} 1"#;
        assert_eq!(until(counted).await, [only], "fails: {fails}");
        let now = stage.server.ask(get_as("secret", "/api/hob/now")).await.json();
        let recent = now["recent"].as_array().expect("a list");
        assert!(recent.iter().all(|one| one["outcome"] == "complete"), "{recent:?}");
    }
}

#[tokio::test]
async fn a_spoken_turn_is_in_the_ledger_and_in_the_metrics_with_its_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = with_ledger(folder.path()).ledger;
    let stage = stage_with(ServerOptions { ledger, ..options() }).await;
    let mut talker = stage.open().await;
    talker.until("session.created").await;
    talker.say(12_000, 1.0).await;
    talker.say(0, 1.0).await;
    talker.until("response.done").await;
    let find_turn = async || {
        let rows = rows(folder.path(), 1).await;
        rows.into_iter().find(|row| row.route == "realtime")
    };
    let turn = until(find_turn).await;
    let parts = turn.turn_stages.as_deref().expect("its parts");
    let time = |part: &str| -> f64 { part.split(' ').nth(1).expect("a time").parse().expect("ms") };
    let times: Vec<f64> = parts.split(", ").map(time).collect();
    let residue = (times.iter().sum::<f64>() - turn.total_ms).abs();
    assert!(times.len() == 6 && residue < 5.0, "{parts}: {}", turn.total_ms);
    let metrics = stage.server.get("/metrics").await;
    let counted = "hob_turn_stage_seconds_count{stage=\"transport\"} 1";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
}
