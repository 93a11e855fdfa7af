//! Finds the records that are compared, and shows the report about them cell by cell.
//! `hob bench compare` and alternating measurements show the same report.

use hob_bench::compare::{CompareOptions, CompareReport, SampledRecord, report};
use hob_bench::record::{PickError, RecordStore};

use super::comparison_table::comparison_text;
use crate::failure::{CliResult, Failure};

/// The figures of two records that were measured alternately.
pub(super) fn in_turns(store: &RecordStore, base: &str, new: &str) -> CliResult<String> {
    let [base, new] = [base, new].map(|id| pick(store, &[id.to_owned()]));
    Ok(report_table(&report(&base?, &new?, &CompareOptions::default())))
}

/// The report cell by cell.
pub(super) fn report_table(report: &CompareReport) -> String {
    let cells = report.cells.iter().map(|cell| match report.cells.len() {
        1 => format!("{}\n", comparison_text(&cell.comparison)),
        _ => format!("{}\n{}\n", cell.name, comparison_text(&cell.comparison)),
    });
    let left_out = report.left_out.iter().map(|cell| format!("left out: {cell}"));
    cells.chain(left_out).collect::<Vec<_>>().join("\n")
}

/// Reads all records of these files, folders and ids.
pub(super) fn pick(store: &RecordStore, selectors: &[String]) -> CliResult<Vec<SampledRecord>> {
    let mut all = Vec::new();
    for selector in selectors {
        let found = SampledRecord::pick(store, selector).map_err(failure)?;
        if found.is_empty() {
            return Err(Failure::usage(format!("{selector} holds no record")));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Exit code 2 and never 1: 1 means that a figure became worse.
fn failure(error: PickError) -> Failure {
    let hint = match &error {
        PickError::None { .. } => "--records names the folder of records",
        PickError::Several { .. } => "give more of its id",
        PickError::Record(_) => return Failure::usage(error),
    };
    Failure::usage(error).hint(hint)
}
