//! Answers that wait for their readers.

use hob_core::chat::{ChatRequest, Reading};

use super::{Rig, continued};
use crate::worker::protocol::{CommonOrder, Report, WorkerMessage, WorkerStats};

#[test]
fn an_answer_waits_for_its_reader_and_goes_on() {
    let mut rig = Rig::start(2, 8, None);
    rig.ask_with_credit(1, continued("a"), 3);
    rig.ask(2, continued("y"));
    let heard = rig.until_done(1);
    assert_eq!(heard[&2].text, "z");
    rig.order(1, &CommonOrder::Credit(100));
    let mut text = heard.get(&1).map_or(String::new(), |heard| heard.text.clone());
    text += &rig.until_done(1)[&1].text;
    assert_eq!(text, "bcdefghijklmnopqrstuvwxyz");
}

#[test]
fn a_paced_answer_is_ahead_of_its_reader_only_next_to_another_answer() {
    let mut rig = Rig::start(2, 8, None);
    let reading = Reading::Paced;
    rig.ask_with_credit(1, ChatRequest { reading, ..continued("w") }, 2);
    // It is accepted, and its first letter follows.
    (0..2).for_each(|_| drop(rig.report()));
    for _ in 0..2 {
        rig.order(3, &CommonOrder::Ping);
        let stats = Report::Stats(WorkerStats { streams: 1, steps: 1 });
        assert_eq!(rig.report(), (3, WorkerMessage::Common(stats)));
    }
    rig.ask(2, continued("y"));
    let heard = rig.until_done(1);
    assert_eq!((heard[&1].text.as_str(), heard[&2].text.as_str()), ("y", "z"));
    rig.order(1, &CommonOrder::Credit(100));
    assert_eq!(rig.until_done(1)[&1].text, "z");
}
