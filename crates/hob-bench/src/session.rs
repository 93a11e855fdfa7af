//! Runs one cell, or several cells alternately, so that other load on the machine affects all of them alike.
//! Only counted runs are paired; warm-up requests are left out of all cells.

use jiff::Timestamp;

use crate::client_check::{CheckLoad, ClientCheck};
use crate::record::Record;
use crate::runs::{BenchError, Benchmark, CellSummary, RecordContext, Run, Runs, WARMUP_RUNS_MAX};
use crate::terms::Metric;
use crate::workbench::Workbench;

/// Requests of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSize {
    /// Requests of each user.
    pub rounds: usize,
    /// Seconds that a run at a rate lasts; it has eight requests at least.
    pub span_s: f64,
}

/// A workload on one server, with the request fields that the server accepts.
pub(crate) trait MeasuringSession {
    /// One cell.
    type Cell;

    /// The cell's name in progress lines.
    fn name(&self, cell: &Self::Cell) -> String;

    /// Sends one run of requests.
    ///
    /// # Errors
    /// Requests cannot be sent. A failing server gives a run whose replies have faults.
    fn measure_run(
        &mut self,
        cell: &Self::Cell,
        client_check: Option<&ClientCheck>,
    ) -> Result<Run, BenchError>;

    /// The figures that the stopping rule looks at.
    fn leading(&self, cell: &Self::Cell) -> &'static [Metric];

    /// A mock server's pace that is like this server's, from the warm-up.
    fn pace(&self, cell: &Self::Cell, warm: &Run) -> Option<CheckLoad>;

    /// Describes the runs of a cell for its record.
    fn summarise<'r>(
        &mut self,
        cell: &Self::Cell,
        runs: &'r Runs,
        started: Timestamp,
    ) -> CellSummary<'r>;

    /// Fills in the parts of a record that only this workload has. `earlier` are the records before it.
    fn fill_in(&self, _cell: &Self::Cell, _runs: &Runs, _record: &mut Record, _earlier: &[Record]) {
    }

    /// Called with each stored record.
    fn on_stored(&mut self, _cell: &Self::Cell, _record: &Record) {}

    /// Maximum number of warm-up runs.
    fn warmups_max(&self, _cell: &Self::Cell) -> usize {
        WARMUP_RUNS_MAX
    }

    /// Server and client of this cell, if they differ from the workbench's.
    fn context(&self, _cell: &Self::Cell) -> Option<&RecordContext> {
        None
    }
}

/// Runs all cells alternately, one run of each, until the last of them fulfils the stopping rule. Returns the same number of
/// runs for each.
///
/// # Errors
/// Requests cannot be sent, or the server did not restart.
pub(crate) fn run_in_turns<S: MeasuringSession>(
    bench: &mut Workbench<'_>,
    name: &str,
    session: &mut S,
    cells: &[S::Cell],
) -> Result<Vec<Runs>, BenchError> {
    let others = cells.len().saturating_sub(1);
    let (latest, runs, warmups) = (Vec::new(), vec![Vec::new(); others], vec![0; others]);
    let mut turns = Turns { session, cells, latest, runs, warmups };
    let last = bench.run(name, &mut turns)?;
    let Turns { runs, warmups, .. } = turns;
    let other = |(mut runs, warmup_requests): (Vec<Run>, usize)| {
        // A stop in the middle of a pair leaves an incomplete last pair.
        runs.truncate(last.runs.len());
        Runs { runs, warmup_requests, ..last.clone() }
    };
    let mut all: Vec<Runs> = runs.into_iter().zip(warmups).map(other).collect();
    all.push(last);
    Ok(all)
}

struct Turns<'s, S: MeasuringSession> {
    session: &'s mut S,
    cells: &'s [S::Cell],
    /// Latest runs of all cells but the last one, until they are counted.
    latest: Vec<Run>,
    runs: Vec<Vec<Run>>,
    warmups: Vec<usize>,
}

impl<S: MeasuringSession> Turns<'_, S> {
    fn last(&self) -> &S::Cell {
        &self.cells[self.cells.len() - 1]
    }
}

impl<S: MeasuringSession> Benchmark for Turns<'_, S> {
    /// If a cell fails, the other cells get no requests, and the failure counts for all.
    fn measure_run(&mut self, client_check: Option<&ClientCheck>) -> Result<Run, BenchError> {
        for (warmup, run) in self.warmups.iter_mut().zip(self.latest.drain(..)) {
            *warmup += run.replies.len();
        }
        for cell in &self.cells[..self.cells.len() - 1] {
            let run = self.session.measure_run(cell, client_check)?;
            self.latest.push(run.clone());
            if run.has_failed() {
                return Ok(run);
            }
        }
        let cell = &self.cells[self.cells.len() - 1];
        self.session.measure_run(cell, client_check)
    }

    fn leading(&self) -> &[Metric] {
        self.session.leading(self.last())
    }

    fn pace(&self, warm: &Run) -> Option<CheckLoad> {
        self.session.pace(self.last(), warm)
    }

    fn keep_run(&mut self, start: u32) {
        for (runs, run) in self.runs.iter_mut().zip(self.latest.drain(..)) {
            runs.push(Run { start, ..run });
        }
    }

    fn warmups_max(&self) -> usize {
        self.cells.iter().map(|cell| self.session.warmups_max(cell)).min().unwrap_or(1)
    }
}

/// Makes a record of a cell, lets `finish` complete it, stores it, and adds it to `records`. A cell that was stopped before
/// its first run has no record.
///
/// # Errors
/// The record cannot be stored.
pub(crate) fn store_record<S: MeasuringSession>(
    bench: &mut Workbench<'_>,
    session: &mut S,
    (cell, runs, started): (&S::Cell, &Runs, Timestamp),
    records: &mut Vec<Record>,
    finish: impl FnOnce(&mut Record),
) -> Result<(), BenchError> {
    let summary = session.summarise(cell, runs, started);
    let own = session.context(cell).cloned();
    let replaced = own.map(|other| std::mem::replace(&mut bench.context, other));
    let kept = bench.close(summary, |record| {
        session.fill_in(cell, runs, record, records);
        finish(record);
    });
    if let Some(own) = replaced {
        bench.context = own;
    }
    if let Some(record) = kept? {
        session.on_stored(cell, &record);
        records.push(record);
    }
    Ok(())
}
