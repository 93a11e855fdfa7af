//! What other servers are asked to transcribe, and what their answers say, whole and as events.
//! Rows are as servers were seen to write them.

use bytes::Bytes;
use hob_core::{
    Chunking, Fault, HeardWord, Segment, SoundFile, Timestamps, TranscriptEvent, TranscriptRequest,
    TranscriptSummary, TranscriptTask, TranscriptUsage,
};
use hob_wire::{
    PieceError, RequestedFormat, TranscriptReader, parse_transcript, sound_name, transcript_fields,
    transcript_path,
};

fn delta(text: &str) -> TranscriptEvent {
    TranscriptEvent::Delta(text.to_owned())
}

#[test]
fn only_what_was_asked_for_is_sent() {
    let plain = TranscriptRequest::default();
    let fields = |request: &TranscriptRequest, shape| {
        let fields = transcript_fields(request, "w", shape).into_iter();
        fields.map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join("&")
    };
    assert_eq!(fields(&plain, RequestedFormat::Short), "model=w&response_format=json");
    let events = "model=w&response_format=json&stream=true";
    assert_eq!(fields(&plain, RequestedFormat::Events), events);
    for (chunking, expected) in [
        (Chunking::Auto, "chunking_strategy=auto"),
        (
            Chunking::ServerVad { threshold: None, prefix_padding_ms: None, silence_ms: Some(300) },
            "chunking_strategy[type]=server_vad&chunking_strategy[silence_duration_ms]=300",
        ),
        (
            Chunking::ServerVad {
                threshold: Some(0.25),
                prefix_padding_ms: Some(0),
                silence_ms: None,
            },
            "chunking_strategy[type]=server_vad&chunking_strategy[threshold]=0.25&\
                chunking_strategy[prefix_padding_ms]=0",
        ),
    ] {
        let request = TranscriptRequest { chunking: Some(chunking), ..plain.clone() };
        let sent = fields(&request, RequestedFormat::Short);
        assert_eq!(sent, format!("model=w&response_format=json&{expected}"));
        let translation = TranscriptRequest { task: TranscriptTask::Translate, ..request };
        let sent = fields(&translation, RequestedFormat::Short);
        assert_eq!(sent, "model=w&response_format=json", "OpenAI's translations lack the field");
    }
    let mut all = TranscriptRequest {
        language: Some("de".to_owned()),
        prompt: Some("Herd".to_owned()),
        temperature: Some(0.5),
        timestamps: Timestamps { segments: true, words: true },
        ..plain
    };
    let expected = "model=w&response_format=verbose_json&language=de&prompt=Herd&temperature=0.5&\
        timestamp_granularities[]=segment&timestamp_granularities[]=word";
    assert_eq!(fields(&all, RequestedFormat::Verbose), expected);
    assert!(!fields(&all, RequestedFormat::Events).contains("granularities"));
    assert!(
        fields(&all, RequestedFormat::TimedEvents).ends_with(
            "stream=true&timestamp_granularities[]=segment&timestamp_granularities[]=word"
        )
    );
    all.task = TranscriptTask::Translate;
    assert!(!fields(&all, RequestedFormat::Verbose).contains("language"));
    assert_eq!(transcript_path(all.task), "audio/translations");
}

#[test]
fn a_file_is_called_by_its_bytes() {
    for (bytes, name, expected) in [
        (&b"RIFF"[..], Some("my will.mp3"), "audio.wav"),
        (b"OggS", None, "audio.ogg"),
        (b"fLaC", None, "audio.flac"),
        (b"ID3\x04", None, "audio.mp3"),
        (b"\xff\xfb\x90", None, "audio.mp3"),
        (b"\0\0\0\x20ftypM4A ", None, "audio.mp4"),
        (b"\x1a\x45\xdf\xa3", None, "audio.webm"),
        (b"Example data", Some("x.\"m4a"), "audio.m4a"),
        (b"Example data", None, "audio.bin"),
    ] {
        let bytes = Bytes::copy_from_slice(bytes);
        let file = SoundFile { bytes, name: name.map(str::to_owned) };
        assert_eq!(sound_name(&file).0, expected);
    }
}

