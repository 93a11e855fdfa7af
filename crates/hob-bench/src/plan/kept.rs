//! The records of one cell on their way to the disk. The last of them carries the cell's key.
//! So a cell of several records is done when all of them are there, and not before.

use super::key::CellKey;
use crate::record::{RawSample, Record, RecordError};
use crate::workbench::Keep;

/// What is kept of a cell so far.
#[derive(Debug, Default)]
pub struct Kept {
    /// The latest, which may be the last.
    latest: Option<(Record, Vec<RawSample>)>,
    pub records: Vec<Record>,
}

impl Kept {
    /// Writes the one before, now that it is known not to be the last.
    ///
    /// # Errors
    /// See `write`.
    pub fn put(
        &mut self,
        record: Record,
        samples: Vec<RawSample>,
        write: &mut Keep<'_>,
    ) -> Result<(), RecordError> {
        if let Some((record, samples)) = self.latest.replace((record, samples)) {
            write(&record, &samples)?;
            self.records.push(record);
        }
        Ok(())
    }

    /// Writes the last, with the key.
    ///
    /// # Errors
    /// See `write`.
    pub fn close(
        mut self,
        key: &CellKey,
        write: &mut Keep<'_>,
    ) -> Result<Vec<Record>, RecordError> {
        if let Some((mut record, samples)) = self.latest {
            record.cell_key = Some(key.to_string());
            write(&record, &samples)?;
            self.records.push(record);
        }
        Ok(self.records)
    }
}
