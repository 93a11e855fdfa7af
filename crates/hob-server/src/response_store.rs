//! Stored responses and conversations, in memory, within a limit of bytes. A restart forgets them.
//! Each belongs to the key that made it. The key that has the most loses the one that was used least recently.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use hob_core::locked;
use hob_wire::{ResponseAnswer, ResponseItem, ResponseSource};

use crate::api_error::ApiError;

/// Bytes of everything that is stored. Responses of one conversation share its items, but each counts them.
const BYTES_MAX: usize = 64 << 20;

/// Responses and conversations.
const ENTRIES_MAX: usize = 10_000;

/// Items of a conversation, oldest first.
pub(crate) type Items = Vec<Arc<ResponseItem>>;

#[derive(Default)]
pub(crate) struct ResponseStore(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_id: HashMap<String, Entry>,
    bytes: usize,
    /// Number of uses so far, which orders the entries by their last use.
    uses: u64,
}

struct Entry {
    /// The name of the key that made it.
    owner: Option<String>,
    items: Items,
    kind: StoredKind,
    bytes: usize,
    last_use: u64,
}

pub(crate) enum StoredKind {
    Response {
        answer: Arc<ResponseAnswer>,
        /// Length of the answer as JSON.
        bytes: usize,
        /// Items before the answer.
        input: usize,
    },
    Conversation {
        created_unix_s: u64,
        metadata: BTreeMap<String, String>,
    },
}

impl ResponseStore {
    /// What the holder of this key has stored. `None`: a client without a key.
    pub(crate) fn of<'a>(&'a self, owner: Option<&'a str>) -> OwnResponses<'a> {
        OwnResponses { entries: locked(&self.0), owner }
    }
}

/// The entries of one key, while the store is locked.
pub(crate) struct OwnResponses<'a> {
    entries: MutexGuard<'a, Entries>,
    owner: Option<&'a str>,
}

