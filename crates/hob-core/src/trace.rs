//! What became of a request on its way: who was asked, who failed, who answers.
//! A handle that travels with the request, so that whoever waits for the answer can look meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ModelError;

/// The way of one request. Clones look at the same one.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Way>>);

/// As far as the request has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way {
    /// Those that did not answer, in the order in which they were asked.
    pub failed: Vec<Attempt>,
    /// Answers that broke off after they had begun, and what became of asking for their rest.
    pub broken: Vec<Attempt>,
    /// How many times somebody was asked.
    pub asked: u32,
    /// Pauses before somebody was asked again, for somebody who rested, or beside somebody who was silent.
    pub paused: Duration,
    /// Waited for one of `target`'s places.
    pub queued: Duration,
    /// Who is being asked, or answers.
    pub target: Option<String>,
    /// Whether its model was in memory when it was asked, as far as that is known.
    pub is_warm: Option<bool>,
    /// Whether `target`'s first content is there.
    pub has_begun: bool,
    /// From asking `target` to its first content.
    pub target_first: Option<Duration>,
    /// When that content came: an answer that is read whole reaches its client later.
    pub first_at: Option<Instant>,
    /// Thinking was switched off, and came all the same.
    pub thought_anyway: bool,
    /// Parameters of the request that the target does not take.
    pub dropped: Vec<String>,
    /// Tokens of texts that were made vectors so far, also where the request ends before the last.
    pub embedded_tokens: u32,
    /// Tokens were counted by hob, because the target did not say.
    pub counted_here: bool,
    /// What was mended in the target's answer.
    pub repaired: Vec<&'static str>,
    /// How many servers like this one the request came through: two that point at each other would hand
    /// it to and fro for ever.
    pub hops: u32,
}

/// One that did not answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub target: String,
    /// One word for the failure.
    pub kind: &'static str,
    /// For people.
    pub message: String,
    pub took: Duration,
}

impl Attempt {
    /// `gpu/qwen3=overloaded 12 ms`: without the target's own words.
    pub fn summary(&self) -> String {
        format!("{}={} {} ms", self.target, self.kind, self.took.as_millis())
    }
}

/// How requests came here is no part of what they ask.
impl PartialEq for Trace {
    fn eq(&self, _: &Trace) -> bool {
        true
    }
}

impl Trace {
    /// Of a request that came through so many servers like this one.
    pub fn begin(hops: u32) -> Trace {
        Trace(Arc::new(Mutex::new(Way { hops, ..Way::default() })))
    }

    pub fn asking(&self, target: &str, is_warm: bool) {
        let mut way = self.way();
        way.target = Some(target.to_owned());
        way.is_warm = Some(is_warm);
        way.asked += 1;
        way.queued = Duration::ZERO;
        way.has_begun = false;
        way.first_at = None;
        way.dropped.clear();
    }

    pub fn failed(&self, target: &str, error: &ModelError, took: Duration) {
        let (kind, message) = (error.kind(), error.to_string());
        let mut way = self.way();
        way.target = None;
        way.failed.push(Attempt { target: target.to_owned(), kind, message, took });
    }

    /// An answer broke off, or its rest did not come. Whoever gave it remains who answers.
    pub fn broke(&self, target: &str, error: &ModelError, took: Duration) {
        let (kind, message) = (error.kind(), error.to_string());
        self.way().broken.push(Attempt { target: target.to_owned(), kind, message, took });
    }

    /// The first content of `target` is there, or the first of its answer's rest.
    pub fn answers(&self, target: &str, at: Instant, after: Duration) {
        let mut way = self.way();
        way.target = Some(target.to_owned());
        way.has_begun = true;
        if way.broken.is_empty() {
            way.target_first = Some(after);
            way.first_at = Some(at);
        }
    }

    pub fn note(&self, change: impl FnOnce(&mut Way)) {
        change(&mut self.way());
    }

    /// When the first content of whoever answers came.
    pub fn first_at(&self) -> Option<Instant> {
        self.way().first_at
    }

    pub fn hops(&self) -> u32 {
        self.way().hops
    }

    pub fn now(&self) -> Way {
        self.way().clone()
    }

    /// A panic cannot leave a list of what happened in a state that matters.
    fn way(&self) -> MutexGuard<'_, Way> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Way {
    /// Time that went to those who did not answer, and to pauses for their sake.
    pub fn lost(&self) -> Duration {
        self.failures() + self.paused
    }

    /// Time that went to those who did not answer.
    pub fn failures(&self) -> Duration {
        self.failed.iter().map(|attempt| attempt.took).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fault;

    #[test]
    fn a_trace_tells_every_holder_the_same() {
        let (trace, error) = (Trace::default(), ModelError::upstream("gpu/q", Fault::CutOff));
        let held = trace.clone();
        trace.asking("gpu/q", true);
        assert_eq!(held.now().target.as_deref(), Some("gpu/q"));
        trace.failed("gpu/q", &error, Duration::from_millis(20));
        trace.answers("local", Instant::now(), Duration::from_millis(5));
        let way = held.now();
        assert_eq!((way.failed.len(), way.failed[0].kind), (1, "cut_off"));
        assert_eq!(way.failed[0].message, "gpu/q: the answer was cut off");
        assert_eq!((way.lost(), way.has_begun), (Duration::from_millis(20), true));
        assert_eq!(way.target.as_deref(), Some("local"));
    }

    #[test]
    fn what_became_of_an_answer_s_rest_does_not_change_when_it_began() {
        let (trace, error) = (Trace::default(), ModelError::upstream("gpu/q", Fault::CutOff));
        trace.asking("gpu/q", true);
        trace.answers("gpu/q", Instant::now(), Duration::from_millis(5));
        trace.broke("gpu/q", &error, Duration::from_millis(900));
        trace.answers("gpu/q", Instant::now(), Duration::from_millis(80));
        let way = trace.now();
        assert_eq!((way.broken[0].kind, way.lost()), ("cut_off", Duration::ZERO));
        assert_eq!(way.target_first, Some(Duration::from_millis(5)));
        assert_eq!(way.target.as_deref(), Some("gpu/q"));
    }
}
