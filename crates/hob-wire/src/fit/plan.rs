//! One way to run a model: memory in each pool, context, speed, and warnings.
//! Flags are commands or configuration of each engine.

use hob_core::fit::{
    CONTEXTS, FitOptions, LaunchText, MemoryTerm, Model, Placement, Plan, Pool, Rate, Use, Warning,
    flags, warnings,
};
use hob_core::machine::Machine;
use schemars::JsonSchema;
use serde::Serialize;

use super::limited_by;
use super::rate::{FitPrefill, FitRate};

/// One way to run the model.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub(super) struct FitPlan {
    quant: String,
    format: &'static str,
    engine: &'static str,
    kv_k: &'static str,
    kv_v: &'static str,
    placement: FitPlacement,
    flags: Vec<FitFlags>,
    fits: bool,
    memory: FitMemory,
    context: FitContext,
    /// Speeds at the usual contexts, up to the trained or requested one.
    decode: Vec<FitRate>,
    decode_requested: FitRate,
    prefill: Vec<FitPrefill>,
    warnings: Vec<FitWarning>,
}

/// Where the layers of the model lie.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub(super) struct FitPlacement {
    /// `vram`, `unified`, `ram`, `experts_in_ram` or `split`.
    kind: &'static str,
    /// Layers on cards, or layers whose experts are in system memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<u32>,
    text: String,
}

/// How to start an engine with this plan.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitFlags {
    engine: &'static str,
    text: String,
}

/// Sums over all pools. Whether the plan fits is decided for each pool.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitMemory {
    terms: Vec<FitTerm>,
    need: u64,
    free: u64,
    margin: u64,
    pools: Vec<FitPool>,
}

/// A part of the memory.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitTerm {
    name: &'static str,
    pool: String,
    bytes: u64,
    formula: &'static str,
    basis: &'static str,
}

/// Memory of one kind: need, free, margin.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitPool {
    pool: String,
    /// Name for people.
    name: String,
    need: u64,
    /// Part of `need` that the system can take back, and that does not count against `free`.
    reclaimable: u64,
    free: u64,
    margin: u64,
    lacks: u64,
    fits: bool,
}

/// The requested context and the longest one.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitContext {
    requested: u32,
    /// Null if not even the shortest context fits.
    max: Option<u32>,
    limited_by: String,
}

/// A warning, and what to do.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitWarning {
    code: &'static str,
    text: String,
    action: String,
}

impl FitPlan {
    pub(super) fn of(
        machine: &Machine,
        model: &Model,
        plan: &Plan,
        options: &FitOptions,
    ) -> FitPlan {
        let (requested, max) = (plan.context_tokens, plan.longest.context_tokens);
        let texts = flags(machine, model, plan, options.sequences);
        let warned = warnings(machine, model, options, plan);
        FitPlan {
            quant: model.quant.clone(),
            format: model.format.name(),
            engine: plan.engine.name(),
            kv_k: plan.kv.keys.name(),
            kv_v: plan.kv.values.name(),
            placement: placement(plan),
            flags: texts.into_iter().map(flags_of).collect(),
            fits: plan.fits(),
            memory: memory(machine, plan),
            context: FitContext { requested, max, limited_by: limited_by(plan.longest.limit) },
            decode: decode(plan),
            decode_requested: FitRate::of(requested, plan.decode_requested.as_ref()),
            prefill: vec![FitPrefill::of(requested, plan.prefill.as_ref())],
            warnings: warned.into_iter().map(warning).collect(),
        }
    }

    /// Adds warnings that depend on the other plans.
    pub(super) fn warned(self, warnings: &[Warning]) -> FitPlan {
        FitPlan { warnings: warnings.iter().cloned().map(warning).collect(), ..self }
    }
}

/// A context with unknown speed has a row too.
fn decode(plan: &Plan) -> Vec<FitRate> {
    let reached = plan.longest.context_tokens.unwrap_or(0).max(plan.context_tokens);
    let rate = |context: u32| -> Option<&Rate> {
        plan.decode.iter().find(|rate| rate.context_tokens == context)
    };
    let contexts = CONTEXTS.into_iter().filter(|context| *context <= reached);
    contexts.map(|context| FitRate::of(context, rate(context))).collect()
}

pub(super) fn placement(plan: &Plan) -> FitPlacement {
    let (kind, layers) = match plan.placement {
        Placement::Vram => ("vram", None),
        Placement::Unified => ("unified", None),
        Placement::Ram => ("ram", None),
        Placement::ExpertsOffloaded { layers } => ("experts_in_ram", Some(layers)),
        Placement::Split { gpu_layers } => ("split", Some(gpu_layers)),
    };
    FitPlacement { kind, layers, text: plan.place.clone() }
}

fn flags_of(LaunchText { engine, text }: LaunchText) -> FitFlags {
    FitFlags { engine: engine.name(), text }
}

fn warning(Warning { code, text, action }: Warning) -> FitWarning {
    FitWarning { code, text, action }
}

fn memory(machine: &Machine, plan: &Plan) -> FitMemory {
    let sum = |of: fn(&Use) -> u64| plan.uses.iter().map(of).fold(0, u64::saturating_add);
    FitMemory {
        terms: plan.memory_by_name().iter().map(term).collect(),
        need: sum(|used| used.needed_bytes),
        free: sum(|used| used.free_bytes),
        margin: sum(|used| used.margin_bytes),
        pools: plan.uses.iter().map(|used| pool(machine, used)).collect(),
    }
}

fn term(MemoryTerm { name, pool, bytes, formula, basis, .. }: &MemoryTerm) -> FitTerm {
    FitTerm { name, pool: pool.to_string(), bytes: *bytes, formula, basis: basis.name() }
}

fn pool(machine: &Machine, used: &Use) -> FitPool {
    let Use { pool, needed_bytes, reclaimable_bytes, free_bytes, margin_bytes } = *used;
    FitPool {
        pool: pool.to_string(),
        name: pool_name(machine, pool),
        need: needed_bytes,
        reclaimable: reclaimable_bytes,
        free: free_bytes,
        margin: margin_bytes,
        lacks: used.lacking_bytes(),
        fits: used.fits(),
    }
}

/// Name of a pool for people.
pub(super) fn pool_name(machine: &Machine, pool: Pool) -> String {
    let gpu = match pool {
        Pool::Ram => None,
        Pool::Vram(number) => machine.gpus.get(number),
    };
    let is_shared = |name: &str| machine.gpus.iter().filter(|gpu| gpu.name == name).count() > 1;
    match gpu {
        Some(gpu) if is_shared(&gpu.name) => format!("{} ({pool})", gpu.name),
        Some(gpu) => gpu.name.clone(),
        None => pool.to_string(),
    }
}
