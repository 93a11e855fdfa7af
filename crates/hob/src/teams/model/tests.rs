//! What a client reads of a team that answers as a model.

use super::*;

#[test]
fn delegates_that_work_at_the_same_time_share_no_line() {
    let event = |span: u64, number: u32, kind: &str, data: serde_json::Value| {
        let event = serde_json::json!({
            "v": 1, "seq": 9, "ts": 0, "run_id": "r", "agent": "tester", "depth": 1,
            "span_id": span, "number": number, "type": kind, "data": data,
        });
        serde_json::from_value::<RunEvent>(event).expect("an event")
    };
    let delta = |span, number, text: &str| {
        let data = serde_json::json!({ "kind": "text", "text": text });
        event(span, number, "model.delta", data)
    };
    let mut queue = AnswerQueue::default();
    for (span, number, text) in
        [(4, 1, "North "), (6, 2, "South is\nwa"), (4, 1, "is cold.\n"), (6, 2, "rm.")]
    {
        queue.think_in_lines(&delta(span, number, text), text);
    }
    queue.end_line(&event(6, 2, "model.failed", serde_json::json!({ "error": "" })));
    let text = |event: &ChatEvent| match event {
        ChatEvent::Reasoning(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let said: String = queue.events.iter().map(text).collect();
    assert_eq!(said, "    tester 2: South is\n    tester: North is cold.\n    tester 2: warm.\n");
}

fn queued_text(queue: &AnswerQueue) -> String {
    let text = |event: &ChatEvent| match event {
        ChatEvent::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    queue.events.iter().map(text).collect()
}

#[test]
fn an_answer_that_speaks_of_a_call_is_read_once() {
    let answer = "Use <tool_call> for that.";
    let mut queue = AnswerQueue::default();
    queue.write("Use ");
    queue.finish(answer);
    assert_eq!(queued_text(&queue), answer);
    let mut queue = AnswerQueue::default();
    queue.write(answer);
    queue.finish(answer);
    assert_eq!(queued_text(&queue), answer);
    let mut queue = AnswerQueue::default();
    queue.write("First.");
    queue.finish("Last.");
    assert_eq!(queued_text(&queue), "First.\n\nLast.");
}
