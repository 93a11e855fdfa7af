//! Runs of a scripted driver, and a property test that ends the process at any step.

mod branches;
mod budget;
mod client;
mod failures;
mod reading;

use hob_core::chat::{JsonText, Prompt, Role};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tool::{CommandArgument, ToolClass};

const TEAM: &str = r#"
entry = "lead"
[budget]
turns = 8
tokens = 10000
time_s = 100
nudge_at = 2
[[agent]]
name = "lead"
model = "big"
instructions = "You lead."
handoffs = ["coder", "writer"]
delegates = ["tester"]
tools = ["look", "save"]
[[agent]]
name = "coder"
model = "small"
handoffs = ["lead", "writer"]
tools = ["save", "run"]
[[agent]]
name = "writer"
model = "small"
history = "full"
[[agent]]
name = "tester"
model = "small"
tools = ["look"]
turns = 2
[[rule]]
argv = ["ls"]
decision = "allow"
"#;

fn tools() -> Vec<ToolSpec> {
    [("look", ToolClass::Read), ("save", ToolClass::Write), ("run", ToolClass::Execute)]
        .into_iter()
        .map(|(name, class)| {
            let schema =
                json!({ "type": "object", "properties": { "command": { "type": "string" } } });
            let command = (name == "run").then_some(CommandArgument::Shell("command"));
            let is_foreign = name == "look";
            ToolSpec { command, is_foreign, ..ToolSpec::new(name, "", schema, class) }
        })
        .collect()
}

/// A run, with what its driver would know.
struct Run {
    state: RunState,
    events: Vec<EventKind>,
    /// The effects at work, without events.
    asked: Vec<Effect>,
    /// The calls with side effects that a driver has started, by their ids. No two calls have the same id here.
    started: BTreeSet<String>,
}

impl Run {
    fn new() -> Run {
        Run::of_team(TEAM)
    }

    fn of_team(text: &str) -> Run {
        let team = Team::parse(text, "team").expect("a team");
        Run::begun(RunState::new(team, "run".to_owned(), "Do it.".to_owned()))
    }

    fn begun(state: RunState) -> Run {
        let (events, asked, started) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut run = Run { state, events, asked, started };
        run.input(Input::Start);
        run
    }

    fn input(&mut self, input: Input) {
        let now = Now { unix_ms: 1_000, since_s: 1.0 };
        self.asked.retain(|asked| match (asked, &input) {
            (
                Effect::CallModel { id, .. },
                Input::ModelAnswered { id: own, .. }
                | Input::ModelFailed { id: own, .. }
                | Input::OutOfTime { id: own, .. },
            )
            | (Effect::RunTool { id, .. }, Input::ToolEnded { id: own, .. }) => id != own,
            (Effect::Ask { approval, .. }, Input::Resolved { approval: own, .. }) => {
                approval != own
            }
            (Effect::AskClient { id }, Input::ClientAnswered { id: own, .. }) => id != own,
            (_, input) => !matches!(input, Input::Start | Input::Cancel),
        });
        let effects = step(&mut self.state, &tools(), input, now);
        for effect in effects {
            match effect {
                Effect::Emit(event) => {
                    assert_eq!(event.seq, self.events.len() as u64 + 1);
                    self.events.push(event.what);
                }
                other => {
                    // Counted when it starts: after a crash, its output never comes.
                    if let Effect::RunTool { call, .. } = &other
                        && call.name != "look"
                    {
                        let is_first = self.started.insert(call.id.clone());
                        assert!(is_first, "a side effect happens twice: {call:?}");
                    }
                    self.asked.push(other);
                }
            }
        }
        // What is stored is what goes on.
        let stored = serde_json::to_string(&self.state).expect("JSON");
        assert_eq!(serde_json::from_str::<RunState>(&stored).expect("a state"), self.state);
    }

    /// The only call of a model that is at work.
    fn model_call(&self) -> u64 {
        let [Effect::CallModel { id, .. }] = self.asked[..] else { panic!("{:?}", self.asked) };
        id
    }

    fn answers(&mut self, text: &str, calls: &[(&str, Value)]) {
        self.answers_to(self.model_call(), text, calls);
    }