#[test]
fn a_whole_transcript_is_read_in_either_form() {
    let short = parse_transcript(r#"{"text":"Hi","usage":{"type":"duration","seconds":2}}"#);
    let done = |duration_s| TranscriptSummary { duration_s, ..TranscriptSummary::default() };
    assert_eq!(short, Ok(vec![delta("Hi"), TranscriptEvent::Done(done(2.0))]));
    let silence = parse_transcript(r#"{"text":""}"#);
    assert_eq!(silence, Ok(vec![TranscriptEvent::Done(TranscriptSummary::default())]));
    let verbose = r#"{"task":"transcribe","language":"english","duration":"1.5","text":"Hi",
        "segments":[{"id":0,"start":0,"end":1.5,"text":" Hi","tokens":[1,2],"avg_logprob":-0.5}],
        "words":[{"word":"Hi","start":0.25,"end":0.5}]}"#;
    let events = parse_transcript(verbose).expect("a transcript");
    let [_, TranscriptEvent::Segment(segment), TranscriptEvent::Word(word), last] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((segment.end_s, &segment.tokens[..], segment.avg_logprob), (1.5, &[1, 2][..], -0.5));
    assert_eq!((word.word.as_str(), word.start_s), ("Hi", 0.25));
    let language = Some("english".to_owned());
    let done = TranscriptSummary { duration_s: 1.5, language, ..TranscriptSummary::default() };
    assert_eq!(*last, TranscriptEvent::Done(done));
}

#[test]
fn what_is_no_transcript_is_a_fault() {
    for body in ["", "<html>", "[]", "{}", r#"{"text":7}"#] {
        assert!(matches!(parse_transcript(body), Err(Fault::InvalidAnswer { .. })), "{body}");
    }
    let failed = parse_transcript(r#"{"error":{"message":"no"}}"#);
    assert_eq!(failed, Err(Fault::Reported { message: "no".to_owned() }));
}

fn read(events: &[&str]) -> Result<Vec<TranscriptEvent>, PieceError> {
    let (mut reader, mut said) = (TranscriptReader::default(), Vec::new());
    for event in events {
        reader.read(event, &mut said)?;
    }
    reader.end(&mut said).map_err(PieceError::Failed)?;
    assert!(reader.is_over());
    Ok(said)
}

#[test]
fn events_are_read_as_servers_write_them() {
    let usage = Some(TranscriptUsage { input_tokens: 3, output_tokens: 2 });
    let done = TranscriptSummary { usage, ..TranscriptSummary::default() };
    let openai = [
        r#"{"type":"transcript.text.delta","delta":"Hel"}"#,
        r#"{"type":"transcript.text.delta","delta":"lo","logprobs":[]}"#,
        r#"{"type":"transcript.text.done","text":"Hello","usage":{"type":"tokens","input_tokens":3,"output_tokens":2}}"#,
        "[DONE]",
    ];
    assert_eq!(read(&openai), Ok(vec![delta("Hel"), delta("lo"), TranscriptEvent::Done(done)]));
    let at_once = [r#"{"type":"transcript.text.done","text":"Hello"}"#];
    let nothing_more = TranscriptEvent::Done(TranscriptSummary::default());
    assert_eq!(read(&at_once), Ok(vec![delta("Hello"), nothing_more.clone()]));
    let hob = [
        r#"{"type":"transcript.text.delta","delta":"Hi"}"#,
        r#"{"type":"transcript.text.segment","id":"seg_0","start":0,"end":1.5,"text":" Hi"}"#,
        r#"{"type":"transcript.text.word","word":"Hi","start":0.25,"end":0.5}"#,
        r#"{"type":"transcript.text.done","text":"Hi","language":"english","duration":1.5}"#,
    ];
    let segment = Segment { text: " Hi".to_owned(), end_s: 1.5, ..Segment::default() };
    let word = HeardWord { word: "Hi".to_owned(), start_s: 0.25, end_s: 0.5 };
    let language = Some("english".to_owned());
    let done = TranscriptSummary { duration_s: 1.5, language, usage: None, damage: None };
    let expected = [
        delta("Hi"),
        TranscriptEvent::Segment(segment),
        TranscriptEvent::Word(word),
        TranscriptEvent::Done(done),
    ];
    assert_eq!(read(&hob), Ok(expected.to_vec()));
    let plain = [r#"{"text":"Hel"}"#, r#"{"text":"lo"}"#];
    assert_eq!(read(&plain), Ok(vec![delta("Hel"), delta("lo"), nothing_more.clone()]));
    let vllm = [
        r#"{"object":"transcription.chunk","choices":[{"delta":{"content":"Hel"}}],"usage":null}"#,
        r#"{"object":"transcription.chunk","choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}"#,
        r#"{"object":"transcription.chunk","choices":[],"usage":{"prompt_tokens":3,"total_tokens":5}}"#,
        "[DONE]",
    ];
    assert_eq!(read(&vllm), Ok(vec![delta("Hel"), delta("lo"), nothing_more]));
}

#[test]
fn events_that_end_too_early_or_badly_are_faults() {
    let cut = [r#"{"type":"transcript.text.delta","delta":"Hel"}"#];
    assert_eq!(read(&cut), Err(PieceError::Failed(Fault::CutOff)));
    assert_eq!(read(&[]), Err(PieceError::Failed(Fault::CutOff)));
    for malformed in ["{", "{}", r#"{"text":7}"#] {
        assert_eq!(read(&[malformed]), Err(PieceError::Malformed), "{malformed}");
    }
    let failed = [r#"{"type":"error","error":{"message":"no"}}"#];
    assert_eq!(
        read(&failed),
        Err(PieceError::Failed(Fault::Reported { message: "no".to_owned() }))
    );
}
