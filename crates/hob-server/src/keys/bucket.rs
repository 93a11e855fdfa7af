//! So many requests a minute, as a bucket that time fills. It is told the time, and counts in time
//! too: whole nanoseconds, so that whoever comes back after the wait that it named is let in.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// Starts full, so that a minute's requests may come at once, and then one for each that is saved.
#[derive(Debug)]
pub(super) struct Bucket {
    /// What one request takes.
    each: Duration,
    full: Duration,
    saved: Duration,
    filled: Instant,
}

impl Bucket {
    pub(super) fn new(per_minute: NonZeroU32, now: Instant) -> Bucket {
        let each = MINUTE / per_minute.get();
        let full = each * per_minute.get();
        Bucket { each, full, saved: full, filled: now }
    }

    /// Lets one request through.
    ///
    /// # Errors
    /// How long until the next is let through. One that is refused takes nothing.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let since = now.saturating_duration_since(self.filled);
        self.saved = self.saved.saturating_add(since).min(self.full);
        self.filled = self.filled.max(now);
        match self.saved.checked_sub(self.each) {
            Some(left) => {
                self.saved = left;
                Ok(())
            }
            None => Err(self.each - self.saved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_once(bucket: &mut Bucket, now: Instant) -> usize {
        (0..1000).take_while(|_| bucket.take(now).is_ok()).count()
    }

    fn bucket(per_minute: u32) -> (Bucket, Instant) {
        let start = Instant::now();
        (Bucket::new(NonZeroU32::new(per_minute).expect("some"), start), start)
    }

    #[test]
    fn a_minutes_requests_may_come_at_once_and_then_one_by_one() {
        for per_minute in [1, 3, 7, 60, 100] {
            let (mut bucket, start) = bucket(per_minute);
            assert_eq!(at_once(&mut bucket, start), per_minute as usize);
            let each = MINUTE / per_minute;
            assert_eq!(bucket.take(start + each / 2), Err(each - each / 2), "{per_minute}");
            let just_before = start + each - Duration::from_nanos(1);
            assert_eq!(bucket.take(just_before), Err(Duration::from_nanos(1)), "{per_minute}");
            assert_eq!(at_once(&mut bucket, start + each), 1, "{per_minute}");
            assert_eq!(at_once(&mut bucket, start + 3 * each), 2.min(per_minute as usize));
        }
    }

    #[test]
    fn it_never_holds_more_than_a_minutes_requests() {
        let (mut bucket, start) = bucket(5);
        let much_later = start + 100 * MINUTE;
        assert_eq!(at_once(&mut bucket, much_later), 5);
        assert_eq!(bucket.take(start), Err(MINUTE / 5), "a clock that goes back fills nothing");
        assert_eq!(at_once(&mut bucket, much_later + MINUTE), 5);
    }

    #[test]
    fn any_number_is_a_limit() {
        let (mut bucket, start) = bucket(u32::MAX);
        assert_eq!(at_once(&mut bucket, start), 1000);
    }
}
