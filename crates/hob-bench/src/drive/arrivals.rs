//! When requests are due: each user's after its last answer, or at times that do not depend on answers.
//! Pure: the same seed gives the same times.

use std::time::Duration;

use hob_core::statistics::SeededRandom;

/// When the next request is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Closed loop: each user waits for the answer before the next request.
    Closed { users: usize },
    /// Open loop at a constant rate, over at most this many connections.
    Constant { per_second: f64, connections: usize },
    /// Open loop as a Poisson process with this mean rate, like independent users.
    Poisson { per_second: f64, connections: usize },
}

impl Arrivals {
    pub fn connections(&self) -> usize {
        match *self {
            Arrivals::Closed { users } => users,
            Arrivals::Constant { connections, .. } | Arrivals::Poisson { connections, .. } => {
                connections
            }
        }
    }

    /// When each of `count` requests is due after the start; None for a closed loop.
    pub(super) fn schedule(&self, count: usize, seed: u64) -> Option<Vec<Duration>> {
        let mut random = SeededRandom::new(seed);
        let mut at_s = 0.0;
        let mut times = |step: &mut dyn FnMut() -> f64| {
            let next = |_| {
                let due = Duration::from_secs_f64(at_s);
                at_s += step();
                due
            };
            (0..count).map(next).collect()
        };
        match *self {
            Arrivals::Closed { .. } => None,
            Arrivals::Constant { per_second, .. } => Some(times(&mut || 1.0 / per_second)),
            Arrivals::Poisson { per_second, .. } => {
                Some(times(&mut || -(1.0 - random.unit()).ln() / per_second))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_arrivals_are_even_and_users_have_no_schedule() {
        let constant = Arrivals::Constant { per_second: 4.0, connections: 1 };
        let millis = |ms| Duration::from_millis(ms);
        assert_eq!(constant.schedule(3, 1), Some(vec![millis(0), millis(250), millis(500)]));
        assert_eq!(Arrivals::Closed { users: 3 }.schedule(3, 1), None);
    }

    #[test]
    fn poisson_arrivals_repeat_and_have_their_mean() {
        let poisson = Arrivals::Poisson { per_second: 100.0, connections: 1 };
        let times = poisson.schedule(4001, 7).expect("a schedule");
        assert_eq!(poisson.schedule(4001, 7), Some(times.clone()));
        let per_second = 4000.0 / times[4000].as_secs_f64();
        assert!((90.0..110.0).contains(&per_second), "{per_second}");
        assert!(times.is_sorted());
    }
}
