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
        });
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

    /// Publishes what the load took of graphics cards, and logs it next to the prediction. A model that is not on its card is
    /// never silently elsewhere.
    pub(super) fn publish_taken(&self, taken: Bytes) {
        let unused = unused_card(&self.status.borrow().predicted, &taken);
        if let Some(note) = &unused {
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
            status.placement_note = status.placement_note.take().or(unused);
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

/// Why nothing of a model is on the card where it was expected: the system knows the card, and the engine does not find it.
fn unused_card(predicted: &Bytes, taken: &Bytes) -> Option<String> {
    let is_unused = |(pool, bytes): &(&Pool, &u64)| {
        **pool != Pool::Ram && **bytes > 0 && taken.get(*pool) == Some(&0)
    };
    let (pool, _) = predicted.iter().find(is_unused)?;
    Some(format!("the engine took no memory of {pool}: `hob doctor` says what that card lacks"))
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
            assert_eq!(unused_card(&predicted, &taken).as_deref(), expected, "{taken:?}");
        }
    }
}
