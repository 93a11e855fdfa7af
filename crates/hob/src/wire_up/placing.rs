//! Chooses where a chat model is loaded: where `hob fit` ranks it first, or else the next place that has room.
//! A place that the settings name is kept; errors then say what would fit.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::budget::Bytes;
use hob_core::card_losses::CARDS_REST;
use hob_core::fit::{Engine, OffloadFlags, Pool, SetupEstimate};
use hob_core::machine::{GpuMemory, Machine};
use hob_core::{MemoryBroker, MemoryDecision, MemoryRequest, ModelError, locked};
use hob_engines::supervisor::{PlacedWorker, Placer, WorkerCommand};
use hob_engines::worker::protocol::DeviceShortage;

use super::memory::ModelMemory;
use super::places::{
    CardBytes, RequestedPlace, bytes_on_cards, card_named, placement, shortage_text,
};

/// How long a card's refusal counts. Other programs may have freed its memory since.
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(600);
/// After so many refusals, the model is loaded without cards.
const REFUSALS_MAX: u32 = 3;
const MB: u64 = 1_000_000;

/// A model's broker of memory and chooser of places.
#[derive(Clone, Debug)]
pub(super) struct ChatPlacer(Arc<Placing>);

#[derive(Debug)]
struct Placing {
    requested: RequestedPlace,
    /// Without the flags of a place.
    command: WorkerCommand,
    memory: ModelMemory,
    state: Mutex<PlacingState>,
}

#[derive(Debug)]
struct PlacingState {
    chosen: ChosenPlace,
    refused: Option<CardRefusals>,
    /// When the last worker was started.
    started: Instant,
}

/// The place of the next load, or of the loaded model.
#[derive(Clone, Debug)]
struct ChosenPlace {
    expected: SetupEstimate,
    offload_flags: OffloadFlags,
    note: Option<String>,
}

/// What cards did not give, although their drivers said that it was free.
#[derive(Clone, Debug)]
struct CardRefusals {
    at: Instant,
    times: u32,
    /// The last refusal, with its numbers.
    said: String,
    /// Maximum bytes on each card from now on.
    limits: CardBytes,
}

impl ChatPlacer {
    pub(super) fn new(
        requested: RequestedPlace,
        command: WorkerCommand,
        memory: ModelMemory,
    ) -> ChatPlacer {
        let chosen = ChosenPlace::requested(&requested);
        let state = Mutex::new(PlacingState { chosen, refused: None, started: Instant::now() });
        ChatPlacer(Arc::new(Placing { requested, command, memory, state }))
    }
}

impl Placing {
    /// Chooses the place of the next load, and reserves for it from now on. Nothing changes during a load of this model, and
    /// during that of another one, what is free says little.
    fn choose(&self) {
        if self.requested.is_configured || self.memory.is_loading() {
            return;
        }
        let chosen = self.best_place();
        // A load may have begun while drivers were asked.
        if !self.memory.is_loading() {
            self.set_chosen(chosen);
        }
    }

    fn choose_now(&self) {
        if !self.requested.is_configured {
            self.set_chosen(self.best_place());
        }
    }

    /// The requested place if it has room, or else the next one. The state is not locked while drivers are asked.
    fn best_place(&self) -> ChosenPlace {
        let refused = {
            let mut state = locked(&self.state);
            state.forget_old_refusals();
            state.refused.clone()
        };
        let requested = ChosenPlace::requested(&self.requested);
        let is_resting = self.requested.may_be_on_cards() && !self.memory.may_use_cards();
        let is_avoided = is_resting || refused.is_some();
        if !is_avoided && self.memory.check_room_for(&requested.needed()).is_ok() {
            return requested;
        }
        self.next_place(refused.as_ref(), is_resting).unwrap_or(requested)
    }

    fn set_chosen(&self, chosen: ChosenPlace) {
        self.memory.expect(&chosen.needed());
        locked(&self.state).chosen = chosen;
    }

