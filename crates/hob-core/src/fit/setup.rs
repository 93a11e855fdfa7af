//! What a model will take, and how fast it will be, the way somebody sets its engine up: the terms of an answer, of one
//! layout. A hob asks this before it loads a model.

use super::layout::{Layout, Pool, Site};
use super::memory::{Term, terms};
use super::speed::{Course, Rate};
use super::{Engine, FitError, Model, Use, Wish, assess, uses};
use crate::footprint::{ContextPlan, Unsuitable, longest_context};
use crate::machine::Machine;

/// How an engine is told to run a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    pub engine: Engine,
    pub layout: Layout,
    pub plan: ContextPlan,
}

/// What somebody wants it to be told; none: as is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Of all layers and the output, so many are on cards.
    pub gpu_layers: Option<u32>,
    /// The experts of so many layers are in the system's memory.
    pub cpu_moe_layers: Option<u32>,
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    pub memory: Vec<Term>,
    pub uses: Vec<Use>,
    /// Of one stream behind a full context; none where nobody knows how fast memory is.
    pub decode: Option<Rate>,
}

impl Expected {
    /// Of one memory; 0 where it lies in others.
    pub fn needed_bytes(&self, pool: Pool) -> u64 {
        self.uses.iter().find(|used| used.pool == pool).map_or(0, |used| used.needed_bytes)
    }

    /// How much of the system's memory is left free is for whoever limits it to say; of a card's, for its engine.
    pub fn fits(&self) -> bool {
        self.uses.iter().all(|used| match used.pool {
            Pool::Ram => used.needed_bytes <= used.free_bytes,
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
        told: Told,
    ) -> Result<Setup, FitError> {
        let engine = Engine::Hob;
        let layout = match told {
            _ if machine.gpus.is_empty() => Layout::whole(&model.shape, Site::Cpu),
            Told { gpu_layers: Some(count), cpu_moe_layers } => {
                let experts_in_ram = cpu_moe_layers.unwrap_or(0);
                Layout { experts_in_ram, ..Layout::told(&model.shape, 0, count) }
            }
            Told { gpu_layers: None, cpu_moe_layers: Some(experts_in_ram) } => {
                Layout { experts_in_ram, ..Layout::whole(&model.shape, Site::Gpu(0)) }
            }
            Told { gpu_layers: None, cpu_moe_layers: None } => {
                let sequences = plan.sequences.max(1);
                let context_tokens = Some(plan.context_tokens / sequences);
                let wish = Wish {
                    context_tokens,
                    kv: Some(plan.kv),
                    sequences,
                    engine: Some(engine),
                    ..Wish::default()
                };
                let plans = assess(machine, model, &wish)?.plans;
                plans.into_iter().next().ok_or(FitError::NoLayers)?.layout
            }
        };
        Ok(Setup { engine, layout, plan })
    }

    /// # Errors
    /// The engine would not take these KV types with this model.
    pub fn expected(&self, machine: &Machine, model: &Model) -> Result<Expected, Unsuitable> {
        let Setup { engine, layout, plan } = self;
        let habits = engine.habits();
        let memory = terms(model, machine, layout, plan, &habits)?;
        let course = Course { model, machine, layout, kv: plan.kv, habits: &habits };
        let decode = course.decode(plan.context_tokens / plan.sequences.max(1));
        Ok(Expected { uses: uses(machine, &habits, &memory), memory, decode })
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
