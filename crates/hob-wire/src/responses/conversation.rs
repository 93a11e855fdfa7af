//! Conversations of the Responses API: stored lists of items, and the pages in which a client reads them.
//! Stored responses list their input in the same pages.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::item::{InputEntry, InputItem, ResponseItem};
use super::{checked_metadata, read_items};
use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::request_value::Name;

/// Items of a page: OpenAI's bound and default.
const PAGE_MAX: usize = 100;
const PAGE_DEFAULT: usize = 20;

/// A new conversation, or new metadata of one.
#[derive(Debug, Default)]
pub struct WireConversation {
    pub items: Vec<InputEntry>,
    pub metadata: BTreeMap<String, String>,
}

/// A part of a list of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemPage {
    /// The id of the item before the page.
    pub after: Option<String>,
    /// 1 to 100.
    pub limit: usize,
    pub order: ItemOrder,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ItemOrder {
    /// The oldest item first.
    Asc,
    /// The newest item first.
    #[default]
    Desc,
}

/// The fields of `POST /v1/conversations` and of `POST /v1/conversations/{id}`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ConversationFields {
    /// The first items of a new conversation.
    items: Option<Vec<InputItem>>,
    /// Up to 16 names of 64 characters, each with a text of 512 characters.
    metadata: Option<BTreeMap<String, String>>,
}

/// The field of `POST /v1/conversations/{id}/items`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ConversationItemFields {
    /// The new items, at most 10,000.
    items: Vec<InputItem>,
}

/// Which items of a list a client wants.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ItemListFields {
    /// The id of the item before the first one.
    after: Option<Name>,
    /// 1 to 100. Default: 20.
    limit: Option<String>,
    /// `asc` or `desc`. Default: `desc`.
    order: Option<ItemOrder>,
}

/// A conversation.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ShownConversation<'a> {
    id: &'a str,
    object: &'static str,
    /// Seconds since 1970.
    created_at: u64,
    metadata: &'a BTreeMap<String, String>,
}

/// A page of items.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ResponseItemList<'a> {
    object: &'static str,
    data: Vec<&'a ResponseItem>,
    first_id: &'a str,
    last_id: &'a str,
    has_more: bool,
}

/// A response, a conversation, a run or a model that was deleted.
#[derive(JsonSchema, Serialize)]
pub(crate) struct DeletedObject<'a> {
    pub(crate) id: &'a str,
    pub(crate) object: &'static str,
    pub(crate) deleted: bool,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_conversation(body: &[u8]) -> Result<WireConversation, WireError> {
    // Clients send no body at all for a conversation without items.
    if body.is_empty() {
        return Ok(WireConversation::default());
    }
    let sent: ConversationFields = Fields::parse(body)?.read()?;
    Ok(WireConversation {
        items: read_items("items", sent.items.unwrap_or_default())?,
        metadata: checked_metadata(sent.metadata)?,
    })
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_conversation_items(body: &[u8]) -> Result<Vec<InputEntry>, WireError> {
    let sent: ConversationItemFields = Fields::parse(body)?.read()?;
    read_items("items", sent.items)
}

/// Reads the query of a list of items.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_item_page(pairs: &[(String, String)]) -> Result<ItemPage, WireError> {
    let members = pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let sent: ItemListFields = Fields::of(members.collect()).read()?;
    let limit = match sent.limit {
        None => PAGE_DEFAULT,
        Some(limit) => {
            let limit = limit.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
            let reason = format!("must be a whole number from 1 to {PAGE_MAX}");
            limit.ok_or_else(|| WireError::invalid("limit", reason))?
        }
    };
    let after = sent.after.map(|after| after.0);
    Ok(ItemPage { after, limit, order: sent.order.unwrap_or_default() })
}

impl ItemPage {
    /// The page as JSON. An unknown `after` gives the first page.
    pub fn of<'a>(&self, items: impl DoubleEndedIterator<Item = &'a ResponseItem>) -> String {
        let ordered: Vec<&ResponseItem> = match self.order {
            ItemOrder::Asc => items.collect(),
            ItemOrder::Desc => items.rev().collect(),
        };
        let after = |after: &String| ordered.iter().position(|item| item.id() == after);
        let start = self.after.as_ref().and_then(after).map_or(0, |place| place + 1);
        let rest = &ordered[start..];
        let shown = &rest[..rest.len().min(self.limit)];
        response_items(shown, shown.len() < rest.len())
    }
}

/// A list of items.
pub fn response_items(items: &[&ResponseItem], has_more: bool) -> String {
    json(&ResponseItemList {
        object: "list",
        data: items.to_vec(),
        first_id: items.first().map_or("", |item| item.id()),
        last_id: items.last().map_or("", |item| item.id()),
        has_more,
    })
}

/// A conversation without its items.
pub fn conversation(id: &str, created_at: u64, metadata: &BTreeMap<String, String>) -> String {
    json(&ShownConversation { id, object: "conversation", created_at, metadata })
}

pub fn response_deleted(id: &str) -> String {
    json(&DeletedObject { id, object: "response", deleted: true })
}

pub fn run_deleted(id: &str) -> String {
    json(&DeletedObject { id, object: "run.deleted", deleted: true })
}

pub fn conversation_deleted(id: &str) -> String {
    json(&DeletedObject { id, object: "conversation.deleted", deleted: true })
}
