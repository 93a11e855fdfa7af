//! Speech answers: bytes, headers, the time of each part, and how they end.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::{
    InstructionSupport, ModelError, PhonemeTiming, SpeechEvent, SpeechPace, WordTiming,
};
use hob_server::ServerOptions;
use serde_json::{Value, json};

use crate::client::{no_hang, post, send_all, until};
use crate::log::Log;
use crate::model::{Asked, StagedSpeech, pcm, sound, worker_lost};
use crate::server::Server;

const PCM: &str = r#"{"model":"kokoro","input":"Hello.","voice":"nova","response_format":"pcm"}"#;

#[tokio::test]
async fn sound_leaves_as_it_comes_and_nothing_before_it() {
    let server = Server::start().await;
    let sender = server.model.stage();
    let mut client = server.speak(PCM).await;
    // An empty window and a timing are not sound: 200 must wait for the next event.
    let words = Ok(SpeechEvent::Words(Vec::new()));
    send_all(&sender, [sound(0.0, 0), words, sound(0.5, 2400)]).await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    for (name, value) in [
        ("content-type", "audio/pcm"),
        ("transfer-encoding", "chunked"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
        ("x-hob-voice", "af_nova"),
        ("x-hob-target", "kokoro"),
    ] {
        assert_eq!(head.header(name), Some(value), "{name}");
    }
    assert!(head.header("x-hob-ttfa-ms").is_some_and(|ms| ms.parse::<u64>().is_ok()), "{head:?}");
    assert!(head.header("x-request-id").is_some_and(|id| id.starts_with("hob-")), "{head:?}");
    assert_eq!(head.header("x-hob-ignored"), None);
    assert_eq!(client.chunk().await.expect("a chunk"), Some(pcm(0.5, 2400)));
    sender.send(sound(-0.25, 100)).await.expect("a listener");
    assert_eq!(client.chunk().await.expect("a chunk"), Some(pcm(-0.25, 100)));
    drop(sender);
    assert_eq!(client.chunk().await.expect("a clean end"), None);
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn one_connection_carries_one_answer_after_another() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for value in [0.25, 0.5] {
        server.model.stage_all([sound(value, 30_000)]);
        client.speak(PCM).await;
        assert_eq!(client.answer().await.body, pcm(value, 30_000));
    }
}

#[tokio::test]
async fn two_clients_get_each_their_own() {
    let server = Server::start().await;
    let mut clients = Vec::new();
    for value in [0.25, 0.5] {
        let sender = server.model.stage();
        let mut client = server.speak(PCM).await;
        sender.send(sound(value, 1000)).await.expect("a listener");
        client.head().await;
        clients.push((sender, client, value));
    }
    for (sender, _, value) in &clients {
        sender.send(sound(-value, 1000)).await.expect("a listener");
    }
    for (sender, mut client, value) in clients {
        drop(sender);
        assert_eq!(client.chunks().await, [pcm(value, 1000), pcm(-value, 1000)].concat());
    }
}

#[tokio::test]
async fn every_format_has_its_type_and_its_first_bytes() {
    let server = Server::start().await;
    for (format, content_type, magic) in [
        ("mp3", "audio/mpeg", &b"\xff"[..]),
        ("wav", "audio/wav", b"RIFF\xff\xff\xff\xff"),
        ("flac", "audio/flac", b"fLaC"),
        ("opus", "audio/ogg", b"OggS"),
        ("aac", "audio/aac", b"\xff"),
    ] {
        server.model.stage_all([sound(0.1, 24_000), sound(0.2, 24_000)]);
        let body = format!(r#"{{"input":"Hello.","response_format":"{format}"}}"#);
        let answer = server.post_speech(&body).await;
        assert_eq!(answer.header("content-type"), Some(content_type));
        assert!(answer.body.starts_with(magic), "{format}: {:?}", &answer.body[..8]);
        assert!(answer.body.len() > 100, "{format}");
    }
}

/// OpenAI's clients play `pcm` at 24 kHz, and Opus has no 22,050 Hz.
#[tokio::test]
async fn a_voice_of_another_rate_is_heard_at_its_own_pitch() {
    let model = StagedSpeech::new().with_rate(22_050);
    let server = Server::start_voice(model, ServerOptions::default()).await;
    let ask = async |format: &str, is_streamed: bool| {
        server.model.stage_all([sound(0.5, 11_025), sound(0.5, 11_025)]);
        let body = json!({"input": "Hi.", "response_format": format, "stream": is_streamed});
        let answer = server.post_speech(body.to_string()).await;
        assert_eq!(answer.status(), 200, "{format}");
        answer.body
    };
    for is_streamed in [true, false] {
        let raw = ask("pcm", is_streamed).await;
        assert_eq!(raw.len(), 2 * 24_000, "a second");
        let middle = i16::from_le_bytes([raw[24_000], raw[24_001]]);
        assert!((16_300..16_470).contains(&middle), "{middle}");
    }
    assert!(ask("opus", true).await.starts_with(b"OggS"));
    assert_eq!(ask("wav", true).await[24..28], 22_050u32.to_le_bytes());
}

#[tokio::test]
async fn a_whole_file_has_its_length_and_exact_sizes() {
    let server = Server::start().await;
    server.model.stage_all([sound(0.5, 1000), sound(0.25, 500)]);
    let answer =
        server.post_speech(r#"{"input":"Hello.","response_format":"wav","stream":false}"#).await;
    assert_eq!(answer.header("content-length"), Some("3044"));
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.body[4..8], 3036u32.to_le_bytes());
    assert_eq!(answer.body[40..44], 3000u32.to_le_bytes());
    assert_eq!(answer.body[44..], [pcm(0.5, 1000), pcm(0.25, 500)].concat());
}

#[tokio::test]
async fn a_whole_file_that_fails_late_is_still_refused() {
    let server = Server::start().await;
    server.model.stage_all([sound(0.5, 1000), Err(worker_lost())]);
    let answer = server.post_speech(r#"{"input":"Hello.","stream":false}"#).await;
    assert_eq!(answer.error("code"), (503, json!("worker_lost")));
}

/// The data of each event, decoded.
fn events(body: &[u8]) -> Vec<Value> {
    let text = str::from_utf8(body).expect("text");
    let datas = text.split_terminator("\n\n").map(|event| event.strip_prefix("data: "));
    datas.map(|data| serde_json::from_str(data.expect("data")).expect("JSON")).collect()
}

#[tokio::test]
async fn events_carry_the_file_and_then_what_it_took() {
    let server = Server::start().await;
    server.model.stage_all([sound(0.5, 24_000), sound(0.25, 1200)]);
    let body = r#"{"input":"Grüße.","response_format":"pcm","stream_format":"sse"}"#;
    let answer = server.post_speech(body).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let mut events = events(&answer.body);
    let done = events.pop().expect("a last event");
    let usage = json!({"input_tokens": 6, "output_tokens": 21, "total_tokens": 27});
    assert_eq!(done, json!({"type": "speech.audio.done", "usage": usage}));
    let mut file = Vec::new();
    for event in events {
        assert_eq!(event["type"], "speech.audio.delta");
        file.extend(STANDARD.decode(event["audio"].as_str().expect("a string")).expect("base64"));
    }
    assert_eq!(file, [pcm(0.5, 24_000), pcm(0.25, 1200)].concat());
}

fn word(span: Range<usize>, start_s: f32, end_s: f32) -> Result<SpeechEvent, ModelError> {
    let phonemes = vec![PhonemeTiming { phoneme: "ˈO".to_owned(), start_s, end_s }];
    Ok(SpeechEvent::Words(vec![WordTiming { span, start_s, end_s, phonemes }]))
}

/// "Grüße, $5." in two pieces of sound. The second word is two spoken ones.
fn stage_words(server: &Server) {
    let first = [word(0..7, 0.0, 0.5), sound(0.5, 12_000)];
    let second = [word(9..11, 0.5, 0.75), word(9..11, 0.75, 1.0), sound(0.25, 12_000)];
    server.model.stage_all(first.into_iter().chain(second));
}

fn timed_words() -> [Value; 2] {
    let greeting = json!({
        "word": "Grüße", "start_time": 0.0, "end_time": 0.5, "start_byte": 0, "end_byte": 7,
    });
    let money = json!({
        "word": "$5", "start_time": 0.5, "end_time": 1.0, "start_byte": 9, "end_byte": 11,
    });
    [greeting, money]
}

#[tokio::test]
async fn events_have_the_times_of_the_words_that_begin_in_them() {
    let server = Server::start().await;
    stage_words(&server);
    let body = r#"{"input":"Grüße, $5.","response_format":"pcm","stream_format":"sse"}"#;
    let events = events(&server.post_speech(body).await.body);
    let [greeting, money] = timed_words();
    assert_eq!(events[0]["timestamps"], json!([greeting]));
    assert_eq!(events[1]["timestamps"], json!([money]));
    assert_eq!(events[2]["type"], "speech.audio.done");
}

#[tokio::test]
async fn words_have_their_phonemes_where_these_are_asked_for() {
    let server = Server::start().await;
    stage_words(&server);
    let body = r#"{"input":"Grüße, $5.","response_format":"pcm","stream_format":"sse","return_phonemes":true}"#;
    let events = events(&server.post_speech(body).await.body);
    let phoneme = |start_time: f64, end_time: f64| json!({"phoneme": "ˈO", "start_time": start_time, "end_time": end_time});
    assert_eq!(events[0]["timestamps"][0]["phonemes"], json!([phoneme(0.0, 0.5)]));
    let two = json!([phoneme(0.5, 0.75), phoneme(0.75, 1.0)]);
    assert_eq!(events[1]["timestamps"][0]["phonemes"], two);
}

#[tokio::test]
async fn captioned_speech_is_lines_of_sound_and_words() {
    let server = Server::start().await;
    stage_words(&server);
    let body = r#"{"input":"Grüße, $5.","response_format":"pcm"}"#;
    let answer = server.ask(post("/dev/captioned_speech", body)).await;
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [greeting, money] = timed_words();
    let piece = |value: f32, word: Value| {
        let audio = STANDARD.encode(pcm(value, 12_000));
        json!({"audio": audio, "audio_format": "audio/pcm", "timestamps": [word]})
    };
    assert_eq!(lines, [piece(0.5, greeting), piece(0.25, money)]);
}

#[tokio::test]
async fn captioned_speech_is_one_object_without_streaming() {
    let server = Server::start().await;
    for (field, words) in [("", json!(timed_words())), (r#","return_timestamps":false"#, json!([]))]
    {
        stage_words(&server);
        let fields = r#""input":"Grüße, $5.","response_format":"pcm","stream":false"#;
        let body = format!("{{{fields}{field}}}");
        let answer = server.ask(post("/dev/captioned_speech", &body)).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let audio = STANDARD.encode([pcm(0.5, 12_000), pcm(0.25, 12_000)].concat());
        let expect = json!({"audio": audio, "audio_format": "audio/pcm", "timestamps": words});
        assert_eq!(answer.json(), expect);
    }
}

#[tokio::test]
async fn captioned_speech_that_fails_has_no_clean_end() {
    let server = Server::start().await;
    let sender = server.model.stage();
    let mut client = server
        .send(post("/dev/captioned_speech", r#"{"input":"Hi.","response_format":"pcm"}"#))
        .await;
    sender.send(sound(0.1, 100)).await.expect("a listener");
    assert_eq!(client.head().await.status, 200);
    client.chunk().await.expect("a line");
    sender.send(Err(worker_lost())).await.expect("a listener");
    let end = client.chunk().await;
    assert!(end.is_err(), "{end:?}");
}

#[tokio::test]
async fn an_event_says_that_the_answer_failed() {
    let server = Server::start().await;
    server.model.stage_all([sound(0.5, 100), Err(worker_lost())]);
    let body = r#"{"input":"Hi.","response_format":"pcm","stream_format":"sse"}"#;
    let events = events(&server.post_speech(body).await.body);
    let error = json!({
        "message": "the speech worker ended unexpectedly: killed by signal 9",
        "type": "server_error",
        "param": null,
        "code": "worker_lost",
    });
    assert_eq!(events[1..], [json!({"type": "error", "error": error})]);
}

#[tokio::test]
async fn a_failure_after_the_start_is_no_clean_end() {
    let server = Server::start().await;
    let sender = server.model.stage();
    let mut client = server.speak(PCM).await;
    send_all(&sender, [0.1, 0.2].map(|value| sound(value, 100))).await;
    assert_eq!(client.head().await.status, 200);
    assert_eq!(client.chunk().await.expect("a chunk"), Some(pcm(0.1, 100)));
    assert_eq!(client.chunk().await.expect("a chunk"), Some(pcm(0.2, 100)));
    sender.send(Err(worker_lost())).await.expect("a listener");
    let end = client.chunk().await;
    assert!(end.is_err(), "{end:?}");
    no_hang(sender.closed()).await;
    assert_eq!(server.in_flight(), 0);
}

/// Proxies use HTTP/1.0 by default. There the end of the connection is the end of the answer.
#[tokio::test]
async fn a_failure_is_seen_over_http_1_0_too() {
    let server = Server::start().await;
    let sender = server.model.stage();
    let mut client = server.client().await;
    let request = post("/v1/audio/speech", PCM);
    let request = String::from_utf8(request).expect("text").replace("HTTP/1.1", "HTTP/1.0");
    client.send(request).await;
    sender.send(sound(0.1, 100)).await.expect("a listener");
    assert_eq!(client.head().await.status, 200);
    sender.send(Err(worker_lost())).await.expect("a listener");
    let rest = client.rest().await;
    assert_eq!(rest.expect_err("a reset").kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn samples_that_are_no_numbers_fail_the_answer() {
    let server = Server::start().await;
    server.model.stage_all([sound(f32::NAN, 10)]);
    let answer = server.post_speech(PCM).await;
    assert_eq!(answer.status(), 500);
    assert_eq!(answer.json()["error"]["message"], "sample 0 is not a finite number");
}

#[tokio::test]
async fn a_client_that_left_is_not_spoken_to() {
    let server = Server::start().await;
    // Before the first sound, in the middle, and while the client reads nothing.
    let sender = server.model.stage();
    let client = server.speak(PCM).await;
    until(async || (!server.model.asked().is_empty()).then_some(())).await;
    client.leave(&sender).await;

    let sender = server.model.stage();
    let mut client = server.speak(PCM).await;
    sender.send(sound(0.1, 100)).await.expect("a listener");
    client.head().await;
    client.leave(&sender).await;
    server.until_in_flight(0).await;
    assert_eq!(server.backlog(), 0.0);
    let line = r#"hob_speech_answers_total{model="kokoro",outcome="abandoned"} 2"#;
    server.get("/metrics").await.has_lines(&[line]);
}

#[tokio::test]
async fn five_hundred_clients_that_leave_leave_nothing_behind() {
    let server = Server::start().await;
    for turn in 0..500 {
        let request = post("/v1/audio/speech", PCM);
        let mut client = server.client().await;
        if turn % 5 == 0 {
            client.send(&request[..turn * request.len() / 500]).await;
            continue;
        }
        let sender = server.model.stage();
        client.send(request).await;
        // The state when the client leaves: requested, begun, under way, or with an unread window.
        if turn % 5 > 1 {
            sender.send(sound(0.1, 100)).await.expect("a listener");
            client.head().await;
        } else {
            let count = turn - turn / 5;
            until(async || (server.model.asked().len() >= count).then_some(())).await;
        }
        if turn % 5 > 2 {
            client.chunk().await.expect("a chunk");
        }
        if turn % 5 > 3 {
            sender.send(sound(0.1, 100_000)).await.expect("a listener");
        }
        client.leave(&sender).await;
    }
    server.until_in_flight(0).await;
    assert_eq!(server.backlog(), 0.0);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_holds_the_model_back_and_is_let_go() {
    let stall_time_max = std::time::Duration::from_millis(200);
    let options = ServerOptions { stall_time_max, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let sender = server.model.stage();
    let _client = server.speak(PCM).await;
    let mut windows = 0;
    while no_hang(sender.send(sound(0.1, 240_000))).await.is_ok() {
        windows += 1;
    }
    // Sockets hold a few megabytes. A server that buffers unread sound would take all windows.
    assert!(windows < 200, "{windows} windows of 480 kB were taken");
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn the_model_gets_what_was_asked() {
    let server = Server::start().await;
    let rows = [
        (r#"{"input":"Hi"}"#, "af_heart", 1.0),
        (r#"{"input":"Hi","model":"narrator","voice":"bm_fable","speed":1.5}"#, "bm_fable", 1.5),
        (r#"{"input":"Hi","model":"tts-1-hd","voice":{"id":"fable"}}"#, "bm_fable", 1.0),
        // Names that clients use for Kokoro-FastAPI and for the repository.
        (r#"{"input":"Hi","model":"kokoro_v1"}"#, "af_heart", 1.0),
        (r#"{"input":"Hi","model":"hexgrad/Kokoro-82M"}"#, "af_heart", 1.0),
        (
            r#"{"input":"Hi","model":"gpt-4o-mini-tts","lang_code":"b","voice":"fable"}"#,
            "bm_fable",
            1.0,
        ),
    ];
    let mut expected = Vec::new();
    for (body, voice, speed) in rows {
        server.model.stage_all([sound(0.1, 100)]);
        assert_eq!(server.post_speech(body).await.status(), 200, "{body}");
        expected.push(Asked {
            text: "Hi".to_owned(),
            voice: voice.to_owned(),
            speed,
            instructions: None,
            pace: SpeechPace::Live,
        });
    }
    assert_eq!(server.model.asked(), expected);
}

/// The same request has the same bytes.
#[tokio::test]
async fn what_is_not_streamed_is_spoken_in_steps_that_do_not_follow_the_load() {
    let server = Server::start().await;
    let (speech, captioned) = ("/v1/audio/speech", "/dev/captioned_speech");
    for (path, fields, pace) in [
        (speech, "", SpeechPace::Live),
        (speech, r#","stream_format":"sse""#, SpeechPace::Live),
        (speech, r#","stream":false"#, SpeechPace::Steady),
        (captioned, "", SpeechPace::Live),
        (captioned, r#","stream":false"#, SpeechPace::Steady),
    ] {
        server.model.stage_all([sound(0.1, 100)]);
        let body = format!(r#"{{"input":"Hi","response_format":"pcm"{fields}}}"#);
        assert_eq!(server.ask(post(path, &body)).await.status(), 200, "{path}: {body}");
        let asked = server.model.asked().pop().expect("a request");
        assert_eq!(asked.pace, pace, "{path}: {body}");
    }
}

#[tokio::test]
async fn parameters_without_effect_are_named() {
    let server = Server::start().await;
    server.model.stage_all([sound(0.1, 100)]);
    let body = r#"{"input":"Hi","instructions":"softly","user":"me","return_timestamps":true}"#;
    let answer = server.post_speech(body).await;
    assert_eq!(answer.header("x-hob-ignored"), Some("return_timestamps,user,instructions"));
}

#[tokio::test]
async fn instructions_reach_a_model_that_takes_them() {
    for support in [InstructionSupport::Taken, InstructionSupport::Required] {
        let model = StagedSpeech::new().with_support(support);
        let server = Server::start_voice(model, ServerOptions::default()).await;
        server.model.stage_all([sound(0.1, 100)]);
        let answer = server.post_speech(r#"{"input":"Hi","instructions":"softly"}"#).await;
        assert_eq!(answer.header("x-hob-ignored"), None);
        assert_eq!(server.model.asked()[0].instructions.as_deref(), Some("softly"));
    }
}

#[tokio::test]
async fn volume_is_what_was_asked() {
    let server = Server::start().await;
    server.model.stage_all([sound(0.25, 100)]);
    let body = r#"{"input":"Hi","response_format":"pcm","volume_multiplier":2}"#;
    assert_eq!(server.post_speech(body).await.body, pcm(0.5, 100));
}

#[tokio::test]
async fn requests_are_logged_and_texts_are_not() {
    let log = Log::default();
    let _guard = log.listen();
    let server = Server::start().await;
    server.model.stage_all([sound(0.1, 100)]);
    server.model.stage_refusal(ModelError::EmptyText);
    let body = r#"{"input":"xyzzy-secret","instructions":"xyzzy-secret","response_format":"pcm"}"#;
    assert_eq!(server.post_speech(body).await.status(), 200);
    assert_eq!(server.post_speech(body).await.status(), 400);
    assert_eq!(server.post_speech(r#"{"input":["xyzzy-secret"]}"#).await.status(), 400);
    let log = log.text();
    assert!(log.contains("audio/speech") && log.contains("status=400"), "{log}");
    assert!(!log.contains("xyzzy"), "{log}");
}
