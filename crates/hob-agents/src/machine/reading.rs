//! Reads the answer of a model: its calls, also those that it has written as text, and its text.
//! If a call cannot be read, or is needed and missing, the model gets a message that says so.

use hob_core::chat::{Message, Role};

use super::{ModelAnswer, Step, prompt, text_calls};
use crate::call_name::{delegate_name, handoff_name};
use crate::event::EventKind;
use crate::state::{Pending, RunState, Used};

/// Empty answers in sequence after which an agent has failed.
const EMPTY_ANSWERS_MAX: u32 = 2;
/// How often the model is reminded that a call is needed, before the fallback model continues.
const REMINDERS_MAX: u32 = 1;

/// Whether the active agent must call something before its text counts as its answer.
pub(super) fn must_call(state: &RunState) -> bool {
    let Some(frame) = state.stack.last() else { return false };
    let has_called = frame.messages.iter().any(|message| !message.tool_calls.is_empty());
    state.team.agent(&frame.agent).is_some_and(|agent| agent.must_call) && !has_called
}

impl Step<'_> {
    pub(super) fn model_answered(&mut self, mut answer: ModelAnswer) {
        self.state.pending = Pending::Nothing;
        let ModelAnswer { prompt_tokens, answer_tokens, cost, ms, .. } = answer;
        let spent = Used {
            prompt_tokens,
            answer_tokens,
            cost: cost.unwrap_or_default(),
            ..Used::default()
        };
        self.state.count(&spent);
        let target = std::mem::take(&mut answer.target);
        self.emit(EventKind::ModelAnswered { target, prompt_tokens, answer_tokens, cost, ms });
        let wrong = self.read_calls(&mut answer);
        let mut said = Message::new(Role::Assistant, answer.text.trim());
        // DeepSeek refuses a conversation with tools in which the thinking of an answer is missing.
        said.reasoning = Some(answer.reasoning).filter(|thought| !thought.is_empty());
        self.state.keep_text(&said.text);
        let Some(frame) = self.state.stack.last_mut() else { return };
        frame.failed_tries = 0;
        if self.state.exhausted.is_some() || frame.is_last_turn {
            return self.agent_answered(said.text, true);
        }
        if let Some(reason) = wrong {
            return self.call_unread(said, reason);
        }
        if answer.calls.is_empty() {
            return self.text_answered(said, answer.is_cut);
        }
        (frame.empty_answers, frame.prose_answers) = (0, 0);
        said.tool_calls.clone_from(&answer.calls);
        frame.messages.push(said);
        frame.calls = answer.calls.into();
        self.advance();
    }

    /// Moves the calls that an answer has in its text to its calls. Returns why one cannot be read.
    fn read_calls(&mut self, answer: &mut ModelAnswer) -> Option<String> {
        let frame = self.state.stack.last().filter(|_| answer.calls.is_empty())?;
        let specs = prompt::specs(self.state, frame, self.tools);
        let is_offered = |name: &str| specs.iter().any(|spec| spec.name == name);
        let found = text_calls::calls_in(&answer.text, is_offered, self.state.seq)?;
        // In the last answer no call is made, and none may be shown.
        let is_last = self.state.exhausted.is_some() || frame.is_last_turn;
        answer.text = found.rest;
        if is_last || found.wrong.is_some() {
            return found.wrong;
        }
        for call in &found.calls {
            let repairs = vec!["the call was written as text".to_owned()];
            let (call_id, name) = (call.id.clone(), call.name.clone());
            self.emit(EventKind::ToolRepaired { call_id, name, repairs });
        }
        answer.calls = found.calls;
        None
    }

    /// The model reads why its call cannot be read. No other call of the answer is made.
    fn call_unread(&mut self, said: Message, reason: String) {
        let call_id = format!("text_{}", self.state.seq);
        let message = prompt::unread_call(&reason);
        self.emit(EventKind::ToolInvalid { call_id, name: "tool_call".to_owned(), reason });
        let Some(frame) = self.state.stack.last_mut() else { return };
        let said = Some(said).filter(|said| !said.text.is_empty());
        frame.messages.extend(said.into_iter().chain([message]));
        frame.has_invalid_call = true;
        self.advance();
    }

    /// The answer has no calls. Its text is that of the agent, unless a call is needed.
    fn text_answered(&mut self, said: Message, is_cut: bool) {
        if said.text.is_empty() {
            return self.nothing_answered();
        }
        let must_call = must_call(self.state);
        if (must_call || self.names_a_call(&said.text)) && self.remind(&said) {
            return self.advance();
        }
        self.agent_answered(said.text, is_cut || must_call);
    }

    fn nothing_answered(&mut self) {
        let Some(frame) = self.state.stack.last_mut() else { return };
        frame.empty_answers += 1;
        frame.messages.push(prompt::empty_answer());
        if frame.empty_answers >= EMPTY_ANSWERS_MAX && !self.fall_back("its answers are empty") {
            return self.agent_failed("the model gave an empty answer".to_owned());
        }
        self.advance();
    }

    /// Whether the text names the call of another agent. Then the model describes the call instead of making it.
    fn names_a_call(&self, text: &str) -> bool {
        let agent = self.state.stack.last().and_then(|frame| self.state.team.agent(&frame.agent));
        agent.is_some_and(|agent| {
            agent.handoffs.iter().any(|name| text.contains(&handoff_name(name)))
                || agent.delegates.iter().any(|name| text.contains(&delegate_name(name)))
        })
    }

    /// Tells the model that a call is needed. The second time, the fallback model reads it. False: there is no fallback model.
    fn remind(&mut self, said: &Message) -> bool {
        let Some(frame) = self.state.stack.last_mut() else { return false };
        frame.prose_answers += 1;
        if frame.prose_answers <= REMINDERS_MAX {
            let reason = "it wrote prose where a call is needed".to_owned();
            self.emit(EventKind::ModelReminded { reason });
        } else if !self.fall_back("it writes prose where a call is needed") {
            return false;
        }
        if let Some(frame) = self.state.stack.last_mut() {
            frame.messages.push(said.clone());
            frame.messages.push(prompt::call_needed());
        }
        true
    }
}
