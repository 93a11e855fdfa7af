//! Runs of one cell, or of several in turns: whatever the machine does meanwhile, it does to all of them.
//! Only blocks that count are paired; requests that warm up are left out on all sides.

use jiff::Timestamp;

use crate::calibrate::{Calibration, Pace};
use crate::record::Record;
use crate::runs::{Account, BenchError, Benchmark, Block, Context, Runs, WARMUP_BLOCKS_MAX};
use crate::terms::Metric;
use crate::workbench::Workbench;

/// Requests of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockSize {
    /// Requests of each user.
    pub rounds: usize,
    /// Seconds that a run at a rate lasts; it has eight requests at least.
    pub span_s: f64,
}

/// A workload on a server, once it is known how that server wants to be asked.
pub(crate) trait Session {
    /// One cell.
    type Cell;

    /// The cell as progress lines call it.
    fn name(&self, cell: &Self::Cell) -> String;

    /// Sends one run of requests.
    ///
    /// # Errors
    /// It could not begin. A server that fails is a block whose replies have faults.
    fn block(
        &mut self,
        cell: &Self::Cell,
        calibration: Option<&Calibration>,
    ) -> Result<Block, BenchError>;

    /// The figures that the stopping rule looks at.
    fn leading(&self, cell: &Self::Cell) -> &'static [Metric];

    /// How a known server would have to answer to be like this one.
    fn pace(&self, cell: &Self::Cell, warm: &Block) -> Option<Pace>;

    /// What the runs of a cell amount to.
    fn account<'r>(&mut self, cell: &Self::Cell, runs: &'r Runs, started: Timestamp)
    -> Account<'r>;

    /// Fills in the blocks of a record that only this workload has. `earlier` are the records before it.
    fn fill_in(&self, _cell: &Self::Cell, _runs: &Runs, _record: &mut Record, _earlier: &[Record]) {
    }

    /// Called with each record that was kept.
    fn kept(&mut self, _cell: &Self::Cell, _record: &Record) {}

    /// The most blocks that warm up.
    fn warmups_max(&self, _cell: &Self::Cell) -> usize {
        WARMUP_BLOCKS_MAX
    }

    /// The server and client of this cell, where they are not the workbench's own.
    fn context(&self, _cell: &Self::Cell) -> Option<&Context> {
        None
    }
}

/// Runs all cells, one block of each in turn, until the last of them fulfils the stopping rule. Returns as many runs of
/// each.
///
/// # Errors
/// It could not begin, or the server did not come back.
pub(crate) fn run_in_turns<S: Session>(
    bench: &mut Workbench<'_>,
    name: &str,
    session: &mut S,
    cells: &[S::Cell],
) -> Result<Vec<Runs>, BenchError> {
    let others = cells.len().saturating_sub(1);
    let (latest, blocks, warmups) = (Vec::new(), vec![Vec::new(); others], vec![0; others]);
    let mut turns = Turns { session, cells, latest, blocks, warmups };
    let last = bench.run(name, &mut turns)?;
    let Turns { blocks, warmups, .. } = turns;
    let other = |(mut blocks, warmup_requests): (Vec<Block>, usize)| {
        // A pair that was stopped in the middle has no last block.
        blocks.truncate(last.blocks.len());
        Runs { blocks, warmup_requests, ..last.clone() }
    };
    let mut runs: Vec<Runs> = blocks.into_iter().zip(warmups).map(other).collect();
    runs.push(last);
    Ok(runs)
}

struct Turns<'s, S: Session> {
    session: &'s mut S,
    cells: &'s [S::Cell],
    /// Blocks of all cells but the last, before it is known whether they count.
    latest: Vec<Block>,
    blocks: Vec<Vec<Block>>,
    warmups: Vec<usize>,
}

impl<S: Session> Turns<'_, S> {
    fn last(&self) -> &S::Cell {
        &self.cells[self.cells.len() - 1]
    }
}

impl<S: Session> Benchmark for Turns<'_, S> {
    /// If one of the cells fails, the others are not asked: the failure stands for all.
    fn block(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        for (warmup, block) in self.warmups.iter_mut().zip(self.latest.drain(..)) {
            *warmup += block.replies.len();
        }
        for cell in &self.cells[..self.cells.len() - 1] {
            let block = self.session.block(cell, calibration)?;
            self.latest.push(block.clone());
            if block.has_failed() {
                return Ok(block);
            }
        }
        let cell = &self.cells[self.cells.len() - 1];
        self.session.block(cell, calibration)
    }

    fn leading(&self) -> &[Metric] {
        self.session.leading(self.last())
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        self.session.pace(self.last(), warm)
    }

    fn counted(&mut self, start: u32) {
        for (blocks, block) in self.blocks.iter_mut().zip(self.latest.drain(..)) {
            blocks.push(Block { start, ..block });
        }
    }

    fn warmups_max(&self) -> usize {
        self.cells.iter().map(|cell| self.session.warmups_max(cell)).min().unwrap_or(1)
    }
}

/// Makes a record of a cell, lets `finish` complete it, and keeps it among `records`. A cell that was stopped before its
/// first run leaves no record.
///
/// # Errors
/// It cannot be kept.
pub(crate) fn keep<S: Session>(
    bench: &mut Workbench<'_>,
    session: &mut S,
    (cell, runs, started): (&S::Cell, &Runs, Timestamp),
    records: &mut Vec<Record>,
    finish: impl FnOnce(&mut Record),
) -> Result<(), BenchError> {
    let account = session.account(cell, runs, started);
    let own = session.context(cell).cloned();
    let replaced = own.map(|other| std::mem::replace(&mut bench.context, other));
    let kept = bench.close(account, |record| {
        session.fill_in(cell, runs, record, records);
        finish(record);
    });
    if let Some(own) = replaced {
        bench.context = own;
    }
    if let Some(record) = kept? {
        session.kept(cell, &record);
        records.push(record);
    }
    Ok(())
}
