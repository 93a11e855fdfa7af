//! Who may be asked in a turn and before it, and what a turn counts: a team acts, and a key may have few answers at a time.

use std::num::NonZeroU32;
use std::time::Duration;

use futures::StreamExt as _;
use hob_core::{MemoryUse, ModelLifecycle as _, ModelState};
use hob_server::{KeyOptions, ServerOptions};
use serde_json::{Value, json};

use super::{Stage, Talker, VOICE_NAMES, options, session, stage_with, status, types};
use crate::chat_model::{EventSender, chat_lost, done, text};
use crate::client::{no_hang, post_with, send_all, until};
use crate::keys::{get_as, named};
use crate::ledger::{rows, with_ledger};

/// A pause is too early for a team, because what it does cannot be taken back. Another model is asked in each pause.
#[tokio::test]
async fn a_team_is_asked_when_the_turn_is_over() {
    let stage = stage_with(options()).await;
    for (model, asked) in [("smol", &stage.chat), ("team", &stage.team), ("house", &stage.team)] {
        let before = asked.requests().len();
        let mut talker = stage.begin(model, &[]).await;
        if model == "house" {
            // When the session began, the name meant `smol`.
            stage.server.reload(|registry| registry.add_alias("house", "team"));
        }
        talker.say(12_000, 1.0).await;
        talker.say(0, 0.4).await;
        // The transcript of the pause is there, and an early answer has begun.
        let has_begun = || model != "smol" || !asked.requests().is_empty();
        until(async || has_begun().then_some(())).await;
        // No event says that a team was not asked: it has this time in which it must not be.
        tokio::time::sleep(Duration::from_millis(100)).await;
        talker.ask(0.5).await;
        let count = asked.requests().len() - before;
        assert_eq!((model, count > 1), (model, model == "smol"), "{count}");
    }
}

/// Transcript, answer and speech run at the same time, and are one of the key's answers.
#[tokio::test]
async fn a_key_with_one_answer_at_a_time_can_talk() {
    let key = KeyOptions { concurrency: NonZeroU32::new(1), ..named("laptop", "secret") };
    let stage = stage_with(ServerOptions { keys: vec![key], ..options() }).await;
    let bearer = [("authorization", "Bearer secret")];
    let mut talker = stage.begin("gpt-realtime", &bearer).await;
    assert_eq!(stage.refused(&bearer).await.0, 429, "a second session");
    let events = talker.ask(1.0).await;
    assert_eq!(status(&events).0, "completed", "{events:?}");
    assert!(types(&events).contains(&"response.output_audio.delta"), "{events:?}");
    talker.socket.close(None).await.expect("closed");
    while let Some(Ok(_)) = no_hang(talker.socket.next()).await {}
    // The server gives a session's place back after the socket is closed, and announces it to no client.
    until(async || Box::pin(stage.try_open("/v1/realtime", &bearer)).await.ok()).await;
}

#[tokio::test]
async fn a_session_begins_when_its_models_are_loaded() {
    let stage = stage_with(options()).await;
    for model in VOICE_NAMES {
        let body = json!({"session": {"audio": {"output": {"model": model}}}}).to_string();
        let made = stage.server.ask(post_with("/v1/realtime/client_secrets", "", body)).await;
        let bearer = format!("Bearer {}", made.json()["value"].as_str().expect("a secret"));
        stage.voice.occupy(ModelState::Cold, MemoryUse::default());
        stage.voice_loads.send(Ok(())).await.expect("a server");
        let headers = [("authorization", bearer.as_str())];
        let mut talker = stage.try_open("/v1/realtime", &headers).await.expect("a session");
        talker.until("session.created").await;
        assert_eq!(stage.voice.state(), ModelState::Ready, "{model}");
    }
}

#[tokio::test]
async fn an_answer_waits_for_a_voice_that_starts_again() {
    let (stage, mut talker) = session(options()).await;
    for model in VOICE_NAMES {
        let session = json!({"audio": {"output": {"model": model}}});
        talker.send(json!({"type": "session.update", "session": session})).await;
        stage.voice.occupy(ModelState::Cold, MemoryUse::default());
        stage.voice_loads.send(Ok(())).await.expect("a server");
        let events = talker.ask_in_writing("Hello").await;
        assert_eq!(status(&events).0, "completed", "{model}: {events:?}");
        assert!(types(&events).contains(&"response.output_audio.delta"), "{events:?}");
    }
}

/// The first answer then waits for no long prompt.
#[tokio::test]
async fn a_model_of_this_hob_reads_the_instructions_before_the_first_word() {
    let stage = stage_with(options()).await;
    // The second name is an alias.
    for (before, name) in ["own", "gpu/to-own"].into_iter().enumerate() {
        let mut talker = stage.begin(name, &[]).await;
        let session = json!({"instructions": "Be brief."});
        talker.send(json!({"type": "session.update", "session": session})).await;
        talker.until("session.updated").await;
        let read = until(async || stage.own.requests().into_iter().nth(before)).await;
        assert_eq!(read.tokens_max, Some(0), "it writes nothing");
    }
}

