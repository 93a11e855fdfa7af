//! Delegates that work at the same time.

use super::*;

const TEAM: &str = r#"
entry = "lead"
[budget]
turns = 12
nudge_at = 1
[policy]
approval = "on-request"
[[agent]]
name = "lead"
model = "cloud"
delegates = ["tester", "writer", "local"]
[[agent]]
name = "tester"
model = "cloud"
handoffs = ["helper"]
delegates = ["helper", "writer"]
tools = ["look", "run"]
[[agent]]
name = "writer"
model = "cloud"
tools = ["save"]
[[agent]]
name = "helper"
model = "cloud"
[[agent]]
name = "local"
model = "here"
"#;

fn run() -> Run {
    let team = Team::parse(TEAM, "team").expect("a team");
    let mut state = RunState::new(team, "run".to_owned(), "Do it.".to_owned());
    state.remote_models.insert("cloud".to_owned());
    Run::begun(state)
}

/// A run in which three delegates work at the same time.
fn run_of_three() -> Run {
    let mut run = run();
    let calls = [
        delegated("delegate_to_tester", "North"),
        delegated("delegate_to_tester", "South"),
        delegated("delegate_to_writer", "East"),
    ];
    run.answers("", &calls);
    run
}

/// A call of a delegate, with this goal.
fn delegated(agent: &'static str, goal: &str) -> (&'static str, Value) {
    let mut brief = brief();
    brief["goal"] = Value::from(goal);
    (agent, brief)
}

impl Run {
    /// The call of the model that works on this goal.
    fn working_on(&self, goal: &str) -> u64 {
        let is_its = |asked: &&Effect| match asked {
            Effect::CallModel { request, .. } => {
                let Prompt::Chat(conversation) = &request.prompt else { return false };
                conversation.messages.iter().any(|message| message.text.contains(goal))
            }
            _ => false,
        };
        match self.asked.iter().find(is_its) {
            Some(Effect::CallModel { id, .. }) => *id,
            _ => panic!("no model works on {goal}: {:?}", self.asked),
        }
    }

    /// What the tools of the last answer gave, by the id of the call.
    fn results(&self) -> BTreeMap<String, String> {
        let messages = self.request().1;
        let results = messages.iter().filter(|message| message.role == Role::Tool);
        results
            .map(|message| (message.tool_call_id.clone().unwrap_or_default(), message.text.clone()))
            .collect()
    }

    fn approval(&self) -> String {
        let asked = self.asked.iter().find_map(|asked| match asked {
            Effect::Ask { approval, .. } => Some(approval.clone()),
            _ => None,
        });
        asked.expect("an approval")
    }
}

#[test]
fn delegates_of_one_answer_work_at_the_same_time() {
    let mut run = run_of_three();
    assert_eq!(run.asked.len(), 3, "{:?}", run.asked);
    let (north, south) = (run.working_on("North"), run.working_on("South"));
    run.answers_to(south, "South is done.", &[]);
    run.answers_to(north, "", &[("transfer_to_helper", json!({ "brief": "Up" }))]);
    run.answers_to(run.working_on("East"), "East is done.", &[]);
    let helper = run.working_on("Up");
    run.answers_to(helper, "Help.", &[]);
    run.answers_to(run.working_on("North"), "North is done.", &[]);
    let results: Vec<String> = run.results().into_values().collect();
    let [north, south, east] = &results[..] else { panic!("{results:?}") };
    assert!(north.contains("North is done") && south.contains("South is done"), "{results:?}");
    assert!(east.contains("East is done"), "{results:?}");
    run.answers("All done.", &[]);
    assert_eq!((run.state.status, run.state.used.turns), (TeamRunStatus::Completed, 7));
}