    /// The place that is ranked first among those that fit. `None` if only the requested one does.
    fn next_place(&self, refused: Option<&CardRefusals>, is_resting: bool) -> Option<ChosenPlace> {
        let requested = &self.requested;
        let reason = || match refused {
            _ if is_resting => cards_rest(),
            Some(refused) => refused.said.clone(),
            None => shortage_text(requested, &self.machine(None)),
        };
        if requested.machine.gpus.is_empty() {
            // The engine may see a card that hob does not see.
            let is_avoided = is_resting || refused.is_some();
            let offload_flags = OffloadFlags { gpu_layers: Some(0), cpu_moe_layers: None };
            let note = Some(format!("{}: the model runs on the processor", reason()));
            let expected = requested.expected.clone();
            return is_avoided.then_some(ChosenPlace { expected, offload_flags, note });
        }
        let mut machine = self.machine(refused);
        if is_resting || refused.is_some_and(|refused| refused.times >= REFUSALS_MAX) {
            machine.gpus.clear();
        }
        let (setup, expected) = requested.first_that_fits(&machine, &self.limits(refused))?;
        let is_elsewhere = setup.layout != requested.setup.layout;
        is_elsewhere.then(|| ChosenPlace {
            expected,
            offload_flags: setup.offload_flags(),
            note: Some(format!("{}: {}", reason(), placement(&setup, &machine))),
        })
    }

    /// The machine with the memory that this model could get.
    fn machine(&self, refused: Option<&CardRefusals>) -> Machine {
        let room = self.memory.room();
        let mut machine = self.requested.machine.clone();
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
                    let free = room.get(&Pool::Vram(number)).copied().unwrap_or(0).min(limit);
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

    /// Limits of several cards. The memory of one card alone is limited by [`Placing::machine`].
    fn limits(&self, refused: Option<&CardRefusals>) -> CardBytes {
        let refused = refused.filter(|_| self.has_several_cards());
        refused.map_or_else(CardBytes::new, |refused| refused.limits.clone())
    }

    fn has_several_cards(&self) -> bool {
        self.requested.machine.gpus.len() > 1
    }

    fn with_what_fits(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::OutOfMemory { needed_bytes, available_bytes, what_fits: None } => {
                let what_fits = self.requested.what_fits(&self.machine(None), &CardBytes::new());
                ModelError::OutOfMemory { needed_bytes, available_bytes, what_fits }
            }
            other => other,
        }
    }

    fn flags(&self) -> OffloadFlags {
        locked(&self.state).chosen.offload_flags
    }
}

impl PlacingState {
    fn forget_old_refusals(&mut self) {
        if self.refused.as_ref().is_some_and(|refused| refused.at.elapsed() >= REFUSED_FOR) {
            self.refused = None;
        }
    }
}

impl ChosenPlace {
    fn requested(requested: &RequestedPlace) -> ChosenPlace {
        let (expected, offload_flags) = (requested.expected.clone(), requested.offload_flags);
        ChosenPlace { expected, offload_flags, note: None }
    }

    fn needed(&self) -> Bytes {
        self.expected.uses.iter().map(|used| (used.pool, used.kept_bytes())).collect()
    }
}

impl CardRefusals {
    /// A quarter less than was wanted of the card that had no room, and no more than was free there. If it may be one of
    /// several cards, a quarter less of each.
    fn after(
        earlier: Option<&CardRefusals>,
        chosen: &ChosenPlace,
        shortage: Option<&DeviceShortage>,
        machine: &Machine,
    ) -> CardRefusals {
        let mut wanted = bytes_on_cards(&chosen.expected);
        if let Some(full) = shortage.and_then(|one| card_named(&one.device, machine))
            && wanted.contains_key(&full)
        {
            wanted.retain(|card, _| *card == full);
        }
        let free = shortage.filter(|_| wanted.len() == 1).map_or(u64::MAX, |one| one.free_bytes);
        let limit = |(number, bytes): (&usize, &u64)| (*number, (bytes / 4 * 3).min(free));
        let mut limits = earlier.map_or_else(CardBytes::new, |earlier| earlier.limits.clone());
        limits.extend(wanted.iter().map(limit));
        CardRefusals {
            at: Instant::now(),
            times: earlier.map_or(0, |earlier| earlier.times) + 1,
            said: refusal(shortage),
            limits,
        }
    }
}

/// Why a model is not on a card that had no room for it.
pub(super) fn refusal(shortage: Option<&DeviceShortage>) -> String {
    let Some(DeviceShortage { device, needed_bytes, free_bytes }) = shortage else {
        return "a graphics card had no memory left".to_owned();
    };
    let (needed, free) = (needed_bytes.div_ceil(MB), free_bytes / MB);
    format!("{device} had no room for {needed} MB of the model, with {free} MB free before it")
}

