//! The two places of the transcription model: on the first graphics card as a whole, or else on the processor.
//! Pure: callers pass the memory that is free.

use hob_core::budget::Bytes;
use hob_core::fit::{DriverBytes, Engine, Pool};
use hob_core::machine::Machine;

use super::named_cards::NamedCards;
use super::placing::{
    AvoidedCards, CardBytes, CardPlacer, CardRefusals, ChosenPlace, NO_CARDS, Places, lack_text,
};

/// The model's broker of memory and chooser of places.
pub(super) type TranscriptionPlacer = CardPlacer<TranscriptionPlaces>;

/// Predicted bytes at both places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TranscriptionPlaces {
    pub(super) on_card: Bytes,
    pub(super) on_processor: Bytes,
}

impl TranscriptionPlaces {
    /// `model_bytes` are those of weights, caches and buffers; `process_bytes` is what the worker takes besides.
    pub(super) fn new(
        (machine, cards): &(Machine, NamedCards),
        model_bytes: u64,
        process_bytes: u64,
    ) -> TranscriptionPlaces {
        let ram = |bytes: u64| Bytes::from([(Pool::Ram, bytes)]);
        let on_processor = ram(model_bytes + process_bytes);
        let first = machine.gpus.iter().position(|gpu| !gpu.is_integrated());
        // The engine may see a card that hob does not see, and one without memory of its own takes the system's.
        let on_card = first.map_or_else(
            || on_processor.clone(),
            |number| {
                let driver = DriverBytes::of(&machine.gpus[number], &Engine::Hob.profile());
                let mut bytes = ram(process_bytes + driver.in_process);
                bytes.insert(cards.pool(Pool::Vram(number)), model_bytes + driver.on_card);
                bytes
            },
        );
        TranscriptionPlaces { on_card, on_processor }
    }

    /// What the card lacks, with both numbers.
    fn lack(&self, room: &Bytes) -> Option<String> {
        self.on_card.iter().find_map(|(pool, needed)| {
            let free = room.get(pool).filter(|free| *free < needed)?;
            Some(lack_text(*pool, *needed, *free))
        })
    }
}

impl Places for TranscriptionPlaces {
    fn first(&self) -> ChosenPlace {
        ChosenPlace {
            needed: self.on_card.clone(),
            on_cards: CardBytes::new(),
            may_use_cards: true,
            flags: Vec::new(),
            note: None,
        }
    }

    fn is_fixed(&self) -> bool {
        false
    }

    fn next(&self, avoided: &AvoidedCards, room: &Bytes) -> Option<ChosenPlace> {
        let reason = avoided.reason().or_else(|| self.lack(room))?;
        Some(ChosenPlace {
            needed: self.on_processor.clone(),
            on_cards: CardBytes::new(),
            may_use_cards: false,
            flags: vec![NO_CARDS.to_owned()],
            note: Some(format!("{reason}: the model runs on the processor")),
        })
    }

    /// Nothing can be set but the model.
    fn what_fits(&self, _refused: Option<&CardRefusals>, _room: &Bytes) -> Option<String> {
        None
    }

    /// After a refusal the model leaves the card, whichever it was.
    fn card_named(&self, _device: &str) -> Option<usize> {
        None
    }

    fn device_full(&self) -> &'static str {
        "send the request again: hob loads the model on the processor"
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use hob_core::machine::GpuMemory;
    use hob_core::{MemoryBroker, ModelError, locked};
    use hob_engines::supervisor::{Placer, WorkerCommand};
    use hob_engines::worker::protocol::DeviceShortage;
    use hob_machine::profile;

    use super::*;
    use crate::wire_up::memory::{Memory, Need};
    use crate::wire_up::placing::REFUSED_FOR;

    const MB: u64 = 1_000_000;
    const GB: u64 = 1_000_000_000;

