//! Runs in a real store: the process ends at each step, in several ways, and another one goes on.

use std::collections::BTreeSet;

use super::*;
use crate::store::RunStore;

const TEAM: &str = r#"
entry = "lead"
[[agent]]
name = "lead"
model = "m"
handoffs = ["helper"]
delegates = ["scout"]
tools = ["save"]
[[agent]]
name = "helper"
model = "m"
[[agent]]
name = "scout"
model = "m"
tools = ["save"]
"#;

/// A call, a handoff, and two delegates that make a call each at the same time. The steps repeat, because a model is asked
/// again after a crash.
const SCRIPT: &str = r#"
{"repeat": true, "when": {"agent": "helper"}, "reply": {"content": "Helped."}}
{"repeat": true, "when": {"agent": "scout", "last": "North"}, "reply": {"tool_calls": [{"name": "save", "arguments": {"what": "north"}}]}}
{"repeat": true, "when": {"agent": "scout", "last": "South"}, "reply": {"tool_calls": [{"name": "save", "arguments": {"what": "south"}}]}}
{"repeat": true, "when": {"agent": "scout"}, "reply": {"content": "Found."}}
{"repeat": true, "when": {"last": "Task"}, "reply": {"tool_calls": [{"name": "save", "arguments": {"what": "plan"}}]}}
{"repeat": true, "when": {"last": "Helped."}, "reply": {"tool_calls": [{"name": "delegate_to_scout", "arguments": {"goal": "North", "context": "", "constraints": "", "inputs": [], "expected_output": "A word", "on_failure": ""}}, {"name": "delegate_to_scout", "arguments": {"goal": "South", "context": "", "constraints": "", "inputs": [], "expected_output": "A word", "on_failure": ""}}]}}
{"repeat": true, "when": {"last": "Found."}, "reply": {"content": "The end."}}
{"repeat": true, "reply": {"tool_calls": [{"name": "transfer_to_helper", "arguments": {"brief": "Help."}}]}}
"#;
/// Calls with a side effect.
const SAVES: usize = 3;

/// How the process ends while it stores a step.
#[derive(Clone, Copy, Debug)]
enum Crash {
    BeforeEvents,
    AfterEvents,
    AfterState,
    /// The power fails after the step: the disk has the last synced step, and nothing later.
    NoPower,
}

/// A real store in which the process ends at one step.
struct CrashingHost {
    stored: StoredRun,
    crash: Crash,
    /// Number of the step, from 1.
    at: usize,
    steps: Mutex<Steps>,
}

struct Steps {
    count: usize,
    on_disk: RunState,
    /// Events that are not on the disk.
    waiting: Vec<RunEvent>,
}

impl RunHost for CrashingHost {
    fn store(&self, state: &RunState, events: &[RunEvent], must_sync: bool) -> io::Result<()> {
        let mut steps = self.steps.lock().expect("steps");
        steps.count += 1;
        assert!(steps.count <= self.at, "the run goes on after a step that was not stored");
        let is_crash = steps.count == self.at;
        let next = match self.crash {
            Crash::BeforeEvents if is_crash => None,
            Crash::AfterEvents if is_crash => Some(steps.on_disk.clone()),
            Crash::NoPower if !must_sync => None,
            _ => Some(state.clone()),
        };
        steps.waiting.extend_from_slice(events);
        if let Some(next) = next {
            let waiting = std::mem::take(&mut steps.waiting);
            // The power does not fail in this test, so a real sync would only take time.
            self.stored.store(&next, &waiting, false)?;
            steps.on_disk = next;
        }
        if is_crash { Err(io::Error::other("the process has ended")) } else { Ok(()) }
    }

    fn show(&self, _: &RunEvent) {}

    fn ask<'h>(&'h self, _: &'h ToolCall, _: &'h str) -> BoxFuture<'h, Option<bool>> {
        async { None }.boxed()
    }
}

/// Drives a run until it ends or crashes. Gives how it ended, and the number of its steps.
async fn driven_until(
    (stored, mut state): (StoredRun, RunState),
    (crash, at): (Crash, usize),
    save: &Arc<Save>,
) -> (io::Result<TeamRunStatus>, usize) {
    // The models are on another machine, so that delegates work at the same time.
    let models = Scripted { is_remote: true, ..scripted(SCRIPT) };
    let tools: [Arc<dyn AgentTool>; 1] = [Arc::clone(save) as _];
    let steps = Steps { count: 0, on_disk: state.clone(), waiting: Vec::new() };
    let host = CrashingHost { stored, crash, at, steps: Mutex::new(steps) };
    let ended = driver(&models, &tools, &(), &host).drive(&mut state).await;
    let count = host.steps.lock().expect("steps").count;
    (ended, count)
}

/// Checks a run that crashes at this step, and then goes on to its end. Gives the number of steps before the crash.
async fn check_crash(store: &RunStore, crash: Crash, at: usize) -> usize {
    let id = format!("{crash:?}-{at}");
    let team = Team::parse(TEAM, "t").expect("a team");
    let state = RunState::new(team, id.clone(), "Task".to_owned());
    let stored = store.create(&id).expect("a run");
    stored.store(&state, &[], false).expect("stored");
    let save = save_tool();
    let (ended, count) = driven_until((stored, state), (crash, at), &save).await;
    assert_eq!(ended.is_err(), count == at, "{id}: {ended:?}");
    let again = store.open(&id).expect("a run on which no process works");
    let (ended, _) = driven_until(again, (crash, usize::MAX), &save).await;
    assert_eq!(ended.expect("stored"), TeamRunStatus::Completed, "{id}");

    let events = store.events(&id).expect("events");
    assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64), "{id}: {events:?}");
    let is_answer = |event: &&RunEvent| matches!(&event.what, EventKind::MessageOutput { text } if text == "The end.");
    assert_eq!(events.iter().filter(is_answer).count(), 1, "{id}: {events:?}");
    let calls = save.1.lock().expect("calls");
    let saved: BTreeSet<String> = calls.iter().map(Value::to_string).collect();
    assert_eq!(saved.len(), calls.len(), "{id}: a side effect has happened twice: {calls:?}");
    // A call may be missing only if its agent has read that its outcome is unknown.
    let is_unknown = |event: &&RunEvent| matches!(&event.what, EventKind::ToolOutput { output, .. } if output.text.contains("interrupted"));
    let unknown = events.iter().filter(is_unknown).count();
    assert!(saved.len() + unknown >= SAVES, "{id}: {saved:?}, {events:?}");
    count
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_after_a_crash_at_any_step_and_does_nothing_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RunStore::new(folder.path().join("runs"));
    let steps = check_crash(&store, Crash::AfterState, usize::MAX).await;
    assert!(steps > 2 * SAVES, "a step before and after each call: {steps}");
    for crash in [Crash::BeforeEvents, Crash::AfterEvents, Crash::AfterState, Crash::NoPower] {
        for at in 1..=steps {
            assert_eq!(check_crash(&store, crash, at).await, at, "{crash:?}");
        }
    }
}
