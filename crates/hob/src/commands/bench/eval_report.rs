//! What evaluations of the same items say together: the frontier, the differences between arms, and an arm for each use.
//! The page shows the same sentences.

use std::path::Path;

use hob_bench::eval::{AnsweredItem, comparison, read_answers};
use hob_bench::record::{Record, RecordKind, RecordStore};
use serde_json::json;

use super::tables;
use crate::failure::{CliResult, Exit, Failure};

/// Records of evaluations with their answers.
#[derive(Debug)]
pub(crate) struct EvalReport {
    records: Vec<Record>,
    answers: Vec<Vec<AnsweredItem>>,
}

impl EvalReport {
    /// # Errors
    /// A record is not of an evaluation, or its answers cannot be read.
    pub(crate) fn of(store: &RecordStore, records: &[Record]) -> CliResult<EvalReport> {
        let mut answers = Vec::new();
        for record in records {
            let (path, stored) = store.pick(&record.id.to_string()).map_err(Failure::usage)?;
            let file = stored.eval.and_then(|eval| eval.answers).ok_or_else(|| {
                Failure::usage(format!("{} is not the record of an evaluation", record.short_id()))
            })?;
            let folder = path.parent().unwrap_or(Path::new(""));
            let read = read_answers(folder, &file);
            answers.push(read.map_err(|error| Failure::new(Exit::Internal, error))?);
        }
        Ok(EvalReport { records: records.to_vec(), answers })
    }

    /// What the arms show together, one sentence a line.
    pub(crate) fn sentences(&self) -> String {
        self.lines().join("\n")
    }

    pub(crate) fn shown(&self) -> String {
        format!("{}\n\n{}", tables::shown(RecordKind::Eval, &self.records), self.sentences())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "arms": self.records.iter().map(|record| json!({
                "record": record.id, "model": record.model.name, "arm": record.eval_arm(),
                "eval": record.eval,
            })).collect::<Vec<_>>(),
            "sentences": self.lines(),
        })
    }

    fn lines(&self) -> Vec<String> {
        let arms = self.records.iter().map(Record::eval_name).zip(&self.answers);
        comparison(&arms.map(|(name, answers)| (name, &answers[..])).collect::<Vec<_>>())
    }
}
