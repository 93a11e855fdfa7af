//! The worker on a socket of the test's own: what it says, and why it ends.

use std::io::{Read, Write};
use std::thread::{self, JoinHandle};

use super::*;
use crate::frame::{Frame, FrameDecoder};
use crate::speech::protocol::{Begin, SpeechReport};
use crate::speech::scripted::{PAUSE_MS, SAMPLE_RATE_HZ, ScriptedSynthesiser, ScriptedUnits};
use crate::worker::protocol::{Failure, Order, WorkerStats};

fn scripted() -> Result<ScriptedSynthesiser, String> {
    Ok(ScriptedSynthesiser::default())
}

fn options(warm_voice: &str) -> ServeOptions {
    let warm_up = WarmUp {
        languages: vec![Language::AmericanEnglish],
        voice: warm_voice.to_owned(),
        unit: SpokenUnit { phonemes: "ɹ".to_owned(), words: Vec::new(), pause_after_ms: 0 },
    };
    ServeOptions { warm_up: Some(warm_up), ..ServeOptions::default() }
}

/// A worker on a thread, and the server's end of its socket.
struct Worker {
    socket: UnixStream,
    decoder: FrameDecoder,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Worker {
    fn start(load: fn() -> Result<ScriptedSynthesiser, String>, options: ServeOptions) -> Worker {
        let (socket, theirs) = UnixStream::pair().expect("a socket pair");
        let serving = thread::spawn(move || serve_speech(theirs, ScriptedUnits, load, options));
        Worker { socket, decoder: FrameDecoder::default(), serving }
    }

    fn ready() -> Worker {
        let mut worker = Worker::start(scripted, options("af_plain"));
        worker.report();
        let ready = worker.report();
        assert!(matches!(ready, Some(Report::Ready { .. })), "{ready:?}");
        worker
    }

    fn send(&mut self, orders: &[SpeechOrder]) {
        let mut bytes = Vec::new();
        for order in orders {
            order.to_frame().encode(&mut bytes).expect("small");
        }
        self.socket.write_all(&bytes).expect("sent");
    }

    fn frame(&mut self) -> Frame {
        let mut chunk = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("well-formed") {
                return frame;
            }
            let bytes = self.socket.read(&mut chunk).expect("readable");
            assert!(bytes > 0, "the worker has closed the socket");
            self.decoder.push(&chunk[..bytes]);
        }
    }

    /// The next report; none when it is one of speech.
    fn report(&mut self) -> Option<Report> {
        Report::from_frame(&self.frame()).expect("well-formed")
    }

    fn end(self) -> Result<(), ServeError> {
        drop(self.socket);
        self.serving.join().expect("no panic")
    }
}

fn begin(stream: u32, credit: u32) -> SpeechOrder {
    let begin = Begin {
        language: Language::AmericanEnglish,
        speed: Speed::NORMAL,
        credit,
        voice: "af_plain".to_owned(),
    };
    SpeechOrder::Begin { stream, begin }
}

fn text(stream: u32, piece: &str) -> SpeechOrder {
    SpeechOrder::Text { stream, piece: piece.to_owned() }
}

#[test]
fn it_says_hello_and_then_that_it_is_ready() {
    let mut worker = Worker::start(scripted, options("af_plain"));
    assert_eq!(worker.report(), Some(Report::Hello { version: PROTOCOL_VERSION }));
    let Some(Report::Ready { about, .. }) = worker.report() else { panic!("not ready") };
    assert_eq!(About::from_payload(&about), Some(About { sample_rate_hz: SAMPLE_RATE_HZ }));
    assert!(worker.end().is_ok());
}

#[test]
fn a_model_that_does_not_load_or_speak_is_no_model() {
    let check = |load, options, expect: &str| {
        let mut worker = Worker::start(load, options);
        worker.report();
        let reason = expect.to_owned();
        assert_eq!(worker.report(), Some(Report::LoadFailed { reason }));
        assert_eq!(worker.end().expect_err("no model").to_string(), expect);
    };
    let missing = || Err("no such file".to_owned());
    check(missing, options("af_plain"), "the model does not load: no such file");
    let unknown = "the model loads but does not speak: the model has no voice 'unknown'";
    check(scripted, options("unknown"), unknown);
}

#[test]
fn a_server_that_is_gone_or_talks_nonsense_ends_it() {
    let (socket, theirs) = UnixStream::pair().expect("a socket pair");
    drop(socket);
    let ended = serve_speech(theirs, ScriptedUnits, scripted, ServeOptions::default());
    assert!(matches!(ended, Err(ServeError::Io(_))), "{ended:?}");

    let mut worker = Worker::ready();
    worker.socket.write_all(&[0; 9]).expect("sent");
    let ended = worker.serving.join().expect("no panic");
    assert!(matches!(ended, Err(ServeError::Inbox(_))), "{ended:?}");
}

#[test]
fn the_start_comes_first_and_words_before_their_sound_and_pauses_only_between_units() {
    let mut worker = Worker::ready();
    worker.send(&[begin(1, u32::MAX), text(1, "a.b."), SpeechOrder::EndText { stream: 1 }]);
    let mut heard = Vec::new();
    loop {
        let frame = worker.frame();
        heard.push(match SpeechReport::from_frame(&frame) {
            Ok(SpeechReport::Started { .. }) => "started".to_owned(),
            Ok(SpeechReport::Audio { samples, .. }) => format!("{} samples", samples.len()),
            Ok(SpeechReport::Words { words, .. }) => {
                format!("{} at {}", words.len(), words[0].start_s)
            }
            Err(_) => break,
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

#[test]
fn orders_that_cross_a_streams_end_are_late_and_not_wrong() {
    let mut worker = Worker::ready();
    worker.send(&[begin(1, u32::MAX), SpeechOrder::EndText { stream: 1 }]);
    assert_eq!(worker.report(), Some(Report::Failed { stream: 1, failure: Failure::Empty }));
    worker.send(&[
        text(1, "late"),
        SpeechOrder::EndText { stream: 1 },
        SpeechOrder::Any(Order::Credit { stream: 1, amount: 9 }),
        SpeechOrder::Any(Order::Cancel { stream: 1 }),
        SpeechOrder::Any(Order::Ping { stream: 2 }),
    ]);
    let stats = WorkerStats { streams: 0, windows: 0 };
    assert_eq!(worker.report(), Some(Report::Stats { stream: 2, stats }));
    assert!(worker.end().is_ok());
}

#[test]
fn without_credit_there_is_no_window() {
    let mut worker = Worker::ready();
    worker.send(&[begin(1, 0), text(1, "abc."), SpeechOrder::Any(Order::Ping { stream: 2 })]);
    let stats = WorkerStats { streams: 1, windows: 0 };
    assert_eq!(worker.report(), Some(Report::Stats { stream: 2, stats }));
    worker.send(&[SpeechOrder::Any(Order::Credit { stream: 1, amount: 1 })]);
    let started = SpeechReport::from_frame(&worker.frame());
    assert_eq!(started, Ok(SpeechReport::Started { stream: 1 }));
    let words = SpeechReport::from_frame(&worker.frame());
    assert!(matches!(words, Ok(SpeechReport::Words { .. })), "{words:?}");
    let audio = SpeechReport::from_frame(&worker.frame());
    assert!(matches!(audio, Ok(SpeechReport::Audio { .. })), "{audio:?}");
    assert!(worker.end().is_ok());
}
