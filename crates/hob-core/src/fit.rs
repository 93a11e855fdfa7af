//! Where a model will live on a machine, and how fast it will be there: every answer with its terms and their basis.
//! Pure: what is free, what devices can do and what is in the file are told. The order of the steps is the decision
//! guide: formats that an engine here reads, placements from one card to none, then the cache, then the context.

mod alternatives;
mod calibrate;
mod engines;
mod explain;
mod flags;
mod layout;
mod memory;
mod places;
mod prefill;
mod priors;
mod setup;
mod speed;
mod validate;
mod warnings;

pub use alternatives::{Alternative, Toward, alternatives};
pub use calibrate::{Implausible, TimedRun, fitted};
pub use engines::{
    Cache, Engine, EngineProfile, Format, HostReads, Mismatch, Scratch, Splits, Staging, Tower,
    UNFUSED_RECURRENT_US,
};
pub use explain::{EXPLANATIONS, Explanation, explain};
pub use flags::{Flags, flags};
pub use layout::{Layout, Placement, Pool, Site, pool};
pub use memory::{MemoryTerm, terms};
pub use priors::{constants, of_gpu};
pub use setup::{Expected, OffloadFlags, Setup};
pub use speed::{Rate, SpeedEstimate};
pub use validate::{error_pct, from_one, left_out, mean, told_by};
pub use warnings::{Warning, warnings};

use crate::ModelShape;
use crate::footprint::{
    Attention, ContextPlan, KvType, KvTypes, REPACKED, STEP_TOKENS, Sharing, Unsuitable,
};
use crate::machine::{Basis, Gpu, GpuMemory, Machine};

/// Contexts that speeds are told of.
pub const CONTEXTS: [u32; 5] = [512, 4_096, 16_384, 65_536, 131_072];
/// Where nobody says how long a context has to be.
const CONTEXT_TOKENS: u32 = 8_192;
/// Pairs of keys and values that are tried, the most exact first.
pub const KV_PAIRS: [KvTypes; 3] = [
    KvTypes { keys: KvType::F16, values: KvType::F16 },
    KvTypes { keys: KvType::Q8_0, values: KvType::Q8_0 },
    KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 },
];
/// Of the system's memory, what is left to everybody else.
const RAM_MARGIN_BYTES: u64 = 256 << 20;

/// A model as it lies in its files, or as it would.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub name: String,
    pub format: Format,
    /// As people call the mixture: `Q4_K_M`, `EXL3 4.0bpw`.
    pub quant: String,
    pub shape: ModelShape,
    /// Measured of a header; assumed where weights were made up from a shape and the rules of a quant.
    pub basis: Basis,
    pub location: Location,
}

/// Where an engine gets a model from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// Nobody said.
    #[default]
    Unknown,
    /// A file, or the folder of a model that has several.
    File(String),
    /// The same, of a model that hob knows by its name.
    Installed(String),
    /// `owner/name` on the hub.
    Hub(String),
    /// Not here: `hob pull` fetches it by this name, from `owner/name` on the hub.
    Catalog { name: String, repo: String },
}

/// What is wanted of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FitOptions {
    /// Of each conversation.
    pub context_tokens: Option<u32>,
    pub kv: Option<KvTypes>,
    /// Conversations at once; 0 is 1.
    pub sequences: u32,
    pub engine: Option<Engine>,
    /// Below that it is of no use, tokens a second.
    pub tok_s_min: Option<f64>,
}

/// Why nothing can be said.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error(transparent)]
    Unsuitable(#[from] Unsuitable),
    #[error("the model has no layers that decode")]
    NoLayers,
}

/// One way to run it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub engine: Engine,
    pub placement: Placement,
    pub layout: Layout,
    pub kv: KvTypes,
    pub context_tokens: u32,
    pub memory: Vec<MemoryTerm>,
    pub uses: Vec<Use>,
    pub longest: Longest,
    /// At each of [`CONTEXTS`] that the model was trained with and that there is room for; none where nobody knows
    /// how fast memory is.
    pub decode: Vec<Rate>,
    /// At the context that is wished for.
    pub decode_requested: Option<Rate>,
    /// Of a prompt as long as the context.
    pub prefill: Option<Rate>,
}

