//! What all kinds of measurement share: the server, the stopping rule, and the store for records.
//! Each cell is stored as soon as it is done, so nothing is lost if the process ends.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use crate::drive::{Arrivals, Drive, DriveResult, Exchange, RequestLimits};
use crate::host::noise;
use crate::record::{Host, RawSample, Record, RecordError, RecordKind, RecordedWorkload};
use crate::runs::{
    BenchError, Benchmark, CellRecord, CellSummary, RecordContext, Runs, Step, StopRule,
};
use crate::server::StartedServer;
use crate::target::Target;
use crate::timeline::RequestFault;

/// Everything that a measurement needs besides its workload.
#[expect(missing_debug_implementations, reason = "two of its parts are closures")]
pub struct Workbench<'a> {
    pub target: Target,
    /// None for a server that this program did not start.
    pub started: Option<StartedServer>,
    pub context: RecordContext,
    pub stop_rule: StopRule,
    pub limits: RequestLimits,
    pub stop: &'a AtomicBool,
    /// Called for each step, with the name of its cell.
    pub tell: &'a mut dyn FnMut(&str, Step<'_>),
    /// Stores the record of each finished cell.
    pub keep: &'a mut Keep<'a>,
}

/// The server that the workbench's own server is compared with.
#[derive(Clone, Debug)]
pub struct OtherServer {
    pub target: Target,
    pub context: RecordContext,
}

/// Stores a record with its samples.
pub type Keep<'a> = dyn FnMut(&Record, &[RawSample]) -> Result<(), RecordError> + 'a;

/// A client: the settings that all requests share.
#[derive(Clone, Debug)]
pub struct Asker<'a> {
    pub target: Target,
    pub limits: RequestLimits,
    pub seed: u64,
    pub stop: &'a AtomicBool,
}

impl Asker<'_> {
    /// Sends requests when they are due, and waits for the last answer.
    ///
    /// # Errors
    /// Connections or threads cannot be created.
    pub fn drive(
        &self,
        jobs: Vec<Bytes>,
        arrivals: Arrivals,
        answer_bytes: usize,
    ) -> Result<DriveResult, BenchError> {
        let Asker { target, limits, seed, stop } = self;
        let endpoint = target.endpoint.clone();
        let drive = Drive { endpoint, jobs, arrivals, seed: *seed, limits: *limits, answer_bytes };
        Ok(drive.run(stop)?)
    }

    /// Sends one request, and waits for its answer.
    ///
    /// # Errors
    /// The connection or its thread cannot be created, or the user stopped the measurement.
    pub(crate) fn send(&self, request: Bytes, answer_bytes: usize) -> Result<Exchange, BenchError> {
        let driven = self.drive(vec![request], Arrivals::Closed { users: 1 }, answer_bytes)?;
        driven.exchanges.into_iter().next().ok_or(BenchError::Fault(RequestFault::Stopped))
    }
}

impl<'a> Workbench<'a> {
    pub fn asker(&self) -> Asker<'a> {
        let (limits, seed, stop) = (self.limits, self.context.seed, self.stop);
        Asker { target: self.target.clone(), limits, seed, stop }
    }

    /// Restarts the server and resets its peak memory for the next cell. A server that this program did not start stays as it is.
    ///
    /// # Errors
    /// The server did not restart.
    pub fn renew(&mut self) -> Result<(), BenchError> {
        let Workbench { started, stop, .. } = self;
        started.as_mut().map_or(Ok(()), |started| started.renew(stop).map_err(BenchError::from))
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs one cell until the stopping rule ends it, and reports steps under its name.
    ///
    /// # Errors
    /// Requests cannot be sent, or the server did not restart.
    pub fn run(&mut self, name: &str, subject: &mut impl Benchmark) -> Result<Runs, BenchError> {
        let Workbench { stop_rule, stop, tell, started, .. } = self;
        let mut restart = || match started {
            Some(started) => started.restart(stop).map(|()| true).map_err(BenchError::from),
            None => Ok(false),
        };
        stop_rule.run(subject, stop, &mut restart, &mut |step| tell(name, step))
    }

    /// Stores a record of a server that failed before the first run. Errors of this client and stops are not recorded.
    ///
    /// # Errors
    /// The record cannot be stored.
    pub fn keep_failure(
        &mut self,
        kind: RecordKind,
        error: &BenchError,
    ) -> Result<Option<Record>, RecordError> {
        if !error.is_the_servers() || self.is_stopped() {
            return Ok(None);
        }
        let record = self.context.failed(kind, RecordedWorkload::default(), error);
        (self.keep)(&record, &[])?;
        Ok(Some(record))
    }

    /// Makes a record of a cell, lets `finish` complete it, and stores it. A cell that was stopped before its first run
    /// has no record.
    ///
    /// # Errors
    /// The record cannot be stored.
    pub fn close(
        &mut self,
        summary: CellSummary<'_>,
        finish: impl FnOnce(&mut Record),
    ) -> Result<Option<Record>, BenchError> {
        if summary.runs.runs.is_empty() {
            return Ok(None);
        }
        let host = Host { noise: noise(), ..self.context.host.clone() };
        let CellRecord { mut record, samples } =
            summary.into_record(&RecordContext { host, ..self.context.clone() });
        if let Some(started) = &mut self.started {
            record.resources = started.resources();
        }
        finish(&mut record);
        (self.keep)(&record, &samples)?;
        Ok(Some(record))
    }
}
