//! Delegates that work at the same time. An answer may call several; if their models are on other machines, each of
//! them is a branch of the run. The caller goes on when all have returned.

use hob_core::chat::ToolCall;

use super::Step;
use crate::state::{AgentRole, Branch, Pending, RunState, TeamRunStatus};

/// Maximum delegates that work at the same time. Further ones start when these have returned.
const BRANCHES_MAX: usize = 8;

impl RunState {
    /// Switches to the branch with a pending call that `is_wanted` accepts: the agents of that branch come onto the stack, and
    /// those of the active branch leave it. False: there is no such branch.
    pub(super) fn switch_to(&mut self, is_wanted: impl Fn(&Pending) -> bool) -> bool {
        if is_wanted(&self.pending) {
            return true;
        }
        let wanted = self.branches.iter().position(|branch| is_wanted(&branch.pending));
        let Some(at) = wanted else { return false };
        let next = self.branches.remove(at);
        let frames = self.stack.split_off(next.above);
        let pending = std::mem::replace(&mut self.pending, next.pending);
        self.branches.push(Branch { above: next.above, frames, pending });
        self.stack.extend(next.frames);
        true
    }

    /// Switches to the branch that waits for this call of a model. False: no branch waits for it.
    pub(super) fn switch_to_model(&mut self, id: u64) -> bool {
        self.switch_to(|pending| *pending == Pending::Model { id })
    }

    /// The call of a tool that is running.
    pub(crate) fn tool_call(&self, id: u64) -> Option<&ToolCall> {
        let branches = self.branches.iter().map(|branch| &branch.pending);
        std::iter::once(&self.pending).chain(branches).find_map(|pending| match pending {
            Pending::Tool { id: own, call } if *own == id => Some(call),
            _ => None,
        })
    }
}

impl Step<'_> {
    /// Starts the delegates that the same answer called next, to work with the one that was just started.
    pub(super) fn start_branches(&mut self) {
        while let Some(call) = self.next_delegate() {
            let above = self.state.stack.len() - 1;
            let frames = self.state.stack.split_off(above);
            self.state.branches.push(Branch { above, frames, pending: Pending::Nothing });
            self.make_call(call);
            // If the call was wrong, no agent has started, and the branch that was just put away becomes active again.
            self.end_branch();
        }
    }

    /// The call of a delegate that can work at the same time as the last one.
    fn next_delegate(&mut self) -> Option<ToolCall> {
        let above = self.state.stack.len().checked_sub(1)?;
        let [.., caller, started] = &mut self.state.stack[..] else { return None };
        let is_new = matches!(started.role, AgentRole::Delegate { .. }) && started.turns == 0;
        // The branches of a branch would be a tree of runs: a delegate calls its own delegates one after the other.
        let has_room = self.state.branches.iter().all(|branch| branch.above == above)
            && self.state.branches.len() + 1 < BRANCHES_MAX;
        let team = &self.state.team;
        let is_remote = |agent: &str| {
            team.agent(agent).is_some_and(|agent| self.state.remote_models.contains(&agent.model))
        };
        let next = caller.calls.front()?;
        let delegate = team.agent(&caller.agent)?.delegate_of(&next.name)?;
        let can_start = is_new && has_room && is_remote(&started.agent) && is_remote(delegate);
        can_start.then(|| caller.calls.pop_front()).flatten()
    }

    /// The delegate of a branch has returned, so another branch becomes the active one.
    pub(super) fn end_branch(&mut self) {
        let has_returned = |branch: &Branch| branch.above == self.state.stack.len();
        if let Some(next) = self.state.branches.pop_if(|branch| has_returned(branch)) {
            self.state.stack.extend(next.frames);
            self.state.pending = next.pending;
        }
    }

    /// Ends the active branch, because the budget is used up. False: there are no other branches.
    pub(super) fn stop_branch(&mut self) -> bool {
        let Some(above) = self.state.branches.first().map(|branch| branch.above) else {
            return false;
        };
        for _ in above..self.state.stack.len() {
            self.stop_agent();
        }
        true
    }

    /// Sets the status of the run after a step, and switches to the branch that decides it: one that works, or else one that
    /// waits for a person.
    pub(super) fn set_status(&mut self) {
        if self.state.status.has_ended() {
            return;
        }
        let is_working =
            |pending: &Pending| matches!(pending, Pending::Model { .. } | Pending::Tool { .. });
        let is_asking = |pending: &Pending| matches!(pending, Pending::Approval { .. });
        let is_waiting = !self.state.switch_to(is_working) && self.state.switch_to(is_asking);
        self.state.status = match self.state.pending {
            Pending::Client { .. } => TeamRunStatus::WaitingClient,
            _ if is_waiting => TeamRunStatus::WaitingApproval,
            _ => TeamRunStatus::Running,
        };
    }
}
