//! The result of a check: a score, a verdict and a reason.
//! A verdict says what happened, so that an answer that never came is not counted as a wrong one.

use serde::{Deserialize, Serialize};

/// What a checker says of one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grade {
    /// 0 to 1. Partial credit lies between.
    pub score: f64,
    pub verdict: Verdict,
    /// One sentence: what was expected and what was read.
    pub why: String,
}

hob_core::enum_table! {
    /// How an answer did. `name` gives the name in files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Verdict: name {
        /// Everything that was asked for is right.
        Correct = "correct",
        Wrong = "wrong",
        /// The answer ended by itself and has no visible text.
        NoAnswer = "no_answer",
        /// The limit on tokens was reached before any visible text.
        Budget = "budget",
        /// The model declined to answer.
        Refused = "refused",
        /// There is text, and no answer can be read in it.
        Malformed = "malformed",
        /// An open question: no program checks the answer, and it counts in no score.
        Open = "open",
    }
}

impl Verdict {
    /// The verdicts that count in scores: all but `Open`.
    pub fn scored() -> impl Iterator<Item = Verdict> {
        Verdict::ALL.into_iter().filter(|verdict| *verdict != Verdict::Open)
    }
}

impl Grade {
    pub fn correct(why: impl Into<String>) -> Grade {
        Grade { score: 1.0, verdict: Verdict::Correct, why: why.into() }
    }

    pub fn wrong(why: impl Into<String>) -> Grade {
        Grade::partial(0.0, why)
    }

    /// A wrong answer of which a part is right. `score` is cut to 0..1.
    pub fn partial(score: f64, why: impl Into<String>) -> Grade {
        Grade { score: score.clamp(0.0, 1.0), verdict: Verdict::Wrong, why: why.into() }
    }

    pub fn malformed(why: impl Into<String>) -> Grade {
        Grade { score: 0.0, verdict: Verdict::Malformed, why: why.into() }
    }
}
