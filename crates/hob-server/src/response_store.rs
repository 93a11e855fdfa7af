//! Stored responses and conversations, in memory, within a limit of bytes. A restart forgets them.
//! Each belongs to the key that made it. The key that has the most loses the one that was used least recently.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

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
    /// Stores an entry, unless it alone exceeds the limit.
    pub(crate) fn insert(&self, owner: Option<String>, id: &str, items: Items, kind: StoredKind) {
        let mut entries = locked(&self.0);
        let mut entry = Entry { owner, items, kind, bytes: 0, last_use: entries.next_use() };
        entry.bytes = entry.size_bytes();
        if entry.bytes > BYTES_MAX {
            return;
        }
        entries.bytes += entry.bytes;
        entries.by_id.insert(id.to_owned(), entry);
        entries.evict();
    }

    /// The items that come before a request.
    ///
    /// # Errors
    /// The caller has no such response or conversation.
    pub(crate) fn before(
        &self,
        owner: Option<&str>,
        source: &ResponseSource,
    ) -> Result<Items, ApiError> {
        let mut entries = locked(&self.0);
        match source {
            ResponseSource::Nothing => Ok(Vec::new()),
            ResponseSource::Response(id) => {
                let found = entries.find(owner, "response", id);
                let found = found.map_err(|_| ApiError::NoPrevious { id: id.clone() })?;
                Ok(found.items.clone())
            }
            ResponseSource::Conversation(id) => {
                Ok(entries.find(owner, "conversation", id)?.items.clone())
            }
        }
    }

    /// A response as it was answered.
    ///
    /// # Errors
    /// The caller has no such response.
    pub(crate) fn response(
        &self,
        owner: Option<&str>,
        id: &str,
    ) -> Result<Arc<ResponseAnswer>, ApiError> {
        match &locked(&self.0).find(owner, "response", id)?.kind {
            StoredKind::Response { answer, .. } => Ok(Arc::clone(answer)),
            StoredKind::Conversation { .. } => Err(not_stored("response", id)),
        }
    }

    /// What a response answers.
    ///
    /// # Errors
    /// The caller has no such response.
    pub(crate) fn input(&self, owner: Option<&str>, id: &str) -> Result<Items, ApiError> {
        let mut entries = locked(&self.0);
        let found = entries.find(owner, "response", id)?;
        match found.kind {
            StoredKind::Response { input, .. } => Ok(found.items[..input].to_vec()),
            StoredKind::Conversation { .. } => Err(not_stored("response", id)),
        }
    }

    /// A conversation as JSON.
    ///
    /// # Errors
    /// The caller has no such conversation.
    pub(crate) fn conversation(&self, owner: Option<&str>, id: &str) -> Result<String, ApiError> {
        match &locked(&self.0).find(owner, "conversation", id)?.kind {
            StoredKind::Conversation { created_unix_s, metadata } => {
                Ok(hob_wire::conversation(id, *created_unix_s, metadata))
            }
            StoredKind::Response { .. } => Err(not_stored("conversation", id)),
        }
    }

    /// # Errors
    /// The caller has no such conversation.
    pub(crate) fn set_metadata(
        &self,
        owner: Option<&str>,
        id: &str,
        new: BTreeMap<String, String>,
    ) -> Result<(), ApiError> {
        self.change(owner, id, |entry| {
            if let StoredKind::Conversation { metadata, .. } = &mut entry.kind {
                *metadata = new;
            }
        })
    }

    /// Adds items to a conversation.
    ///
    /// # Errors
    /// The caller has no such conversation.
    pub(crate) fn append(
        &self,
        owner: Option<&str>,
        id: &str,
        items: Items,
    ) -> Result<(), ApiError> {
        self.change(owner, id, |entry| entry.items.extend(items))
    }

    /// Removes an item from a conversation.
    ///
    /// # Errors
    /// The caller has no such conversation, or it has no such item.
    pub(crate) fn delete_item(
        &self,
        owner: Option<&str>,
        id: &str,
        item: String,
    ) -> Result<(), ApiError> {
        let mut removed = 0;
        self.change(owner, id, |entry| {
            let before = entry.items.len();
            entry.items.retain(|one| one.id() != item);
            removed = before - entry.items.len();
        })?;
        if removed == 0 { Err(ApiError::NotStored { what: "item", id: item }) } else { Ok(()) }
    }

    /// # Errors
    /// The caller has no such entry.
    pub(crate) fn delete(
        &self,
        owner: Option<&str>,
        what: &'static str,
        id: &str,
    ) -> Result<(), ApiError> {
        let mut entries = locked(&self.0);
        entries.find(owner, what, id)?;
        entries.remove(id);
        Ok(())
    }

    /// An item by its id, which holds the id of the response or conversation that it was made for.
    ///
    /// # Errors
    /// No entry of the caller has such an item.
    pub(crate) fn find_item(
        &self,
        owner: Option<&str>,
        id: &str,
    ) -> Result<Arc<ResponseItem>, ApiError> {
        let made_for = id.split('_').nth(1).unwrap_or_default();
        let mut entries = locked(&self.0);
        for (what, prefix) in [("response", "resp"), ("conversation", "conv")] {
            if let Ok(entry) = entries.find(owner, what, &format!("{prefix}_{made_for}"))
                && let Some(item) = entry.items.iter().find(|item| item.id() == id)
            {
                return Ok(Arc::clone(item));
            }
        }
        Err(not_stored("item", id))
    }

    fn change(
        &self,
        owner: Option<&str>,
        id: &str,
        change: impl FnOnce(&mut Entry),
    ) -> Result<(), ApiError> {
        let mut entries = locked(&self.0);
        let entry = entries.find(owner, "conversation", id)?;
        change(entry);
        let bytes = entry.size_bytes();
        let before = std::mem::replace(&mut entry.bytes, bytes);
        entries.bytes = entries.bytes - before + bytes;
        entries.evict();
        Ok(())
    }
}

