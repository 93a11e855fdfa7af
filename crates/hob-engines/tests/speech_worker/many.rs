//! Clients that leave, clients that dawdle, and many of both: work stops and memory stays.

use hob_core::SpeechModel;
use hob_engines::speech::scripted::expected;

use super::*;

/// Much sound, no limit of credit: only a cancel can stop it early.
fn endless() -> SpeechWorkerOptions {
    SpeechWorkerOptions { unread_s_max: 100_000.0, ..options() }
}

/// Waits until the worker says that no stream is open in it.
async fn idle(worker: &SpeechWorker) -> u64 {
    loop {
        let stats = worker.stats().await.expect("alive");
        if stats.streams == 0 {
            return stats.steps;
        }
    }
}

#[tokio::test]
async fn work_stops_when_its_listener_leaves() {
    let worker = ready(endless()).await;
    // 5 ms for each of at least 1,000 windows, of which a few are needed here.
    let mut stream = worker.speak(request(&long_unit(200_000), "af_slow")).await.expect("accepted");
    first_sound(&mut stream).await;
    drop(stream);
    assert_eq!(worker.in_flight(), 0);
    let windows = idle(&worker).await;
    assert!(windows < 400, "{windows} windows for a listener who left after the first");
    assert_eq!(idle(&worker).await, windows, "no window after that");
}

#[tokio::test]
async fn a_slow_reader_waits_alone_and_loses_nothing() {
    let worker = ready(SpeechWorkerOptions { unread_s_max: 1.0, ..options() }).await;
    let text = long_unit(6000);
    let mut slow = worker.speak(request(&text, "af_plain")).await.expect("accepted");
    let mut samples = first_sound(&mut slow).await;

    let whole = say(&worker, &text, "af_other").await;
    assert_eq!(whole.samples, expected(&text, "af_other", Speed::NORMAL));

    // The slow one's worker has nothing left that it may do, and has not done it all.
    let mut stats = worker.stats().await.expect("alive");
    loop {
        let later = worker.stats().await.expect("alive");
        if later == stats {
            break;
        }
        stats = later;
    }
    assert_eq!(stats.streams, 1, "60 s were not rendered for a reader who took one window");

    samples.extend(read(slow).await.samples);
    assert_eq!(samples, expected(&text, "af_plain", Speed::NORMAL));
}

#[tokio::test]
async fn five_hundred_disconnects_leave_no_work_and_no_memory() {
    let worker = ready(endless()).await;
    let pid = worker.pid();
    disconnect(&worker, 100).await;
    idle(&worker).await;
    let before = worker.resident_bytes();
    disconnect(&worker, 500).await;
    let windows = idle(&worker).await;
    assert_eq!(worker.in_flight(), 0);
    assert_eq!(idle(&worker).await, windows, "nothing is running");
    assert_eq!(worker.pid(), pid, "it is still the same process");
    if let (Some(before), Some(after)) = (before, worker.resident_bytes()) {
        let growth = after.saturating_sub(before);
        assert!(growth < 4 << 20, "{growth} bytes more than after the first hundred");
    }
    let whole = say(&worker, "Still here.", "af_plain").await;
    assert_eq!(whole.samples, expected("Still here.", "af_plain", Speed::NORMAL));
}

/// Begins `requests` in groups of ten, and leaves each after none to three events.
async fn disconnect(worker: &SpeechWorker, requests: u64) {
    // The same leavers in every run.
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..requests / 10 {
        let plans: Vec<(usize, u64)> =
            (0..10).map(|_| (random.usize(1..=3000), random.u64(..4))).collect();
        let leave = async |(phonemes, events): (usize, u64)| {
            let request = request(&long_unit(phonemes), "af_plain");
            let mut stream = worker.speak(request).await.expect("accepted");
            for _ in 0..events {
                if stream.next().await.is_none() {
                    break;
                }
            }
        };
        futures::future::join_all(plans.into_iter().map(leave)).await;
    }
}
