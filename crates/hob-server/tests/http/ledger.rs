//! The ledger's rows for requests, with every kind of end.
//! Rows have numbers and names only: the test searches the file for a word of the conversation.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hob_server::ServerOptions;
use hob_server::ledger::{Ledger, Outcome, Period, RequestRecord, read};

use crate::chat_model::{begun, chat_lost, done, serve_staged, text};
use crate::chatting::{HI, STREAM, chat};
use crate::client::{post, post_with, send_all, until};
use crate::model::{StagedSpeech, sound};
use crate::server::Server;

const DAY: Duration = Duration::from_secs(86_400);

/// Options with a ledger in this folder.
pub(crate) fn with_ledger(folder: &Path) -> ServerOptions {
    let ledger = Ledger::open(&folder.join("ledger.sqlite3"), DAY).expect("a ledger");
    ServerOptions { ledger: Some(Arc::new(ledger)), ..ServerOptions::default() }
}

/// All rows, oldest first, when there are at least `count`.
pub(crate) async fn rows(folder: &Path, count: usize) -> Vec<RequestRecord> {
    until(async || {
        let mut rows = read(&folder.join("ledger.sqlite3"), Period::default()).expect("rows");
        rows.reverse();
        (rows.len() >= count).then_some(rows)
    })
    .await
}

#[tokio::test]
async fn sound_that_cannot_be_encoded_is_no_abandoned_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let voice = StagedSpeech::new().with_rate(1);
    let server = Server::start_voice(voice, with_ledger(folder.path())).await;
    server.model.stage_all([sound(0.1, 10)]);
    let refused = server.post_speech(r#"{"input":"Hi."}"#).await;
    assert_eq!(refused.status(), 400, "no sound has 1 Hz");
    let row = rows(folder.path(), 1).await.remove(0);
    assert_eq!((row.outcome, row.error.as_deref()), (Outcome::Failed, Some("invalid_request")));
}

#[tokio::test]
async fn every_end_has_its_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, model) = serve_staged(with_ledger(folder.path())).await;

    let (sender, mut client) = begun(&server, &model, chat(STREAM)).await;
    sender.send(done(7)).await.expect("a reader");
    client.chunks().await;
    let complete = rows(folder.path(), 1).await.remove(0);
    assert_eq!((complete.route.as_str(), complete.outcome), ("chat", Outcome::Complete));
    assert_eq!((complete.alias.as_str(), complete.target.as_str()), ("smol", "smol"));
    assert_eq!((complete.prompt_tokens, complete.cached_tokens), (12, 4));
    assert_eq!((complete.completion_tokens, complete.queue_ms), (7, Some(7.0)));
    assert!(complete.is_streamed && complete.is_warm && complete.error.is_none());
    let first_ms = complete.first_ms.expect("it began");
    assert!(0.0 < first_ms && first_ms <= complete.total_ms, "{complete:?}");

    let (sender, mut client) = begun(&server, &model, chat(STREAM)).await;
    sender.send(Err(chat_lost())).await.expect("a reader");
    client.chunks().await;
    let lost = rows(folder.path(), 2).await.remove(1);
    assert_eq!((lost.outcome, lost.error.as_deref()), (Outcome::Failed, Some("worker_lost")));
    assert_eq!(lost.completion_tokens, 1, "as many as were seen");

    let (sender, client) = begun(&server, &model, chat(STREAM)).await;
    client.leave(&sender).await;
    assert_eq!(rows(folder.path(), 3).await[2].outcome, Outcome::Abandoned);

    // Two slots, and a third request.
    let held = [model.stage(), model.stage()];
    let mut clients = [server.client().await, server.client().await];
    for client in &mut clients {
        client.send(chat(HI)).await;
    }
    model.asked(5).await;
    let alias = r#"{"model":"assistant","messages":[{"role":"user","content":"xyzzy"}]}"#;
    assert_eq!(server.ask(post("/v1/chat/completions", alias)).await.status(), 503);
    let busy = rows(folder.path(), 4).await.remove(3);
    assert_eq!((busy.outcome, busy.error.as_deref()), (Outcome::Failed, Some("queue_full")));
    assert_eq!((busy.alias.as_str(), busy.target.as_str()), ("assistant", "smol"));
    assert_eq!((busy.is_streamed, busy.first_ms), (false, None));

    // Requests without a model and requests of `hob bench` have no row.
    let bench = "Content-Type: application/json\r\nUser-Agent: hob-bench/1\r\n";
    assert_eq!(server.ask(post_with("/v1/chat/completions", bench, HI)).await.status(), 503);
    assert_eq!(server.ask(chat("{}")).await.status(), 400);
    for (sender, client) in held.into_iter().zip(&mut clients) {
        send_all(&sender, [text("xyzzy"), done(1)]).await;
        client.answer().await;
    }
    assert_eq!(rows(folder.path(), 6).await.len(), 6);
    server.get("/metrics").await.has_lines(&["hob_ledger_lost_total 0"]);
    for file in std::fs::read_dir(folder.path()).expect("a folder") {
        let bytes = std::fs::read(file.expect("a file").path()).expect("its bytes");
        assert!(!bytes.windows(5).any(|window| window == b"xyzzy"));
    }
}
