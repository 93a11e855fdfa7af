//! The places where a chat model may run: the one that is requested, and those that fit instead.
//! Pure: callers pass the memory that is free.

use hob_core::ContextPlan;
use hob_core::budget::Bytes;
use hob_core::fit::{
    ComputeSite, Engine, FitError, Layout, Model, OffloadFlags, Placement, Pool, Setup,
    SetupEstimate, Use,
};
use hob_core::machine::{GpuMemory, Machine};

use super::context::{estimate_both, is_placed, offload_flags, set_up, set_up_both};
use super::named_cards::{NamedCards, card_named};
use super::placing::{
    AvoidedCards, CardBytes, CardPlacer, CardRefusals, ChosenPlace, NO_CARDS, Places, lack_text,
};
use crate::settings::ChatSettings;

/// Tokens of one step of the engine's cache, the shortest context that is tried.
const CONTEXT_TOKENS_LEAST: u32 = 256;
/// After so many refusals, the model is loaded without cards.
const REFUSALS_MAX: u32 = 3;

/// A chat model's broker of memory and chooser of places.
pub(super) type ChatPlacer = CardPlacer<RequestedPlace>;

/// A model, and the place that the settings name or that is ranked first.
#[derive(Clone, Debug)]
pub(super) struct RequestedPlace {
    /// The machine as it was when the place was chosen.
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
    /// The cards of the machine, if the settings name them.
    pub(super) cards: NamedCards,
}

impl Places for RequestedPlace {
    fn first(&self) -> ChosenPlace {
        self.chosen((&self.setup, &self.expected), self.offload_flags, None)
    }

    fn is_fixed(&self) -> bool {
        self.is_configured
    }

    /// The place that is ranked first among those that fit.
    fn next(&self, avoided: &AvoidedCards, room: &Bytes) -> Option<ChosenPlace> {
        let reason = avoided.reason();
        if self.machine.gpus.is_empty() {
            // The engine may see a card that hob does not see.
            let offload_flags = OffloadFlags { gpu_layers: Some(0), cpu_moe_layers: None };
            let note = format!("{}: the model runs on the processor", reason?);
            let place = (&self.setup, &self.expected);
            return Some(self.chosen(place, offload_flags, Some(note)));
        }
        let refused = avoided.refused.as_ref();
        let mut machine = self.machine_with(refused, room);
        if avoided.is_resting || refused.is_some_and(|refused| refused.times >= REFUSALS_MAX) {
            machine.gpus.clear();
        }
        let place = self.first_that_fits(&machine, &self.limits(refused))?;
        let is_elsewhere = place.0.layout != self.setup.layout;
        let leaves_cards = reason.is_some() && place.0.layout.gpu_layers() == 0;
        (is_elsewhere || leaves_cards).then(|| {
            let reason = reason.unwrap_or_else(|| self.lack(&self.machine_with(None, room)));
            self.elsewhere(&place, &reason)
        })
    }

    fn among_cards(&self, free: &Bytes) -> Option<ChosenPlace> {
        if !self.has_several_cards() {
            return None;
        }
        let machine = self.machine_with(None, free);
        if self.estimate(&self.setup, &machine)?.fits() {
            return Some(self.first());
        }
        let place = self.first_that_fits(&machine, &CardBytes::new())?;
        // With layers in system memory, the model would be slow for as long as it is loaded.
        let is_whole = place.0.offload_flags() == OffloadFlags::default();
        is_whole.then(|| self.elsewhere(&place, &self.lack(&machine)))
    }

    fn what_fits(&self, refused: Option<&CardRefusals>, room: &Bytes) -> Option<String> {
        let machine = self.machine_with(refused, room);
        let limits = self.limits(refused);
        let fitting = || self.first_that_fits(&machine, &limits);
        let placement = self.is_configured.then(fitting).flatten();
        let placement = placement.map(|(setup, _)| {
            let experts = match setup.layout.experts_in_ram {
                0 => String::new(),
                layers => format!(" and cpu_moe_layers = {layers}"),
            };
            format!("gpu_layers = {}{experts}", setup.layout.gpu_layers())
        });
        let context = self.context_that_fits(&machine);
        let context = context.map(|tokens| format!("context_tokens = {tokens}"));
        let settings: Vec<String> = placement.into_iter().chain(context).collect();
        (!settings.is_empty()).then(|| format!("what fits here: {}", settings.join(", or ")))
    }

