//! Workers that fail, die, hang or are killed. Only their own requests get an error.

use hob_core::{ModelState, SpeechModel};
use hob_engines::speech::scripted::expected;

use super::*;

/// Long enough for five first windows.
fn text() -> String {
    long_unit(125)
}

async fn speaks_again(worker: &SpeechWorker) {
    worker.load().await.expect("restarted");
    let whole = say(worker, "Again.", "af_plain").await;
    assert_eq!(whole.samples, expected("Again.", "af_plain", Speed::NORMAL));
    assert_eq!(whole.error, None);
}

#[tokio::test]
async fn a_killed_worker_is_seen_by_its_streams_alone_and_replaced() {
    // Little credit, so that both streams are surely in their middle.
    let options = || SpeechWorkerOptions { unread_s_max: 0.5, ..options() };
    let (worker, other) = (ready(options()).await, ready(options()).await);
    let mut stream = worker.speak(request(&long_unit(3000), "af_plain")).await.expect("accepted");
    let mut unharmed = other.speak(request(&text(), "af_plain")).await.expect("accepted");
    first_sound(&mut stream).await;
    let mut samples = first_sound(&mut unharmed).await;

    let killed = worker.pid().expect("loaded");
    kill(killed, "-9");
    let whole = read(stream).await;
    assert_eq!(lost(whole.error.as_ref()), "killed by signal 9 (SIGKILL)");

    samples.extend(read(unharmed).await.samples);
    assert_eq!(samples, expected(&text(), "af_plain", Speed::NORMAL));
    speaks_again(&worker).await;
    assert_ne!(worker.pid(), Some(killed));
}

#[tokio::test]
async fn between_loss_and_restart_a_refusal_says_when_to_come_back() {
    let mut options = options();
    options.supervisor.backoff.first = Duration::from_secs(3600);
    let worker = ready(options).await;
    let aborted = say(&worker, &text(), "af_aborts").await;
    assert_eq!(lost(aborted.error.as_ref()), "killed by signal 6 (SIGABRT)");
    loop {
        match worker.speak(request("Hello.", "af_plain")).await {
            // The streams get the error a moment before the supervisor's state changes.
            Err(ModelError::WorkerLost { .. }) => tokio::task::yield_now().await,
            Err(ModelError::Loading { retry_after }) => {
                assert_eq!(retry_after, Duration::from_secs(120), "clients give up on more");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(worker.state(), ModelState::Loading { .. }));
    // A command to load does not wait for the back-off.
    speaks_again(&worker).await;
}

#[tokio::test]
async fn a_failure_at_window_three_ends_that_stream_and_no_other() {
    let worker = ready(options()).await;
    let pid = worker.pid();
    let failing = worker.speak(request(&text(), "af_fails")).await.expect("accepted");
    let text = text();
    let (failed, fine) = futures::join!(read(failing), say(&worker, &text, "af_plain"));
    let detail = "the model's graph failed: scripted at window 3".to_owned();
    assert_eq!(failed.error, Some(ModelError::EngineFailed { engine: "speech", detail }));
    let sound = expected(&text, "af_fails", Speed::NORMAL);
    assert!(!failed.samples.is_empty() && sound.starts_with(&failed.samples));
    assert_eq!(fine.samples, expected(&text, "af_plain", Speed::NORMAL));
    speaks_again(&worker).await;
    assert_eq!(worker.pid(), pid, "the worker lives on");
}

#[tokio::test]
async fn a_unit_that_cannot_begin_is_a_failure_of_its_stream() {
    let worker = ready(options()).await;
    let whole = say(&worker, "Hello.", "unknown").await;
    let detail = "the model has no voice 'unknown'".to_owned();
    assert_eq!(whole.error, Some(ModelError::EngineFailed { engine: "speech", detail }));
}

#[tokio::test]
async fn a_panic_ends_the_worker_and_its_place_is_reported() {
    let worker = ready(options()).await;
    let whole = say(&worker, &text(), "af_panics").await;
    let detail = lost(whole.error.as_ref());
    assert!(detail.starts_with("exit status 101; it wrote: panicked at "), "{detail}");
    assert!(detail.ends_with(": a scripted panic"), "{detail}");
    speaks_again(&worker).await;
}

#[tokio::test]
async fn a_panic_that_quotes_the_user_is_reported_without_the_quote() {
    let worker = ready(options()).await;
    let whole = say(&worker, &text(), "af_quotes").await;
    let detail = lost(whole.error.as_ref());
    assert!(detail.starts_with("exit status 101; it wrote: panicked at "), "{detail}");
    assert!(!detail.contains("asked for") && !detail.contains("af_quotes"), "{detail}");
}

/// A stopped process sends no heartbeats. The limit for a step of its engine is an hour here, so it does not count.
#[tokio::test]
async fn a_frozen_process_is_noticed_long_before_a_slow_step() {
    let mut options = SpeechWorkerOptions { unread_s_max: 0.5, ..options() };
    // Heartbeats come every 2 s. On a machine that does much else, one may be seconds late.
    options.supervisor.silence_limit = Duration::from_secs(8);
    options.supervisor.stall_limit = Duration::from_secs(3600);
    let worker = ready(options).await;
    let mut stream = worker.speak(request(&long_unit(3000), "af_plain")).await.expect("accepted");
    first_sound(&mut stream).await;
    kill(worker.pid().expect("loaded"), "-STOP");
    assert_eq!(lost(read(stream).await.error.as_ref()), "its process sent nothing for 8 s");
    speaks_again(&worker).await;
}

/// The engine hangs for longer than a silent process may, but its process sends heartbeats, so only the limit for a step counts.
#[tokio::test]
async fn a_worker_that_hangs_is_killed_for_its_step_and_replaced() {
    let mut options = options();
    options.supervisor.ping_every = Duration::from_millis(20);
    options.supervisor.silence_limit = Duration::from_secs(8);
    options.supervisor.stall_limit = Duration::from_secs(12);
    let worker = ready(options).await;
    let whole = say(&worker, &text(), "af_hangs").await;
    assert_eq!(lost(whole.error.as_ref()), "its engine did not finish a step within 12 s");
    speaks_again(&worker).await;
}

#[tokio::test]
async fn a_worker_that_is_only_slow_is_left_alone() {
    let mut options = options();
    options.supervisor.ping_every = Duration::from_millis(1);
    options.supervisor.stall_limit = Duration::from_secs(10);
    let worker = ready(options).await;
    let whole = say(&worker, &text(), "af_slow").await;
    assert_eq!(whole.samples, expected(&text(), "af_slow", Speed::NORMAL));
    assert_eq!(whole.error, None);
}
