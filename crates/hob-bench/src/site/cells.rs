//! Runs of one cell: the same model, machine, engine and workload, measured on different days.
//! The engine's version may differ, because its effect is what a reader looks for.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::compare::{IfDifferent, aspects, why_not_comparable};
use crate::record::{Record, SourceType};

type Key = Vec<Option<String>>;

/// Cells that were measured more than once, each with its runs, the newest first.
pub(super) struct Cells<'a> {
    cells: BTreeMap<Key, Vec<&'a Record>>,
}

/// A run without a time, or one that cannot be compared, belongs to no cell.
fn key(record: &Record) -> Option<Key> {
    if why_not_comparable(record).is_some() || record.time.started.is_none() {
        return None;
    }
    let engine = &record.engine;
    let source = match record.source.r#type {
        SourceType::Native => "hob",
        SourceType::Import => record.source.tool.as_str(),
    };
    let own = [
        Some(record.model.name.clone()),
        record.model.quant.clone(),
        engine.name.clone(),
        engine.backend.clone(),
        Some(source.to_owned()),
    ];
    let shared = aspects(record).into_iter().filter(|aspect| {
        aspect.if_different == IfDifferent::RefuseAll
            || aspect.what == "machine"
            || aspect.what == "voice"
    });
    Some(own.into_iter().chain(shared.map(|aspect| aspect.value)).collect())
}

impl<'a> Cells<'a> {
    /// Expects the newest record first.
    pub(super) fn from_records(records: &[&'a Record]) -> Cells<'a> {
        let mut cells: BTreeMap<Key, Vec<&'a Record>> = BTreeMap::new();
        for record in records {
            if let Some(key) = key(record) {
                cells.entry(key).or_default().push(record);
            }
        }
        cells.retain(|_, runs| runs.len() > 1);
        Cells { cells }
    }

    /// The number of a record's cell, and the run of the cell before this one.
    pub(super) fn place(&self, record: &Record) -> Option<(usize, Option<Uuid>)> {
        let key = key(record)?;
        let runs = self.cells.get(&key)?;
        let at = runs.iter().position(|run| run.id == record.id)?;
        let number = self.cells.range(..key).count();
        Some((number, runs.get(at + 1).map(|run| run.id)))
    }

    /// The latest run of each cell with the one before it. The latest pair comes first.
    pub(super) fn latest_pairs(&self) -> Vec<[&'a Record; 2]> {
        let mut pairs: Vec<[&Record; 2]> =
            self.cells.values().map(|runs| [runs[1], runs[0]]).collect();
        pairs.sort_by_key(|[_, new]| (std::cmp::Reverse(new.time.started), new.id));
        pairs
    }
}
