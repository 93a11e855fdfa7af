//! What a page is made of, from a folder: records, their raw samples, and what others published.
//! A file that is no record is named on the page, and everything else is on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{Material, Production, Queued};
use crate::import::{PUBLISHED, import};
use crate::plan::Plan;
use crate::record::{Record, RecordError, Shelf, samples_beside};

/// Whether what came with the program stands beside what was measured here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    Shown,
    LeftOut,
}

impl Material {
    /// Adds what the plans of a folder still have to measure; one that is not there holds none.
    pub fn queue(&mut self, folder: &Path) {
        let Ok(entries) = fs_err::read_dir(folder) else { return };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "yaml" || end == "yml"));
        files.sort();
        for file in files {
            match Plan::read(&file) {
                Ok(plan) => self.queued.push(Queued::of(&plan, &self.records)),
                Err(error) => self.skipped.push(error.to_string()),
            }
        }
    }

    /// A folder that is not there is an empty one: nothing was measured yet.
    ///
    /// # Errors
    /// The folder is there and cannot be listed.
    pub fn gather(shelf: &Shelf, others: Others) -> Result<Material, RecordError> {
        let found = if shelf.folder().is_dir() { shelf.read()? } else { Default::default() };
        // The page may be shown to others: where the folder lies is nobody's business.
        let folder = format!("{}{}", shelf.folder().display(), std::path::MAIN_SEPARATOR);
        let said = |error: &RecordError| error.to_string().replacen(&folder, "", 1);
        let mut skipped: Vec<String> = found.skipped.iter().map(said).collect();
        let mut samples = BTreeMap::new();
        for (place, record) in &found.records {
            match samples_beside(&shelf.folder().join(place), record) {
                Ok(Some(those)) => drop(samples.insert(record.id, those)),
                Ok(None) => {}
                Err(error) => skipped.push(error.to_string()),
            }
        }
        let mut records: Vec<Record> =
            found.records.into_iter().map(|(_, record)| record).collect();
        if others == Others::Shown {
            records.extend(published());
        }
        let records = in_force(records);
        Ok(Material {
            records,
            samples,
            production: Production::default(),
            queued: Vec::new(),
            skipped,
            built: None,
        })
    }
}

/// The file is part of the program and read by its tests: it has records.
fn published() -> Vec<Record> {
    let imported = import("published", PUBLISHED.as_bytes(), None).unwrap_or_default();
    imported.into_iter().map(|one| one.record).collect()
}

/// Each once, and none that another one corrects.
fn in_force(records: Vec<Record>) -> Vec<Record> {
    let superseded: BTreeSet<Uuid> =
        records.iter().filter_map(|record| record.supersedes).collect();
    let mut seen = BTreeSet::new();
    records
        .into_iter()
        .filter(|record| !superseded.contains(&record.id) && seen.insert(record.id))
        .collect()
}