/// What a plan takes of one memory, beside what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub pool: Pool,
    pub needed_bytes: u64,
    /// Of these, pages of a mapped file that nobody reads once there is a second copy: the system takes them back.
    pub reclaimable_bytes: u64,
    pub free_bytes: u64,
    /// Left free for the system and for others.
    pub margin_bytes: u64,
}

/// The longest context, and what ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// None: not even one step of the engine has room.
    pub context_tokens: Option<u32>,
    pub limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Trained,
    Memory(Pool),
}

/// Everything that can be said of a model on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// One of each placement: those that fit first, and of these the fastest.
    pub plans: Vec<Plan>,
    /// Of the first plan's placement, with each pair of types.
    pub longest: Vec<(KvTypes, Longest)>,
    /// Of the first plan.
    pub warnings: Vec<Warning>,
    /// Empty until somebody asks for [`alternatives`].
    pub alternatives: Vec<Alternative>,
}

impl Use {
    pub fn fits(&self) -> bool {
        self.lacking_bytes() == 0
    }

    /// Without what the system takes back.
    pub fn kept_bytes(&self) -> u64 {
        self.needed_bytes.saturating_sub(self.reclaimable_bytes)
    }

    /// 0 if it fits.
    pub fn lacking_bytes(&self) -> u64 {
        self.kept_bytes().saturating_add(self.margin_bytes).saturating_sub(self.free_bytes)
    }
}

impl Plan {
    pub fn fits(&self) -> bool {
        self.uses.iter().all(Use::fits)
    }

    /// In which it lacks most.
    pub fn shortage(&self) -> Option<&Use> {
        self.uses.iter().filter(|used| !used.fits()).max_by_key(|used| used.lacking_bytes())
    }

    fn tok_s(&self) -> f64 {
        self.decode_requested.as_ref().map_or(0.0, |rate| rate.tok_s)
    }
}

impl Assessment {
    /// None: it does not fit in any way.
    pub fn best(&self) -> Option<&Plan> {
        self.plans.first().filter(|plan| plan.fits())
    }
}

/// # Errors
/// No engine here reads the format, or none would take the wished types of the cache.
pub fn assess(
    machine: &Machine,
    model: &Model,
    options: &FitOptions,
) -> Result<Assessment, FitError> {
    if model.shape.layers.is_empty() {
        return Err(FitError::NoLayers);
    }
    let mut plans = Vec::new();
    let mut refused = None;
    for engine in options.engine.map_or_else(|| model.format.engines(), |engine| vec![engine]) {
        let planner = Planner { machine, model, options, engine, profile: engine.profile() };
        match planner.plans() {
            Ok(of_engine) => plans.extend(of_engine),
            Err(error) => refused = refused.or(Some(error)),
        }
        // The first engine that can do it speaks for those that share its code.
        if !plans.is_empty() {
            break;
        }
    }
    match refused.filter(|_| plans.is_empty()) {
        Some(error) => return Err(error),
        None if plans.is_empty() => return Err(FitError::NoLayers),
        None => (),
    }
    plans.sort_by(|one, other| {
        let rank = |plan: &Plan| (!plan.fits(), -plan.tok_s());
        let ((fits, pace), (fits_other, pace_other)) = (rank(one), rank(other));
        fits.cmp(&fits_other).then(pace.total_cmp(&pace_other))
    });
    let longest = longest_by_pair(machine, model, options, &plans[0]);
    let mut warned = warnings(machine, model, options, &plans[0]);
    warned.extend(warnings::unmeasured_processor(machine, &plans));
    Ok(Assessment { plans, longest, warnings: warned, alternatives: Vec::new() })
}

