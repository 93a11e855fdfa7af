//! Evaluations on the page: what the arms of one set of items show together, and each item of a run.
//! Texts are cut, so that the page of one run stays usable; the file of the answers has all of them.

use std::collections::BTreeMap;

use hob_eval::Verdict;
use hob_eval::report::Advice;
use serde::Serialize;
use uuid::Uuid;

use super::Material;
use crate::eval::{AnsweredItem, ArmFindings, ArmRecord, GradedBy, recorded_bounds};
use crate::record::{Record, eval_names};
use crate::terms::Metric;

const ITEMS_MAX: usize = 1_000;
const TEXT_CHARS_MAX: usize = 8_000;

/// All runs that answered the same items.
#[derive(Debug, Serialize)]
pub(super) struct EvalSet {
    set_sha256: String,
    /// The model and arm of each run, all different.
    names: BTreeMap<Uuid, String>,
    sentences: Vec<String>,
    uses: Vec<Advice>,
}

/// One item of a run.
#[derive(Debug, Serialize)]
pub(super) struct ItemData<'a> {
    id: &'a str,
    prompt: String,
    answer: String,
    tool_calls: &'a [String],
    thought: String,
    verdict: Verdict,
    score: f64,
    why: &'a str,
    graded_by: GradedBy,
    ttfv_ms: Option<f64>,
    total_ms: f64,
    thought_tokens: Option<f64>,
    tok_s: Option<f64>,
    /// The limit on tokens ended it.
    is_cut: bool,
    /// The visible text contains a thought.
    has_leaked_thought: bool,
}

pub(super) fn evals(material: &Material) -> Vec<EvalSet> {
    let mut sets: BTreeMap<&str, Vec<ArmRecord<'_>>> = BTreeMap::new();
    for record in &material.records {
        let Some(answers) = material.answers.get(&record.id) else { continue };
        let set = record.eval.as_ref().and_then(|eval| eval.set_sha256.as_deref());
        let arm = ArmRecord { record, answered: &answers[..] };
        sets.entry(set.unwrap_or_default()).or_default().push(arm);
    }
    let set = |(set, arms): (&str, Vec<ArmRecord<'_>>)| {
        let names = eval_names(&arms.iter().map(|arm| arm.record).collect::<Vec<_>>());
        let ArmFindings { sentences, uses } = ArmFindings::of(&arms, &recorded_bounds(&arms));
        let names = arms.iter().map(|arm| arm.record.id).zip(names).collect();
        EvalSet { set_sha256: set.to_owned(), names, sentences, uses }
    };
    sets.into_iter().map(set).collect()
}

/// The items of a run, and how many were left out. None where their file is not here.
pub(super) fn items<'a>(
    material: &'a Material,
    record: &Record,
) -> (Option<Vec<ItemData<'a>>>, usize) {
    let Some(answers) = material.answers.get(&record.id) else { return (None, 0) };
    let items = answers.iter().take(ITEMS_MAX).map(ItemData::of).collect();
    (Some(items), answers.len().saturating_sub(ITEMS_MAX))
}

impl ItemData<'_> {
    fn of(answered: &AnsweredItem) -> ItemData<'_> {
        let of = |metric| answered.figures.get(&metric).copied();
        ItemData {
            id: &answered.id,
            prompt: cut(&answered.prompt),
            answer: cut(&answered.answer),
            tool_calls: &answered.tool_calls,
            thought: cut(&answered.thought),
            verdict: answered.verdict,
            score: answered.score,
            why: &answered.why,
            graded_by: answered.graded_by,
            ttfv_ms: of(Metric::TtfatMs),
            total_ms: answered.total_ms,
            thought_tokens: of(Metric::ReasoningTokens),
            tok_s: of(Metric::DecodeTokS),
            is_cut: answered.finish.as_deref() == Some("length"),
            has_leaked_thought: answered.leaked_thought,
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
