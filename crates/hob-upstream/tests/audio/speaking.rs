//! Speech: the requests to other servers, how their bytes become samples, and which target speaks when one fails.
//! Only one test waits for a real (short) silence of a socket; all others use tokio's paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::ready;
use futures::{StreamExt, stream};
use hob_core::scripted::{SpeechOf, american_voice};
use hob_core::{
    Admission, Clock, Fault, ModelError, RegisteredModel, Registry, Resolve, SoundSeconds, Speech,
    SpeechEvent, SpeechModel, SpeechRequest, SpeechStream, SpeechText, Speed,
};
use hob_upstream::{Gateway, UpstreamKind};

use crate::stage::{
    End, Play, Stage, alias, chunked, gateway_of, local_voice, request, speak, status, two,
    upstream, whole,
};

const PCM: &str = "audio/pcm";

fn audio(samples: &[f32]) -> Result<SpeechEvent, ModelError> {
    Ok(SpeechEvent::Audio(samples.to_vec()))
}

fn good() -> axum::http::Response<axum::body::Body> {
    whole(PCM, vec![0, 0x40])
}

fn wav(channels: u8, rate_hz: u32, sound: &[u8]) -> Vec<u8> {
    let mut wav = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0".to_vec();
    wav.extend([channels, 0]);
    wav.extend(rate_hz.to_le_bytes());
    wav.extend([0, 0, 0, 0, 0, 0, 16, 0]);
    wav.extend(b"data\xff\xff\xff\xff");
    wav.extend(sound);
    wav
}

