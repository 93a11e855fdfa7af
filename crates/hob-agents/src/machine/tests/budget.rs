//! Limits of runs and of agents: each ends in an answer.

use hob_core::chat::{BudgetUnit, SpentBudget};

use super::*;

#[test]
fn a_spent_budget_ends_in_an_answer() {
    let mut run = Run::new();
    for turn in 1..8 {
        run.looks(&format!("Step {turn}."), json!({ "command": turn.to_string() }));
    }
    assert!(run.events.contains(&EventKind::BudgetNudge { turns_left: 2 }));
    run.answers("", &[("transfer_to_coder", json!({}))]);
    let (model, messages, tools) = run.request();
    assert_eq!((model, tools.len()), ("big", 0), "the entry agent answers, without tools");
    assert!(messages.last().is_some_and(|message| message.text.contains("8 turns")));
    run.answers("So far: steps. Missing: the end.", &[]);
    assert_eq!(run.state.status, TeamRunStatus::CompletedPartial);
    assert_eq!(run.answer(), Some("So far: steps. Missing: the end."));
    let spent = SpentBudget { unit: BudgetUnit::Turns, limit: 8, used: 8 };
    assert_eq!(run.state.spent, Some(spent));
}

#[test]
fn an_agent_without_turns_gives_what_it_has() {
    let mut run = Run::new();
    run.answers("", &[("delegate_to_tester", brief())]);
    for turn in 0..2 {
        run.looks("", json!({ "command": turn.to_string() }));
    }
    assert!(run.last_read().contains("2 turns of this agent"));
    run.answers("Half.", &[]);
    assert!(run.last_read().contains("\"partial\""), "{}", run.last_read());
    assert!(run.state.stack[0].is_tainted, "what the tester read may mislead the lead too");
}

#[test]
fn an_answer_at_its_limit_of_tokens_is_partial() {
    let mut run = Run::new();
    run.answers("", &[("delegate_to_tester", brief())]);
    run.cut_after("Half of");
    assert!(run.last_read().contains("\"partial\""), "{}", run.last_read());
    run.cut_after("The whole is");
    assert_eq!(run.state.status, TeamRunStatus::CompletedPartial);
    assert_eq!((run.answer(), run.state.spent), (Some("The whole is"), None));
}

#[test]
fn money_is_a_budget_too() {
    let mut run = Run::of_team(&TEAM.replace("tokens = 10000", "cost = 0.02"));
    for turn in 0..2 {
        run.looks("", json!({ "command": turn.to_string() }));
    }
    assert!(run.last_read().contains("0.02 USD"), "{}", run.last_read());
    run.answers("So far.", &[]);
    assert_eq!(run.state.status, TeamRunStatus::CompletedPartial);
    assert!((run.state.used.cost - 0.03).abs() < 1e-9, "{}", run.state.used.cost);
}

#[test]
fn tokens_are_kept_for_the_last_answer() {
    // 200 tokens for the work. hob keeps `LAST_ANSWER_TOKENS`, 1,024, for the last answer.
    let mut run = Run::of_team(&TEAM.replace("tokens = 10000", "tokens = 1224"));
    run.looks("", json!({}));
    assert_eq!(run.request().2.len(), 5, "110 tokens are used");
    run.looks("", json!({ "command": "more" }));
    assert!(run.last_read().contains("1224 tokens"), "{}", run.last_read());
    run.answers("So far.", &[]);
    let spent = SpentBudget { unit: BudgetUnit::Tokens, limit: 1224, used: 220 };
    assert_eq!((run.state.status, run.state.spent), (TeamRunStatus::CompletedPartial, Some(spent)));
}

#[test]
fn the_end_of_the_time_stops_a_turn() {
    let mut run = Run::new();
    run.answers("", &[("transfer_to_coder", json!({}))]);
    run.state.used.time_s = 99.5;
    run.out_of_time("fn f() {");
    let (model, messages, tools) = run.request();
    assert_eq!((model, tools.len()), ("big", 0), "the entry agent answers, without tools");
    assert!(messages.iter().any(|message| message.text.contains("fn f() {")), "{messages:?}");
    assert!(run.last_read().contains("100 s"), "{}", run.last_read());
    run.out_of_time("");
    assert_eq!(
        (run.state.status, run.answer()),
        (TeamRunStatus::CompletedPartial, Some("coder: fn f() {"))
    );
}

