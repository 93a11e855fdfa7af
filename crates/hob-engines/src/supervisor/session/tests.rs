//! Streams of a session without a worker: what opens, what closes, and what is lost.
//! Frames are handed in by the test.

use super::*;

/// A report of a model whose reports are numbers.
type Numbered = Result<StreamReport<u8>, ModelError>;

fn session(streams_max: usize) -> Arc<WorkerSession> {
    WorkerSession::new("speech", LoadedModel::default(), None, streams_max).0
}

fn sound(stream: u32) -> Frame {
    Frame::new(FrameKind::Model, stream, &7_u8).expect("small")
}

fn lost() -> Numbered {
    Err(ModelError::WorkerLost { engine: "speech", detail: "killed".to_owned() })
}

#[tokio::test]
async fn frames_reach_their_own_stream_until_the_last_one() {
    let session = session(2);
    let mut first = session.open().expect("room");
    let mut second = session.open().expect("room");
    session.route(sound(second.stream));
    session.route(Report::Done.to_frame(first.stream).expect("small"));
    assert_eq!(first.report::<u8>().await, Ok(StreamReport::Done));
    assert_eq!(second.report().await, Ok(StreamReport::Model(7_u8)));
    assert_eq!(session.in_flight(), 1);
    drop((first, second));
    assert_eq!(session.in_flight(), 0);
    assert_eq!(session.take_urgent(), [(2, CommonOrder::Cancel)], "the first was done");
}

#[tokio::test]
async fn reports_that_do_not_belong_in_a_stream_are_failures() {
    let session = session(1);
    let mut stream = session.open().expect("room");
    let alive = Report::Alive.to_frame(stream.stream).expect("small");
    let malformed = Frame { payload: vec![99], ..alive.clone() };
    for (frame, expected) in [
        (alive, "its stream contains Alive"),
        (malformed, "a frame of kind Common is malformed: "),
        (Report::failed("NaN").to_frame(stream.stream).expect("small"), "NaN"),
    ] {
        session.route(frame);
        let reported: Numbered = stream.report().await;
        let Err(ModelError::EngineFailed { detail, .. }) = reported else {
            panic!("{reported:?}");
        };
        assert!(detail.starts_with(expected), "{detail}");
    }
}

#[test]
fn streams_have_a_limit_and_a_lost_session_opens_none() {
    let session = session(1);
    let held = session.open().expect("room");
    assert_eq!(session.open().expect_err("full"), NotOpened::Full);
    drop(held);
    session.lose("killed");
    assert_eq!(session.open().expect_err("lost"), NotOpened::Lost("killed".to_owned()));
}

#[tokio::test]
async fn reports_before_the_loss_are_still_read() {
    let session = session(1);
    let mut stream = session.open().expect("room");
    session.route(sound(stream.stream));
    session.lose("killed");
    assert_eq!(stream.report().await, Ok(StreamReport::Model(7_u8)));
    assert_eq!(stream.report().await, lost());
}

#[tokio::test]
async fn a_worker_that_ignores_credit_loses_the_stream_and_not_the_memory() {
    let session = session(1);
    let mut stream = session.open().expect("room");
    for _ in 0..=UNREAD_MAX {
        session.route(sound(stream.stream));
    }
    assert_eq!(session.take_urgent(), [(stream.stream, CommonOrder::Cancel)]);
    for _ in 0..UNREAD_MAX {
        assert_eq!(stream.report().await, Ok(StreamReport::Model(7_u8)));
    }
    let overrun: Numbered = stream.report().await;
    assert_eq!(overrun, Err(session.failed("it sent more than it had credit for")));
}

#[test]
fn credit_is_gathered_until_it_is_written() {
    let session = session(1);
    let stream = session.open().expect("room");
    stream.credit(100);
    stream.credit(50);
    assert_eq!(session.take_urgent(), [(1, CommonOrder::Credit(150))]);
    stream.credit(1);
    drop(stream);
    assert_eq!(session.take_urgent(), [(1, CommonOrder::Cancel)]);
}

#[test]
fn stream_numbers_go_round_past_zero_and_past_open_ones() {
    let session = session(8);
    let first = session.open().expect("room");
    locked(&session.streams).last_stream = u32::MAX;
    let second = session.open().expect("room");
    assert_eq!((first.stream, second.stream), (1, 2));
}

#[test]
fn a_session_leaves_only_when_nothing_is_open_and_opens_nothing_after_that() {
    let session = session(2);
    let held = session.open().expect("room");
    assert!(!session.leave_if_idle(), "a stream is open");
    drop(held);
    assert!(session.is_open() && session.leave_if_idle());
    assert!(!session.is_open() && !session.leave_if_idle(), "it left before");
    assert_eq!(session.open().expect_err("gone"), NotOpened::Leaving);
    session.lose("it was unloaded");
    assert_eq!(session.open().expect_err("gone"), NotOpened::Leaving);
}
