//! An estimate of what the client plays: it plays sound as it arrives, without a break.
//! The estimate says whether the microphone may hear the assistant, and how much of an answer was heard.

use std::time::{Duration, Instant};

use crate::limits::{ECHO_TAIL, TRUNCATE_WAIT};

#[derive(Debug, Default)]
pub(crate) struct Playback {
    /// When all sound that was sent has been played. `None`: the session has sent none.
    ends_at: Option<Instant>,
    /// The item of the conversation that was spoken last, and when its sound ends.
    item: Option<(String, Instant)>,
    truncation: Option<Truncation>,
}

/// An item that was cut by an estimate. The client may still say better.
#[derive(Clone, Debug)]
pub(crate) struct Truncation {
    pub(crate) item_id: String,
    pub(crate) heard: Duration,
    at: Instant,
}

impl Playback {
    /// `item_id`: the item, if it belongs to the conversation.
    pub(crate) fn add(&mut self, item_id: Option<&str>, length: Duration, now: Instant) {
        let end = self.end(now) + length;
        self.ends_at = Some(end);
        if let Some(item_id) = item_id {
            self.item = Some((item_id.to_owned(), end));
        }
    }

    /// Whether the session has sent any sound.
    pub(crate) fn has_begun(&self) -> bool {
        self.ends_at.is_some()
    }

    pub(crate) fn is_playing(&self, now: Instant) -> bool {
        self.ends_at.is_some_and(|end| end > now)
    }

    /// Whether the room may still be full of the assistant's sound.
    pub(crate) fn echoes(&self, now: Instant) -> bool {
        self.ends_at.is_some_and(|end| end + ECHO_TAIL > now)
    }

    /// Sound up to the end of the item that the client has not played.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        self.item.as_ref().map_or(Duration::ZERO, |(_, end)| end.saturating_duration_since(now))
    }

    pub(crate) fn item_id(&self) -> Option<&str> {
        self.item.as_ref().map(|(item_id, _)| item_id.as_str())
    }

    pub(crate) fn end(&self, now: Instant) -> Instant {
        self.ends_at.map_or(now, |end| end.max(now))
    }

    /// The client stops playing.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.ends_at = self.ends_at.map(|end| end.min(now));
        self.item = None;
    }

    /// The client has cut this item, so it plays no more of it.
    pub(crate) fn stop_item(&mut self, item_id: &str, now: Instant) {
        if self.item_id() == Some(item_id) {
            let unplayed = self.remaining(now);
            self.ends_at = self.ends_at.map(|end| end - unplayed);
            self.item = None;
        }
    }

    pub(crate) fn expect_truncation(&mut self, item_id: String, heard: Duration, now: Instant) {
        self.truncation = Some(Truncation { item_id, heard, at: now + TRUNCATE_WAIT });
    }

    pub(crate) fn truncates_at(&self) -> Option<Instant> {
        self.truncation.as_ref().map(|truncation| truncation.at)
    }

    pub(crate) fn take_truncation(&mut self) -> Option<Truncation> {
        self.truncation.take()
    }

    /// The client has said what was heard of an item, or deleted it.
    pub(crate) fn forget(&mut self, item_id: &str) {
        if self.truncation.as_ref().is_some_and(|truncation| truncation.item_id == item_id) {
            self.truncation = None;
        }
    }
}
