//! hob's own routes for models in memory: which are loaded, what they take, and how a load progresses.
//! Ollama's routes for the same are in `ollama/lists.rs`.

use hob_core::{KeepAlive, Kind, MemoryUse, ModelState, PoolUse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::keep_alive::{KeepAliveField, keep_alive};
use crate::lists::state_name;
use crate::ollama::rfc3339;
use crate::request_value::Name;

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
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
pub struct ResidentModels {
    pub models: Vec<ResidentModel>,
}

/// A line of `POST /api/hob/load` with `stream`, while the model loads.
#[derive(JsonSchema, Serialize)]
pub(crate) struct LoadingLine {
    /// `loading`.
    state: &'static str,
    ready_in_s: Option<f64>,
}

/// A model that hob itself holds, in memory or not.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
pub struct ResidentModel {
    pub name: String,
    /// `chat`, `speech` or `transcription`.
    pub kind: String,
    /// `warm`, `cold`, `loading` or `down`.
    pub state: String,
    pub ready_in_s: Option<f64>,
    /// Memory that the model takes now.
    pub resident_bytes: Option<u64>,
    /// Memory that hob expects the model to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_bytes: Option<u64>,
    /// Memory on graphics cards.
    pub vram_bytes: u64,
    /// Expected and taken memory in each pool, for the last load of a chat model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<ResidentPool>,
    /// Why the model is not where it was to be loaded, and where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_note: Option<String>,
    /// Requests that run.
    pub in_flight: usize,
    /// When hob unloads the model, as RFC 3339 writes it. Null: never.
    pub expires_at: Option<String>,
    pub context_length: Option<u32>,
    pub load_ms: Option<u64>,
}

/// What a load took of one memory pool, and what was predicted before it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
pub struct ResidentPool {
    /// `RAM`, or `GPU` and a number.
    pub pool: String,
    pub predicted_bytes: u64,
    /// Null: not loaded, or the system does not report it.
    pub taken_bytes: Option<u64>,
}

/// `GET /api/hob/ps`.
pub fn residents(models: Vec<ResidentModel>) -> String {
    json(&ResidentModels { models })
}

/// One model of that list, as `/api/hob/load` and `/api/hob/unload` return it.
pub fn resident(model: &ResidentModel) -> String {
    json(model)
}

/// A line about a load in progress.
pub fn loading_line(state: &ModelState) -> String {
    json(&LoadingLine { state: "loading", ready_in_s: ready_in_s(state) })
}

impl ResidentModel {
    /// Chat models have a context length.
    pub fn new(
        name: &str,
        kind: Kind,
        state: &ModelState,
        memory_use: MemoryUse,
        context_length: Option<u32>,
    ) -> ResidentModel {
        ResidentModel {
            name: name.to_owned(),
            kind: kind.name().to_owned(),
            state: state_name(state).to_owned(),
            ready_in_s: ready_in_s(state),
            resident_bytes: memory_use.resident_bytes,
            predicted_bytes: memory_use.predicted_bytes,
            vram_bytes: memory_use.vram_bytes,
            pools: memory_use.pools.iter().map(resident_pool).collect(),
            placement_note: memory_use.placement_note,
            in_flight: memory_use.in_flight,
            expires_at: memory_use.expires_at.map(rfc3339),
            context_length,
            load_ms: memory_use.load_took.map(|took| took.as_millis() as u64),
        }
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
