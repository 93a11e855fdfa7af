//! Chooses where the transcription model is loaded: on the first graphics card as a whole, or else on the processor.
//! The card is left if it has no room, refused the model, or was lost.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::budget::Bytes;
use hob_core::card_losses::CARDS_REST;
use hob_core::fit::{DriverBytes, Engine, Pool};
use hob_core::machine::{GpuMemory, Machine};
use hob_core::{MemoryBroker, MemoryDecision, MemoryRequest, ModelError, locked};
use hob_engines::supervisor::{PlacedWorker, Placer, WorkerCommand};
use hob_engines::worker::protocol::DeviceShortage;

use super::memory::ModelMemory;
use super::placing::{REFUSED_FOR, cards_rest, refusal};

const MB: u64 = 1_000_000;

/// Predicted bytes at both places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HearPlaces {
    pub(super) on_card: Bytes,
    pub(super) on_processor: Bytes,
}

/// The model's broker of memory and chooser of places.
#[derive(Clone, Debug)]
pub(super) struct HearPlacer(Arc<HearPlacing>);

#[derive(Debug)]
struct HearPlacing {
    command: WorkerCommand,
    memory: ModelMemory,
    places: HearPlaces,
    state: Mutex<HearState>,
}

#[derive(Debug)]
struct HearState {
    /// Why the model is on the processor. `None`: it is on the card.
    note: Option<String>,
    /// When a card had no room for the model, and what it said.
    refused: Option<(Instant, String)>,
    /// When the last worker was started.
    started: Instant,
}

impl HearPlaces {
    /// `model_bytes` are those of weights, caches and buffers; `process_bytes` is what the worker takes besides.
    pub(super) fn new(machine: &Machine, model_bytes: u64, process_bytes: u64) -> HearPlaces {
        let ram = |bytes: u64| Bytes::from([(Pool::Ram, bytes)]);
        let on_processor = ram(model_bytes + process_bytes);
        let is_own = |memory: GpuMemory| matches!(memory, GpuMemory::Own { .. });
        let first = machine.gpus.iter().position(|gpu| is_own(gpu.memory));
        // The engine may see a card that hob does not see, and one without memory of its own takes the system's.
        let on_card = first.map_or_else(
            || on_processor.clone(),
            |number| {
                let driver = DriverBytes::of(&machine.gpus[number], &Engine::Hob.profile());
                let mut bytes = ram(process_bytes + driver.in_process);
                bytes.insert(Pool::Vram(number), model_bytes + driver.on_card);
                bytes
            },
        );
        HearPlaces { on_card, on_processor }
    }
}

impl HearPlacer {
    pub(super) fn new(
        command: WorkerCommand,
        memory: ModelMemory,
        places: HearPlaces,
    ) -> HearPlacer {
        let state = HearState { note: None, refused: None, started: Instant::now() };
        HearPlacer(Arc::new(HearPlacing { command, memory, places, state: Mutex::new(state) }))
    }
}

impl HearPlacing {
    /// Chooses the place of the next load, and reserves for it from now on. Nothing changes during a load of this model, and
    /// during that of another one, what is free says little.
    fn choose(&self) {
        if self.memory.is_loading() {
            return;
        }
        let reason = self.reason_against_card();
        // A load may have begun while drivers were asked.
        if !self.memory.is_loading() {
            self.set_place(reason);
        }
    }

    fn choose_now(&self) {
        self.set_place(self.reason_against_card());
    }

    /// Why the model is not to be on the card. The state is not locked while drivers are asked.
    fn reason_against_card(&self) -> Option<String> {
        let refused = {
            let mut state = locked(&self.state);
            state.refused.take_if(|(at, _)| at.elapsed() >= REFUSED_FOR);
            state.refused.clone()
        };
        match refused {
            // A model that is not to be on the card does not try it for the others.
            Some((_, said)) => Some(said),
            None if !self.memory.may_use_cards() => Some(cards_rest()),
            None => self.shortage_text(),
        }
    }

    fn set_place(&self, reason_against_card: Option<String>) {
        let note = reason_against_card.map(|why| format!("{why}: the model runs on the processor"));
        let mut state = locked(&self.state);
        state.note = note;
        self.memory.expect(state.predicted(&self.places));
    }

