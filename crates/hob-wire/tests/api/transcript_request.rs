//! What clients send to the transcription routes, as forms and as JSON, and what of it is refused.
//! Files are not looked into here; that a text is a language is asked separately.

use bytes::Bytes;
use hob_core::{Chunking, SoundFile, Timestamps, TranscriptTask};
use hob_wire::{
    ErrorBody, TranscriptFormat, WireError, WireTranscript, parse_transcript_form,
    parse_transcript_json,
};

fn file() -> SoundFile {
    SoundFile { bytes: Bytes::from_static(b"RIFF"), name: Some("a.wav".to_owned()) }
}

fn form_as(task: TranscriptTask, fields: &[(&str, &str)]) -> Result<WireTranscript, WireError> {
    let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    parse_transcript_form(task, Some(file()), fields.collect())
}

fn form(fields: &[(&str, &str)]) -> Result<WireTranscript, WireError> {
    form_as(TranscriptTask::Transcribe, fields)
}

fn plain() -> WireTranscript {
    WireTranscript {
        model: None,
        task: TranscriptTask::Transcribe,
        file: file(),
        language: None,
        prompt: None,
        temperature: None,
        format: TranscriptFormat::Json,
        timestamps: Timestamps::default(),
        chunking: None,
        is_streamed: false,
        ignored: Vec::new(),
    }
}

#[test]
fn a_file_alone_is_a_request() {
    assert_eq!(form(&[]), Ok(plain()));
}

#[test]
fn every_field_is_taken() {
    let asked = form(&[
        ("model", "whisper-1"),
        ("language", "de"),
        ("prompt", "Kobold, Herd"),
        ("temperature", "0.5"),
        ("response_format", "text"),
        ("stream", "true"),
    ]);
    let expected = WireTranscript {
        model: Some("whisper-1".to_owned()),
        language: Some("de".to_owned()),
        prompt: Some("Kobold, Herd".to_owned()),
        temperature: Some(0.5),
        format: TranscriptFormat::Text,
        is_streamed: true,
        ..plain()
    };
    assert_eq!(asked, Ok(expected));
}

#[test]
fn times_are_asked_for_by_the_formats_that_show_them() {
    const WORD: (&str, &str) = ("timestamp_granularities[]", "word");
    const SEGMENT: (&str, &str) = ("timestamp_granularities[]", "segment");
    const STREAM: (&str, &str) = ("stream", "true");
    let ignored = ["timestamp_granularities"].as_slice();
    for (format, granularities, segments, words, named) in [
        ("json", &[][..], false, false, &[][..]),
        ("json", &[WORD], false, false, ignored),
        ("text", &[SEGMENT], false, false, ignored),
        ("json", &[STREAM], false, false, &[]),
        ("json", &[STREAM, WORD, SEGMENT], true, true, &[]),
        ("text", &[STREAM, WORD], false, true, &[]),
        ("srt", &[], true, false, &[]),
        ("vtt", &[WORD], true, false, ignored),
        ("verbose_json", &[], true, false, &[]),
        ("verbose_json", &[WORD], false, true, &[]),
        ("verbose_json", &[WORD, SEGMENT], true, true, &[]),
    ] {
        let mut fields = vec![("response_format", format)];
        fields.extend_from_slice(granularities);
        let asked = form(&fields).expect(format);
        assert_eq!(asked.timestamps, Timestamps { segments, words }, "{format} {granularities:?}");
        assert_eq!(asked.ignored, named, "{format} {granularities:?}");
    }
}

