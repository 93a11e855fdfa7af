//! Spoken texts, rejected requests, and requests that do not affect each other.

use std::collections::BTreeMap;

use futures::stream;
use hob_core::{ModelError, ModelState, SpeechModel, SpeechText, Speed, WordTiming};
use hob_engines::speech::scripted::expected;

use super::*;

const TEXT: &str = "The first unit is here. And then a second one. Third";

#[tokio::test]
async fn a_text_is_said_whole_with_its_pauses_and_its_words() {
    let worker = ready(options()).await;
    let whole = say(&worker, "Hé you. Me", "af_plain").await;
    assert_eq!(whole.samples, expected("Hé you. Me", "af_plain", Speed::NORMAL));
    assert_eq!(whole.error, None);
    let word = |span, start_s, end_s| WordTiming { span, start_s, end_s, phonemes: Vec::new() };
    // 10 ms for each character, and 100 ms between the units.
    let expect = [word(0..3, 0.0, 0.02), word(4..8, 0.03, 0.07), word(9..11, 0.18, 0.2)];
    assert_eq!(whole.words.len(), expect.len());
    for (word, expect) in whole.words.iter().zip(expect) {
        assert_eq!(word.span, expect.span);
        assert!((word.start_s - expect.start_s).abs() < 1e-5, "{word:?}");
        assert!((word.end_s - expect.end_s).abs() < 1e-5, "{word:?}");
    }
}

#[tokio::test]
async fn speed_is_passed_on_and_pauses_follow_it() {
    let worker = ready(options()).await;
    let speed = Speed::new(2.0).expect("in range");
    let stream = worker.speak(SpeechRequest { speed, ..request(TEXT, "af_plain") }).await;
    let stream = stream.expect("accepted");
    assert_eq!(stream.sample_rate_hz, 24_000);
    assert_eq!(read(stream).await.samples, expected(TEXT, "af_plain", speed));
}

#[tokio::test]
async fn a_text_that_arrives_in_pieces_sounds_the_same() {
    let worker = ready(options()).await;
    let whole = say(&worker, TEXT, "af_plain").await;
    let pieces: Vec<String> = TEXT.chars().map(String::from).collect();
    let text = SpeechText::Arriving(stream::iter(pieces).boxed());
    let stream = worker.speak(SpeechRequest { text, ..request("", "af_plain") }).await;
    assert_eq!(read(stream.expect("accepted")).await, whole);
}

#[tokio::test]
async fn sound_comes_before_the_rest_of_the_text() {
    let worker = ready(options()).await;
    let (more, text) = futures::channel::mpsc::channel(1);
    let mut more = more;
    more.try_send("Now. ".to_owned()).expect("room");
    let text = SpeechText::Arriving(text.boxed());
    let stream = worker.speak(SpeechRequest { text, ..request("", "af_plain") }).await;
    let mut stream = stream.expect("accepted");
    let mut samples = first_sound(&mut stream).await;
    more.try_send("Later.".to_owned()).expect("room");
    drop(more);
    samples.extend(read(stream).await.samples);
    assert_eq!(samples, expected("Now. Later.", "af_plain", Speed::NORMAL));
}

#[tokio::test]
async fn simultaneous_clients_get_exactly_their_own_sound() {
    let worker = ready(options()).await;
    let text = |client: usize| format!("Client {client} has this to say. {}", long_unit(300));
    let say = async |client: usize| {
        let voice = if client.is_multiple_of(2) { "af_plain" } else { "af_slow" };
        (say(&worker, &text(client), voice).await.samples, voice)
    };
    let answers = futures::future::join_all((0..16).map(say)).await;
    for (client, (samples, voice)) in answers.into_iter().enumerate() {
        assert!(samples == expected(&text(client), voice, Speed::NORMAL), "client {client}");
    }
}

#[tokio::test]
async fn a_blend_reaches_the_engine() {
    let worker = ready(options()).await;
    let blend = "af_plain(2)+af_slow(1)";
    let said = say(&worker, TEXT, blend).await;
    assert_eq!((said.error, said.samples), (None, expected(TEXT, blend, Speed::NORMAL)));
}