/// The voice says the first clause in a pause, and the person speaks on.
#[tokio::test]
async fn a_voice_that_spoke_too_early_counts_as_no_request() {
    let stage = stage_with(options()).await;
    let mut talker = stage.begin("greeter", &[]).await;
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

/// What `/metrics` says about answers of the staged model, and about attempts that failed.
async fn counted(stage: &Stage) -> Vec<String> {
    let names = ["hob_chat_answers_total{", "hob_chat_ttft_seconds_count{", "hob_fallbacks_total{"];
    let metrics = stage.server.ask(get_as("secret", "/metrics")).await;
    let is_shown = |line: &&str| names.iter().any(|name| line.starts_with(name));
    metrics.text().lines().filter(is_shown).map(str::to_owned).collect()
}

/// The same, as soon as an answer has ended.
async fn all_counted(stage: &Stage) -> Option<Vec<String>> {
    let lines = counted(stage).await;
    lines.iter().any(|line| line.starts_with("hob_chat_answers")).then_some(lines)
}

/// Waits until the staged model has no answer in flight.
async fn until_idle(stage: &Stage) {
    let line = r#"hob_chat_in_flight{model="staged"} 0"#;
    let metrics = async || stage.server.ask(get_as("secret", "/metrics")).await;
    until(async || metrics().await.text().lines().any(|one| one == line).then_some(())).await;
}

const COUNTED_ONCE: [&str; 2] = [
    r#"hob_chat_answers_total{model="staged",outcome="complete"} 1"#,
    r#"hob_chat_ttft_seconds_count{model="staged"} 1"#,
];

/// A stage whose key has one request for the session, and one for the answer.
async fn stage_with_key() -> Stage {
    let requests_per_minute = NonZeroU32::new(2);
    let key = KeyOptions { requests_per_minute, ..named("laptop", "secret") };
    stage_with(ServerOptions { keys: vec![key], ..options() }).await
}

/// A person with the key who pauses in a sentence, and the early answer that the staged model was asked for then.
async fn person_who_pauses(stage: &Stage) -> (Talker, EventSender) {
    let bearer = [("authorization", "Bearer secret")];
    let mut talker = stage.begin("staged", &bearer).await;
    let early = stage.staged.stage();
    talker.say(12_000, 1.0).await;
    talker.say(0, 0.4).await;
    stage.staged.asked(1).await;
    (talker, early)
}

/// An answer begins in a pause, perhaps at its second target. It is dropped when the person speaks on, also if it is
/// complete, or it fails.
#[tokio::test]
async fn an_answer_that_came_too_early_counts_as_no_request() {
    let complete = vec![text("Yes"), done(2)];
    let (begun, failed) = (vec![text("Yes")], vec![Err(chat_lost())]);
    for (what, events) in [("begun", begun), ("complete", complete), ("failed", failed)] {
        let stage = stage_with_key().await;
        let (mut talker, early) = person_who_pauses(&stage).await;
        let asked = stage.staged.asked(1).await;
        asked[0].trace.failed("gone/m", &chat_lost(), Duration::ZERO);
        send_all(&early, events).await;
        if what == "complete" {
            until_idle(&stage).await;
        }
        if what != "failed" {
            talker.say(12_000, 0.5).await;
        }
        no_hang(early.closed()).await;
        let answer = stage.staged.stage();
        talker.speak(0.5).await;
        send_all(&answer, [text("Yes."), done(2)]).await;
        let events = talker.until("response.done").await;
        assert_eq!(status(&events).0, "completed", "{events:?}");
        assert_eq!(until(async || all_counted(&stage).await).await, COUNTED_ONCE, "{what}");
        let now = stage.server.ask(get_as("secret", "/api/hob/now")).await.json();
        let recent = now["recent"].as_array().expect("a list");
        assert!(recent.iter().all(|one| one["outcome"] == "complete"), "{recent:?}");
        let chats = recent.iter().filter(|one| one["route"] == "chat");
        assert_eq!(chats.count(), 1, "{what}: {recent:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_complete_early_counts_when_it_is_given() {
    let stage = stage_with_key().await;
    let (mut talker, early) = person_who_pauses(&stage).await;
    send_all(&early, [text("Yes"), done(2)]).await;
    until_idle(&stage).await;
    assert_eq!(counted(&stage).await, [""; 0], "the person may speak on");
    talker.say(0, 1.0).await;
    let events = talker.until("response.done").await;
    assert_eq!(status(&events).0, "completed", "{events:?}");
    assert_eq!(until(async || all_counted(&stage).await).await, COUNTED_ONCE);
}

#[tokio::test]
async fn a_spoken_turn_is_in_the_ledger_and_in_the_metrics_with_its_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = with_ledger(folder.path()).ledger;
    let stage = stage_with(ServerOptions { ledger, ..options() }).await;
    let mut talker = stage.begin("gpt-realtime", &[]).await;
    // The session answers with another model than the one that it was opened with, under a name that a reload changes.
    stage.server.reload(|registry| registry.add_alias("house", "greeter"));
    talker.send(json!({"type": "session.update", "session": {"model": "house"}})).await;
    talker.ask(1.0).await;
    let find_turn = async || {
        let rows = rows(folder.path(), 1).await;
        rows.into_iter().find(|row| row.route == "realtime")
    };
    let turn = until(find_turn).await;
    assert_eq!((turn.alias.as_str(), turn.target.as_str()), ("house", "greeter"));
    let parts = turn.turn_stages.as_deref().expect("its parts");
    let time = |part: &str| -> f64 { part.split(' ').nth(1).expect("a time").parse().expect("ms") };
    let times: Vec<f64> = parts.split(", ").map(time).collect();
    let residue = (times.iter().sum::<f64>() - turn.total_ms).abs();
    assert!(times.len() == 6 && residue < 5.0, "{parts}: {}", turn.total_ms);
    let counted = "hob_turn_stage_seconds_count{stage=\"transport\"} 1";
    stage.server.get("/metrics").await.has_lines(&[counted]);
}
