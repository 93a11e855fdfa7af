//! What evaluations of the same items say together: the frontier, the differences between arms, and an arm for each use.
//! The page shows the same sentences.

use std::path::{Path, PathBuf};

use hob_bench::eval::{
    AnsweredItem, ArmFindings, ArmRecord, GradedBy, differences, read_answers, recorded_bounds,
};
use hob_bench::record::{Record, RecordKind, RecordStore, eval_arms};
use hob_eval::Verdict;
use serde_json::json;

use super::{BoundsArgs, tables};
use crate::failure::{CliResult, Failure};
use crate::printer::{narrow, table};

/// Longest lines of the names of arms, and of reasons, in the table of uses.
const ARM_CHARS: u16 = 30;
const WHY_CHARS: u16 = 80;

/// One record with its answers.
#[derive(Debug)]
pub(crate) struct AnsweredRecord {
    pub(crate) path: PathBuf,
    pub(crate) record: Record,
    pub(crate) answered: Vec<AnsweredItem>,
}

impl AnsweredRecord {
    /// Finds a record by its file, its id, or the end of its id.
    ///
    /// # Errors
    /// There is no such record, it is not of an evaluation, or its answers cannot be read.
    pub(crate) fn pick(store: &RecordStore, which: &str) -> CliResult<AnsweredRecord> {
        let (path, record) = store.pick(which).map_err(Failure::usage)?;
        let file = record.eval.as_ref().and_then(|eval| eval.answers.as_ref());
        let file = file.ok_or_else(|| {
            Failure::usage(format!("{} is not the record of an evaluation", record.short_id()))
        })?;
        let read = read_answers(path.parent().unwrap_or(Path::new("")), file);
        let answered = read.map_err(Failure::internal)?;
        Ok(AnsweredRecord { path, record, answered })
    }
}

/// Records of evaluations with their answers.
#[derive(Debug)]
pub(crate) struct EvalReport {
    records: Vec<Record>,
    answers: Vec<Vec<AnsweredItem>>,
    bounds: BoundsArgs,
}

impl EvalReport {
    pub(crate) fn new(answered: Vec<AnsweredRecord>, bounds: BoundsArgs) -> EvalReport {
        let (records, answers) = answered.into_iter().map(|one| (one.record, one.answered)).unzip();
        EvalReport { records, answers, bounds }
    }

    /// The report of records that the store has.
    ///
    /// # Errors
    /// A record is not of an evaluation, or its answers cannot be read.
    pub(crate) fn of(
        store: &RecordStore,
        records: &[Record],
        bounds: BoundsArgs,
    ) -> CliResult<EvalReport> {
        let pick = |record: &Record| AnsweredRecord::pick(store, &record.id.to_string());
        let answered: CliResult<Vec<AnsweredRecord>> = records.iter().map(pick).collect();
        Ok(EvalReport::new(answered?, bounds))
    }

    /// What the arms show together, one sentence a line, and a table of the best one for each use.
    pub(crate) fn findings(&self) -> String {
        let ArmFindings { sentences, uses } = self.found();
        let sentences = sentences.join("\n");
        if uses.is_empty() {
            return sentences;
        }
        let mut shown = table(["use", "best", "why"]);
        for one in &uses {
            shown.add_row([one.scenario.name(), one.arm.as_deref().unwrap_or("none"), &one.why]);
        }
        narrow(&mut shown, [(1, ARM_CHARS), (2, WHY_CHARS)]);
        format!("{sentences}\n\n{}", shown.trim_fmt())
    }

    pub(crate) fn report_text(&self) -> String {
        format!("{}\n\n{}", tables::record_table(RecordKind::Eval, &self.records), self.findings())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let arms = eval_arms(&self.records.iter().collect::<Vec<_>>());
        let all = self.records.iter().zip(&self.answers).zip(arms);
        let ArmFindings { sentences, uses } = self.found();
        json!({
            "arms": all.map(|((record, answered), arm)| json!({
                "record": record.id, "model": record.model.name, "arm": arm,
                "eval": record.eval,
                "malformed": items(answered, |one| one.verdict == Verdict::Malformed),
                "no_answer": items(answered, |one| one.verdict == Verdict::NoAnswer),
                "leaked_thoughts": items(answered, |one| one.leaked_thought),
                "corrected_by_hand": items(answered, |one| one.graded_by == GradedBy::Hand),
            })).collect::<Vec<_>>(),
            "sentences": sentences,
            "uses": uses,
        })
    }

    /// The second arm against the first, by these names.
    pub(crate) fn differences(&self, names: [&str; 2]) -> Vec<String> {
        let names = names.map(str::to_owned).into_iter();
        let arms: Vec<_> = names.zip(self.answers.iter().map(Vec::as_slice)).collect();
        differences(&arms)
    }

    fn found(&self) -> ArmFindings {
        let arms = self.arms();
        ArmFindings::of(&arms, &self.bounds.over(recorded_bounds(&arms)))
    }

    fn arms(&self) -> Vec<ArmRecord<'_>> {
        let arms = self.records.iter().zip(&self.answers);
        arms.map(|(record, answered)| ArmRecord { record, answered }).collect()
    }
}

/// The items that a report names, with the reason of their grade.
fn items(answered: &[AnsweredItem], is_meant: fn(&AnsweredItem) -> bool) -> Vec<serde_json::Value> {
    let meant = answered.iter().filter(|one| is_meant(one));
    meant.map(|one| json!({ "item": one.id, "why": one.why })).collect()
}
