//! The worker on a socket of the test: what it reports, and why it ends.

use std::collections::BTreeMap;
use std::io::Write;
use std::thread::{self, JoinHandle};

use hob_core::SpeechPace;

use super::*;
use crate::frame::{Frame, FrameKind};
use crate::speech::protocol::{Begin, SpeechOrder, SpeechReport};
use crate::speech::scripted::{
    Act, PAUSE_MS, PHONEME_SAMPLES, SAMPLE_RATE_HZ, ScriptedSynthesiser, ScriptedUnits,
};
use crate::worker::frame_socket::FrameSocket;
use crate::worker::protocol::{
    AnyReport, CommonOrder, Report, StreamFailure, WorkerMessage, WorkerStats, hello,
};

fn scripted() -> Result<ScriptedSynthesiser, String> {
    Ok(ScriptedSynthesiser::default())
}

fn options(warm_voice: &str) -> ServeOptions {
    let warm_up = WarmUp {
        language: Language::AmericanEnglish,
        voice: warm_voice.to_owned(),
        unit: SpokenUnit { phonemes: "ɹ".to_owned(), words: Vec::new(), pause_after_ms: 0 },
    };
    ServeOptions { warm_up: Some(warm_up), ..ServeOptions::default() }
}

/// A worker on a thread, and the server's end of its socket.
struct Worker {
    socket: FrameSocket,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Worker {
    fn start(load: fn() -> Result<ScriptedSynthesiser, String>, options: ServeOptions) -> Worker {
        let (socket, theirs) = FrameSocket::pair();
        let serving = thread::spawn(move || serve_speech(theirs, ScriptedUnits, load, options));
        Worker { socket, serving }
    }

    fn ready() -> Worker {
        let mut worker = Worker::start(scripted, options("af_plain"));
        let ready = worker.report().1;
        assert!(matches!(ready, WorkerMessage::Common(Report::Ready { .. })), "{ready:?}");
        worker
    }

    fn send(&mut self, orders: &[(u32, AnySpeechOrder)]) {
        let frames = orders.iter().map(|(stream, order)| {
            let frame = match order {
                WorkerMessage::Common(order) => order.to_frame(*stream),
                WorkerMessage::Model(order) => Frame::new(FrameKind::Model, *stream, order),
            };
            frame.expect("small")
        });
        self.socket.send(frames).expect("sent");
    }

    fn report(&mut self) -> (u32, AnyReport<SpeechReport>) {
        self.socket.report()
    }

    fn end(self) -> Result<(), ServeError> {
        drop(self.socket);
        self.serving.join().expect("no panic")
    }
}

fn begin(stream: u32, credit: u32) -> (u32, AnySpeechOrder) {
    begin_at(SpeechPace::Live, stream, credit)
}

fn begin_at(pace: SpeechPace, stream: u32, credit: u32) -> (u32, AnySpeechOrder) {
    let begin = Begin {
        language: Language::AmericanEnglish,
        speed: Speed::NORMAL,
        pace,
        credit,
        voice: "af_plain".to_owned(),
        lexicon: BTreeMap::new(),
        dictionary: None,
    };
    (stream, WorkerMessage::Model(SpeechOrder::Begin(begin)))
}

fn text(stream: u32, piece: &str) -> (u32, AnySpeechOrder) {
    (stream, WorkerMessage::Model(SpeechOrder::Text(piece.to_owned())))
}

fn end_text(stream: u32) -> (u32, AnySpeechOrder) {
    (stream, WorkerMessage::Model(SpeechOrder::EndText))
}

fn order(stream: u32, order: CommonOrder) -> (u32, AnySpeechOrder) {
    (stream, WorkerMessage::Common(order))
}

#[test]
fn it_sends_the_handshake_and_then_that_it_is_ready() {
    let mut worker = Worker::start(scripted, options("af_plain"));
    assert_eq!(worker.socket.receive().expect("a frame"), hello());
    let (_, WorkerMessage::Common(Report::Ready { about, .. })) = worker.report() else {
        panic!("not ready")
    };
    let expected = About { sample_rate_hz: SAMPLE_RATE_HZ };
    assert_eq!(postcard::from_bytes(&about), Ok(expected));
    assert!(worker.end().is_ok());
}

#[test]
fn a_model_that_does_not_load_or_speak_is_reported() {
    let check = |load, options, expect: &str| {
        let mut worker = Worker::start(load, options);
        assert_eq!(worker.report().1, WorkerMessage::Common(Report::LoadFailed(expect.to_owned())));
        assert_eq!(worker.end().expect_err("no model").to_string(), expect);
    };
    let missing = || Err("no such file".to_owned());
    check(missing, options("af_plain"), "the model does not load: no such file");
    let unknown = "the model loads but does not speak: the model has no voice 'unknown'";
    check(scripted, options("unknown"), unknown);
}

#[test]
fn a_closed_socket_or_an_invalid_frame_ends_the_worker() {
    let (socket, theirs) = UnixStream::pair().expect("a socket pair");
    drop(socket);
    let ended = serve_speech(theirs, ScriptedUnits, scripted, ServeOptions::default());
    assert!(matches!(ended, Err(ServeError::Io(_))), "{ended:?}");

    let mut worker = Worker::ready();
    worker.socket.stream.write_all(&[0; 9]).expect("sent");
    let ended = worker.serving.join().expect("no panic");
    assert!(matches!(ended, Err(ServeError::Inbox(_))), "{ended:?}");
}

#[test]
fn reports_start_first_and_words_before_sound_with_pauses_only_between_units() {
    let mut worker = Worker::ready();
    worker.send(&[begin(1, u32::MAX), text(1, "a.b."), end_text(1)]);
    let mut heard = Vec::new();
    while let (1, WorkerMessage::Model(report)) = worker.report() {
        heard.push(match report {
            SpeechReport::Started => "started".to_owned(),
            SpeechReport::Audio(samples) => format!("{} samples", samples.len()),
            SpeechReport::Words(words) => format!("{} at {}", words.len(), words[0].start_s),
        });
    }
    let pause = PAUSE_MS * SAMPLE_RATE_HZ / 1000;
    assert_eq!(
        heard,
        [
            "started",
            "1 at 0",
            "480 samples",
            &format!("{pause} samples"),
            "1 at 0.12",
            "480 samples"
        ]
    );
}

/// The windows of a steady stream of 701 phonemes, together with this many others.
fn steady_windows(others: u32) -> Vec<usize> {
    let long = format!("{}.", "a".repeat(700));
    let mut worker = Worker::ready();
    for stream in 2..2 + others {
        worker.send(&[begin(stream, u32::MAX), text(stream, &long), end_text(stream)]);
    }
    let steady = begin_at(SpeechPace::Steady, 1, u32::MAX);
    worker.send(&[steady, text(1, &long), end_text(1)]);
    let mut windows = Vec::new();
    loop {
        match worker.report() {
            (1, WorkerMessage::Model(SpeechReport::Audio(samples))) => windows.push(samples.len()),
            (1, WorkerMessage::Common(Report::Done)) => return windows,
            _ => {}
        }
    }
}

#[test]
fn a_steady_stream_has_the_same_windows_whatever_the_load() {
    let expect = [48_000, 48_000, 48_000, 24_240];
    for others in [0, 1, 4] {
        assert_eq!(steady_windows(others), expect, "with {others} others");
    }
}

/// With two streams, most windows are computed in pairs.
#[test]
fn a_window_that_fails_ends_its_own_stream_only() {
    fn fails_at_the_fourth() -> Result<ScriptedSynthesiser, String> {
        Ok(ScriptedSynthesiser::default().at("af_bad", 4, Act::Fail))
    }
    let mut worker = Worker::start(fails_at_the_fourth, options("af_plain"));
    let ready = worker.report().1;
    assert!(matches!(ready, WorkerMessage::Common(Report::Ready { .. })), "{ready:?}");
    let mut bad = begin(2, u32::MAX);
    if let WorkerMessage::Model(SpeechOrder::Begin(begin)) = &mut bad.1 {
        begin.voice = "af_bad".to_owned();
    }
    let long = format!("{}.", "a".repeat(700));
    worker.send(&[begin(1, u32::MAX), text(1, &long), end_text(1)]);
    worker.send(&[bad, text(2, &long), end_text(2)]);
    let (mut samples, mut ends) = (0, BTreeMap::new());
    while ends.len() < 2 {
        match worker.report() {
            (1, WorkerMessage::Model(SpeechReport::Audio(part))) => samples += part.len(),
            (stream, WorkerMessage::Common(end)) => {
                ends.insert(stream, end);
            }
            _ => {}
        }
    }
    assert_eq!((samples, &ends[&1]), (701 * PHONEME_SAMPLES, &Report::Done));
    assert!(matches!(ends[&2], Report::Failed(_)), "{ends:?}");
}

#[test]
fn late_orders_for_an_ended_stream_are_ignored() {
    let mut worker = Worker::ready();
    worker.send(&[begin(1, u32::MAX), end_text(1)]);
    assert_eq!(worker.report(), (1, WorkerMessage::Common(Report::Failed(StreamFailure::Empty))));
    worker.send(&[
        text(1, "late"),
        end_text(1),
        order(1, CommonOrder::Credit(9)),
        order(1, CommonOrder::Cancel),
        order(2, CommonOrder::Ping),
    ]);
    let stats = WorkerStats { streams: 0, steps: 0 };
    assert_eq!(worker.report(), (2, WorkerMessage::Common(Report::Stats(stats))));
    assert!(worker.end().is_ok());
}

#[test]
fn without_credit_there_is_no_window() {
    let mut worker = Worker::ready();
    worker.send(&[begin(1, 0), text(1, "abc."), order(2, CommonOrder::Ping)]);
    let stats = WorkerStats { streams: 1, steps: 0 };
    assert_eq!(worker.report(), (2, WorkerMessage::Common(Report::Stats(stats))));
    worker.send(&[order(1, CommonOrder::Credit(1))]);
    assert_eq!(worker.report(), (1, WorkerMessage::Model(SpeechReport::Started)));
    let words = worker.report().1;
    assert!(matches!(words, WorkerMessage::Model(SpeechReport::Words(_))), "{words:?}");
    let audio = worker.report().1;
    assert!(matches!(audio, WorkerMessage::Model(SpeechReport::Audio(_))), "{audio:?}");
    assert!(worker.end().is_ok());
}