    fn card_named(&self, device: &str) -> Option<usize> {
        card_named(device, &self.machine)
    }

    fn device_full(&self) -> &'static str {
        "a shorter context (chat.context_tokens) or fewer layers there (chat.gpu_layers) need less"
    }
}

impl RequestedPlace {
    /// Plans the setup of a model, and of one that guesses for it.
    ///
    /// # Errors
    /// The engine does not accept these KV types for a model, or a model has no layers.
    pub(super) fn plan(
        settings: &ChatSettings,
        (model, draft): (Model, Option<Model>),
        (machine, cards): (Machine, NamedCards),
    ) -> Result<RequestedPlace, FitError> {
        let (setup, expected) = match &draft {
            Some(draft) => set_up_both(settings, (&model, draft), &machine)?,
            None => set_up(settings, &model, &machine)?,
        };
        // If hob sees no card, the engine may see one, which the user's own settings are for.
        let offload_flags = match machine.gpus.is_empty() {
            true => offload_flags(settings),
            false => setup.offload_flags(),
        };
        let is_configured = is_placed(settings);
        Ok(RequestedPlace {
            machine,
            model,
            draft,
            setup,
            expected,
            offload_flags,
            is_configured,
            cards,
        })
    }

    /// A place that is not the first one.
    fn elsewhere(&self, (setup, expected): &(Setup, SetupEstimate), reason: &str) -> ChosenPlace {
        let note = format!("{reason}: {}", placement(setup, &self.machine));
        self.chosen((setup, expected), setup.offload_flags(), Some(note))
    }

    fn chosen(
        &self,
        (setup, expected): (&Setup, &SetupEstimate),
        offload_flags: OffloadFlags,
        note: Option<String>,
    ) -> ChosenPlace {
        let OffloadFlags { gpu_layers, cpu_moe_layers } = offload_flags;
        let counts = [("--gpu-layers", gpu_layers), ("--cpu-moe-layers", cpu_moe_layers)];
        let given = counts.into_iter().filter_map(|(flag, count)| Some((flag, count?)));
        let mut flags: Vec<String> =
            given.flat_map(|(flag, count)| [flag.to_owned(), count.to_string()]).collect();
        let may_use_cards = gpu_layers != Some(0);
        if !may_use_cards {
            // Otherwise the engine has buffers on cards for long prompts, which the prediction leaves out.
            flags.push(NO_CARDS.to_owned());
        }
        // Settings that name the layers leave the cards to the engine.
        if let Some(name) = setup.device(&self.machine).filter(|_| !self.is_configured) {
            flags.extend(["--device".to_owned(), name.to_owned()]);
        }
        let on_cards = bytes_on_cards(expected);
        ChosenPlace { needed: self.needed(expected), on_cards, may_use_cards, flags, note }
    }

    /// What a setup needs in each of the pools that all models share.
    fn needed(&self, expected: &SetupEstimate) -> Bytes {
        let used = expected.uses.iter();
        used.map(|used| (self.cards.pool(used.pool), used.kept_bytes())).collect()
    }

    /// The machine with the memory that this model could get.
    fn machine_with(&self, refused: Option<&CardRefusals>, room: &Bytes) -> Machine {
        let mut machine = self.machine.clone();
        if let Some(available_bytes) = room.get(&Pool::Ram) {
            machine.memory.available_bytes = *available_bytes;
        }
        let margin_bytes = Engine::Hob.profile().margin_bytes;
        let refused = refused.filter(|_| !self.has_several_cards());
        for (number, gpu) in machine.gpus.iter_mut().enumerate() {
            let limit = refused.and_then(|refused| refused.limits.get(&number));
            let limit = limit.copied().unwrap_or(u64::MAX);
            gpu.memory = match gpu.memory {
                GpuMemory::Own { total_bytes, .. } => {
                    // A card that the drivers do not report any more has no room.
                    let free = room
                        .get(&self.cards.pool(Pool::Vram(number)))
                        .copied()
                        .unwrap_or(0)
                        .min(limit);
                    let free_bytes = free.saturating_add(margin_bytes);
                    GpuMemory::Own { total_bytes, free_bytes }
                }
                GpuMemory::Unified { limit_bytes } => {
                    GpuMemory::Unified { limit_bytes: limit_bytes.min(limit) }
                }
            };
        }
        machine
    }

