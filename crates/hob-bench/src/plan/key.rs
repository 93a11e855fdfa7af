//! The key of a cell. A cell is done if a valid record has its key.
//! The first half is a hash of the matrix point, the second of engine, model, machine and client.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::cells::PlanCell;
use crate::record::{Host, Record, sha256_hex, with_former_names};
use crate::runs::RecordContext;

const HALF_CHARS: usize = 16;

/// What a figure depends on besides the matrix point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanFacts {
    pub engine: Option<String>,
    pub version: Option<String>,
    pub model_sha256: Option<String>,
    /// The client's version up to the first dot.
    pub harness: String,
    pub host: Option<String>,
}

impl PlanFacts {
    pub fn from_context(context: &RecordContext) -> PlanFacts {
        let Host { id_hash, .. } = &context.host;
        let version = env!("CARGO_PKG_VERSION");
        PlanFacts {
            engine: context.engine.name.clone(),
            version: context.engine.version.clone(),
            model_sha256: context.model.sha256.clone(),
            harness: version.split('.').next().unwrap_or(version).to_owned(),
            host: id_hash.clone(),
        }
    }
}

/// The key of a cell in a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey(String);

impl CellKey {
    pub fn new(cell: &PlanCell, facts: &PlanFacts) -> CellKey {
        CellKey(format!("{}-{}", CellKey::point(cell), half(facts)))
    }

    /// The first half, which is known before any request.
    pub fn point(cell: &PlanCell) -> String {
        half(cell)
    }

    /// Whether a record's key is of this matrix point.
    pub fn is_of_point(key: &str, point: &str) -> bool {
        key.strip_prefix(point).is_some_and(|rest| rest.starts_with('-'))
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys of all cells that are done.
pub fn done<'a>(records: impl IntoIterator<Item = &'a Record>) -> BTreeSet<String> {
    let valid = records.into_iter().filter(|record| record.is_valid());
    valid.filter_map(|record| record.cell_key.clone()).collect()
}

fn half(what: &impl Serialize) -> String {
    // Serialising structs of texts and numbers cannot fail.
    let json = serde_json::to_string(what).unwrap_or_default();
    sha256_hex(with_former_names(&json).as_bytes())[..HALF_CHARS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::file::BenchPlan;
    use super::*;
    use crate::record::RunStatus;

    #[test]
    fn keys_differ_by_point_and_by_setup() {
        let text = "schema: bench-plan/1\nname: n\ntargets: [{name: a}]\nmatrix: {kind: [llm]}\n";
        let cells = super::super::cells(&BenchPlan::parse("p", text).expect("a plan"));
        let facts = |version: &str| PlanFacts {
            engine: Some("e".to_owned()),
            version: Some(version.to_owned()),
            model_sha256: None,
            harness: "0".to_owned(),
            host: None,
        };
        let mut keys = BTreeSet::new();
        for cell in &cells {
            for version in ["1", "2"] {
                let key = CellKey::new(cell, &facts(version));
                assert!(CellKey::is_of_point(&key.to_string(), &CellKey::point(cell)));
                assert!(keys.insert(key));
            }
        }
        assert_eq!(keys.len(), 16);
    }

    #[test]
    fn a_kind_that_was_renamed_keeps_its_key() {
        for (now, before, point) in [
            ("max-context", "ceiling", "84719f44443df5bc"),
            ("concurrency", "degrade", "3bfa1fd989cc2d96"),
        ] {
            let points = [now, before].map(|kind| {
                let text = format!(
                    "schema: bench-plan/1\nname: n\ntargets: [{{name: a}}]\nmatrix: {{kind: [{kind}]}}\n"
                );
                let plan = BenchPlan::parse("p", &text).expect("a plan");
                CellKey::point(&super::super::cells(&plan)[0])
            });
            assert_eq!(points, [point, point], "{now}");
        }
    }

    #[test]
    fn only_valid_records_are_done() {
        let record = |key: &str, status, reasons: &[&str]| Record {
            cell_key: Some(key.to_owned()),
            status,
            invalid_reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            ..Record::default()
        };
        let records = [
            record("a", RunStatus::Ok, &[]),
            record("b", RunStatus::Failed, &[]),
            record("c", RunStatus::Ok, &["the client was too slow"]),
            record("d", RunStatus::Aborted, &[]),
        ];
        assert_eq!(done(&records).into_iter().collect::<Vec<_>>(), ["a"]);
    }
}