    fn answers_to(&mut self, id: u64, text: &str, calls: &[(&str, Value)]) {
        let call = |(at, (name, arguments)): (usize, &(&str, Value))| ToolCall {
            id: format!("call_{id}_{at}"),
            name: (*name).to_owned(),
            arguments: JsonText::parsed(
                arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
            ),
        };
        let calls = calls.iter().enumerate().map(call).collect();
        let answer = ModelAnswer { calls, cost: Some(0.01), ..said(text) };
        self.input(Input::ModelAnswered { id, answer });
    }

    /// The answer ends at the limit of its tokens.
    fn cut_after(&mut self, text: &str) {
        let answer = ModelAnswer { is_cut: true, ..said(text) };
        self.input(Input::ModelAnswered { id: self.model_call(), answer });
    }

    /// The model fails, also when it is asked again.
    fn fails(&mut self) {
        self.breaks(ModelFailure::Broke);
        self.breaks(ModelFailure::Broke);
    }

    fn breaks(&mut self, how: ModelFailure) {
        self.input(Input::ModelFailed {
            id: self.model_call(),
            error: "no server".to_owned(),
            how,
        });
    }

    /// The model calls `look`, and gets a result.
    fn looks(&mut self, text: &str, arguments: Value) {
        self.answers(text, &[("look", arguments)]);
        self.tool_gives("seen");
    }

    fn tool_gives(&mut self, text: &str) {
        let [Effect::RunTool { id, .. }] = self.asked[..] else { panic!("{:?}", self.asked) };
        self.input(Input::ToolEnded { id, output: ToolOutput::ok(text) });
    }

    fn request(&self) -> (&str, Vec<Message>, Vec<String>) {
        let [Effect::CallModel { model, request, .. }] = &self.asked[..] else {
            panic!("{:?}", self.asked)
        };
        let Prompt::Chat(conversation) = &request.prompt else { panic!("a conversation") };
        let tools = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
        (model, conversation.messages.clone(), tools)
    }

    /// What the calls of the active agent gave, in the order in which it reads that.
    fn read_results(&self) -> Vec<String> {
        let results = self.request().1.into_iter().filter(|message| message.role == Role::Tool);
        results.map(|message| message.text).collect()
    }

    fn last_read(&self) -> String {
        self.request().1.last().map(|message| message.text.clone()).unwrap_or_default()
    }

    fn answer(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event {
            EventKind::MessageOutput { text } => Some(text.as_str()),
            _ => None,
        })
    }
}

/// An answer of usual length.
fn said(text: &str) -> ModelAnswer {
    let (text, target) = (text.to_owned(), "t".to_owned());
    ModelAnswer {
        text,
        target,
        prompt_tokens: 100,
        answer_tokens: 10,
        ms: 5,
        ..ModelAnswer::default()
    }
}

fn brief() -> Value {
    json!({
        "goal": "Find the fault", "context": "", "constraints": "", "inputs": ["a.rs"],
        "expected_output": "One line", "on_failure": "",
    })
}

#[test]
fn a_handoff_returns_to_its_caller() {
    let mut run = Run::new();
    let (model, messages, tools) = run.request();
    assert_eq!((model, messages.len()), ("big", 2));
    assert_eq!(
        tools,
        ["look", "save", "transfer_to_coder", "transfer_to_writer", "delegate_to_tester"]
    );
    run.answers("I ask the coder.", &[("transfer_to_coder", json!({ "brief": "Write f." }))]);
    let (model, messages, tools) = run.request();
    assert_eq!(
        (model, messages.len()),
        ("small", 1),
        "the coder reads the task and the brief alone"
    );
    assert!(messages[0].text.contains("Do it.") && messages[0].text.contains("Write f."));
    assert_eq!(tools, ["save", "run", "transfer_to_lead", "transfer_to_writer"]);
    run.answers("fn f() {}", &[]);
    assert_eq!((run.request().0, run.last_read()), ("big", "fn f() {}".to_owned()));
    run.answers("Done: fn f() {}", &[]);
    assert_eq!(
        (run.answer(), run.state.status),
        (Some("Done: fn f() {}"), TeamRunStatus::Completed)
    );
    assert_eq!(run.asked, [Effect::Finish]);
    assert_eq!(run.state.used.turns, 3);
}

#[test]
fn after_a_tail_handoff_the_other_agent_answers() {
    let team = TEAM.replace("instructions = \"You lead.\"", "handoff = \"tail\"");
    let mut run = Run::of_team(&team);
    run.answers("", &[("transfer_to_coder", json!({ "brief": "Write f." })), ("look", json!({}))]);
    assert_eq!(run.request().0, "small");
    assert_eq!(run.state.stack.len(), 1, "the lead has ended");
    run.answers("fn f() {}", &[]);
    assert_eq!((run.answer(), run.state.status), (Some("fn f() {}"), TeamRunStatus::Completed));
}