/// Each fails if the caller has no such entry.
impl OwnResponses<'_> {
    /// Stores an entry, unless it alone exceeds the limit.
    pub(crate) fn insert(&mut self, id: &str, items: Items, kind: StoredKind) {
        let owner = self.owner.map(str::to_owned);
        let last_use = self.entries.next_use();
        let mut entry = Entry { owner, items, kind, bytes: 0, last_use };
        entry.bytes = entry.size_bytes();
        if entry.bytes > BYTES_MAX {
            return;
        }
        self.entries.bytes += entry.bytes;
        self.entries.by_id.insert(id.to_owned(), entry);
        self.entries.evict();
    }

    /// The items that come before a request.
    pub(crate) fn before(&mut self, source: &ResponseSource) -> Result<Items, ApiError> {
        match source {
            ResponseSource::Nothing => Ok(Vec::new()),
            ResponseSource::Response(id) => {
                let found = self.find("response", id);
                let found = found.map_err(|_| ApiError::NoPrevious { id: id.clone() })?;
                Ok(found.items.clone())
            }
            ResponseSource::Conversation(id) => Ok(self.find("conversation", id)?.items.clone()),
        }
    }

    /// A response as it was answered.
    pub(crate) fn response(&mut self, id: &str) -> Result<Arc<ResponseAnswer>, ApiError> {
        match &self.find("response", id)?.kind {
            StoredKind::Response { answer, .. } => Ok(Arc::clone(answer)),
            StoredKind::Conversation { .. } => Err(not_stored("response", id)),
        }
    }

    /// What a response answers.
    pub(crate) fn input(&mut self, id: &str) -> Result<Items, ApiError> {
        let found = self.find("response", id)?;
        match found.kind {
            StoredKind::Response { input, .. } => Ok(found.items[..input].to_vec()),
            StoredKind::Conversation { .. } => Err(not_stored("response", id)),
        }
    }

    /// A conversation as JSON.
    pub(crate) fn conversation(&mut self, id: &str) -> Result<String, ApiError> {
        match &self.find("conversation", id)?.kind {
            StoredKind::Conversation { created_unix_s, metadata } => {
                Ok(hob_wire::conversation(id, *created_unix_s, metadata))
            }
            StoredKind::Response { .. } => Err(not_stored("conversation", id)),
        }
    }

    pub(crate) fn set_metadata(
        &mut self,
        id: &str,
        new: BTreeMap<String, String>,
    ) -> Result<(), ApiError> {
        self.change(id, |entry| {
            if let StoredKind::Conversation { metadata, .. } = &mut entry.kind {
                *metadata = new;
            }
        })
    }

    /// Adds items to a conversation.
    pub(crate) fn append(&mut self, id: &str, items: Items) -> Result<(), ApiError> {
        self.change(id, |entry| entry.items.extend(items))
    }

    /// Removes an item from a conversation. Fails also if it has no such item.
    pub(crate) fn delete_item(&mut self, id: &str, item: String) -> Result<(), ApiError> {
        let mut removed = 0;
        self.change(id, |entry| {
            let before = entry.items.len();
            entry.items.retain(|one| one.id() != item);
            removed = before - entry.items.len();
        })?;
        if removed == 0 { Err(not_stored("item", &item)) } else { Ok(()) }
    }

    pub(crate) fn delete(&mut self, what: &'static str, id: &str) -> Result<(), ApiError> {
        self.find(what, id)?;
        self.entries.remove(id);
        Ok(())
    }

    /// An item by its id, which holds the id of the response or conversation that it was made for.
    pub(crate) fn find_item(&mut self, id: &str) -> Result<Arc<ResponseItem>, ApiError> {
        let made_for = id.split('_').nth(1).unwrap_or_default();
        for (what, prefix) in [("response", "resp"), ("conversation", "conv")] {
            if let Ok(entry) = self.find(what, &format!("{prefix}_{made_for}"))
                && let Some(item) = entry.items.iter().find(|item| item.id() == id)
            {
                return Ok(Arc::clone(item));
            }
        }
        Err(not_stored("item", id))
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Entry)) -> Result<(), ApiError> {
        let entry = self.find("conversation", id)?;
        change(entry);
        let bytes = entry.size_bytes();
        let before = std::mem::replace(&mut entry.bytes, bytes);
        self.entries.bytes = self.entries.bytes - before + bytes;
        self.entries.evict();
        Ok(())
    }

    /// An entry of this kind. An entry of another key counts as absent.
    fn find(&mut self, what: &'static str, id: &str) -> Result<&mut Entry, ApiError> {
        let last_use = self.entries.next_use();
        let found = self.entries.by_id.get_mut(id);
        let found =
            found.filter(|entry| entry.owner.as_deref() == self.owner && entry.what() == what);
        let entry = found.ok_or_else(|| not_stored(what, id))?;
        entry.last_use = last_use;
        Ok(entry)
    }
}

impl Entries {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    fn remove(&mut self, id: &str) {
        let removed = self.by_id.remove(id);
        self.bytes -= removed.map_or(0, |entry| entry.bytes);
    }

    fn evict(&mut self) {
        while self.bytes > BYTES_MAX || self.by_id.len() > ENTRIES_MAX {
            let are_too_large = self.bytes > BYTES_MAX;
            let mut held: HashMap<Option<&str>, usize> = HashMap::new();
            for entry in self.by_id.values() {
                let share = if are_too_large { entry.bytes } else { 1 };
                *held.entry(entry.owner.as_deref()).or_default() += share;
            }
            let most = held.into_iter().max_by_key(|(_, share)| *share).map(|(owner, _)| owner);
            let of_it = self.by_id.iter().filter(|(_, entry)| Some(entry.owner.as_deref()) == most);
            let oldest = of_it.min_by_key(|(_, entry)| entry.last_use);
            let Some(id) = oldest.map(|(id, _)| id.clone()) else { return };
            self.remove(&id);
        }
    }
}

