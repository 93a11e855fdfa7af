//! Requests for models that do not fit together, played on a machine of one place.

use std::collections::VecDeque;

use super::*;

/// Requests are answered one after another, each taking `answer`; a swap takes no time. Those that come
/// are there from the start, in this order.
fn play(requests: &str, answer: Duration) -> String {
    let mut now = Instant::now();
    let (mut turns, mut loaded) = (LoadQueue::default(), requests[..1].to_owned());
    let mut waiting: VecDeque<&str> = requests.split("").filter(|name| !name.is_empty()).collect();
    let mut answered = String::new();
    while !waiting.is_empty() {
        for model in &waiting {
            if *model != loaded {
                turns.wait(model, now);
                turns.needs(model, vec![loaded.clone()]);
            }
        }
        let next = waiting.iter().position(|model| *model == loaded);
        match next.map(|next| (next, turns.begin(&loaded, now))) {
            Some((next, StartDecision::Allowed)) => {
                waiting.remove(next);
                answered.push_str(&loaded);
                now += answer;
            }
            // Drained, as answers end one after another here: the first in the queue is loaded.
            Some((_, StartDecision::Wait { .. })) | None => {
                let next = waiting.iter().find(|model| **model != loaded && turns.may_take(model));
                loaded = (*next.expect("somebody waits")).to_owned();
                turns.leave(&loaded);
            }
        }
    }
    answered
}

#[test]
fn requests_are_answered_model_by_model() {
    let short = Duration::from_millis(10);
    assert_eq!(play("ABCABC", short), "AABBCC");
    assert_eq!(play("ABABABCC", short), "AAABBBCC");
}

#[test]
fn a_busy_model_has_sixteen_more_and_then_makes_room() {
    let played = play(&("AB".to_owned() + &"A".repeat(40)), Duration::from_millis(10));
    // The first of them was in memory's favour too: all of them came when B was already waiting.
    assert_eq!(played, format!("{}B{}", "A".repeat(16), "A".repeat(25)));
}

#[test]
fn a_slow_model_has_half_a_minute_and_then_makes_room() {
    let played = play(&("AB".to_owned() + &"A".repeat(9)), Duration::from_secs(7));
    assert_eq!(played, format!("{}B{}", "A".repeat(5), "A".repeat(5)), "0, 7, 14, 21 and 28 s");
}

#[test]
fn a_model_continues_while_its_memory_is_not_needed() {
    let now = Instant::now();
    let mut turns = LoadQueue::default();
    turns.wait("B", now);
    turns.needs("B", vec!["A".to_owned()]);
    let later = now + WAIT_MAX;
    assert_eq!(turns.begin("A", later), StartDecision::Wait { next: "B".to_owned() });
    assert_eq!(turns.begin("speech", later), StartDecision::Allowed);
    turns.leave("B");
    assert_eq!(turns.begin("A", later), StartDecision::Allowed);
    assert!(turns.is_empty());
}

#[test]
fn free_memory_is_for_all_until_one_model_has_waited_too_long() {
    let now = Instant::now();
    let mut turns = LoadQueue::default();
    turns.wait("large", now);
    turns.wait("large", now + Duration::from_secs(20));
    turns.wait("small", now);
    assert!(turns.may_take("large") && !turns.may_take("small"));
    assert!(turns.may_use_free("small", now + Duration::from_secs(29)));
    assert!(!turns.may_use_free("small", now + WAIT_MAX), "waiting again is not a new beginning");
    assert!(turns.may_use_free("large", now + WAIT_MAX));
}