#[tokio::test]
async fn invalid_requests_are_rejected_without_the_worker() {
    let worker = ready(SpeechWorkerOptions { text_chars_max: 10, ..options() }).await;
    let check = async |text: &str, voice: &str, expect: ModelError| {
        assert_eq!(worker.speak(request(text, voice)).await.expect_err("refused"), expect);
    };
    let near = ["af_plain", "af_fails", "af_panics"].map(str::to_owned).to_vec();
    let unknown = ModelError::UnknownVoice { voice: "af_plian".to_owned(), near };
    check("Hello", "af_plian", unknown.clone()).await;
    let reason = "blends af_plain (American English) with zf_xiaobei (Mandarin Chinese): \
                  use voices of one language";
    let mixed = ModelError::InvalidField { field: "voice", reason: reason.to_owned() };
    check("Hello", "af_plain(2)+zf_xiaobei(1)", mixed).await;
    check("Hello", "af_slow+af_plian", unknown).await;
    check(" \n ", "af_plain", ModelError::EmptyText).await;
    let too_long = ModelError::TextTooLong { chars: 11, chars_max: 10 };
    check("eleven char", "af_plain", too_long).await;
    assert_eq!(worker.stats().await.expect("alive").steps, 0);
}

#[tokio::test]
async fn a_language_that_lacks_a_part_is_refused_and_its_voices_are_not_listed() {
    let language = Language::AmericanEnglish;
    let missing = BTreeMap::from([(language, "a part: install it".to_owned())]);
    let worker = ready(SpeechWorkerOptions { missing, ..options() }).await;
    assert!(worker.voices().iter().all(|voice| voice.language != language));
    let voice = "af_plain".to_owned();
    let needs = "a part: install it".to_owned();
    let expect = ModelError::SpeechPartMissing { voice, language, needs };
    let refused = worker.speak(request(TEXT, "af_plain")).await.expect_err("refused");
    assert_eq!(refused, expect);
    assert_eq!(worker.stats().await.expect("alive").steps, 0);
}

#[tokio::test]
async fn a_streamed_text_that_is_invalid_ends_with_an_error() {
    let worker = ready(SpeechWorkerOptions { text_chars_max: 10, ..options() }).await;
    let check = async |pieces: &[&str], expect: ModelError| {
        let pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        let text = SpeechText::Arriving(stream::iter(pieces).boxed());
        let stream = worker.speak(SpeechRequest { text, ..request("", "af_plain") }).await;
        assert_eq!(read(stream.expect("accepted")).await.error, Some(expect));
    };
    check(&[], ModelError::EmptyText).await;
    check(&[" ", "\n"], ModelError::EmptyText).await;
    check(&["123456", "78901"], ModelError::TextTooLong { chars: 11, chars_max: 10 }).await;
    assert_eq!(worker.in_flight(), 0);
}

/// Web pages that request each sentence of an answer also send texts like these.
#[tokio::test]
async fn a_text_without_words_becomes_silence() {
    let worker = ready(options()).await;
    for text in ["…", "🎉", "---", "!!"] {
        let whole = say(&worker, text, "af_plain").await;
        assert_eq!((whole.error, whole.samples), (None, vec![0.0; 6000]), "{text}");
    }
    let refused = worker.speak(request("…", "af_nobody")).await.expect_err("no such voice");
    assert!(matches!(refused, ModelError::UnknownVoice { .. }), "{refused}");
}

#[tokio::test]
async fn a_request_for_a_cold_model_gets_loading_at_once_and_starts_the_load() {
    let worker = start(options());
    assert_eq!((worker.state(), worker.pid()), (ModelState::Cold, None));
    let refused = worker.speak(request(TEXT, "af_plain")).await.expect_err("cold");
    let retry_after = options().supervisor.load_guess + Duration::from_secs(1);
    assert_eq!(refused, ModelError::Loading { retry_after });
    worker.load().await.expect("it was loading already");
    assert_eq!(worker.state(), ModelState::Ready);
    assert_eq!(say(&worker, TEXT, "af_plain").await.error, None);
}

#[tokio::test]
async fn streams_beyond_the_limit_get_busy_with_retry_after() {
    let mut options = SpeechWorkerOptions { unread_s_max: 0.5, ..options() };
    options.supervisor.streams_max = 1;
    let worker = ready(options).await;
    // Longer than the unread sound that one stream may hold.
    let held = worker.speak(request(&long_unit(3000), "af_plain")).await.expect("accepted");
    assert_eq!(worker.in_flight(), 1);
    let refused = worker.speak(request(TEXT, "af_plain")).await.expect_err("full");
    assert_eq!(refused, ModelError::Busy { retry_after: Duration::from_secs(1) });
    drop(held);
    assert_eq!(say(&worker, TEXT, "af_plain").await.error, None);
}
