//! What a machine gives when several ask together: tokens a second of all of them, and the memory that it takes.
//! What is gained is said against one of them alone, and is no multiple of real time.

use jiff::Timestamp;

use crate::crowd::{Chatting, Crowd, Together, Wish};
use crate::record::{Kind, Record};
use crate::runs::{Account, BenchError};
use crate::terms::Metric;
use crate::workbench::Workbench;

/// Measures each number of users, the fewest first; each is kept once it is done. A server that was started for it is
/// started anew for each, so that its memory is that of so many.
///
/// # Errors
/// The server does not answer as a chat model does, or a record cannot be kept.
pub fn measure(bench: &mut Workbench<'_>, wish: &Wish) -> Result<Vec<Record>, BenchError> {
    let mut chat = Chatting::prepare(bench.asker(), wish)?;
    let mut records = Vec::new();
    for thinking in chat.ways() {
        chat.thinking = thinking;
        records.extend(each(bench, &mut chat, &wish.users)?);
    }
    Ok(records)
}

/// The same of whatever many can ask.
fn each(
    bench: &mut Workbench<'_>,
    crowd: &mut impl Crowd,
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
        records.extend(bench.close(account)?);
    }
    Ok(records)
}

/// Tokens a second of one against those of the other. None where either is not known.
pub fn gain(alone: &Record, together: &Record) -> Option<f64> {
    let rate = |record: &Record| record.metrics.figure(Metric::ThroughputTokS);
    let (alone, together) = (rate(alone).filter(|rate| *rate > 0.0)?, rate(together)?);
    Some(together / alone)
}
