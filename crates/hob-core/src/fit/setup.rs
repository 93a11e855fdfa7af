//! Memory and speed of one given engine configuration, in the terms of an assessment.
//! hob computes this before it loads a model.

use super::layout::{ComputeSite, Layout, Pool};
use super::memory::{MemoryTerm, shared_bytes, terms};
use super::speed::{Rate, SpeedEstimate};
use super::{Engine, FitError, FitOptions, Model, Use, assess, uses};
use crate::footprint::{ContextPlan, Unsuitable, longest_context};
use crate::machine::{Gpu, GpuMemory, Machine};
use crate::weights::Part;

/// A configuration in which an engine runs a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    pub engine: Engine,
    pub layout: Layout,
    pub plan: ContextPlan,
}

/// Offload settings that the user chose. `None` leaves the choice to hob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadFlags {
    /// Layers on cards, where the output counts as one.
    pub gpu_layers: Option<u32>,
    /// Layers whose experts stay in system memory.
    pub cpu_moe_layers: Option<u32>,
}

/// Memory and speed of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SetupEstimate {
    pub memory: Vec<MemoryTerm>,
    pub uses: Vec<Use>,
    /// Speed of one stream with a full context. `None` if the memory bandwidth is unknown.
    pub decode: Option<Rate>,
}

impl SetupEstimate {
    /// Bytes in one pool; 0 if the model uses other pools.
    pub fn kept_bytes(&self, pool: Pool) -> u64 {
        self.uses.iter().find(|used| used.pool == pool).map_or(0, Use::kept_bytes)
    }

    /// The memory of both in one process, and the speed of this one.
    pub fn with(mut self, mut other: SetupEstimate, machine: &Machine) -> SetupEstimate {
        let profile = Engine::Hob.profile();
        let own_terms = other.memory.clone();
        for term in &mut other.memory {
            let shared = shared_bytes(machine, &profile, [&self.memory, &own_terms], term);
            term.bytes = term.bytes.saturating_sub(shared);
            if let Some(used) = other.uses.iter_mut().find(|used| used.pool == term.pool) {
                used.needed_bytes = used.needed_bytes.saturating_sub(shared);
            }
        }
        for used in other.uses {
            match self.uses.iter_mut().find(|own| own.pool == used.pool) {
                Some(own) => {
                    own.needed_bytes = own.needed_bytes.saturating_add(used.needed_bytes);
                    own.reclaimable_bytes =
                        own.reclaimable_bytes.saturating_add(used.reclaimable_bytes);
                }
                None => self.uses.push(used),
            }
        }
        self.memory.extend(other.memory);
        self
    }

    /// Ignores the system's margin, which the memory limit sets, and keeps the engine's margin on cards.
    pub fn fits(&self) -> bool {
        self.uses.iter().all(|used| match used.pool {
            Pool::Ram => used.kept_bytes() <= used.free_bytes,
            Pool::Vram(_) => used.fits(),
        })
    }
}

impl Setup {
    /// Takes the layout of the best plan, unless the user chose the offloaded layers.
    ///
    /// # Errors
    /// The engine does not accept these KV types for this model, or the model has no layers.
    pub fn new(
        machine: &Machine,
        model: &Model,
        plan: ContextPlan,
        flags: OffloadFlags,
    ) -> Result<Setup, FitError> {
        let engine = Engine::Hob;
        let shape = &model.shape;
        let layers = u32::try_from(shape.layers.len()).unwrap_or(u32::MAX);
        let has_experts = shape.weights.0.iter().any(|group| group.part == Part::Experts);
        let cpu_moe_layers =
            flags.cpu_moe_layers.filter(|_| has_experts).map(|count| count.min(layers));
        let cards = engine_cards(machine);
        let divided = |count| Layout {
            experts_in_ram: cpu_moe_layers.unwrap_or(0),
            ..Layout::spread(shape, &cards, count)
        };
        let layout = match (flags.gpu_layers, cpu_moe_layers) {
            _ if machine.gpus.is_empty() => Layout::whole(shape, ComputeSite::Cpu),
            (Some(count), _) => divided(count),
            (None, Some(_)) if cards.len() > 1 => {
                let fits = |count: &u32| {
                    let setup = Setup { engine, layout: divided(*count), plan };
                    setup.estimate(machine, model).is_ok_and(|expected| expected.fits())
                };
                divided((0..=layers + 1).rev().find(fits).unwrap_or(0))
            }
            (None, Some(_)) => divided(layers + 1),
            (None, None) => {
                let ranked = Setup::ranked(machine, model, plan)?;
                return ranked.into_iter().next().ok_or(FitError::NoLayers);
            }
        };
        Ok(Setup { engine, layout, plan })
    }

