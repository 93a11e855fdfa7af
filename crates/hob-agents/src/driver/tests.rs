//! Runs with scripted models: answers that hang, break off or refuse, limits of time, tools that open late, a full disk.

mod crashes;

use std::sync::Mutex;

use futures::{FutureExt, TryStreamExt};
use hob_core::chat::Prompt;
use hob_core::{ChatModel as _, Fault};
use serde_json::Value;

use super::*;
use crate::script::ScriptModel;
use crate::state::Used;
use crate::team::{Agent, Team};
use crate::tool::{OpenedTools, ToolClass};

const TEAM: &str = "entry = \"lead\"\n[[agent]]\nname = \"lead\"\nmodel = \"m\"\nhandoffs = [\"helper\"]\ntools = [\"save\"]\n\
                    [[agent]]\nname = \"helper\"\nmodel = \"m\"\ntools = [\"docs__*\"]\n\
                    [mcp.docs]\ncommand = [\"docs\"]\n";

/// Scripted models, which keep the thinking that is sent back.
struct Scripted {
    script: ScriptModel,
    thoughts: Mutex<Vec<String>>,
    /// The first target is loaded for 8 s and fails, and the second one answers.
    is_alias: bool,
    is_remote: bool,
}

fn scripted(script: &str) -> Scripted {
    let script = ScriptModel::parse("m", script).expect("a script");
    Scripted { script, thoughts: Mutex::default(), is_alias: false, is_remote: false }
}

impl AgentModels for Scripted {
    fn chat<'m>(
        &'m self,
        _: &'m str,
        request: ChatRequest,
    ) -> BoxFuture<'m, Result<AnswerStream, AnswerFailure>> {
        if let Prompt::Chat(conversation) = &request.prompt {
            let thoughts = conversation.messages.iter().filter_map(|one| one.reasoning.clone());
            self.thoughts.lock().expect("a list").extend(thoughts);
        }
        async move {
            if self.is_alias {
                request.trace.asking("a/m", false);
                tokio::time::sleep(Duration::from_secs(8)).await;
                let error = ModelError::upstream("a/m", Fault::CutOff);
                request.trace.failed("a/m", &error, Duration::from_secs(8));
                request.trace.asking("b/m", true);
            }
            Ok(self.script.chat(request).await?.map_err(AnswerFailure::from).boxed())
        }
        .boxed()
    }

    fn is_remote(&self, _: &str) -> bool {
        self.is_remote
    }
}

/// Keeps the arguments of its calls.
struct Save(ToolSpec, Mutex<Vec<Value>>);

fn save_tool() -> Arc<Save> {
    let schema = serde_json::json!({ "type": "object" });
    Arc::new(Save(ToolSpec::new("save", "", schema, ToolClass::Write), Mutex::default()))
}

impl AgentTool for Save {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call(&self, arguments: Value) -> BoxFuture<'_, ToolOutput> {
        let wait = Duration::from_secs(arguments["wait_s"].as_u64().unwrap_or_default());
        self.1.lock().expect("calls").push(arguments);
        async move {
            sleep(wait).await;
            ToolOutput::ok("saved")
        }
        .boxed()
    }
}

/// Gives the helper a tool when it works, and misses another one.
struct Late;

impl ToolSource for Late {
    fn open<'s>(&'s self, agent: &'s Agent) -> BoxFuture<'s, OpenedTools> {
        let schema = serde_json::json!({ "type": "object" });
        let find = ToolSpec::new("docs__find", "", schema, ToolClass::Network);
        let mut opened = OpenedTools::default();
        if agent.name == "helper" {
            opened.tools.push(Arc::new(Save(find, Mutex::default())));
            opened.notes.push("docs has no tool 'other'".to_owned());
        }
        async { opened }.boxed()
    }
}

/// Opens nothing, and takes 100 s for that.
struct Slow;

impl ToolSource for Slow {
    fn open<'s>(&'s self, _: &'s Agent) -> BoxFuture<'s, OpenedTools> {
        async {
            sleep(Duration::from_secs(100)).await;
            OpenedTools::default()
        }
        .boxed()
    }
}

/// A disk that is full from this number of events on.
struct Disk {
    events_max: u64,
    shown: Mutex<Vec<EventKind>>,
    synced: Mutex<u32>,
}