    /// With one card of 24 GB.
    fn machine() -> (Machine, NamedCards) {
        let machine = profile::builtin("rtx-4090").expect("a profile").machine;
        (machine, NamedCards::default())
    }

    struct Desk {
        placer: TranscriptionPlacer,
        free: Arc<Mutex<Bytes>>,
    }

    impl Desk {
        /// A model of 250 MB on a machine with one card of 24 GB.
        fn new() -> Desk {
            let places = TranscriptionPlaces::new(&machine(), 250 * MB, 30 * MB);
            let free = Bytes::from([(Pool::Ram, 8 * GB), (Pool::Vram(0), 20 * GB)]);
            let free = Arc::new(Mutex::new(free));
            let seen = Arc::clone(&free);
            let memory = Memory::with(None, Box::new(move |_| locked(&seen).clone()));
            let need = Need { estimated: places.on_card.clone(), is_pinned: false };
            let memory = memory.of_model("w", need);
            Desk {
                placer: TranscriptionPlacer::new(places, WorkerCommand::new("hob"), memory),
                free,
            }
        }

        fn is_on_card(&self) -> bool {
            let (flags, pools, note) = self.placer.next_load();
            let is_on_card = pools == [Pool::Ram, Pool::Vram(0)];
            assert_eq!((flags.is_empty(), note.is_empty()), (is_on_card, is_on_card), "{note}");
            is_on_card
        }
    }

    #[test]
    fn a_card_takes_the_model_and_its_driver_and_the_process_takes_the_rest() {
        let mut machine = machine();
        let TranscriptionPlaces { on_card, on_processor } =
            TranscriptionPlaces::new(&machine, 250 * MB, 30 * MB);
        assert_eq!(on_processor, Bytes::from([(Pool::Ram, 280 * MB)]));
        assert!((30 * MB..500 * MB).contains(&on_card[&Pool::Ram]), "{on_card:?}");
        assert!((600 * MB..1_000 * MB).contains(&on_card[&Pool::Vram(0)]), "{on_card:?}");
        machine.0.gpus[0].is_in_processor = true;
        assert_eq!(TranscriptionPlaces::new(&machine, 250 * MB, 30 * MB).on_card, on_processor);
        machine.0.gpus[0].is_in_processor = false;
        machine.0.gpus[0].memory = GpuMemory::Unified { limit_bytes: GB };
        assert_eq!(TranscriptionPlaces::new(&machine, 250 * MB, 30 * MB).on_card, on_processor);
        machine.0.gpus.clear();
        assert_eq!(TranscriptionPlaces::new(&machine, 250 * MB, 30 * MB).on_card, on_processor);
    }

    #[test]
    fn a_full_card_sends_the_model_to_the_processor_and_back_when_it_is_free_again() {
        let desk = Desk::new();
        assert!(desk.is_on_card());
        locked(&desk.free).insert(Pool::Vram(0), 200 * MB);
        let (flags, pools, note) = desk.placer.next_load();
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
        let (_, _, note) = desk.placer.next_load();
        let said = "CUDA0 (a card) had no room for 90 MB of the model, with 7 MB free before it";
        assert_eq!(note, format!("{said}: the model runs on the processor"));
        assert_eq!(desk.placer.move_from(None), Err(String::new()), "there is no third place");
        let long_ago = Instant::now().checked_sub(REFUSED_FOR).expect("a time");
        locked(&desk.placer.0.state).refused.as_mut().expect("a refusal").at = long_ago;
        assert!(desk.is_on_card());
    }

    #[test]
    fn a_card_that_was_lost_twice_is_left_alone() {
        let desk = Desk::new();
        assert!(desk.placer.device_lost().ends_with("hob loads the model on the card once more"));
        assert!(desk.is_on_card());
        assert!(desk.placer.device_lost().ends_with("hob loads models on the processor"));
        assert!(!desk.is_on_card());
        assert!(desk.placer.next_load().2.starts_with("graphics cards were lost twice"));
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
