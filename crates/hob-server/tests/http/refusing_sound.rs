//! Rejected transcriptions: invalid forms, too many or too large files, names of other models.
//! `hob-wire` checks the values of fields and has the tests for them.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use hob_core::Registry;
use hob_server::{KeyOptions, ServerOptions};
use serde_json::json;

use crate::client::{Answer, post, post_with, until};
use crate::keys::{named, with_keys};
use crate::refusals::{check_refusal, unavailable};
use crate::server::Server;
use crate::transcript_model::{
    FILE, Part, StagedTranscript, body, delta, done, form, form_headers, form_with, scripted,
    serve, serve_with,
};

const PATH: &str = "/v1/audio/transcriptions";

fn no_model() -> Arc<hob_core::scripted::ScriptedTranscript> {
    scripted([])
}

/// A server that accepts files of at most 100 bytes.
async fn small() -> Server {
    serve_with(no_model(), ServerOptions { file_bytes_max: 100, ..Default::default() }).await
}

fn error(answer: &Answer) -> (u16, String) {
    let message = answer.json()["error"]["message"].as_str().expect("a message").to_owned();
    (answer.status(), message)
}

#[tokio::test]
async fn a_form_that_is_none_is_refused() {
    let server = small().await;
    let large = [b'x'; 101];
    let prompt = [b'x'; (64 << 10) + 1];
    let many = [("x", None, &b"y"[..]); 65];
    let invalid = |message: &str| (400, message.to_owned());
    for (parts, expected) in [
        (&[][..], invalid("'file' is missing")),
        (&[("model", None, b"whisper")], invalid("'file' is missing")),
        (&[("file", Some("a.wav"), b"")], invalid("'file' is empty")),
        (&[FILE, FILE], invalid("'file' was sent twice")),
        (
            &[("file", Some("a.wav"), &large)],
            (413, "the field 'file' is larger than the limit of 100 bytes".to_owned()),
        ),
        (
            &[FILE, ("prompt", None, &prompt)],
            (413, "the field 'prompt' is larger than the limit of 65536 bytes".to_owned()),
        ),
        (&[FILE, ("prompt", None, b"\xfcber")], invalid("'prompt' is not UTF-8")),
        (&many, invalid("the form cannot be read: it has more than 64 fields")),
        (
            &[FILE, ("language", None, b"klingon")],
            invalid("'language' must be a language of ISO 639-1, such as 'en', and is 'klingon'"),
        ),
    ] as [(&[Part<'_>], (u16, String)); 9]
    {
        assert_eq!(error(&server.ask(form(parts)).await), expected);
    }
}

#[tokio::test]
async fn a_body_that_is_neither_form_nor_json_is_refused() {
    let server = small().await;
    let answer = server.ask(post_with(PATH, "Content-Type: audio/wav\r\n", "RIFF")).await;
    let message = "the body must be multipart/form-data or application/json, and is 'audio/wav'";
    assert_eq!(error(&answer), (415, message.to_owned()));
    let headers = "Content-Type: multipart/form-data\r\n";
    let (status, message) = error(&server.ask(post_with(PATH, headers, body(&[FILE]))).await);
    assert_eq!(status, 400);
    assert!(message.starts_with("the form cannot be read"), "{message}");
    let answer = server.ask(post(PATH, "x".repeat(70_000))).await;
    assert_eq!((error(&answer).0, answer.header("connection")), (413, Some("close")));
}

#[tokio::test]
async fn a_form_without_a_length_is_read_up_to_the_limit_of_the_whole() {
    let server = small().await;
    let longest = vec![b'x'; 64 << 10];
    let whole = body(&[("x", None, &longest[..]); 64]);
    let head = format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\n{}", form_headers());
    let chunk = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", whole.len());
    let request = [head.as_bytes(), chunk.as_bytes(), &whole[..], &b"\r\n0\r\n\r\n"[..]].concat();
    let message = format!("the body is larger than the limit of {} bytes", 100 + 64 * (64 << 10));
    assert_eq!(error(&server.ask(request).await), (413, message));
}

#[tokio::test]
async fn a_form_that_ends_too_early_is_refused() {
    let server = serve(no_model()).await;
    let whole = body(&[FILE]);
    for cut in [10, 40, whole.len() - 12] {
        let answer = server.ask(post_with(PATH, &form_headers(), &whole[..cut])).await;
        assert_eq!(error(&answer), (400, "the body ended too early".to_owned()), "{cut}");
    }
    let read_time_max = Duration::from_millis(20);
    let server =
        serve_with(no_model(), ServerOptions { read_time_max, ..Default::default() }).await;
    let mut client = server.client().await;
    let whole = form(&[FILE]);
    client.send(&whole[..whole.len() - 20]).await;
    assert_eq!(client.answer().await.status(), 408);
}

#[tokio::test]
async fn a_client_that_leaves_in_mid_upload_frees_its_slot() {
    let key = KeyOptions { concurrency: NonZeroU32::new(1), ..named("phone", "secret") };
    let heard = (0..10_000).map(|_| Ok(vec![done(1.0)]));
    let server = serve_with(scripted(heard), with_keys([key])).await;
    let headers = format!("Authorization: Bearer secret\r\n{}", form_headers());
    let upload = post_with(PATH, &headers, body(&[FILE]));
    let client = server.send(&upload[..upload.len() - 20]).await;
    let status = async || server.ask(&upload).await.status();
    until(async || (status().await == 429).then_some(())).await;
    drop(client);
    until(async || (status().await == 200).then_some(())).await;
}

#[tokio::test]
async fn a_hob_that_does_not_listen_says_so() {
    let server = Server::start().await;
    let message = "this hob has no transcription model; get one with `hob pull whisper-base`, or use a model of another server: UPSTREAM/MODEL";
    for fields in [&[][..], &[("model", "whisper-1")]] {
        let answer = server.ask(form_with(fields)).await;
        let expected = unavailable("no_target", None);
        check_refusal(&answer, expected, message);
    }
    let empty = Server::start_registry(Registry::default(), ServerOptions::default()).await;
    assert_eq!(empty.ask(form(&[FILE])).await.status(), 503);
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_is_refused() {
    let server = serve(no_model()).await;
    for (name, status, message) in [
        ("wisper", 404, "no model is called 'wisper'; the nearest are whisper"),
        ("kokoro", 400, "'kokoro' is a speech model, and this needs a transcription model"),
    ] {
        let answer = server.ask(form_with(&[("model", name)])).await;
        assert_eq!(error(&answer), (status, message.to_owned()));
    }
    let speech = server.post_speech(r#"{"model":"whisper","input":"Hi"}"#).await;
    let message = "'whisper' is a transcription model, and this needs a speech model";
    assert_eq!(error(&speech), (400, message.to_owned()));
}

#[tokio::test]
async fn a_rejected_request_gets_retry_after() {
    let (model, sender) = StagedTranscript::new();
    let server = serve_with(model, ServerOptions::default()).await;
    let mut client = server.send(form_with(&[("stream", "true")])).await;
    sender.send(delta("Hello")).await.expect("a reader");
    client.head().await;
    let answer = server.ask(form(&[FILE])).await;
    assert_eq!((answer.status(), answer.header("retry-after")), (503, Some("1")));
    sender.send(done(1.0)).await.expect("a reader");
    client.chunks().await;
}

#[tokio::test]
async fn a_key_that_is_not_for_it_is_refused() {
    let key = KeyOptions { aliases: Some(vec!["kokoro".to_owned()]), ..named("phone", "secret") };
    let server = serve_with(no_model(), with_keys([key])).await;
    let headers = format!("Authorization: Bearer secret\r\n{}", form_headers());
    for fields in [vec![FILE], vec![FILE, ("model", None, &b"whisper-1"[..])]] {
        let answer = server.ask(post_with(PATH, &headers, body(&fields))).await;
        assert_eq!(answer.error("code"), (403, json!("model_not_allowed")));
    }
    assert_eq!(server.ask(form(&[FILE])).await.status(), 401);
}
