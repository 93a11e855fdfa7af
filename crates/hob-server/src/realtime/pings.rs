//! Pings at a fixed distance. They keep a quiet connection open, and find a client that is gone without a word, such as a
//! telephone that has lost its network: the system would keep the connection for about 15 minutes.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

const PING_EVERY: Duration = Duration::from_secs(20);
/// A client that leaves so many pings in a row unanswered, and sends nothing else, is gone: after 3 minutes. A telephone may
/// sleep for a minute, and lost pings reach it up to a minute later. Some libraries answer pings only while they read, and
/// their program may run a tool meanwhile.
const UNANSWERED_MAX: u32 = 8;

#[derive(Debug)]
pub(super) struct Pings {
    clock: Interval,
    unanswered: u32,
}

impl Pings {
    /// A ping that was missed is not sent later.
    pub(super) fn new() -> Pings {
        let mut clock = interval(PING_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        clock.reset();
        Pings { clock, unanswered: 0 }
    }

    /// Resolves when the next ping is due.
    pub(super) async fn due(&mut self) {
        self.clock.tick().await;
    }

    /// Any message of the client is an answer.
    pub(super) fn answered(&mut self) {
        self.unanswered = 0;
    }

    /// Counts a ping that is due while the client is listened to.
    pub(super) fn client_is_gone(&mut self) -> bool {
        self.unanswered += 1;
        self.unanswered > UNANSWERED_MAX
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_is_gone_after_eight_pings_without_an_answer() {
        let mut pings = Pings::new();
        for _ in 0..10 {
            pings.due().await;
            assert!(!pings.client_is_gone());
            pings.answered();
        }
        let began = Instant::now();
        loop {
            pings.due().await;
            if pings.client_is_gone() {
                break;
            }
        }
        assert_eq!(began.elapsed(), PING_EVERY * (UNANSWERED_MAX + 1));
    }
}