impl Entries {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// An entry of this kind. An entry of another key counts as absent.
    fn find(
        &mut self,
        owner: Option<&str>,
        what: &'static str,
        id: &str,
    ) -> Result<&mut Entry, ApiError> {
        let last_use = self.next_use();
        let found = self.by_id.get_mut(id);
        let found = found.filter(|entry| entry.owner.as_deref() == owner && entry.what() == what);
        let entry = found.ok_or_else(|| not_stored(what, id))?;
        entry.last_use = last_use;
        Ok(entry)
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
        store.response(None, id).is_ok()
    }

    #[test]
    fn the_response_that_was_used_least_recently_goes_first() {
        let store = ResponseStore::default();
        let third = (BYTES_MAX >> 10) / 3 - 8;
        for id in ["a", "b", "c"] {
            store.insert(None, id, Vec::new(), response(third));
        }
        assert!(has(&store, "a"), "all three have room");
        store.insert(None, "d", Vec::new(), response(third));
        assert_eq!(["a", "b", "c", "d"].map(|id| has(&store, id)), [true, false, true, true]);
        store.insert(None, "huge", Vec::new(), response(BYTES_MAX >> 10));
        assert_eq!(["huge", "d"].map(|id| has(&store, id)), [false, true]);
    }

    #[test]
    fn a_key_that_stores_much_drops_nothing_of_another_key() {
        let store = ResponseStore::default();
        let third = (BYTES_MAX >> 10) / 3 - 8;
        store.insert(Some("phone".to_owned()), "a", Vec::new(), response(third));
        for id in ["b", "c", "d"] {
            store.insert(None, id, Vec::new(), response(third));
        }
        assert!(store.response(Some("phone"), "a").is_ok());
        assert_eq!(["b", "c", "d"].map(|id| has(&store, id)), [false, true, true]);
        for number in 0..ENTRIES_MAX {
            store.insert(None, &number.to_string(), Vec::new(), response(0));
        }
        assert!(store.response(Some("phone"), "a").is_ok());
    }

    #[test]
    fn what_is_removed_is_no_longer_counted() {
        let store = ResponseStore::default();
        let (created_unix_s, metadata) = (0, BTreeMap::new());
        let conversation = StoredKind::Conversation { created_unix_s, metadata };
        store.insert(None, "conv_1", Vec::new(), conversation);
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
        store.append(None, "conv_1", items.collect()).expect("a conversation");
        assert!(locked(&store.0).bytes > empty + 1000);
        assert_eq!(store.find_item(None, "msg_1_0").expect("an item").id(), "msg_1_0");
        store.delete_item(None, "conv_1", "msg_1_0".to_owned()).expect("an item");
        assert_eq!(locked(&store.0).bytes, empty);
        store.delete(None, "conversation", "conv_1").expect("a conversation");
        assert_eq!(locked(&store.0).bytes, 0);
    }
}
