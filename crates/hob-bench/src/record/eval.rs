//! The part of a record that only an evaluation has: scores, verdicts, and the time that answers took.
//! Prompts and answers stand in a file of their own, which the record names and hashes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reasoning, Record, SampleFile};

/// Answers that a program checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalFigures {
    /// `FAMILY:SIZE`, or the stem of a file
    pub tasks: Vec<String>,
    /// Hash of all prompts and checkers
    pub set_sha256: Option<String>,
    /// Most tokens of an answer, thinking included; null: each item has its own limit
    pub budget_tokens: Option<u32>,
    /// Whether the server enforced the JSON schemas of items that have one
    pub enforced_schemas: bool,
    /// Whether choices were scored by log-probability
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub choices_by_logprob: bool,
    /// Choices by log-probability: share of correct answers if each option's sum is divided by its length (`acc_norm`
    /// of lm-evaluation-harness; `accuracy` is its `acc`)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_by_length: Option<f64>,
    pub overall: EvalScore,
    pub families: BTreeMap<String, EvalScore>,
    /// By `FAMILY:SIZE`
    pub sizes: BTreeMap<String, EvalScore>,
    /// Answers that ended at the limit on tokens
    pub cut_answers: u64,
    /// Answers with a thought in the visible text
    pub leaked_thoughts: u64,
    /// Grades that a person corrected
    pub corrected_by_hand: u64,
    /// Items that a model judged, always apart from checked ones
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<String>,
    /// One line of JSON for each item: prompt, answer, verdict, times
    pub answers: Option<SampleFile>,
}

/// Scores and times of some items. Intervals are 95 % intervals over items.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalScore {
    /// Items
    pub n: u64,
    /// Share of correct answers
    pub accuracy: Option<f64>,
    pub accuracy_ci95: Option<[f64; 2]>,
    /// Mean score, with partial credit
    pub score: Option<f64>,
    pub score_ci95: Option<[f64; 2]>,
    /// Items by verdict: `correct`, `wrong`, `no_answer`, `budget`, `refused`, `malformed`
    pub verdicts: BTreeMap<String, u64>,
    /// Time to the first visible character
    pub ttfv_p50_ms: Option<f64>,
    pub ttfv_p95_ms: Option<f64>,
    pub total_p50_ms: Option<f64>,
    pub total_p95_ms: Option<f64>,
    /// Mean silence of items with the verdict `budget`
    pub silence_ms: Option<f64>,
    /// Means
    pub thought_tokens: Option<f64>,
    pub said_tokens: Option<f64>,
    /// Median
    pub said_words: Option<f64>,
    /// Sum of the scores for each minute waited
    pub score_per_minute: Option<f64>,
    pub score_per_minute_ci95: Option<[f64; 2]>,
    /// Mean time of an answer divided by the accuracy
    pub s_per_correct: Option<f64>,
    pub s_per_correct_ci95: Option<[f64; 2]>,
    pub tokens_per_correct: Option<f64>,
    pub energy_j_per_correct: Option<f64>,
}

impl Record {
    /// What tells two evaluations of one model apart: quant, thinking and budget.
    pub fn eval_arm(&self) -> String {
        let thinking = self.workload.reasoning.map(|reasoning| match reasoning {
            Reasoning::Enabled => "thinking".to_owned(),
            Reasoning::Disabled => "no thinking".to_owned(),
            Reasoning::CannotDisable => "thinking that cannot be turned off".to_owned(),
        });
        let budget = self.eval.as_ref().and_then(|eval| eval.budget_tokens);
        let budget = budget.map(|tokens| format!("{tokens} tokens"));
        let quant = self.model.quant.clone();
        [quant, thinking, budget].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The model, and its arm.
    pub fn eval_name(&self) -> String {
        let (model, arm) = (&self.model.name, self.eval_arm());
        if arm.is_empty() { model.clone() } else { format!("{model}, {arm}") }
    }
}
