//! What hob sends over Wyoming: bytes that its own decoder splits, and the answer to `describe` field by field.
//! The Python tests read the same events with Home Assistant's library.

use hob_core::{Gender, Language, PcmLayout, Voice};
use hob_wire::{
    ErrorBody, ErrorKind, SpeechProgram, TranscriptionProgram, WyomingAnswer, WyomingInfo,
};
use serde_json::{Value, json};

/// The line, the data and the payload.
fn split(bytes: &[u8]) -> (Value, Value, Vec<u8>) {
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
    let line: Value = serde_json::from_slice(&bytes[..end]).expect("JSON");
    let length = |name: &str| line[name].as_u64().expect("a length") as usize;
    let (data, payload) = bytes[end + 1..].split_at(length("data_length"));
    assert_eq!(payload.len(), length("payload_length"));
    let data = serde_json::from_slice(data).expect("JSON");
    (line["type"].clone(), data, payload.to_vec())
}

#[test]
fn every_answer_has_its_fields() {
    let layout = PcmLayout { rate_hz: 24_000, bytes: 2, channels: 1 };
    let sound = json!({ "rate": 24_000, "width": 2, "channels": 1 });
    let busy = ErrorBody {
        message: "the model is busy".to_owned(),
        kind: ErrorKind::Server,
        param: None,
        code: Some("queue_full"),
    };
    let rows = [
        (WyomingAnswer::Pong { text: Some("a\nb") }, "pong", json!({ "text": "a\nb" }), &b""[..]),
        (WyomingAnswer::Pong { text: None }, "pong", json!({}), b""),
        (WyomingAnswer::AudioStart(layout), "audio-start", sound.clone(), b""),
        (WyomingAnswer::AudioChunk { layout, sound: b"\n\0" }, "audio-chunk", sound, b"\n\0"),
        (WyomingAnswer::AudioStop, "audio-stop", json!({}), b""),
        (WyomingAnswer::SynthesizeStopped, "synthesize-stopped", json!({}), b""),
        (
            WyomingAnswer::TranscriptStart { language: Some("en") },
            "transcript-start",
            json!({ "language": "en" }),
            b"",
        ),
        (
            WyomingAnswer::TranscriptChunk { text: " lamp" },
            "transcript-chunk",
            json!({ "text": " lamp" }),
            b"",
        ),
        (
            WyomingAnswer::Transcript { text: "", language: None },
            "transcript",
            json!({ "text": "" }),
            b"",
        ),
        (WyomingAnswer::TranscriptStop, "transcript-stop", json!({}), b""),
        (
            WyomingAnswer::Error(&busy),
            "error",
            json!({ "text": "the model is busy", "code": "queue_full" }),
            b"",
        ),
    ];
    for (answer, kind, data, payload) in rows {
        assert_eq!(split(&answer.to_bytes()), (json!(kind), data, payload.to_vec()));
    }
}

#[test]
fn describe_lists_programs_voices_and_languages() {
    let voice = |id: &str, language| Voice {
        id: id.to_owned(),
        name: "Heart".to_owned(),
        language,
        gender: Gender::Female,
    };
    let voices = [voice("af_heart", Language::AmericanEnglish)];
    let info = WyomingInfo::speech([SpeechProgram { name: "kokoro", voices: &voices }]);
    let version = env!("CARGO_PKG_VERSION");
    let common = json!({ "name": "hob", "url": "" });
    let expected = json!({
        "asr": [], "handle": [], "intent": [], "wake": [], "mic": [], "snd": [],
        "tts": [{
            "name": "kokoro", "description": "kokoro, spoken by hob", "version": version,
            "attribution": common, "installed": true, "supports_synthesize_streaming": true,
            "voices": [{
                "name": "af_heart", "description": "Heart (American English, female)",
                "version": version, "attribution": common, "installed": true,
                "languages": ["en-US"],
            }],
        }],
    });
    assert_eq!(split(&WyomingAnswer::Info(&info).to_bytes()).1, expected);

    let known = ["en".to_owned()];
    let programs = [
        TranscriptionProgram { name: "base.en", languages: &known },
        TranscriptionProgram { name: "remote", languages: &[] },
    ];
    let info = WyomingInfo::transcription(programs);
    let (_, data, _) = split(&WyomingAnswer::Info(&info).to_bytes());
    let first = json!({
        "name": "base.en", "description": "base.en, heard by hob", "version": version,
        "attribution": common, "installed": true, "supports_transcript_streaming": true,
        "requires_external_vad": true,
        "models": [{
            "name": "base.en", "description": "base.en", "version": version,
            "attribution": common, "installed": true, "languages": ["en"],
        }],
    });
    assert_eq!((&data["asr"][0], &data["tts"]), (&first, &json!([])));
    let unknown = data["asr"][1]["models"][0]["languages"].as_array().expect("a list");
    assert!(unknown.contains(&json!("de")) && unknown.contains(&json!("yue")));
}
