//! Multiple choice by log-probability: each option is appended to the question, and the likeliest one counts.
//! `acc` and `acc_norm` are those of lm-evaluation-harness (`process_results` in `lm_eval/api/task.py`).

use serde::Serialize;

/// One option of a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChoiceOption {
    /// Sum of the log-probabilities of the option's tokens.
    pub log_probability: f64,
    /// Length of the option's text, without the space before it. With bytes instead, `acc_norm` is the harness's
    /// `acc_bytes`.
    pub characters: usize,
}

/// Whether the expected option is the likeliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ChoiceHit {
    /// By the sum of log-probabilities. Short options have an advantage.
    pub acc: bool,
    /// By the sum over the length of the text.
    pub acc_norm: bool,
}

/// The first of equal options counts, as in the harness. `None` without options, for an `expected` that is not an
/// option, and for a sum that is not a number.
pub fn choice_by_log_probability(options: &[ChoiceOption], expected: usize) -> Option<ChoiceHit> {
    let is_unknown = options.iter().any(|option| option.log_probability.is_nan());
    if is_unknown || expected >= options.len() {
        return None;
    }
    let norm = |option: &ChoiceOption| option.log_probability / option.characters.max(1) as f64;
    Some(ChoiceHit {
        acc: is_first_max(options.iter().map(|option| option.log_probability), expected),
        acc_norm: is_first_max(options.iter().map(norm), expected),
    })
}

fn is_first_max(values: impl Iterator<Item = f64> + Clone, expected: usize) -> bool {
    let max = values.clone().fold(f64::NEG_INFINITY, f64::max);
    values.into_iter().position(|value| value >= max) == Some(expected)
}
