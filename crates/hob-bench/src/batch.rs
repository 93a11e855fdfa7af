//! What a machine gives when several ask together: tokens a second of all of them, or seconds of sound, and the memory
//! that it takes. What is gained is said against one of them alone.

use jiff::Timestamp;

use crate::crowd::{Crowd, Together, Wish, in_each_way};
use crate::record::{Kind, Record};
use crate::runs::{Account, BenchError};
use crate::terms::Metric;
use crate::workbench::Workbench;

/// Measures each number of users, the fewest first; each is kept once it is done. A server that was started for it is
/// started anew for each, so that its memory is that of so many.
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
    let mut users = users.to_vec();
    users.sort_unstable();
    users.dedup();
    let mut records = Vec::new();
    for (number, users) in users.into_iter().enumerate() {
        if bench.is_stopped() {
            break;
        }
        if number > 0 {
            bench.renew()?;
        }
        let (name, started) = (crowd.name(users), Timestamp::now());
        let runs = bench.run(&name, &mut Together { crowd, users })?;
        let account = Account { kind: Kind::Batch, ..crowd.account(users, &runs, started) };
        records.extend(bench.close_with(account, |record| crowd.add(users, &runs, record))?);
    }
    Ok(records)
}

/// What one gives a second against what the other does: tokens, or seconds of sound. None where either is not known.
pub fn gain(alone: &Record, together: &Record) -> Option<f64> {
    let rate = |record: &Record, metric| record.metrics.figure(metric).filter(|rate| *rate > 0.0);
    let given = |metric| Some(rate(together, metric)? / rate(alone, metric)?);
    given(Metric::ThroughputTokS).or_else(|| given(Metric::RealTimeX))
}
