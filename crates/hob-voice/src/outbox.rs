//! The effects of a session in order, and its counters: ids of items and responses, numbers of streams.
//! A number is never used twice, so a late event of a dropped stream cannot be mistaken for another one's.

use std::collections::VecDeque;

use hob_core::realtime::RealtimeEvent;

use crate::interface::SessionEffect;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    effects: VecDeque<SessionEffect>,
    streams: u64,
    ids: u64,
}

impl Outbox {
    pub(crate) fn push(&mut self, effect: SessionEffect) {
        self.effects.push_back(effect);
    }

    pub(crate) fn send(&mut self, event: RealtimeEvent) {
        self.push(SessionEffect::Send(event));
    }

    /// Gives sound to a transcript, in one piece with sound that still waits for it: the pieces that wait for a model have a
    /// limit, and one input may have minutes of sound.
    pub(crate) fn hear(&mut self, stream: u64, samples: Vec<f32>) {
        match self.effects.back_mut() {
            Some(SessionEffect::Hear { stream: last, samples: waiting }) if *last == stream => {
                waiting.extend(samples);
            }
            _ => self.push(SessionEffect::Hear { stream, samples }),
        }
    }

    pub(crate) fn take(&mut self) -> Option<SessionEffect> {
        self.effects.pop_front()
    }

    pub(crate) fn new_stream(&mut self) -> u64 {
        self.streams += 1;
        self.streams
    }

    /// `kind` is the beginning of the id: `item`, `resp`, `call`.
    pub(crate) fn new_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{}", self.ids)
    }

    /// Keeps later ids of the session apart from a client's id.
    pub(crate) fn claim(&mut self, id: &str) {
        self.ids = self.ids.max(number(id).unwrap_or_default());
    }
}

/// The number of an item's id, if it has the form of the session's own.
fn number(id: &str) -> Option<u64> {
    id.strip_prefix("item_")?.parse::<u32>().ok().map(u64::from)
}