#[test]
fn delegates_with_one_name_have_spans_and_numbers_of_their_own() {
    let mut run = run_of_three();
    let answer = said("South is done.");
    let input = Input::ModelAnswered { id: run.working_on("South"), answer };
    let event = |effect| match effect {
        Effect::Emit(event) => Some(event),
        _ => None,
    };
    let effects = step(&mut run.state, &tools(), input, Now::default()).into_iter();
    let events: Vec<RunEvent> = effects.filter_map(event).collect();
    let [answered, returned] = &events[..] else { panic!("{events:?}") };
    assert_eq!((answered.agent.as_deref(), answered.number), (Some("tester"), Some(2)));
    assert_eq!((returned.agent.as_deref(), returned.number), (Some("lead"), None));
    assert_eq!((answered.parent_id, returned.parent_id), (Some(returned.span_id), None));
    let EventKind::DelegateReturned { span_id, number, .. } = &returned.what else {
        panic!("{returned:?}")
    };
    assert_eq!((*span_id, *number), (answered.span_id, Some(2)));
    let branches = run.state.branches.iter().flat_map(|branch| &branch.frames);
    let others: Vec<_> = branches.chain(run.state.stack.last()).collect();
    assert!(others.iter().all(|frame| frame.number == 1 && frame.span != *span_id), "{others:?}");
}

#[test]
fn models_of_other_machines_get_tools_in_strict_form() {
    let mut run = run_of_three();
    let tools_of = |run: &Run, goal: &str| {
        let id = run.working_on(goal);
        let request = run.asked.iter().find_map(|asked| match asked {
            Effect::CallModel { id: own, request, .. } if *own == id => Some(request),
            _ => None,
        });
        let Prompt::Chat(conversation) = &request.expect("a request").prompt else { panic!() };
        conversation.tools.clone()
    };
    let strict = tools_of(&run, "North");
    assert!(strict.iter().all(|tool| tool.strict), "{strict:?}");
    let handoff = strict.iter().find(|tool| tool.name == "transfer_to_helper").expect("a tool");
    let schema: Value =
        serde_json::from_str(handoff.parameters.as_ref().expect("a schema").as_str())
            .expect("JSON");
    assert_eq!(schema["required"], json!(["brief"]));
    // The brief may be left out.
    let call = [("transfer_to_helper", json!({ "brief": null }))];
    run.answers_to(run.working_on("North"), "", &call);
    assert_eq!(run.state.stack.last().map(|frame| frame.agent.as_str()), Some("helper"));
    let mut here = self::run();
    here.state.remote_models.clear();
    here.answers("", &[delegated("delegate_to_tester", "Near")]);
    assert!(tools_of(&here, "Near").iter().all(|tool| !tool.strict));
}

#[test]
fn models_of_this_machine_work_one_after_the_other() {
    let mut run = run();
    let calls = [delegated("delegate_to_local", "Near"), delegated("delegate_to_tester", "Far")];
    run.answers("", &calls);
    assert_eq!(run.asked.len(), 1);
    run.answers_to(run.working_on("Near"), "Near is done.", &[]);
    run.answers_to(run.working_on("Far"), "", &calls_of_helpers());
    assert_eq!(run.asked.len(), 2, "a delegate that works alone may have branches of its own");
}