    /// Limits of several cards. The memory of one card alone is limited by [`RequestedPlace::machine_with`].
    fn limits(&self, refused: Option<&CardRefusals>) -> CardBytes {
        let refused = refused.filter(|_| self.has_several_cards());
        refused.map_or_else(CardBytes::new, |refused| refused.limits.clone())
    }

    fn has_several_cards(&self) -> bool {
        self.machine.gpus.len() > 1
    }

    /// The first place in the ranking that fits on this machine, or else the processor. `None` if the model fits at none. Cards
    /// in `limits` get no more bytes; with limits, the model then gets fewer layers on all cards until each is within its
    /// limit.
    fn first_that_fits(
        &self,
        machine: &Machine,
        limits: &CardBytes,
    ) -> Option<(Setup, SetupEstimate)> {
        let plan = self.setup.plan;
        let ranked = Setup::ranked(machine, &self.model, plan).unwrap_or_default().into_iter();
        let is_on_card = |setup: &Setup| setup.layout.gpu_layers() > 0;
        let ranked = ranked.filter(|setup| limits.is_empty() || is_on_card(setup));
        // The engine fills several cards in proportion to what is free there.
        let layers = self.setup.layout.homes.len() as u32;
        let counts = (1..=layers + 1).rev().filter(|_| !limits.is_empty());
        let fewer = counts.filter_map(|count| {
            let flags = OffloadFlags { gpu_layers: Some(count), cpu_moe_layers: None };
            Setup::new(machine, &self.model, plan, flags).ok()
        });
        let layout = Layout::whole(&self.model.shape, ComputeSite::Cpu);
        let on_processor = Setup { layout, ..self.setup.clone() };
        ranked.chain(fewer).chain([on_processor]).find_map(|setup| {
            let expected = self.estimate(&setup, machine)?;
            let on_cards = bytes_on_cards(&expected);
            let is_within =
                limits.iter().all(|(card, most)| on_cards.get(card).is_none_or(|on| on <= most));
            (expected.fits() && is_within).then_some((setup, expected))
        })
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
        match &self.draft {
            Some(draft) => estimate_both(setup, (&self.model, draft), machine).ok(),
            None => setup.estimate(machine, &self.model).ok(),
        }
    }

    /// What the requested place lacks on this machine, with both numbers.
    fn lack(&self, machine: &Machine) -> String {
        let is_lacking = |used: &&Use| match used.pool {
            Pool::Ram => used.kept_bytes() > used.free_bytes,
            Pool::Vram(_) => !used.fits(),
        };
        let expected = self.estimate(&self.setup, machine);
        let used = expected.as_ref().and_then(|expected| expected.uses.iter().find(is_lacking));
        let Some(used) = used else { return "the first place has no room".to_owned() };
        let margin_bytes = if used.pool == Pool::Ram { 0 } else { used.margin_bytes };
        let free_bytes = used.free_bytes.saturating_sub(margin_bytes);
        lack_text(self.cards.pool(used.pool), used.kept_bytes(), free_bytes)
    }
}

/// What a setup needs on each card that computes.
fn bytes_on_cards(expected: &SetupEstimate) -> CardBytes {
    let mut cards = CardBytes::new();
    for term in &expected.memory {
        if let ComputeSite::Gpu(number) = term.site {
            *cards.entry(number).or_insert(0) += term.bytes;
        }
    }
    cards
}

/// Where a model is instead.
fn placement(setup: &Setup, machine: &Machine) -> String {
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

#[cfg(test)]
mod tests;
