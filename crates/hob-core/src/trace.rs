//! The trace of one request: the targets that were asked, those that failed, and the one that answers.
//! A handle that travels with the request, so that the server can read it while the request waits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::ModelError;
pub use crate::attempt::FailedAttempt;
use crate::locked;

/// The trace of one request. Clones share the same data.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<TraceData>>);

/// The trace so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceData {
    /// Attempts that failed before their answer began, in order.
    pub failed: Vec<FailedAttempt>,
    /// Answers that broke off after they had begun, and failed attempts to continue them.
    pub broken: Vec<FailedAttempt>,
    /// Attempts so far.
    pub asked: u32,
    /// Pauses before a retry, for a cool-down, or before a second target was asked in parallel.
    pub paused: Duration,
    /// Time spent waiting for a slot of `target`.
    pub queued: Duration,
    /// The target that is being asked, or answers.
    pub target: Option<String>,
    /// Whether the target's model was in memory when it was asked, where that is known.
    pub is_warm: Option<bool>,
    /// Why the target's model is not where it was to be loaded, and where it is.
    pub placement_note: Option<String>,
    /// Whether `target`'s first content has come.
    pub has_begun: bool,
    /// From asking `target` to its first content.
    pub target_first: Option<Duration>,
    /// When that content came. A client that reads the answer whole gets it later.
    pub first_at: Option<Instant>,
    /// Thinking was switched off, and came all the same.
    pub thought_anyway: bool,
    /// Parameters of the request that the target does not take.
    pub dropped: Vec<String>,
    /// Tokens embedded so far, also if the request ends before the last text.
    pub embedded_tokens: u32,
    /// hob counted the tokens, because the target did not report them.
    pub counted_here: bool,
    /// Repairs of the target's answer.
    pub repaired: Vec<&'static str>,
    /// Servers like this one that the request came through. Limited, because two that point at each other
    /// would forward it for ever.
    pub hops: u32,
    /// The name of the caller's key. Runs of teams belong to it.
    pub key: Option<String>,
    /// Counts tokens that the request uses after its client has left.
    pub late_tokens: LateTokens,
    /// hob made the request early, and nothing needs its answer yet, or any more. Such a request counts nowhere: it is not in
    /// the log, the ledger or the metrics of answers, and its key loses neither a request of the minute nor tokens of the
    /// day. The model has computed tokens all the same. The key does not lose them, because its holder did not ask for them.
    /// So its budget agrees with the ledger, from which hob reads the spent tokens when it starts.
    pub is_unneeded: bool,
    /// The agent of a team that asks. Scripted models look at it.
    pub agent: Option<String>,
}

/// Counts tokens of a request against the key of its caller, if there is one, after its answer has ended.
#[derive(Clone, Default)]
pub struct LateTokens(Option<Arc<dyn Fn(u64) + Send + Sync>>);

impl LateTokens {
    pub fn new(spend: impl Fn(u64) + Send + Sync + 'static) -> LateTokens {
        LateTokens(Some(Arc::new(spend)))
    }

    pub fn spend(&self, tokens: u64) {
        if let Some(spend) = &self.0 {
            spend(tokens);
        }
    }
}

impl fmt::Debug for LateTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LateTokens").field(&self.0.is_some()).finish()
    }
}

/// All that can be compared is whether there is a key.
impl PartialEq for LateTokens {
    fn eq(&self, other: &LateTokens) -> bool {
        self.0.is_some() == other.0.is_some()
    }
}

/// Traces do not count when requests are compared.
impl PartialEq for Trace {
    fn eq(&self, _: &Trace) -> bool {
        true
    }
}

impl Trace {
    /// For a request that came through so many servers like this one.
    pub fn begin(hops: u32) -> Trace {
        Trace(Arc::new(Mutex::new(TraceData { hops, ..TraceData::default() })))
    }

    pub fn asking(&self, target: &str, is_warm: bool) {
        let mut data = self.data();
        data.target = Some(target.to_owned());
        data.is_warm = Some(is_warm);
        data.placement_note = None;
        data.asked += 1;
        data.queued = Duration::ZERO;
        data.has_begun = false;
        data.first_at = None;
        data.dropped.clear();
    }

