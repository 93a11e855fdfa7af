//! The order of turns: live sound that has ended goes first, because a person waits for its last text.
//! The other streams wait for that, but not without a limit.

use std::time::{Duration, Instant};

/// The longest time for which live sound that has ended goes before the other streams. Then the next of them has a turn, so
/// each of N others waits for at most N times this time and N turns. A turn is one part of at most 28 s of sound, and a person
/// may have to wait for it.
pub(super) const PASSED_OVER_MAX: Duration = Duration::from_secs(3);

/// Why a stream has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Usual,
    /// Others went first for [`PASSED_OVER_MAX`]. What has ended meanwhile does not take this turn away.
    Overdue,
}

/// Remembers how long streams were passed over.
#[derive(Debug, Default)]
pub(super) struct Turns {
    passed_over_since: Option<Instant>,
}

impl Turns {
    /// Chooses between the next stream for whose last text a person waits, and the next one of the others.
    pub(super) fn next(
        &mut self,
        awaited: Option<u32>,
        other: Option<u32>,
        now: Instant,
    ) -> Option<(u32, Turn)> {
        let since = self.passed_over_since.take();
        let (Some(awaited), Some(other)) = (awaited, other) else {
            return awaited.or(other).map(|stream| (stream, Turn::Usual));
        };
        let since = since.unwrap_or(now);
        if now.saturating_duration_since(since) >= PASSED_OVER_MAX {
            return Some((other, Turn::Overdue));
        }
        self.passed_over_since = Some(since);
        Some((awaited, Turn::Usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_have_a_turn_in_every_three_seconds() {
        let (mut turns, begun) = (Turns::default(), Instant::now());
        let mut next =
            |awaited, other, ms| turns.next(awaited, other, begun + Duration::from_millis(ms));
        for from_ms in [0, 3_500] {
            assert_eq!(next(Some(1), Some(2), from_ms), Some((1, Turn::Usual)));
            assert_eq!(next(Some(3), Some(2), from_ms + 2_999), Some((3, Turn::Usual)));
            assert_eq!(next(Some(1), Some(2), from_ms + 3_000), Some((2, Turn::Overdue)));
        }
    }

    #[test]
    fn the_time_counts_from_the_last_turn_of_the_others() {
        let (mut turns, begun) = (Turns::default(), Instant::now());
        let mut next =
            |awaited, other, s| turns.next(awaited, other, begun + Duration::from_secs(s));
        assert_eq!(next(None, None, 0), None);
        assert_eq!(next(Some(1), Some(2), 1), Some((1, Turn::Usual)));
        assert_eq!(next(None, Some(2), 2), Some((2, Turn::Usual)));
        assert_eq!(next(Some(1), Some(2), 5), Some((1, Turn::Usual)));
        assert_eq!(next(Some(1), None, 6), Some((1, Turn::Usual)), "none of the others waits");
        assert_eq!(next(Some(1), Some(2), 9), Some((1, Turn::Usual)));
    }
}
