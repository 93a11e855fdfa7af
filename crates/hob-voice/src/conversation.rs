//! The items of a conversation in order, and what was heard of the spoken ones.
//! It decides where an item goes and what a truncation keeps. The session sends the events about it.

use std::time::Duration;

use hob_core::chat::Role;
use hob_core::realtime::{ItemBody, ItemContent, ItemPlace, RealtimeFault, RealtimeItem};

use crate::faults::{in_command, in_field, invalid, item_not_found};
use crate::limits::{ITEMS_MAX, PICTURE_BYTES_MAX, TEXT_BYTES_MAX};
use crate::prompt::is_silence;
use crate::spoken::SpokenText;

#[derive(Debug, Default)]
pub(crate) struct Conversation {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    item: RealtimeItem,
    spoken: Option<SpokenText>,
    is_left_out: bool,
}

impl Conversation {
    pub(crate) fn items(&self) -> impl Iterator<Item = &RealtimeItem> {
        self.entries.iter().map(|entry| &entry.item)
    }

    /// The items that a chat model reads.
    pub(crate) fn prompt_items(&self) -> impl Iterator<Item = &RealtimeItem> {
        self.entries.iter().filter(|entry| !entry.is_left_out).map(|entry| &entry.item)
    }

    pub(crate) fn prompt_bytes(&self) -> usize {
        self.prompt_items().map(text_bytes).sum()
    }

    /// Leaves at least the oldest item out of prompts, and more until the others have at most `bytes_max`. The user's last words
    /// and all after them always stay. What stays begins with words of the user, because templates want that; only calls
    /// whose results stay or may still come can be before them. `false`: there is nothing to leave out.
    pub(crate) fn leave_out(&mut self, bytes_max: usize) -> bool {
        let is_call = |entry: &Entry| matches!(entry.item.body, ItemBody::Call { .. });
        let oldest = self.entries.iter().position(|entry| !entry.is_left_out && !is_call(entry));
        let Some(oldest) = oldest else { return false };
        let (mut bytes, mut cut) = (0, None);
        for (at, entry) in self.entries.iter().enumerate().skip(oldest + 1).rev() {
            if entry.is_left_out {
                continue;
            }
            bytes += text_bytes(&entry.item);
            if bytes > bytes_max && cut.is_some() {
                break;
            }
            if is_question(&entry.item) {
                cut = Some(at);
            }
        }
        let Some(cut) = cut else { return false };
        for at in 0..cut {
            let item = &self.entries[at].item;
            let has_result = self.entries[..cut].iter().any(|entry| is_result(&entry.item, item));
            self.entries[at].is_left_out |= has_result || !is_call(&self.entries[at]);
            if self.entries[at].is_left_out {
                self.entries[at].item.reasoning = None;
            }
        }
        true
    }

    pub(crate) fn get(&self, id: &str) -> Result<&RealtimeItem, RealtimeFault> {
        self.items().find(|item| item.id == id).ok_or_else(|| item_not_found(id))
    }

    pub(crate) fn last_id(&self) -> Option<String> {
        self.entries.last().map(|entry| entry.item.id.clone())
    }

    pub(crate) fn id_before(&self, id: &str) -> Option<String> {
        let at = self.place(id).ok()?;
        self.entries[..at].last().map(|entry| entry.item.id.clone())
    }

    /// Inserts an item of the client.
    pub(crate) fn insert(
        &mut self,
        item: RealtimeItem,
        place: &ItemPlace,
    ) -> Result<(), RealtimeFault> {
        if self.place(&item.id).is_ok() {
            let message = format!("the conversation already has an item '{}'", item.id);
            return Err(invalid("item_already_exists", message, Some("item.id")));
        }
        self.check_count()?;
        self.check_call(&item)?;
        let at = match place {
            ItemPlace::Last => self.entries.len(),
            ItemPlace::First => 0,
            ItemPlace::After(id) => {
                self.place(id).map_err(|fault| in_field(fault, "previous_item_id"))? + 1
            }
        };
        self.entries.insert(at, Entry { item, spoken: None, is_left_out: false });
        Ok(())
    }

    /// Appends an item of the session. If there is no room, removes the oldest item, and returns its id.
    pub(crate) fn append(&mut self, item: RealtimeItem) -> Option<String> {
        let is_full = self.entries.len() >= ITEMS_MAX;
        let oldest = is_full.then(|| self.entries.remove(0).item.id);
        self.entries.push(Entry { item, spoken: None, is_left_out: false });
        oldest
    }

    /// Replaces an item that has changed, if the conversation still has it.
    pub(crate) fn replace(&mut self, item: RealtimeItem, spoken: Option<SpokenText>) {
        if let Ok(at) = self.place(&item.id) {
            let is_left_out = self.entries[at].is_left_out;
            self.entries[at] = Entry { item, spoken, is_left_out };
        }
    }

