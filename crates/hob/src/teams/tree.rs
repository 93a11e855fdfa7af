//! A run as lines for people: who works, what they call, what comes back, with times and tokens.
//! Made from the stored events alone, so that a run looks the same while it works and later.

use hob_agents::{EventKind, RunEvent, RunState, TeamRunStatus, WorkLimits};
use hob_core::one_line;

use crate::printer::count_text;

/// Longest text of an event in characters.
const SHOWN_MAX: usize = 100;

/// An agent's name. If several of one name work at the same time, all but the first have their number.
fn named(agent: &str, number: Option<u32>) -> String {
    match number {
        Some(number) if number > 1 => format!("{agent} {number}"),
        _ => agent.to_owned(),
    }
}

/// The name of the agent that an event is about.
fn agent_of(event: &RunEvent) -> String {
    named(event.agent.as_deref().unwrap_or_default(), event.number)
}

/// A text of an agent as a line of the tree. While several delegates work, it begins with the agent's name.
pub(super) fn tree_line(event: &RunEvent, text: &str) -> String {
    let indent = "  ".repeat(event.depth);
    match event.number {
        Some(_) => format!("{indent}  {}: {text}", agent_of(event)),
        None => format!("{indent}  {text}"),
    }
}

/// The line of an event, indented by the agents that wait. Some events have none.
pub(crate) fn line(event: &RunEvent) -> Option<String> {
    let text = match &event.what {
        EventKind::AgentStarted { model } => {
            return Some(format!("{}{} ({model})", "  ".repeat(event.depth), agent_of(event)));
        }
        _ => text(event)?,
    };
    Some(tree_line(event, &text))
}

fn text(event: &RunEvent) -> Option<String> {
    let text = match &event.what {
        EventKind::HandoffOccurred { to, brief } if brief.is_empty() => format!("→ {to}"),
        EventKind::HandoffOccurred { to, brief } => format!("→ {to}: {}", short(brief)),
        EventKind::DelegateOccurred { to, brief, budget } => {
            let goal = short(brief["goal"].as_str().unwrap_or_default());
            let limits = budget.as_ref().map(limits_text);
            let limits = limits.map_or(String::new(), |limits| format!(" (at most {limits})"));
            format!("→ {to}{limits}: {goal}")
        }
        EventKind::HandoffReturned { from, text, number, .. }
        | EventKind::DelegateReturned { from, text, number, .. } => {
            format!("← {}: {}", named(from, *number), short(text))
        }
        EventKind::ModelAnswered { target, prompt_tokens, answer_tokens, cost, ms } => {
            let cost = cost.map_or_else(String::new, cost_text);
            format!(
                "{target}: {prompt_tokens} + {answer_tokens} tokens{cost}, {:.1} s",
                *ms as f64 / 1e3
            )
        }
        EventKind::ModelStopped { target, prompt_tokens, answer_tokens, cost } => {
            let cost = cost.map_or_else(String::new, cost_text);
            format!("{target}: stopped after {prompt_tokens} + {answer_tokens} tokens{cost}")
        }
        EventKind::ModelLoading { model } => format!("{model} is loading"),
        EventKind::ModelFallback { from, to, reason } => {
            format!("{to} instead of {from}: {}", short(reason))
        }
        EventKind::ModelFailed { error } => format!("the model failed: {}", short(error)),
        EventKind::ModelReminded { reason } => format!("the model was reminded: {reason}"),
        EventKind::ModelStalled { error } => format!("the model was given up: {}", short(error)),
        EventKind::ToolCalled { name, arguments, .. } => {
            format!("{name} {}", short(&arguments.to_string()))
        }
        EventKind::ToolOutput { output, .. } if output.is_error => {
            format!("  failed: {}", short(&output.text))
        }
        EventKind::ToolOutput { output, .. } => format!("  {}", short(&output.text)),
        EventKind::ToolsMissing { note } => note.clone(),
        EventKind::ToolInvalid { name, reason, .. } => {
            format!("{name} was not called: {}", short(reason))
        }
        EventKind::ToolRepaired { name, repairs, .. } => {
            format!("{name}: repaired {}", repairs.join(", "))
        }
        EventKind::ApprovalRequested { name, arguments, reason, .. } => {
            format!("{name} {} waits for approval: {reason}", one_line(&arguments.to_string()))
        }
        EventKind::ApprovalResolved { is_approved: true, .. } => "approved".to_owned(),
        EventKind::ApprovalResolved { is_approved: false, .. } => "denied".to_owned(),
        EventKind::BudgetNudge { turns_left } => format!("{} left", count_text(turns_left, "turn")),
        EventKind::BudgetExhausted { limit, used } => {
            format!("the limit of {limit} is reached ({used})")
        }
        EventKind::RunResumed {} => "the run goes on".to_owned(),
        EventKind::RunEnded { error: Some(error), .. } => {
            format!("the run failed: {}", short(error))
        }
        EventKind::AgentStarted { .. }
        | EventKind::RunStarted { .. }
        | EventKind::RunWaiting { .. }
        | EventKind::RunEnded { .. }
        | EventKind::ModelRequested { .. }
        | EventKind::ModelFirstToken { .. }
        | EventKind::ModelDelta { .. }
        | EventKind::MessageOutput { .. } => return None,
    };
    Some(text)
}

