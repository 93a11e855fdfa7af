//! Pulls that end in the middle: nothing half is taken for a model, and nothing is fetched twice.

use hob_models::{Cancelled, Progress, PullError, PullOutcome, PullStep, StoreError, Watch};

use super::stage::{NAME, PIP, Stage, VOICE_BYTES, hub_path, voice};
use crate::server::{Manner, Request};

const CANCELLED: Result<(), PullError> = Err(PullError::Cancelled(Cancelled));

fn asked(voice: &str, from: Option<usize>) -> Request {
    Request { path: hub_path(voice), from, token: None }
}

fn is_missing(stage: &Stage) -> bool {
    matches!(stage.store.find(NAME), Err(StoreError::Missing { .. }))
}

/// The first pull is cancelled at its first report, the second one at its second report, and so on until one completes.
/// A cancelled pull leaves no model behind, and the next one downloads nothing again that is already there.
#[test]
fn a_pull_may_be_interrupted_at_every_step() {
    let stage = Stage::new();
    let mut step = 0;
    loop {
        step += 1;
        let mut left = step;
        let pulled = stage.pull_until(|_| {
            left -= 1;
            left == 0
        });
        match pulled {
            Err(error) => assert_eq!(error, PullError::Cancelled(Cancelled), "step {step}"),
            Ok(_) => break,
        }
        let found = stage.store.find(NAME);
        let is_missing = matches!(found, Err(StoreError::Missing { .. }));
        assert!(is_missing, "step {step}: {found:?}");
        assert!(step < 1_000, "it never gets through");
    }
    assert!(step > 10, "only {step} steps were tried");
    let model = stage.store.find(NAME).expect("whole");
    let cancel = std::sync::atomic::AtomicBool::new(false);
    stage.store.verify(&model, &mut Watch::new(&mut |_| {}, &cancel)).expect("verified");
    let mut calls = stage.calls();
    calls.dedup();
    assert_eq!(calls, ["pip demo-part-1==2.0", "pip demo-part-2==2.0"], "in order, then kept");
    let leftovers = std::fs::read_dir(stage.path("home/models/demo")).expect("a folder").count();
    assert_eq!(leftovers, 1, "no building site is left");
}

#[test]
fn a_connection_that_breaks_is_taken_up_where_it_broke() {
    let stage = Stage::new().hub_only();
    stage.server.plan(&hub_path("a"), &[Manner::CutAfter(100_000), Manner::CutAfter(30_000)]);
    stage.pull().expect("pulled");
    let expect =
        [asked("a", None), asked("a", Some(100_000)), asked("a", Some(130_000)), asked("b", None)];
    assert_eq!(stage.server.requests(), expect);
}

#[test]
fn a_server_that_knows_no_ranges_begins_again() {
    let stage = Stage::new().hub_only();
    stage.server.plan(&hub_path("a"), &[Manner::CutAfter(100_000), Manner::Whole]);
    stage.pull().expect("pulled");
    let expect = [asked("a", None), asked("a", Some(100_000)), asked("b", None)];
    assert_eq!(stage.server.requests(), expect);
}

#[test]
fn a_server_that_refuses_to_go_on_costs_no_byte_unless_the_range_is_impossible() {
    for (status, next_from) in [(503, Some(100_000)), (416, None)] {
        let stage = Stage::new().hub_only();
        stage.server.plan(&hub_path("a"), &[Manner::CutAfter(100_000), Manner::Status(status)]);
        assert!(stage.pull().is_err(), "{status}");
        stage.forget();
        stage.pull().expect("pulled");
        assert_eq!(stage.server.requests(), [asked("a", next_from), asked("b", None)], "{status}");
    }
}

