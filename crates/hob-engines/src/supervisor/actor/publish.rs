//! Publishes the status of the supervisor's task.
//! All changes of the status are in this file, and each wakes the tasks that wait for one.

use std::sync::Arc;

use hob_core::ModelError;
use hob_core::budget::Bytes;
use hob_core::fit::Pool;
use tokio::time::Instant;

use super::Actor;
use crate::supervisor::Phase;
use crate::supervisor::session::WorkerSession;

/// Minimum loaded part of a model for an estimate of the remaining load time.
const LOADED_PART_MIN: f32 = 0.05;
const MB: u64 = 1_000_000;
/// A part of a model is not on its card if the load took less than half of the predicted bytes there, and at least this many
/// less. Drivers take a few hundred MB more or less than predicted.
const MISSING_BYTES_MIN: u64 = 1_000 * MB;

impl Actor {
    pub(super) fn publish(&self, phase: Phase) {
        self.status.send_modify(|status| status.phase = phase);
    }

    pub(super) fn publish_attempt(&self, phase: Phase) {
        self.status.send_modify(|status| {
            status.phase = phase;
            status.attempts += 1;
        });
    }

    /// Publishes that an attempt starts. The reason of an earlier refusal does not apply to it.
    pub(super) fn publish_begun(&self) {
        self.status.send_modify(|status| status.refusal = None);
        self.publish_loading(Instant::now());
    }

    /// Publishes that the model is not loaded. A load that was given up counts as an attempt, so tasks that wait for it
    /// notice.
    pub(super) fn publish_unloaded(&self) {
        let was_loaded = matches!(self.status.borrow().phase, Phase::Leaving);
        self.status.send_modify(|status| {
            status.phase = Phase::Cold;
            status.attempts += u64::from(!was_loaded);
            status.unloads += 1;
        });
    }

    /// Publishes that an unload found no process.
    pub(super) fn publish_nothing_unloaded(&self) {
        self.status.send_modify(|status| status.unloads += 1);
    }

    pub(super) fn publish_refusal(&self, refusal: ModelError) {
        self.status.send_modify(|status| status.refusal = Some(refusal));
        self.publish_attempt(Phase::Cold);
    }

    /// Publishes a load. A model that is down stays down until it is ready, because another attempt may fail too.
    pub(super) fn publish_loading(&self, started: Instant) {
        if !matches!(self.status.borrow().phase, Phase::Down { .. }) {
            self.publish(Phase::Loading { ready_at: started + self.load_expected() });
        }
    }

    /// Estimates the remaining load time from the part that is loaded.
    pub(super) fn publish_loaded(&self, started: Instant, part: f32) {
        if (LOADED_PART_MIN..=1.0).contains(&part)
            && matches!(self.status.borrow().phase, Phase::Loading { .. })
        {
            let whole = started.elapsed().div_f32(part);
            self.publish(Phase::Loading { ready_at: started + whole });
        }
    }

    /// Publishes where the worker that starts now computes.
    pub(super) fn publish_placed(&self, predicted: Bytes, note: Option<String>) {
        self.status.send_modify(|status| {
            status.predicted = predicted;
            status.placement_note = note;
            status.taken = Bytes::new();
        });
    }

    /// Publishes what the load took of graphics cards, and logs it next to the prediction. Warns if a model, or a part of it, is
    /// not on its card.
    pub(super) fn publish_taken(&self, taken: Bytes) {
        let missing = missing_on_card(&self.status.borrow().predicted, &taken);
        if let Some(note) = &missing {
            tracing::warn!(engine = self.options.engine, "{note}");
        }
        for (pool, taken_bytes) in &taken {
            let predicted_bytes = self.status.borrow().predicted.get(pool).copied().unwrap_or(0);
            tracing::info!(
                engine = self.options.engine, %pool, predicted_bytes, taken_bytes,
                "memory of a graphics card"
            );
        }
        self.status.send_modify(|status| {
            status.taken = taken;
            status.placement_note = status.placement_note.take().or(missing);
        });
    }

    pub(super) fn publish_ready(&self, session: &Arc<WorkerSession>, started: Instant) -> Instant {
        let now = Instant::now();
        self.status.send_modify(|status| {
            status.load_times.record_load(now - started);
            status.refusal = None;
            status.load_took = Some(now - started);
            status.loads += 1;
        });
        self.publish_attempt(Phase::Ready(Arc::clone(session)));
        now
    }
}

/// Why a model, or a part of it, is not on the card where it was expected: the engine does not find a card that the system
/// knows, or the driver has used system memory instead.
fn missing_on_card(predicted: &Bytes, taken: &Bytes) -> Option<String> {
    let mut cards = predicted.iter().filter(|(pool, _)| **pool != Pool::Ram);
    cards.find_map(|(pool, expected)| {
        let taken = *taken.get(pool)?;
        let missing = expected.saturating_sub(taken);
        if missing > 0 && taken == 0 {
            let note = "`hob doctor` says what that card lacks";
            return Some(format!("the engine took no memory of {pool}: {note}"));
        }
        (missing > taken && missing >= MISSING_BYTES_MIN).then(|| {
            format!(
                "the engine took {} MB of {pool} and not {} MB as predicted: the rest may be in system memory, where every \
                 token waits for the bus; close other programs on that card and load the model again",
                taken / MB,
                expected / MB
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_takes_nothing_of_its_card_is_not_there() {
        let bytes =
            |card: usize, bytes: u64| Bytes::from([(Pool::Ram, 5), (Pool::Vram(card), bytes)]);
        let note = "the engine took no memory of GPU 0: `hob doctor` says what that card lacks";
        for (predicted, taken, expected) in [
            (bytes(0, 9), bytes(0, 0), Some(note)),
            (bytes(0, 9), bytes(0, 7), None),
            (bytes(0, 0), bytes(0, 0), None),
            // The driver reports nothing, so nothing is known.
            (bytes(0, 9), bytes(1, 0), None),
            (bytes(0, 9), Bytes::new(), None),
        ] {
            assert_eq!(missing_on_card(&predicted, &taken).as_deref(), expected, "{taken:?}");
        }
    }

    #[test]
    fn a_model_that_is_only_in_part_on_its_card_is_not_silently_elsewhere() {
        let note = |expected_mb: u64, taken_mb: u64| {
            let on_card = |mb: u64| Bytes::from([(Pool::Ram, 5), (Pool::Vram(1), mb * MB)]);
            missing_on_card(&on_card(expected_mb), &on_card(taken_mb))
        };
        let said = note(9_000, 4_000).expect("a note");
        let numbers = "the engine took 4000 MB of GPU 1 and not 9000 MB as predicted: ";
        assert!(said.starts_with(numbers), "{said}");
        for (expected_mb, taken_mb) in [(9_000, 8_000), (9_000, 5_000), (900, 200), (900, 1_900)] {
            assert_eq!(note(expected_mb, taken_mb), None, "{taken_mb} of {expected_mb}");
        }
    }
}
