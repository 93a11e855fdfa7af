//! After an unload, a shutdown, or a crash of the server, no worker process is left.

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use hob_core::{KeepAlive, ModelState, SpeechModel, SpeechPace};
use hob_engines::frame::{Frame, FrameKind};
use hob_engines::speech::protocol::{Begin, SpeechOrder, SpeechReport};
use hob_engines::worker::frame_socket::FrameSocket;
use hob_engines::worker::protocol::{CommonOrder, Report};

use super::*;

#[tokio::test]
async fn unloading_ends_the_process_and_the_next_request_loads_again() {
    let worker = ready(SpeechWorkerOptions { unread_s_max: 0.5, ..options() }).await;
    let pid = worker.pid().expect("loaded");
    assert_eq!(worker.resident_bytes().is_some_and(|bytes| bytes > 0), cfg!(target_os = "linux"));
    let mut stream = worker.speak(request(&long_unit(3000), "af_plain")).await.expect("accepted");
    first_sound(&mut stream).await;
    worker.unload().await;
    assert!(!is_alive(pid));
    assert_eq!((worker.state(), worker.pid()), (ModelState::Cold, None));
    assert_eq!(worker.resident_bytes(), None);
    // There is nothing left to unload.
    worker.unload().await;
    assert_eq!(lost(read(stream).await.error.as_ref()), "it was unloaded");
    worker.load().await.expect("loads again");
    assert_eq!(say(&worker, "Hello.", "af_plain").await.error, None);
}

/// The next load begins as soon as the process has ended, so a task that waits for the unload may never see a cold model.
#[tokio::test]
async fn an_unload_returns_although_the_model_is_wanted_again() {
    let worker = ready(options()).await;
    let pid = worker.pid().expect("loaded");
    let both = async { futures::join!(worker.unload(), worker.load()) };
    let both = tokio::time::timeout(Duration::from_secs(60), both).await;
    let ((), loaded) = both.expect("it is unloaded");
    loaded.expect("it was loaded when it was wanted");
    assert!(!is_alive(pid));
    until(&worker, |state| *state == ModelState::Ready).await;
}

#[tokio::test]
async fn an_idle_model_is_unloaded_after_its_idle_time() {
    let mut options = options();
    options.supervisor.ping_every = Duration::from_millis(10);
    options.supervisor.idle_unload = KeepAlive::For(Duration::from_millis(50));
    let worker = ready(options).await;
    until(&worker, |state| *state != ModelState::Ready).await;
    assert_eq!(worker.state(), ModelState::Cold);
}

#[tokio::test]
async fn a_time_that_a_request_sets_ends_with_the_unload() {
    let worker = ready(options()).await;
    worker.keep_alive(KeepAlive::For(Duration::from_secs(3600)));
    assert!(worker.memory_use().expires_at.is_some());
    worker.unload().await;
    worker.load().await.expect("loads again");
    assert_eq!(worker.memory_use().expires_at, None, "as the options say");
}

#[tokio::test]
async fn a_shutdown_ends_the_process_for_good() {
    let worker = ready(options()).await;
    let pid = worker.pid().expect("loaded");
    worker.shutdown().await;
    assert!(!is_alive(pid));
    assert_eq!(worker.state(), ModelState::Down { reason: "it was shut down".to_owned() });
    assert_eq!(lost(worker.load().await.err().as_ref()), "it was shut down");
    let refused = worker.speak(request("Hello.", "af_plain")).await.err();
    assert_eq!(lost(refused.as_ref()), "it was shut down");
}

#[tokio::test]
async fn dropping_the_model_ends_the_process() {
    let worker = ready(SpeechWorkerOptions { unread_s_max: 0.5, ..options() }).await;
    let pid = worker.pid().expect("loaded");
    let mut stream = worker.speak(request(&long_unit(3000), "af_plain")).await.expect("accepted");
    first_sound(&mut stream).await;
    drop(worker);
    assert_eq!(lost(read(stream).await.error.as_ref()), "it was unloaded");
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_worker_that_ignores_the_close_is_killed() {
    let mut options = options();
    options.supervisor.stop_limit = Duration::from_millis(50);
    let worker = ready(options).await;
    let pid = worker.pid().expect("loaded");
    let mut stream = worker.speak(request(&long_unit(125), "af_hangs")).await.expect("accepted");
    first_sound(&mut stream).await;
    worker.unload().await;
    assert!(!is_alive(pid));
}

/// A worker whose server is this test.
struct Orphan {
    child: Child,
    socket: FrameSocket,
}

impl Orphan {
    fn start(arguments: &[&str]) -> Orphan {
        let (socket, theirs) = UnixStream::pair().expect("a socket pair");
        let mut command = Command::new(scripted_worker());
        command.args(arguments);
        let command = command.stdin(Stdio::from(OwnedFd::from(theirs))).stderr(Stdio::piped());
        let child = command.spawn().expect("started");
        let mut orphan = Orphan { child, socket: FrameSocket::new(socket) };
        while !matches!(Report::from_frame(&orphan.receive()), Ok(Report::Ready { .. })) {}
        orphan
    }

    fn receive(&mut self) -> Frame {
        self.socket.receive().expect("a frame")
    }

    fn say(&mut self, text: String, voice: &str) {
        let begin = Begin {
            language: Language::AmericanEnglish,
            speed: Speed::NORMAL,
            pace: SpeechPace::Live,
            credit: u32::MAX,
            voice: voice.to_owned(),
            lexicon: std::collections::BTreeMap::new(),
            dictionary: None,
        };
        let orders = [SpeechOrder::Begin(begin), SpeechOrder::Text(text), SpeechOrder::EndText];
        let frames = orders.map(|order| Frame::new(FrameKind::Model, 1, &order).expect("small"));
        self.socket.send(frames).expect("sent");
        let is_audio = |frame: &Frame| {
            frame.kind == FrameKind::Model && matches!(frame.decode(), Ok(SpeechReport::Audio(_)))
        };
        while !is_audio(&self.receive()) {}
    }

    fn abandon(mut self) -> std::process::ExitStatus {
        drop(self.socket);
        self.child.wait().expect("reaped")
    }
}

#[test]
fn a_worker_ends_with_its_server() {
    assert!(Orphan::start(&[]).abandon().success(), "while it is idle");
    let mut busy = Orphan::start(&[]);
    busy.say(long_unit(50_000), "af_slow");
    // It sees the close between two windows, or its next report fails.
    let status = busy.abandon();
    assert!(status.code().is_some_and(|code| code <= 1), "{status}");
}

#[test]
fn a_worker_that_hangs_ends_with_its_server_too() {
    let mut hanging = Orphan::start(&["ends-soon"]);
    hanging.say(long_unit(125), "af_hangs");
    let stderr = hanging.child.stderr.take().expect("piped");
    let mut lines = BufReader::new(stderr).lines();
    assert_eq!(lines.next().expect("a line").expect("readable"), "hanging");
    // More orders than its inbox holds do not hide the end of the server from it.
    let ping = CommonOrder::Ping.to_frame(2).expect("small");
    hanging.socket.send(vec![ping; 1_000]).expect("sent");
    assert_eq!(hanging.abandon().signal(), Some(6), "aborted when its time was over");
}

#[test]
fn a_worker_without_a_server_does_not_start() {
    let mut worker = Command::new(scripted_worker());
    let worker = worker.stdin(Stdio::null()).stderr(Stdio::null());
    assert_eq!(worker.status().expect("started").code(), Some(1));
}
