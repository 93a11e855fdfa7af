//! hob's own words for being in memory: what is there, what it takes, and how loading goes.
//! Ollama's words for the same are in `ollama/lists.rs`.

use hob_core::{KeepAlive, MemoryUse, ModelState};
use serde::Serialize;

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::keep_alive::keep_alive;
use crate::lists::state_name;
use crate::ollama::rfc3339;

/// A model that hob itself holds, in memory or not.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidentEntry {
    pub name: String,
    /// `speech` or `chat`.
    pub kind: &'static str,
    pub state: ModelState,
    pub memory_use: MemoryUse,
    /// Chat models have one.
    pub context_tokens: Option<u32>,
}

/// What `/api/hob/load` and `/api/hob/unload` are asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidenceWish {
    pub model: String,
    pub keep_alive: Option<KeepAlive>,
    /// Whether the way there is told, line by line, or only the end.
    pub is_told: bool,
    /// Fields without effect.
    pub ignored: Vec<String>,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_residence(body: &[u8]) -> Result<ResidenceWish, WireError> {
    let mut fields = Fields::parse(body)?;
    let model = fields.name("model")?.ok_or(WireError::Missing { field: "model" })?;
    let keep_alive = keep_alive(&mut fields)?;
    let is_told = fields.flag("stream")?.unwrap_or(false);
    Ok(ResidenceWish { model, keep_alive, is_told, ignored: fields.into_unknown() })
}

#[derive(Serialize)]
pub(crate) struct Entry<'a> {
    name: &'a str,
    kind: &'static str,
    state: &'static str,
    ready_in_s: Option<f64>,
    resident_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_bytes: Option<u64>,
    vram_bytes: u64,
    in_flight: usize,
    expires_at: Option<String>,
    context_length: Option<u32>,
    load_ms: Option<u64>,
}

/// `GET /api/hob/ps`.
pub fn residents(entries: &[ResidentEntry]) -> String {
    #[derive(Serialize)]
    struct Models<'a> {
        models: Vec<Entry<'a>>,
    }
    json(&Models { models: entries.iter().map(entry).collect() })
}

/// One of them.
pub fn resident(resident: &ResidentEntry) -> String {
    json(&entry(resident))
}

/// A line of a loading that goes on.
pub fn loading_line(state: &ModelState) -> String {
    #[derive(Serialize)]
    struct Loading {
        state: &'static str,
        ready_in_s: Option<f64>,
    }
    json(&Loading { state: "loading", ready_in_s: ready_in_s(state) })
}

pub(crate) fn entry(resident: &ResidentEntry) -> Entry<'_> {
    let MemoryUse { resident_bytes, predicted_bytes, vram_bytes, in_flight, expires_at, load_took } =
        resident.memory_use.clone();
    Entry {
        name: &resident.name,
        kind: resident.kind,
        state: state_name(&resident.state),
        ready_in_s: ready_in_s(&resident.state),
        resident_bytes,
        predicted_bytes,
        vram_bytes,
        in_flight,
        expires_at: expires_at.map(rfc3339),
        context_length: resident.context_tokens,
        load_ms: load_took.map(|took| took.as_millis() as u64),
    }
}

fn ready_in_s(state: &ModelState) -> Option<f64> {
    match state {
        ModelState::Loading { ready_in } => Some(ready_in.as_secs_f64()),
        ModelState::Cold | ModelState::Ready | ModelState::Down { .. } => None,
    }
}
