//! Speech against a server whose sound is known: how fast, when it comes, and what it is called that fakes it.

use std::time::Duration;

use crate::stage::{in_rounds, kept, load, mock};
use hob_bench::ask::ask;
use hob_bench::experiment::{Axis, Experiment, Workload};
use hob_bench::mock::MockServer;
use hob_bench::record::{Record, RecordKind, RunStatus, StreamVerdict};
use hob_bench::runs::BenchError;
use hob_bench::speech::{Formats, SpeechWorkload, Streaming, StreamingFinding, Text};
use hob_bench::target::Target;
use hob_bench::terms::Metric;
use hob_bench::timeline::{ArrivalPoint, RequestFault, SoundFault, SoundFormat};
use sha2::{Digest as _, Sha256};

const RUNS: usize = 2;

fn texts(names: &[&str]) -> Vec<Text> {
    names.iter().map(|name| Text::by_name(name).expect("a text")).collect()
}

fn only(format: SoundFormat) -> Formats {
    Formats::All(vec![format])
}

fn any() -> Formats {
    Formats::Offered(vec![SoundFormat::Wav, SoundFormat::Pcm, SoundFormat::Mp3])
}

fn experiment(names: &[&str], formats: Formats, axis: Axis) -> Experiment {
    let (voices, streaming) = (Vec::new(), vec![Streaming::Requested]);
    let speech = SpeechWorkload { texts: texts(names), formats, voices, streaming };
    in_rounds(1, Workload::Speech(speech), axis)
}

fn spoken(mock: &MockServer, names: &[&str], formats: Formats) -> Result<Vec<Record>, BenchError> {
    let made = kept(mock, RUNS, |bench| experiment(names, formats, load(&[1])).measure(bench))?;
    Ok(made.records)
}

