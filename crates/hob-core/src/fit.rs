//! Where a model would live on a machine, and how fast it would be there. Every answer carries its terms and their
//! basis.
//! Pure: the caller passes free memory, device speeds and the model's header. Steps: format, placement, KV cache,
//! context.

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
pub use calibrate::{Implausible, TimedRun, fit_constants};
pub use engines::{Engine, EngineProfile, Format, Mismatch, Scratch, Splits, UNFUSED_RECURRENT_US};
pub use explain::{Explanation, explain, explanations};
pub use flags::{LaunchText, flags};
pub use layout::{ComputeSite, Layout, Placement, Pool, pool_of};
pub use memory::{DriverBytes, MemoryTerm, terms};
pub use priors::{constants, of_gpu};
pub use setup::{OffloadFlags, Setup, SetupEstimate};
pub use speed::{Rate, SpeedEstimate};
pub use validate::{error_pct, from_one, left_out, predicted_by};
pub use warnings::{UNMEASURED_PROCESSOR, Warning, few_bits, warnings};

use crate::ModelShape;
use crate::footprint::{
    CACHE_STEP_TOKENS, ContextPlan, KvType, KvTypes, REPACKED, Unsuitable, find_largest,
};
use crate::machine::{Basis, Gpu, GpuMemory, Machine};

/// Contexts at which speeds are reported, tokens.
pub const CONTEXTS: [u32; 5] = [512, 4_096, 16_384, 65_536, 131_072];
/// Context that is assessed when the caller names none, tokens.
const CONTEXT_TOKENS: u32 = 8_192;
/// Types of keys and values that are tried, the most exact first.
pub const KV_PAIRS: [KvTypes; 3] = [
    KvTypes { keys: KvType::F16, values: KvType::F16 },
    KvTypes { keys: KvType::Q8_0, values: KvType::Q8_0 },
    KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 },
];
/// System memory that is left to other programs, bytes.
const RAM_MARGIN_BYTES: u64 = 256 << 20;

/// A model as it is stored, or as it would be stored in another quant.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub name: String,
    pub format: Format,
    /// Name of the quant, such as `Q4_K_M` or `EXL3 4.0bpw`.
    pub quant: String,
    pub shape: ModelShape,
    /// `Measured` if a header was read, `Assumed` if the weights were made up from dimensions and the rules of a
    /// quant.
    pub basis: Basis,
    pub location: Location,
}

/// Where an engine gets the model from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// The caller did not say.
    #[default]
    Unknown,
    /// Path of a file, or of a folder if the model has several files.
    File(String),
    /// Path of a model that hob has stored under a name.
    Installed(String),
    /// `owner/name` on the hub, and its branch or its file, if one is named. The quant in the file's name, such as
    /// `UD-Q4_K_XL`, if the header calls it otherwise.
    Hub { repo: String, revision: Option<String>, file: Option<String>, quant: Option<String> },
    /// A tag of Ollama, and its file if Ollama has it on this machine.
    Ollama { tag: String, file: Option<String> },
    /// Not stored here. `hob pull NAME` fetches it from `owner/name` on the hub.
    Catalog { name: String, repo: String },
}

/// How the model is to be run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FitOptions {
    /// Tokens of each conversation. Default: [`CONTEXT_TOKENS`], or as many as the model was trained with.
    pub context_tokens: Option<u32>,
    pub kv: Option<KvTypes>,
    /// Conversations at the same time; 0 counts as 1.
    pub sequences: u32,
    pub engine: Option<Engine>,
    /// The least useful speed, tokens per second.
    pub tok_s_min: Option<f64>,
}

/// Why a model cannot be assessed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error(transparent)]
    Unsuitable(#[from] Unsuitable),
    #[error("the model has no layers that decode")]
    NoLayers,
}

/// One way to run a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub engine: Engine,
    pub placement: Placement,
    /// The placement for people. On a machine with several cards, it has the numbers of those that are used.
    pub place: String,
    pub layout: Layout,
    pub kv: KvTypes,
    pub context_tokens: u32,
    pub memory: Vec<MemoryTerm>,
    pub uses: Vec<Use>,
    pub longest: Longest,
    /// Speed at each of [`CONTEXTS`] that the model was trained with and that fits. Empty if the memory bandwidth is
    /// unknown.
    pub decode: Vec<Rate>,
    /// Speed at the requested context.
    pub decode_requested: Option<Rate>,
    /// Speed of reading a prompt as long as the requested context.
    pub prefill: Option<Rate>,
}

/// What a plan needs of one memory pool, and what is free there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub pool: Pool,
    pub needed_bytes: u64,
    /// Part of `needed_bytes` that the system can take back: pages of a mapped file that has a repacked copy.
    pub reclaimable_bytes: u64,
    pub free_bytes: u64,
    /// Memory that stays free for the system and other programs.
    pub margin_bytes: u64,
}

/// The longest context, and what limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// `None` if not even one step of the engine fits.
    pub context_tokens: Option<u32>,
    pub limit: ContextLimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextLimit {
    Trained,
    Memory(Pool),
}

