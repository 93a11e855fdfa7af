//! The result of a check: a score, a verdict and a reason.
//! A verdict says what happened, so that an answer that never came is not counted as a wrong one.

use std::fmt;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything that was asked for is right.
    Correct,
    Wrong,
    /// The answer ended by itself and has no visible text.
    NoAnswer,
    /// The limit on tokens was reached before any visible text.
    Budget,
    /// The model declined to answer.
    Refused,
    /// There is text, and no answer can be read in it.
    Malformed,
    /// An open question: no program checks the answer, and it counts in no score.
    Open,
}

impl Verdict {
    /// The verdicts that count in scores: all but `Open`.
    pub const ALL: [Verdict; 6] = [
        Verdict::Correct,
        Verdict::Wrong,
        Verdict::NoAnswer,
        Verdict::Budget,
        Verdict::Refused,
        Verdict::Malformed,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Correct => "correct",
            Verdict::Wrong => "wrong",
            Verdict::NoAnswer => "no_answer",
            Verdict::Budget => "budget",
            Verdict::Refused => "refused",
            Verdict::Malformed => "malformed",
            Verdict::Open => "open",
        }
    }

    /// One of [`Verdict::ALL`].
    pub fn by_name(name: &str) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == name)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
