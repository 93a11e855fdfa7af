//! One way to run a model: memory in each pool, context, speed, and warnings.
//! Flags are commands or configuration of each engine.

use hob_core::fit::{
    CONTEXTS, FitOptions, Flags, MemoryTerm, Model, Placement, Plan, Pool, Rate, Use, Warning,
    flags, warnings,
};
use hob_core::machine::Machine;
use serde::Serialize;

use super::limited_by;
use super::rate::{PromptShape, RateShape};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PlanShape {
    quant: String,
    format: &'static str,
    engine: &'static str,
    kv_k: &'static str,
    kv_v: &'static str,
    placement: PlacementShape,
    flags: Vec<FlagsShape>,
    fits: bool,
    memory: MemoryShape,
    context: ContextShape,
    /// Speeds at the usual contexts, up to the trained or requested one.
    decode: Vec<RateShape>,
    decode_requested: RateShape,
    prefill: Vec<PromptShape>,
    warnings: Vec<WarningShape>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PlacementShape {
    /// `vram`, `unified`, `ram`, `experts_in_ram` or `split`.
    kind: &'static str,
    /// Layers on cards, or layers whose experts are in system memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<u32>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct FlagsShape {
    engine: &'static str,
    text: String,
}

/// Sums over all pools. Whether the plan fits is decided for each pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct MemoryShape {
    terms: Vec<TermShape>,
    need: u64,
    free: u64,
    margin: u64,
    pools: Vec<PoolShape>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct TermShape {
    name: &'static str,
    pool: String,
    bytes: u64,
    formula: &'static str,
    basis: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct PoolShape {
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

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ContextShape {
    wished: u32,
    /// Null if not even the shortest context fits.
    max: Option<u32>,
    limited_by: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct WarningShape {
    code: &'static str,
    text: String,
    action: String,
}

impl PlanShape {
    pub(super) fn of(
        machine: &Machine,
        model: &Model,
        plan: &Plan,
        options: &FitOptions,
    ) -> PlanShape {
        let (wished, max) = (plan.context_tokens, plan.longest.context_tokens);
        let told = flags(machine, model, plan, options.sequences);
        let warned = warnings(machine, model, options, plan);
        PlanShape {
            quant: model.quant.clone(),
            format: model.format.name(),
            engine: plan.engine.name(),
            kv_k: plan.kv.keys.name(),
            kv_v: plan.kv.values.name(),
            placement: placement(plan.placement),
            flags: told.into_iter().map(flags_of).collect(),
            fits: plan.fits(),
            memory: memory(machine, plan),
            context: ContextShape { wished, max, limited_by: limited_by(plan.longest.limit) },
            decode: decode(plan),
            decode_requested: RateShape::of(wished, plan.decode_requested.as_ref()),
            prefill: vec![PromptShape::of(wished, plan.prefill.as_ref())],
            warnings: warned.into_iter().map(warning).collect(),
        }
    }

    /// Adds warnings that depend on the other plans.
    pub(super) fn warned(self, warnings: &[Warning]) -> PlanShape {
        PlanShape { warnings: warnings.iter().cloned().map(warning).collect(), ..self }
    }
}

/// A context with unknown speed has a row too.
fn decode(plan: &Plan) -> Vec<RateShape> {
    let reached = plan.longest.context_tokens.unwrap_or(0).max(plan.context_tokens);
    let rate = |context: u32| -> Option<&Rate> {
        plan.decode.iter().find(|rate| rate.context_tokens == context)
    };
    let contexts = CONTEXTS.into_iter().filter(|context| *context <= reached);
    contexts.map(|context| RateShape::of(context, rate(context))).collect()
}

pub(super) fn placement(placement: Placement) -> PlacementShape {
    let (kind, layers) = match placement {
        Placement::Vram => ("vram", None),
        Placement::Unified => ("unified", None),
        Placement::Ram => ("ram", None),
        Placement::ExpertsOffloaded { layers } => ("experts_in_ram", Some(layers)),
        Placement::Split { gpu_layers } => ("split", Some(gpu_layers)),
    };
    PlacementShape { kind, layers, text: placement.to_string() }
}

fn flags_of(Flags { engine, text }: Flags) -> FlagsShape {
    FlagsShape { engine: engine.name(), text }
}

fn warning(Warning { code, text, action }: Warning) -> WarningShape {
    WarningShape { code, text, action }
}

fn memory(machine: &Machine, plan: &Plan) -> MemoryShape {
    let sum = |of: fn(&Use) -> u64| plan.uses.iter().map(of).fold(0, u64::saturating_add);
    MemoryShape {
        terms: plan.memory.iter().map(term).collect(),
        need: sum(|used| used.needed_bytes),
        free: sum(|used| used.free_bytes),
        margin: sum(|used| used.margin_bytes),
        pools: plan.uses.iter().map(|used| pool(machine, used)).collect(),
    }
}

fn term(MemoryTerm { name, pool, bytes, formula, basis, .. }: &MemoryTerm) -> TermShape {
    TermShape { name, pool: pool.to_string(), bytes: *bytes, formula, basis: basis.name() }
}

fn pool(machine: &Machine, used: &Use) -> PoolShape {
    let Use { pool, needed_bytes, reclaimable_bytes, free_bytes, margin_bytes } = *used;
    PoolShape {
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
    gpu.map_or_else(|| pool.to_string(), |gpu| gpu.name.clone())
}
