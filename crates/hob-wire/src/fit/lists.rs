//! Machines and models that can be assessed, models with their quants.
//! The first machine is the one that hob runs on.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::json;

/// A model that can be assessed.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct FitModel {
    pub name: String,
    /// Whether the files of the model are stored here, so that the answer describes them.
    pub installed: bool,
    /// The default quant.
    pub quant: String,
    /// The most bits first.
    pub quants: Vec<String>,
    /// Context length that it was trained with, tokens.
    pub trained_context: Option<u32>,
}

/// The answer of `GET /api/fit/machines`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct FitMachines<'a> {
    machines: Vec<FitMachine<'a>>,
}

/// A machine that can be assessed.
#[derive(JsonSchema, Serialize)]
struct FitMachine<'a> {
    name: &'a str,
}

/// The answer of `GET /api/fit/models`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct FitModels<'a> {
    models: &'a [FitModel],
}

/// `GET /api/fit/machines`.
pub fn fit_machines(names: &[String]) -> String {
    json(&FitMachines { machines: names.iter().map(|name| FitMachine { name }).collect() })
}

/// `GET /api/fit/models`.
pub fn fit_models(models: &[FitModel]) -> String {
    json(&FitModels { models })
}
