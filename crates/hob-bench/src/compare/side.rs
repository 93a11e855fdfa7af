//! One side of a comparison: a record with its samples, or several records of one cell.
//! A side's name contains its record id, model, engine, hardware and day.

use std::path::PathBuf;

use serde::Serialize;

use crate::record::{PickError, RawSample, Record, RecordStore, samples_beside};

/// A record with its samples. There are no samples if the samples file is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledRecord {
    pub record: Record,
    pub samples: Vec<RawSample>,
}

impl SampledRecord {
    /// Reads records. `wanted` is a file, a folder, a record id, or the end of an id.
    ///
    /// # Errors
    /// There is no such record, or it is damaged.
    pub fn pick(store: &RecordStore, wanted: &str) -> Result<Vec<SampledRecord>, PickError> {
        let found = store.pick_all(wanted)?;
        let with_samples = |(file, record): (PathBuf, Record)| {
            let samples = samples_beside(&file, &record)?.unwrap_or_default();
            Ok(SampledRecord { record, samples })
        };
        found.into_iter().map(with_samples).collect()
    }
}

/// The description of one side in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The full ids of its records.
    pub ids: Vec<String>,
    pub model: String,
    pub quant: String,
    /// Name and version.
    pub engine: String,
    pub hardware: String,
    /// Start day of the oldest record, such as `2026-11-21`.
    pub day: String,
}

impl Side {
    pub fn from_records(records: &[SampledRecord]) -> Side {
        let Some(record) =
            records.iter().map(|record| &record.record).min_by_key(|r| r.time.started)
        else {
            return Side::default();
        };
        let engine = [record.engine.name.as_deref(), record.engine.version.as_deref()];
        let day = |time: jiff::Timestamp| time.to_string().chars().take(10).collect();
        Side {
            ids: records.iter().map(|record| record.record.id.to_string()).collect(),
            model: record.model.name.clone(),
            quant: record.model.quant.clone().unwrap_or_default(),
            engine: engine.into_iter().flatten().collect::<Vec<_>>().join(" "),
            hardware: record.hardware(),
            day: record.time.started.map_or_else(String::new, day),
        }
    }

    /// One line with the short id and every non-empty field.
    pub fn name(&self) -> String {
        let id = self.ids.first().map_or("", |id| &id[id.len().saturating_sub(8)..]);
        let more = match self.ids.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let parts = [&self.model, &self.quant, &self.engine, &self.hardware, &self.day];
        let known: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        format!("{id}{more}: {}", known.join(", "))
    }
}
