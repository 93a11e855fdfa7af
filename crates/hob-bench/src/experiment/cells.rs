//! Measures the cells of an axis, one after the other: alone, alternately with one user, or each on a server of its own.
//! One place for chat and speech, so that a new axis is written once.

use super::Axis;
use super::concurrency::against_one_user;
use crate::chat::{ChatCell, ChatSession};
use crate::drive::Arrivals;
use crate::record::{Record, RecordKind};
use crate::runs::BenchError;
use crate::session::{MeasuringSession, measure_in_turns};
use crate::speech::{SpeechCell, SpeechSession};
use crate::workbench::Workbench;

pub(super) fn chat(
    bench: &mut Workbench<'_>,
    session: &mut ChatSession<'_>,
    axis: &Axis,
) -> Result<Vec<Record>, BenchError> {
    if let Axis::Load(arrivals) = axis {
        let cells = session.cells(arrivals);
        return one_by_one(bench, session, &cells, |_| ());
    }
    let base = session.cells(&[Arrivals::Closed { users: 1 }]);
    let with_users = |cell: &ChatCell, users| {
        let arrivals = Arrivals::Closed { users };
        ChatCell { arrivals, ..*cell }
    };
    by_users(bench, session, (axis, &base), with_users)
}

pub(super) fn speech(
    bench: &mut Workbench<'_>,
    session: &mut SpeechSession<'_, '_>,
    axis: &Axis,
    rounds: usize,
) -> Result<Vec<Record>, BenchError> {
    let users = match axis {
        Axis::Load(arrivals) => arrivals.iter().map(Arrivals::connections).collect(),
        _ => vec![1],
    };
    let kind = if matches!(axis, Axis::Delivery) { RecordKind::Stream } else { RecordKind::Tts };
    let cells = session.cells(kind, &users, rounds);
    if matches!(axis, Axis::Load(_) | Axis::Delivery) {
        // A server that was already running may have answered requests before, so this may not be its first.
        let first_ms = bench.started.is_some().then_some(session.first_ms);
        let finish = |record: &mut Record| record.resources.cold_first_ms = first_ms;
        return one_by_one(bench, session, &cells, finish);
    }
    let with_users = |cell: &SpeechCell, users| SpeechCell { users, ..cell.clone() };
    by_users(bench, session, (axis, &cells), with_users)
}

fn one_by_one<S: MeasuringSession>(
    bench: &mut Workbench<'_>,
    session: &mut S,
    cells: &[S::Cell],
    finish: impl Fn(&mut Record),
) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let name = format!("{}/{} {}", number + 1, cells.len(), session.name(cell));
        let named = (name.as_str(), std::slice::from_ref(cell));
        measure_in_turns(bench, session, named, &mut records, &finish)?;
    }
    Ok(records)
}

/// Measures each cell with each number of users.
fn by_users<S: MeasuringSession>(
    bench: &mut Workbench<'_>,
    session: &mut S,
    (axis, cells): (&Axis, &[S::Cell]),
    with_users: impl Fn(&S::Cell, usize) -> S::Cell,
) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    for cell in cells {
        match axis {
            Axis::Concurrency(users) => {
                for users in users.iter().copied().filter(|users| *users > 1) {
                    let pair = [with_users(cell, 1), with_users(cell, users)];
                    against_one_user(bench, session, (&pair, users), &mut records)?;
                }
            }
            Axis::Batch(users) => {
                let mut users = users.clone();
                users.sort_unstable();
                users.dedup();
                let cells: Vec<S::Cell> =
                    users.into_iter().map(|users| with_users(cell, users)).collect();
                batch(bench, session, &cells, &mut records)?;
            }
            _ => {}
        }
    }
    Ok(records)
}

/// Measures the smallest number of users first. A server that hob started is restarted for each number, because its memory stays at its peak.
fn batch<S: MeasuringSession>(
    bench: &mut Workbench<'_>,
    session: &mut S,
    cells: &[S::Cell],
    records: &mut Vec<Record>,
) -> Result<(), BenchError> {
    for (number, cell) in cells.iter().enumerate() {
        if number > 0 && !bench.is_stopped() {
            bench.renew()?;
        }
        let name = session.name(cell);
        let named = (name.as_str(), std::slice::from_ref(cell));
        measure_in_turns(bench, session, named, records, |record| record.kind = RecordKind::Batch)?;
    }
    Ok(())
}