fn longest_by_pair(
    machine: &Machine,
    model: &Model,
    options: &FitOptions,
    plan: &Plan,
) -> Vec<(KvTypes, Longest)> {
    let Plan { engine, layout, .. } = plan;
    let planner = Planner { machine, model, options, engine: *engine, profile: engine.profile() };
    let pairs = KV_PAIRS.into_iter();
    pairs.filter_map(|kv| Some((kv, planner.longest(layout, kv).ok()?))).collect()
}

/// A model, a machine and an engine that is to bring them together.
pub(crate) struct Planner<'a> {
    machine: &'a Machine,
    model: &'a Model,
    options: &'a FitOptions,
    engine: Engine,
    profile: EngineProfile,
}

impl Planner<'_> {
    /// One of each placement that is possible, whether or not it fits.
    fn plans(&self) -> Result<Vec<Plan>, FitError> {
        let mut plans: Vec<Plan> = Vec::new();
        let mut refused = None;
        let pairs = self.options.kv.map_or_else(|| KV_PAIRS.to_vec(), |kv| vec![kv]);
        for kv in pairs {
            if self.profile.cache == Cache::Alike && kv.keys != kv.values {
                let KvTypes { keys, values } = kv;
                refused = refused.or(Some(Unsuitable::NotTheSame { keys, values }.into()));
                continue;
            }
            let layouts = match self.layouts(kv) {
                Ok(layouts) => layouts,
                Err(error) => {
                    refused = refused.or(Some(error));
                    continue;
                }
            };
            for layout in layouts {
                let plan = match self.plan(layout, kv) {
                    Ok(plan) => plan,
                    Err(error) => {
                        refused = refused.or(Some(error));
                        continue;
                    }
                };
                // A cache that is stored more exactly is better, as long as it fits.
                let is_same = |other: &&mut Plan| {
                    std::mem::discriminant(&other.placement)
                        == std::mem::discriminant(&plan.placement)
                        && other.layout.output == plan.layout.output
                };
                match plans.iter_mut().find(is_same) {
                    None => plans.push(plan),
                    Some(other) if !other.fits() && plan.fits() => *other = plan,
                    Some(_) => (),
                }
            }
        }
        match refused.filter(|_| plans.is_empty()) {
            Some(error) => Err(error),
            None => Ok(plans),
        }
    }

    fn plan(&self, layout: Layout, kv: KvTypes) -> Result<Plan, FitError> {
        let context_tokens = self.context_tokens();
        let memory = self.terms(&layout, kv, context_tokens)?;
        let longest = self.longest(&layout, kv)?;
        let estimate = self.estimate(&layout, kv);
        let reached = longest.context_tokens.unwrap_or(0).max(context_tokens);
        let told = CONTEXTS.into_iter().filter(|context| *context <= reached);
        Ok(Plan {
            engine: self.engine,
            placement: layout.placement(self.machine),
            decode: told.filter_map(|context| estimate.decode(context)).collect(),
            decode_requested: estimate.decode(context_tokens),
            prefill: estimate.prefill(context_tokens),
            uses: self.uses(&memory),
            kv,
            context_tokens,
            memory,
            longest,
            layout,
        })
    }

    fn estimate<'c>(&'c self, layout: &'c Layout, kv: KvTypes) -> SpeedEstimate<'c> {
        SpeedEstimate {
            model: self.model,
            machine: self.machine,
            layout,
            kv,
            profile: &self.profile,
        }
    }

    /// As long as is wished for, and no longer than it was trained with.
    fn context_tokens(&self) -> u32 {
        let trained = self.model.shape.trained_context_tokens.max(1);
        self.options.context_tokens.unwrap_or(CONTEXT_TOKENS).min(trained)
    }

    fn terms(
        &self,
        layout: &Layout,
        kv: KvTypes,
        context_tokens: u32,
    ) -> Result<Vec<MemoryTerm>, Unsuitable> {
        let sequences = self.options.sequences.max(1);
        let plan = ContextPlan {
            context_tokens: context_tokens.saturating_mul(sequences),
            sequences,
            sharing: Sharing::Parts,
            windows: self.profile.windows,
            kv,
            attention: Attention::Flash,
            step_tokens: self.profile.step_tokens,
            outputs_max: sequences,
        };
        terms(self.model, self.machine, layout, &plan, &self.profile)
    }

    fn uses(&self, terms: &[MemoryTerm]) -> Vec<Use> {
        uses(self.machine, &self.profile, terms)
    }

    fn fits(&self, layout: &Layout, kv: KvTypes, context_tokens: u32) -> Result<bool, Unsuitable> {
        let terms = self.terms(layout, kv, context_tokens)?;
        Ok(self.uses(&terms).iter().all(Use::fits))
    }

    fn longest(&self, layout: &Layout, kv: KvTypes) -> Result<Longest, Unsuitable> {
        let trained = self.model.shape.trained_context_tokens.max(1);
        if self.fits(layout, kv, trained)? {
            return Ok(Longest { context_tokens: Some(trained), limit: Limit::Trained });
        }
        // `largest` steps fit, `beyond` do not.
        let (mut largest, mut beyond) = (0, trained.div_ceil(STEP_TOKENS));
        while beyond - largest > 1 {
            let middle = largest + (beyond - largest) / 2;
            let fits = self.fits(layout, kv, middle * STEP_TOKENS)?;
            if fits { largest = middle } else { beyond = middle }
        }
        let terms = self.terms(layout, kv, beyond.saturating_mul(STEP_TOKENS).min(trained))?;
        let uses = self.uses(&terms);
        let full = uses.iter().find(|used| !used.fits()).map_or(Pool::Ram, |used| used.pool);
        let context_tokens = (largest > 0).then_some(largest * STEP_TOKENS);
        Ok(Longest { context_tokens, limit: Limit::Memory(full) })
    }

    fn runs_on(&self, gpu: Option<&Gpu>) -> Result<(), Mismatch> {
        self.engine.runs(self.model.format, gpu)
    }
}

