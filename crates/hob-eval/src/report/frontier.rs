//! The frontier of score against time: the arms that no other arm dominates.
//! One arm dominates another if it is not slower, not worse, and better in one of both.

/// An arm as a point.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmPoint {
    pub name: String,
    pub seconds: f64,
    pub score: f64,
}

/// Indices of the points that no other dominates, by seconds. The first of equal points is kept.
/// Points with a value that is not a number are left out.
pub fn frontier(points: &[ArmPoint]) -> Vec<usize> {
    let is_known = |at: &usize| !points[*at].seconds.is_nan() && !points[*at].score.is_nan();
    let mut order: Vec<usize> = (0..points.len()).filter(is_known).collect();
    // The sort is stable. Adding 0 turns −0 into 0, which are otherwise in an order.
    order.sort_by(|a, b| {
        let (a, b) = (&points[*a], &points[*b]);
        let by_time = (a.seconds + 0.0).total_cmp(&(b.seconds + 0.0));
        by_time.then((b.score + 0.0).total_cmp(&(a.score + 0.0)))
    });
    let mut best = None;
    order.retain(|at| {
        let is_better = best.is_none_or(|best| points[*at].score > best);
        if is_better {
            best = Some(points[*at].score);
        }
        is_better
    });
    order
}
