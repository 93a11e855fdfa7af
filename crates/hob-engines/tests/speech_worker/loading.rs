//! Models that do not load, and workers that are not what they should be.

use hob_core::{ModelState, SpeechModel};

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

/// A worker that sends these bytes (in printf's notation) and then waits for its end.
fn sends(bytes: &str) -> WorkerCommand {
    WorkerCommand::new("/bin/sh").arg("-c").arg(format!("printf '{bytes}' >&0; cat >/dev/null"))
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
    let other = "the worker speaks protocol 9 and this server 1: hob was replaced while it ran, \
                 and has to be restarted";
    check(sends(r"\020\0\0\0\0\004\0\0\0\011\0\0\0"), options(), other).await;
    let done = "it began with Done { stream: 0 }";
    check(sends(r"\024\0\0\0\0\0\0\0\0"), options(), done).await;
    check(sends(r"\060\0\0\0\0\0\0\0\0"), options(), "it began with a frame of kind 48").await;
    check(sends(r"\0\0\0\0\0\0\0\0\0"), options(), "no frame has kind 0").await;
    let large = "the worker's frames cannot be read: a frame of kind 48 announces 4294967295 \
                 bytes and the limit is 1048576";
    check(sends(r"\060\0\0\0\0\377\377\377\377"), options(), large).await;
}

#[tokio::test]
async fn a_model_without_a_sample_rate_cannot_speak() {
    let worker = start_with(sends(r"\021\0\0\0\0\004\0\0\0\0\0\0\0"), options());
    worker.load().await.expect("it says that it is ready");
    let refused = worker.speak(request("Hello.", "af_plain")).await.expect_err("no rate");
    let detail = "it did not say its sample rate".to_owned();
    assert_eq!(refused, ModelError::EngineFailed { engine: "speech", detail });
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
