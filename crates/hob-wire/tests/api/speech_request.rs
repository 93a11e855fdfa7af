//! Bodies as clients send them, and the request or the error that each gives.
//! The text itself never appears in an error.

use hob_core::Speed;
use hob_wire::{
    SpeechDelivery, WireError, WireSpeech, ignored_header, parse_captioned_speech, parse_speech,
};

use crate::rows;

const FORMATS: [&str; 3] = ["mp3", "wav", "pcm"];

fn parse(body: impl AsRef<[u8]>) -> Result<WireSpeech, WireError> {
    parse_speech(body.as_ref(), &FORMATS)
}

fn plain() -> WireSpeech {
    WireSpeech {
        model: None,
        input: "Hi".to_owned(),
        voice: None,
        format: "mp3",
        speed: Speed::NORMAL,
        delivery: SpeechDelivery::Stream,
        is_timed: false,
        has_phonemes: false,
        instructions: None,
        language: None,
        volume: 1.0,
        ignored: Vec::new(),
    }
}

#[test]
fn what_is_left_out_or_null_has_its_default() {
    assert_eq!(parse(r#"{"input":"Hi"}"#), Ok(plain()));
    let nulls = r#"{"input":"Hi","model":null,"voice":null,"speed":null,"response_format":null,
        "stream_format":null,"stream":null,"instructions":null,"x":null,"instructions":"  "}"#;
    assert_eq!(parse(nulls), Ok(plain()));
}

#[test]
fn every_field_arrives() {
    let body = r#"{"model":"tts-1","input":"Hi","voice":{"id":"nova"},"response_format":"wav",
        "speed":1.5,"stream":false,"instructions":"softly","lang_code":"en-us",
        "volume_multiplier":0.5,"return_phonemes":true,"normalization_options":{"normalize":true},"user":"me"}"#;
    let expected = WireSpeech {
        model: Some("tts-1".to_owned()),
        voice: Some("nova".to_owned()),
        format: "wav",
        speed: Speed::new(1.5).expect("a speed"),
        delivery: SpeechDelivery::Whole,
        has_phonemes: true,
        instructions: Some("softly".to_owned()),
        language: Some("en-us".to_owned()),
        volume: 0.5,
        ignored: vec!["normalization_options".to_owned(), "user".to_owned()],
        ..plain()
    };
    assert_eq!(parse(body), Ok(expected));
}

