//! The state of a team run: everything that a driver needs to go on after a crash. It is plain data.
//! Only the machine changes it, except for what it cannot know: `owner`, `client_tools` and `remote_models`.

mod messages;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hob_core::chat::{SpentBudget, Tool, ToolCall};
use serde::{Deserialize, Serialize};

pub use self::messages::FrameMessages;
use crate::team::Team;

/// A run between two steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// Version of this format.
    pub v: u32,
    pub run_id: String,
    /// The team as it was when the run began. Later changes of its file do not change the run.
    pub team: Team,
    pub task: String,
    /// The name of the key that started the run, and that decides about its calls. `None`: a terminal, or a server without
    /// keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The agents at work: each was called by the one before. The last one is the active agent.
    pub stack: Vec<AgentFrame>,
    pub pending: Pending,
    /// Delegates that work at the same time as the last agent of `stack`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// Models of other machines: delegates that use them can work at the same time.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub remote_models: BTreeSet<String>,
    /// The tools of the client's last request. The entry agent may call them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<Tool>,
    pub used: Used,
    /// Number of the last event.
    pub seq: u64,
    pub status: TeamRunStatus,
    /// The last text of each agent, for an answer if the budget ends.
    pub last_texts: BTreeMap<String, String>,
    /// The limit that was reached. The next answer is the last one.
    pub exhausted: Option<String>,
    /// The limit that was reached, of the run or of the entry agent's own turns, as clients see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentBudget>,
    /// The model has read that the turns of the budget are nearly used up.
    pub is_nudged: bool,
    /// Answers that were stopped since the last step. They are counted, and the trace does not have them yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<StoppedAnswer>,
}

/// What a stopped answer has used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppedAnswer {
    /// Number of the call of the model.
    pub id: u64,
    /// The model that answered.
    pub target: String,
    pub used: Used,
}

/// A call about which a person is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitingApproval<'s> {
    pub id: &'s str,
    pub agent: Option<&'s str>,
    pub call: &'s ToolCall,
    pub reason: &'s str,
}

impl RunState {
    /// The call about which a person is asked, also while other delegates work.
    pub fn approval(&self) -> Option<WaitingApproval<'_>> {
        let branches = self.branches.iter().map(|branch| (&branch.frames, &branch.pending));
        std::iter::once((&self.stack, &self.pending)).chain(branches).find_map(
            |(frames, pending)| match pending {
                Pending::Approval { approval, call, reason } => {
                    let agent = frames.last().map(|frame| &*frame.agent);
                    Some(WaitingApproval { id: approval, agent, call, reason })
                }
                _ => None,
            },
        )
    }
}

/// A delegate that works, and the agents below it. They are on the stack only while one of them is the active agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// Number of agents above, which all branches have in common.
    pub above: usize,
    pub frames: Vec<AgentFrame>,
    pub pending: Pending,
}

/// An agent at work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentFrame {
    pub agent: String,
    /// Stored as `kind`.
    #[serde(rename = "kind")]
    pub role: AgentRole,
    /// Number of the event with which the agent started.
    #[serde(default)]
    pub span: u64,
    /// From 1, among the agents with this name that work at the same time.
    #[serde(default)]
    pub number: u32,
    pub messages: FrameMessages,
    pub turns: u32,
    /// What the agent and those that work for it have used, without the time.
    #[serde(default)]
    pub used: Used,
    /// The time of the run when the agent started, in seconds.
    #[serde(default)]
    pub begun_s: f64,
    /// Calls of the last answer that have not been made.
    pub calls: VecDeque<ToolCall>,
    /// Calls of the last answer that the client makes, after all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_calls: Vec<ToolCall>,
    /// How often each call, with its arguments, was made in this frame.
    pub repeats: BTreeMap<String, u32>,
    /// Empty answers, one after the other.
    pub empty_answers: u32,
    /// Tries of the present turn that gave no whole answer.
    #[serde(default)]
    pub failed_tries: u32,
    /// Answers with an invalid call, one after the other.
    #[serde(default)]
    pub invalid_answers: u32,
    /// A call of the last answer was invalid.
    #[serde(default)]
    pub has_invalid_call: bool,
    /// Answers without a call that is needed, one after the other.
    #[serde(default)]
    pub prose_answers: u32,
    /// The team's fallback model works for this agent.
    #[serde(default)]
    pub uses_fallback: bool,
    /// The agent has read text of others: a page, or a server's output.
    pub is_tainted: bool,
    /// What the agent has said last, for its caller if no better answer follows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_text: String,
    /// The agent's own limit of turns was reached. The next answer is its last one.
    pub is_last_turn: bool,
    /// Files that the agent has written.
    pub artifacts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum AgentRole {
    /// The entry agent.
    #[default]
    Root,
    /// The agent has taken over with a brief, and its answer is the result of this call.
    Handoff { call_id: String },
    /// The agent works on a brief alone, and its report is the result of this call.
    Delegate { call_id: String },
}

/// What the last agent of the stack waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "for")]
pub enum Pending {
    #[default]
    Nothing,
    Model {
        id: u64,
    },
    Tool {
        /// Tells calls of branches apart: models choose the ids of their calls.
        #[serde(default)]
        id: u64,
        call: ToolCall,
    },
    Approval {
        approval: String,
        call: ToolCall,
        reason: String,
    },
    /// The client makes these calls.
    Client {
        id: u64,
        calls: Vec<ToolCall>,
    },
    /// The call needs approval. A person is asked about one call at a time.
    Queued {
        call: ToolCall,
        reason: String,
    },
}

/// What the run has used of its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    pub turns: u32,
    pub prompt_tokens: u64,
    pub answer_tokens: u64,
    /// US dollars, for models that have a price.
    #[serde(default)]
    pub cost: f64,
    /// Seconds at work, over all processes.
    pub time_s: f64,
}

impl Used {
    /// Tokens of prompts and answers.
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens + self.answer_tokens
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamRunStatus {
    Running,
    WaitingApproval,
    /// The client makes calls of its own tools.
    WaitingClient,
    Completed,
    /// The budget ended, and the answer says what is missing; or the answer was cut at the limit of its tokens.
    CompletedPartial,
    Failed,
    Cancelled,
}

impl TeamRunStatus {
    pub fn has_ended(self) -> bool {
        !matches!(
            self,
            TeamRunStatus::Running | TeamRunStatus::WaitingApproval | TeamRunStatus::WaitingClient
        )
    }

    /// Whether `hob team resume` goes on: the run has not ended, or its model failed.
    pub fn can_resume(self) -> bool {
        !self.has_ended() || self == TeamRunStatus::Failed
    }
}