/// What the terms make of each memory.
fn uses(machine: &Machine, profile: &EngineProfile, terms: &[MemoryTerm]) -> Vec<Use> {
    let mut pools: Vec<Pool> = terms.iter().map(|term| term.pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let used = |pool| {
        let sum = |of: &dyn Fn(&MemoryTerm) -> bool| {
            let here = terms.iter().filter(|term| term.pool == pool && of(term));
            here.fold(0, |sum: u64, term| sum.saturating_add(term.bytes))
        };
        let (free_bytes, margin_bytes) = room(machine, profile, pool, terms);
        let reclaimable_bytes = sum(&|term| term.name == REPACKED);
        Use { pool, needed_bytes: sum(&|_| true), reclaimable_bytes, free_bytes, margin_bytes }
    };
    pools.into_iter().map(used).collect()
}

/// What is free, and what of it is left alone.
fn room(
    machine: &Machine,
    profile: &EngineProfile,
    pool: Pool,
    terms: &[MemoryTerm],
) -> (u64, u64) {
    let gpu = |number: usize| machine.gpus.get(number).map(|gpu| gpu.memory);
    match pool {
        Pool::Vram(number) => match gpu(number) {
            Some(GpuMemory::Own { free_bytes, .. }) => (free_bytes, profile.margin_bytes),
            _ => (0, 0),
        },
        Pool::Ram => {
            let sharing = terms.iter().filter(|term| term.pool == pool);
            let limits = sharing.filter_map(|term| match term.site {
                Site::Gpu(number) => gpu(number),
                Site::Cpu => None,
            });
            let limit = limits.filter_map(|memory| match memory {
                GpuMemory::Unified { limit_bytes } => Some(limit_bytes),
                GpuMemory::Own { .. } => None,
            });
            (limit.fold(machine.memory.available_bytes, u64::min), RAM_MARGIN_BYTES)
        }
    }
}

#[cfg(test)]
mod tests;
