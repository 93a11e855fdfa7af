//! Latency per user under concurrent load, and the throughput of all users together.
//! Runs of many users are compared with the neighbouring runs of one user, never with another campaign.

use hob_core::statistics::Ratio;
use jiff::Timestamp;

use crate::record::{Record, RecordKind, Slowdown};
use crate::runs::{BenchError, Runs};
use crate::session::{MeasuringSession, run_in_turns, store_record};
use crate::terms::Metric;
use crate::workbench::Workbench;

/// Users wait for each other if each gets less than this share of what one user gets alone.
const SCALING_MIN: f64 = 0.6;

/// Whether users are served together or one after the other.
pub fn scaling_verdict(scaling: f64) -> &'static str {
    if scaling < SCALING_MIN { "queueing, not throughput" } else { "throughput" }
}

/// The throughput of `together` divided by that of `alone`, in tokens or in seconds of sound. None if either is unknown.
pub fn gain(alone: &Record, together: &Record) -> Option<f64> {
    let rate = |record: &Record, metric| record.metrics.figure(metric).filter(|rate| *rate > 0.0);
    let times = |metric| Some(rate(together, metric)? / rate(alone, metric)?);
    times(Metric::ThroughputTokS).or_else(|| times(Metric::RealTimeX))
}

/// Measures a cell of one user alternately with a cell of several users, and stores both records.
pub(super) fn against_one_user<S: MeasuringSession>(
    bench: &mut Workbench<'_>,
    session: &mut S,
    (pair, users): (&[S::Cell; 2], usize),
    records: &mut Vec<Record>,
) -> Result<(), BenchError> {
    if bench.is_stopped() {
        return Ok(());
    }
    let (name, started) = (session.name(&pair[1]), Timestamp::now());
    let runs = run_in_turns(bench, &name, session, pair)?;
    let before = records.len();
    let alone = Slowdown { n: 1, ..Slowdown::default() };
    store_record(bench, session, (&pair[0], &runs[0], started), records, |record| {
        record.kind = RecordKind::Concurrency;
        record.slowdown = Some(alone);
    })?;
    let versus = records.get(before).map(|record| record.id);
    let many = Slowdown { versus, ..slowdown(&runs[0], &runs[1], users, bench.context.seed) };
    store_record(bench, session, (&pair[1], &runs[1], started), records, |record| {
        record.kind = RecordKind::Concurrency;
        record.slowdown = Some(many);
    })
}

/// Compares the runs of several users with the runs of one user, pair by pair.
fn slowdown(one: &Runs, many: &Runs, users: usize, seed: u64) -> Slowdown {
    let pairs = |metric| -> Vec<(f64, f64)> {
        let runs = one.runs.iter().zip(&many.runs);
        runs.filter_map(|(one, many)| one.figure(metric).zip(many.figure(metric))).collect()
    };
    let ratio = |metric| Ratio::of_pairs(&pairs(metric), seed);
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
        // One pair does not show how much pairs differ.
        ci95: ttft
            .or(tpot)
            .or(ttfa)
            .filter(|ratio| ratio.pairs > 1)
            .map(|ratio| [ratio.low, ratio.high]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Run;

    /// A run with these figures.
    fn run(ttft_ms: f64, tpot_ms: f64, tok_s: f64) -> Run {
        let figures =
            [(Metric::TtftMs, ttft_ms), (Metric::TpotMs, tpot_ms), (Metric::ThroughputTokS, tok_s)];
        Run { together: figures.into(), ..Run::default() }
    }

    fn runs(runs: Vec<Run>) -> Runs {
        Runs { runs, ..Runs::default() }
    }

    #[test]
    fn a_drift_of_both_sides_does_not_change_the_ratio() {
        // Each pair is slower than the one before, and three users wait three times as long in each.
        let drift = [1.0, 1.5, 2.0, 4.0];
        let both = (
            runs(drift.map(|slow| run(100.0 * slow, 20.0 * slow, 50.0 / slow)).into()),
            runs(drift.map(|slow| run(300.0 * slow, 20.0 * slow, 60.0 / slow)).into()),
        );
        let got = slowdown(&both.0, &both.1, 3, 7);
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
    fn a_run_without_its_partner_gives_no_ratio() {
        let both = (runs(Vec::new()), runs(vec![run(1.0, 1.0, 1.0)]));
        assert_eq!(slowdown(&both.0, &both.1, 2, 7), Slowdown { n: 2, ..Slowdown::default() });
    }

    #[test]
    fn one_pair_has_a_ratio_and_no_interval() {
        let one_pair = (runs(vec![run(100.0, 20.0, 50.0)]), runs(vec![run(300.0, 20.0, 60.0)]));
        let got = slowdown(&one_pair.0, &one_pair.1, 3, 7);
        assert!(got.ttft_x.is_some_and(|times| (times - 3.0).abs() < 1e-9), "{got:?}");
        assert_eq!(got.ci95, None);
    }

    #[test]
    fn low_scaling_is_called_queueing() {
        let rows = [
            (1.0, "throughput"),
            (0.6, "throughput"),
            (0.59, "queueing, not throughput"),
            (0.33, "queueing, not throughput"),
        ];
        for (scaling, expected) in rows {
            assert_eq!(scaling_verdict(scaling), expected, "{scaling}");
        }
    }
}
