//! Models that fail: another try, the fallback, and a run that is resumed.

use super::*;

#[test]
fn a_fallback_goes_on_for_an_agent_until_it_has_answered() {
    let mut run = Run::of_team(&format!("fallback = \"safe\"\n{TEAM}"));
    run.answers("", &[("transfer_to_coder", json!({}))]);
    run.fails();
    assert_eq!((run.request().0, run.state.used.turns), ("safe", 2), "the same turn");
    run.answers("", &[("save", json!({}))]);
    run.tool_gives("saved");
    assert_eq!(run.request().0, "safe");
    run.answers("Done.", &[]);
    assert_eq!(run.request().0, "big", "each agent begins with its own model");
    for _ in 0..2 {
        run.answers("", &[("lok", json!({}))]);
        assert_eq!(run.request().0, "big", "the model can correct itself");
    }
    run.answers("", &[("lok", json!({}))]);
    assert_eq!(run.request().0, "safe");
    run.fails();
    assert_eq!(run.state.status, TeamRunStatus::Failed);
    let reasons: Vec<&str> = run
        .events
        .iter()
        .filter_map(|event| match event {
            EventKind::ModelFallback { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, ["it failed", "its calls are invalid"]);
}

#[test]
fn a_fallback_answers_where_the_answers_of_a_model_are_empty() {
    let mut run = Run::of_team(&format!("fallback = \"safe\"\n{TEAM}"));
    run.answers("", &[]);
    run.answers("", &[]);
    assert_eq!(run.request().0, "safe");
    run.answers("Here.", &[]);
    assert_eq!(run.answer(), Some("Here."));
}

#[test]
fn a_model_that_fails_ends_its_agent_only() {
    let mut run = Run::new();
    run.answers("", &[("transfer_to_coder", json!({}))]);
    run.fails();
    assert!(run.last_read().contains("failed: no server"));
    run.fails();
    assert_eq!(run.state.status, TeamRunStatus::Failed);
    run.input(Input::Cancel);
    assert_eq!(
        (run.asked.len(), run.state.status),
        (0, TeamRunStatus::Failed),
        "an ended run stays as it is"
    );
}

#[test]
fn a_model_that_breaks_off_is_asked_again_once_in_a_turn() {
    let mut run = Run::of_team(&format!("fallback = \"safe\"\n{TEAM}"));
    let pause = |run: &Run| match run.asked[..] {
        [Effect::CallModel { pause, .. }] => pause,
        _ => panic!("{:?}", run.asked),
    };
    assert!(pause(&run).is_zero());
    for turn in 1..3 {
        run.breaks(if turn == 1 { ModelFailure::Broke } else { ModelFailure::Stalled });
        assert_eq!((run.request().0, run.state.used.turns), ("big", turn), "the same turn");
        assert!(!pause(&run).is_zero());
        run.answers("", &[("save", json!({ "command": turn.to_string() }))]);
        run.tool_gives("saved");
    }
    // One that did not begin in time is not waited for again.
    run.breaks(ModelFailure::Silent);
    assert_eq!(run.request().0, "safe");
    run.breaks(ModelFailure::Broke);
    assert_eq!(run.request().0, "safe");
    run.answers("Done.", &[]);
    assert_eq!((run.answer(), run.state.status), (Some("Done."), TeamRunStatus::Completed));
    let count =
        |wanted: fn(&EventKind) -> bool| run.events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, EventKind::ModelFailed { .. })), 2);
    assert_eq!(count(|event| matches!(event, EventKind::ModelStalled { .. })), 2);
    assert_eq!(count(|event| matches!(event, EventKind::ToolCalled { .. })), 2);
}

#[test]
fn a_model_that_refuses_is_not_asked_again() {
    let mut run = Run::of_team(&format!("fallback = \"safe\"\n{TEAM}"));
    run.answers("", &[("transfer_to_coder", json!({}))]);
    run.breaks(ModelFailure::Refused);
    assert_eq!((run.request().0, run.state.used.turns), ("safe", 2), "the same turn");
    run.breaks(ModelFailure::Refused);
    assert!(run.last_read().contains("failed: no server"), "its caller reads the reason");
    run.answers("Without the coder.", &[]);
    assert_eq!(run.state.status, TeamRunStatus::Completed);
}

#[test]
fn a_run_with_a_failed_model_says_what_is_missing_and_can_be_resumed() {
    let mut run = Run::of_team(&format!("fallback = \"safe\"\n{TEAM}"));
    run.answers("I save it.", &[("save", json!({}))]);
    run.tool_gives("saved");
    run.fails();
    run.fails();
    assert_eq!((run.state.status, run.asked.len()), (TeamRunStatus::Failed, 1));
    assert!(run.state.status.can_resume());
    let said = run.answer().expect("an answer").to_owned();
    for part in ["lead: I save it.", "is missing", "'safe'", "no server", "hob team resume run"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    run.input(Input::Start);
    assert_eq!(run.request().0, "big", "the agent's own model may work again");
    assert_eq!(run.last_read(), "saved", "the call is not made again");
    run.answers("Saved.", &[]);
    assert_eq!(run.state.status, TeamRunStatus::Completed);
    assert!(run.events.contains(&EventKind::MessageOutput { text: "Saved.".to_owned() }));
    assert!(run.events.contains(&EventKind::RunResumed {}));
    run.input(Input::Start);
    assert_eq!(run.state.status, TeamRunStatus::Completed, "it has ended");
}

#[test]
fn an_agent_with_a_model_that_fails_in_its_last_turn_returns_what_it_has_said() {
    let mut run = Run::new();
    run.answers("I ask the tester.", &[("delegate_to_tester", brief())]);
    run.looks("I found KEYFACT.", json!({}));
    run.looks("", json!({}));
    assert!(run.request().2.is_empty(), "two turns are over, and one more is for the answer");
    run.fails();
    let read = run.last_read();
    assert!(read.contains("I found KEYFACT.") && read.contains("\"partial\""), "{read}");
    run.answers("", &[("delegate_to_tester", brief())]);
    for _ in 0..2 {
        run.looks("", json!({}));
    }
    run.fails();
    assert!(!run.last_read().contains("KEYFACT"), "that was another tester: {}", run.last_read());
}
