//! Places of a known model on a machine with one card of 24 GB. The tests choose what is free there.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::machine::{Gpu, Memory as SystemMemory};
use hob_core::{
    KeepAlive, MemoryBroker, MemoryUse, ModelError, ModelLifecycle, ModelState, locked,
};
use hob_engines::chat::{CardUse, EngineDevice};
use hob_engines::supervisor::{Placer, WorkerCommand};
use hob_engines::worker::protocol::DeviceShortage;
use hob_machine::profile;
use hob_models::known;
use hob_models::recipe::QuantMix;

use super::*;
use crate::settings::tests::chat_settings;
use crate::wire_up::hidden_cards::HiddenCards;
use crate::wire_up::memory::{Memory, Need};
use crate::wire_up::placing::{Placing, REFUSED_FOR};

const GB: u64 = 1_000_000_000;

struct Desk {
    placer: ChatPlacer,
    free: Arc<Mutex<Bytes>>,
    memory: Arc<Memory>,
}

impl Desk {
    /// An 8B model of 5 GB, and 0.15 MB for each token.
    fn new(config: &str, machine: Machine) -> Desk {
        Desk::with_named(config, (machine, NamedCards::default()))
    }

    /// As [`Desk::new`], with cards that the settings name.
    fn with_named(config: &str, (mut machine, cards): (Machine, NamedCards)) -> Desk {
        machine.memory = SystemMemory { total_bytes: 64 * GB, available_bytes: 64 * GB };
        let (known, context) = known::find("qwen3:8b").expect("a known model");
        let model = known.model(QuantMix::named("q4_k_m").expect("a quant"), context);
        let model = model.expect("a model");
        let settings = chat_settings(&format!("parallel = 1\n{config}"));
        let requested = RequestedPlace::plan(&settings, (model, None), (machine, cards));
        let requested = requested.expect("a setup");
        let free = Arc::new(Mutex::new(Bytes::from([(Pool::Ram, 64 * GB)])));
        let placing: Arc<OnceLock<Weak<Placing<RequestedPlace>>>> = Arc::default();
        let (seen, asked) = (Arc::clone(&free), Arc::clone(&placing));
        let available = move |_| {
            let placing = asked.get().and_then(Weak::upgrade);
            let is_free = placing.is_none_or(|placing| placing.state.try_lock().is_ok());
            assert!(is_free, "a driver may hang, and requests of this model need the state");
            locked(&seen).clone()
        };
        let memory = Memory::with(None, Box::new(available));
        let estimated = requested.first().needed;
        let own = memory.of_model("m", Need { estimated, is_pinned: false });
        let placer = ChatPlacer::new(requested, WorkerCommand::new("hob"), own);
        placing.set(Arc::downgrade(&placer.0)).expect("only once");
        let desk = Desk { placer, free, memory };
        desk.frees(20 * GB);
        desk
    }

    fn with_card(config: &str) -> Desk {
        Desk::new(config, profile::builtin("rtx-4090").expect("a profile").machine)
    }

    /// Sets what is free on the card, without the margin.
    fn frees(&self, bytes: u64) {
        locked(&self.free).insert(Pool::Vram(0), bytes);
    }

    /// The flags of the next load, and its note.
    fn next(&self) -> (Vec<String>, String) {
        let (flags, _, note) = self.placer.next_load();
        (flags, note)
    }
}

fn shortage(free_bytes: u64) -> DeviceShortage {
    DeviceShortage { device: "CUDA0 (a card)".to_owned(), needed_bytes: 2 * GB, free_bytes }
}

const ON_PROCESSOR: [&str; 3] = ["--gpu-layers", "0", "--no-cards"];

#[test]
fn a_full_card_sends_the_model_to_the_next_place_and_back_when_it_is_free_again() {
    let desk = Desk::with_card("context_tokens = 4096");
    let whole = (Vec::new(), String::new());
    assert_eq!(desk.next(), whole);
    desk.frees(3 * GB);
    let (flags, note) = desk.next();
    assert_eq!(flags[0], "--gpu-layers");
    assert!(note.starts_with("the model needs about "), "{note}");
    assert!(note.contains(" MB of GPU 0, and 3000 MB are free there: "), "{note}");
    desk.frees(0);
    assert_eq!(desk.next().0, ON_PROCESSOR);
    desk.frees(20 * GB);
    assert_eq!(desk.next(), whole);
}

