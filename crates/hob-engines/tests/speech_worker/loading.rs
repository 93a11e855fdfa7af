//! Models that do not load, and workers that are not what they should be.

use hob_core::{ModelState, SpeechModel};
use hob_engines::frame::{Frame, FrameKind};
use hob_engines::worker::protocol::{Report, hello};

use super::*;

fn start_with(command: WorkerCommand, options: SpeechWorkerOptions) -> SpeechWorker {
    SpeechWorker::start(voices(), command, options)
}

/// Loading fails with this reason, which is also what the state and later requests say.
async fn check(command: WorkerCommand, options: SpeechWorkerOptions, expect: &str) {
    let worker = start_with(command, options);
    let error = worker.load().await.err();
    assert_eq!(lost(error.as_ref()), format!("it does not start: {expect}"));
    assert_eq!(worker.state(), ModelState::Down { reason: expect.to_owned() });
    let refused = worker.speak(request("Hello.", "af_plain")).await.err();
    assert_eq!(lost(refused.as_ref()), format!("it does not start: {expect}"));
}

/// A worker that sends these bytes and then waits for its end.
fn sends_bytes(bytes: &[u8]) -> WorkerCommand {
    let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    WorkerCommand::new("/bin/sh").arg("-c").arg(format!("printf '{octal}' >&0; cat >/dev/null"))
}

fn sends(frames: &[Frame]) -> WorkerCommand {
    let mut bytes = Vec::new();
    for frame in frames {
        frame.encode(&mut bytes).expect("small");
    }
    sends_bytes(&bytes)
}

fn common(report: &Report) -> Frame {
    report.to_frame(0).expect("small")
}

#[tokio::test]
async fn a_model_that_does_not_load_says_why() {
    let command = || WorkerCommand::new(scripted_worker());
    let reason = "the model does not load: the file is not there";
    check(command().arg("load-fails"), options(), reason).await;
    check(command().arg("load-aborts"), options(), "killed by signal 6 (SIGABRT)").await;
    let mut hasty = options();
    hasty.supervisor.load_limit = Duration::from_millis(500);
    check(command().arg("load-hangs"), hasty, "it did not load within 0.5 s").await;
}

#[tokio::test]
async fn a_worker_that_is_none_says_why() {
    let missing = "/nowhere/hob cannot be started: No such file or directory (os error 2)";
    check(WorkerCommand::new("/nowhere/hob"), options(), missing).await;
    check(WorkerCommand::new("/bin/sh").arg("-c").arg("exit 7"), options(), "exit status 7").await;
    let other = "the worker speaks protocol 9 and this server 8, because hob was replaced while it \
                 ran: restart hob";
    let hello_9 = Frame { payload: vec![9, 0, 0, 0], ..hello() };
    check(sends(&[hello_9]), options(), other).await;
    let early = "it began with a frame that is not the handshake";
    check(sends(&[common(&Report::Done)]), options(), early).await;
    let done = "it began with Done";
    check(sends(&[hello(), common(&Report::Done)]), options(), done).await;
    let model = Frame::new(FrameKind::Model, 1, &7_u8).expect("small");
    let misplaced = "it began with a frame of kind Model is malformed: it does not belong here";
    check(sends(&[hello(), model]), options(), misplaced).await;
    let unknown = "the worker's frames cannot be read: a frame has the unknown kind 0";
    check(sends_bytes(&[0; 9]), options(), unknown).await;
    let large = "the worker's frames cannot be read: a frame has 4294967295 bytes, and the limit is \
                 67108864";
    check(sends_bytes(&[3, 0, 0, 0, 0, 255, 255, 255, 255]), options(), large).await;
}

#[tokio::test]
async fn a_model_without_a_sample_rate_cannot_speak() {
    for about in [vec![], vec![0]] {
        let ready = common(&Report::Ready { vram_bytes: 0, about });
        let worker = start_with(sends(&[hello(), ready]), options());
        worker.load().await.expect("it reports that it is ready");
        let refused = worker.speak(request("Hello.", "af_plain")).await.expect_err("no rate");
        let detail = "its model has no sample rate".to_owned();
        assert_eq!(refused, ModelError::EngineFailed { engine: "speech", detail });
    }
}

#[tokio::test]
async fn a_worker_that_is_stopped_while_it_loads_is_noticed() {
    let command = WorkerCommand::new("/bin/sh").arg("-c").arg("kill -STOP $$");
    let mut options = options();
    options.supervisor.silence_limit = Duration::from_millis(300);
    check(command, options, "its process sent nothing for 0.3 s").await;
}

#[tokio::test]
async fn a_model_that_was_down_is_tried_again_until_it_loads() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("model");
    let command = WorkerCommand::new(scripted_worker()).arg("load-fails-unless").arg(&file);
    let worker = start_with(command, options());
    worker.load().await.expect_err("the file is missing");
    std::fs::write(&file, "").expect("written");
    // The supervisor's own attempts may get there first, and an attempt that began before the
    // file was there may still fail.
    while worker.load().await.is_err() {}
    assert_eq!(worker.state(), ModelState::Ready);
}

#[tokio::test]
async fn a_load_that_is_given_up_says_so_to_whoever_waits_for_it() {
    let worker = start_with(WorkerCommand::new(scripted_worker()).arg("load-hangs"), options());
    let (loaded, ()) = futures::join!(worker.load(), worker.unload());
    assert_eq!(lost(loaded.err().as_ref()), "it was unloaded while loading");
}

#[tokio::test]
async fn the_last_measured_load_is_the_next_estimate() {
    let mut options = options();
    options.supervisor.load_guess = Duration::from_secs(3600);
    let worker = ready(options).await;
    worker.unload().await;
    let refused = worker.speak(request("Hello.", "af_plain")).await.expect_err("cold");
    let ModelError::Loading { retry_after } = refused else { panic!("{refused:?}") };
    assert!(retry_after < Duration::from_secs(60), "{retry_after:?}");
}