#[test]
fn calls_that_are_left_when_the_time_ends_are_not_made() {
    let mut run = Run::new();
    run.answers("", &[("look", json!({})), ("save", json!({}))]);
    run.state.used.time_s = 99.5;
    run.tool_gives("seen");
    let messages = run.request().1;
    assert!(messages.iter().any(|message| message.text.contains("not made")), "{messages:?}");
    let is_saved =
        |event: &EventKind| matches!(event, EventKind::ToolCalled { name, .. } if name == "save");
    assert!(!run.events.iter().any(is_saved));
    run.answers("I have looked.", &[]);
    assert_eq!(run.state.status, TeamRunStatus::CompletedPartial);
}

/// A run in which a tester with this limit works. The writer can work for the tester.
fn run_of_tester(limit: &str) -> Run {
    let settings = format!("turns = 9\n{limit}\nhandoffs = [\"writer\"]");
    let mut run = Run::of_team(&TEAM.replace("turns = 2", &settings));
    run.answers("I ask the tester.", &[("delegate_to_tester", brief())]);
    run
}

#[test]
fn a_delegate_has_a_budget_of_its_own_and_its_agents_count() {
    for (limit, shown) in [
        ("tokens = 1324", "1324 tokens of this agent"),
        ("cost = 0.03", "0.03 USD of this agent"),
        ("time_s = 4", "4 s of this agent"),
    ] {
        let mut run = run_of_tester(limit);
        let budget = run.state.team.agent("tester").expect("known").limits();
        let is_its = |event: &EventKind| matches!(event, EventKind::DelegateOccurred { budget: Some(own), .. } if *own == budget);
        assert!(run.events.iter().any(is_its), "{limit}: {:?}", run.events);
        run.answers("", &[("transfer_to_writer", json!({}))]);
        run.answers("A text.", &[]);
        run.looks("", json!({}));
        let (model, _, tools) = run.request();
        assert_eq!((model, tools.len()), ("small", 0), "{limit}: the tester answers");
        assert!(run.last_read().contains(shown), "{}", run.last_read());
        run.answers("Half.", &[]);
        assert!(run.last_read().contains("\"partial\""), "{}", run.last_read());
        assert_eq!(run.request().0, "big", "the lead goes on");
        let used = run.events.iter().find_map(|event| match event {
            EventKind::DelegateReturned { used, .. } => Some(*used),
            _ => None,
        });
        let used = used.expect("it has returned");
        assert_eq!((used.turns, used.prompt_tokens, used.answer_tokens), (4, 400, 40), "{limit}");
        run.answers("The end.", &[]);
        assert_eq!((run.state.status, run.state.spent), (TeamRunStatus::Completed, None));
    }
}

#[test]
fn the_time_of_a_delegate_stops_the_agent_that_works_for_it() {
    let mut run = run_of_tester("time_s = 10");
    run.answers("", &[("transfer_to_writer", json!({}))]);
    let id = run.model_call();
    let left_s = run.state.time_left_s(id);
    assert!((left_s - 9.0).abs() < 1e-9, "{left_s}");
    run.state.used.time_s += 8.5;
    run.out_of_time("A te");
    let (model, messages, tools) = run.request();
    assert_eq!((model, tools.len()), ("small", 0));
    assert!(
        messages
            .iter()
            .any(|message| message.text.contains("stopped") && message.text.contains("A te"))
    );
    run.answers("Half.", &[]);
    run.answers("The end.", &[]);
    assert_eq!(run.state.status, TeamRunStatus::Completed);
}

impl Run {
    fn out_of_time(&mut self, said: &str) {
        let id = self.model_call();
        self.input(Input::OutOfTime { id, said: said.to_owned() });
    }
}
