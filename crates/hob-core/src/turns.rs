//! Whose turn it is when models compete for a memory that does not hold them all: what waits for the
//! loaded one goes first, and not for ever. AABBCC, not ABCABC. Pure: it is told the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Requests of a loaded model that may still begin when another one waits for its memory.
const SERVED_MAX: u32 = 16;
/// And for how long they may.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The models that wait to be loaded, who waits for longest first; each is in it once.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    waiting: Vec<Waiting>,
}

#[derive(Clone, Debug)]
struct Waiting {
    model: String,
    since: Instant,
    /// Loaded models whose memory it needs.
    needs: Vec<String>,
    /// Requests that began in each of these since.
    served: BTreeMap<String, u32>,
}

/// Whether another request may begin in a model that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    Goes,
    /// It has had its turn, and is to be left alone until this one had its own.
    Over {
        next: String,
    },
}

impl Turns {
    /// Puts a model into the queue, unless it is there already.
    pub fn wait(&mut self, model: &str, now: Instant) {
        if self.place(model).is_none() {
            let (model, since) = (model.to_owned(), now);
            let (needs, served) = (Vec::new(), BTreeMap::new());
            self.waiting.push(Waiting { model, since, needs, served });
        }
    }

    /// What it waits for, as it looks now.
    pub fn needs(&mut self, model: &str, needs: Vec<String>) {
        if let Some(place) = self.place(model) {
            self.waiting[place].needs = needs;
        }
    }

    /// It was loaded, or nobody wants it any more.
    pub fn leave(&mut self, model: &str) {
        self.waiting.retain(|waiting| waiting.model != model);
    }

    /// Whether this one may take memory from others: those who wait for longer go before it.
    pub fn may_take(&self, model: &str) -> bool {
        self.place(model).is_none_or(|place| place == 0)
    }

    /// Whether this one may take memory that is free. Somebody who has waited for too long has a
    /// right to that too, or many small models would keep a large one out for ever.
    pub fn may_use_free(&self, model: &str, now: Instant) -> bool {
        let is_overdue = |first: &Waiting| now.saturating_duration_since(first.since) >= WAIT_MAX;
        self.may_take(model) || !self.waiting.first().is_some_and(is_overdue)
    }

    /// Asks for another request of a loaded model, and counts it.
    pub fn begin(&mut self, model: &str, now: Instant) -> Turn {
        let wants = |waiting: &&mut Waiting| waiting.needs.iter().any(|need| need == model);
        let over = self.waiting.iter_mut().filter(wants).find(|waiting| {
            let served = waiting.served.get(model).copied().unwrap_or_default();
            served >= SERVED_MAX || now.saturating_duration_since(waiting.since) >= WAIT_MAX
        });
        if let Some(next) = over {
            return Turn::Over { next: next.model.clone() };
        }
        for waiting in self.waiting.iter_mut().filter(wants) {
            *waiting.served.entry(model.to_owned()).or_default() += 1;
        }
        Turn::Goes
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn place(&self, model: &str) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.model == model)
    }
}

#[cfg(test)]
mod tests;