#[test]
fn a_delegate_sees_its_brief_alone_and_gives_a_report() {
    let mut run = Run::new();
    run.answers("", &[("delegate_to_tester", json!({ "goal": "x" }))]);
    assert!(
        run.last_read().contains("Error"),
        "an incomplete brief is not a brief: {}",
        run.last_read()
    );
    let mut blank = brief();
    blank["goal"] = Value::from("  ");
    run.answers("", &[("delegate_to_tester", blank)]);
    assert!(run.last_read().contains("'goal' must not be blank"), "{}", run.last_read());
    run.answers("", &[("delegate_to_tester", brief())]);
    let (_, messages, tools) = run.request();
    assert!(
        messages.len() == 1
            && messages[0].text.contains("Find the fault")
            && !messages[0].text.contains("Do it.")
    );
    assert_eq!(tools, ["look"]);
    run.answers("Line 3.", &[]);
    let report: Value = serde_json::from_str(&run.last_read()).expect("JSON");
    assert_eq!(report, json!({ "status": "done", "summary": "Line 3.", "artifacts": [] }));
}

#[test]
fn agents_that_wait_for_each_other_are_not_called_in_circles() {
    let mut run = Run::new();
    run.answers("", &[("transfer_to_coder", json!({}))]);
    run.answers("", &[("transfer_to_lead", json!({}))]);
    assert!(run.last_read().contains("already works on this task"), "{}", run.last_read());
    assert_eq!(run.state.stack.len(), 2);
}

#[test]
fn the_first_handoff_of_an_answer_wins_and_other_calls_are_made_later() {
    let mut run = Run::new();
    run.answers(
        "",
        &[("transfer_to_coder", json!({})), ("transfer_to_writer", json!({})), ("look", json!({}))],
    );
    run.answers("code", &[]);
    run.tool_gives("seen");
    let results = run.read_results();
    assert_eq!(results, ["Ignored: only the first handoff of an answer is made.", "code", "seen"]);
}

#[test]
fn a_wrong_call_is_explained_to_the_model() {
    let mut run = Run::new();
    for (name, arguments, part) in [
        ("lok", json!({}), "there are look"),
        ("look", json!("{\"command\": \"x"), "end too early"),
        ("look", json!({ "command": 5 }), "at /command"),
        ("run", json!({}), "there is no tool 'run'"),
    ] {
        run.answers("", &[(name, arguments)]);
        assert!(run.last_read().contains(part), "{}", run.last_read());
    }
    run.answers("", &[]);
    assert!(run.last_read().contains("empty"));
    run.answers("", &[]);
    assert_eq!(run.state.status, TeamRunStatus::Failed, "a second empty answer in sequence");
}

#[test]
fn a_call_that_is_repeated_is_noted_and_then_its_tool_is_switched_off() {
    let mut run = Run::new();
    let mut calls = vec![("look", json!({})); 5];
    calls.push(("look", json!({ "at": "another" })));
    run.answers("", &calls);
    for _ in 0..5 {
        run.tool_gives("the same");
    }
    let (results, tools) = (run.read_results(), run.request().2);
    assert_eq!((results[1].as_str(), results.len()), ("the same", 6));
    assert!(results[2].contains("3 times") && results[5].contains("switched off"), "{results:?}");
    assert!(!tools.contains(&"look".to_owned()) && !tools.is_empty(), "{tools:?}");
}

#[test]
fn a_command_waits_for_a_person() {
    let mut run = Run::new();
    run.answers("", &[("transfer_to_coder", json!({}))]);
    run.answers("", &[("run", json!({ "command": "ls" }))]);
    run.tool_gives("a.rs");
    let commands =
        [("run", json!({ "command": "make" })), ("run", json!({ "command": "make it" }))];
    run.answers("", &commands);
    let [Effect::Ask { ref approval, .. }] = run.asked[..] else { panic!("{:?}", run.asked) };
    let first = approval.clone();
    assert_eq!(run.state.status, TeamRunStatus::WaitingApproval);
    let yes = |approval: &str| Input::Resolved { approval: approval.to_owned(), is_approved: true };
    run.input(yes("other"));
    assert_eq!((run.asked.len(), run.state.status), (1, TeamRunStatus::WaitingApproval));
    run.input(yes(&first));
    run.tool_gives("built");
    let [Effect::Ask { ref approval, .. }] = run.asked[..] else { panic!("{:?}", run.asked) };
    let second = approval.clone();
    run.input(yes(&first));
    assert_eq!(run.state.status, TeamRunStatus::WaitingApproval, "an approval counts once");
    run.input(Input::Resolved { approval: second, is_approved: false });
    assert!(run.last_read().contains("denied"));
}

