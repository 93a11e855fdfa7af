//! The limits of a run and of its agents. A limit ends in an answer from what there is, never in an error.
//! They are checked before each turn, so a turn that has begun is counted whole. If a turn is stopped, its part counts.

use hob_core::chat::{BudgetUnit, Message, Role, SpentBudget};
use hob_core::count_text;

use super::prompt::{self, DelegateOutcome};
use super::{CALL_BEGIN, Step};
use crate::event::EventKind;
use crate::state::{AgentFrame, Pending, RunState, StoppedAnswer, Used};
use crate::team::{LAST_ANSWER_TOKENS, WorkLimits};

/// What an agent reads about calls that are left when a limit is reached.
const NOT_MADE: &str = "not made, because the budget is used up";

impl RunState {
    /// Seconds that the model or tool with this number had left at the last step: the least of the run's and of those of
    /// each agent that waits for it.
    pub(crate) fn time_left_s(&self, id: u64) -> f64 {
        let is_its = |pending: &Pending| matches!(pending, Pending::Model { id: own } | Pending::Tool { id: own, .. } if *own == id);
        let own: &[AgentFrame] = &[];
        let (shared, own) = match self.branches.iter().find(|branch| is_its(&branch.pending)) {
            Some(branch) => (&self.stack[..branch.above.min(self.stack.len())], &branch.frames[..]),
            None => (&self.stack[..], own),
        };
        self.least_time_s(shared.iter().chain(own))
    }

    /// The least of the seconds that are left of the run, and of the limits of these agents.
    fn least_time_s<'f>(&self, frames: impl Iterator<Item = &'f AgentFrame>) -> f64 {
        let left = frames.filter(|frame| !frame.is_last_turn).filter_map(|frame| {
            let limit_s = self.team.agent(&frame.agent)?.time_s?;
            Some(limit_s as f64 - self.used_by(frame).time_s)
        });
        left.fold(self.team.budget.time_s as f64 - self.used.time_s, f64::min)
    }

    /// Counts tokens and money of the active agent, for it and for all agents above it.
    pub(super) fn count(&mut self, spent: &Used) {
        let frames = self.stack.iter_mut().map(|frame| &mut frame.used);
        for used in frames.chain([&mut self.used]) {
            used.prompt_tokens += spent.prompt_tokens;
            used.answer_tokens += spent.answer_tokens;
            used.cost += spent.cost;
        }
    }

    /// What an agent and those that worked for it have used.
    pub(super) fn used_by(&self, frame: &AgentFrame) -> Used {
        Used { time_s: self.used.time_s - frame.begun_s, ..frame.used }
    }
}

/// Counts the tokens of an answer that was stopped. The next step puts them into the trace.
pub(crate) fn count_stopped(state: &mut RunState, answer: StoppedAnswer) {
    if state.switch_to_model(answer.id) {
        state.count(&answer.used);
        state.stopped.push(answer);
    }
}

/// The first limit that is reached.
fn first_spent(budget: &WorkLimits, used: &Used) -> Option<SpentBudget> {
    let micro_usd = |cost: f64| (cost * 1e6).round() as u64;
    // The tokens of the last answer are kept for it.
    let kept = u64::from(LAST_ANSWER_TOKENS);
    let limits = [
        (BudgetUnit::Turns, Some(u64::from(budget.turns)), 0, u64::from(used.turns)),
        (BudgetUnit::Tokens, budget.tokens, kept, used.tokens()),
        (BudgetUnit::MicroUsd, budget.cost.map(micro_usd), 0, micro_usd(used.cost)),
        (BudgetUnit::Seconds, budget.time_s, 0, used.time_s as u64),
    ];
    let spent = |(unit, limit, kept, used): (_, Option<u64>, u64, u64)| {
        let spent = limit.filter(|limit| used >= limit.saturating_sub(kept));
        spent.map(|limit| SpentBudget { unit, limit, used })
    };
    limits.into_iter().find_map(spent)
}

/// A limit and what was used of it, for people and models.
fn amounts(spent: &SpentBudget) -> [String; 2] {
    [spent.limit, spent.used].map(|amount| match spent.unit {
        BudgetUnit::Turns => count_text(amount, "turn"),
        BudgetUnit::Tokens => count_text(amount, "token"),
        BudgetUnit::Seconds => format!("{amount} s"),
        BudgetUnit::MicroUsd => format!("{} USD", amount as f64 / 1e6),
    })
}

impl AgentFrame {
    /// The next answer is the last one. No call of an earlier answer is made any more.
    fn end_with(&mut self, limit: &str) {
        let (own, client) =
            (std::mem::take(&mut self.calls), std::mem::take(&mut self.client_calls));
        let left = own.iter().chain(&client);
        self.messages.extend(left.map(|call| prompt::tool_message(&call.id, NOT_MADE)));
        self.messages.push(prompt::last_answer(limit));
    }
}