#[test]
fn sound_travels_as_was_asked() {
    for (fields, expected) in [
        ("", SpeechDelivery::Stream),
        (r#","stream":true"#, SpeechDelivery::Stream),
        (r#","stream":false"#, SpeechDelivery::Whole),
        (r#","stream_format":"audio","stream":false"#, SpeechDelivery::Whole),
        (r#","stream_format":"sse""#, SpeechDelivery::Events),
        (r#","stream_format":"sse","stream":true"#, SpeechDelivery::Events),
    ] {
        let wire = parse(format!(r#"{{"input":"Hi"{fields}}}"#)).expect("a request");
        assert_eq!(wire.delivery, expected, "{fields}");
        assert_eq!(wire.is_timed, expected == SpeechDelivery::Events, "{fields}");
    }
}

#[test]
fn captioned_speech_has_its_own_forms() {
    for (fields, delivery, is_timed) in [
        ("", SpeechDelivery::Lines, true),
        (r#","stream":false,"return_download_link":false"#, SpeechDelivery::Object, true),
        (r#","return_timestamps":false"#, SpeechDelivery::Lines, false),
    ] {
        let body = format!(r#"{{"input":"Hi"{fields}}}"#);
        let wire = parse_captioned_speech(body.as_bytes(), &FORMATS).expect("a request");
        assert_eq!((wire.delivery, wire.is_timed), (delivery, is_timed), "{fields}");
    }
    let refused = parse_captioned_speech(br#"{"input":"Hi","stream_format":"sse"}"#, &FORMATS);
    let error = refused.expect_err("refused").to_string();
    assert!(error.contains("'stream_format' must be 'audio' on this path"), "{error}");
}

#[test]
fn what_is_wrong_is_said_with_field_and_accepted_values() {
    let long = format!(r#"{{"input":"Hi","voice":"{}"}}"#, "v".repeat(257));
    let table = r#"
        {"input":"\ud800"} => the body is not valid JSON: a \u escape is wrong, or half of a surrogate pair at line 1 column 17
        {"input":"\udc00 x"} => the body is not valid JSON: a \u escape is wrong, or half of a surrogate pair at line 1 column 16
        {"input":"Hi",} => the body is not valid JSON: trailing comma at line 1 column 15
        [1] => the body must be a JSON object, and is a list
        null => the body must be a JSON object, and is null
        "Hi" => the body must be a JSON object, and is a string
        {} => 'input' is missing
        {"input":null} => 'input' is missing
        {"input":["Hi"]} => 'input' must be a string, and is a list
        {"input":7} => 'input' must be a string, and is a number
        {"input":"Hi","model":{}} => 'model' must be a string, and is an object
        {"input":"Hi","voice":true} => 'voice' must be a string or an object, and is a boolean
        {"input":"Hi","voice":{"name":"nova"}} => 'voice.id' is missing
        {"input":"Hi","response_format":"midi"} => 'response_format' must be one of mp3, wav, pcm, and is 'midi'
        {"input":"Hi","stream_format":"ws"} => 'stream_format' must be one of audio, sse, and is 'ws'
        {"input":"Hi","speed":"1"} => 'speed' must be a number, and is a string
        {"input":"Hi","speed":9} => 'speed' must be from 0.25 to 4, and is 9
        {"input":"Hi","speed":0} => 'speed' must be from 0.25 to 4, and is 0
        {"input":"Hi","speed":1e39} => 'speed' must be from 0.25 to 4, and is 1000000000000000000000000000000000000000
        {"input":"Hi","stream":"no"} => 'stream' must be true or false, and is a string
        {"input":"Hi","stream":false,"stream_format":"sse"} => 'stream' cannot be false when 'stream_format' is 'sse'
        {"input":"Hi","volume_multiplier":-1} => 'volume_multiplier' must be from 0 to 4, and is -1
        {"input":"Hi","instructions":[]} => 'instructions' must be a string, and is a list
    "#;
    let others: [(&[u8], &str); 3] = [
        (b"", "the body is not valid JSON: EOF while parsing a value at line 1 column 0"),
        (b"{\"input\":\"\xff\"}", "the body is not valid UTF-8: byte 10 begins no character"),
        (long.as_bytes(), "'voice' has 257 characters and the limit is 256"),
    ];
    let texts = rows(table).map(|(body, expected)| (body.as_bytes(), expected));
    for (body, expected) in texts.chain(others) {
        let error = parse(body).expect_err(&String::from_utf8_lossy(body));
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn nesting_has_a_limit() {
    let deep = format!(r#"{{"input":"Hi","x":{}"#, "[".repeat(100_000));
    let error = parse(deep).expect_err("too deep");
    assert!(matches!(error, WireError::Malformed { .. }), "{error}");
}

#[test]
fn an_error_names_its_field() {
    for (body, field) in
        [("{", None), ("{}", Some("input")), (r#"{"input":"","speed":9}"#, Some("speed"))]
    {
        assert_eq!(parse(body).expect_err(body).field(), field);
    }
}

#[test]
fn ignored_names_make_a_harmless_header() {
    let names = ["user", "a\r\nb: c", "größe", &"x".repeat(100)].map(str::to_owned);
    let expected = format!("user,a??b??c,gr??e,{}", "x".repeat(96));
    assert_eq!(ignored_header(&names), expected);
    let keywords = ["$ref", "unevaluatedProperties"]
        .map(|keyword| format!("tools.{}.{keyword}", "t".repeat(64)));
    assert_eq!(ignored_header(&keywords), keywords.join(","), "whole, also of a long name");
    let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    assert_eq!(ignored_header(&many).split(',').count(), 32);
}

#[test]
fn a_request_can_be_logged_without_its_text() {
    let wire = parse(r#"{"input":"a secret","instructions":"a secret"}"#).expect("a request");
    assert!(!format!("{wire:?}").contains("secret"));
}

proptest::proptest! {
    #[test]
    fn any_text_arrives_as_it_was_sent(text: String) {
        let body = serde_json::json!({ "input": text }).to_string();
        proptest::prop_assert_eq!(parse(body).map(|wire| wire.input), Ok(text));
    }
}