/// What a client shows in one line while a run works: who takes over, which tools are called, and trouble.
pub(crate) fn status(event: &RunEvent) -> Option<String> {
    let agent = agent_of(event);
    match &event.what {
        EventKind::AgentStarted { .. } if event.depth == 0 => Some(format!("{agent} begins")),
        EventKind::HandoffOccurred { to, .. } | EventKind::DelegateOccurred { to, .. } => {
            Some(format!("{agent} -> {to}"))
        }
        EventKind::HandoffReturned { from, number, .. }
        | EventKind::DelegateReturned { from, number, .. } => {
            Some(format!("{} -> {agent}", named(from, *number)))
        }
        EventKind::ToolCalled { name, .. } => Some(format!("{agent}: {name}")),
        EventKind::ApprovalRequested { name, .. } => {
            Some(format!("{agent}: {name} waits for approval"))
        }
        EventKind::ModelLoading { .. }
        | EventKind::ModelFallback { .. }
        | EventKind::ModelFailed { .. }
        | EventKind::ModelStalled { .. }
        | EventKind::ModelReminded { .. }
        | EventKind::ToolsMissing { .. }
        | EventKind::ToolInvalid { .. }
        | EventKind::BudgetNudge { .. }
        | EventKind::BudgetExhausted { .. }
        | EventKind::RunResumed {} => Some(format!("{agent}: {}", text(event)?.trim_start())),
        _ => None,
    }
}

/// The last line of a run.
pub(crate) fn summary(state: &RunState) -> String {
    summary_with(status_text(state.status), state)
}

/// What a run has used, behind its status in words.
pub(crate) fn summary_with(status: &str, state: &RunState) -> String {
    let used = &state.used;
    format!(
        "{status}: {}, {} + {} tokens{}, {:.1} s; run {}",
        count_text(used.turns, "turn"),
        used.prompt_tokens,
        used.answer_tokens,
        if used.cost > 0.0 { cost_text(used.cost) } else { String::new() },
        used.time_s,
        state.run_id
    )
}

fn limits_text(budget: &WorkLimits) -> String {
    let mut limits = count_text(budget.turns, "turn");
    for (limit, unit) in [(budget.tokens, "tokens"), (budget.time_s, "s")] {
        if let Some(limit) = limit {
            limits += &format!(", {limit} {unit}");
        }
    }
    limits + &budget.cost.map_or_else(String::new, cost_text)
}

/// The cost as a part of a list, with four decimals: answers cost fractions of a cent.
fn cost_text(cost: f64) -> String {
    format!(", {cost:.4} USD")
}

/// Writes what a run does to the log: names and numbers, never texts.
pub(super) fn log(event: &RunEvent) {
    let run = event.run_id.as_str();
    let agent = event.agent.as_deref().unwrap_or_default();
    match &event.what {
        EventKind::RunStarted { team, .. } => tracing::info!(run, team, "a team begins"),
        EventKind::RunResumed {} => tracing::info!(run, "a team goes on"),
        EventKind::HandoffOccurred { to, .. } => tracing::info!(run, agent, to, "a handoff"),
        EventKind::DelegateOccurred { to, .. } => tracing::info!(run, agent, to, "a delegation"),
        EventKind::ToolCalled { name, .. } => tracing::info!(run, agent, name, "a tool is called"),
        EventKind::RunWaiting { .. } => tracing::info!(run, agent, "the team waits for approval"),
        EventKind::RunEnded { status, .. } => {
            tracing::info!(run, status = status_text(*status), "a team has ended");
        }
        _ => {}
    }
}

/// For a run on which no process works now.
pub(crate) fn status_text(status: TeamRunStatus) -> &'static str {
    match status {
        TeamRunStatus::Running => "interrupted",
        TeamRunStatus::WaitingApproval => "waits for approval",
        TeamRunStatus::WaitingClient => "waits for its client",
        TeamRunStatus::Completed => "completed",
        TeamRunStatus::CompletedPartial => "ended by its budget or a limit of tokens",
        TeamRunStatus::Failed => "failed",
        TeamRunStatus::Cancelled => "cancelled",
    }
}

fn short(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let lines = text.trim().lines().count();
    let cut: String = line.chars().take(SHOWN_MAX).collect();
    let more = if cut.len() < line.len() { "…" } else { "" };
    match lines {
        0 | 1 => format!("{cut}{more}"),
        lines => format!("{cut}{more} [{lines} lines]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_becomes_one_line() {
        assert_eq!(short(" a\nb\n"), "a [2 lines]");
        assert_eq!(short(&"x".repeat(101)), format!("{}…", "x".repeat(100)));
        assert_eq!(short(""), "");
    }

    #[test]
    fn a_call_that_waits_has_no_marks_that_change_the_direction() {
        let event = RunEvent {
            v: 1,
            seq: 1,
            ts: 0,
            run_id: "r".to_owned(),
            agent: None,
            depth: 0,
            span_id: 0,
            parent_id: None,
            number: None,
            what: EventKind::ApprovalRequested {
                approval: "1".to_owned(),
                name: "shell".to_owned(),
                arguments: "rm \u{202e}x".into(),
                reason: "no rule".to_owned(),
            },
        };
        let shown = line(&event).expect("a line");
        assert_eq!(shown, "  shell \"rm  x\" waits for approval: no rule");
    }
}
