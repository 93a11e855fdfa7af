//! The limits of a run and of its agents. A limit ends in an answer from what there is, never in an error.
//! They are checked before each turn, so a turn that has begun is counted whole; only the end of the time stops one.

use hob_core::chat::{BudgetUnit, Message, Role, SpentBudget};

use super::prompt::{self, DelegateOutcome};
use super::{CALL_BEGIN, Step};
use crate::event::EventKind;
use crate::state::{Pending, RunState};
use crate::team::LAST_ANSWER_TOKENS;

impl RunState {
    /// Seconds that were left at the last step for the model or tool with this number.
    pub(crate) fn time_left_s(&self, _id: u64) -> f64 {
        self.team.budget.time_s as f64 - self.used.time_s
    }
}

impl Step<'_> {
    /// The limit that the run has reached.
    pub(super) fn spent_limit(&self) -> Option<SpentBudget> {
        let (budget, used) = (&self.state.team.budget, &self.state.used);
        let micro_usd = |cost: f64| (cost * 1e6).round() as u64;
        // The tokens of the last answer are kept for it.
        let kept = u64::from(LAST_ANSWER_TOKENS);
        let limits = [
            (BudgetUnit::Turns, Some(u64::from(budget.turns)), 0, u64::from(used.turns)),
            (BudgetUnit::Tokens, budget.tokens, kept, used.prompt_tokens + used.answer_tokens),
            (BudgetUnit::MicroUsd, budget.cost.map(micro_usd), 0, micro_usd(used.cost)),
            (BudgetUnit::Seconds, Some(budget.time_s), 0, used.time_s as u64),
        ];
        let spent = |(unit, limit, kept, used): (_, Option<u64>, u64, u64)| {
            let spent = limit.filter(|limit| used >= limit.saturating_sub(kept));
            spent.map(|limit| SpentBudget { unit, limit, used })
        };
        limits.into_iter().find_map(spent)
    }

    /// Whether the time is used up, and the last answer has not begun.
    pub(super) fn is_out_of_time(&self) -> bool {
        let is_spent = self.state.used.time_s as u64 >= self.state.team.budget.time_s;
        is_spent && self.state.exhausted.is_none()
    }

    /// The time was used up while the model wrote. What it has written so far counts.
    pub(super) fn out_of_time(&mut self, said: &str) {
        self.state.pending = Pending::Nothing;
        // A call that was being written is not made.
        let said = said.split(CALL_BEGIN).next().unwrap_or_default().trim();
        let error = "it was stopped, because the time of the budget is used up".to_owned();
        self.emit(EventKind::ModelFailed { error });
        let Some(frame) = self.state.stack.last_mut() else { return };
        if !said.is_empty() {
            self.state.last_texts.insert(frame.agent.clone(), said.to_owned());
            frame.messages.push(Message::new(Role::Assistant, said));
        }
        if self.state.exhausted.is_some() || frame.is_last_turn {
            return self.agent_answered(said.to_owned(), true);
        }
        self.advance();
    }

    /// The run has one more answer: that of the entry agent, from what the others have found.
    pub(super) fn exhaust(&mut self, spent: SpentBudget) {
        let [limit, used] = [spent.limit, spent.used].map(|amount| match spent.unit {
            BudgetUnit::Turns => format!("{amount} turns"),
            BudgetUnit::Tokens => format!("{amount} tokens"),
            BudgetUnit::Seconds => format!("{amount} s"),
            BudgetUnit::MicroUsd => format!("{} USD", amount as f64 / 1e6),
        });
        self.state.spent = Some(spent);
        self.emit(EventKind::BudgetExhausted { limit: limit.clone(), used });
        while self.state.stack.len() > 1 {
            self.stop_agent();
        }
        self.state.pending = Pending::Nothing;
        if let Some(root) = self.state.stack.last_mut() {
            let (own, client) =
                (std::mem::take(&mut root.calls), std::mem::take(&mut root.client_calls));
            let left = own.iter().chain(&client);
            let skipped = "not made, because the budget of the run is used up";
            root.messages.extend(left.map(|call| prompt::tool_message(&call.id, skipped)));
            root.messages.push(prompt::last_answer(&limit));
        }
        self.state.exhausted = Some(limit);
    }

    /// Its caller reads what it has said so far.
    pub(super) fn stop_agent(&mut self) {
        let Some(frame) = self.state.stack.last() else { return };
        let said = self.state.last_texts.get(&frame.agent).cloned().unwrap_or_default();
        self.return_to_caller(
            &format!("[stopped, because the budget of the run is used up] {said}"),
            DelegateOutcome::Partial,
        );
    }

    pub(super) fn check_agent_turns(&mut self) {
        let Some(frame) = self.state.stack.last_mut() else { return };
        let limit = self.state.team.agent(&frame.agent).map_or(0, |agent| agent.turns);
        if frame.turns < limit || frame.is_last_turn {
            return;
        }
        frame.is_last_turn = true;
        let text = format!("{limit} turns of this agent");
        frame.messages.push(prompt::last_answer(&text));
        let turns = frame.turns;
        if self.state.stack.len() == 1 {
            let (limit, used) = (u64::from(limit), u64::from(turns));
            self.state.spent = Some(SpentBudget { unit: BudgetUnit::Turns, limit, used });
        }
        self.emit(EventKind::BudgetExhausted { limit: text, used: format!("{turns} turns") });
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
