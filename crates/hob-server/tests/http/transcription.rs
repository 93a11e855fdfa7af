//! Transcripts: the request to the model, the client's answer in each format, and how streams end.
//! `hob-wire` has the formats themselves and tests them byte for byte.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{
    Chunking, ModelError, Sound, SoundFile, Timestamps, TranscriptRequest, TranscriptTask,
};
use hob_server::ServerOptions;
use hob_server::ledger::Outcome;
use serde_json::json;

use crate::chatting::{datas, parsed};
use crate::client::{post, send_all};
use crate::ledger::{rows, with_ledger};
use crate::transcript_model::{
    FILE, Part, StagedTranscript, delta, done, form, form_to, form_with, scripted, segment, serve,
    serve_with, word,
};

fn hello() -> Result<Vec<crate::transcript_model::Event>, ModelError> {
    Ok(vec![delta("Hello "), segment("Hello there", 0.0, 1.5), delta("there"), done(1.5)])
}

#[tokio::test]
async fn a_file_becomes_a_request_and_its_text_an_answer() {
    let model = scripted([hello()]);
    let server = serve(Arc::clone(&model)).await;
    let fields = [
        ("model", "whisper-1"),
        ("language", "en-GB"),
        ("prompt", "Kobold"),
        ("temperature", "0.5"),
        ("chunking_strategy[type]", "server_vad"),
        ("chunking_strategy[silence_duration_ms]", "300"),
        ("include[]", "logprobs"),
    ];
    let answer = server.ask(form_with(&fields)).await;
    let expected = json!({"text": "Hello there", "usage": {"type": "duration", "seconds": 1.5}});
    assert_eq!(answer.json(), expected);
    for (name, expected) in [
        ("x-hob-target", "whisper"),
        ("x-hob-attempts", "1"),
        ("x-hob-warm", "true"),
        ("x-hob-ignored", "include"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(answer.header(name), Some(expected), "{name}");
    }
    let bytes = FILE.2.to_vec().into();
    let asked = TranscriptRequest {
        sound: Sound::File(SoundFile { bytes, name: Some("a.wav".to_owned()) }),
        language: Some("en".to_owned()),
        prompt: Some("Kobold".to_owned()),
        temperature: Some(0.5),
        chunking: Some(Chunking::ServerVad {
            threshold: None,
            prefix_padding_ms: None,
            silence_ms: Some(300),
        }),
        reading: hob_core::chat::Reading::Whole,
        ..TranscriptRequest::default()
    };
    assert_eq!(model.requests(), [asked]);
}

#[tokio::test]
async fn every_format_has_its_type() {
    let server = serve(scripted((0..5).map(|_| hello()))).await;
    for (format, content_type, begins) in [
        ("json", "application/json", "{\"text\":\"Hello there\""),
        ("text", "text/plain; charset=utf-8", "Hello there\n"),
        ("srt", "text/plain; charset=utf-8", "1\n00:00:00,000 --> 00:00:01,500\nHello there\n"),
        ("vtt", "text/vtt; charset=utf-8", "WEBVTT\n\n00:00:00.000 --> "),
        ("verbose_json", "application/json", "{\"task\":\"transcribe\",\"language\":\"und\""),
    ] {
        let answer = server.ask(form_with(&[("response_format", format)])).await;
        assert_eq!(answer.header("content-type"), Some(content_type), "{format}");
        assert!(answer.text().starts_with(begins), "{format}: {}", answer.text());
    }
}

#[tokio::test]
async fn json_and_translations_ask_for_the_same() {
    let model = scripted([hello(), hello()]);
    let server = serve(Arc::clone(&model)).await;
    let body = r#"{"model":"ears","input_audio":{"data":"UklGRg==","format":"wav"}}"#;
    let answer = server.ask(post("/v1/audio/transcriptions", body)).await;
    assert_eq!((answer.status(), &answer.json()["text"]), (200, &json!("Hello there")));
    let fields = [FILE, ("response_format", None, b"verbose_json")];
    let answer = server.ask(form_to("/v1/audio/translations", &fields)).await;
    assert_eq!(answer.json()["task"], "translate");
    let asked = model.requests();
    let tasks = [TranscriptTask::Transcribe, TranscriptTask::Translate];
    assert_eq!(asked.iter().map(|request| request.task).collect::<Vec<_>>(), tasks);
    assert_eq!(asked[1].timestamps, Timestamps { segments: true, words: false });
    let Sound::File(file) = &asked[0].sound else { panic!("no file") };
    assert_eq!((&file.bytes[..], file.name.as_deref()), (&b"RIFF"[..], Some("audio.wav")));
}

#[tokio::test]
async fn a_stream_comes_as_it_is_understood() {
    let (model, sender) = StagedTranscript::new();
    let server = serve(model).await;
    let mut client = server.send(form_with(&[("stream", "true")])).await;
    sender.send(delta("Hello")).await.expect("a reader");
    let head = client.head().await;
    assert_eq!((head.status, head.header("x-hob-warm")), (200, Some("false")));
    assert_eq!(head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let first = client.chunk().await.expect("a chunk").expect("no end");
    assert_eq!(
        String::from_utf8_lossy(&first),
        "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hello\"}\n\n"
    );
    send_all(&sender, [segment("Hello", 0.0, 1.0), delta(" there"), done(1.0)]).await;
    let rest = client.chunks().await;
    let rest = String::from_utf8_lossy(&rest);
    let rest: Vec<_> = datas(&rest).into_iter().map(parsed).collect();
    let expected = [
        json!({"type": "transcript.text.delta", "delta": " there"}),
        json!({"type": "transcript.text.done", "text": "Hello there", "duration": 1.0}),
    ];
    assert_eq!(rest, expected);
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn a_stream_has_the_times_that_were_asked_for() {
    let spoken = || {
        Ok(vec![delta("Hello"), segment(" Hello", 0.0, 1.0), word("Hello", 0.25, 1.0), done(1.0)])
    };
    let timed = json!({"type": "transcript.text.segment", "id": "seg_0", "start": 0.0, "end": 1.0, "text": " Hello"});
    let word = json!({"type": "transcript.text.word", "word": "Hello", "start": 0.25, "end": 1.0});
    for (path, granularities, expected) in [
        ("transcriptions", &["segment", "word"][..], vec![timed.clone(), word.clone()]),
        ("transcriptions", &["word"], vec![word.clone()]),
        ("transcriptions", &[], vec![]),
        ("translations", &["segment"], vec![timed]),
    ] {
        let server = serve(scripted([spoken()])).await;
        let stream: [Part<'_>; 2] = [FILE, ("stream", None, b"true")];
        let wanted =
            granularities.iter().map(|one| ("timestamp_granularities[]", None, one.as_bytes()));
        let parts: Vec<_> = stream.into_iter().chain(wanted).collect();
        let answer = server.ask(form_to(&format!("/v1/audio/{path}"), &parts)).await;
        let events: Vec<_> = datas(answer.text()).into_iter().map(parsed).collect();
        assert_eq!(events[1..events.len() - 1], expected, "{path} {granularities:?}");
        assert_eq!(answer.header("x-hob-ignored"), None);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_says_so_and_a_silent_one_that_it_lives() {
    let (model, sender) = StagedTranscript::new();
    let server = serve_with(model, crate::chat_model::talkative()).await;
    let mut client = server.send(form_with(&[("stream", "true")])).await;
    sender.send(delta("Hello")).await.expect("a reader");
    client.head().await;
    client.chunk().await.expect("the first text");
    assert_eq!(client.chunk().await.expect("a comment").as_deref(), Some(&b": hob\n\n"[..]));
    drop(sender);
    let rest = client.chunks().await;
    let rest = String::from_utf8_lossy(&rest);
    let last = parsed(datas(&rest).pop().expect("an event"));
    assert_eq!(last["type"], "error");
    assert!(last["error"]["message"].as_str().expect("words").contains("before it was complete"));
}

#[tokio::test]
async fn a_stream_of_segments_that_the_client_does_not_get_says_that_it_lives() {
    let keep_alive_every = Duration::from_millis(100);
    let (model, sender) = StagedTranscript::new();
    let options = ServerOptions { keep_alive_every, ..ServerOptions::default() };
    let server = serve_with(model, options).await;
    let mut client = server.send(form_with(&[("stream", "true")])).await;
    sender.send(delta("Hello")).await.expect("a reader");
    client.head().await;
    client.chunk().await.expect("the first text");
    let segments = async {
        for _ in 0..50 {
            tokio::time::sleep(keep_alive_every / 5).await;
            sender.send(segment("Hello", 0.0, 1.5)).await.expect("a reader");
        }
    };
    tokio::select! {
        chunk = client.chunk() => {
            assert_eq!(chunk.expect("a comment").as_deref(), Some(&b": hob\n\n"[..]));
        }
        () = segments => unreachable!("the client got nothing for a second"),
    }
}

#[tokio::test]
async fn a_transcript_that_breaks_off_whole_is_an_error() {
    let lost = ModelError::WorkerLost { engine: "transcription", detail: "killed".to_owned() };
    let server = serve(scripted([Ok(vec![delta("Hel"), Err(lost)]), Ok(vec![delta("Hel")])])).await;
    assert_eq!(server.ask(form(&[FILE])).await.status(), 503);
    assert_eq!(server.ask(form(&[FILE])).await.status(), 500);
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn silence_is_an_answer() {
    let server = serve(scripted([Ok(vec![done(3.0)]), Ok(vec![done(3.0)])])).await;
    assert_eq!(server.ask(form(&[FILE])).await.json()["text"], "");
    let streamed = server.ask(form_with(&[("stream", "true")])).await;
    let done = r#"{"type":"transcript.text.done","text":"","duration":3.0}"#;
    assert_eq!(datas(streamed.text()), [done]);
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_work() {
    let (model, sender) = StagedTranscript::new();
    let server = serve(model).await;
    let mut client = server.send(form_with(&[("stream", "true")])).await;
    sender.send(delta("Hello")).await.expect("a reader");
    client.head().await;
    client.leave(&sender).await;
}

#[tokio::test]
async fn a_model_that_says_nothing_is_given_up() {
    let (model, _sender) = StagedTranscript::new();
    let token_time_max = Duration::from_millis(20);
    let server = serve_with(model, ServerOptions { token_time_max, ..Default::default() }).await;
    assert_eq!(server.ask(form(&[FILE])).await.status(), 504);
}

#[tokio::test]
async fn a_row_is_written_of_every_transcript() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = with_ledger(folder.path());
    let server = serve_with(scripted([hello()]), options).await;
    server.ask(form_with(&[("model", "ears")])).await;
    let row = rows(folder.path(), 1).await.remove(0);
    assert_eq!((row.route.as_str(), row.alias.as_str()), ("transcription", "ears"));
    assert_eq!((row.target.as_str(), row.audio_ms), ("whisper", 1500.0));
    assert_eq!((row.outcome, row.first_ms.is_some()), (Outcome::Complete, true));
}

#[tokio::test]
async fn it_is_listed_and_counted() {
    let server = serve(scripted([hello()])).await;
    server.ask(form(&[FILE])).await;
    let list = server.get("/v1/models").await.json();
    let kinds = list["data"].as_array().expect("a list").iter();
    let kinds: Vec<_> = kinds.map(|model| (&model["id"], &model["hob"]["kind"])).collect();
    let (whisper, transcript, kind) = (json!("whisper"), json!("ears"), json!("transcription"));
    assert_eq!(kinds[1..], [(&whisper, &kind), (&transcript, &kind)]);
    let model = server.get("/v1/models/whisper-1").await.json();
    assert_eq!((&model["id"], &model["hob"]["kind"]), (&json!("whisper-1"), &kind));
    let line = "hob_transcript_answers_total{model=\"whisper\",outcome=\"complete\"} 1";
    server.get("/metrics").await.has_lines(&[line]);
}
