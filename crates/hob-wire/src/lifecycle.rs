//! hob's own routes for models in memory: which are loaded, what they take, and how a load progresses.
//! Ollama's routes for the same are in `ollama/lists.rs`.

use hob_core::{KeepAlive, MemoryUse, ModelState, PoolUse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::keep_alive::{KeepAliveField, keep_alive};
use crate::lists::state_name;
use crate::ollama::rfc3339;
use crate::request_value::Name;

/// A model that hob itself holds, in memory or not.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidentEntry {
    pub name: String,
    /// `chat`, `speech` or `transcription`.
    pub kind: &'static str,
    pub state: ModelState,
    pub memory_use: MemoryUse,
    /// Chat models have one.
    pub context_tokens: Option<u32>,
}

/// A request of `/api/hob/load` or `/api/hob/unload`.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidenceRequest {
    pub model: String,
    pub keep_alive: Option<KeepAlive>,
    /// Whether the answer reports the progress in lines. Otherwise it reports only the end.
    pub reports_progress: bool,
    /// Fields without effect.
    pub ignored: Vec<String>,
}

/// The fields of `POST /api/hob/load` and `POST /api/hob/unload`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ResidenceFields {
    /// A model that hob itself holds.
    model: Name,
    /// How long the model stays in memory after its last request: seconds, or a duration such as `5m`. Below zero: for ever.
    #[serde(default, deserialize_with = "keep_alive")]
    #[schemars(with = "Option<KeepAliveField>")]
    keep_alive: Option<KeepAlive>,
    /// `true` reports the progress in lines of JSON. Default: `false`.
    stream: Option<bool>,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_residence(body: &[u8]) -> Result<ResidenceRequest, WireError> {
    let mut fields = Fields::parse(body)?;
    let ResidenceFields { model, keep_alive, stream } = fields.read()?;
    let reports_progress = stream.unwrap_or(false);
    Ok(ResidenceRequest {
        model: model.0,
        keep_alive,
        reports_progress,
        ignored: fields.into_unknown(),
    })
}

/// The answer of `GET /api/hob/ps`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ResidentModels<'a> {
    models: Vec<ResidentModel<'a>>,
}

/// A line of `POST /api/hob/load` with `stream`, while the model loads.
#[derive(JsonSchema, Serialize)]
pub(crate) struct LoadingLine {
    /// `loading`.
    state: &'static str,
    ready_in_s: Option<f64>,
}

/// A model that hob itself holds, in memory or not.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ResidentModel<'a> {
    name: &'a str,
    /// `chat`, `speech` or `transcription`.
    kind: &'static str,
    /// `warm`, `cold`, `loading` or `down`.
    state: &'static str,
    ready_in_s: Option<f64>,
    /// Memory that the model takes now.
    resident_bytes: Option<u64>,
    /// Memory that hob expects the model to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_bytes: Option<u64>,
    /// Memory on graphics cards.
    vram_bytes: u64,
    /// Expected and taken memory in each pool, for the last load of a chat model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pools: Vec<ResidentPool>,
    /// Why the model is not where it was to be loaded, and where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement_note: Option<String>,
    /// Requests that run.
    in_flight: usize,
    /// When hob unloads the model, as RFC 3339 writes it. Null: never.
    expires_at: Option<String>,
    context_length: Option<u32>,
    load_ms: Option<u64>,
}

/// What a load took of one memory pool, and what was predicted before it.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ResidentPool {
    /// `RAM`, or `GPU` and a number.
    pool: String,
    predicted_bytes: u64,
    /// Null: not loaded, or the system does not report it.
    taken_bytes: Option<u64>,
}

/// `GET /api/hob/ps`.
pub fn residents(entries: &[ResidentEntry]) -> String {
    json(&ResidentModels { models: entries.iter().map(entry).collect() })
}

/// One model of that list, as `/api/hob/load` and `/api/hob/unload` return it.
pub fn resident(resident: &ResidentEntry) -> String {
    json(&entry(resident))
}

/// A line about a load in progress.
pub fn loading_line(state: &ModelState) -> String {
    json(&LoadingLine { state: "loading", ready_in_s: ready_in_s(state) })
}

pub(crate) fn entry(resident: &ResidentEntry) -> ResidentModel<'_> {
    let MemoryUse {
        resident_bytes,
        predicted_bytes,
        vram_bytes,
        pools,
        placement_note,
        in_flight,
        expires_at,
        load_took,
    } = resident.memory_use.clone();
    ResidentModel {
        name: &resident.name,
        kind: resident.kind,
        state: state_name(&resident.state),
        ready_in_s: ready_in_s(&resident.state),
        resident_bytes,
        predicted_bytes,
        vram_bytes,
        pools: pools.iter().map(resident_pool).collect(),
        placement_note,
        in_flight,
        expires_at: expires_at.map(rfc3339),
        context_length: resident.context_tokens,
        load_ms: load_took.map(|took| took.as_millis() as u64),
    }
}

fn resident_pool(used: &PoolUse) -> ResidentPool {
    let PoolUse { pool, predicted_bytes, taken_bytes } = *used;
    ResidentPool { pool: pool.to_string(), predicted_bytes, taken_bytes }
}

fn ready_in_s(state: &ModelState) -> Option<f64> {
    match state {
        ModelState::Loading { ready_in } => Some(ready_in.as_secs_f64()),
        ModelState::Cold | ModelState::Ready | ModelState::Down { .. } => None,
    }
}