/// Why no model is on a card.
pub(super) fn cards_rest() -> String {
    let minutes = CARDS_REST.as_secs() / 60;
    format!("graphics cards were lost twice, so they are left alone for {minutes} min")
}

impl MemoryBroker for ChatPlacer {
    fn check_room(&self) -> Result<(), ModelError> {
        self.0.choose();
        self.0.memory.check_room().map_err(|error| self.0.with_what_fits(error))
    }

    fn queue(&self) -> Box<dyn MemoryRequest> {
        self.0.choose();
        Box::new(PlacedRequest { placing: Arc::clone(&self.0), waiting: self.0.memory.queue() })
    }

    fn admit_request(&self) -> bool {
        self.0.memory.admit_request()
    }
}

impl Placer for ChatPlacer {
    fn place(&self) -> PlacedWorker {
        let chosen = {
            let mut state = locked(&self.0.state);
            state.started = Instant::now();
            state.chosen.clone()
        };
        if let Some(note) = &chosen.note {
            tracing::warn!(model = self.0.memory.name(), "{note}");
        }
        let OffloadFlags { gpu_layers, cpu_moe_layers } = chosen.offload_flags;
        let flags = [("--gpu-layers", gpu_layers), ("--cpu-moe-layers", cpu_moe_layers)];
        let given = flags.into_iter().filter_map(|(flag, count)| Some((flag, count?)));
        let mut command = given.fold(self.0.command.clone(), |command, (flag, count)| {
            command.arg(flag).arg(count.to_string())
        });
        // Without layers on a card, the engine still has buffers there for long prompts.
        if chosen.note.is_some() && gpu_layers == Some(0) {
            command = command.arg("--no-cards");
        }
        PlacedWorker { command, predicted: chosen.needed(), note: chosen.note }
    }

    fn move_from(&self, shortage: Option<&DeviceShortage>) -> Result<(), String> {
        let placing = &self.0;
        let (before, refused) = {
            let mut state = locked(&placing.state);
            state.forget_old_refusals();
            let machine = &placing.requested.machine;
            let earlier = state.refused.as_ref();
            let refused = CardRefusals::after(earlier, &state.chosen, shortage, machine);
            state.refused = Some(refused.clone());
            (state.chosen.offload_flags, refused)
        };
        placing.choose_now();
        let chosen = locked(&placing.state).chosen.clone();
        // Without a note it is the requested place, which is chosen again if the model fits nowhere else.
        if chosen.note.is_some() && chosen.offload_flags != before {
            return Ok(());
        }
        let (machine, limits) = (placing.machine(Some(&refused)), placing.limits(Some(&refused)));
        Err(placing.requested.what_fits(&machine, &limits).unwrap_or_default())
    }

    fn device_full(&self) -> String {
        "a shorter context (chat.context_tokens) or fewer layers there (chat.gpu_layers) need less"
            .to_owned()
    }

    fn device_lost(&self) -> String {
        let started = locked(&self.0.state).started;
        let is_resting = self.0.memory.record_card_loss(started);
        let next = match (self.0.requested.is_configured, is_resting) {
            (true, _) => "hob loads the model there again, as hob.toml says".to_owned(),
            (false, false) => "hob loads the model on the card once more".to_owned(),
            (false, true) => {
                let minutes = CARDS_REST.as_secs() / 60;
                format!("for {minutes} min, hob loads chat models on the processor")
            }
        };
        format!("send the request again: {next}")
    }
}

/// A model that waits for memory, and takes another place if this one has no room.
struct PlacedRequest {
    placing: Arc<Placing>,
    waiting: Box<dyn MemoryRequest>,
}

impl MemoryRequest for PlacedRequest {
    fn try_reserve(&mut self) -> BoxFuture<'_, MemoryDecision> {
        async move {
            // Another model that was being loaded may now be one that can leave.
            self.placing.choose();
            let refusal = match self.waiting.try_reserve().await {
                MemoryDecision::Never(refusal) => refusal,
                decision => return decision,
            };
            let before = self.placing.flags();
            self.placing.choose();
            match self.placing.flags() == before {
                true => MemoryDecision::Never(self.placing.with_what_fits(refusal)),
                false => MemoryDecision::Soon,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
