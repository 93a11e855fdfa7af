//! Several pulls of one model, and a removal, at the same time.

use std::sync::Barrier;
use std::sync::mpsc::sync_channel;

use hob_models::{Progress, PullOutcome, StoreError};

use super::stage::{NAME, Stage};

#[test]
fn one_of_several_simultaneous_pulls_fetches_and_the_others_wait() {
    let stage = Stage::new();
    let start = Barrier::new(4);
    let outcomes = std::thread::scope(|scope| {
        let pull = || {
            start.wait();
            stage.pull().expect("pulled").outcome
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(pull)).collect();
        threads.into_iter().map(|thread| thread.join().expect("ended")).collect::<Vec<_>>()
    });
    let fetched = outcomes.iter().filter(|outcome| **outcome == PullOutcome::Fetched).count();
    let was_here =
        outcomes.iter().filter(|outcome| **outcome == PullOutcome::AlreadyStored).count();
    assert_eq!((fetched, was_here), (1, 3));
    assert_eq!(stage.calls(), ["pip demo-part-1==2.0", "pip demo-part-2==2.0"]);
}

/// The first pull is held in the middle until the second has said that it waits.
#[test]
fn a_waiting_pull_reports_waiting_and_remove_fails_during_a_pull() {
    let stage = Stage::new();
    let (first_runs_tx, first_runs_rx) = sync_channel(1);
    let (second_waits_tx, second_waits_rx) = sync_channel(1);
    std::thread::scope(|scope| {
        let stage = &stage;
        scope.spawn(move || {
            let mut begun = false;
            let first = stage.pull_watched(&mut |_, _| {
                if !begun {
                    begun = true;
                    first_runs_tx.send(()).expect("the test listens");
                    second_waits_rx.recv().expect("the second waits");
                }
            });
            assert_eq!(first.expect("pulled").outcome, PullOutcome::Fetched);
        });
        first_runs_rx.recv().expect("the first runs");
        let in_use = StoreError::InUse { name: NAME.to_owned() };
        assert_eq!(stage.store.remove(NAME), Err(in_use));
        let second = stage.pull_watched(&mut |progress, _| {
            if *progress == Progress::Waiting {
                second_waits_tx.send(()).expect("the first listens");
            }
        });
        assert_eq!(second.expect("pulled").outcome, PullOutcome::AlreadyStored);
    });
}

#[test]
fn waiting_can_be_given_up() {
    let stage = Stage::new();
    let (first_runs_tx, first_runs_rx) = sync_channel(1);
    let (gave_up_tx, gave_up_rx) = sync_channel(1);
    std::thread::scope(|scope| {
        let stage = &stage;
        scope.spawn(move || {
            let mut begun = false;
            stage.pull_watched(&mut |_, _| {
                if !begun {
                    begun = true;
                    first_runs_tx.send(()).expect("the test listens");
                    gave_up_rx.recv().expect("the second gave up");
                }
            })
        });
        first_runs_rx.recv().expect("the first runs");
        let second = stage.pull_until(|progress| *progress == Progress::Waiting);
        assert_eq!(second, Err(hob_models::PullError::Cancelled(hob_models::Cancelled)));
        gave_up_tx.send(()).expect("the first listens");
    });
    assert!(stage.store.find(NAME).is_ok());
}
