//! Transcripts as clients read them, in every format, and as events.
//! Byte for byte: players of subtitles and strict clients are both particular.

use hob_core::{
    HeardWord, Segment, TranscriptEvent, TranscriptSummary, TranscriptTask, TranscriptUsage,
};
use hob_wire::{
    ErrorBody, TranscriptAnswer, TranscriptFormat, WireError, transcript_delta, transcript_done,
    transcript_failed, transcript_segment, transcript_word,
};

fn said(text: &str, start_s: f64, end_s: f64) -> Segment {
    Segment {
        text: text.to_owned(),
        start_s,
        end_s,
        tokens: vec![50364, 2425],
        avg_logprob: -0.25,
        compression_ratio: 1.5,
        ..Segment::default()
    }
}

fn segment(text: &str, start_s: f64, end_s: f64) -> TranscriptEvent {
    TranscriptEvent::Segment(said(text, start_s, end_s))
}

fn heard(word: &str, start_s: f64, end_s: f64) -> HeardWord {
    HeardWord { word: word.to_owned(), start_s, end_s }
}

fn word(word: &str, start_s: f64, end_s: f64) -> TranscriptEvent {
    TranscriptEvent::Word(heard(word, start_s, end_s))
}

fn delta(text: &str) -> TranscriptEvent {
    TranscriptEvent::Delta(text.to_owned())
}

fn done(usage: Option<TranscriptUsage>) -> TranscriptEvent {
    let language = Some("english".to_owned());
    TranscriptEvent::Done(TranscriptSummary { duration_s: 3661.5, language, usage, damage: None })
}

fn answer(events: impl IntoIterator<Item = TranscriptEvent>) -> TranscriptAnswer {
    let mut answer = TranscriptAnswer::default();
    events.into_iter().for_each(|event| answer.add(event));
    answer
}

fn body(answer: &TranscriptAnswer, format: TranscriptFormat) -> String {
    answer.to_body(format, TranscriptTask::Transcribe, Some("en"))
}

#[test]
fn every_format_is_as_clients_read_it() {
    let answer = answer([
        delta(" Hello there."),
        segment(" Hello there.", 0.0, 1.24),
        delta(" \"Good\" bye."),
        segment(" \"Good\" bye.", 3660.0, 3661.4996),
        word("Hello", 0.0, 0.5),
        done(None),
    ]);
    use TranscriptFormat::{Json, Srt, Text, VerboseJson, Vtt};
    insta::assert_snapshot!(
        [Json, Text, Srt, Vtt, VerboseJson].map(|format| body(&answer, format)).join("\n---\n"),
        @r#"
    {"text":"Hello there. \"Good\" bye.","usage":{"type":"duration","seconds":3661.5}}
    ---
    Hello there. "Good" bye.

    ---
    1
    00:00:00,000 --> 00:00:01,240
    Hello there.

    2
    01:01:00,000 --> 01:01:01,500
    "Good" bye.


    ---
    WEBVTT

    00:00:00.000 --> 00:00:01.240
    Hello there.

    01:01:00.000 --> 01:01:01.500
    "Good" bye.


    ---
    {"task":"transcribe","language":"english","duration":3661.5,"text":"Hello there. \"Good\" bye.","segments":[{"id":0,"seek":0,"start":0.0,"end":1.24,"text":" Hello there.","tokens":[50364,2425],"temperature":0.0,"avg_logprob":-0.25,"compression_ratio":1.5,"no_speech_prob":0.0},{"id":1,"seek":0,"start":3660.0,"end":3661.5,"text":" \"Good\" bye.","tokens":[50364,2425],"temperature":0.0,"avg_logprob":-0.25,"compression_ratio":1.5,"no_speech_prob":0.0}],"words":[{"word":"Hello","start":0.0,"end":0.5}],"usage":{"type":"duration","seconds":3661.5}}
    "#
    );
    assert_eq!(VerboseJson.content_type(), "application/json");
    assert_eq!(Srt.content_type(), "text/plain; charset=utf-8");
}

#[test]
fn tokens_are_told_where_the_model_counts_them() {
    let usage = TranscriptUsage { input_tokens: 14, output_tokens: 3 };
    let answer = answer([delta("Hi"), done(Some(usage))]);
    assert_eq!(
        body(&answer, TranscriptFormat::Json),
        r#"{"text":"Hi","usage":{"type":"tokens","input_tokens":14,"output_tokens":3,"total_tokens":17}}"#
    );
}