/// The answer for one model on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// One plan of each placement. Those that fit come first, the fastest of them at the top.
    pub plans: Vec<Plan>,
    /// The longest context of the first plan's placement, for each pair of KV types that its engine takes.
    pub longest: Vec<(KvTypes, Longest)>,
    /// Warnings about the first plan.
    pub warnings: Vec<Warning>,
    /// Filled by [`alternatives`]; empty before.
    pub alternatives: Vec<Alternative>,
}

impl Use {
    pub fn fits(&self) -> bool {
        self.lacking_bytes() == 0
    }

    /// Needed bytes without those that the system can take back.
    pub fn kept_bytes(&self) -> u64 {
        self.needed_bytes.saturating_sub(self.reclaimable_bytes)
    }

    /// Missing bytes; 0 if the plan fits.
    pub fn lacking_bytes(&self) -> u64 {
        self.kept_bytes().saturating_add(self.margin_bytes).saturating_sub(self.free_bytes)
    }
}

impl Plan {
    pub fn fits(&self) -> bool {
        self.uses.iter().all(Use::fits)
    }

    /// The pool that lacks the most memory.
    pub fn shortage(&self) -> Option<&Use> {
        self.uses.iter().filter(|used| !used.fits()).max_by_key(|used| used.lacking_bytes())
    }

    /// Memory as people read it: one term for each name and pool, summed over devices, with the least certain basis.
    pub fn memory_by_name(&self) -> Vec<MemoryTerm> {
        let mut all: Vec<MemoryTerm> = Vec::new();
        for term in &self.memory {
            match all.iter_mut().find(|one| (one.name, one.pool) == (term.name, term.pool)) {
                Some(one) => {
                    one.bytes = one.bytes.saturating_add(term.bytes);
                    one.basis = one.basis.max(term.basis);
                }
                None => all.push(term.clone()),
            }
        }
        all
    }

    fn tok_s(&self) -> f64 {
        self.decode_requested.as_ref().map_or(0.0, |rate| rate.tok_s)
    }
}

impl Assessment {
    /// The first plan that fits, or `None` if no plan does.
    pub fn best(&self) -> Option<&Plan> {
        self.plans.first().filter(|plan| plan.fits())
    }
}

/// Finds the plans for a model on a machine.
///
/// # Errors
/// No engine reads the format on this machine, or no engine accepts the requested KV types.
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
        // The first engine that can run the model also stands for the engines that share its code.
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
    let taken = pairs.filter(|kv| engine.takes(*kv).is_ok());
    taken.filter_map(|kv| Some((kv, planner.longest(layout, kv).ok()?))).collect()
}

/// Makes plans for one model, one machine and one engine.
pub(crate) struct Planner<'a> {
    machine: &'a Machine,
    model: &'a Model,
    options: &'a FitOptions,
    engine: Engine,
    profile: EngineProfile,
}

impl Planner<'_> {
    /// One plan of each possible placement, whether it fits or not.
    fn plans(&self) -> Result<Vec<Plan>, FitError> {
        let mut plans: Vec<Plan> = Vec::new();
        let mut refused = None;
        let pairs = self.options.kv.map_or_else(|| KV_PAIRS.to_vec(), |kv| vec![kv]);
        for kv in pairs {
            let taken = self.engine.takes(kv).map_err(FitError::from);
            let layouts = match taken.and_then(|()| self.layouts(kv)) {
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
                // The most exact cache that fits is kept.
                let is_same = |other: &&mut Plan| {
                    std::mem::discriminant(&other.placement)
                        == std::mem::discriminant(&plan.placement)
                        && other.layout.sites() == plan.layout.sites()
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
        let reported = CONTEXTS.into_iter().filter(|context| *context <= reached);
        Ok(Plan {
            engine: self.engine,
            placement: layout.placement(self.machine),
            place: layout::place_text(&layout, self.machine),
            decode: reported.filter_map(|context| estimate.decode(context)).collect(),
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

    /// The requested context, at most what the model was trained with.
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
            windows: self.profile.windows,
            kv,
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
            return Ok(Longest { context_tokens: Some(trained), limit: ContextLimit::Trained });
        }
        let fits = |steps: u32| self.fits(layout, kv, steps * CACHE_STEP_TOKENS);
        let largest = find_largest(trained.div_ceil(CACHE_STEP_TOKENS), fits)?;
        let beyond = (largest + 1).saturating_mul(CACHE_STEP_TOKENS).min(trained);
        let terms = self.terms(layout, kv, beyond)?;
        let uses = self.uses(&terms);
        let full = uses.iter().find(|used| !used.fits()).map_or(Pool::Ram, |used| used.pool);
        let context_tokens = (largest > 0).then_some(largest * CACHE_STEP_TOKENS);
        Ok(Longest { context_tokens, limit: ContextLimit::Memory(full) })
    }

    fn runs_on(&self, gpu: Option<&Gpu>) -> Result<(), Mismatch> {
        self.engine.runs(self.model.format, gpu)
    }
}

/// Sums the memory terms of each pool.
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

/// Free bytes of a pool, and the margin that stays free.
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
                ComputeSite::Gpu(number) => gpu(number),
                ComputeSite::Cpu => None,
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