    pub fn failed(&self, target: &str, error: &ModelError, took: Duration) {
        let attempt = attempt(target, error, took);
        let mut data = self.data();
        data.target = None;
        data.failed.push(attempt);
    }

    /// An answer broke off, or its continuation failed. `target` still counts as the one that answers.
    pub fn broke(&self, target: &str, error: &ModelError, took: Duration) {
        let attempt = attempt(target, error, took);
        self.data().broken.push(attempt);
    }

    /// The first content of `target` came, or the first content of a continuation.
    pub fn answers(&self, target: &str, at: Instant, after: Duration) {
        let mut data = self.data();
        if data.target.as_deref() != Some(target) {
            data.target = Some(target.to_owned());
            data.placement_note = None;
        }
        data.has_begun = true;
        if data.broken.is_empty() {
            data.target_first = Some(after);
            data.first_at = Some(at);
        }
    }

    pub fn note(&self, change: impl FnOnce(&mut TraceData)) {
        change(&mut self.data());
    }

    /// When the first content came.
    pub fn first_at(&self) -> Option<Instant> {
        self.data().first_at
    }

    pub fn hops(&self) -> u32 {
        self.data().hops
    }

    /// Looks at the data without a copy. It is locked meanwhile.
    pub fn read<R>(&self, look: impl FnOnce(&TraceData) -> R) -> R {
        look(&self.data())
    }

    pub fn snapshot(&self) -> TraceData {
        self.data().clone()
    }

    /// A panic cannot leave these lists half-changed in a way that matters.
    fn data(&self) -> MutexGuard<'_, TraceData> {
        locked(&self.0)
    }
}

fn attempt(target: &str, error: &ModelError, took: Duration) -> FailedAttempt {
    let (kind, message) = (error.kind(), error.to_string());
    FailedAttempt { target: target.to_owned(), kind, message, took }
}

impl TraceData {
    /// Time lost on failed attempts and pauses.
    pub fn lost_time(&self) -> Duration {
        self.failures() + self.paused
    }

    /// Time lost on failed attempts.
    pub fn failures(&self) -> Duration {
        self.failed.iter().map(|attempt| attempt.took).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fault;

    #[test]
    fn all_clones_show_the_same_trace() {
        let (trace, error) = (Trace::default(), ModelError::upstream("gpu/q", Fault::CutOff));
        let held = trace.clone();
        trace.asking("gpu/q", true);
        assert_eq!(held.snapshot().target.as_deref(), Some("gpu/q"));
        trace.note(|data| data.placement_note = Some("the card is full".to_owned()));
        trace.failed("gpu/q", &error, Duration::from_millis(20));
        trace.answers("local", Instant::now(), Duration::from_millis(5));
        let data = held.snapshot();
        assert_eq!((data.failed.len(), data.failed[0].kind), (1, "cut_off"));
        assert_eq!(data.failed[0].message, "gpu/q: the answer was cut off");
        assert_eq!((data.lost_time(), data.has_begun), (Duration::from_millis(20), true));
        assert_eq!(data.target.as_deref(), Some("local"));
        assert_eq!(data.placement_note, None, "it was another target's");
    }

    #[test]
    fn a_continuation_does_not_change_when_the_answer_began() {
        let (trace, error) = (Trace::default(), ModelError::upstream("gpu/q", Fault::CutOff));
        trace.asking("gpu/q", true);
        trace.answers("gpu/q", Instant::now(), Duration::from_millis(5));
        trace.broke("gpu/q", &error, Duration::from_millis(900));
        trace.answers("gpu/q", Instant::now(), Duration::from_millis(80));
        let data = trace.snapshot();
        assert_eq!((data.broken[0].kind, data.lost_time()), ("cut_off", Duration::ZERO));
        assert_eq!(data.target_first, Some(Duration::from_millis(5)));
        assert_eq!(data.target.as_deref(), Some("gpu/q"));
    }
}