#[test]
fn what_has_no_effect_is_named() {
    let asked = form(&[
        ("include[]", "logprobs"),
        ("keywords[]", "hob"),
        ("known_speaker_names[]", "Ann"),
        ("x[y", "z"),
    ]);
    let ignored = asked.expect("all tolerated").ignored;
    assert_eq!(ignored, ["include", "keywords", "known_speaker_names", "x[y"]);
    let values = [("chunking_strategy", r#"{"type": "auto", "silence_duration_ms": 300}"#)];
    let asked = form(&values).expect("tolerated");
    assert_eq!(asked.chunking, Some(Chunking::Auto));
    assert_eq!(asked.ignored, ["chunking_strategy"]);
}

#[test]
fn how_the_sound_is_cut_is_taken_in_every_form() {
    let vad = |threshold, prefix_padding_ms, silence_ms| Chunking::ServerVad {
        threshold,
        prefix_padding_ms,
        silence_ms,
    };
    for (fields, expected) in [
        (&[("chunking_strategy", "auto")][..], Chunking::Auto),
        (&[("chunking_strategy", "server_vad")], vad(None, None, None)),
        (
            &[
                ("chunking_strategy[type]", "server_vad"),
                ("chunking_strategy[threshold]", "0.25"),
                ("chunking_strategy[prefix_padding_ms]", "0"),
                ("chunking_strategy[silence_duration_ms]", "10000"),
            ],
            vad(Some(0.25), Some(0), Some(10_000)),
        ),
        (
            &[("chunking_strategy", r#"{"type": "server_vad", "silence_duration_ms": 300}"#)],
            vad(None, None, Some(300)),
        ),
    ] {
        let asked = form(fields).expect("taken");
        assert_eq!((asked.chunking, asked.ignored.len()), (Some(expected), 0), "{fields:?}");
    }
}

#[test]
fn a_translation_is_streamed_too() {
    let asked = form_as(TranscriptTask::Translate, &[("stream", "true")]);
    let task = TranscriptTask::Translate;
    assert_eq!(asked, Ok(WireTranscript { task, is_streamed: true, ..plain() }));
}

#[test]
fn json_carries_the_file_inside() {
    for data in ["UklGRg==", "data:audio/wav;base64,UklGRg=="] {
        let body = format!(
            r#"{{"model":"w","language":"en","input_audio":{{"data":"{data}","format":"wav"}}}}"#
        );
        let expected = WireTranscript {
            model: Some("w".to_owned()),
            language: Some("en".to_owned()),
            file: SoundFile { name: Some("audio.wav".to_owned()), ..file() },
            ..plain()
        };
        let asked = parse_transcript_json(TranscriptTask::Transcribe, body.as_bytes());
        assert_eq!(asked, Ok(expected), "{data}");
    }
    let all = r#"{"input_audio":{"data":"UklGRg=="},"temperature":1,"stream":true,"response_format":"json",
        "timestamp_granularities":["word"],"chunking_strategy":{"type":"server_vad","threshold":1}}"#;
    let asked = parse_transcript_json(TranscriptTask::Transcribe, all.as_bytes()).expect("all");
    assert_eq!((asked.temperature, asked.is_streamed), (Some(1.0), true));
    assert_eq!(asked.timestamps, Timestamps { segments: false, words: true });
    let vad =
        Chunking::ServerVad { threshold: Some(1.0), prefix_padding_ms: None, silence_ms: None };
    assert_eq!((asked.chunking, asked.ignored.len()), (Some(vad), 0));
}

fn said(refused: Result<WireTranscript, WireError>) -> (String, Option<String>) {
    let body = ErrorBody::from(&refused.expect_err("refused"));
    (body.message, body.param)
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (fields, message, param) in [
        (
            &[("response_format", "diarized_json")][..],
            "'response_format' must be one of json, text, srt, vtt, verbose_json, and is 'diarized_json'",
            "response_format",
        ),
        (
            &[("temperature", "warm")],
            "'temperature' must be a number, and is a string",
            "temperature",
        ),
        (&[("temperature", "1.5")], "'temperature' must be from 0 to 1, and is 1.5", "temperature"),
        (&[("stream", "perhaps")], "'stream' must be true or false, and is a string", "stream"),
        (
            &[("stream", "true"), ("response_format", "srt")],
            "'stream' cannot be true when 'response_format' is 'srt'",
            "stream",
        ),
        (
            &[("timestamp_granularities[]", "letter")],
            "'timestamp_granularities[0]' must be one of word, segment, and is 'letter'",
            "timestamp_granularities[0]",
        ),
        (
            &[("chunking_strategy", "never")],
            "'chunking_strategy' must be one of auto, server_vad, and is 'never'",
            "chunking_strategy",
        ),
        (
            &[("chunking_strategy", r#"{"type": "never"}"#)],
            "'chunking_strategy.type' must be one of auto, server_vad, and is 'never'",
            "chunking_strategy.type",
        ),
        (&[("model", "a"), ("model", "b")], "'model' must be a string, and is a list", "model"),
    ] {
        assert_eq!(said(form(fields)), (message.to_owned(), Some(param.to_owned())), "{fields:?}");
    }
}

#[test]
fn values_that_cut_sound_have_ranges() {
    for (member, sent, reason) in [
        ("threshold", "1.5", "must be from 0 to 1, and is 1.5"),
        ("prefix_padding_ms", "5001", "must be from 0 to 5000, and is 5001"),
        ("silence_duration_ms", "99", "must be from 100 to 10000, and is 99"),
        ("silence_duration_ms", "10001", "must be from 100 to 10000, and is 10001"),
        ("silence_duration_ms", "\"soon\"", "must be a whole number, and is a string"),
    ] {
        let object = format!(r#"{{"type": "server_vad", "{member}": {sent}}}"#);
        let name = format!("chunking_strategy[{member}]");
        let path = format!("chunking_strategy.{member}");
        let expected = (format!("'{path}' {reason}"), Some(path));
        assert_eq!(said(form(&[("chunking_strategy", object.as_str())])), expected);
        let members = [("chunking_strategy[type]", "server_vad"), (name.as_str(), sent)];
        assert_eq!(said(form(&members)), expected);
    }
}

#[test]
fn a_request_without_sound_is_none() {
    let task = TranscriptTask::Transcribe;
    let missing = said(parse_transcript_form(task, None, Vec::new()));
    assert_eq!(missing, ("'file' is missing".to_owned(), Some("file".to_owned())));
    let empty = said(parse_transcript_form(task, Some(SoundFile::default()), Vec::new()));
    assert_eq!(empty, ("'file' is empty".to_owned(), Some("file".to_owned())));
    for (body, message) in [
        ("{}", "'input_audio' is missing"),
        (r#"{"input_audio":"x"}"#, "'input_audio' must be an object, and is a string"),
        (r#"{"input_audio":{}}"#, "'input_audio.data' is missing"),
        (r#"{"input_audio":{"data":""}}"#, "'input_audio.data' is empty"),
    ] {
        let (refused, _) = said(parse_transcript_json(task, body.as_bytes()));
        assert_eq!(refused, message, "{body}");
    }
    let (message, _) = said(parse_transcript_json(task, br#"{"input_audio":{"data":"?"}}"#));
    assert!(message.starts_with("'input_audio.data' is not valid base64"), "{message}");
}