    /// What the card lacks, with both numbers.
    fn shortage_text(&self) -> Option<String> {
        self.memory.check_room_for(&self.places.on_card).err()?;
        let room = self.memory.room();
        self.places.on_card.iter().find_map(|(pool, needed)| {
            let free = room.get(pool).filter(|free| *free < needed)?;
            let (needed, free) = (needed.div_ceil(MB), free / MB);
            Some(format!(
                "the model needs about {needed} MB of {pool}, and {free} MB are free there"
            ))
        })
    }

    fn is_on_processor(&self) -> bool {
        locked(&self.state).note.is_some()
    }
}

impl HearState {
    fn predicted<'a>(&self, places: &'a HearPlaces) -> &'a Bytes {
        match self.note {
            None => &places.on_card,
            Some(_) => &places.on_processor,
        }
    }
}

impl MemoryBroker for HearPlacer {
    fn check_room(&self) -> Result<(), ModelError> {
        self.0.choose();
        self.0.memory.check_room()
    }

    fn queue(&self) -> Box<dyn MemoryRequest> {
        self.0.choose();
        Box::new(HearRequest { placing: Arc::clone(&self.0), waiting: self.0.memory.queue() })
    }

    fn admit_request(&self) -> bool {
        self.0.memory.admit_request()
    }
}

impl Placer for HearPlacer {
    fn place(&self) -> PlacedWorker {
        let (note, predicted) = {
            let mut state = locked(&self.0.state);
            state.started = Instant::now();
            (state.note.clone(), state.predicted(&self.0.places).clone())
        };
        let command = self.0.command.clone();
        let command = match &note {
            None => command,
            Some(note) => {
                tracing::warn!(model = self.0.memory.name(), "{note}");
                command.arg("--no-cards")
            }
        };
        PlacedWorker { command, predicted, note }
    }

    fn move_from(&self, shortage: Option<&DeviceShortage>) -> Result<(), String> {
        let was_on_processor = self.0.is_on_processor();
        locked(&self.0.state).refused = Some((Instant::now(), refusal(shortage)));
        self.0.choose_now();
        if was_on_processor { Err(String::new()) } else { Ok(()) }
    }

    fn device_full(&self) -> String {
        "send the request again: hob loads the model on the processor".to_owned()
    }

    fn device_lost(&self) -> String {
        let started = locked(&self.0.state).started;
        let next = match self.0.memory.record_card_loss(started) {
            false => "hob loads the model on the card once more".to_owned(),
            true => {
                let minutes = CARDS_REST.as_secs() / 60;
                format!("for {minutes} min, hob loads models on the processor")
            }
        };
        format!("send the request again: {next}")
    }
}

/// The model while it waits for memory. It takes the other place if this one has no room.
struct HearRequest {
    placing: Arc<HearPlacing>,
    waiting: Box<dyn MemoryRequest>,
}

