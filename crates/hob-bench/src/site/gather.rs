//! Collects the page's material from a folder: records, their raw samples, and published runs.
//! The page names each file that could not be read, and shows all others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{Material, Queued};
use crate::eval::{AnsweredItem, read_answers};
use crate::import::{PUBLISHED, import};
use crate::plan::BenchPlan;
use crate::record::{Record, RecordError, RecordStore, samples_beside};

/// Whether published runs, which come with the program, are shown with own runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedRuns {
    Shown,
    LeftOut,
}

impl Material {
    /// Adds the unmeasured cells of all plans in a folder. A missing folder adds nothing.
    pub fn queue(&mut self, folder: &Path) {
        let Ok(entries) = fs_err::read_dir(folder) else { return };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "yaml" || end == "yml"));
        files.sort();
        for file in files {
            // A pipe would block.
            if file.exists() && !file.is_file() {
                let said = format!("{}: it is not a regular file", file.display());
                self.skipped.push(without_folder(&said, folder));
                continue;
            }
            match BenchPlan::read(&file) {
                Ok(plan) => self.queued.push(Queued::from_plan(&plan, &self.records)),
                Err(error) => self.skipped.push(without_folder(&error, folder)),
            }
        }
    }

    /// A missing folder counts as empty: nothing was measured yet.
    ///
    /// # Errors
    /// The folder exists and cannot be listed.
    pub fn gather(store: &RecordStore, others: PublishedRuns) -> Result<Material, RecordError> {
        let found = if store.folder().is_dir() { store.read()? } else { Default::default() };
        let named = |error: &RecordError| without_folder(error, store.folder());
        let mut skipped: Vec<String> = found.skipped.iter().map(named).collect();
        let (mut samples, mut answers) = (BTreeMap::new(), BTreeMap::new());
        for (place, record) in &found.records {
            let file = store.folder().join(place);
            match answers_beside(&file, record) {
                Ok(Some(found)) => drop(answers.insert(record.id, found)),
                Ok(None) => {}
                Err(error) => skipped.push(named(&error)),
            }
            match samples_beside(&file, record) {
                Ok(Some(found)) => drop(samples.insert(record.id, found)),
                Ok(None) => {}
                Err(error) => skipped.push(named(&error)),
            }
        }
        let mut records: Vec<Record> =
            found.records.into_iter().map(|(_, record)| record).collect();
        if others == PublishedRuns::Shown {
            records.extend(published());
        }
        let records = in_force(records);
        Ok(Material { records, samples, answers, skipped, ..Material::default() })
    }
}

/// The error without the folder that it names. The page may be shown to others, who need not know where it is.
pub fn without_folder(error: &impl Display, folder: &Path) -> String {
    // With the separator at its end.
    let folder = folder.join("").display().to_string();
    error.to_string().replace(&folder, "")
}

/// The answers of an evaluation; None if the record has none, or if their file is not there.
fn answers_beside(file: &Path, record: &Record) -> Result<Option<Vec<AnsweredItem>>, RecordError> {
    let answers = record.eval.as_ref().and_then(|eval| eval.answers.as_ref());
    let Some((answers, folder)) = answers.zip(file.parent()) else { return Ok(None) };
    if !folder.join(&answers.file).exists() {
        return Ok(None);
    }
    read_answers(folder, answers).map(Some)
}

/// The file is part of the program, and its tests read it.
fn published() -> Vec<Record> {
    let imported = import("published", PUBLISHED.as_bytes(), None).unwrap_or_default();
    imported.into_iter().map(|one| one.record).collect()
}

/// Drops duplicates and records that another record corrects.
fn in_force(records: Vec<Record>) -> Vec<Record> {
    let superseded: BTreeSet<Uuid> =
        records.iter().filter_map(|record| record.supersedes).collect();
    let mut seen = BTreeSet::new();
    records
        .into_iter()
        .filter(|record| !superseded.contains(&record.id) && seen.insert(record.id))
        .collect()
}