#[test]
fn a_text_is_timed_and_its_sound_is_known_by_its_hash() {
    let mock = mock("ttft_ms=20,audio_rtf=0.2,audio_ms_per_char=40,audio_silence_ms=100");
    let records = spoken(&mock, &["medium"], only(SoundFormat::Pcm)).expect("a cell");
    let [record] = &records[..] else { panic!("one cell") };
    assert_eq!((record.kind, record.status), (RecordKind::Tts, RunStatus::Ok));
    let tts = record.tts.clone().expect("speech");
    // 49 characters of 40 ms each, after 100 ms of silence.
    assert_eq!((tts.chars, tts.audio_s, tts.rate_hz), (Some(49), Some(2.06), Some(24_000)));
    assert_eq!(
        (tts.voice.as_deref(), tts.format.as_deref(), tts.stream),
        (Some("tone"), Some("pcm"), Some(true))
    );
    assert_eq!((tts.verdict, tts.tier), (Some(StreamVerdict::Streaming), None));
    let (ttfb_ms, ttfa_ms) = (tts.ttfb_ms.expect("a figure"), tts.ttfa_ms.expect("a figure"));
    let wall_s = tts.wall_s.expect("a figure");
    assert!(ttfb_ms >= 20.0 && ttfb_ms <= ttfa_ms && ttfa_ms / 1e3 <= wall_s, "{tts:?}");
    let chars_s = record.metrics.figure(Metric::CharsS).expect("a figure");
    assert!(chars_s > 0.0 && chars_s <= 49.0 / 0.04, "{chars_s}");

    let text = Text::by_name("medium").expect("a text").words;
    let body = format!(r#"{{"model":"mock","input":"{text}","response_format":"pcm"}}"#);
    let target = Target::find(&mock.url(), None, None, None).expect("a server");
    let within = Duration::from_secs(60);
    let asked =
        ask(&target.endpoint, "/v1/audio/speech", None, Some(&body), within).expect("sound");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(tts.audio_sha256, Some(hex(&Sha256::digest(&asked.body))));
    assert_eq!(tts.text_sha256, Some(hex(&Sha256::digest(text.as_bytes()))));
}

#[test]
fn three_texts_make_a_tier() {
    let mock = mock("ttft_ms=5,audio_rtf=0.001");
    let names = ["short", "medium", "long"];
    let records = spoken(&mock, &names, only(SoundFormat::Mp3)).expect("cells");
    let tts = records.iter().map(|record| record.tts.as_ref().expect("speech"));
    let got: Vec<_> = tts.map(|tts| (tts.chars, tts.tier)).collect();
    assert_eq!(got, [(Some(12), None), (Some(49), None), (Some(210), Some(1))]);
}

#[test]
fn every_format_that_is_offered_is_measured() {
    let mock = mock("ttft_ms=5,audio_rtf=0.001");
    let records = spoken(&mock, &["short"], any()).expect("cells");
    let tts = records.iter().map(|record| record.tts.as_ref().expect("speech"));
    let ms = |seconds: Option<f64>| seconds.map(|seconds| (seconds * 1e3).round());
    let got: Vec<_> = tts.map(|tts| (tts.format.as_deref(), ms(tts.audio_s))).collect();
    // 12 characters of 60 ms each: in frames of 24 ms, too.
    let long = Some(720.0);
    assert_eq!(got, [(Some("wav"), long), (Some("pcm"), long), (Some("mp3"), long)]);
}

#[test]
fn several_users_make_more_sound_and_no_tier() {
    let mock = mock("ttft_ms=100,audio_rtf=0");
    let both = experiment(&["short"], only(SoundFormat::Wav), load(&[1, 4]));
    let records = kept(&mock, RUNS, |bench| both.measure(bench)).expect("cells").records;
    let figure = |place: usize| records[place].metrics.figure(Metric::RealTimeX).expect("a figure");
    assert_eq!(records[1].workload.concurrency, Some(4));
    assert!(figure(1) > 1.5 * figure(0), "{} and {}", figure(1), figure(0));
}

/// A sentence and three, as MP3: so few bytes that no read is cut in two.
fn watched(pairs: &str, streaming: Vec<Streaming>) -> (Vec<Record>, Vec<Vec<ArrivalPoint>>) {
    let mock = mock(&format!("ttft_ms=200,audio_rtf=0.2,audio_ms_per_char=40,{pairs}"));
    let mut all = experiment(&["medium", "long"], only(SoundFormat::Mp3), Axis::Delivery);
    if let Workload::Speech(speech) = &mut all.workload {
        speech.streaming = streaming;
    }
    let mut seen = Vec::new();
    let made = kept(&mock, RUNS, |bench| {
        all.measure_and_show(bench, &mut |_, arrivals| seen.push(arrivals.to_vec()))
    });
    (made.expect("cells").records, seen)
}

fn verdicts(records: &[Record]) -> Vec<Option<StreamVerdict>> {
    records.iter().map(|record| record.tts.as_ref().expect("speech").verdict).collect()
}

#[test]
fn who_holds_everything_back_fakes_it() {
    let (records, _) = watched("audio=hold_all", vec![Streaming::Requested]);
    assert_eq!(verdicts(&records), [Some(StreamVerdict::Fake); 2]);
    assert!(matches!(StreamingFinding::from_records(&records), StreamingFinding::Fake { .. }));
}

#[test]
fn who_makes_sentence_by_sentence_is_told_from_who_fakes_it() {
    let (records, _) = watched("audio=per_sentence", vec![Streaming::Requested]);
    let expected = [Some(StreamVerdict::Fake), Some(StreamVerdict::Streaming)];
    assert_eq!(verdicts(&records), expected);
    assert!(matches!(
        StreamingFinding::from_records(&records),
        StreamingFinding::BySentence { .. }
    ));
}

#[test]
fn who_streams_is_seen_to_do_so_and_who_was_asked_for_a_file_is_not_blamed() {
    let both = vec![Streaming::Requested, Streaming::Declined];
    let (records, seen) = watched("audio=streamed", both);
    let streaming = Some(StreamVerdict::Streaming);
    assert_eq!(verdicts(&records), [streaming, streaming, None, None]);
    assert!(matches!(
        StreamingFinding::from_records(&records[..2]),
        StreamingFinding::Streaming { .. }
    ));
    assert_eq!(StreamingFinding::from_records(&records[2..]), StreamingFinding::Unmeasured);
    // 8.4 s of sound in frames of 24 ms and 192 bytes, in pieces of 200 ms.
    let long = &seen[1];
    assert_eq!(long.last().map(|arrived| arrived.bytes), Some(350 * 192));
    assert!(long.len() > 8 && long[0].bytes < 175 * 192, "{long:?}");
}

#[test]
fn who_does_not_speak_is_heard() {
    let refused = spoken(&mock("status=422"), &["short"], any());
    let is_named = matches!(
        &refused,
        Err(BenchError::Sound(SoundFault::Answer(RequestFault::Refused { status: 422, .. })))
    );
    assert!(is_named, "{refused:?}");
    let silent = spoken(&mock("audio_ms_per_char=0"), &["short"], any());
    assert!(matches!(silent, Err(BenchError::Sound(SoundFault::Empty))), "{silent:?}");
}
