//! The limits of a run and of its agents. A limit ends in an answer from what there is, never in an error.
//! They are checked before each turn, so a turn that has begun is counted whole.

use hob_core::chat::{BudgetUnit, SpentBudget};

use super::Step;
use super::prompt::{self, DelegateOutcome};
use crate::event::EventKind;
use crate::state::Pending;

/// Tokens of the answer after a budget has ended.
pub(super) const LAST_ANSWER_TOKENS: u32 = 1024;

impl Step<'_> {
    /// The limit that the run has reached.
    pub(super) fn spent_limit(&self) -> Option<SpentBudget> {
        let (budget, used) = (&self.state.team.budget, &self.state.used);
        let micro_usd = |cost: f64| (cost * 1e6).round() as u64;
        let limits = [
            (BudgetUnit::Turns, Some(u64::from(budget.turns)), u64::from(used.turns)),
            (BudgetUnit::Tokens, budget.tokens, used.prompt_tokens + used.answer_tokens),
            (BudgetUnit::MicroUsd, budget.cost.map(micro_usd), micro_usd(used.cost)),
            (BudgetUnit::Seconds, Some(budget.time_s), used.time_s as u64),
        ];
        let spent = |(unit, limit, used): (_, Option<u64>, u64)| {
            limit.filter(|limit| used >= *limit).map(|limit| SpentBudget { unit, limit, used })
        };
        limits.into_iter().find_map(spent)
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