impl MemoryRequest for HearRequest {
    fn try_reserve(&mut self) -> BoxFuture<'_, MemoryDecision> {
        async move {
            // Another model that was being loaded may now be one that can leave.
            self.placing.choose();
            let refusal = match self.waiting.try_reserve().await {
                MemoryDecision::Never(refusal) => refusal,
                decision => return decision,
            };
            let before = self.placing.is_on_processor();
            self.placing.choose();
            match self.placing.is_on_processor() == before {
                true => MemoryDecision::Never(refusal),
                false => MemoryDecision::Soon,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use hob_machine::profile;

    use super::*;
    use crate::wire_up::memory::{Memory, Need};

    const GB: u64 = 1_000_000_000;

    struct Desk {
        placer: HearPlacer,
        free: Arc<Mutex<Bytes>>,
    }

    impl Desk {
        /// A model of 250 MB on a machine with one card of 24 GB.
        fn new() -> Desk {
            let machine = profile::builtin("rtx-4090").expect("a profile").machine;
            let places = HearPlaces::new(&machine, 250 * MB, 30 * MB);
            let free = Bytes::from([(Pool::Ram, 8 * GB), (Pool::Vram(0), 20 * GB)]);
            let free = Arc::new(Mutex::new(free));
            let seen = Arc::clone(&free);
            let memory = Memory::with(None, Box::new(move |_| locked(&seen).clone()));
            let need = Need { estimated: places.on_card.clone(), is_pinned: false };
            let memory = memory.of_model("w", need);
            Desk { placer: HearPlacer::new(WorkerCommand::new("hob"), memory, places), free }
        }

        /// The flags of the next load, its pools and its note.
        fn next(&self) -> (Vec<String>, Vec<Pool>, String) {
            assert_eq!(self.placer.check_room(), Ok(()));
            let queued = self.placer.queue();
            let placed = self.placer.place();
            drop(queued);
            let flags = placed.command.args.iter();
            let flags = flags.map(|flag| flag.to_string_lossy().into_owned()).collect();
            let pools = placed.predicted.keys().copied().collect();
            (flags, pools, placed.note.unwrap_or_default())
        }

        fn is_on_card(&self) -> bool {
            let (flags, pools, note) = self.next();
            let is_on_card = pools == [Pool::Ram, Pool::Vram(0)];
            assert_eq!((flags.is_empty(), note.is_empty()), (is_on_card, is_on_card), "{note}");
            is_on_card
        }
    }

    #[test]
    fn a_card_takes_the_model_and_its_driver_and_the_process_takes_the_rest() {
        let mut machine = profile::builtin("rtx-4090").expect("a profile").machine;
        let HearPlaces { on_card, on_processor } = HearPlaces::new(&machine, 250 * MB, 30 * MB);
        assert_eq!(on_processor, Bytes::from([(Pool::Ram, 280 * MB)]));
        assert!((30 * MB..500 * MB).contains(&on_card[&Pool::Ram]), "{on_card:?}");
        assert!((600 * MB..1_000 * MB).contains(&on_card[&Pool::Vram(0)]), "{on_card:?}");
        machine.gpus[0].memory = GpuMemory::Unified { limit_bytes: GB };
        assert_eq!(HearPlaces::new(&machine, 250 * MB, 30 * MB).on_card, on_processor);
        machine.gpus.clear();
        assert_eq!(HearPlaces::new(&machine, 250 * MB, 30 * MB).on_card, on_processor);
    }

    #[test]
    fn a_full_card_sends_the_model_to_the_processor_and_back_when_it_is_free_again() {
        let desk = Desk::new();
        assert!(desk.is_on_card());
        locked(&desk.free).insert(Pool::Vram(0), 200 * MB);
        let (flags, pools, note) = desk.next();
        assert_eq!((flags, pools), (vec!["--no-cards".to_owned()], vec![Pool::Ram]));
        assert!(note.starts_with("the model needs about "), "{note}");
        let rest = " MB of GPU 0, and 200 MB are free there: the model runs on the processor";
        assert!(note.ends_with(rest), "{note}");
        locked(&desk.free).insert(Pool::Vram(0), 20 * GB);
        assert!(desk.is_on_card());
    }

    #[test]
    fn a_card_that_refuses_the_model_is_left_for_a_while() {
        let desk = Desk::new();
        assert!(desk.is_on_card());
        let device = "CUDA0 (a card)".to_owned();
        let shortage = DeviceShortage { device, needed_bytes: 90 * MB, free_bytes: 7 * MB };
        assert_eq!(desk.placer.move_from(Some(&shortage)), Ok(()));
        let (_, _, note) = desk.next();
        let said = "CUDA0 (a card) had no room for 90 MB of the model, with 7 MB free before it";
        assert_eq!(note, format!("{said}: the model runs on the processor"));
        assert_eq!(desk.placer.move_from(None), Err(String::new()), "there is no third place");
        let long_ago = Instant::now().checked_sub(REFUSED_FOR).expect("a time");
        locked(&desk.placer.0.state).refused = Some((long_ago, said.to_owned()));
        assert!(desk.is_on_card());
    }

    #[test]
    fn a_card_that_was_lost_twice_is_left_alone() {
        let desk = Desk::new();
        assert!(desk.placer.device_lost().ends_with("hob loads the model on the card once more"));
        assert!(desk.is_on_card());
        assert!(desk.placer.device_lost().ends_with("hob loads models on the processor"));
        assert!(!desk.is_on_card());
        assert!(desk.next().2.starts_with("graphics cards were lost twice"));
    }

    #[test]
    fn without_room_at_both_places_the_error_is_that_of_the_processor() {
        let desk = Desk::new();
        *locked(&desk.free) = Bytes::from([(Pool::Ram, 100 * MB), (Pool::Vram(0), 0)]);
        let (needed_bytes, available_bytes) = (280 * MB, 100 * MB);
        let error = ModelError::OutOfMemory { needed_bytes, available_bytes, what_fits: None };
        assert_eq!(desk.placer.check_room(), Err(error));
    }
}