#[test]
fn a_card_that_vanished_has_no_room() {
    let desk = Desk::with_card("context_tokens = 4096");
    locked(&desk.free).remove(&Pool::Vram(0));
    let (flags, note) = desk.next();
    // The budget counts a pool that is not reported as large enough, so the requested place is tried first.
    assert_eq!((flags, note.as_str()), (Vec::new(), ""));
    assert_eq!(desk.placer.move_from(None), Ok(()));
    let (flags, note) = desk.next();
    assert_eq!(flags, ON_PROCESSOR);
    assert_eq!(note, "a graphics card had no memory left: the model runs on the processor");
}

#[test]
fn a_card_that_refuses_gets_less_and_at_last_nothing() {
    let desk = Desk::with_card("context_tokens = 4096");
    desk.next();
    let mut moves = Vec::new();
    while desk.placer.move_from(Some(&shortage(19 * GB))).is_ok() {
        moves.push(desk.next());
        assert!(moves.len() <= REFUSALS_MAX as usize, "{moves:?}");
    }
    let (flags, note) = moves.last().expect("another place");
    assert_eq!(flags[..], ON_PROCESSOR);
    let said = "CUDA0 (a card) had no room for 2000 MB of the model, with 19000 MB free before it";
    assert!(note.starts_with(said), "{note}");
    assert_eq!(desk.next().0, ON_PROCESSOR, "its refusal counts for a while");
}

#[test]
fn a_second_card_without_room_gets_less_and_the_first_one_has_no_limit() {
    let mut machine = profile::builtin("rtx-4090").expect("a profile").machine;
    let second = machine.gpus[0].clone();
    let device = format!("CUDA1 ({})", second.name);
    machine.gpus.push(second);
    let desk = Desk::new("context_tokens = 4096", machine);
    locked(&desk.free).insert(Pool::Vram(1), 20 * GB);
    assert_eq!(desk.next(), (Vec::new(), String::new()));
    let refused = DeviceShortage { device, ..shortage(2 * GB) };
    assert_eq!(desk.placer.move_from(Some(&refused)), Ok(()));
    let limits = locked(&desk.placer.0.state).refused.clone().expect("a refusal").limits;
    assert_eq!(limits.keys().collect::<Vec<_>>(), [&1]);
    let (flags, note) = desk.next();
    assert_eq!(flags[0], "--gpu-layers");
    assert!((1..37).contains(&flags[1].parse::<u32>().expect("a number")), "{flags:?}");
    assert!(note.ends_with(" of its 37 layers are on graphics cards"), "{note}");
    let on_cards = locked(&desk.placer.0.state).chosen.on_cards.clone();
    assert!(on_cards[&1] <= limits[&1] && on_cards[&0] > 0, "{on_cards:?} {limits:?}");
}

/// Two equal cards of which hob knows the engine's names.
fn two_cards() -> Machine {
    let mut machine = profile::builtin("rtx-4090").expect("a profile").machine;
    machine.gpus.push(machine.gpus[0].clone());
    for (gpu, name) in machine.gpus.iter_mut().zip(["CUDA0", "CUDA1"]) {
        gpu.engine_name = Some(name.to_owned());
    }
    machine
}

fn with_two_cards() -> Desk {
    let desk = Desk::new("context_tokens = 4096", two_cards());
    locked(&desk.free).insert(Pool::Vram(1), 20 * GB);
    desk
}

#[test]
fn a_model_that_is_faster_on_one_of_two_cards_is_loaded_there_and_on_the_other_one_if_that_is_next()
{
    let (first, second) = (["--device", "CUDA0"], ["--device", "CUDA1"]);
    let desk = with_two_cards();
    assert_eq!(desk.next(), (first.map(str::to_owned).to_vec(), String::new()));
    desk.frees(3 * GB);
    let (flags, note) = desk.next();
    assert_eq!(flags, second);
    let rest = " MB of GPU 0, and 3000 MB are free there: all its layers are on graphics cards";
    assert!(note.ends_with(rest), "{note}");
    desk.frees(20 * GB);
    assert_eq!(desk.next().0, first);
    assert_eq!(desk.placer.move_from(Some(&shortage(19 * GB))), Ok(()));
    let (flags, note) = desk.next();
    assert_eq!(flags, second);
    assert!(note.starts_with("CUDA0 (a card) had no room for "), "{note}");
}