#[test]
fn a_server_that_limits_requests_is_asked_again_when_it_says() {
    let stage = Stage::new().hub_only();
    let soon = ("Retry-After", "0".to_owned());
    stage.server.put_with(&hub_path("a"), &voice("a"), Manner::Ranges, soon);
    stage.server.plan(&hub_path("a"), &[Manner::CutAfter(100_000), Manner::Status(429)]);
    let mut waits_s = Vec::new();
    let pulled = stage.pull_watched(&mut |progress, _| {
        if let Progress::Pausing { wait_s, .. } = progress {
            waits_s.push(*wait_s);
        }
    });
    pulled.expect("pulled");
    assert_eq!(waits_s, [0]);
    let again = asked("a", Some(100_000));
    assert_eq!(stage.server.requests(), [asked("a", None), again.clone(), again, asked("b", None)]);
}

#[test]
fn a_network_that_is_gone_gets_time_to_come_back() {
    let stage = Stage::new().hub_only();
    stage.server.plan(&hub_path("a"), &[Manner::CutAfter(100_000), Manner::CutAfter(0)]);
    let stopped =
        stage.pull_until(|progress| matches!(progress, Progress::Pausing { wait_s: 1, .. }));
    assert_eq!(stopped.map(drop), CANCELLED);
    let expect = [asked("a", None), asked("a", Some(100_000))];
    assert_eq!(stage.server.requests(), expect);
}

#[test]
fn the_next_pull_goes_on_in_the_middle_of_the_file() {
    let stage = Stage::new().hub_only();
    let is_under_way = |progress: &Progress| {
        matches!(progress, Progress::Bytes { part, step: PullStep::Fetching, done_bytes: 1.., .. }
            if part == "voices")
    };
    assert_eq!(stage.pull_until(is_under_way).map(drop), CANCELLED);
    assert!(is_missing(&stage));
    let have = std::fs::metadata(stage.partial("voices/a.bin")).expect("kept").len() as usize;
    assert!((1..VOICE_BYTES).contains(&have), "{have} bytes");
    stage.forget();
    assert_eq!(stage.pull().expect("pulled").outcome, PullOutcome::Fetched);
    assert_eq!(stage.server.requests(), [asked("a", Some(have)), asked("b", None)]);
    assert_eq!(stage.calls(), [""; 0], "the graph was there");
}

/// The second wheel grows and never ends; the flag is raised while it does.
#[test]
fn a_wheel_that_arrived_is_not_fetched_again() {
    let stage = Stage::new();
    stage.program(
        "pip",
        &format!(
            r#"case "$last" in demo-part-2*) echo half > "$TMPDIR/part"; sleep 1000;; esac; {PIP}"#
        ),
    );
    let mut fetched = 0;
    let stopped = stage.pull_until(|progress| {
        if let Progress::Bytes { step: PullStep::Fetching, done_bytes, .. } = progress {
            let more = fetched > 100_000 && *done_bytes > fetched;
            fetched = *done_bytes;
            return more;
        }
        false
    });
    assert_eq!(stopped.map(drop), CANCELLED);
    assert_eq!(stage.calls(), ["pip demo-part-1==2.0", "pip demo-part-2==2.0"]);
    stage.program("pip", PIP);
    stage.pull().expect("pulled");
    assert_eq!(stage.calls(), ["pip demo-part-2==2.0"]);
}

#[test]
fn what_a_crash_leaves_is_no_model_and_goes_with_the_next_pull() {
    let stage = Stage::new();
    let site = stage.path("home/models/demo/.new-crashed");
    std::fs::create_dir_all(&site).expect("a folder");
    std::fs::write(site.join("model.json"), "{}").expect("a file");
    let scratch = stage.path("home/downloads/demo/work/python");
    std::fs::create_dir_all(&scratch).expect("a folder");
    assert!(is_missing(&stage));
    assert_eq!(stage.store.names(), Ok(Vec::new()));
    stage.pull().expect("pulled");
    assert!(!site.exists() && !scratch.exists());
}

#[test]
fn of_two_forms_that_a_crash_left_the_newer_is_meant() {
    let mut stage = Stage::new();
    stage.transform_version = 10;
    let newer = stage.pull().expect("pulled").model;
    let older = stage.path("home/models/demo/2.0-t9");
    std::fs::create_dir(&older).expect("a folder");
    assert_eq!(stage.store.find(NAME), Ok(newer));
}
