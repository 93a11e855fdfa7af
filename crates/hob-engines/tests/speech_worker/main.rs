//! The speech worker as the server meets it: real processes, real sockets, a scripted engine whose
//! every sample is known.

#![expect(clippy::panic, reason = "these are tests, helpers included")]

mod ends;
mod loading;
mod losses;
mod many;
mod memory;
mod speaking;

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use hob_core::{
    Gender, Language, ModelError, ModelState, SpeechEvent, SpeechModel, SpeechRequest,
    SpeechStream, SpeechText, Speed, Voice, WordTiming,
};
use hob_engines::speech::{SpeechWorker, SpeechWorkerOptions};
use hob_engines::supervisor::{Backoff, WorkerCommand};

/// The voices of `examples/scripted_worker.rs`, and two that cannot be used.
const VOICES: [&str; 10] = [
    "af_plain",
    "af_other",
    "af_slow",
    "af_fails",
    "af_panics",
    "af_quotes",
    "af_aborts",
    "af_hangs",
    "unknown",
    "zf_xiaobei",
];

fn voices() -> Vec<Voice> {
    let voice = |id: &&str| Voice {
        id: (*id).to_owned(),
        name: (*id).to_owned(),
        language: if id.starts_with('z') { Language::Mandarin } else { Language::AmericanEnglish },
        gender: Gender::Female,
    };
    VOICES.iter().map(voice).collect()
}

/// `cargo test` builds the examples together with the tests.
fn scripted_worker() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let built = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    // A program of an earlier build would hide that its source is missing.
    const _SOURCE: &str = include_str!("../../examples/scripted_worker.rs");
    let worker = built.join("examples/scripted_worker");
    assert!(worker.exists(), "{} is missing: run `cargo test -p hob-engines`", worker.display());
    worker
}

/// Options with waits that a test can bear.
fn options() -> SpeechWorkerOptions {
    let mut options = SpeechWorkerOptions::default();
    options.supervisor.backoff = Backoff { first: Duration::from_millis(10), ..Backoff::default() };
    options
}

fn start(options: SpeechWorkerOptions) -> SpeechWorker {
    SpeechWorker::start(voices(), WorkerCommand::new(scripted_worker()), options)
}

/// A worker that is ready.
async fn ready(options: SpeechWorkerOptions) -> SpeechWorker {
    let worker = start(options);
    worker.load().await.expect("the scripted model loads");
    worker
}

fn request(text: &str, voice: &str) -> SpeechRequest {
    SpeechRequest::new(SpeechText::Whole(text.to_owned()), voice)
}

/// One unit of this many phonemes, 10 ms each.
fn long_unit(phonemes: usize) -> String {
    "abcdefghi ".repeat(phonemes.div_ceil(10))
}

/// An answer read to its end.
#[derive(Debug, Default, PartialEq)]
struct Whole {
    samples: Vec<f32>,
    words: Vec<WordTiming>,
    error: Option<ModelError>,
}

async fn read(mut stream: SpeechStream) -> Whole {
    let mut whole = Whole::default();
    while let Some(event) = stream.next().await {
        assert_eq!(whole.error, None, "nothing comes after an error");
        match event {
            Ok(SpeechEvent::Audio(samples)) => whole.samples.extend(samples),
            Ok(SpeechEvent::Words(words)) => whole.words.extend(words),
            Err(error) => whole.error = Some(error),
        }
    }
    whole
}

async fn say(worker: &SpeechWorker, text: &str, voice: &str) -> Whole {
    match worker.speak(request(text, voice)).await {
        Ok(stream) => read(stream).await,
        // The worker may be lost before its first sound arrives.
        Err(error) => Whole { error: Some(error), ..Whole::default() },
    }
}

/// Reads until there was sound.
async fn first_sound(stream: &mut SpeechStream) -> Vec<f32> {
    loop {
        match stream.next().await {
            Some(Ok(SpeechEvent::Audio(samples))) => return samples,
            Some(Ok(SpeechEvent::Words(_))) => {}
            other => panic!("{other:?} before any sound"),
        }
    }
}

fn lost(error: Option<&ModelError>) -> &str {
    match error {
        Some(ModelError::WorkerLost { engine: "speech", detail }) => detail,
        other => panic!("{other:?} instead of a lost worker"),
    }
}

/// Sends a signal as a user at a terminal would.
fn kill(pid: u32, signal: &str) {
    let status = std::process::Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.expect("kill is installed").success());
}

/// Waits until a worker reaches a state. A worker does not announce its state, so the test looks again and again.
async fn until(worker: &SpeechWorker, is_reached: impl Fn(&ModelState) -> bool) {
    let reached = async {
        while !is_reached(&worker.state()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), reached).await;
    assert!(in_time.is_ok(), "the worker is still {:?}", worker.state());
}

fn is_alive(pid: u32) -> bool {
    let mut kill = std::process::Command::new("kill");
    let kill = kill.args(["-0", &pid.to_string()]).stderr(std::process::Stdio::null());
    kill.status().expect("kill is installed").success()
}
