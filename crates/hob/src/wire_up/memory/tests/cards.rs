//! Models on two graphics cards: each card has room for one of its models, and the system's memory for all.
//! What a load takes of a card is measured by what is free before and after it.

use std::sync::OnceLock;

use super::*;

fn two_cards() -> Planner {
    let free = [(Pool::Ram, 1000 * MB), (Pool::Vram(0), 300 * MB), (Pool::Vram(1), 300 * MB)];
    Planner::with(Bytes::from(free), None)
}

/// 100 MB in the system's memory and 200 MB on a card.
fn on_card(planner: &Planner, name: &str, card: usize) -> (ModelMemory, Arc<Model>) {
    let bytes = Bytes::from([(Pool::Ram, 100 * MB), (Pool::Vram(card), 200 * MB)]);
    let need = Need { estimated: bytes.clone(), is_pinned: false };
    planner.model_of(name, bytes, need)
}

/// Loads the model, and returns what was measured on cards.
async fn taken(model_memory: &ModelMemory, model: &Model) -> Bytes {
    let asked = model_memory.queue().try_reserve().await;
    let MemoryDecision::Granted(reservation) = asked else { panic!("{asked:?}") };
    model.load();
    reservation.taken()
}

#[tokio::test]
async fn models_of_one_card_take_turns_and_another_card_is_left_alone() {
    let planner = two_cards();
    let [(a, in_a), (b, in_b), (c, in_c)] =
        [("a", 0), ("b", 0), ("c", 1)].map(|(name, card)| on_card(&planner, name, card));
    let on = |card| Bytes::from([(Pool::Vram(card), 200 * MB), (Pool::Vram(1 - card), 0)]);
    assert_eq!(taken(&a, &in_a).await, on(0));
    assert_eq!(taken(&c, &in_c).await, on(1));
    assert_eq!(taken(&b, &in_b).await, on(0), "without what the model that left gave back");
    assert_eq!([&in_a, &in_b, &in_c].map(|one| one.is_loaded()), [false, true, true]);
    assert_eq!(taken(&a, &in_a).await, on(0));
    assert_eq!([&in_a, &in_b, &in_c].map(|one| one.is_loaded()), [true, false, true]);
    assert_eq!(
        c.room(),
        Bytes::from([(Pool::Ram, 900 * MB), (Pool::Vram(0), 300 * MB), (Pool::Vram(1), 100 * MB),])
    );
}

#[tokio::test]
async fn a_load_on_a_card_is_alone() {
    let planner = two_cards();
    let (on_card, _) = on_card(&planner, "a", 0);
    let need = Need { estimated: ram(100 * MB), is_pinned: false };
    let in_ram = planner.memory.of_model("b", need);
    for (first, second) in [(&on_card, &in_ram), (&in_ram, &on_card)] {
        let begun = first.queue().try_reserve().await;
        assert!(matches!(begun, MemoryDecision::Granted(_)), "{begun:?}");
        let asked = second.queue().try_reserve().await;
        assert!(matches!(asked, MemoryDecision::Soon), "{asked:?}");
    }
}

#[tokio::test]
async fn what_a_model_gave_back_a_moment_ago_counts_before_a_refusal() {
    let available = |reading: Reading| {
        // The older report is from before a model was unloaded.
        let free_mb = if reading == Reading::Recent { 100 } else { 300 };
        Bytes::from([(Pool::Ram, 1000 * MB), (Pool::Vram(0), free_mb * MB)])
    };
    let memory = Memory::with(None, Box::new(available));
    let on_card = |mb: u64| Bytes::from([(Pool::Vram(0), mb * MB)]);
    let need = Need { estimated: on_card(200), is_pinned: false };
    let model_memory = memory.of_model("a", need);
    assert_eq!(model_memory.check_room(), Ok(()));
    assert_eq!(model_memory.answer_for(&on_card(250)), RoomDecision::Fits);
    assert!(matches!(model_memory.answer_for(&on_card(350)), RoomDecision::TooLarge { .. }));
    let asked = model_memory.queue().try_reserve().await;
    assert!(matches!(asked, MemoryDecision::Granted(_)), "{asked:?}");
}

#[tokio::test]
async fn what_a_model_gave_back_a_moment_ago_counts_before_another_one_leaves() {
    let available = |reading: Reading| {
        let free_mb = if reading == Reading::Recent { 100 } else { 300 };
        Bytes::from([(Pool::Vram(0), free_mb * MB)])
    };
    let memory = Memory::with(None, Box::new(available));
    let need =
        |mb: u64| Need { estimated: Bytes::from([(Pool::Vram(0), mb * MB)]), is_pinned: false };
    let (a, b) = (memory.of_model("a", need(200)), memory.of_model("b", need(150)));
    let (is_loaded, bytes) = (AtomicBool::new(true), need(150).estimated);
    let in_b = Arc::new(Model { is_loaded, bytes, ..Model::default() });
    b.taken_by(&(Arc::clone(&in_b) as Arc<dyn ModelLifecycle>));
    let asked = a.queue().try_reserve().await;
    assert!(matches!(asked, MemoryDecision::Granted(_)), "{asked:?}");
    assert!(in_b.is_loaded());
}

#[tokio::test]
async fn a_model_without_a_place_on_cards_waits_for_no_driver() {
    let available = |reading: Reading| {
        assert_eq!(reading, Reading::Recent, "the driver may hang");
        ram(300 * MB)
    };
    let memory = Memory::with(None, Box::new(available));
    let need = Need { estimated: ram(200 * MB), is_pinned: false };
    let model_memory = memory.of_model("a", need);
    assert!(matches!(model_memory.answer_for(&ram(400 * MB)), RoomDecision::TooLarge { .. }));
    let asked = model_memory.queue().try_reserve().await;
    let MemoryDecision::Granted(reservation) = asked else { panic!("{asked:?}") };
    assert_eq!(reservation.taken(), Bytes::new(), "it took nothing of cards");
}

