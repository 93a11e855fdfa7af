//! The order in which models load that do not fit into memory together. Requests of the loaded model go first, up to
//! a limit (AABBCC, not ABCABC). Pure: callers pass the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Requests of a loaded model that may still start while another model waits for its memory.
const SERVED_MAX: u32 = 16;
/// How long they may still start.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The models that wait for memory, longest wait first; each is in it once.
#[derive(Clone, Debug, Default)]
pub struct LoadQueue {
    waiting: Vec<Waiting>,
}

#[derive(Clone, Debug)]
struct Waiting {
    model: String,
    since: Instant,
    /// Loaded models that must be unloaded for it.
    needs: Vec<String>,
    /// Requests that started on each of these since.
    served: BTreeMap<String, u32>,
}

/// Whether another request may start on a loaded model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartDecision {
    Allowed,
    /// It waits until the model `next` was loaded, which has waited long enough.
    Wait {
        next: String,
    },
}

impl LoadQueue {
    /// Puts a model into the queue, unless it is there already.
    pub fn wait(&mut self, model: &str, now: Instant) {
        if self.position(model).is_none() {
            let (model, since) = (model.to_owned(), now);
            let (needs, served) = (Vec::new(), BTreeMap::new());
            self.waiting.push(Waiting { model, since, needs, served });
        }
    }

    /// Updates what the model waits for.
    pub fn needs(&mut self, model: &str, needs: Vec<String>) {
        if let Some(place) = self.position(model) {
            self.waiting[place].needs = needs;
        }
    }

    /// The model was loaded, or its last request left the queue.
    pub fn leave(&mut self, model: &str) {
        self.waiting.retain(|waiting| waiting.model != model);
    }

    /// Whether this model may take memory from others. Models that have waited longer come first.
    pub fn may_take(&self, model: &str) -> bool {
        self.position(model).is_none_or(|place| place == 0)
    }

    /// Whether this model may use free memory. A model that has waited too long comes first here too; otherwise many
    /// small models could keep a large one out for ever.
    pub fn may_use_free(&self, model: &str, now: Instant) -> bool {
        let is_overdue = |first: &Waiting| now.saturating_duration_since(first.since) >= WAIT_MAX;
        self.may_take(model) || !self.waiting.first().is_some_and(is_overdue)
    }

    /// Asks to start another request of a loaded model, and counts it.
    pub fn begin(&mut self, model: &str, now: Instant) -> StartDecision {
        let wants = |waiting: &&mut Waiting| waiting.needs.iter().any(|need| need == model);
        let over = self.waiting.iter_mut().filter(wants).find(|waiting| {
            let served = waiting.served.get(model).copied().unwrap_or_default();
            served >= SERVED_MAX || now.saturating_duration_since(waiting.since) >= WAIT_MAX
        });
        if let Some(next) = over {
            return StartDecision::Wait { next: next.model.clone() };
        }
        for waiting in self.waiting.iter_mut().filter(wants) {
            *waiting.served.entry(model.to_owned()).or_default() += 1;
        }
        StartDecision::Allowed
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn position(&self, model: &str) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.model == model)
    }
}

#[cfg(test)]
mod tests;
