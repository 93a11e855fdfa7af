//! Every way to reject a request: status, envelope, and the fields for a client's retry logic.
//! A rejected request never uses a slot of the model, and never gets status 200.

use std::time::Duration;

use hob_core::{InstructionSupport, Language, ModelError, Registry};
use hob_server::ServerOptions;
use serde_json::json;

use crate::client::{get, post, post_with, request, until};
use crate::model::{StagedSpeech, sound, worker_lost};
use crate::refusals::{Row, check_refusal, invalid, invalid_as, unavailable};
use crate::server::Server;

#[tokio::test]
async fn a_path_that_is_not_utf_8_is_refused_in_the_envelope() {
    let server = Server::start().await;
    for path in ["/v1/models/%ff", "/api/hob/routes/%ff", "/api/hob/requests/%ff", "/%ff"] {
        let refused = server.get(path).await;
        assert!(matches!(refused.status(), 400 | 404), "{path}: {refused:?}");
        let kind = &refused.json()["error"]["type"];
        assert_eq!(kind, "invalid_request_error", "{path}");
    }
}

#[tokio::test]
async fn requests_that_cannot_be_answered() {
    let options = ServerOptions { text_chars_max: 20_000, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let empty = "there is nothing to speak: the text is empty or has no speakable characters";
    let long = format!(r#"{{"input":"{}"}}"#, "é".repeat(20_001));
    let whole = format!(r#"{{"input":"{}","stream":false}}"#, "a".repeat(9_030));
    let rows: &[(&str, Row, &str)] = &[
        (r#"{"input":""}"#, invalid(Some("input")), empty),
        (r#"{"input":" \n\t "}"#, invalid(Some("input")), empty),
        ("{}", invalid(Some("input")), "'input' is missing"),
        (
            "[",
            invalid(None),
            "the body is not valid JSON: EOF while parsing a list at line 1 column 1",
        ),
        (&long, invalid(Some("input")), "the text has 20001 characters and the limit is 20000"),
        (
            r#"{"input":"Hi","model":"kokoto"}"#,
            (404, Some("model"), Some("model_not_found"), Some("false"), None),
            "no model is called 'kokoto'; the nearest are kokoro",
        ),
        (
            r#"{"input":"Hi","voice":"af_haert"}"#,
            invalid(Some("voice")),
            "no voice is called 'af_haert'; the nearest are af_heart; GET /v1/audio/voices lists all",
        ),
        (
            r#"{"input":"Hi","voice":"jf_alpha"}"#,
            invalid_as("speech_part_missing", "voice"),
            "voice 'jf_alpha' speaks Japanese, which needs a dictionary",
        ),
        (
            r#"{"input":"Hi","voice":"fable","language":"fr"}"#,
            invalid(Some("language")),
            "'language' does not fit voice 'bm_fable', which speaks British English (en-GB)",
        ),
        (
            r#"{"input":"Hi","voice":"bm_fable(2)+bm_fable(1)","language":"fr"}"#,
            invalid(Some("language")),
            "'language' does not fit voice 'bm_fable', which speaks British English (en-GB)",
        ),
        (
            r#"{"input":"Hi","response_format":"midi"}"#,
            invalid(Some("response_format")),
            "'response_format' must be one of mp3, wav, pcm, opus, flac, aac, and is 'midi'",
        ),
        (
            r#"{"input":"Hi","speed":5}"#,
            invalid(Some("speed")),
            "'speed' must be from 0.25 to 4, and is 5",
        ),
        (
            &whole,
            invalid(Some("stream")),
            "'stream' is false, the whole answer would be about 602 s of sound, and the limit is \
             600 s; leave 'stream' out or send less text",
        ),
    ];
    for (body, expected, message) in rows {
        check_refusal(&server.post_speech(body).await, *expected, message);
    }
    assert_eq!(server.model.asked(), [], "nothing reached the model");
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn models_that_refuse_or_fail_before_the_first_sound() {
    let seconds = Duration::from_secs;
    let server = Server::start().await;
    let missing_part = ModelError::SpeechPartMissing {
        voice: "ef_dora".to_owned(),
        language: Language::Spanish,
        needs: "espeak-ng: install it".to_owned(),
    };
    let rows: [(ModelError, Row); 10] = [
        (ModelError::EmptyText, invalid(Some("input"))),
        (ModelError::TextTooLong { chars: 9, chars_max: 8 }, invalid(Some("input"))),
        (ModelError::MissingField { field: "instructions" }, invalid(Some("instructions"))),
        (
            ModelError::InvalidField { field: "voice", reason: "is a blend".to_owned() },
            invalid(Some("voice")),
        ),
        (missing_part, invalid_as("speech_part_missing", "voice")),
        (ModelError::Busy { retry_after: seconds(7) }, unavailable("queue_full", Some("7"))),
        (
            ModelError::Loading { retry_after: Duration::from_millis(1200) },
            unavailable("model_loading", Some("2")),
        ),
        (
            ModelError::NotBuilt { engine: "rten" },
            (501, None, Some("not_built"), Some("false"), None),
        ),
        (worker_lost(), unavailable("worker_lost", Some("1"))),
        (
            ModelError::EngineFailed { engine: "rten", detail: "no memory".to_owned() },
            (500, None, None, None, None),
        ),
    ];
    for (error, expected) in rows {
        let message = error.to_string();
        server.model.stage_refusal(error.clone());
        check_refusal(&server.post_speech(r#"{"input":"Hi"}"#).await, expected, &message);
        // For the client, the same failure instead of the first sound looks the same.
        server.model.stage_all([Err(error)]);
        check_refusal(&server.post_speech(r#"{"input":"Hi"}"#).await, expected, &message);
    }
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn an_answer_without_any_sound_is_no_answer() {
    let server = Server::start().await;
    server.model.stage_all([sound(0.0, 0)]);
    let answer = server.post_speech(r#"{"input":"🙂","response_format":"wav"}"#).await;
    assert_eq!(answer.error("param"), (400, json!("input")));
}

#[tokio::test]
async fn a_model_that_needs_instructions_is_not_asked_without() {
    let model = StagedSpeech::new().with_support(InstructionSupport::Required);
    let server = Server::start_voice(model, ServerOptions::default()).await;
    let answer = server.post_speech(r#"{"input":"Hi","instructions":" "}"#).await;
    let message = "this model needs 'instructions' and the request has none";
    check_refusal(&answer, invalid(Some("instructions")), message);
    assert_eq!(server.model.asked(), []);
}

#[tokio::test]
async fn a_model_that_says_nothing_is_not_waited_for_forever() {
    let sound_time_max = Duration::from_millis(50);
    let options = ServerOptions { sound_time_max, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let sender = server.model.stage();
    let answer = server.post_speech(r#"{"input":"Hi"}"#).await;
    let expected = (504, None, Some("timeout"), None, None);
    check_refusal(&answer, expected, "the model produced no sound for 0 s");
    assert!(sender.is_closed(), "its work was stopped");
}

#[tokio::test]
async fn when_the_slots_are_taken_the_next_client_reads_how_long() {
    let server = Server::start().await;
    let body = format!(r#"{{"input":"{}","response_format":"pcm"}}"#, "a".repeat(300));
    let mut held = Vec::new();
    for _ in 0..2 {
        let sender = server.model.stage();
        let client = server.speak(&body).await;
        held.push((sender, client));
    }
    until(async || (server.model.asked().len() >= held.len()).then_some(())).await;
    // Each text of 300 characters is 20 s of sound, with half a second of work per second. The two share the model.
    let expected = unavailable("queue_full", Some("20"));
    check_refusal(
        &server.post_speech(&body).await,
        expected,
        "the model is busy; try again in 20 s",
    );
    let (sender, mut client) = held.pop().expect("a held place");
    sender.send(sound(0.1, 24_000)).await.expect("a listener");
    assert_eq!(client.head().await.status, 200);
    drop(sender);
    client.chunks().await;
    server.model.stage_all([sound(0.1, 100)]);
    assert_eq!(server.post_speech(&body).await.status(), 200, "a place is free again");
}

#[tokio::test]
async fn a_hob_without_models_says_so() {
    let server = Server::start_registry(Registry::default(), ServerOptions::default()).await;
    let message = "this hob has no speech model; get one with `hob pull`";
    let expected = unavailable("no_target", None);
    check_refusal(&server.post_speech(r#"{"input":"Hi"}"#).await, expected, message);
    check_refusal(&server.get("/v1/audio/voices").await, expected, message);
    assert_eq!(server.get("/ready").await.status(), 503);
    assert_eq!(server.get("/v1/models").await.json(), json!({"object": "list", "data": []}));
}

#[tokio::test]
async fn a_default_that_is_not_there_is_named() {
    let options =
        ServerOptions { default_speech: Some("other".to_owned()), ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let expected = (404, Some("model"), Some("model_not_found"), Some("false"), None);
    check_refusal(
        &server.post_speech(r#"{"input":"Hi"}"#).await,
        expected,
        "no model is called 'other'; GET /v1/models lists all",
    );
}

#[tokio::test]
async fn bodies_that_are_not_json() {
    let server = Server::start().await;
    let path = "/v1/audio/speech";
    let form = "Content-Type: Application/X-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n";
    let form = post_with(path, form, "input=Hi");
    check_refusal(
        &server.ask(form).await,
        (415, None, None, Some("false"), None),
        "the body must be application/json, and is 'application/x-www-form-urlencoded'",
    );
    check_refusal(
        &server.post_speech(b"{\"input\":\"\xff\"}").await,
        invalid(None),
        "the body is not valid UTF-8: byte 10 begins no character",
    );
    let curls = "Content-Type: application/x-www-form-urlencoded\r\n";
    for content_type in ["", "Content-Type: application/json; charset=utf-8\r\n", curls] {
        server.model.stage_all([sound(0.1, 100)]);
        let answer = server.ask(post_with(path, content_type, r#"{"input":"Hi"}"#)).await;
        assert_eq!(answer.status(), 200, "{content_type}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_refused_by_its_compression() {
    let server = Server::start().await;
    let form = "Content-Type: multipart/form-data; boundary=b\r\nContent-Encoding: gzip\r\n";
    for (path, headers, coding) in [
        ("/v1/audio/speech", "Content-Encoding: GZIP\r\n", "gzip"),
        ("/v1/chat/completions", "Content-Encoding: zstd\r\n", "zstd"),
        ("/v1/audio/transcriptions", form, "gzip"),
    ] {
        let answer = server.ask(post_with(path, headers, b"\x1f\x8b\x08")).await;
        let message = format!("the body is compressed with {coding}; send it without compression");
        check_refusal(&answer, (415, None, None, Some("false"), None), &message);
        assert_eq!(answer.header("connection"), Some("close"), "{path}");
    }
    server.model.stage_all([sound(0.1, 100)]);
    let plain =
        post_with("/v1/audio/speech", "Content-Encoding: identity\r\n", r#"{"input":"Hi"}"#);
    assert_eq!(server.ask(plain).await.status(), 200);
}

const TOO_LARGE: Row = (413, None, None, Some("false"), None);
const TOO_LARGE_MESSAGE: &str = "the body is larger than the limit of 33554432 bytes";

#[tokio::test]
async fn a_hundred_megabytes_are_refused_before_they_are_read() {
    let server = Server::start().await;
    let body = format!(r#"{{"input":"{}"}}"#, "a".repeat(100 << 20));
    check_refusal(&server.post_speech(&body).await, TOO_LARGE, TOO_LARGE_MESSAGE);
    // The body is announced and never sent.
    let announced = "Host: localhost\r\nContent-Length: 99999999999\r\n";
    let announced = request("POST", "/v1/audio/speech", announced);
    check_refusal(&server.ask(announced).await, TOO_LARGE, TOO_LARGE_MESSAGE);
}

#[tokio::test]
async fn a_large_body_of_unknown_length_is_cut_off() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let headers = "Host: localhost\r\nTransfer-Encoding: chunked\r\n";
    client.send(request("POST", "/v1/audio/speech", headers)).await;
    for _ in 0..33 {
        client.send(format!("{:x}\r\n{}\r\n", 1 << 20, "a".repeat(1 << 20))).await;
    }
    check_refusal(&client.answer().await, TOO_LARGE, TOO_LARGE_MESSAGE);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let read_time_max = Duration::from_millis(50);
    let options = ServerOptions { read_time_max, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let mut client = server.client().await;
    let request = post("/v1/audio/speech", r#"{"input":"Hi"}"#);
    client.send(&request[..request.len() - 2]).await;
    let expected = (408, None, None, None, None);
    check_refusal(&client.answer().await, expected, "the body did not arrive within 0 s");
}

#[tokio::test]
async fn headers_that_do_not_come_end_the_connection() {
    let header_time_max = Duration::from_millis(50);
    let options = ServerOptions { header_time_max, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let mut client = server.send("GET /health HTTP/1.1\r\nHost: loc").await;
    assert!(client.rest().await.is_err(), "a reset, and no answer");
}

#[tokio::test]
async fn a_chunk_that_is_none_is_refused() {
    let server = Server::start().await;
    let headers = "Host: localhost\r\nTransfer-Encoding: chunked\r\n";
    let broken = request("POST", "/v1/audio/speech", headers) + "zz\r\n";
    check_refusal(&server.ask(broken).await, invalid(None), "the body ended too early");
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let server = Server::start().await;
    let long = format!("Host: localhost\r\nX-Long: {}\r\n", "a".repeat(100 << 10));
    assert_eq!(server.ask(request("GET", "/health", &long)).await.status(), 431);
    let many: String = (0..200).map(|number| format!("X-{number}: a\r\n")).collect();
    let many = format!("Host: localhost\r\n{many}");
    assert_eq!(server.ask(request("GET", "/health", &many)).await.status(), 431);
}

#[tokio::test]
async fn idle_connections_do_not_block_other_clients() {
    let options = ServerOptions { connections_max: 8, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        let mut client = server.client().await;
        // Half of the clients slowly send a part of a request.
        if idle.len() % 2 == 0 {
            client.send("GET /health HTTP/1.1\r\nHost: loc").await;
        }
        idle.push(client);
    }
    for _ in 0..20 {
        assert_eq!(server.ask(get("/health")).await.status(), 200);
    }
}

#[tokio::test]
async fn a_request_that_goes_in_circles_is_ended() {
    let server = Server::start().await;
    let through = |hops: u32| {
        request("GET", "/health", &format!("Host: localhost\r\nX-Hob-Hops: {hops}\r\n"))
    };
    assert_eq!(server.ask(through(4)).await.status(), 200);
    let answer = server.ask(through(5)).await;
    assert_eq!((answer.status(), answer.header("x-should-retry")), (508, Some("false")));
    assert!(answer.text().contains("loop_detected"), "{}", answer.text());
}