#[test]
fn a_call_with_side_effects_is_not_made_again_after_a_crash() {
    let mut run = Run::new();
    run.answers("", &[("save", json!({})), ("look", json!({}))]);
    assert_eq!(run.started.len(), 1);
    run.input(Input::Start);
    let [Effect::RunTool { ref call, .. }] = run.asked[..] else { panic!("{:?}", run.asked) };
    assert_eq!(call.name, "look");
    run.input(Input::Start);
    run.tool_gives("seen");
    let (_, messages, _) = run.request();
    let [.., saved, seen] = &messages[..] else { panic!("{messages:?}") };
    assert!(saved.text.contains("interrupted") && seen.text == "seen", "{messages:?}");
}

/// What a driver may meet.
#[derive(Clone, Debug)]
enum Turn {
    Says(&'static str),
    Calls(Vec<(&'static str, Value)>),
    Fails,
    Crashes,
    Cancels,
}

impl Run {
    /// What happens next, of which an effect at work may be the reason.
    fn meets(&mut self, turn: Option<Turn>, asked: Effect) {
        let turn = turn.unwrap_or(Turn::Says("The end."));
        match (&turn, asked) {
            (Turn::Crashes, _) => self.input(Input::Start),
            (Turn::Cancels, _) => self.input(Input::Cancel),
            (_, Effect::RunTool { id, .. }) => {
                self.input(Input::ToolEnded { id, output: ToolOutput::ok("output") });
            }
            (_, Effect::Ask { approval, .. }) => {
                let is_approved = matches!(turn, Turn::Calls(_));
                self.input(Input::Resolved { approval, is_approved });
            }
            (Turn::Says(text), Effect::CallModel { id, .. }) => self.answers_to(id, text, &[]),
            (Turn::Calls(calls), Effect::CallModel { id, .. }) => self.answers_to(id, "", calls),
            (Turn::Fails, Effect::CallModel { id, .. }) => {
                let (error, how) = ("no".to_owned(), ModelFailure::Broke);
                self.input(Input::ModelFailed { id, error, how });
            }
            (_, other) => panic!("{other:?}"),
        }
    }
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let names = [
        "look",
        "save",
        "run",
        "transfer_to_coder",
        "transfer_to_lead",
        "transfer_to_writer",
        "delegate_to_tester",
        "none",
    ];
    let arguments = prop_oneof![
        Just(json!({})),
        Just(brief()),
        Just(json!({ "command": "ls" })),
        Just(json!({ "command": "rm x" })),
        Just(json!("{\"a"))
    ];
    let call = (prop::sample::select(names.to_vec()), arguments);
    let turn = prop_oneof![
        2 => prop_oneof![Just("Well."), Just("")].prop_map(Turn::Says),
        6 => prop::collection::vec(call, 1..4).prop_map(Turn::Calls),
        1 => Just(Turn::Fails),
        2 => Just(Turn::Crashes),
        1 => Just(Turn::Cancels),
    ];
    prop::collection::vec(turn, 0..60)
}

proptest! {
    /// For any answers of models, and any moment at which the process ends: the run ends within its budget, and no
    /// call with side effects starts twice. [`Run::input`] checks the second part.
    #[test]
    fn every_run_ends_and_does_nothing_twice(turns in turns()) {
        let mut run = Run::new();
        let mut turns = turns.into_iter();
        for _ in 0..400 {
            if run.state.status.has_ended() {
                break;
            }
            prop_assert!(!run.asked.is_empty(), "the run waits for nothing: {:?}", run.state);
            run.meets(turns.next(), run.asked[0].clone());
        }
        prop_assert!(run.state.status.has_ended());
        prop_assert!(run.state.used.turns <= 8 + 1, "the budget and one last answer");
        let has_ended = matches!(run.events.last(), Some(EventKind::RunEnded { .. }));
        prop_assert!(has_ended, "the last event is the end");
    }
}
