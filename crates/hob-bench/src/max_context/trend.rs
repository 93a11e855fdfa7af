//! Predicts the speed at a context from shorter contexts. A much slower server has spilled into slower memory.
//! A token takes longer with a longer context, but at most in proportion.

use std::cmp::Ordering;

use super::attempt_result::AttemptResultAt;
use crate::record::AttemptResult;

/// Share of the predicted speed below which memory has spilled.
const SPILLED_SHARE: f64 = 0.5;
/// A trend predicts contexts up to this many times longer.
const REACH: u64 = 2;

/// The judgement of a speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpeedVerdict {
    Fine,
    /// Slow, without a near shorter context to compare with.
    Doubtful,
    Spilled,
}

/// The results of all attempts after their speeds were compared with shorter contexts.
#[derive(Clone, Debug, Default)]
pub(super) struct JudgedAttempts {
    /// In the order of the attempts.
    pub(super) results: Vec<AttemptResult>,
    /// The shortest context that needs a nearer comparison.
    pub(super) doubtful: Option<u64>,
    /// Contexts with the expected speed and their seconds per token, the shortest first.
    pub(super) fine: Vec<(u64, f64)>,
}

pub(super) fn judge_attempts(tried: &[AttemptResultAt]) -> JudgedAttempts {
    let results = tried.iter().map(|one| one.result).collect();
    let mut judged = JudgedAttempts { results, ..JudgedAttempts::default() };
    let ok = |place: &usize| tried[*place].result == AttemptResult::Ok;
    let mut places: Vec<usize> = (0..tried.len()).filter(ok).collect();
    places.sort_by_key(|place| tried[*place].ctx);
    for place in places {
        let AttemptResultAt { ctx, decode_tok_s, .. } = tried[place];
        let Some(speed) = decode_tok_s.filter(|speed| *speed > 0.0) else { continue };
        match speed_verdict(&judged.fine, ctx, 1.0 / speed) {
            SpeedVerdict::Fine => judged.fine.push((ctx, 1.0 / speed)),
            SpeedVerdict::Doubtful => judged.doubtful = judged.doubtful.or(Some(ctx)),
            SpeedVerdict::Spilled => judged.results[place] = AttemptResult::Spill,
        }
    }
    judged
}

/// Compares a time per token with contexts of the expected speed.
pub(super) fn speed_verdict(fine: &[(u64, f64)], ctx: u64, token_s: f64) -> SpeedVerdict {
    let shorter: Vec<(u64, f64)> = fine.iter().copied().filter(|(at, _)| *at < ctx).collect();
    let Some((near, near_s)) = shorter.last().copied() else { return SpeedVerdict::Fine };
    let in_proportion = near_s * ctx as f64 / near as f64;
    let trend = line(&shorter).map(|(at_zero, slope)| at_zero + slope * ctx as f64);
    let expected = trend.unwrap_or(near_s).clamp(near_s, in_proportion);
    let is_slow = |expected: f64| token_s * SPILLED_SHARE > expected;
    match (is_slow(expected), ctx.cmp(&(near * REACH))) {
        (false, _) => SpeedVerdict::Fine,
        (true, Ordering::Greater) => SpeedVerdict::Doubtful,
        (true, _) if trend.is_some() || is_slow(in_proportion) => SpeedVerdict::Spilled,
        (true, _) => SpeedVerdict::Fine,
    }
}

/// Linear regression as (value at 0, slope); None for a single context.
fn line(points: &[(u64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean = |of: fn(&(u64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (ctx, time) = (mean(|(ctx, _)| *ctx as f64), mean(|(_, time)| *time));
    let spread: f64 = points.iter().map(|(at, _)| (*at as f64 - ctx).powi(2)).sum();
    let together: f64 = points.iter().map(|(at, s)| (*at as f64 - ctx) * (s - time)).sum();
    let slope = together / spread;
    (spread > 0.0).then_some((time - slope * ctx, slope))
}

#[cfg(test)]
mod tests {
    use AttemptResult::{Ok, OomLoad, Spill};

    use super::*;

    #[test]
    fn half_of_the_predicted_speed_is_a_spill() {
        // 10 ms at 1000, 20 ms at 2000: 40 ms at 4000.
        let rising: &[(u64, f64)] = &[(1000, 0.010), (2000, 0.020)];
        let flat: &[(u64, f64)] = &[(1000, 0.010), (2000, 0.010)];
        let one: &[(u64, f64)] = &[(1000, 0.010)];
        let rows = [
            (&[][..], 1000, 9.0, SpeedVerdict::Fine),
            (one, 1000, 9.0, SpeedVerdict::Fine),
            (one, 8000, 0.020, SpeedVerdict::Fine),
            (one, 8000, 0.021, SpeedVerdict::Doubtful),
            (one, 2000, 0.039, SpeedVerdict::Fine),
            (one, 2000, 0.041, SpeedVerdict::Spilled),
            (rising, 4000, 0.079, SpeedVerdict::Fine),
            (rising, 4000, 0.081, SpeedVerdict::Spilled),
            (flat, 4000, 0.019, SpeedVerdict::Fine),
            (flat, 4000, 0.021, SpeedVerdict::Spilled),
            (flat, 4001, 0.021, SpeedVerdict::Doubtful),
        ];
        for (fine, ctx, token_s, expected) in rows {
            assert_eq!(speed_verdict(fine, ctx, token_s), expected, "{fine:?} {ctx} {token_s}");
        }
    }

    #[test]
    fn results_are_judged_from_the_shortest_up() {
        let tried = |ctx, speed, result| AttemptResultAt {
            decode_tok_s: Some(speed),
            ..AttemptResultAt::new(ctx, result)
        };
        let far = [tried(1000, 100.0, Ok), tried(16_000, 10.0, Ok)];
        let got = judge_attempts(&far);
        assert_eq!((got.results, got.doubtful), (vec![Ok, Ok], Some(16_000)));
        let near = [far[0], far[1], tried(8000, 95.0, Ok), tried(32_000, 9.0, OomLoad)];
        let got = judge_attempts(&near);
        assert_eq!((got.results, got.doubtful), (vec![Ok, Spill, Ok, OomLoad], None));
    }
}
