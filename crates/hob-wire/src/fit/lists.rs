//! What may be chosen: machines by their names, and models with the quants that they are known in.
//! The first machine is the one that this hob runs on.

use serde::Serialize;

use crate::error::json;

/// A model that can be asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FitModel {
    pub name: String,
    /// Its files are here: what is said of it is of the file.
    pub installed: bool,
    /// The one that is meant where none is named.
    pub quant: String,
    /// The most bits first.
    pub quants: Vec<String>,
    /// Tokens that it was trained with.
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