#[tokio::test]
async fn samples_are_handed_on_as_they_come() {
    let server = Stage::of([chunked(PCM, &[&[0, 0x40, 0], &[0xc0, 0], &[0x20]], End::Well)]).await;
    let gateway = two(&server, &server);
    let mut asked = request("Hello there");
    asked.speed = Speed::new(1.5).expect("a speed");
    asked.instructions = Some("softly".to_owned());
    asked.trace.note(|data| data.hops = 2);
    let trace = asked.trace.clone();
    let (rate_hz, events) = speak(&gateway, "a/m", asked).await.expect("speech");
    assert_eq!(rate_hz, 24_000);
    let samples: Vec<f32> = events
        .into_iter()
        .flat_map(|event| match event {
            Ok(SpeechEvent::Audio(samples)) => samples,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(samples, [0.5, -0.5, 0.25]);
    let asked = server.asked().remove(0);
    assert_eq!((asked.path.as_str(), asked.hops.as_deref()), ("/v1/audio/speech", Some("3")));
    let expected = r#"{"model":"m","input":"Hello there","voice":"nova","response_format":"pcm","speed":1.5,"instructions":"softly"}"#;
    assert_eq!(asked.text(), expected);
    let data = trace.snapshot();
    assert_eq!((data.target.as_deref(), data.has_begun), (Some("a/m"), true));
}

#[tokio::test]
async fn a_wav_is_understood_at_its_own_rate() {
    for content_type in ["audio/wav", "application/octet-stream", "audio/pcm"] {
        let wav = wav(2, 16_000, &[0, 0x40, 0, 0x20]);
        let (begin, end) = wav.split_at(30);
        let server = Stage::of([chunked(content_type, &[begin, end], End::Well)]).await;
        let spoken = speak(&two(&server, &server), "a/m", request("Hi")).await.expect("speech");
        assert_eq!(spoken, (16_000, vec![audio(&[0.375])]), "{content_type}");
    }
}

#[tokio::test]
async fn a_body_without_sound_is_a_fault_and_the_next_target_is_tried() {
    for (answer, kind) in [
        (whole("text/html", "<html>"), "invalid_answer"),
        (whole("audio/mpeg", "ID3....."), "invalid_answer"),
        (whole("application/octet-stream", "OggS...."), "invalid_answer"),
        (whole("application/json", r#"{"error":{"message":"no voice today"}}"#), "reported"),
        (whole("audio/wav", "RIFF"), "invalid_answer"),
        (whole("audio/wav", wav(1, 192_000, &[0, 0x40])), "invalid_answer"),
        (whole("audio/pcm;rate=192000", "ab"), "invalid_answer"),
        (whole(PCM, ""), "empty_answer"),
        (chunked(PCM, &[], End::Cut), "cut_off"),
        (status(500, r#"{"error":{"message":"out of order"}}"#), "failed"),
        (status(404, r#"{"error":{"message":"no such path"}}"#), "no_such_model"),
        (status(401, r#"{"error":{"message":"who are you"}}"#), "key_refused"),
    ] {
        let (bad, next) = (Stage::of([answer]).await, Stage::of([good()]).await);
        let asked = request("Hi");
        let trace = asked.trace.clone();
        let spoken = speak(&two(&bad, &next), "any", asked).await.expect(kind);
        assert_eq!(spoken.1, [audio(&[0.5])], "{kind}");
        let data = trace.snapshot();
        assert_eq!(data.failed.iter().map(|f| f.kind).collect::<Vec<_>>(), [kind]);
        assert_eq!((data.target.as_deref(), next.hits()), (Some("b/m"), 1), "{kind}");
    }
}

#[tokio::test]
async fn after_the_first_sound_no_other_target_is_tried() {
    let bad = Stage::of([chunked(PCM, &[&[0, 0x40, 0, 0x20]], End::Cut)]).await;
    let next = Stage::of([good()]).await;
    let gateway = two(&bad, &next);
    let (_, events) = speak(&gateway, "any", request("Hi")).await.expect("a beginning");
    let cut = Err(ModelError::upstream("a/m", Fault::CutOff));
    assert_eq!(events, [audio(&[0.5, 0.25]), cut]);
    assert_eq!(next.hits(), 0);
}

#[tokio::test]
async fn when_all_fail_each_is_named() {
    let none = [status(500, r#"{"error":{"message":"no"}}"#), whole(PCM, "")];
    let [a, b] = none;
    let (a, b) = (Stage::of([a]).await, Stage::of([b]).await);
    let failed = speak(&two(&a, &b), "any", request("Hi")).await.expect_err("nobody");
    let ModelError::Unanswered { alias, attempts, .. } = &failed else { panic!("{failed:?}") };
    assert_eq!((alias.as_str(), attempts.len()), ("any", 2));
    assert_eq!(
        failed.to_string(),
        "no target of 'any' answered: a/m: failed: no; b/m: the answer was empty"
    );
}

#[tokio::test]
async fn a_request_s_own_fault_is_passed_on() {
    let bad = Stage::of([status(400, r#"{"error":{"message":"no such voice"}}"#)]).await;
    let next = Stage::of([good()]).await;
    let refused = speak(&two(&bad, &next), "any", request("Hi")).await.expect_err("refused");
    let fault = Fault::Refused { message: "no such voice".to_owned() };
    assert_eq!(refused, ModelError::upstream("a/m", fault));
    assert_eq!(next.hits(), 0);
}

#[tokio::test]
async fn a_field_that_a_server_does_not_know_is_left_out_from_then_on() {
    let message = r#"{"error":{"message":"Unknown parameter: 'instructions'."}}"#;
    let server = Stage::of([status(400, message), good(), good()]).await;
    let gateway = two(&server, &server);
    for _ in 0..2 {
        let mut asked = request("Hi");
        asked.instructions = Some("softly".to_owned());
        speak(&gateway, "a/m", asked).await.expect("speech");
    }
    let has = |asked: &crate::stage::Asked| asked.text().contains("instructions");
    assert_eq!(server.asked().iter().map(has).collect::<Vec<_>>(), [true, false, false]);
}

/// A server may refuse one field after the other, but not the same one again.
#[tokio::test]
async fn each_field_that_a_server_does_not_know_is_left_out() {
    let unknown = |field: &str| {
        status(400, &format!(r#"{{"error":{{"message":"Unknown parameter: '{field}'."}}}}"#))
    };
    let asked = || {
        let speed = Speed::new(1.5).expect("a speed");
        SpeechRequest { speed, instructions: Some("softly".to_owned()), ..request("Hi") }
    };
    let server = Stage::of([unknown("speed"), unknown("instructions"), good()]).await;
    speak(&two(&server, &server), "a/m", asked()).await.expect("speech");
    let server = Stage::of([unknown("speed"), unknown("speed"), good()]).await;
    let refused = speak(&two(&server, &server), "a/m", asked()).await.expect_err("refused");
    assert_eq!(refused.kind(), "unknown_parameter");
    assert_eq!(server.hits(), 2);
}

#[tokio::test]
async fn a_text_that_arrives_is_sent_when_it_is_whole() {
    let server = Stage::of([good()]).await;
    let mut asked = request("");
    let pieces = ["Hel", "lo"].map(str::to_owned);
    asked.text = SpeechText::Arriving(stream::iter(pieces).boxed());
    speak(&two(&server, &server), "any", asked).await.expect("speech");
    assert!(server.asked()[0].text().contains(r#""input":"Hello""#));
    let mut endless = request("");
    endless.text = SpeechText::Arriving(stream::repeat("x".repeat(100_000)).boxed());
    let refused = speak(&two(&server, &server), "any", endless).await.expect_err("too long");
    assert!(matches!(refused, ModelError::TextTooLong { chars_max: 1_000_000, .. }), "{refused}");
}

fn with_voice(model: Arc<dyn SpeechModel>) -> Registry {
    let mut registry = Registry::default();
    registry.add(RegisteredModel::<Speech>::new("own", model, Admission::new(1, 0.1)));
    registry
}

/// `own` is a local voice; `voice` leads to the server of `first`, and then to `own`.
fn with_own(url: &str, own: Arc<dyn SpeechModel>) -> Gateway {
    let upstreams = vec![upstream("first", UpstreamKind::OpenAi, url)];
    let aliases = vec![alias("voice", &["first/m", "own"]), alias("alone", &["own"])];
    gateway_of(upstreams, aliases, &with_voice(own))
}

#[tokio::test]
async fn the_next_speaks_with_the_nearest_voice_that_it_has() {
    let bad = Stage::of([]).await;
    let voices: Arc<Mutex<Vec<String>>> = Arc::default();
    let asked_for = Arc::clone(&voices);
    let own = SpeechOf::new(vec![american_voice("af_heart")], move |request: SpeechRequest| {
        asked_for.lock().expect("no panic").push(request.voice);
        ready(Ok(SpeechStream::new(24_000, stream::iter([audio(&[0.5])]))))
    });
    let gateway = with_own(&bad.url, Arc::new(own));
    let mut asked = request("Hi");
    asked.voice = "marin".to_owned();
    let spoken = speak(&gateway, "voice", asked).await.expect("our own");
    assert_eq!(spoken.1, [audio(&[0.5])]);
    assert_eq!(*voices.lock().expect("no panic"), ["af_heart"]);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let silent = Stage::of([chunked(PCM, &[], End::Never)]).await;
    let mut options = upstream("first", UpstreamKind::OpenAi, &silent.url);
    options.timeouts.first_token = Some(Duration::from_millis(30));
    let mut route = alias("voice", &["first/m", "own"]);
    route.timeouts.first_token = None;
    let own = with_voice(local_voice(Play::Speak));
    let gateway = gateway_of(vec![options], vec![route], &own);
    let asked = request("Hi");
    let trace = asked.trace.clone();
    speak(&gateway, "voice", asked).await.expect("our own");
    assert_eq!(trace.snapshot().failed[0].kind, "first_token_timeout");
}

#[tokio::test(start_paused = true)]
async fn silences_have_their_clocks() {
    for (play, clock, begins) in
        [(Play::Keep, Clock::FirstToken, false), (Play::Stall, Clock::Idle, true)]
    {
        let gateway = with_own("http://127.0.0.1:9", local_voice(play));
        let after = Duration::from_secs(60);
        let fault = Fault::TimedOut { clock, after };
        let spoken = speak(&gateway, "alone", request("Hi")).await;
        if begins {
            let expected = vec![audio(&[0.5]), Err(ModelError::upstream("own", fault))];
            assert_eq!(spoken, Ok((24_000, expected)));
        } else {
            let failed = spoken.expect_err("silence");
            let ModelError::Unanswered { last, .. } = failed else { panic!("{failed:?}") };
            assert_eq!(*last, ModelError::upstream("own", fault));
        }
    }
}

/// The queue of a local voice counts neither as silence nor towards the first token.
#[tokio::test(start_paused = true)]
async fn waiting_in_line_for_a_local_voice_is_no_silence() {
    let mut registry = Registry::default();
    let model = local_voice(Play::InLine(Duration::from_secs(50)));
    let admission = Admission::new(2, 0.1);
    let _ahead = admission.admit(SoundSeconds(60.0)).expect("admitted");
    registry.add(RegisteredModel::<Speech>::new("own", model, admission));
    let mut route = alias("voice", &["own"]);
    route.timeouts.first_token = Some(Duration::from_secs(2));
    route.timeouts.total = Some(Duration::from_secs(600));
    let gateway = gateway_of(Vec::new(), vec![route], &registry);
    let spoken = speak(&gateway, "voice", request("Hi")).await;
    assert_eq!(spoken, Ok((24_000, vec![audio(&[0.5])])));
}

/// Seconds until a refused request may come again, after the first of ten seconds of sound.
async fn retry_after_s(gateway: &Gateway) -> f64 {
    let target = Resolve::<Speech>::resolve(gateway, "alone").expect("a name");
    let mut running = target.model.speak(ten_seconds()).await.expect("speech");
    assert!(running.next().await.is_some());
    let retry_after = match target.model.speak(ten_seconds()).await {
        Err(ModelError::Busy { retry_after }) => Some(retry_after),
        _ => None,
    };
    retry_after.expect("one at a time").as_secs_f64()
}

/// Expected to be ten seconds of sound.
fn ten_seconds() -> SpeechRequest {
    request(&"a".repeat(150))
}

/// Answers through an alias show how fast a voice is, too.
#[tokio::test(start_paused = true)]
async fn a_busy_local_voice_behind_an_alias_says_when_a_place_is_free() {
    let own = local_voice(Play::Slowly(Duration::from_secs(2)));
    let gateway = with_own("http://127.0.0.1:9", own);
    for _ in 0..5 {
        speak(&gateway, "alone", ten_seconds()).await.expect("speech");
    }
    let retry_after_s = retry_after_s(&gateway).await;
    // Nine seconds of sound are left, which take 18 s. The first guess of the pace says 0.9 s.
    assert!((12.0..27.0).contains(&retry_after_s), "{retry_after_s}");
}

/// How long such a text becomes is not known, so more sound than expected says nothing about other texts.
#[tokio::test(start_paused = true)]
async fn texts_that_arrive_do_not_change_what_is_expected_of_others() {
    let own = local_voice(Play::Slowly(Duration::from_millis(100)));
    let gateway = with_own("http://127.0.0.1:9", own);
    for _ in 0..30 {
        let mut asked = request("");
        asked.text = SpeechText::Arriving(stream::iter(["Hello".to_owned()]).boxed());
        speak(&gateway, "alone", asked).await.expect("speech");
    }
    assert_eq!(retry_after_s(&gateway).await, 1.0, "0.9 s, and one second at least");
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_slot() {
    let gateway = with_own("http://127.0.0.1:9", local_voice(Play::Stall));
    let target = Resolve::<Speech>::resolve(&gateway, "alone").expect("a name");
    let mut stream = target.model.speak(request("Hi")).await.expect("speech");
    assert_eq!(stream.next().await, Some(audio(&[0.5])));
    let busy = target.model.speak(request("Hi")).await.expect_err("one at a time");
    assert!(matches!(busy, ModelError::Busy { .. }), "{busy:?}");
    drop(stream);
    assert!(target.model.speak(request("Hi")).await.is_ok());
}
