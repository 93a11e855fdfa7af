//! The statistics of score against time: a summary of each arm, comparisons of two, and advice for each use.
//! An arm is one configuration: model, quant, thinking, server. All figures come from the run, none from names.

mod choice;
mod estimate;
mod frontier;
mod paired;
mod power;
mod prompt_cache;
mod scenario;
mod summary;

use serde::{Deserialize, Serialize};

pub use choice::{ChoiceHit, ChoiceOption, choice_by_log_probability};
pub use estimate::Estimate;
pub use frontier::{ArmPoint, frontier};
pub use paired::{Paired, ScoreFinding};
pub(crate) use paired::{half_tail, mcnemar};
pub use power::{items_needed, smallest_difference};
pub use prompt_cache::{cached_share, is_mostly_cached, warm_cache_sentence};
pub use scenario::{Advice, ArmOutcomes, Scenario, UseBounds, advise};
pub use summary::{Breakdown, Summary, TimeSpread};

use crate::Verdict;

/// One item in one arm: the grade, and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemOutcome {
    /// What only outcomes of the same question share.
    pub item: String,
    pub family: String,
    pub size: String,
    /// 0 to 1.
    pub score: f64,
    /// Never `Open`: an open question is in no score.
    pub verdict: Verdict,
    /// Time to the first visible character. `None`: none was ever visible.
    pub ttfv_ms: Option<f64>,
    pub total_ms: f64,
    pub thought_tokens: Option<u32>,
    pub said_tokens: Option<u32>,
    pub said_words: u32,
    pub energy_j: Option<f64>,
}

#[cfg(test)]
mod tests;
