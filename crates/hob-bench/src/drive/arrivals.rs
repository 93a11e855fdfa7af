//! When requests are due: one after the other by so many users, or at times that nobody's answer changes.
//! Pure: the same seed gives the same times.

use std::time::Duration;

use hob_core::statistics::Chance;

/// Who sends the next request, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// So many users, each of whom waits for an answer before asking again.
    Closed { users: usize },
    /// Evenly, over at most so many connections.
    Constant { per_second: f64, connections: usize },
    /// At random with this mean, as independent people do.
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

    /// When each of `count` requests is due after the start; none where users decide.
    pub(super) fn schedule(&self, count: usize, seed: u64) -> Option<Vec<Duration>> {
        let mut chance = Chance::seeded(seed);
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
                Some(times(&mut || -(1.0 - chance.part()).ln() / per_second))
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