#[tokio::test]
async fn what_a_load_takes_of_the_margin_is_measured() {
    let free_mb = Arc::new(AtomicUsize::new(1_300));
    let seen = Arc::clone(&free_mb);
    let available =
        move |_: Reading| Bytes::from([(Pool::Vram(0), seen.load(Ordering::SeqCst) as u64 * MB)]);
    let memory = Memory::with_margin(None, 1_000 * MB, Box::new(available));
    let expected = Bytes::from([(Pool::Vram(0), 300 * MB)]);
    let need = Need { estimated: expected.clone(), is_pinned: false };
    let model_memory = memory.of_model("a", need);
    assert_eq!(model_memory.room(), expected);
    let asked = model_memory.queue().try_reserve().await;
    let MemoryDecision::Granted(reservation) = asked else { panic!("{asked:?}") };
    free_mb.store(100, Ordering::SeqCst);
    assert_eq!(reservation.taken(), Bytes::from([(Pool::Vram(0), 1_200 * MB)]));
}

#[tokio::test]
async fn a_card_that_another_program_has_filled_is_noticed_before_the_load() {
    let available = |reading: Reading| {
        let free_mb = if reading == Reading::Recent { 300 } else { 100 };
        Bytes::from([(Pool::Vram(0), free_mb * MB)])
    };
    let memory = Memory::with(None, Box::new(available));
    let estimated = Bytes::from([(Pool::Vram(0), 200 * MB)]);
    let model_memory = memory.of_model("a", Need { estimated, is_pinned: false });
    let asked = model_memory.queue().try_reserve().await;
    assert!(matches!(asked, MemoryDecision::Soon), "{asked:?}");
    assert!(!model_memory.is_loading());
}

#[tokio::test]
async fn requests_go_on_while_drivers_are_read() {
    let memory_of_all: Arc<OnceLock<Weak<Memory>>> = Arc::default();
    let seen = Arc::clone(&memory_of_all);
    let available = move |_: Reading| {
        let memory = seen.get().and_then(Weak::upgrade).expect("it exists");
        assert!(memory.shared.try_lock().is_ok(), "requests of loaded models need it");
        Bytes::from([(Pool::Ram, 300 * MB), (Pool::Vram(0), 300 * MB)])
    };
    let memory = Memory::with(None, Box::new(available));
    memory_of_all.set(Arc::downgrade(&memory)).expect("only once");
    let need = Need { estimated: ram(100 * MB), is_pinned: false };
    let model_memory = memory.of_model("a", need);
    assert_eq!(model_memory.check_room(), Ok(()));
    assert_eq!(model_memory.answer_for(&ram(300 * MB)), RoomDecision::Fits);
    assert_eq!(model_memory.room().get(&Pool::Ram), Some(&(300 * MB)));
    let asked = model_memory.queue().try_reserve().await;
    let MemoryDecision::Granted(reservation) = asked else { panic!("{asked:?}") };
    assert_eq!(reservation.taken(), Bytes::from([(Pool::Vram(0), 0)]));
}

/// A model that needs this, and the load of another one in the system's memory, which begins while the first one reads what is
/// free.
fn interrupted_by_a_load(estimated: Bytes) -> (ModelMemory, Arc<Mutex<Option<MemoryDecision>>>) {
    let other: Arc<Mutex<Option<ModelMemory>>> = Arc::default();
    let granted: Arc<Mutex<Option<MemoryDecision>>> = Arc::default();
    let (waiting, begun) = (Arc::clone(&other), Arc::clone(&granted));
    let available = move |reading: Reading| {
        let next = locked(&waiting).take();
        if let Some(next) = next {
            *locked(&begun) = next.queue().try_reserve().now_or_never();
        }
        // The older report has no room on the card, so the driver is asked again.
        let card_mb = if reading == Reading::Recent { 100 } else { 300 };
        Bytes::from([(Pool::Ram, 300 * MB), (Pool::Vram(0), card_mb * MB)])
    };
    let memory = Memory::with(None, Box::new(available));
    let need = |estimated: Bytes| Need { estimated, is_pinned: false };
    *locked(&other) = Some(memory.of_model("b", need(ram(200 * MB))));
    (memory.of_model("a", need(estimated)), granted)
}

#[tokio::test]
async fn a_load_that_begins_while_drivers_are_read_goes_first() {
    let (a, granted) = interrupted_by_a_load(ram(200 * MB));
    let asked = a.queue().try_reserve().await;
    assert!(matches!(asked, MemoryDecision::Soon), "{asked:?}");
    let began = locked(&granted).take();
    assert!(matches!(began, Some(MemoryDecision::Granted(_))), "{began:?}");
    assert_eq!(a.answer_for(&ram(200 * MB)), RoomDecision::Fits);
    // What is free during the load says nothing about the time after it.
    a.expect(&ram(400 * MB));
    assert_eq!(a.check_room(), Ok(()));
    drop(began);
    assert!(a.check_room().is_err());
}

#[tokio::test]
async fn a_load_on_a_card_waits_for_one_that_begins_while_drivers_are_read() {
    let (a, granted) = interrupted_by_a_load(Bytes::from([(Pool::Vram(0), 200 * MB)]));
    let asked = a.queue().try_reserve().await;
    assert!(matches!(asked, MemoryDecision::Soon), "{asked:?}");
    let began = locked(&granted).take();
    assert!(matches!(began, Some(MemoryDecision::Granted(_))), "{began:?}");
    drop(began);
    let asked = a.queue().try_reserve().await;
    assert!(matches!(asked, MemoryDecision::Granted(_)), "{asked:?}");
}
