//! Makes the record of one arm from its answers: figures of time, scores, verdicts, and the file of answers.
//! Regrading an old record goes the same way, so that both have the same figures.

use std::collections::BTreeMap;
use std::time::Duration;

use hob_core::statistics::Sample;
use hob_eval::report::{Breakdown, Estimate, ItemOutcome, Summary, is_mostly_cached};
use hob_eval::{GRADING_VERSION, Verdict};
use jiff::Timestamp;

use super::answer_file::{AnswerFile, AnsweredItem, GradedBy};
use super::{EvalArm, EvalWorkload, PromptForm};
use crate::chat::TriedSwitch;
use crate::client_check::{CheckLoad, ClientCheck};
use crate::record::{
    Cache, Connection, EvalFigures, EvalScore, Record, RecordError, RecordKind, RecordStore,
    RecordedWorkload, name_of, pack_lines, relative_path, write_whole,
};
use crate::runs::{BenchError, CellSummary, Reply, Run, Runs};
use crate::terms::Metric;
use crate::timeline::TokenCounts;
use crate::workbench::Workbench;

/// The most important times of an evaluation: until the answer begins, and until it ends.
const LEADING: [Metric; 2] = [Metric::TtfatMs, Metric::E2eMs];
const MS_PER_S: f64 = 1_000.0;

/// One arm with its answers.
pub(super) struct Measured<'a> {
    pub(super) workload: &'a EvalWorkload,
    pub(super) arm: EvalArm,
    pub(super) started: Timestamp,
    pub(super) client_check: &'a Option<ClientCheck>,
    /// What was tried to turn thinking off.
    pub(super) switches: &'a [TriedSwitch],
}

impl Measured<'_> {
    /// Stores the record and its file of answers, and removes the file of the unfinished run.
    pub(super) fn store(
        &self,
        bench: &mut Workbench<'_>,
        file: AnswerFile,
    ) -> Result<Option<Record>, BenchError> {
        let answered = file.answered();
        let run = Run { replies: answered.iter().map(reply).collect(), ..Run::default() };
        let runs =
            Runs { runs: vec![run], client_check: self.client_check.clone(), ..Runs::default() };
        let first = answered.iter().map(|answered| answered.started).min();
        let started = first.map_or(self.started, |first| first.min(self.started));
        let workload = self.recorded(answered);
        let summary = CellSummary::new(RecordKind::Eval, workload, &runs, started, &LEADING);
        let mut stored = Ok(());
        let seed = bench.context.seed;
        let kept = bench.close(summary, |record| {
            record.eval = Some(EvalFigures {
                budget_tokens: self.arm.budget,
                enforced_schemas: self.workload.enforces_schemas,
                choices_by_logprob: self.workload.form == PromptForm::ScoredOptions,
                is_completion: self.workload.form == PromptForm::Completion,
                tasks: self.workload.items.task_names(),
                grading_version: Some(GRADING_VERSION),
                bounds: Some(self.workload.bounds),
                thinking_switches: self.switches.to_vec(),
                set_sha256: Some(self.workload.items.sha256().to_owned()),
                ..figures(answered, seed)
            });
            stored = store_answers(&self.workload.folder, record, |name| file.packed(name));
        })?;
        stored?;
        file.remove()?;
        Ok(kept)
    }

    fn recorded(&self, answered: &[AnsweredItem]) -> RecordedWorkload {
        let EvalArm { thinking, budget, temperature } = self.arm;
        let cache = cache(answered);
        RecordedWorkload {
            shape: Some(self.workload.items.task_names().join(" ")),
            prompts_sha256: Some(self.workload.items.sha256().to_owned()),
            max_tokens: budget.map(u64::from),
            temperature: Some(temperature),
            reasoning: thinking.reasoning(),
            reasoning_switch: thinking.switch().map(|switch| switch.name().to_owned()),
            cache,
            cache_verified: cache.map(|_| true),
            ..RecordedWorkload::closed_loop(1, Connection::Fresh)
        }
    }
}

/// How much of the prompts the server had cached; None if it does not report that.
fn cache(answered: &[AnsweredItem]) -> Option<Cache> {
    let counts: Option<Vec<_>> = answered.iter().map(AnsweredItem::prompt_and_cached).collect();
    let counts = counts.filter(|counts| !counts.is_empty())?;
    Some(match counts.iter().filter(|counts| is_mostly_cached(**counts)).count() {
        0 => Cache::Cold,
        warm if warm == counts.len() => Cache::Cached,
        _ => Cache::Mixed,
    })
}

/// Writes the file of answers into the folder of the record's file, and names it in the record.
fn store_answers(
    folder: &std::path::Path,
    record: &mut Record,
    packed: impl FnOnce(&str) -> Result<(Vec<u8>, crate::record::SampleFile), RecordError>,
) -> Result<(), RecordError> {
    let target = folder.join(relative_path(record)).with_extension("answers.jsonl.gz");
    let (bytes, file) = packed(&name_of(&target))?;
    write_whole(&target, &bytes)?;
    if let Some(eval) = &mut record.eval {
        eval.answers = Some(file);
    }
    Ok(())
}

/// The pace of this server, for the client check.
pub(super) fn pace(answered: &[AnsweredItem]) -> Option<CheckLoad> {
    let median = |metric| {
        let of = |answered: &AnsweredItem| answered.figures.get(&metric).copied();
        Sample::new(answered.iter().filter_map(of)).median()
    };
    Some(CheckLoad::with_medians(1, median(Metric::TtftMs)?, median(Metric::TpotMs)))
}

