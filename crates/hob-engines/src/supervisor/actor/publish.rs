//! Publishes the status of the supervisor's task.
//! All changes of the status are in this file, and each wakes the tasks that wait for one.

use std::sync::Arc;

use hob_core::ModelError;
use tokio::time::Instant;

use super::Actor;
use crate::supervisor::Phase;
use crate::supervisor::session::Session;

/// Less than this part of a model says nothing about the rest.
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

    /// Another attempt: why the last one was refused says nothing of it.
    pub(super) fn publish_begun(&self) {
        self.status.send_modify(|status| status.refusal = None);
        self.publish_loading(Instant::now());
    }

    /// Who waits for a load hears that it was given up.
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

    /// A model that is down stays so until it is ready: another attempt is no promise.
    pub(super) fn publish_loading(&self, started: Instant) {
        if !matches!(self.status.borrow().phase, Phase::Down { .. }) {
            self.publish(Phase::Loading { ready_at: started + self.load_expected() });
        }
    }

    /// What is there tells how long the rest will take.
    pub(super) fn publish_loaded(&self, started: Instant, part: f32) {
        if (LOADED_PART_MIN..=1.0).contains(&part)
            && matches!(self.status.borrow().phase, Phase::Loading { .. })
        {
            let whole = started.elapsed().div_f32(part);
            self.publish(Phase::Loading { ready_at: started + whole });
        }
    }

    pub(super) fn publish_ready(&self, session: &Arc<Session>, started: Instant) -> Instant {
        let now = Instant::now();
        self.status.send_modify(|status| {
            status.load_times.loaded(now - started);
            status.refusal = None;
            status.load_took = Some(now - started);
            status.loads += 1;
        });
        self.publish_attempt(Phase::Ready(Arc::clone(session)));
        now
    }
}
