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

    /// Keeps an id of the client's apart from the session's own. `false`: the session has used it.
    pub(crate) fn claim(&mut self, id: &str) -> bool {
        let number = id.rsplit_once('_').and_then(|(_, number)| number.parse::<u32>().ok());
        let number = number.map_or(u64::MAX, u64::from);
        if number <= self.ids {
            return false;
        }
        if number < u64::MAX {
            self.ids = number;
        }
        true
    }
}
