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

    /// Called before each turn, with the first cell. A turn runs each cell once.
    fn begin_turn(&mut self, _cell: &Self::Cell) {}

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

/// Measures cells alternately, and stores the record of each, completed by `finish`. Does nothing after a stop.
///
/// # Errors
/// Requests cannot be sent, the server did not restart, or a record cannot be stored.
pub(crate) fn measure_in_turns<S: MeasuringSession>(
    bench: &mut Workbench<'_>,
    session: &mut S,
    (name, cells): (&str, &[S::Cell]),
    records: &mut Vec<Record>,
    finish: impl Fn(&mut Record),
) -> Result<(), BenchError> {
    if bench.is_stopped() {
        return Ok(());
    }
    let started = Timestamp::now();
    let runs = run_in_turns(bench, name, session, cells)?;
    for (cell, runs) in cells.iter().zip(&runs) {
        store_record(bench, session, (cell, runs, started), records, &finish)?;
    }
    Ok(())
}

/// Runs all cells alternately, one run of each, until the last of them fulfils the stopping rule. Returns the same number of
/// runs for each. Two servers have the order A B B A.
///
/// # Errors
/// Requests cannot be sent, or the server did not restart.
pub(crate) fn run_in_turns<S: MeasuringSession>(
    bench: &mut Workbench<'_>,
    name: &str,
    session: &mut S,
    cells: &[S::Cell],
) -> Result<Vec<Runs>, BenchError> {
    let mut turns = Turns::new(session, cells);
    let last = bench.run(name, &mut turns)?;
    Ok(turns.into_runs(last))
}

struct Turns<'s, S: MeasuringSession> {
    session: &'s mut S,
    cells: &'s [S::Cell],
    /// Latest runs of all cells but the last one, until they are counted.
    latest: Vec<Run>,
    runs: Vec<Vec<Run>>,
    warmups: Vec<usize>,
    turns: usize,
    /// The latest run is that of a cell before the last one, which failed.
    has_failed_before: bool,
}

impl<'s, S: MeasuringSession> Turns<'s, S> {
    fn new(session: &'s mut S, cells: &'s [S::Cell]) -> Turns<'s, S> {
        let others = cells.len().saturating_sub(1);
        let (latest, runs, warmups) = (Vec::new(), vec![Vec::new(); others], vec![0; others]);
        Turns { session, cells, latest, runs, warmups, turns: 0, has_failed_before: false }
    }

    /// The runs of all cells. `last` are those of the last cell.
    fn into_runs(self, mut last: Runs) -> Vec<Runs> {
        let is_other_server = self.has_two_servers();
        let Turns { runs, warmups, has_failed_before, .. } = self;
        let other = |(mut runs, warmup_requests): (Vec<Run>, usize)| {
            // A stop in the middle of a pair leaves an incomplete last pair.
            runs.truncate(last.runs.len());
            Runs { runs, warmup_requests, ..last.clone() }
        };
        let mut all: Vec<Runs> = runs.into_iter().zip(warmups).map(other).collect();
        if has_failed_before && is_other_server && !last.was_stopped {
            // The failed run is in the record of the server that failed, and only there.
            if let Some(run) = last.runs.last_mut() {
                *run = Run { start: run.start, ..Run::default() };
            }
            last.broken = Some("the other server failed".to_owned());
        }
        all.push(last);
        all
    }

    fn last(&self) -> &'s S::Cell {
        &self.cells[self.cells.len() - 1]
    }

    fn has_two_servers(&self) -> bool {
        self.session.context(self.last()).is_some()
    }
}

impl<S: MeasuringSession> Benchmark for Turns<'_, S> {
    /// If a cell fails, the later cells get no requests. The failure counts for all cells of the same server.
    fn measure_run(&mut self, client_check: Option<&ClientCheck>) -> Result<Run, BenchError> {
        for (warmup, run) in self.warmups.iter_mut().zip(self.latest.drain(..)) {
            *warmup += run.replies.len();
        }
        self.turns += 1;
        self.session.begin_turn(&self.cells[0]);
        let last = self.last();
        let ahead = match self.has_two_servers() && self.turns.is_multiple_of(2) {
            true => Some(self.session.measure_run(last, client_check)?),
            false => None,
        };
        for cell in &self.cells[..self.cells.len() - 1] {
            let run = self.session.measure_run(cell, client_check)?;
            self.latest.push(run.clone());
            self.has_failed_before = run.has_failed();
            if self.has_failed_before {
                return Ok(run);
            }
        }
        ahead.map_or_else(|| self.session.measure_run(last, client_check), Ok)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::record::{RecordKind, RecordedWorkload};
    use crate::runs::{Reply, StopRule};

    /// Two servers, of which the first fails with its fifth run: the third after two for the warm-up.
    #[derive(Default)]
    struct Failing {
        order: Vec<usize>,
        second: RecordContext,
    }

    impl MeasuringSession for Failing {
        type Cell = usize;

        fn name(&self, server: &usize) -> String {
            server.to_string()
        }

        fn measure_run(
            &mut self,
            server: &usize,
            _: Option<&ClientCheck>,
        ) -> Result<Run, BenchError> {
            self.order.push(*server);
            let asked = self.order.iter().filter(|server| **server == 0).count();
            let fault = (asked == 5).then(|| "it is gone".to_owned());
            let figures = [(Metric::TtftMs, 10.0)].into();
            let reply = Reply { figures, fault, ..Reply::default() };
            Ok(Run { replies: vec![reply], ..Run::default() })
        }

        fn leading(&self, _: &usize) -> &'static [Metric] {
            &[Metric::TtftMs]
        }

        fn pace(&self, _: &usize, _: &Run) -> Option<CheckLoad> {
            None
        }

        fn summarise<'r>(
            &mut self,
            server: &usize,
            runs: &'r Runs,
            started: Timestamp,
        ) -> CellSummary<'r> {
            let (kind, workload) = (RecordKind::Llm, RecordedWorkload::default());
            CellSummary::new(kind, workload, runs, started, self.leading(server))
        }

        fn context(&self, server: &usize) -> Option<&RecordContext> {
            (*server == 1).then_some(&self.second)
        }
    }

    #[test]
    fn a_failure_is_recorded_of_the_server_that_failed() {
        let (mut session, goes_on) = (Failing::default(), AtomicBool::new(false));
        let mut turns = Turns::new(&mut session, &[0, 1]);
        let last = StopRule::default().run(&mut turns, &goes_on, &mut || Ok(false), &mut |_| ());
        let all = turns.into_runs(last.expect("runs"));
        let faults = |runs: &Runs| runs.replies().filter(|reply| reply.has_failed()).count();
        let found: Vec<_> =
            all.iter().map(|runs| (faults(runs), runs.replies().count(), &runs.broken)).collect();
        let why = Some("the other server failed".to_owned());
        assert_eq!(found, [(1, 3, &None), (0, 2, &why)]);
        assert_eq!(session.order, [0, 1, 1, 0, 0, 1, 1, 0, 0]);
    }
}