#[test]
fn silence_is_an_answer_too() {
    let done = TranscriptEvent::Done(TranscriptSummary {
        duration_s: 2.0,
        ..TranscriptSummary::default()
    });
    let answer = answer([done]);
    for (format, expected) in [
        (TranscriptFormat::Json, r#"{"text":"","usage":{"type":"duration","seconds":2.0}}"#),
        (TranscriptFormat::Text, "\n"),
        (TranscriptFormat::Srt, ""),
        (TranscriptFormat::Vtt, "WEBVTT\n\n"),
    ] {
        assert_eq!(body(&answer, format), expected);
    }
    let verbose = answer.to_body(TranscriptFormat::VerboseJson, TranscriptTask::Translate, None);
    let expected = r#"{"task":"translate","language":"und","duration":2.0,"text":"","segments":[],"usage":{"type":"duration","seconds":2.0}}"#;
    assert_eq!(verbose, expected);
}

#[test]
fn a_damaged_file_is_reported_in_each_form_of_json() {
    let damage = Some("the file is damaged after 2.0 s".to_owned());
    let done = TranscriptSummary { duration_s: 2.0, damage, ..TranscriptSummary::default() };
    let answer = answer([delta("Hi"), TranscriptEvent::Done(done.clone())]);
    let warning = r#""warning":"the file is damaged after 2.0 s"}"#;
    for text in [
        body(&answer, TranscriptFormat::Json),
        body(&answer, TranscriptFormat::VerboseJson),
        transcript_done("Hi", &done).trim_end().to_owned(),
    ] {
        assert!(text.ends_with(warning), "{text}");
    }
    assert_eq!(answer.warning(), Some("the file is damaged after 2.0 s"));
}

#[test]
fn text_without_times_is_one_line_of_subtitles() {
    let done = TranscriptEvent::Done(TranscriptSummary {
        duration_s: 2.0,
        ..TranscriptSummary::default()
    });
    let answer = answer([delta("Hello"), done]);
    let expected = "1\n00:00:00,000 --> 00:00:02,000\nHello\n\n";
    assert_eq!(body(&answer, TranscriptFormat::Srt), expected);
}

/// An empty line ends a cue, and a tag is not shown.
#[test]
fn no_text_breaks_the_rules_of_subtitles() {
    let answer = answer([segment(" AT&T: 1 < 2 ---> <b>\n\nyes\r\rno\r\n", 0.0, 1.0)]);
    assert_eq!(
        body(&answer, TranscriptFormat::Srt),
        "1\n00:00:00,000 --> 00:00:01,000\nAT&T: 1 < 2 --- > <b>\nyes\nno\n\n"
    );
    assert_eq!(
        body(&answer, TranscriptFormat::Vtt),
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nAT&amp;T: 1 &lt; 2 ---&gt; &lt;b&gt;\nyes\nno\n\n"
    );
}

#[test]
fn events_are_as_clients_read_them() {
    let usage = Some(TranscriptUsage { input_tokens: 1, output_tokens: 2 });
    let error = ErrorBody::from(&WireError::missing("file"));
    insta::assert_snapshot!(
        [
            transcript_delta("Hel\"lo"),
            transcript_segment(&said(" Hello", 0.5, 1.2504), 7),
            transcript_word(&heard("Hello", 0.5, 1.24)),
            transcript_done("Hello", &TranscriptSummary::default()),
            transcript_done("Hello", &TranscriptSummary { duration_s: 1.5, language: Some("english".to_owned()), usage, damage: None }),
            transcript_failed(&error),
        ].concat(),
        @r#"
    data: {"type":"transcript.text.delta","delta":"Hel\"lo"}

    data: {"type":"transcript.text.segment","id":"seg_7","start":0.5,"end":1.25,"text":" Hello"}

    data: {"type":"transcript.text.word","word":"Hello","start":0.5,"end":1.24}

    data: {"type":"transcript.text.done","text":"Hello"}

    data: {"type":"transcript.text.done","text":"Hello","language":"english","duration":1.5,"usage":{"type":"tokens","input_tokens":1,"output_tokens":2,"total_tokens":3}}

    data: {"type":"error","error":{"message":"'file' is missing","type":"invalid_request_error","param":"file","code":null}}
    "#
    );
}

#[test]
fn what_was_said_stays_out_of_logs() {
    let shown = format!("{:?}", answer([delta("a secret"), done(None)]));
    assert!(!shown.contains("secret"), "{shown}");
}