impl RunHost for Disk {
    fn store(&self, state: &RunState, _: &[RunEvent], must_sync: bool) -> io::Result<()> {
        *self.synced.lock().expect("a number") += u32::from(must_sync);
        if state.seq > self.events_max { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn show(&self, event: &RunEvent) {
        self.shown.lock().expect("a list").push(event.what.clone());
    }

    fn ask<'h>(&'h self, _: &'h ToolCall, _: &'h str) -> BoxFuture<'h, Option<bool>> {
        async { None }.boxed()
    }
}

struct Driven {
    ended: io::Result<TeamRunStatus>,
    used: Used,
    shown: Vec<EventKind>,
    synced: u32,
    saved: usize,
}

fn driver<'d>(
    models: &'d Scripted,
    tools: &'d [Arc<dyn AgentTool>],
    source: &'d dyn ToolSource,
    host: &'d dyn RunHost,
) -> Driver<'d> {
    let (watchdog, redaction) = (Watchdog::default(), Redaction::default());
    Driver { models, tools, source, host, watchdog, redaction }
}

async fn driven(script: &str, events_max: u64) -> Driven {
    driven_by(&scripted(script), events_max).await
}

async fn driven_by(models: &Scripted, events_max: u64) -> Driven {
    driven_team(TEAM, models, &Late, events_max).await
}

