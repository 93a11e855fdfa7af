//! A team of agents: what its file says, how a run goes from step to step, and what its tools may do.
//! The machine has no I/O; a driver calls models and tools for it, and stores its state and events.

mod arguments;
pub mod builtin;
mod call_name;
mod command;
mod driver;
mod event;
#[cfg(test)]
#[path = "../../hob-models/tests/sources/executable.rs"]
mod executable;
mod machine;
mod policy;
mod price;
mod process_group;
mod redaction;
mod runners;
mod script;
mod state;
mod store;
mod team;
mod tool;

pub use arguments::schema_problem;
pub use driver::{AgentModels, AnswerFailure, AnswerStream, Driver, RunHost, Watchdog, cancel};
pub use event::{DeltaKind, EventKind, RunEvent};
pub use machine::{Effect, Input, ModelAnswer, ModelFailure, Now, step};
pub use price::{ModelPrice, Prices};
pub use process_group::ProcessGroup;
pub use redaction::Redaction;
pub use script::{SCRIPT_BYTES_MAX, ScriptModel};
pub use state::{
    AgentFrame, AgentRole, FrameMessages, Pending, RunState, StoppedAnswer, TeamRunStatus, Used,
    WaitingApproval,
};
pub use store::{
    NewLines, PID_FILE, RUN_FILES_MAX, RunFile, RunStore, RunSummary, RunTeam, StoredRun,
};
pub use team::{
    Agent, Approval, Budget, ClientTools, CommandRule, HandoffHistory, HandoffMode,
    LAST_ANSWER_TOKENS, McpServer, OnDisconnect, Policy, RuleDecision, SandboxMode, SandboxNetwork,
    Team, TeamError, WorkLimits,
};
pub use tool::{
    AgentTool, CommandArgument, OpenedTools, SchemaForms, ToolClass, ToolOutput, ToolSource,
    ToolSpec,
};
