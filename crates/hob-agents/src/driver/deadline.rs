//! The time that a run has left, around each model and each tool that it waits for.
//! The machine says what was left at its last step, and this file counts what has passed since.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Work;

/// For the last answer of a run, also when its time is used up.
const LAST_ANSWER_TIME: Duration = Duration::from_mins(2);
/// Longest wait in seconds. A limit may be larger than a timer takes.
const WAIT_MAX_S: f64 = 1e9;
/// When a wait has ended, the machine must see that the limit is reached, whatever was rounded.
const SLACK: Duration = Duration::from_millis(1);

impl Work<'_> {
    /// Waits for a model or a tool until its time is used up. `None`: it is, and the work was dropped.
    pub(super) async fn in_time<T>(&self, id: u64, work: impl Future<Output = T>) -> Option<T> {
        let begun = Instant::now();
        let mut work = pin!(work);
        loop {
            // Looked at again after each wait: the time of a person who decides does not count.
            let left = self.time_left(id, begun);
            if left.is_zero() {
                return None;
            }
            if let Ok(done) = timeout(left, &mut work).await {
                return Some(done);
            }
        }
    }

    fn time_left(&self, id: u64, begun: Instant) -> Duration {
        let run = self.lock_run();
        let left_s = run.state.time_left_s(id) - run.last.elapsed().as_secs_f64();
        let left = match left_s > 0.0 {
            true => Duration::from_secs_f64(left_s.min(WAIT_MAX_S)) + SLACK,
            false => Duration::ZERO,
        };
        match run.state.exhausted {
            Some(_) => left.max(LAST_ANSWER_TIME.saturating_sub(begun.elapsed())),
            None => left,
        }
    }
}
