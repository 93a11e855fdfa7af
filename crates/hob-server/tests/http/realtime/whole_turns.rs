//! Who may be asked in a turn, and what a turn counts: a team acts, and a key may have few answers at a time.

use std::num::NonZeroU32;
use std::time::Duration;

use futures::StreamExt as _;
use hob_server::{KeyOptions, ServerOptions};

use super::{options, stage_with, types};
use crate::client::{no_hang, until};
use crate::keys::named;

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
