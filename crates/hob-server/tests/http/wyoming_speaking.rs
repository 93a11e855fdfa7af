//! Speech over Wyoming: whole texts, texts that are still being written, gaps, names, and the ends of requests.

use std::time::Duration;

use hob_core::{ModelError, SpeechEvent};
use hob_server::ledger::Outcome;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::client::no_hang;
use crate::ledger::{rows, with_ledger};
use crate::model::{pcm, sound, worker_lost};
use crate::wyoming::Wyoming;

fn synthesize(text: &str) -> Value {
    json!({ "text": text })
}

#[tokio::test]
async fn a_whole_text_is_one_run_of_sound_with_one_layout() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = with_ledger(folder.path());
    let wyoming = Wyoming::start_with(options).await;
    let words = || Ok(SpeechEvent::Words(Vec::new()));
    let staged = &wyoming.server.model;
    staged.stage_all([words(), sound(0.5, 30_000), words(), sound(0.25, 100)]);
    let mut client = wyoming.speaker().await;
    let voice = json!({ "name": "fable", "speaker": "x" });
    client.send("synthesize", json!({ "text": "Hello.", "voice": voice })).await;
    let layout = json!({ "rate": 24_000, "width": 2, "channels": 1 });
    assert_eq!(client.expect("audio-start").await.data, layout);
    let mut heard = Vec::new();
    for _ in 0..4 {
        let chunk = client.expect("audio-chunk").await;
        assert_eq!(chunk.data, layout);
        assert!(chunk.payload.len() <= 24_000, "half a second at most");
        heard.extend(chunk.payload);
    }
    client.expect("audio-stop").await;
    assert_eq!(heard, [pcm(0.5, 30_000), pcm(0.25, 100)].concat());
    let asked = &staged.asked()[0];
    assert_eq!((asked.text.as_str(), asked.voice.as_str()), ("Hello.", "bm_fable"));

    let row = rows(folder.path(), 1).await.remove(0);
    assert_eq!((row.route.as_str(), row.outcome), ("speech", Outcome::Complete));
    assert_eq!((row.alias.as_str(), row.target.as_str()), ("kokoro", "kokoro"));
    assert_eq!((row.prompt_tokens, row.audio_ms.round()), (6, 1254.0));
    assert!(row.is_streamed && row.key.is_none() && row.first_ms.is_some());
    let counted = r#"hob_requests_total{route="wyoming/speech",status="200"} 1"#;
    wyoming.server.get("/metrics").await.has_lines(&[counted]);
    let now = wyoming.server.get("/api/hob/now").await.json();
    assert_eq!(now["recent"][0]["route"], "speech", "{now}");
}

#[tokio::test]
async fn a_text_is_spoken_while_it_is_written_sentence_by_sentence() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.echo().await;
    client.send("synthesize-start", json!({ "voice": { "language": "en-GB" } })).await;
    client.send("synthesize-chunk", synthesize("One.")).await;
    client.expect("audio-start").await;
    assert_eq!(client.expect("audio-chunk").await.payload, pcm(0.5, 4), "the text is not complete");
    client.send("ping", json!({})).await;
    client.expect("pong").await;
    client.send("synthesize-chunk", synthesize(" Two.")).await;
    let (kinds, second) = client.until("audio-chunk").await;
    assert_eq!(kinds, ["audio-stop", "audio-start", "audio-chunk"]);
    assert_eq!(second, pcm(0.5, 5));
    // The full copy is for servers that do not stream.
    client.send("synthesize", synthesize("One. Two.")).await;
    client.send("synthesize-stop", json!({})).await;
    let (kinds, rest) = client.until("synthesize-stopped").await;
    assert_eq!((kinds.concat(), rest.len()), ("audio-stopsynthesize-stopped".to_owned(), 0));
    let text = wyoming.heard.lock().expect("no panic").concat();
    assert_eq!(text, "One. Two.");
}

#[tokio::test]
async fn a_stream_without_a_word_is_a_moment_of_silence() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.echo().await;
    client.send("synthesize-start", json!({})).await;
    client.send("synthesize-stop", json!({})).await;
    let (kinds, silence) = client.until("synthesize-stopped").await;
    assert_eq!(kinds, ["audio-start", "audio-chunk", "audio-stop", "synthesize-stopped"]);
    assert_eq!(silence, pcm(0.0, 6000));
    // The connection goes on.
    client.send("synthesize", synthesize("Hi")).await;
    assert_eq!(client.until("audio-stop").await.1, pcm(0.5, 2));
}

/// Satellites give up after 5 s without sound.
#[tokio::test(start_paused = true)]
async fn a_pause_of_the_writer_is_reported_once_and_filled_with_silence() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.echo().await;
    client.send("synthesize-start", json!({})).await;
    client.send("synthesize-chunk", synthesize("One. ")).await;
    while client.read().await.expect("an event").kind != "audio-chunk" {}
    let begun = Instant::now();
    for _ in 0..5 {
        let since = Instant::now();
        let chunk = client.read().await.expect("silence");
        assert_eq!((chunk.kind.as_str(), chunk.payload), ("audio-chunk", pcm(0.0, 2400)));
        assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    }
    assert!(begun.elapsed() > Duration::from_secs(14), "{:?}", begun.elapsed());
    assert_eq!(*wyoming.heard.lock().expect("no panic"), ["One. ", ""]);
    let error = loop {
        let event = client.read().await.expect("an event");
        if event.kind == "error" {
            break event.data;
        }
    };
    assert_eq!(error["text"], "the client sent nothing for 300 s in the middle of a request");
    assert!(begun.elapsed() > Duration::from_secs(299), "the writer has time to think");
}