impl Step<'_> {
    /// Gives the answers that were stopped events of their own, so that the events of a run have all of its tokens.
    pub(super) fn emit_stopped(&mut self) {
        for StoppedAnswer { id, target, used } in std::mem::take(&mut self.state.stopped) {
            self.state.switch_to_model(id);
            let Used { prompt_tokens, answer_tokens, .. } = used;
            let cost = (used.cost > 0.0).then_some(used.cost);
            self.emit(EventKind::ModelStopped { target, prompt_tokens, answer_tokens, cost });
        }
    }

    /// The limit that the run has reached.
    pub(super) fn spent_limit(&self) -> Option<SpentBudget> {
        first_spent(&self.state.team.budget.limits(), &self.state.used)
    }

    /// The limit of its own that an agent has reached, unless its last turn has begun. The turns of an agent that waits for
    /// others are checked only when it continues, because its turn has not ended.
    fn own_limit(&self, at: usize, frame: &AgentFrame) -> Option<SpentBudget> {
        let agent = self.state.team.agent(&frame.agent).filter(|_| !frame.is_last_turn)?;
        let is_acting = at + 1 == self.state.stack.len();
        let turns = if is_acting { frame.turns } else { 0 };
        first_spent(&agent.limits(), &Used { turns, ..self.state.used_by(frame) })
    }

    /// Whether a time is used up, so that no call of the last answer is made any more.
    pub(super) fn is_out_of_time(&self) -> bool {
        self.state.exhausted.is_none() && self.state.least_time_s(self.state.stack.iter()) <= 0.0
    }

    /// The time was used up while the model wrote. What it has written so far counts.
    pub(super) fn out_of_time(&mut self, said: &str) {
        self.state.pending = Pending::Nothing;
        // A call that was being written is not made.
        let said = said.split(CALL_BEGIN).next().unwrap_or_default().trim();
        let error = "it was stopped, because the time of the budget is used up".to_owned();
        self.emit(EventKind::ModelFailed { error });
        self.state.keep_text(said);
        let Some(frame) = self.state.stack.last_mut() else { return };
        if !said.is_empty() {
            frame.messages.push(Message::new(Role::Assistant, said));
        }
        if self.state.exhausted.is_some() || frame.is_last_turn {
            return self.agent_answered(said.to_owned(), true);
        }
        self.advance();
    }

    /// The run has one more answer: that of the entry agent, from what the others have found.
    pub(super) fn exhaust(&mut self, spent: SpentBudget) {
        let [limit, used] = amounts(&spent);
        self.state.spent = Some(spent);
        self.emit(EventKind::BudgetExhausted { limit: limit.clone(), used });
        while self.state.stack.len() > 1 {
            self.stop_agent();
        }
        self.state.pending = Pending::Nothing;
        if let Some(root) = self.state.stack.last_mut() {
            root.end_with(&limit);
        }
        self.state.exhausted = Some(limit);
    }

    /// Stops the agent that works now. Its caller reads what it has said so far.
    pub(super) fn stop_agent(&mut self) {
        let Some(frame) = self.state.stack.last() else { return };
        let said = frame.last_text.clone();
        self.return_to_caller(
            &format!("[stopped, because the budget is used up] {said}"),
            DelegateOutcome::Partial,
        );
    }

    /// An agent that has reached a limit of its own has one more turn, and those that work for it are stopped. True: it
    /// waits for other branches first.
    pub(super) fn check_agents(&mut self) -> bool {
        let mut frames = self.state.stack.iter().enumerate();
        let spent = frames.find_map(|(at, frame)| Some((at, self.own_limit(at, frame)?)));
        let Some((at, spent)) = spent else { return false };
        if self.state.branches.first().is_some_and(|branch| at < branch.above) {
            return self.stop_branch();
        }
        while self.state.stack.len() > at + 1 {
            self.stop_agent();
        }
        let [limit, used] = amounts(&spent);
        let limit = format!("{limit} of this agent");
        if let Some(frame) = self.state.stack.last_mut() {
            frame.is_last_turn = true;
            frame.end_with(&limit);
        }
        if at == 0 {
            self.state.spent = Some(spent);
        }
        self.emit(EventKind::BudgetExhausted { limit, used });
        false
    }

    /// Tells the model once that its turns are nearly used up.
    pub(super) fn nudge(&mut self) {
        let budget = &self.state.team.budget;
        let turns_left = budget.turns.saturating_sub(self.state.used.turns);
        if self.state.is_nudged || turns_left > budget.nudge_at || budget.turns <= budget.nudge_at {
            return;
        }
        self.state.is_nudged = true;
        if let Some(frame) = self.state.stack.last_mut() {
            frame.messages.push(prompt::nudge(turns_left));
        }
        self.emit(EventKind::BudgetNudge { turns_left });
    }
}
