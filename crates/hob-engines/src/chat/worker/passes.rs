//! Counts the passes of one answer by their size. The log shows them, because guesses pay only if a larger pass takes little
//! more time. `HOB_LOG=warn,hob_engines=debug,hob::worker=info` shows the log of workers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::chat::scheduler::milliseconds;

/// The passes that computed tokens of one answer, by how many, with their whole time.
#[derive(Debug, Default)]
pub(super) struct PassCounts(BTreeMap<usize, (u32, Duration)>);

impl PassCounts {
    pub(super) fn add(&mut self, tokens: usize, took: Duration) {
        let (count, sum) = self.0.entry(tokens).or_default();
        *count += 1;
        *sum += took;
    }
}

impl fmt::Display for PassCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (tokens, (count, sum))) in self.0.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            let mean_ms = milliseconds(*sum) / f64::from(*count);
            write!(f, "{before}{tokens}: {count} of {mean_ms:.1} ms")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_listed_by_their_size() {
        let mut passes = PassCounts::default();
        for (tokens, ms) in [(16, 90), (1, 14), (1, 15)] {
            passes.add(tokens, Duration::from_millis(ms));
        }
        assert_eq!(passes.to_string(), "1: 2 of 14.5 ms, 16: 1 of 90.0 ms");
    }
}
