//! One side of a comparison: a record with its samples, or several of one thing.
//! What it is called is what tells it from the other.

use std::path::PathBuf;

use serde::Serialize;

use crate::record::{PickError, RawSample, Record, Shelf, samples_beside};
use crate::site::hardware;

/// A record and the samples beside it; none where the file is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub record: Record,
    pub samples: Vec<RawSample>,
}

impl Kept {
    /// By file, by folder, or by the end of an id.
    ///
    /// # Errors
    /// There is no such record, or what is there is damaged.
    pub fn pick(shelf: &Shelf, wanted: &str) -> Result<Vec<Kept>, PickError> {
        let found = shelf.pick_all(wanted)?;
        let with_samples = |(file, record): (PathBuf, Record)| {
            let samples = samples_beside(&file, &record)?.unwrap_or_default();
            Ok(Kept { record, samples })
        };
        found.into_iter().map(with_samples).collect()
    }
}

/// Who is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Of its records, in full.
    pub ids: Vec<String>,
    pub model: String,
    pub quant: String,
    /// With its version.
    pub engine: String,
    pub hardware: String,
    /// Of the oldest record.
    pub day: String,
}

impl Side {
    pub fn of(kept: &[Kept]) -> Side {
        let Some(record) = kept.iter().map(|kept| &kept.record).min_by_key(|r| r.time.started)
        else {
            return Side::default();
        };
        let engine = [record.engine.name.as_deref(), record.engine.version.as_deref()];
        let day = |time: jiff::Timestamp| time.to_string().chars().take(10).collect();
        Side {
            ids: kept.iter().map(|kept| kept.record.id.to_string()).collect(),
            model: record.model.name.clone(),
            quant: record.model.quant.clone().unwrap_or_default(),
            engine: engine.into_iter().flatten().collect::<Vec<_>>().join(" "),
            hardware: hardware(record),
            day: record.time.started.map_or_else(String::new, day),
        }
    }

    /// In one line, without what is not known.
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
