//! Progress reports of a pull, and its cancellation.
//! Synchronous: a pull is one thread of file work.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An event to show to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process pulls the same model; this pull continues afterwards.
    Waiting,
    /// A source of this part is being tried.
    Trying { part: String, source: String },
    /// `done_bytes` of the step on this part. Never decreases within one step of one source.
    Bytes { part: String, step: PullStep, done_bytes: u64, total_bytes: Option<u64> },
    /// The next attempt is in `wait_s`, because the server limits requests or cannot be reached.
    Pausing { part: String, why: String, wait_s: u64 },
    /// The source failed; the next one is tried.
    SourceFailed { part: String, source: String, reason: String },
}

hob_core::enum_table! {
    /// What a pull does with a part now.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum PullStep: name {
        Fetching = "fetching",
        Unpacking = "unpacking",
        Verifying = "verifying",
        Transforming = "transforming",
    }
}

/// The step was cancelled. Fetched bytes stay, and the next pull continues from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted; the files fetched so far are kept")]
pub struct Cancelled;

/// Passes progress reports up and cancellation down.
pub struct Watch<'a> {
    report: &'a mut dyn FnMut(Progress),
    cancel: &'a AtomicBool,
    part: String,
    step: PullStep,
    before_bytes: u64,
    reported_bytes: u64,
    total_bytes: Option<u64>,
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("part", &self.part).field("step", &self.step).finish()
    }
}

impl<'a> Watch<'a> {
    pub fn new(report: &'a mut dyn FnMut(Progress), cancel: &'a AtomicBool) -> Watch<'a> {
        Watch {
            report,
            cancel,
            part: String::new(),
            step: PullStep::Fetching,
            before_bytes: 0,
            reported_bytes: 0,
            total_bytes: None,
        }
    }

    /// To be called before every longer step.
    ///
    /// # Errors
    /// The step was cancelled.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.cancel.load(Ordering::Relaxed) { Err(Cancelled) } else { Ok(()) }
    }

    /// Begins a step with `total_bytes` to do.
    pub fn begin(&mut self, step: PullStep, total_bytes: Option<u64>) {
        self.step = step;
        self.before_bytes = 0;
        self.reported_bytes = 0;
        self.total_bytes = total_bytes;
        self.report_bytes(0);
    }

    /// Reports `done_bytes` of the current item. The count may shrink after a reconnection; the report does not.
    pub fn at(&mut self, done_bytes: u64) {
        let done_bytes = self.before_bytes.saturating_add(done_bytes);
        let done_bytes = self.total_bytes.map_or(done_bytes, |total| done_bytes.min(total));
        if done_bytes > self.reported_bytes {
            self.report_bytes(done_bytes);
        }
    }

    fn report_bytes(&mut self, done_bytes: u64) {
        self.reported_bytes = done_bytes;
        (self.report)(Progress::Bytes {
            part: self.part.clone(),
            step: self.step,
            done_bytes,
            total_bytes: self.total_bytes,
        });
    }

    /// Reports that the current item, of `item_bytes`, is complete.
    pub fn item_done(&mut self, item_bytes: u64) {
        self.before_bytes = self.before_bytes.saturating_add(item_bytes);
        self.at(0);
    }

    pub(crate) fn set_part(&mut self, part: &str) {
        part.clone_into(&mut self.part);
    }

    pub(crate) fn waiting(&mut self) {
        (self.report)(Progress::Waiting);
    }

    pub(crate) fn trying(&mut self, source: &str) {
        (self.report)(Progress::Trying { part: self.part.clone(), source: source.to_owned() });
    }

    pub(crate) fn pausing(&mut self, why: &str, wait: Duration) {
        let (part, why, wait_s) = (self.part.clone(), why.to_owned(), wait.as_secs());
        (self.report)(Progress::Pausing { part, why, wait_s });
    }

    pub(crate) fn source_failed(&mut self, source: &str, reason: &dyn fmt::Display) {
        (self.report)(Progress::SourceFailed {
            part: self.part.clone(),
            source: source.to_owned(),
            reason: reason.to_string(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(step: PullStep, done_bytes: u64, total_bytes: Option<u64>) -> Progress {
        Progress::Bytes { part: "graph".to_owned(), step, done_bytes, total_bytes }
    }

    #[test]
    fn items_add_up_and_never_pass_the_total() {
        let mut seen = Vec::new();
        let cancel = AtomicBool::new(false);
        let mut report = |progress| seen.push(progress);
        let mut watch = Watch::new(&mut report, &cancel);
        watch.set_part("graph");
        watch.begin(PullStep::Fetching, Some(10));
        watch.at(4);
        watch.at(2);
        watch.item_done(6);
        watch.at(9);
        watch.begin(PullStep::Verifying, None);
        watch.at(9);
        let expect = [
            bytes(PullStep::Fetching, 0, Some(10)),
            bytes(PullStep::Fetching, 4, Some(10)),
            bytes(PullStep::Fetching, 6, Some(10)),
            bytes(PullStep::Fetching, 10, Some(10)),
            bytes(PullStep::Verifying, 0, None),
            bytes(PullStep::Verifying, 9, None),
        ];
        assert_eq!(seen, expect);
    }

    #[test]
    fn the_flag_is_seen() {
        let cancel = AtomicBool::new(false);
        let mut report = |_| {};
        let watch = Watch::new(&mut report, &cancel);
        assert_eq!(watch.check(), Ok(()));
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(watch.check(), Err(Cancelled));
    }
}
