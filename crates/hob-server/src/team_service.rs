//! The trait behind `/v1/teams` and `/v1/runs`: teams by name, and their runs.
//! A trait, because the server knows neither team files nor what a run is made of.

use std::fmt;

use hob_wire::{RunAnswer, RunRow, RunVerdict, StartRun, TeamView};

/// Called when the work on a run has stopped, with the tokens that this work has used.
pub type SpendTokens = Box<dyn FnOnce(u64) + Send>;

/// Teams and runs. Calls read files and may wait for a run to end, so they run on threads for blocking work.
pub trait TeamService: fmt::Debug + Send + Sync {
    /// The team of runs that name none.
    fn default_team(&self) -> &str;

    fn teams(&self) -> Vec<TeamView>;

    /// The newest runs of teams for which `is_shown` holds, at most `limit`.
    ///
    /// # Errors
    /// The runs cannot be listed.
    fn runs(
        &self,
        limit: usize,
        is_shown: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<RunRow>, RunRefusal>;

    /// # Errors
    /// There is no such run, or it cannot be read.
    fn run(&self, id: &str) -> Result<RunAnswer, RunRefusal>;

    /// The team of a run, which decides who may see it.
    ///
    /// # Errors
    /// There is no such run, or it cannot be read.
    fn team_of(&self, id: &str) -> Result<String, RunRefusal>;

    /// The name of the key that started a run. `None`: it was started in a terminal, or without a key.
    ///
    /// # Errors
    /// There is no such run, or it cannot be read.
    fn owner_of(&self, id: &str) -> Result<Option<String>, RunRefusal>;

    /// The events of a run that are stored after the first `offset` bytes of its event file.
    ///
    /// # Errors
    /// There is no such run, or it cannot be read.
    fn progress(&self, id: &str, offset: u64) -> Result<RunProgress, RunRefusal>;

    /// # Errors
    /// There is no such run or file.
    fn file(&self, id: &str, path: &str) -> Result<Vec<u8>, RunRefusal>;

    /// Starts a run of this key that goes on after the call.
    ///
    /// # Errors
    /// There is no such team, too many runs go on, or the run cannot be stored.
    fn start(
        &self,
        new_run: &StartRun,
        owner: Option<&str>,
        spend: SpendTokens,
    ) -> Result<RunRow, RunRefusal>;

    /// Ends a run.
    ///
    /// # Errors
    /// The run has ended, or does not end in time.
    fn cancel(&self, id: &str) -> Result<(), RunRefusal>;

    /// Deletes a run that has ended.
    ///
    /// # Errors
    /// There is no such run, it goes on, or it cannot be deleted.
    fn delete(&self, id: &str) -> Result<(), RunRefusal>;

    /// Goes on with a run: after an interruption, or with what a person has decided about the call with this approval.
    ///
    /// # Errors
    /// The run does not wait for that, too many runs go on, or another process has the run.
    fn go_on(
        &self,
        id: &str,
        decision: Option<(&str, RunVerdict)>,
        spend: SpendTokens,
    ) -> Result<(), RunRefusal>;
}

/// News of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// One event each, as JSON.
    pub lines: Vec<String>,
    /// The `offset` of the next call, which continues after these lines.
    pub offset: u64,
    /// Whether more events are stored already.
    pub has_more: bool,
    pub stage: RunStage,
}

/// Whether events may follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunStage {
    /// A process works on the run.
    Working,
    /// No process works on the run. One may be starting.
    #[default]
    Idle,
    /// The run has ended, or waits for a person.
    Stopped,
}

/// Why a request about teams and runs fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunRefusal {
    #[error("there is no team '{name}' here; GET /v1/teams lists them")]
    NoTeam { name: String },
    #[error("there is no run '{id}'; GET /v1/runs lists them")]
    NoRun { id: String },
    #[error("the run has no file '{path}'; GET /v1/runs/{{id}} lists its files")]
    NoFile { path: String },
    /// The server has never read the team's file without a mistake, or a team or valve from a client is not valid.
    #[error("{0}")]
    BrokenTeam(String),
    #[error("{0}")]
    TooLarge(String),
    /// The state of the run forbids it.
    #[error("{0}")]
    Conflict(String),
    #[error("{runs_max} runs go on, which is the limit; try again when one has ended")]
    Full { runs_max: usize },
    #[error("{0}")]
    Failed(String),
}