fn calls_of_helpers() -> [(&'static str, Value); 2] {
    [delegated("delegate_to_helper", "Left"), delegated("delegate_to_writer", "Right")]
}

#[test]
fn a_branch_has_no_branches() {
    let mut run = run();
    let calls =
        [delegated("delegate_to_tester", "North"), delegated("delegate_to_tester", "South")];
    run.answers("", &calls);
    run.answers_to(run.working_on("North"), "", &calls_of_helpers());
    assert_eq!(run.asked.len(), 2, "South, and the first helper of North");
    run.answers_to(run.working_on("Left"), "Left is done.", &[]);
    run.answers_to(run.working_on("Right"), "Right is done.", &[]);
    run.answers_to(run.working_on("North"), "North is done.", &[]);
    run.answers_to(run.working_on("South"), "South is done.", &[]);
    assert_eq!(run.results().len(), 2);
}

#[test]
fn an_incomplete_brief_stops_no_other_branch() {
    let mut run = run();
    let calls = [
        delegated("delegate_to_tester", "North"),
        ("delegate_to_tester", json!({ "goal": "x" })),
        delegated("delegate_to_writer", "East"),
    ];
    run.answers("", &calls);
    assert_eq!(run.asked.len(), 2);
    run.answers_to(run.working_on("North"), "North is done.", &[]);
    run.fails();
    let results: Vec<String> = run.results().into_values().collect();
    let [north, wrong, east] = &results[..] else { panic!("{results:?}") };
    assert!(north.contains("done") && wrong.contains("Error") && east.contains("no server"));
    assert!(east.contains("\"failed\"") && !east.contains("\"partial\""), "{east}");
}

/// A person is asked about one call at a time, while the other branches work.
#[test]
fn branches_wait_for_approval_one_after_the_other() {
    let mut run = run_of_three();
    for goal in ["North", "South"] {
        run.answers_to(run.working_on(goal), "", &[("run", json!({ "command": "make" }))]);
    }
    assert_eq!(run.state.status, TeamRunStatus::Running, "East works");
    let first = run.approval();
    run.answers_to(run.working_on("East"), "East is done.", &[]);
    assert_eq!(run.state.status, TeamRunStatus::WaitingApproval);
    assert_eq!(run.asked.len(), 1);
    // After a crash, the same question is asked again.
    run.input(Input::Start);
    assert_eq!((run.asked.len(), run.approval()), (1, first.clone()));
    run.input(Input::Resolved { approval: first.clone(), is_approved: true });
    let second = run.approval();
    assert_ne!(first, second);
    assert_eq!(run.state.status, TeamRunStatus::Running, "the first call runs");
    let running = run.asked.iter().find_map(|asked| match asked {
        Effect::RunTool { id, .. } => Some(*id),
        _ => None,
    });
    let id = running.expect("a tool");
    run.input(Input::ToolEnded { id, output: ToolOutput::ok("made") });
    run.input(Input::Resolved { approval: second, is_approved: false });
    run.answers_to(run.working_on("North"), "North is done.", &[]);
    run.answers_to(run.working_on("South"), "South is done.", &[]);
    assert_eq!(run.results().len(), 3);
}

#[test]
fn a_spent_budget_ends_all_branches_with_what_they_have() {
    let mut run = run();
    let calls =
        [delegated("delegate_to_tester", "North"), delegated("delegate_to_tester", "South")];
    run.answers("", &calls);
    for turn in 0..40 {
        match run.asked.first().cloned() {
            Some(Effect::RunTool { id, .. }) => {
                run.input(Input::ToolEnded { id, output: ToolOutput::ok("seen") });
            }
            Some(Effect::CallModel { id, request, .. }) if request.tokens_max.is_none() => {
                let look = [("look", json!({ "command": turn.to_string() }))];
                run.answers_to(id, &format!("Step {turn}."), &look);
            }
            _ => break,
        }
    }
    assert!(run.request().1.iter().any(|message| message.text.contains("Step")));
    run.answers("So far.", &[]);
    assert_eq!((run.state.status, run.state.used.turns), (TeamRunStatus::CompletedPartial, 13));
}

proptest! {
    /// For any order of the branches, and any moment at which the process ends: the run ends, and no call
    /// with side effects starts twice. [`Run::input`] checks the second part.
    #[test]
    fn every_run_with_branches_ends(turns in turns_with_branches(), order in prop::collection::vec(0_usize..8, 80)) {
        let mut run = run();
        let mut turns = turns.into_iter();
        for at in order.into_iter().cycle().take(600) {
            if run.state.status.has_ended() {
                break;
            }
            prop_assert!(!run.asked.is_empty(), "the run waits for nothing: {:?}", run.state);
            let asked = run.asked[at % run.asked.len()].clone();
            run.meets(turns.next(), asked);
        }
        prop_assert!(run.state.status.has_ended());
        prop_assert!(run.state.branches.is_empty() || run.state.status == TeamRunStatus::Cancelled);
        prop_assert!(run.state.used.turns <= 12 + 1, "the budget and one last answer");
    }
}

fn turns_with_branches() -> impl Strategy<Value = Vec<Turn>> {
    let names =
        ["look", "save", "run", "delegate_to_tester", "delegate_to_writer", "transfer_to_helper"];
    let arguments = prop_oneof![
        1 => Just(json!({})),
        4 => Just(brief()),
        1 => Just(json!({ "command": "rm x" })),
    ];
    let call = (prop::sample::select(names.to_vec()), arguments);
    let turn = prop_oneof![
        2 => prop_oneof![Just("Well."), Just("")].prop_map(Turn::Says),
        6 => prop::collection::vec(call, 1..5).prop_map(Turn::Calls),
        1 => Just(Turn::Fails),
        1 => Just(Turn::Crashes),
        1 => prop_oneof![9 => Just(Turn::Fails), 1 => Just(Turn::Cancels)],
    ];
    prop::collection::vec(turn, 0..60)
}