    /// Setups with the layouts of an assessment, in its order, without those that hob cannot make the engine use: it divides
    /// layers over all cards, unless hob can name the only one that is to compute.
    ///
    /// # Errors
    /// See [`Setup::new`].
    pub fn ranked(
        machine: &Machine,
        model: &Model,
        plan: ContextPlan,
    ) -> Result<Vec<Setup>, FitError> {
        let engine = Engine::Hob;
        let sequences = plan.sequences.max(1);
        let options = FitOptions {
            context_tokens: Some(plan.context_tokens / sequences),
            kv: Some(plan.kv),
            sequences,
            engine: Some(engine),
            ..FitOptions::default()
        };
        let cards = engine_cards(machine);
        let is_possible = |layout: &Layout| match layout.cards()[..] {
            [card] if cards.len() > 1 => {
                let divided = Layout::spread(&model.shape, &cards, layout.gpu_layers());
                machine.gpus[card].engine_name.is_some() || *layout == divided
            }
            _ => true,
        };
        let layouts = assess(machine, model, &options)?.plans.into_iter().map(|best| best.layout);
        let setup = |layout| Setup { engine, layout, plan };
        Ok(layouts.filter(is_possible).map(setup).collect())
    }

    /// The engine's name of the only card that computes, if the engine would use others, too.
    pub fn device<'m>(&self, machine: &'m Machine) -> Option<&'m str> {
        match self.layout.cards()[..] {
            [card] if own_cards(machine).len() > 1 => machine.gpus[card].engine_name.as_deref(),
            _ => None,
        }
    }

    /// The setup of a second model in the same process: the engine gives both the same number of layers on the same cards.
    pub fn of_second(&self, machine: &Machine, model: &Model) -> Setup {
        let mut cards = engine_cards(machine);
        if self.device(machine).is_some() {
            let used = self.layout.cards();
            cards.retain(|(card, _)| used.contains(card));
        }
        let gpu_layers = self.offload_flags().gpu_layers.unwrap_or(u32::MAX);
        let layout = Layout::spread(&model.shape, &cards, gpu_layers);
        // Its context is as long, for as many answers.
        let plan = ContextPlan { outputs_max: self.plan.sequences, ..self.plan };
        Setup { engine: self.engine, layout, plan }
    }

    /// The settings to pass to the engine. Empty if the model is on cards as a whole: a file may have uncounted
    /// layers.
    pub fn offload_flags(&self) -> OffloadFlags {
        let experts_in_ram = self.layout.experts_in_ram;
        OffloadFlags {
            gpu_layers: (!self.layout.is_on_cards()).then(|| self.layout.gpu_layers()),
            cpu_moe_layers: (experts_in_ram > 0).then_some(experts_in_ram),
        }
    }

    /// Memory and speed of the configuration.
    ///
    /// # Errors
    /// The engine does not accept these KV types for this model.
    pub fn estimate(&self, machine: &Machine, model: &Model) -> Result<SetupEstimate, Unsuitable> {
        let Setup { engine, layout, plan } = self;
        let profile = engine.profile();
        let memory = terms(model, machine, layout, plan, &profile)?;
        let estimate = SpeedEstimate { model, machine, layout, kv: plan.kv, profile: &profile };
        let decode = estimate.decode(plan.context_tokens / plan.sequences.max(1));
        Ok(SetupEstimate { uses: uses(machine, &profile, &memory), memory, decode })
    }

    /// This setup with the longest context that fits, or `None` if not even one step of the engine fits.
    ///
    /// # Errors
    /// See [`Setup::estimate`].
    pub fn with_longest_context(
        &self,
        machine: &Machine,
        model: &Model,
    ) -> Result<Option<Setup>, Unsuitable> {
        let with = |plan: &ContextPlan| Setup { plan: *plan, ..self.clone() };
        let fits = |plan: &ContextPlan| Ok(with(plan).estimate(machine, model)?.fits());
        Ok(longest_context(&self.plan, fits)?.map(|plan| with(&plan)))
    }
}

/// Cards between which the engine divides layers: index and share. If none has memory of its own, that is the first one.
fn engine_cards(machine: &Machine) -> Vec<(usize, u64)> {
    let own = own_cards(machine);
    if own.is_empty() { vec![(0, 1)] } else { own }
}

/// Cards with memory of their own: index and free bytes. Engines ignore graphics in the processor next to them.
pub(super) fn own_cards(machine: &Machine) -> Vec<(usize, u64)> {
    let own = |(number, gpu): (usize, &Gpu)| match gpu.memory {
        GpuMemory::Own { free_bytes, .. } if !gpu.is_in_processor => Some((number, free_bytes)),
        GpuMemory::Own { .. } | GpuMemory::Unified { .. } => None,
    };
    machine.gpus.iter().enumerate().filter_map(own).collect()
}
