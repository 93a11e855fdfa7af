//! Limits the time that the grammar of one answer takes. The engine's thread computes it, so all other answers wait
//! meanwhile.

use std::time::Duration;

/// Time that a grammar may take once, whatever the length of the answer: searches for a short end can be slow.
const FREE: Duration = Duration::from_secs(5);
/// Time that a grammar may take in addition for each token. Usual grammars take a millisecond.
const PER_TOKEN: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub(super) struct GrammarTime {
    free: Duration,
    spent: Duration,
}

impl Default for GrammarTime {
    fn default() -> GrammarTime {
        GrammarTime::with(FREE)
    }
}

impl GrammarTime {
    pub(super) fn with(free: Duration) -> GrammarTime {
        GrammarTime { free, spent: Duration::ZERO }
    }

    /// Adds the time of a token that follows `said` others. False if the grammar took too much.
    pub(super) fn spend(&mut self, took: Duration, said: u32) -> bool {
        self.spent += took;
        self.spent <= self.free + PER_TOKEN * said
    }

    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    /// Whether guesses may take time, too. A slow grammar needs its time for the tokens of the answer.
    pub(super) fn has_spare(&self, said: u32) -> bool {
        self.spent * 2 <= self.free + PER_TOKEN * said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_grammar_has_five_seconds_and_a_fast_one_has_no_end() {
        let mut slow = GrammarTime::default();
        let fits = (0..100).take_while(|said| slow.spend(Duration::from_secs(1), *said)).count();
        assert_eq!(fits, 5);
        let mut usual = GrammarTime::default();
        assert!((0..100_000).all(|said| usual.spend(Duration::from_millis(50), said)));
    }
}
