//! JSON of `/api/fit` and `hob fit --json`: where a model would live on a machine, how fast it would be, and why.
//! Unknown figures are null, never 0. Every figure states its basis.

mod constants;
mod lists;
mod machine;
mod plan;
mod rate;
mod request;
mod verdict;

use hob_core::KvTypes;
use hob_core::fit::{
    Alternative, Assessment, ComputeSite, ContextLimit, FitOptions, Longest, Model, Use,
};
use hob_core::machine::Machine;
use schemars::JsonSchema;
use serde::Serialize;

use self::constants::{FitConstant, constants};
use self::machine::{FitMachineDetails, FitModelDetails};
use self::plan::{FitPlacement, FitPlan, placement};
use crate::error::json;

pub(crate) use self::lists::{FitMachines, FitModels};
pub use self::lists::{FitModel, fit_machines, fit_models};
pub(crate) use self::request::FitFields;
pub use self::request::{FitRequest, parse_fit, parse_fit_query};

/// The answer for one model on one machine.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct FitAnswer {
    /// One sentence for people.
    pub verdict: String,
    pub fits: bool,
    machine: FitMachineDetails,
    model: FitModelDetails,
    /// One plan of each placement, the best first.
    plans: Vec<FitPlan>,
    /// Longest context of the first plan's placement, for each pair of KV types that its engine takes.
    longest: Vec<LongestContext>,
    /// What would be faster, longer or more exact: at most one of each. If the model does not fit, the one that `fits`.
    alternatives: Vec<FitAlternative>,
    constants: Vec<FitConstant>,
}

/// Longest context with these KV types.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct LongestContext {
    kv_k: &'static str,
    kv_v: &'static str,
    max: Option<u32>,
    limited_by: String,
}

/// The same model in another quant, or with another KV cache.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitAlternative {
    toward: &'static str,
    quant: String,
    kv_k: &'static str,
    kv_v: &'static str,
    placement: FitPlacement,
    tok_s: Option<f64>,
    max: Option<u32>,
    bytes: u64,
}

impl FitAnswer {
    pub fn of(
        machine: &Machine,
        model: &Model,
        assessment: &Assessment,
        options: &FitOptions,
    ) -> FitAnswer {
        let Assessment { plans, longest, alternatives, warnings } = assessment;
        let shape = |plan| FitPlan::of(machine, model, plan, options);
        let first = plans.first().map(|plan| shape(plan).warned(warnings));
        let sites = plans.first().map(|plan| plan.layout.sites()).unwrap_or_default();
        FitAnswer {
            verdict: verdict::of(machine, model, assessment),
            fits: assessment.best().is_some(),
            machine: FitMachineDetails::of(machine),
            model: FitModelDetails::of(model),
            plans: first.into_iter().chain(plans.iter().skip(1).map(shape)).collect(),
            longest: longest.iter().map(|(kv, longest)| longest_of(*kv, longest)).collect(),
            alternatives: alternatives.iter().map(alternative).collect(),
            constants: constants(machine, &sites),
        }
    }

    /// Adds engine version and date of a site's calibration.
    #[must_use]
    pub fn stamped(mut self, site: ComputeSite, engine_version: &str, date: &str) -> FitAnswer {
        constants::stamp(&mut self.constants, site, engine_version, date);
        self
    }

    /// Adds the source of a site's published figures.
    #[must_use]
    pub fn sourced(mut self, site: ComputeSite, source: &str) -> FitAnswer {
        constants::source(&mut self.constants, site, source);
        self
    }

    pub fn to_json(&self) -> String {
        json(self)
    }
}

fn longest_of(kv: KvTypes, longest: &Longest) -> LongestContext {
    LongestContext {
        kv_k: kv.keys.name(),
        kv_v: kv.values.name(),
        max: longest.context_tokens,
        limited_by: limited_by(longest.limit),
    }
}

fn alternative(one: &Alternative) -> FitAlternative {
    let Alternative { toward, quant, plan } = one;
    FitAlternative {
        toward: toward.name(),
        quant: quant.clone(),
        kv_k: plan.kv.keys.name(),
        kv_v: plan.kv.values.name(),
        placement: placement(plan),
        tok_s: plan.decode_requested.as_ref().map(|rate| rate::shortly(rate.tok_s)),
        max: plan.longest.context_tokens,
        bytes: plan.uses.iter().map(Use::kept_bytes).sum(),
    }
}

/// `trained`, or the pool that is full.
fn limited_by(limit: ContextLimit) -> String {
    match limit {
        ContextLimit::Trained => "trained".to_owned(),
        ContextLimit::Memory(pool) => pool.to_string(),
    }
}

#[cfg(test)]
mod tests;