/// A model that is silent has the server's time limit, but not before the text is complete.
#[tokio::test(start_paused = true)]
async fn a_model_s_time_counts_from_the_end_of_the_text() {
    let wyoming = Wyoming::start().await;
    let sender = wyoming.server.model.stage();
    let mut client = wyoming.speaker().await;
    client.send("synthesize-start", json!({})).await;
    client.send("synthesize-chunk", synthesize("Hi")).await;
    sleep(Duration::from_secs(200)).await;
    client.send("synthesize-stop", json!({})).await;
    let error = client.read().await.expect("an event");
    assert_eq!(error.data["text"], "the model produced no sound for 60 s", "{error:?}");
    drop(sender);
}

#[tokio::test]
async fn a_model_is_chosen_by_name_or_alias_and_a_voice_by_language() {
    let wyoming = Wyoming::start().await;
    let folder = &wyoming.server.model;
    for (name, voice, spoken) in [
        ("kokoro", json!({}), "af_heart"),
        ("narrator", json!({ "language": "en-GB" }), "bm_fable"),
        ("narrator", json!({ "name": "af_nova", "language": "en-GB" }), "af_nova"),
    ] {
        folder.stage_all([sound(0.1, 1)]);
        let mut client = wyoming.speaker().await;
        client.send("select-program", json!({ "name": name })).await;
        client.send("synthesize", json!({ "text": "Hi", "voice": voice })).await;
        client.until("audio-stop").await;
        assert_eq!(folder.asked().last().expect("asked").voice, spoken, "{name}");
    }
    let refusals = [
        ("absent", json!({}), "no model is called 'absent'", Some("model_not_found")),
        // A model of another server, which `describe` does not list.
        ("gpu/a", json!({}), "no model is called 'gpu/a'", Some("model_not_found")),
        ("whisper", json!({}), "'whisper' is a transcription model", None),
        ("kokoro", json!({ "language": "de" }), "'language' does not fit voice", None),
        ("kokoro", json!({ "name": "af_hart" }), "no voice is called 'af_hart'", None),
    ];
    for (name, voice, message, code) in refusals {
        for kind in ["synthesize", "synthesize-start"] {
            let mut client = wyoming.speaker().await;
            client.send("select-program", json!({ "name": name })).await;
            client.send(kind, json!({ "text": "Hi", "voice": voice })).await;
            let (said, coded) = client.refused().await;
            assert!(said.contains(message), "{said}");
            if code.is_some() {
                assert_eq!(coded.as_deref(), code);
            }
        }
    }
}

#[tokio::test]
async fn failures_are_said_and_end_the_connection() {
    let wyoming = Wyoming::start().await;
    let staged = &wyoming.server.model;
    staged.stage_refusal(ModelError::Busy { retry_after: Duration::from_secs(3) });
    let mut client = wyoming.speaker().await;
    client.send("synthesize", synthesize("Hi")).await;
    let busy = "the model is busy; try again in 3 s".to_owned();
    assert_eq!(client.refused().await, (busy, Some("queue_full".to_owned())));
    staged.stage_all([sound(0.1, 10), Err(worker_lost())]);
    let mut client = wyoming.speaker().await;
    client.send("synthesize", synthesize("Hi")).await;
    client.expect("audio-start").await;
    client.expect("audio-chunk").await;
    assert_eq!(client.refused().await.1.as_deref(), Some("worker_lost"));
    let mut client = wyoming.speaker().await;
    client.send("synthesize", synthesize(" \n")).await;
    assert!(client.refused().await.0.starts_with("there is nothing to speak"));
}

#[tokio::test]
async fn a_full_model_refuses_the_next_request() {
    let wyoming = Wyoming::start().await;
    let senders = [wyoming.server.model.stage(), wyoming.server.model.stage()];
    let mut running = [wyoming.speaker().await, wyoming.speaker().await];
    for (client, sender) in running.iter_mut().zip(&senders) {
        client.send("synthesize", synthesize("Hi")).await;
        sender.send(sound(0.1, 1)).await.expect("a listener");
        client.until("audio-chunk").await;
    }
    let mut third = wyoming.speaker().await;
    third.send("synthesize", synthesize("Hi")).await;
    assert_eq!(third.refused().await.1.as_deref(), Some("queue_full"));
    assert_eq!(wyoming.server.in_flight(), 2);
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = with_ledger(folder.path());
    let wyoming = Wyoming::start_with(options).await;
    let sender = wyoming.server.model.stage();
    let mut client = wyoming.speaker().await;
    client.send("synthesize", synthesize("Hi")).await;
    sender.send(sound(0.1, 1)).await.expect("a listener");
    client.until("audio-chunk").await;
    drop(client);
    no_hang(sender.closed()).await;
    assert_eq!(rows(folder.path(), 1).await[0].outcome, Outcome::Abandoned);
    assert_eq!(wyoming.server.in_flight(), 0);
}

#[tokio::test]
async fn the_next_request_waits_for_the_end_of_the_one_that_runs() {
    let wyoming = Wyoming::start().await;
    let (first, second) = (wyoming.server.model.stage(), wyoming.server.model.stage());
    let mut client = wyoming.speaker().await;
    client.send("synthesize", synthesize("One")).await;
    client.send("synthesize", synthesize("Two")).await;
    first.send(sound(0.1, 1)).await.expect("a listener");
    client.until("audio-chunk").await;
    assert_eq!(wyoming.server.in_flight(), 1);
    drop(first);
    client.expect("audio-stop").await;
    second.send(sound(0.2, 1)).await.expect("a listener");
    assert_eq!(client.until("audio-chunk").await.1, pcm(0.2, 1));
    drop(second);
    client.expect("audio-stop").await;
    let texts: Vec<String> =
        wyoming.server.model.asked().into_iter().map(|asked| asked.text).collect();
    assert_eq!(texts, ["One", "Two"]);
}