impl Entry {
    fn what(&self) -> &'static str {
        match self.kind {
            StoredKind::Response { .. } => "response",
            StoredKind::Conversation { .. } => "conversation",
        }
    }

    fn size_bytes(&self) -> usize {
        /// Approximate bytes of the maps and ids of one entry.
        const OVERHEAD_BYTES: usize = 512;
        let kind = match &self.kind {
            StoredKind::Response { bytes, .. } => *bytes,
            StoredKind::Conversation { metadata, .. } => {
                metadata.iter().map(|(name, text)| name.len() + text.len()).sum()
            }
        };
        OVERHEAD_BYTES + kind + self.items.iter().map(|item| item.bytes()).sum::<usize>()
    }
}

fn not_stored(what: &'static str, id: &str) -> ApiError {
    ApiError::NotStored { what, id: id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(kilobytes: usize) -> StoredKind {
        let sent = hob_wire::parse_response(br#"{"input":"x"}"#).expect("a request");
        let head = hob_wire::AnswerHead {
            id: String::new(),
            created_unix_s: 0,
            model: String::new(),
            fingerprint: "",
        };
        let answer = Arc::new(ResponseAnswer::new(head, sent.settings));
        StoredKind::Response { answer, bytes: kilobytes << 10, input: 0 }
    }

    fn has(store: &ResponseStore, id: &str) -> bool {
        store.of(None).response(id).is_ok()
    }

    #[test]
    fn the_response_that_was_used_least_recently_goes_first() {
        let store = ResponseStore::default();
        let third = (BYTES_MAX >> 10) / 3 - 8;
        for id in ["a", "b", "c"] {
            store.of(None).insert(id, Vec::new(), response(third));
        }
        assert!(has(&store, "a"), "all three have room");
        store.of(None).insert("d", Vec::new(), response(third));
        assert_eq!(["a", "b", "c", "d"].map(|id| has(&store, id)), [true, false, true, true]);
        store.of(None).insert("huge", Vec::new(), response(BYTES_MAX >> 10));
        assert_eq!(["huge", "d"].map(|id| has(&store, id)), [false, true]);
    }

    #[test]
    fn a_key_that_stores_much_drops_nothing_of_another_key() {
        let store = ResponseStore::default();
        let third = (BYTES_MAX >> 10) / 3 - 8;
        store.of(Some("phone")).insert("a", Vec::new(), response(third));
        for id in ["b", "c", "d"] {
            store.of(None).insert(id, Vec::new(), response(third));
        }
        assert!(store.of(Some("phone")).response("a").is_ok());
        assert_eq!(["b", "c", "d"].map(|id| has(&store, id)), [false, true, true]);
        for number in 0..ENTRIES_MAX {
            store.of(None).insert(&number.to_string(), Vec::new(), response(0));
        }
        assert!(store.of(Some("phone")).response("a").is_ok());
    }

    #[test]
    fn what_is_removed_is_no_longer_counted() {
        let store = ResponseStore::default();
        let (created_unix_s, metadata) = (0, BTreeMap::new());
        let conversation = StoredKind::Conversation { created_unix_s, metadata };
        store.of(None).insert("conv_1", Vec::new(), conversation);
        let empty = locked(&store.0).bytes;
        let text = format!(r#"{{"input":"{}"}}"#, "x".repeat(1000));
        let sent = hob_wire::parse_response(text.as_bytes()).expect("a request");
        let items = sent.input.into_iter().map(|entry| match entry {
            hob_wire::InputEntry::Item(mut item) => {
                item.set_default_id("1_0");
                Arc::new(item)
            }
            hob_wire::InputEntry::Reference(_) => unreachable!("a text"),
        });
        store.of(None).append("conv_1", items.collect()).expect("a conversation");
        assert!(locked(&store.0).bytes > empty + 1000);
        assert_eq!(store.of(None).find_item("msg_1_0").expect("an item").id(), "msg_1_0");
        store.of(None).delete_item("conv_1", "msg_1_0".to_owned()).expect("an item");
        assert_eq!(locked(&store.0).bytes, empty);
        store.of(None).delete("conversation", "conv_1").expect("a conversation");
        assert_eq!(locked(&store.0).bytes, 0);
    }
}