fn reply(answered: &AnsweredItem) -> Reply {
    let count = |metric| answered.figures.get(&metric).map(|count| *count as u32);
    Reply {
        figures: answered.figures.clone(),
        tokens: count(Metric::CompletionTokens).map(|completion| TokenCounts {
            prompt: count(Metric::PromptTokens),
            cached: count(Metric::CachedTokens),
            completion,
            reasoning: count(Metric::ReasoningTokens).unwrap_or_default(),
            content: count(Metric::ContentTokens).unwrap_or_default(),
        }),
        finish: answered.finish.clone(),
        sent: Duration::ZERO,
        ..Reply::default()
    }
}

/// Answers as the statistics take them, without those to open questions.
pub fn outcomes(answered: &[AnsweredItem]) -> Vec<ItemOutcome> {
    let outcome = |answered: &AnsweredItem| {
        let of = |metric| answered.figures.get(&metric).copied();
        let tokens = |metric| of(metric).map(|count| count as u32);
        ItemOutcome {
            // Another seed, or an edited file, has other questions under the same ids.
            item: format!("{} {}", answered.id, answered.question_sha256()),
            family: answered.family.clone(),
            size: answered.size.clone(),
            score: answered.score,
            verdict: answered.verdict,
            ttfv_ms: of(Metric::TtfatMs),
            total_ms: answered.total_ms,
            thought_tokens: tokens(Metric::ReasoningTokens),
            said_tokens: tokens(Metric::ContentTokens),
            said_words: answered.said_words,
            energy_j: of(Metric::EnergyJ),
        }
    };
    answered.iter().filter(|answered| answered.verdict != Verdict::Open).map(outcome).collect()
}

fn figures(answered: &[AnsweredItem], seed: u64) -> EvalFigures {
    let count = |is_so: fn(&AnsweredItem) -> bool| {
        answered.iter().filter(|answered| is_so(answered)).count() as u64
    };
    let figures = EvalFigures {
        shortened_answers: count(|answered| answered.is_shortened),
        leaked_thoughts: count(|answered| answered.leaked_thought),
        cut_answers: count(|answered| answered.finish.as_deref() == Some("length")),
        corrected_by_hand: count(|answered| answered.graded_by == GradedBy::Hand),
        accuracy_by_length: accuracy_by_length(answered),
        ..EvalFigures::default()
    };
    let found = Breakdown::of(&outcomes(answered), seed);
    let Some(Breakdown { all, by_family, by_size }) = found else { return figures };
    let scores = |found: BTreeMap<String, Summary>| -> BTreeMap<String, EvalScore> {
        found.into_iter().map(|(name, found)| (name, score(found))).collect()
    };
    EvalFigures {
        overall: score(all),
        families: scores(by_family),
        sizes: scores(by_size),
        ..figures
    }
}

fn accuracy_by_length(answered: &[AnsweredItem]) -> Option<f64> {
    let hits: Vec<bool> = answered.iter().filter_map(|one| one.is_correct_by_length).collect();
    let correct = hits.iter().filter(|is_hit| **is_hit).count();
    (!hits.is_empty()).then(|| correct as f64 / hits.len() as f64)
}

fn score(found: Summary) -> EvalScore {
    // An end without a bound is unknown.
    let interval = |estimate: Estimate| {
        Some([estimate.low, estimate.high]).filter(|ends| ends.iter().all(|end| end.is_finite()))
    };
    let value = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.value);
    let verdicts = found.verdicts.into_iter();
    EvalScore {
        n: found.items as u64,
        accuracy: Some(found.accuracy.value),
        accuracy_ci95: interval(found.accuracy),
        score: Some(found.mean_score.value),
        score_ci95: interval(found.mean_score),
        verdicts: verdicts.map(|(verdict, n)| (verdict.to_string(), n as u64)).collect(),
        no_answer_ci95: interval(found.without_answer),
        ttfv_p50_ms: found.ttfv_ms.p50,
        ttfv_p95_ms: found.ttfv_ms.p95,
        total_p50_ms: found.total_ms.p50,
        total_p95_ms: found.total_ms.p95,
        silence_ms: found.budget_silence_s.map(|seconds| seconds * MS_PER_S),
        thought_tokens: found.thought_tokens,
        said_tokens: found.said_tokens,
        said_words: found.said_words_p50,
        score_per_minute: value(found.score_per_minute),
        score_per_minute_ci95: found.score_per_minute.and_then(interval),
        s_per_correct: value(found.seconds_per_correct),
        s_per_correct_ci95: found.seconds_per_correct.and_then(interval),
        tokens_per_correct: value(found.tokens_per_correct),
        tokens_per_correct_ci95: found.tokens_per_correct.and_then(interval),
        energy_j_per_correct: value(found.energy_per_correct_j),
        energy_j_per_correct_ci95: found.energy_per_correct_j.and_then(interval),
    }
}

/// A record with new grades, which supersedes the old one. Times stay as they were measured.
///
/// # Errors
/// The record is not one of an evaluation, or its new file of answers cannot be written.
pub fn regraded(
    store: &RecordStore,
    old: &Record,
    answered: &[AnsweredItem],
) -> Result<Record, RecordError> {
    let mut record = old.clone();
    record.id = uuid::Uuid::now_v7();
    record.supersedes = Some(old.id);
    record.samples = None;
    let seed = old.harness.as_ref().map_or(0, |harness| harness.seed);
    let fresh = figures(answered, seed);
    record.eval = old.eval.clone().map(|before| EvalFigures {
        overall: fresh.overall,
        families: fresh.families,
        sizes: fresh.sizes,
        leaked_thoughts: fresh.leaked_thoughts,
        corrected_by_hand: fresh.corrected_by_hand,
        ..before
    });
    let line = |one: &AnsweredItem| serde_json::to_string(one).map_err(std::io::Error::from);
    store_answers(store.folder(), &mut record, |name| pack_lines(name, answered.iter().map(line)))?;
    store.put(&record, &[])?;
    Ok(record)
}
