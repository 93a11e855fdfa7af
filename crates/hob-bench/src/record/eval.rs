//! The part of a record that only an evaluation has: scores, verdicts, and the time that answers took.
//! Prompts and answers are in a separate file; the record has its name and hash.

use std::collections::BTreeMap;

use hob_eval::report::UseBounds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reasoning, Record, SampleFile};
use crate::thinking_switch::TriedSwitch;

/// Answers that a program checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalFigures {
    /// `FAMILY:SIZE`, or the stem of a file
    pub tasks: Vec<String>,
    /// Hash of all prompts and checkers
    pub set_sha256: Option<String>,
    /// Maximum tokens of an answer, thinking included; null: each item has its own limit
    pub budget_tokens: Option<u32>,
    /// Whether the server enforced the JSON schemas of items that have one
    pub enforced_schemas: bool,
    /// Whether choices were scored by log-probability
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub choices_by_logprob: bool,
    /// Whether items were asked as texts to continue, without a chat template
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_completion: bool,
    /// Choices by log-probability: share of correct answers if each option's sum is divided by its length (`acc_norm`
    /// of lm-evaluation-harness; `accuracy` is its `acc`)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_by_length: Option<f64>,
    /// What was tried to turn thinking off, in this order, and what each did
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thinking_switches: Vec<TriedSwitch>,
    /// The bounds of the uses in the report of this run
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<UseBounds>,
    pub overall: EvalScore,
    pub families: BTreeMap<String, EvalScore>,
    /// By `FAMILY:SIZE`
    pub sizes: BTreeMap<String, EvalScore>,
    /// Answers that ended at the limit on tokens
    pub cut_answers: u64,
    /// Answers that are longer than 64 KiB: they are kept without their middle, and were graded as a whole
    #[serde(default)]
    pub shortened_answers: u64,
    /// Version of the checkers
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grading_version: Option<u32>,
    /// Answers with a thought in the visible text
    pub leaked_thoughts: u64,
    /// Grades that a person corrected
    pub corrected_by_hand: u64,
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
    /// Items by verdict: `correct`, `wrong`, `no_answer`, `budget` (the token limit ended the answer before any visible text), `refused`, `malformed`
    pub verdicts: BTreeMap<String, u64>,
    /// Interval of the share without an answer: the verdicts `no_answer` and `budget`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_answer_ci95: Option<[f64; 2]>,
    /// Time to the first visible character
    pub ttfv_p50_ms: Option<f64>,
    pub ttfv_p95_ms: Option<f64>,
    /// Time of a whole answer
    pub total_p50_ms: Option<f64>,
    pub total_p95_ms: Option<f64>,
    /// Mean silence of items with the verdict `budget`
    pub silence_ms: Option<f64>,
    /// Mean thinking tokens
    pub thought_tokens: Option<f64>,
    /// Mean answer tokens
    pub said_tokens: Option<f64>,
    /// Median words of an answer
    pub said_words: Option<f64>,
    /// Score points per minute of waiting
    pub score_per_minute: Option<f64>,
    pub score_per_minute_ci95: Option<[f64; 2]>,
    /// Mean time of an answer divided by the accuracy
    pub s_per_correct: Option<f64>,
    pub s_per_correct_ci95: Option<[f64; 2]>,
    /// All thinking and answer tokens, divided by the correct answers
    pub tokens_per_correct: Option<f64>,
    pub tokens_per_correct_ci95: Option<[f64; 2]>,
    /// Energy for each correct answer, in joules
    pub energy_j_per_correct: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j_per_correct_ci95: Option<[f64; 2]>,
}