/// A loaded model that was last used this many seconds ago.
struct Unused(u64);

impl ModelLifecycle for Unused {
    fn state(&self) -> ModelState {
        ModelState::Ready
    }

    fn load(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        async { Ok(()) }.boxed()
    }

    fn unload(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn idle_for(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.0))
    }

    fn keep_alive(&self, _time: KeepAlive) {}

    fn memory_use(&self) -> MemoryUse {
        MemoryUse::default()
    }
}

impl Desk {
    /// Another model has 18 GB of a card, and leaves 2 GB. It is loaded until the result is dropped.
    fn holds(&self, card: usize, seconds_unused: u64) -> Arc<dyn ModelLifecycle> {
        let estimated = Bytes::from([(Pool::Vram(card), 18 * GB)]);
        let need = Need { estimated, is_pinned: false };
        let lifecycle = Arc::new(Unused(seconds_unused)) as Arc<dyn ModelLifecycle>;
        self.memory.of_model(&format!("of card {card}"), need).taken_by(&lifecycle);
        locked(&self.free).insert(Pool::Vram(card), 2 * GB);
        lifecycle
    }
}

#[test]
fn a_model_takes_the_full_card_whose_model_was_unused_for_longer() {
    for (seconds, card) in [([1, 9], "CUDA1"), ([9, 1], "CUDA0"), ([0, 9], "CUDA1")] {
        let desk = with_two_cards();
        let _loaded = [0, 1].map(|card| desk.holds(card, seconds[card]));
        assert_eq!(desk.next().0, ["--device", card], "{seconds:?}");
    }
}

#[test]
fn a_number_of_layers_in_the_settings_chooses_no_card() {
    let desk = Desk::new("context_tokens = 4096\ngpu_layers = 1", two_cards());
    assert_eq!(desk.next().0, ["--gpu-layers", "1"]);
}

#[test]
fn a_model_takes_a_free_card_before_another_model_is_unloaded_for_it() {
    let desk = with_two_cards();
    let _loaded = desk.holds(0, 9);
    let (flags, note) = desk.next();
    assert_eq!(flags, ["--device", "CUDA1"]);
    assert!(note.contains(" MB of GPU 0, and 2000 MB are free there: "), "{note}");
    // Neither card is free, so the other model makes room.
    locked(&desk.free).insert(Pool::Vram(1), 2 * GB);
    assert_eq!(desk.next().0, ["--device", "CUDA0"]);
}

#[test]
fn a_driver_names_a_card_by_its_name_or_by_its_number_among_equal_ones() {
    let with = |names: &[&str]| {
        let mut machine = profile::builtin("rtx-4090").expect("a profile").machine;
        let gpu = machine.gpus.remove(0);
        let named = |name: &&str| Gpu { name: (*name).to_owned(), ..gpu.clone() };
        machine.gpus = names.iter().map(named).collect();
        machine
    };
    let rows: [(&[&str], &str, Option<usize>); 7] = [
        (&["A", "B"], "CUDA0 (B)", Some(1)),
        (&["A", "A"], "CUDA1 (A)", Some(1)),
        (&["A", "A"], "CUDA7 (A)", None),
        // The driver may have its own order of these.
        (&["A", "A", "B"], "CUDA1 (A)", None),
        (&["A"], "Vulkan0 (A (RADV))", None),
        (&[], "CUDA0 (A)", None),
        (&["A"], "A", None),
    ];
    for (names, device, expected) in rows {
        assert_eq!(card_named(device, &with(names)), expected, "{names:?} {device}");
    }
}

