//! A decoder that computes nothing after a failed step, as on Metal.

use super::*;

#[test]
fn a_worker_ends_if_all_steps_fail_after_one() {
    let (mut socket, theirs) = FrameSocket::pair();
    let poison = Some(u32::from(b'!'));
    let decoder = Counter { poison, is_broken: true, ..Counter::new(1) };
    let worker = thread::spawn(move || run(theirs, decoder, 8, None));
    let order = ChatOrder::Chat { request: Box::new(continued("a!")), credit: 100 };
    let frame = Frame::new(FrameKind::Model, 1, &order).expect("small");
    socket.send([frame]).expect("sent");
    let ended = worker.join().expect("no panic");
    assert!(matches!(ended, Err(ServeChatError::Broken(_))), "{ended:?}");
}
