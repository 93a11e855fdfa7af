//! Machines and models that can be assessed, models with their quants.
//! The first machine is the one that hob runs on.

use serde::Serialize;

use crate::error::json;

/// A model that can be assessed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FitModel {
    pub name: String,
    /// Its files are stored here, and the answer describes them.
    pub installed: bool,
    /// The default quant.
    pub quant: String,
    /// The most bits first.
    pub quants: Vec<String>,
    /// Context length that it was trained with, tokens.
    pub trained_context: Option<u32>,
}

/// `GET /api/fit/machines`.
pub fn fit_machines(names: &[String]) -> String {
    #[derive(Serialize)]
    struct Machines<'a> {
        machines: Vec<Named<'a>>,
    }
    #[derive(Serialize)]
    struct Named<'a> {
        name: &'a str,
    }
    json(&Machines { machines: names.iter().map(|name| Named { name }).collect() })
}

/// `GET /api/fit/models`.
pub fn fit_models(models: &[FitModel]) -> String {
    #[derive(Serialize)]
    struct Models<'a> {
        models: &'a [FitModel],
    }
    json(&Models { models })
}
