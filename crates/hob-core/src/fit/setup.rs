//! What a model will take, and how fast it will be, the way somebody sets its engine up: the terms of an answer, of one
//! layout. A hob asks this before it loads a model.

use super::layout::{Layout, Pool, Site};
use super::memory::{MemoryTerm, terms};
use super::speed::{Rate, SpeedEstimate};
use super::{Engine, FitError, FitOptions, Model, Use, assess, uses};
use crate::footprint::{ContextPlan, Unsuitable, longest_context};
use crate::machine::{GpuMemory, Machine};
use crate::weights::Part;

/// How an engine is told to run a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    pub engine: Engine,
    pub layout: Layout,
    pub plan: ContextPlan,
}

/// What somebody wants it to be told; none: as is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadFlags {
    /// Of all layers and the output, so many are on cards.
    pub gpu_layers: Option<u32>,
    /// The experts of so many layers are in the system's memory.
    pub cpu_moe_layers: Option<u32>,
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    pub memory: Vec<MemoryTerm>,
    pub uses: Vec<Use>,
    /// Of one stream behind a full context; none where nobody knows how fast memory is.
    pub decode: Option<Rate>,
}

impl Expected {
    /// Of one memory; 0 where it lies in others.
    pub fn kept_bytes(&self, pool: Pool) -> u64 {
        self.uses.iter().find(|used| used.pool == pool).map_or(0, Use::kept_bytes)
    }

    /// How much of the system's memory is left free is for whoever limits it to say; of a card's, for its engine.
    pub fn fits(&self) -> bool {
        self.uses.iter().all(|used| match used.pool {
            Pool::Ram => used.kept_bytes() <= used.free_bytes,
            Pool::Vram(_) => used.fits(),
        })
    }
}

impl Setup {
    /// Laid out as the best answer is, unless somebody says how many layers go to cards, or of how many the experts do
    /// not.
    ///
    /// # Errors
    /// The engine would not take these KV types with this model, or the model has no layers.
    pub fn new(
        machine: &Machine,
        model: &Model,
        plan: ContextPlan,
        told: OffloadFlags,
    ) -> Result<Setup, FitError> {
        let engine = Engine::Hob;
        let shape = &model.shape;
        let cards = own_cards(machine);
        let layers = u32::try_from(shape.layers.len()).unwrap_or(u32::MAX);
        let has_experts = shape.weights.0.iter().any(|group| group.part == Part::Experts);
        let cpu_moe_layers =
            told.cpu_moe_layers.filter(|_| has_experts).map(|count| count.min(layers));
        let layout = match (told.gpu_layers, cpu_moe_layers) {
            _ if machine.gpus.is_empty() => Layout::whole(shape, Site::Cpu),
            // The engine uses all cards, each for as much as is free there.
            (count, experts) if cards.len() > 1 => {
                let spread = |count| Layout {
                    experts_in_ram: experts.unwrap_or(0),
                    ..Layout::spread(shape, &cards, count)
                };
                let fits = |count: &u32| {
                    let setup = Setup { engine, layout: spread(*count), plan };
                    setup.expected(machine, model).is_ok_and(|expected| expected.fits())
                };
                let most = || (0..=layers + 1).rev().find(fits).unwrap_or(0);
                spread(count.unwrap_or_else(most))
            }
            (Some(count), experts) => {
                Layout { experts_in_ram: experts.unwrap_or(0), ..Layout::told(shape, 0, count) }
            }
            (None, Some(experts_in_ram)) => {
                Layout { experts_in_ram, ..Layout::whole(shape, Site::Gpu(0)) }
            }
            (None, None) => {
                let sequences = plan.sequences.max(1);
                let context_tokens = Some(plan.context_tokens / sequences);
                let options = FitOptions {
                    context_tokens,
                    kv: Some(plan.kv),
                    sequences,
                    engine: Some(engine),
                    ..FitOptions::default()
                };
                let plans = assess(machine, model, &options)?.plans;
                plans.into_iter().next().ok_or(FitError::NoLayers)?.layout
            }
        };
        Ok(Setup { engine, layout, plan })
    }

    /// As the engine is told. Of a model that lies on cards whole, nothing: a file may have layers that nobody counts.
    pub fn told(&self) -> OffloadFlags {
        let Layout { homes, output, experts_in_ram } = &self.layout;
        let is_whole = homes.iter().chain([output]).all(|home| *home != Site::Cpu);
        OffloadFlags {
            gpu_layers: (!is_whole).then(|| self.layout.gpu_layers()),
            cpu_moe_layers: (*experts_in_ram > 0).then_some(*experts_in_ram),
        }
    }

    /// # Errors
    /// The engine would not take these KV types with this model.
    pub fn expected(&self, machine: &Machine, model: &Model) -> Result<Expected, Unsuitable> {
        let Setup { engine, layout, plan } = self;
        let profile = engine.profile();
        let memory = terms(model, machine, layout, plan, &profile)?;
        let estimate = SpeedEstimate { model, machine, layout, kv: plan.kv, profile: &profile };
        let decode = estimate.decode(plan.context_tokens / plan.sequences.max(1));
        Ok(Expected { uses: uses(machine, &profile, &memory), memory, decode })
    }

    /// With as long a context as there is room for; none if there is not even room for one step of the engine.
    ///
    /// # Errors
    /// See [`Setup::expected`].
    pub fn shortened(&self, machine: &Machine, model: &Model) -> Result<Option<Setup>, Unsuitable> {
        let with = |plan: &ContextPlan| Setup { plan: *plan, ..self.clone() };
        let fits = |plan: &ContextPlan| Ok(with(plan).expected(machine, model)?.fits());
        Ok(longest_context(&self.plan, fits)?.map(|plan| with(&plan)))
    }
}

/// By number, with what is free on each.
pub(super) fn own_cards(machine: &Machine) -> Vec<(usize, u64)> {
    let own = |(number, memory)| match memory {
        GpuMemory::Own { free_bytes, .. } => Some((number, free_bytes)),
        GpuMemory::Unified { .. } => None,
    };
    machine.gpus.iter().map(|gpu| gpu.memory).enumerate().filter_map(own).collect()
}