    pub(crate) fn remove(&mut self, id: &str) -> Result<(), RealtimeFault> {
        let at = self.place(id).map_err(|fault| in_command(fault, "delete"))?;
        self.entries.remove(at);
        Ok(())
    }

    pub(crate) fn set_transcript(&mut self, id: &str, text: &str) {
        if let Ok(at) = self.place(id)
            && let ItemBody::Message { content, .. } = &mut self.entries[at].item.body
        {
            *content = vec![ItemContent::InputAudio { transcript: Some(text.to_owned()) }];
        }
    }

    pub(crate) fn spoken(&self, id: &str) -> Option<&SpokenText> {
        self.entries.iter().find(|entry| entry.item.id == id)?.spoken.as_ref()
    }

    /// Cuts a spoken item to the words of the first `heard` of its sound.
    pub(crate) fn truncate(&mut self, id: &str, heard: Duration) -> Result<(), RealtimeFault> {
        let at = self.place(id).map_err(|fault| in_command(fault, "truncate"))?;
        let entry = &mut self.entries[at];
        let (Some(spoken), ItemBody::Message { content, .. }) =
            (&entry.spoken, &mut entry.item.body)
        else {
            let message = format!("item '{id}' holds no sound of the assistant");
            return Err(invalid("invalid_value", message, Some("item_id")));
        };
        // OpenAI's agents SDK for Python rounds the length of the sound up.
        let (length, end) = (spoken.length().as_micros().div_ceil(1_000), heard.as_millis());
        if end > length {
            let message = format!("the sound has {length} ms and cannot be cut at {end} ms");
            return Err(invalid("invalid_value", message, Some("audio_end_ms")));
        }
        let transcript = spoken.text_heard(heard).to_owned();
        *content = vec![ItemContent::OutputAudio { transcript }];
        Ok(())
    }

    /// Checks that `bytes` more bytes of text fit.
    pub(crate) fn check_text(&self, bytes: usize) -> Result<(), RealtimeFault> {
        let text: usize = self.items().map(text_bytes).sum();
        if text + bytes > TEXT_BYTES_MAX {
            let message = format!(
                "a conversation holds up to {TEXT_BYTES_MAX} bytes of text: delete items first"
            );
            return Err(invalid("conversation_full", message, None));
        }
        Ok(())
    }

    /// Checks that the pictures of an item fit.
    pub(crate) fn check_pictures(&self, item: &RealtimeItem) -> Result<(), RealtimeFault> {
        let bytes: usize = self.items().chain([item]).map(picture_bytes).sum();
        if bytes > PICTURE_BYTES_MAX {
            let message = format!(
                "a conversation holds up to {PICTURE_BYTES_MAX} bytes of pictures: delete items first"
            );
            return Err(invalid("conversation_full", message, Some("item.content")));
        }
        Ok(())
    }

    fn check_count(&self) -> Result<(), RealtimeFault> {
        if self.entries.len() >= ITEMS_MAX {
            let message =
                format!("a conversation holds up to {ITEMS_MAX} items: delete items first");
            return Err(invalid("conversation_full", message, None));
        }
        Ok(())
    }

    fn check_call(&self, item: &RealtimeItem) -> Result<(), RealtimeFault> {
        let ItemBody::CallOutput { call_id: wanted, .. } = &item.body else {
            return Ok(());
        };
        let is_call = |item: &RealtimeItem| matches!(&item.body, ItemBody::Call { call_id, .. } if call_id == wanted);
        if self.items().any(is_call) {
            return Ok(());
        }
        let message = format!("the conversation has no call '{wanted}'");
        Err(invalid("call_not_found", message, Some("item.call_id")))
    }

    fn place(&self, id: &str) -> Result<usize, RealtimeFault> {
        let place = self.entries.iter().position(|entry| entry.item.id == id);
        place.ok_or_else(|| item_not_found(id))
    }
}

/// A turn of the user that is not silence.
fn is_question(item: &RealtimeItem) -> bool {
    matches!(item.body, ItemBody::Message { role: Role::User, .. }) && !is_silence(item)
}

fn is_result(output: &RealtimeItem, of: &RealtimeItem) -> bool {
    matches!((&output.body, &of.body),
        (ItemBody::CallOutput { call_id: wanted, .. }, ItemBody::Call { call_id, .. }) if wanted == call_id)
}

/// Bytes of an item that a chat model reads.
fn text_bytes(item: &RealtimeItem) -> usize {
    item.text().len() + item.reasoning.as_ref().map_or(0, String::len)
}

fn picture_bytes(item: &RealtimeItem) -> usize {
    let ItemBody::Message { content, .. } = &item.body else { return 0 };
    let bytes = content.iter().map(|part| match part {
        ItemContent::InputImage { url, .. } => url.len(),
        _ => 0,
    });
    bytes.sum()
}