#[test]
fn only_the_memory_of_a_named_card_counts_and_it_keeps_its_number() {
    let mut machine = profile::builtin("rtx-4090").expect("a profile").machine;
    let (first, second) = (machine.gpus[0].clone(), "Another".to_owned());
    machine.gpus.push(Gpu { name: second.clone(), ..first });
    let listed = EngineDevice {
        name: "CUDA0".to_owned(),
        description: second,
        backend: "CUDA".to_owned(),
        is_card: true,
        free_bytes: 0,
        total_bytes: 0,
    };
    let card_use: CardUse = "CUDA0".parse().expect("devices");
    let named = NamedCards::choose(&card_use, &HiddenCards::default(), || vec![listed], machine);
    let desk = Desk::with_named("context_tokens = 4096", named);
    locked(&desk.free).insert(Pool::Vram(1), 20 * GB);
    // The other card is full.
    desk.frees(0);
    assert_eq!(desk.next(), (Vec::new(), String::new()));
    let pools: Vec<Pool> = desk.placer.place().predicted.into_keys().collect();
    assert_eq!(pools, [Pool::Ram, Pool::Vram(1)]);
    locked(&desk.free).insert(Pool::Vram(1), 3 * GB);
    desk.frees(20 * GB);
    let (flags, note) = desk.next();
    assert_eq!(flags[0], "--gpu-layers");
    assert!(note.contains(" MB of GPU 1, and 3000 MB are free there: "), "{note}");
    locked(&desk.free).insert(Pool::Vram(1), 20 * GB);
    let refused = DeviceShortage { device: "CUDA0 (Another)".to_owned(), ..shortage(2 * GB) };
    assert_eq!(desk.placer.move_from(Some(&refused)), Ok(()));
    assert_ne!(desk.next().1, "", "it got less");
}

#[test]
fn a_card_that_refuses_is_not_tried_in_full_again_if_the_rest_fits_nowhere() {
    let desk = Desk::with_card("context_tokens = 4096");
    // Enough for a part of the model.
    locked(&desk.free).insert(Pool::Ram, 5 * GB);
    desk.next();
    let mut notes = Vec::new();
    while desk.placer.move_from(Some(&shortage(19 * GB))).is_ok() {
        notes.push(desk.next().1);
        assert!(notes.len() <= REFUSALS_MAX as usize, "{notes:?}");
    }
    assert!(!notes.is_empty() && notes.iter().all(|note| !note.is_empty()), "{notes:?}");
}

#[test]
fn refusals_of_long_ago_do_not_count() {
    let desk = Desk::with_card("context_tokens = 4096");
    desk.next();
    for _ in 0..REFUSALS_MAX {
        drop(desk.placer.move_from(Some(&shortage(19 * GB))));
        let mut state = locked(&desk.placer.0.state);
        let refused = state.refused.as_mut().expect("a refusal");
        assert_eq!(refused.times, 1);
        // The model then runs for that long, and its card is full in a step.
        refused.at = refused.at.checked_sub(REFUSED_FOR).expect("a time");
    }
}

#[test]
fn a_place_in_the_settings_is_kept_and_the_error_says_what_fits() {
    let desk = Desk::with_card("context_tokens = 4096\ngpu_layers = 99");
    desk.frees(3 * GB);
    let said = desk.placer.check_room().expect_err("no room").to_string();
    assert!(said.contains(" and 3000 MB are free; what fits here: gpu_layers = "), "{said}");
    desk.frees(20 * GB);
    let said = desk.placer.move_from(Some(&shortage(3 * GB))).expect_err("it is in the settings");
    assert!(said.starts_with("what fits here: gpu_layers = "), "{said}");

    let desk = Desk::with_card("context_tokens = 40960\ngpu_layers = 99");
    desk.frees(8 * GB);
    let said = desk.placer.check_room().expect_err("no room").to_string();
    let (_, tokens) = said.split_once(", or context_tokens = ").expect("a shorter context");
    assert!((256..40_960).contains(&tokens.parse::<u32>().expect("a number")), "{said}");
}

