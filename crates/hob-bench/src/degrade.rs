//! What becomes of each user when there are many: blocks of many in turns with blocks of one, so that whatever the
//! machine does meanwhile hits both. What is compared are the pairs, and never two campaigns.

use hob_core::statistics::Ratio;
use jiff::Timestamp;

use crate::calibrate::{Calibration, Pace};
use crate::crowd::{Crowd, Wish, in_each_way};
use crate::record::{Kind, Record, Slowdown};
use crate::runs::{Account, BenchError, Block};
use crate::terms::Metric;
use crate::turns::{Both, Turns, run};
use crate::workbench::Workbench;

/// Below this many share what one has, and each waits for the others.
const SCALING_MIN: f64 = 0.6;

/// Whether many are served together or one after the other.
pub fn said(scaling: f64) -> &'static str {
    if scaling < SCALING_MIN { "queueing, not throughput" } else { "throughput" }
}

/// Measures each number of users against one. Two records of each, the one user's first, and both kept once they are
/// done.
///
/// # Errors
/// The server does not answer what is asked, or a record cannot be kept.
pub fn measure(bench: &mut Workbench<'_>, wish: &Wish) -> Result<Vec<Record>, BenchError> {
    in_each_way(bench, wish, each)
}

/// The same of whatever many can ask.
fn each(
    bench: &mut Workbench<'_>,
    crowd: &mut dyn Crowd,
    users: &[usize],
) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    for users in users.iter().copied().filter(|users| *users > 1) {
        if bench.is_stopped() {
            break;
        }
        let (name, started) = (crowd.name(users), Timestamp::now());
        let both = run(bench, &name, OneAndMany { crowd, users })?;
        records.extend(kept(bench, crowd, users, &both, started)?);
    }
    Ok(records)
}

fn kept(
    bench: &mut Workbench<'_>,
    crowd: &mut dyn Crowd,
    users: usize,
    both: &Both,
    started: Timestamp,
) -> Result<Vec<Record>, BenchError> {
    let seed = bench.context.seed;
    let kind = Kind::Concurrency;
    let one = Account { kind, ..crowd.account(1, &both.first, started) };
    let many = Account { kind, ..crowd.account(users, &both.second, started) };
    let alone = Slowdown { n: 1, ..Slowdown::default() };
    let one = bench.close_with(one, |record| {
        crowd.add(1, &both.first, record);
        record.slowdown = Some(alone);
    })?;
    let versus = one.as_ref().map(|record| record.id);
    let many = bench.close_with(many, |record| {
        crowd.add(users, &both.second, record);
        record.slowdown = Some(Slowdown { versus, ..degrade(both, users, seed) });
    })?;
    Ok(one.into_iter().chain(many).collect())
}

/// How many times as long each of them waits, pair by pair.
fn degrade(both: &Both, users: usize, seed: u64) -> Slowdown {
    let ratio = |metric| Ratio::of_pairs(&both.pairs(metric), seed);
    let (ttft, tpot, ttfa) = (ratio(Metric::TtftMs), ratio(Metric::TpotMs), ratio(Metric::TtfaMs));
    let times = |ratio: Option<Ratio>| ratio.map(|ratio| ratio.times);
    let together = [Metric::ThroughputTokS, Metric::RealTimeX, Metric::RequestsS];
    let together = together.into_iter().find_map(ratio);
    Slowdown {
        n: u32::try_from(users).unwrap_or(u32::MAX),
        versus: None,
        ttft_x: times(ttft),
        tpot_x: times(tpot),
        ttfa_x: times(ttfa),
        scaling: times(together).map(|times| times / users as f64),
        ci95: ttft.or(tpot).or(ttfa).map(|ratio| [ratio.low, ratio.high]),
    }
}

/// One user first, and then the others beside it.
struct OneAndMany<'c> {
    crowd: &'c mut dyn Crowd,
    users: usize,
}

impl Turns for OneAndMany<'_> {
    fn first(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        self.crowd.block(1, calibration)
    }

    fn second(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        self.crowd.block(self.users, calibration)
    }

    fn leading(&self) -> &[Metric] {
        self.crowd.leading()
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        self.crowd.pace(self.users, warm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Runs;

    /// A run with these figures.
    fn block(ttft_ms: f64, tpot_ms: f64, tok_s: f64) -> Block {
        let figures =
            [(Metric::TtftMs, ttft_ms), (Metric::TpotMs, tpot_ms), (Metric::ThroughputTokS, tok_s)];
        Block { together: figures.into(), ..Block::default() }
    }

    fn runs(blocks: Vec<Block>) -> Runs {
        Runs { blocks, ..Runs::default() }
    }

    #[test]
    fn a_drift_that_hits_both_changes_nothing() {
        // Each pair is slower than the one before, and three users wait three times as long in each.
        let drift = [1.0, 1.5, 2.0, 4.0];
        let both = Both {
            first: runs(drift.map(|slow| block(100.0 * slow, 20.0 * slow, 50.0 / slow)).into()),
            second: runs(drift.map(|slow| block(300.0 * slow, 20.0 * slow, 60.0 / slow)).into()),
        };
        let got = degrade(&both, 3, 7);
        let near = |got: Option<f64>, expected: f64| {
            assert!(
                got.is_some_and(|got| (got - expected).abs() < 1e-9),
                "{got:?} and not {expected}"
            );
        };
        assert_eq!(got.n, 3);
        near(got.ttft_x, 3.0);
        near(got.tpot_x, 1.0);
        near(got.scaling, 0.4);
        near(got.ci95.map(|[low, _]| low), 3.0);
        assert_eq!(got.ttfa_x, None);
    }

    #[test]
    fn a_pair_without_its_other_half_is_none() {
        let both = Both { first: runs(Vec::new()), second: runs(vec![block(1.0, 1.0, 1.0)]) };
        assert_eq!(degrade(&both, 2, 7), Slowdown { n: 2, ..Slowdown::default() });
    }

    #[test]
    fn a_queue_is_called_one() {
        let rows = [
            (1.0, "throughput"),
            (0.6, "throughput"),
            (0.59, "queueing, not throughput"),
            (0.33, "queueing, not throughput"),
        ];
        for (scaling, expected) in rows {
            assert_eq!(said(scaling), expected, "{scaling}");
        }
    }
}
