//! Streams of a session without a worker: what opens, what closes, and what is lost.
//! Frames are handed in by the test.

use std::future::poll_fn;

use super::*;
use crate::worker::protocol::Report;

fn session(streams_max: usize) -> Arc<Session> {
    Session::new(Vec::new(), None, streams_max).0
}

#[tokio::test]
async fn frames_reach_their_own_stream_until_the_last_one() {
    let session = session(2);
    let mut first = session.open().expect("room");
    let mut second = session.open().expect("room");
    let sound = Frame::new(48, second.stream, vec![1, 2]);
    let done = Report::Done { stream: first.stream }.to_frame();
    session.route(sound.clone());
    session.route(done.clone());
    assert_eq!(poll_fn(|cx| first.poll_frame(cx)).await, Ok(done));
    assert_eq!(poll_fn(|cx| second.poll_frame(cx)).await, Ok(sound));
    assert_eq!(session.in_flight(), 1);
    drop((first, second));
    assert_eq!(session.in_flight(), 0);
    assert_eq!(session.take_mail(), [Order::Cancel { stream: 2 }], "the first was done");
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
async fn what_came_before_the_loss_is_still_read() {
    let session = session(1);
    let mut ticket = session.open().expect("room");
    let sound = Frame::new(48, ticket.stream, vec![1]);
    session.route(sound.clone());
    session.lose("killed");
    assert_eq!(poll_fn(|cx| ticket.poll_frame(cx)).await, Ok(sound));
    let cut = Cut::Lost("killed".to_owned());
    assert_eq!(poll_fn(|cx| ticket.poll_frame(cx)).await, Err(cut));
}

#[tokio::test]
async fn a_worker_that_ignores_credit_loses_the_stream_and_not_the_memory() {
    let session = session(1);
    let mut ticket = session.open().expect("room");
    let sound = Frame::new(48, ticket.stream, vec![1]);
    for _ in 0..=UNREAD_MAX {
        session.route(sound.clone());
    }
    assert_eq!(session.take_mail(), [Order::Cancel { stream: ticket.stream }]);
    for _ in 0..UNREAD_MAX {
        assert_eq!(poll_fn(|cx| ticket.poll_frame(cx)).await, Ok(sound.clone()));
    }
    assert_eq!(poll_fn(|cx| ticket.poll_frame(cx)).await, Err(Cut::Overrun));
}

#[test]
fn credit_is_gathered_until_it_is_written() {
    let session = session(1);
    let ticket = session.open().expect("room");
    ticket.credit(100);
    ticket.credit(50);
    assert_eq!(session.take_mail(), [Order::Credit { stream: 1, amount: 150 }]);
    ticket.credit(1);
    drop(ticket);
    assert_eq!(session.take_mail(), [Order::Cancel { stream: 1 }]);
}

#[test]
fn stream_numbers_go_round_past_zero_and_past_open_ones() {
    let session = session(8);
    let first = session.open().expect("room");
    lock(&session.routes).last_stream = u32::MAX;
    let second = session.open().expect("room");
    assert_eq!((first.stream, second.stream), (1, 2));
}

#[test]
fn a_session_leaves_only_when_nothing_is_open_and_opens_nothing_after_that() {
    let session = session(2);
    let held = session.open().expect("room");
    assert!(!session.leave_if_idle(), "somebody is answered");
    drop(held);
    assert!(session.is_open() && session.leave_if_idle());
    assert!(!session.is_open() && !session.leave_if_idle(), "it has left already");
    assert_eq!(session.open().expect_err("gone"), NotOpened::Leaving);
    session.lose("it was unloaded");
    assert_eq!(session.open().expect_err("gone"), NotOpened::Leaving);
}