#[test]
fn without_cards_only_a_shorter_context_is_what_fits() {
    let named = (Machine::default(), NamedCards::default());
    let desk = Desk::with_named("context_tokens = 40960\ndevice = \"cpu\"\ngpu_layers = 9", named);
    assert_eq!(desk.next().0, ON_PROCESSOR);
    locked(&desk.free).insert(Pool::Ram, 8 * GB);
    let said = desk.placer.check_room().expect_err("no room").to_string();
    let (_, tokens) = said.split_once("what fits here: context_tokens = ").expect("a context");
    assert!((256..40_960).contains(&tokens.parse::<u32>().expect("a number")), "{said}");
}

#[test]
fn a_context_that_fits_nowhere_is_refused_with_one_that_does() {
    let desk = Desk::with_card("context_tokens = 40960");
    desk.frees(GB);
    locked(&desk.free).insert(Pool::Ram, 8 * GB);
    let said = desk.placer.check_room().expect_err("no room").to_string();
    let (_, tokens) = said.split_once("what fits here: context_tokens = ").expect("a context");
    assert!((256..40_960).contains(&tokens.parse::<u32>().expect("a number")), "{said}");
}

#[test]
fn a_card_that_was_lost_twice_is_left_alone() {
    let desk = Desk::with_card("context_tokens = 4096");
    assert!(desk.placer.device_lost().ends_with("hob loads the model on the card once more"));
    assert_eq!(desk.next(), (Vec::new(), String::new()));
    assert!(desk.placer.device_lost().ends_with("hob loads models on the processor"));
    let (flags, note) = desk.next();
    assert_eq!(flags, ON_PROCESSOR);
    assert!(note.starts_with("graphics cards were lost twice"), "{note}");
}

/// A machine with a card that has this much free when the first place is chosen.
fn with_free(free_bytes: u64) -> Machine {
    let mut machine = profile::builtin("rtx-4090").expect("a profile").machine;
    machine.gpus[0].memory = GpuMemory::Own { total_bytes: 24 * GB, free_bytes };
    machine
}

#[test]
fn a_model_of_the_processor_comes_back_from_a_card_that_refuses_it() {
    let desk = Desk::new("context_tokens = 4096", with_free(GB / 5));
    // Another program has taken the system's memory.
    locked(&desk.free).insert(Pool::Ram, 3 * GB);
    let (flags, note) = desk.next();
    assert_eq!(flags, Vec::<String>::new());
    assert!(note.ends_with(": all its layers are on graphics cards"), "{note}");
    locked(&desk.free).insert(Pool::Ram, 64 * GB);
    assert_eq!(desk.placer.move_from(Some(&shortage(0))), Ok(()));
    let (flags, note) = desk.next();
    assert_eq!(flags, ON_PROCESSOR);
    assert!(note.ends_with(" free before it: the model runs on the processor"), "{note}");
}

#[test]
fn a_model_without_layers_on_a_card_takes_nothing_of_it() {
    let first = (ON_PROCESSOR.map(str::to_owned).to_vec(), String::new());
    for (config, machine) in [
        ("context_tokens = 4096", with_free(GB / 5)),
        ("context_tokens = 4096\ngpu_layers = 0", with_free(20 * GB)),
        // The engine may see a card that hob does not see.
        ("context_tokens = 4096\ngpu_layers = 0", Machine::default()),
    ] {
        let desk = Desk::new(config, machine);
        desk.frees(0);
        assert_eq!(desk.next(), first, "{config}");
        let pools: Vec<Pool> = desk.placer.place().predicted.into_keys().collect();
        assert_eq!(pools, [Pool::Ram], "{config}");
        for _ in 0..2 {
            // Other models lost it.
            desk.placer.device_lost();
            assert_eq!(desk.next(), first, "{config}");
        }
    }
}

#[test]
fn a_card_that_only_the_engine_sees_is_left_after_its_first_refusal() {
    let desk = Desk::new("context_tokens = 4096", Machine::default());
    assert_eq!(desk.next(), (Vec::new(), String::new()), "the engine chooses");
    assert_eq!(desk.placer.move_from(Some(&shortage(GB))), Ok(()));
    assert_eq!(desk.next().0, ON_PROCESSOR);
    assert_eq!(desk.placer.move_from(Some(&shortage(GB))), Err(String::new()));
}
