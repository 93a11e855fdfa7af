//! Answers that the run cannot use as they are: calls in texts, and prose where a call is needed.

use hob_core::chat::ToolChoice;

use super::*;

#[test]
fn a_call_that_is_written_as_text_is_made() {
    let mut run = Run::new();
    run.answers("<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>", &[]);
    run.tool_gives("seen");
    assert_eq!(run.last_read(), "seen");
    let is_marked =
        |event: &EventKind| matches!(event, EventKind::ToolRepaired { name, .. } if name == "look");
    assert!(run.events.iter().any(is_marked), "{:?}", run.events);
    run.answers("{\"name\": \"Ann\"}", &[]);
    assert_eq!(run.answer(), Some("{\"name\": \"Ann\"}"), "JSON may be an answer");
}

#[test]
fn a_call_that_cannot_be_read_is_never_the_answer() {
    let mut run = Run::of_team(&format!("fallback = \"safe\"\n{TEAM}"));
    for (inside, part) in [
        (r#"{"name": "save", "arguments": {"command": "rm"#, "end too early"),
        ("save it</tool_call>", "not JSON"),
        ("{\"name\": \"gone\"}</tool_call>", "there is no tool 'gone'"),
    ] {
        assert_eq!(run.request().0, "big");
        run.answers(&format!("I save. <tool_call>{inside}"), &[]);
        let read = run.last_read();
        assert!(read.starts_with("Error") && read.contains(part), "{read}");
    }
    assert_eq!(run.request().0, "safe", "three answers with invalid calls");
    let is_bad = |event: &&EventKind| matches!(event, EventKind::ToolInvalid { .. });
    assert_eq!(run.events.iter().filter(is_bad).count(), 3);
    run.answers("", &[("delegate_to_tester", brief())]);
    for turn in 0..2 {
        run.looks("", json!({ "command": turn.to_string() }));
    }
    run.answers("Half. <tool_call>{\"name\": \"look\"}", &[]);
    let report: Value = serde_json::from_str(&run.last_read()).expect("JSON");
    assert_eq!(report["summary"], "Half.", "no call is made in a last answer, and none is shown");
}

fn choice(run: &Run) -> ToolChoice {
    let [Effect::CallModel { request, .. }] = &run.asked[..] else { panic!("{:?}", run.asked) };
    let Prompt::Chat(conversation) = &request.prompt else { panic!("a conversation") };
    conversation.tool_choice.clone()
}

#[test]
fn prose_where_a_call_is_needed_gets_a_reminder_and_then_another_model() {
    let team = TEAM.replace("instructions = \"You lead.\"", "must_call = true");
    let mut run = Run::of_team(&format!("fallback = \"safe\"\n{team}"));
    assert_eq!(choice(&run), ToolChoice::Required);
    run.answers("I will look.", &[]);
    assert!(run.last_read().contains("Call the tool now"), "{}", run.last_read());
    assert_eq!(run.request().0, "big");
    run.answers("I am looking.", &[]);
    assert_eq!(run.request().0, "safe");
    run.looks("", json!({}));
    assert_eq!(choice(&run), ToolChoice::Auto, "it has called a tool");
    run.answers("It is there.", &[]);
    assert_eq!((run.state.status, run.answer()), (TeamRunStatus::Completed, Some("It is there.")));
    let is_reminder = |event: &&EventKind| matches!(event, EventKind::ModelReminded { .. });
    assert_eq!(run.events.iter().filter(is_reminder).count(), 1);

    // Without another model, the text is better than nothing.
    let mut run = Run::of_team(&team);
    run.answers("I will look.", &[]);
    run.answers("I am looking.", &[]);
    assert_eq!(run.answer(), Some("I am looking."));
    assert_eq!(run.state.status, TeamRunStatus::CompletedPartial);
}

#[test]
fn a_call_that_is_described_gets_a_reminder() {
    let mut run = Run::new();
    run.answers("Now I use transfer_to_coder.", &[]);
    assert!(run.last_read().contains("Call the tool now"), "{}", run.last_read());
    run.answers("", &[("transfer_to_coder", json!({}))]);
    run.answers("fn f() {}", &[]);
    run.answers("It came from transfer_to_coder.", &[]);
    // The team has no fallback model, so after one reminder a text is the answer.
    run.answers("It came from transfer_to_coder: fn f() {}", &[]);
    assert_eq!(run.answer(), Some("It came from transfer_to_coder: fn f() {}"));
    assert_eq!(run.state.status, TeamRunStatus::Completed, "it may be an answer");
}
