//! The places where a chat model may run: the one that is requested, and those that fit instead.
//! Pure: callers pass the machine with the memory that is free.

use hob_core::ContextPlan;
use hob_core::fit::{
    Layout, Model, OffloadFlags, Placement, Pool, Setup, SetupEstimate, Site, Use,
};
use hob_core::machine::Machine;

const MB: u64 = 1_000_000;
/// Tokens of one step of the engine's cache, the shortest context that is tried.
const CONTEXT_TOKENS_LEAST: u32 = 256;

/// A model, and the place that the settings name or that is ranked first.
#[derive(Clone, Debug)]
pub(super) struct RequestedPlace {
    /// As it was when the place was chosen.
    pub(super) machine: Machine,
    pub(super) model: Model,
    /// A second model in the same worker, which guesses tokens.
    pub(super) draft: Option<Model>,
    pub(super) setup: Setup,
    /// With the memory of both models.
    pub(super) expected: SetupEstimate,
    pub(super) offload_flags: OffloadFlags,
    /// Whether the settings name the place.
    pub(super) is_configured: bool,
}

impl RequestedPlace {
    /// The place that is ranked first on this machine, or else the processor. `None` if the model fits at neither.
    pub(super) fn first_that_fits(&self, machine: &Machine) -> Option<(Setup, SetupEstimate)> {
        let plan = self.setup.plan;
        let ranked = Setup::new(machine, &self.model, plan, OffloadFlags::default()).ok();
        let layout = Layout::whole(&self.model.shape, Site::Cpu);
        let on_processor = Setup { layout, ..self.setup.clone() };
        ranked.into_iter().chain([on_processor]).find_map(|setup| {
            let expected = self.estimate(&setup, machine)?;
            expected.fits().then_some((setup, expected))
        })
    }

    /// Settings with which the model fits on this machine, for people.
    pub(super) fn what_fits(&self, machine: &Machine) -> Option<String> {
        let placement = self.is_configured.then(|| self.first_that_fits(machine)).flatten();
        let placement = placement.map(|(setup, _)| {
            let experts = match setup.layout.experts_in_ram {
                0 => String::new(),
                layers => format!(" and cpu_moe_layers = {layers}"),
            };
            format!("gpu_layers = {}{experts}", setup.layout.gpu_layers())
        });
        let context = self.context_that_fits(machine);
        let context = context.map(|tokens| format!("context_tokens = {tokens}"));
        let settings: Vec<String> = placement.into_iter().chain(context).collect();
        (!settings.is_empty()).then(|| format!("what fits here: {}", settings.join(", or ")))
    }

    /// Tokens of a shorter context that fits: at the place of the settings, or else at the best one.
    fn context_that_fits(&self, machine: &Machine) -> Option<u32> {
        if self.draft.is_some() {
            return None;
        }
        let requested = self.setup.plan;
        let setup = match self.is_configured {
            true => self.setup.clone(),
            false => {
                let context_tokens = CONTEXT_TOKENS_LEAST.saturating_mul(requested.sequences);
                let plan = ContextPlan { context_tokens, ..requested };
                let flags = OffloadFlags::default();
                let short = Setup::new(machine, &self.model, plan, flags).ok()?;
                Setup { plan: requested, ..short }
            }
        };
        let longest = setup.with_longest_context(machine, &self.model).ok()??;
        let is_shorter = longest.plan.context_tokens < requested.context_tokens;
        is_shorter.then(|| longest.plan.context_tokens / requested.sequences.max(1))
    }

    fn estimate(&self, setup: &Setup, machine: &Machine) -> Option<SetupEstimate> {
        let expected = setup.estimate(machine, &self.model).ok()?;
        let Some(draft) = &self.draft else { return Some(expected) };
        // The engine gives both models the same number of layers on cards.
        let gpu_layers = Some(setup.offload_flags().gpu_layers.unwrap_or(u32::MAX));
        let flags = OffloadFlags { gpu_layers, cpu_moe_layers: None };
        let plan = ContextPlan { outputs_max: setup.plan.sequences, ..setup.plan };
        let drafted =
            Setup::new(machine, draft, plan, flags).ok()?.estimate(machine, draft).ok()?;
        Some(expected.with(drafted))
    }
}

/// What the requested place lacks on this machine, with both numbers.
pub(super) fn lacking(requested: &RequestedPlace, machine: &Machine) -> String {
    let is_lacking = |used: &&Use| match used.pool {
        Pool::Ram => used.kept_bytes() > used.free_bytes,
        Pool::Vram(_) => !used.fits(),
    };
    let expected = requested.estimate(&requested.setup, machine);
    let used = expected.as_ref().and_then(|expected| expected.uses.iter().find(is_lacking));
    let Some(used) = used else { return "the first place has no room".to_owned() };
    let margin_bytes = if used.pool == Pool::Ram { 0 } else { used.margin_bytes };
    let free_bytes = used.free_bytes.saturating_sub(margin_bytes);
    let (pool, needed, free) = (used.pool, used.kept_bytes().div_ceil(MB), free_bytes / MB);
    format!("the model needs about {needed} MB of {pool}, and {free} MB are free there")
}

/// Where a model is instead.
pub(super) fn placement(setup: &Setup, machine: &Machine) -> String {
    let layout = &setup.layout;
    match layout.placement(machine) {
        Placement::Ram => "the model runs on the processor".to_owned(),
        Placement::Vram | Placement::Unified => "all its layers are on graphics cards".to_owned(),
        Placement::ExpertsOffloaded { layers } => {
            format!("the experts of {layers} of its layers are in system memory")
        }
        Placement::Split { .. } => {
            let (on_cards, all) = (layout.gpu_layers(), layout.homes.len() + 1);
            format!("{on_cards} of its {all} layers are on graphics cards")
        }
    }
}