async fn driven_team(
    team: &str,
    models: &Scripted,
    source: &dyn ToolSource,
    events_max: u64,
) -> Driven {
    let save = save_tool();
    let tools: [Arc<dyn AgentTool>; 1] = [Arc::clone(&save) as _];
    let disk = Disk { events_max, shown: Mutex::default(), synced: Mutex::default() };
    let driver = driver(models, &tools, source, &disk);
    let team = Team::parse(team, "t").expect("a team");
    let mut state = RunState::new(team, "run".to_owned(), "Task".to_owned());
    let ended = driver.drive(&mut state).await;
    let (shown, synced) = (disk.shown.into_inner(), disk.synced.into_inner());
    Driven {
        ended,
        used: state.used,
        shown: shown.expect("a list"),
        synced: synced.expect("a number"),
        saved: save.1.lock().expect("calls").len(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_is_given_up_and_the_run_goes_on() {
    let script = r#"{"reply": {"tool_calls": [{"name": "transfer_to_helper"}]}}
{"reply": {"content": "Well", "stall": true}}
{"reply": {"content": "Well", "stall": true}}
{"when": {"last": "sent nothing for 30 s"}, "reply": {"content": "Without help."}}"#;
    let Driven { ended, shown, .. } = driven(script, u64::MAX).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::Completed);
    let output = EventKind::MessageOutput { text: "Without help.".to_owned() };
    assert!(shown.contains(&output), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn thinking_before_a_call_goes_back_to_the_model() {
    let script = r#"{"reply": {"reasoning": "Keep it. ", "tool_calls": [{"name": "save"}]}}
{"reply": {"content": "Kept."}}"#;
    let models = scripted(script);
    let Driven { ended, .. } = driven_by(&models, u64::MAX).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::Completed);
    assert_eq!(*models.thoughts.lock().expect("a list"), ["Keep it. "]);
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_stopped_answer_count() {
    let whole = r#"{"reply": {"content": "Whole."}}"#;
    let once = driven(whole, u64::MAX).await.used;
    let half = r#"{"reply": {"reasoning": "Hm. ", "content": "Half of it", "stall": true}}"#;
    let cut = r#"{"reply": {"content": "Half of it", "cut": true}}"#;
    for (broken, pieces) in [(half, 4), (cut, 3)] {
        let Driven { ended, used, shown, .. } =
            driven(&format!("{broken}\n{whole}"), u64::MAX).await;
        assert_eq!(ended.expect("stored"), TeamRunStatus::Completed);
        assert_eq!(tokens_of(&shown), (used.prompt_tokens, used.answer_tokens), "{shown:?}");
        assert_eq!(used.answer_tokens, pieces + once.answer_tokens, "{broken}");
        assert!(used.prompt_tokens >= 2 * once.prompt_tokens, "{broken}: {used:?}");
    }
}

/// All tokens that events have, of prompts and of answers.
fn tokens_of(events: &[EventKind]) -> (u64, u64) {
    let tokens = |event: &EventKind| match *event {
        EventKind::ModelAnswered { prompt_tokens, answer_tokens, .. }
        | EventKind::ModelStopped { prompt_tokens, answer_tokens, .. } => {
            Some((prompt_tokens, answer_tokens))
        }
        _ => None,
    };
    let add = |sum: (u64, u64), more: (u64, u64)| (sum.0 + more.0, sum.1 + more.1);
    events.iter().filter_map(tokens).fold((0, 0), add)
}

/// The person ends it after 10 s. The watchdog would wait for 30 s.
#[tokio::test(start_paused = true)]
async fn tokens_that_came_before_a_person_ends_the_run_count() {
    let script = r#"{"reply": {"content": "Half of it", "stall": true}}"#;
    let models = scripted(script);
    let disk = Disk { events_max: u64::MAX, shown: Mutex::default(), synced: Mutex::default() };
    let driver = driver(&models, &[], &(), &disk);
    let team = Team::parse(TEAM, "t").expect("a team");
    let mut state = RunState::new(team, "run".to_owned(), "Task".to_owned());
    timeout(Duration::from_secs(10), driver.drive(&mut state)).await.expect_err("it hangs");
    assert_eq!((state.used.answer_tokens, state.stack[0].used.answer_tokens), (3, 3));
    let effects = step(&mut state, &[], Input::Cancel, Now::default());
    let events: Vec<EventKind> = effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Emit(event) => Some(event.what),
            _ => None,
        })
        .collect();
    assert_eq!(tokens_of(&events), (state.used.prompt_tokens, 3), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn the_trace_tells_of_loading_and_of_the_target_that_answered_instead() {
    let script = r#"{"reply": {"content": "Here."}}"#;
    let models = Scripted { is_alias: true, ..scripted(script) };
    let Driven { ended, shown, .. } = driven_by(&models, u64::MAX).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::Completed);
    let told = shown.iter().filter_map(|event| match event {
        EventKind::ModelLoading { model } => Some(format!("{model} is loading")),
        EventKind::ModelFallback { from, to, reason } => {
            Some(format!("{to}, not {from}: {reason}"))
        }
        EventKind::ModelAnswered { target, .. } => Some(format!("{target} answered")),
        _ => None,
    });
    let told: Vec<String> = told.collect();
    let [loading, fallback, answered] = &told[..] else { panic!("{told:?}") };
    assert_eq!((loading.as_str(), answered.as_str()), ("a/m is loading", "b/m answered"));
    assert!(fallback.starts_with("b/m, not a/m: ") && fallback.contains("cut off"), "{fallback}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_asked_for_again() {
    let script = r#"{"reply": {"content": "Half", "tool_calls": [{"name": "save"}], "cut": true}}
{"reply": {"tool_calls": [{"name": "save"}]}}
{"reply": {"content": "Half", "stall": true}}
{"reply": {"content": "Done."}}"#;
    let Driven { ended, shown, saved, .. } = driven(script, u64::MAX).await;
    assert_eq!((ended.expect("stored"), saved), (TeamRunStatus::Completed, 1));
    let stalled = EventKind::ModelStalled { error: "'m' has sent nothing for 30 s".to_owned() };
    assert!(shown.contains(&stalled), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_call_is_too_long_is_asked_for_again() {
    let name = "x".repeat(5 << 20);
    let script = format!(
        "{{\"reply\": {{\"tool_calls\": [{{\"name\": \"{name}\"}}]}}}}\n\
         {{\"reply\": {{\"content\": \"Done.\"}}}}"
    );
    let Driven { ended, shown, .. } = driven(&script, u64::MAX).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::Completed);
    assert!(shown.iter().any(|event| matches!(event, EventKind::ModelFailed { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_refuses_is_not_asked_again() {
    let script = r#"{"reply": {"refused": "no such parameter"}}
{"reply": {"content": "Too late."}}"#;
    let Driven { ended, shown, .. } = driven(script, u64::MAX).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::Failed);
    let asked = shown.iter().filter(|event| matches!(event, EventKind::ModelRequested { .. }));
    assert_eq!(asked.count(), 1, "{shown:?}");
    let is_said = |event: &EventKind| matches!(event, EventKind::RunEnded { error: Some(error), .. } if error.contains("no such parameter"));
    assert!(shown.iter().any(is_said), "{shown:?}");
}

/// The watchdog would wait for 30 s, and the tool for 100 s.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_stops_a_model_and_a_tool() {
    let team = format!("{TEAM}[budget]\ntime_s = 20\n");
    let save = r#"{"tool_calls": [{"name": "save", "arguments": {"wait_s": 100}}]}"#;
    let half = r#"{"content": "Half", "stall": true}"#;
    for (first, read) in [(half, "Half"), (save, "was stopped")] {
        let script = format!(
            "{{\"reply\": {first}}}\n\
             {{\"when\": {{\"last\": \"20 s\", \"contains\": \"{read}\"}}, \"reply\": {{\"content\": \"So far.\"}}}}"
        );
        let models = scripted(&script);
        let begun = Instant::now();
        let Driven { ended, shown, .. } = driven_team(&team, &models, &Late, u64::MAX).await;
        assert_eq!(ended.expect("stored"), TeamRunStatus::CompletedPartial, "{first}");
        assert_eq!(begun.elapsed().as_secs(), 20, "{first}");
        let output = EventKind::MessageOutput { text: "So far.".to_owned() };
        assert!(shown.contains(&output), "{shown:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_stops_tools_that_open() {
    let team = format!("{TEAM}[budget]\ntime_s = 20\n");
    let script = r#"{"when": {"last": "20 s"}, "reply": {"content": "So far."}}"#;
    let models = scripted(script);
    let begun = Instant::now();
    let Driven { ended, .. } = driven_team(&team, &models, &Slow, u64::MAX).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::CompletedPartial);
    assert_eq!(begun.elapsed().as_secs(), 20);
}

#[tokio::test]
async fn calls_that_are_written_as_text_are_not_shown() {
    let script = r#"{"reply": {"content": "I look. <tool_call> {\"name\": \"save\"} </tool_call>"}}
{"reply": {"content": "1 <tool is less <tool"}}"#;
    let Driven { ended, shown, saved, .. } = driven(script, u64::MAX).await;
    assert_eq!((ended.expect("stored"), saved), (TeamRunStatus::Completed, 1));
    let text = |event: &EventKind| match event {
        EventKind::ModelDelta { kind: DeltaKind::Text, text } => Some(text.clone()),
        _ => None,
    };
    let shown: String = shown.iter().filter_map(text).collect();
    assert_eq!(shown, "I look. 1 <tool is less <tool");
}

#[tokio::test]
async fn an_answer_at_its_limit_of_tokens_ends_the_run_in_part() {
    let script = r#"{"reply": {"content": "Half of it", "limit": true}}"#;
    let Driven { ended, .. } = driven(script, u64::MAX).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::CompletedPartial);
}

#[tokio::test]
async fn what_cannot_be_stored_is_not_done() {
    let script = r#"{"reply": {"tool_calls": [{"name": "save"}]}}
{"reply": {"content": "Done."}}"#;
    let Driven { ended, saved, .. } = driven(script, 4).await;
    assert_eq!((ended.expect_err("full").kind(), saved), (io::ErrorKind::StorageFull, 0));
    let Driven { ended, synced, saved, .. } = driven(script, u64::MAX).await;
    assert_eq!((ended.expect("stored"), saved), (TeamRunStatus::Completed, 1));
    assert_eq!(synced, 3, "before the call, after it, and at the end");
}

#[tokio::test]
async fn tools_that_open_late_are_offered_to_their_agent() {
    let script = r#"{"when": {"tools": ["save"]}, "reply": {"tool_calls": [{"name": "transfer_to_helper"}]}}
{"when": {"tools": ["docs__find"]}, "reply": {"tool_calls": [{"name": "docs__find"}]}}
{"when": {"last": "saved", "tools": ["docs__find"]}, "reply": {"content": "Found."}}
{"when": {"last": "Found."}, "reply": {"content": "The end."}}"#;
    let Driven { ended, shown, .. } = driven(script, u64::MAX).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::Completed);
    let missing = EventKind::ToolsMissing { note: "docs has no tool 'other'".to_owned() };
    assert!(shown.contains(&missing), "{shown:?}");
}
