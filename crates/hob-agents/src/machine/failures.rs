//! Decides what follows when a model fails or its answers are useless: another try, the team's fallback, and finally an
//! answer that says what is missing. No tool starts from such an answer, so nothing is done twice.

use std::time::Duration;

use super::prompt::DelegateOutcome;
use super::{ModelFailure, Step};
use crate::event::EventKind;
use crate::state::{AgentFrame, Pending, TeamRunStatus};

/// How often a model that failed is asked again, in one turn.
const RETRIES_MAX: u32 = 1;
/// Time before it is asked again: servers that restart or are busy often answer a moment later.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Answers in sequence with an invalid call, after which the team's fallback model continues.
const INVALID_ANSWERS_MAX: u32 = 3;

impl AgentFrame {
    /// Called when another model or another process continues, so that counting starts from zero.
    fn reset_fault_counts(&mut self) {
        (self.failed_tries, self.empty_answers) = (0, 0);
        (self.invalid_answers, self.prose_answers) = (0, 0);
    }
}

impl Step<'_> {
    /// The model has given no whole answer, so none of its calls was made. Asks the same model again where that can help, then
    /// the fallback model.
    pub(super) fn model_failed(&mut self, error: String, how: ModelFailure) {
        self.state.pending = Pending::Nothing;
        let shown = error.clone();
        self.emit(match how {
            ModelFailure::Broke | ModelFailure::Refused => EventKind::ModelFailed { error: shown },
            ModelFailure::Stalled | ModelFailure::Silent => {
                EventKind::ModelStalled { error: shown }
            }
        });
        // A silent model has used its time already, and one that refused would refuse again.
        let can_help = matches!(how, ModelFailure::Broke | ModelFailure::Stalled);
        if can_help && self.take_retry() {
            return self.call_model_after(RETRY_PAUSE);
        }
        if self.fall_back("it failed") {
            return self.call_model();
        }
        // No turn follows, so what the agents have said so far becomes the answer.
        let is_last_turn = self.state.stack.last().is_some_and(|frame| frame.is_last_turn);
        if self.state.exhausted.is_some() || is_last_turn {
            return self.agent_answered(String::new(), true);
        }
        self.agent_failed(error);
    }

    /// Counts the failure, and returns whether the model may be asked again.
    fn take_retry(&mut self) -> bool {
        let Some(frame) = self.state.stack.last_mut() else { return false };
        frame.failed_tries += 1;
        frame.failed_tries <= RETRIES_MAX
    }

    pub(super) fn agent_failed(&mut self, error: String) {
        if self.state.stack.len() > 1 {
            let said = format!("[this agent failed: {error}]");
            self.return_to_caller(&said, DelegateOutcome::Failed);
            return self.advance();
        }
        let run_id = &self.state.run_id;
        let text = format!(
            "{}\n\nThe rest is missing: the model '{}' of the entry agent failed ({error}). \
             `hob team resume {run_id}` goes on.",
            self.joined_texts(),
            self.model()
        );
        if let Some(frame) = self.state.stack.last_mut() {
            // A run that is resumed begins with the agent's own model.
            frame.reset_fault_counts();
            frame.uses_fallback = false;
        }
        self.emit(EventKind::MessageOutput { text });
        self.end(TeamRunStatus::Failed, Some(error));
    }

    /// Lets the team's fallback model continue for the active agent. False: the fallback model already works, or the team has
    /// none.
    pub(super) fn fall_back(&mut self, reason: &str) -> bool {
        let from = self.model();
        let to = self.state.team.fallback.clone().filter(|fallback| *fallback != from);
        let (Some(to), Some(frame)) = (to, self.state.stack.last_mut()) else { return false };
        frame.uses_fallback = true;
        frame.reset_fault_counts();
        self.emit(EventKind::ModelFallback { from, to, reason: reason.to_owned() });
        true
    }

    /// Counts answers in sequence with an invalid call. The model has read what was wrong; if that does not help, the
    /// fallback model continues.
    pub(super) fn count_invalid_answers(&mut self) {
        let Some(frame) = self.state.stack.last_mut() else { return };
        let has_invalid_call = std::mem::take(&mut frame.has_invalid_call);
        frame.invalid_answers = if has_invalid_call { frame.invalid_answers + 1 } else { 0 };
        if frame.invalid_answers >= INVALID_ANSWERS_MAX {
            self.fall_back("its calls are invalid");
        }
    }

    /// The last text of each agent.
    pub(super) fn joined_texts(&self) -> String {
        let texts: Vec<String> =
            self.state.last_texts.iter().map(|(agent, text)| format!("{agent}: {text}")).collect();
        if texts.is_empty() { "No agent has answered.".to_owned() } else { texts.join("\n\n") }
    }
}