impl Record {
    /// What tells two evaluations of one model apart: quant, thinking, budget, temperature, form and server.
    pub fn eval_arm(&self) -> String {
        let thinking = self.workload.reasoning.map(|reasoning| match reasoning {
            Reasoning::Enabled => "thinking".to_owned(),
            Reasoning::Disabled => "no thinking".to_owned(),
            Reasoning::CannotDisable => "thinking that cannot be turned off".to_owned(),
        });
        let eval = self.eval.as_ref();
        let budget = eval.and_then(|eval| eval.budget_tokens);
        let temperature = self.workload.temperature.filter(|temperature| *temperature != 0.0);
        let named = |name: &str, is_so: fn(&EvalFigures) -> bool| {
            eval.filter(|eval| is_so(eval)).map(|_| name.to_owned())
        };
        let parts = [
            self.model.quant.clone(),
            thinking,
            budget.map(|tokens| format!("{tokens} tokens")),
            temperature.map(|temperature| format!("temperature {temperature}")),
            named("completion", |eval| eval.is_completion),
            named("log-probability", |eval| eval.choices_by_logprob),
            named("schemas enforced", |eval| eval.enforced_schemas),
            self.engine.name.clone().or_else(|| self.typed_target().map(str::to_owned)),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The address of the server, as it was typed.
    pub fn typed_target(&self) -> Option<&str> {
        let words = &self.harness.as_ref()?.argv;
        words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--target")? {
            "" => words.get(at + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        })
    }

    /// The model, and its arm.
    pub fn eval_name(&self) -> String {
        joined(&self.model.name, &self.eval_arm())
    }
}

/// The arm of each record. Where two evaluations of one model have the same arm, such as those of two servers with one
/// engine, hob appends the address, then the context length, then the last digits of the record's id, until they differ.
pub fn eval_arms(records: &[&Record]) -> Vec<String> {
    fn address(record: &Record) -> Option<String> {
        record.engine.name.as_ref()?;
        record.typed_target().map(str::to_owned)
    }
    fn context(record: &Record) -> Option<String> {
        record.engine.params.ctx.map(|tokens| format!("{tokens} tokens of context"))
    }
    fn id(record: &Record) -> Option<String> {
        Some(record.short_id())
    }
    let mut arms: Vec<String> = records.iter().map(|record| record.eval_arm()).collect();
    for more in [address, context, id] {
        let is_alike = |one: usize, other: usize| {
            one != other
                && records[one].model.name == records[other].model.name
                && arms[one] == arms[other]
        };
        let clashes = (0..records.len())
            .filter(|one| (0..records.len()).any(|other| is_alike(*one, other)))
            .collect::<Vec<_>>();
        for at in clashes {
            if let Some(more) = more(records[at]) {
                arms[at] = joined(&arms[at], &more);
            }
        }
    }
    arms
}

/// The model and the arm of each record, all different.
pub fn eval_names(records: &[&Record]) -> Vec<String> {
    let arms = eval_arms(records);
    records.iter().zip(&arms).map(|(record, arm)| joined(&record.model.name, arm)).collect()
}

/// Two parts of a name, of which one may be empty.
fn joined(one: &str, other: &str) -> String {
    let separator = if one.is_empty() || other.is_empty() { "" } else { ", " };
    format!("{one}{separator}{other}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Harness, RecordKind};

    #[test]
    fn evaluations_that_differ_have_different_names() {
        let mut record = Record { kind: RecordKind::Eval, ..Record::default() };
        record.model.name = "m".to_owned();
        assert_eq!(record.eval_name(), "m");
        record.workload.temperature = Some(0.0);
        let argv = ["hob", "eval", "--target", "http://a:1"].map(str::to_owned).to_vec();
        record.harness = Some(Harness { argv, ..Harness::default() });
        assert_eq!(record.eval_name(), "m, http://a:1");
        record.engine.name = Some("ollama".to_owned());
        assert_eq!(record.eval_name(), "m, ollama");
        record.workload.temperature = Some(0.7);
        let figures = EvalFigures {
            budget_tokens: Some(500),
            is_completion: true,
            enforced_schemas: true,
            ..EvalFigures::default()
        };
        record.eval = Some(figures);
        let arm = "500 tokens, temperature 0.7, completion, schemas enforced, ollama";
        assert_eq!(record.eval_arm(), arm);
        record.eval = Some(EvalFigures { choices_by_logprob: true, ..EvalFigures::default() });
        assert_eq!(record.eval_arm(), "temperature 0.7, log-probability, ollama");
    }
    #[test]
    fn servers_with_one_engine_have_names_of_their_own() {
        let record = |id: u128, model: &str, target: &str| {
            let id = uuid::Uuid::from_u128(id);
            let mut record = Record { id, kind: RecordKind::Eval, ..Record::default() };
            record.model.name = model.to_owned();
            record.engine.name = Some("ollama".to_owned());
            let argv = ["hob", "eval", "--target", target].map(str::to_owned).to_vec();
            record.harness = Some(Harness { argv, ..Harness::default() });
            record
        };
        let all = [
            record(1, "m", "http://a:1"),
            record(2, "m", "http://b:1"),
            record(3, "n", "http://a:1"),
            record(4, "m", "http://b:1"),
        ];
        let names = eval_names(&all.iter().collect::<Vec<_>>());
        let expected = [
            "m, ollama, http://a:1",
            "m, ollama, http://b:1, 00000002",
            "n, ollama",
            "m, ollama, http://b:1, 00000004",
        ];
        assert_eq!(names, expected);
        assert_eq!(eval_names(&[&all[0], &all[2]]), ["m, ollama", "n, ollama"]);
        let [mut short, mut long] = [record(5, "m", "http://a:1"), record(6, "m", "http://a:1")];
        (short.engine.params.ctx, long.engine.params.ctx) = (Some(2048), Some(4096));
        let expected =
            [2048, 4096].map(|tokens| format!("m, ollama, http://a:1, {tokens} tokens of context"));
        assert_eq!(eval_names(&[&short, &long]), expected);
    }
}
