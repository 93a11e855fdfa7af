//! The places where a chat model may run: the one that is requested, and those that fit instead.
//! Pure: callers pass the machine with the memory that is free.

use std::collections::BTreeMap;

use hob_core::ContextPlan;
use hob_core::fit::{
    ComputeSite, Layout, Model, OffloadFlags, Placement, Pool, Setup, SetupEstimate, Use,
};
use hob_core::machine::Machine;

const MB: u64 = 1_000_000;
/// Tokens of one step of the engine's cache, the shortest context that is tried.
const CONTEXT_TOKENS_LEAST: u32 = 256;

/// Bytes on graphics cards, by their number.
pub(super) type CardBytes = BTreeMap<usize, u64>;

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
    /// Also true if hob sees no card, because the engine may see one.
    pub(super) fn may_be_on_cards(&self) -> bool {
        self.machine.gpus.is_empty() || !bytes_on_cards(&self.expected).is_empty()
    }

    /// The place that is ranked first on this machine, or else the processor. `None` if the model fits at neither. Cards in
    /// `limits` get no more bytes; with limits, the model gets fewer layers on all cards until each is within its limit.
    pub(super) fn first_that_fits(
        &self,
        machine: &Machine,
        limits: &CardBytes,
    ) -> Option<(Setup, SetupEstimate)> {
        let ranked = self.planned(machine, None);
        // The engine fills several cards in proportion to what is free there.
        let layers = self.setup.layout.homes.len() as u32;
        let counts = (1..=layers).rev().filter(|_| !limits.is_empty());
        let fewer = counts.filter_map(|count| self.planned(machine, Some(count)));
        let layout = Layout::whole(&self.model.shape, ComputeSite::Cpu);
        let on_processor = Setup { layout, ..self.setup.clone() };
        ranked.into_iter().chain(fewer).chain([on_processor]).find_map(|setup| {
            let expected = self.estimate(&setup, machine)?;
            let on_cards = bytes_on_cards(&expected);
            let is_within =
                limits.iter().all(|(card, most)| on_cards.get(card).is_none_or(|on| on <= most));
            (expected.fits() && is_within).then_some((setup, expected))
        })
    }

    fn planned(&self, machine: &Machine, gpu_layers: Option<u32>) -> Option<Setup> {
        let flags = OffloadFlags { gpu_layers, cpu_moe_layers: None };
        Setup::new(machine, &self.model, self.setup.plan, flags).ok()
    }

    /// Settings with which the model fits on this machine, for people.
    pub(super) fn what_fits(&self, machine: &Machine, limits: &CardBytes) -> Option<String> {
        let fitting = || self.first_that_fits(machine, limits);
        let placement = self.is_configured.then(fitting).flatten();
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

/// What a setup needs on each card that computes.
pub(super) fn bytes_on_cards(expected: &SetupEstimate) -> CardBytes {
    let mut cards = CardBytes::new();
    for term in &expected.memory {
        if let ComputeSite::Gpu(number) = term.site {
            *cards.entry(number).or_insert(0) += term.bytes;
        }
    }
    cards
}

/// The number of the card that a driver names, such as `CUDA1 (NVIDIA GeForce RTX 3090)`. `None` if it may be one of several.
pub(super) fn card_named(device: &str, machine: &Machine) -> Option<usize> {
    let (engine_name, name) = device.strip_suffix(')')?.split_once(" (")?;
    let is_alike = |number: &usize| machine.gpus[*number].name == name;
    let alike: Vec<usize> = (0..machine.gpus.len()).filter(is_alike).collect();
    match alike[..] {
        [only] => Some(only),
        // Equal cards have the same order here and there: that of their slots.
        _ if alike.len() == machine.gpus.len() => {
            let number = engine_name.trim_start_matches(|c: char| !c.is_ascii_digit());
            alike.get(number.parse::<usize>().ok()?).copied()
        }
        _ => None,
    }
}

/// What the requested place lacks on this machine, with both numbers.
pub(super) fn shortage_text(requested: &RequestedPlace, machine: &Machine) -> String {
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
