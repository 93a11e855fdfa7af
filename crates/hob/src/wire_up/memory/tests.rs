//! The memory of several scripted models, on a machine whose size the test chooses.
//! There are no processes: a model is a number of bytes that may be in use.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hob_core::machine::Vendor;
use hob_core::{KeepAlive, MemoryUse};

use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::*;

mod cards;
mod load_next_to;

const MB: u64 = 1_000_000;

fn ram(bytes: u64) -> Bytes {
    Bytes::from([(Pool::Ram, bytes)])
}

/// What is free on the machine of a test.
#[derive(Default)]
struct FreeBytes(Mutex<Bytes>);

impl FreeBytes {
    fn now(&self) -> Bytes {
        locked(&self.0).clone()
    }

    fn change(&self, model: &Bytes, change: fn(u64, u64) -> u64) {
        let mut free = locked(&self.0);
        for (pool, bytes) in model {
            let left = free.get_mut(pool).expect("a pool");
            *left = change(*left, *bytes);
        }
    }
}

/// Loaded or not, with a number of requests.
#[derive(Default)]
struct Model {
    is_loaded: AtomicBool,
    in_flight: AtomicUsize,
    bytes: Bytes,
    /// A request arrives just when the model is asked to unload.
    is_contended: AtomicBool,
    free: Arc<FreeBytes>,
}

impl Model {
    fn load(&self) {
        self.is_loaded.store(true, Ordering::SeqCst);
        self.free.change(&self.bytes, |free, bytes| free - bytes);
    }

    fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::SeqCst)
    }
}

impl ModelLifecycle for Model {
    fn state(&self) -> ModelState {
        if self.is_loaded() { ModelState::Ready } else { ModelState::Cold }
    }

    fn load(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        async { Ok(()) }.boxed()
    }

    fn unload(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn unload_if_idle(&self) -> BoxFuture<'_, bool> {
        async {
            if self.is_contended.load(Ordering::SeqCst) {
                return false;
            }
            if self.is_loaded.swap(false, Ordering::SeqCst) {
                self.free.change(&self.bytes, |free, bytes| free + bytes);
            }
            true
        }
        .boxed()
    }

    fn idle_for(&self) -> Option<Duration> {
        let is_used = self.in_flight.load(Ordering::SeqCst) > 0;
        (self.is_loaded() && !is_used).then_some(Duration::from_secs(9))
    }

    fn keep_alive(&self, _wish: KeepAlive) {}

    fn memory_use(&self) -> MemoryUse {
        MemoryUse {
            resident_bytes: self.bytes.get(&Pool::Ram).copied(),
            in_flight: self.in_flight.load(Ordering::SeqCst),
            ..MemoryUse::default()
        }
    }
}

#[test]
fn the_engine_s_margin_of_a_card_stays_free() {
    let mut machine = hob_machine::profile::builtin("rtx-4090").expect("a profile").machine;
    let gpu = machine.gpus[0].clone();
    machine.gpus.push(Gpu { memory: GpuMemory::Unified { limit_bytes: 1 }, ..gpu });
    machine.gpus[0].memory = GpuMemory::Own { total_bytes: 24_000 * MB, free_bytes: 8_000 * MB };
    let free = of_cards(&machine);
    assert_eq!(free, Bytes::from([(Pool::Vram(0), 8_000 * MB)]));
    let usable_bytes = 8_000 * MB - (1 << 30);
    let budget = Memory::new(None).budget(&free);
    assert_eq!(budget.available, Bytes::from([(Pool::Vram(0), usable_bytes)]));
    // This build has kernels for no card, or integrated graphics are ignored because there is a card.
    let usable = usable(machine, Some(5 * MB));
    assert!(usable.gpus.iter().all(is_own), "{usable:?}");
    assert_eq!(usable.memory.available_bytes, 5 * MB);
}

#[test]
fn only_cards_for_which_hob_was_built_are_used() {
    let mut machine = hob_machine::profile::builtin("rtx-4090").expect("a profile").machine;
    let nvidia = machine.gpus.remove(0);
    let amd = Gpu { vendor: Vendor::Amd, ..nvidia.clone() };
    let inside = Gpu { memory: GpuMemory::Unified { limit_bytes: 1 }, ..amd.clone() };
    let reserving = Gpu { is_in_processor: true, ..amd.clone() };
    let is_nvidia: fn(&Gpu) -> bool = |gpu| gpu.vendor == Vendor::Nvidia;
    let is_any: fn(&Gpu) -> bool = |_| true;
    let rows = [
        (vec![inside.clone(), amd.clone(), nvidia.clone()], is_any, vec![1, 2]),
        (vec![amd.clone(), nvidia.clone()], is_nvidia, vec![1]),
        (vec![inside.clone()], is_any, vec![0]),
        (vec![nvidia, reserving.clone()], is_any, vec![0]),
        (vec![reserving], is_any, vec![0]),
        (vec![inside, amd], is_nvidia, Vec::new()),
    ];
    for (gpus, has_kernels, expected) in rows {
        let used: Vec<usize> = used_among(&gpus, has_kernels).map(|(number, _)| number).collect();
        assert_eq!(used, expected, "{gpus:?}");
    }
}

struct Planner {
    memory: Arc<Memory>,
    free: Arc<FreeBytes>,
}

impl Planner {
    fn new(megabytes: u64, max: Option<u64>) -> Planner {
        Planner::with(ram(megabytes * MB), max)
    }

    fn with(free: Bytes, max: Option<u64>) -> Planner {
        let free = Arc::new(FreeBytes(Mutex::new(free)));
        let seen = Arc::clone(&free);
        let available = Box::new(move |_: Reading| seen.now());
        Planner { memory: Memory::with(max.map(|max| max * MB), available), free }
    }

    /// The estimate is 10 MB above the real size.
    fn model(&self, name: &str, megabytes: u64) -> (ModelMemory, Arc<Model>) {
        let need = Need { estimated: ram((megabytes + 10) * MB), is_pinned: false };
        self.model_of(name, ram(megabytes * MB), need)
    }

    fn model_of(&self, name: &str, bytes: Bytes, need: Need) -> (ModelMemory, Arc<Model>) {
        let model = Arc::new(Model { bytes, free: Arc::clone(&self.free), ..Model::default() });
        let model_memory = self.memory.of_model(name, need);
        model_memory.taken_by(&(Arc::clone(&model) as Arc<dyn ModelLifecycle>));
        (model_memory, model)
    }
}

async fn loaded(model_memory: &ModelMemory, model: &Model) {
    let asked = model_memory.queue().try_reserve().await;
    assert!(matches!(asked, MemoryDecision::Granted(_)), "{asked:?}");
    model.load();
}

#[tokio::test]
async fn another_model_takes_the_place_of_one_that_is_idle() {
    let planner = Planner::new(300, None);
    let ((a, in_a), (b, in_b)) = (planner.model("a", 200), planner.model("b", 150));
    loaded(&a, &in_a).await;
    assert_eq!(b.check_room(), Ok(()));
    loaded(&b, &in_b).await;
    assert!(!in_a.is_loaded() && in_b.is_loaded());
    assert_eq!(planner.free.now(), ram(150 * MB));
}

#[tokio::test]
async fn a_limit_also_holds_on_a_large_machine() {
    let planner = Planner::new(64_000, Some(300));
    let ((a, in_a), (b, in_b)) = (planner.model("a", 200), planner.model("b", 150));
    loaded(&a, &in_a).await;
    loaded(&b, &in_b).await;
    assert!(!in_a.is_loaded());
    let (c, _) = planner.model("c", 300);
    let too_large = ModelError::OutOfMemory {
        needed_bytes: 310 * MB,
        available_bytes: 300 * MB,
        what_fits: None,
    };
    assert_eq!(c.check_room(), Err(too_large));
    assert!(matches!(
        c.queue().try_reserve().await,
        MemoryDecision::Never(ModelError::OutOfMemory { .. })
    ));
    assert!(in_b.is_loaded(), "no model is unloaded for one that does not fit anyway");
}

#[tokio::test]
async fn a_model_that_answers_is_waited_for_and_named() {
    let planner = Planner::new(300, None);
    let ((a, in_a), (b, in_b)) = (planner.model("a", 200), planner.model("b", 150));
    loaded(&a, &in_a).await;
    in_a.in_flight.store(1, Ordering::SeqCst);
    let mut waiting = b.queue();
    let MemoryDecision::Later(shortage) = waiting.try_reserve().await else {
        panic!("a is answering")
    };
    assert_eq!(
        shortage.to_string(),
        "about 160 MB are needed and 100 MB are free; in memory are a (200 MB, answering)"
    );
    in_a.in_flight.store(0, Ordering::SeqCst);
    assert!(matches!(waiting.try_reserve().await, MemoryDecision::Granted(_)));
    assert!(!in_a.is_loaded() && !in_b.is_loaded());
}

#[tokio::test]
async fn a_model_with_a_request_at_the_last_moment_stays_loaded() {
    let planner = Planner::new(300, None);
    let ((a, in_a), (b, _)) = (planner.model("a", 200), planner.model("b", 150));
    loaded(&a, &in_a).await;
    in_a.is_contended.store(true, Ordering::SeqCst);
    let mut waiting = b.queue();
    assert!(matches!(waiting.try_reserve().await, MemoryDecision::Soon));
    assert!(in_a.is_loaded());
    in_a.is_contended.store(false, Ordering::SeqCst);
    assert!(matches!(waiting.try_reserve().await, MemoryDecision::Granted(_)));
}

#[tokio::test]
async fn two_loads_do_not_count_the_same_memory() {
    let planner = Planner::new(300, None);
    let ((a, in_a), (b, _)) = (planner.model("a", 200), planner.model("b", 200));
    let MemoryDecision::Granted(reservation) = a.queue().try_reserve().await else {
        panic!("there is room")
    };
    let mut waiting = b.queue();
    assert!(matches!(waiting.try_reserve().await, MemoryDecision::Soon), "while a is on its way");
    in_a.load();
    in_a.in_flight.store(1, Ordering::SeqCst);
    drop(reservation);
    assert!(matches!(waiting.try_reserve().await, MemoryDecision::Later(_)));
}

#[tokio::test]
async fn the_longest_wait_goes_first() {
    let planner = Planner::new(300, None);
    let ((a, in_a), (b, _), (c, _)) =
        (planner.model("a", 200), planner.model("b", 200), planner.model("c", 200));
    loaded(&a, &in_a).await;
    let (mut first, mut second) = (b.queue(), c.queue());
    assert!(matches!(second.try_reserve().await, MemoryDecision::Later(_)), "b was here before");
    let MemoryDecision::Granted(reservation) = first.try_reserve().await else {
        panic!("its turn")
    };
    drop((first, reservation));
    assert!(
        matches!(second.try_reserve().await, MemoryDecision::Granted(_)),
        "b has left the queue"
    );
}

#[tokio::test]
async fn a_busy_model_has_its_turn_and_then_makes_room() {
    let planner = Planner::new(300, None);
    let ((a, in_a), (b, _)) = (planner.model("a", 200), planner.model("b", 200));
    loaded(&a, &in_a).await;
    in_a.in_flight.store(1, Ordering::SeqCst);
    let mut waiting = b.queue();
    assert!(matches!(waiting.try_reserve().await, MemoryDecision::Later(_)));
    let begun = (0..40).take_while(|_| a.admit_request()).count();
    assert_eq!(begun, 16);
    drop(waiting);
    assert!(a.admit_request(), "no model waits any longer");
}

#[tokio::test]
async fn a_pinned_model_stays_and_waiting_does_not_help() {
    let planner = Planner::new(300, None);
    let (b, _) = planner.model("b", 150);
    let need = Need { estimated: ram(200 * MB), is_pinned: true };
    let (pinned, model) = planner.model_of("a", ram(200 * MB), need);
    loaded(&pinned, &model).await;
    let MemoryDecision::Never(ModelError::NoRoom { shortage, retry_after: None }) =
        b.queue().try_reserve().await
    else {
        panic!("it is pinned")
    };
    assert_eq!(shortage.held[0].kept_by, KeptBy::Pinned);
}

#[tokio::test]
async fn a_measured_size_replaces_the_estimate() {
    let planner = Planner::new(405, None);
    let ((a, in_a), (b, in_b)) = (planner.model("a", 200), planner.model("b", 205));
    loaded(&b, &in_b).await;
    loaded(&a, &in_a).await;
    assert!(!in_b.is_loaded(), "200 MB were free, and the estimate for a is 210");
    loaded(&b, &in_b).await;
    assert!(in_a.is_loaded(), "205 MB were free, and b has taken no more than that");
}

/// Requests for three models of which one fits, each sent as a supervisor does: a loaded model starts
/// another request while it may; the others wait in the queue. Returns the names in the order in which they
/// were answered, and the number of loads.
async fn served(requests_each: u32) -> (String, usize) {
    const ROUNDS_MAX: u32 = 10_000;
    let planner = Planner::new(300, None);
    let mut models = ["a", "b", "c"].map(|name| {
        let (model_memory, model) = planner.model(name, 200);
        (name, model_memory, model, requests_each, None::<Box<dyn MemoryRequest>>)
    });
    let (mut order, mut loads) = (String::new(), 0);
    for _ in 0..ROUNDS_MAX {
        if models.iter().all(|(.., left, _)| *left == 0) {
            return (order, loads);
        }
        for (name, model_memory, model, left, waiting) in &mut models {
            if model.is_loaded() {
                let begins = *left > 0 && model_memory.admit_request();
                model.in_flight.store(usize::from(begins), Ordering::SeqCst);
                if begins {
                    order.push_str(name);
                    *left -= 1;
                }
            } else if *left > 0 {
                let queued = waiting.get_or_insert_with(|| model_memory.queue());
                if let MemoryDecision::Granted(reservation) = queued.try_reserve().await {
                    model.load();
                    // The request that caused the load is running.
                    model.in_flight.store(1, Ordering::SeqCst);
                    loads += 1;
                    drop((waiting.take(), reservation));
                }
            }
        }
    }
    panic!("a model waits for ever: {order}");
}

#[tokio::test]
async fn requests_that_come_interleaved_are_answered_model_by_model() {
    let (order, loads) = served(6).await;
    assert_eq!((order.as_str(), loads), ("aaaaaabbbbbbcccccc", 3));
}

#[tokio::test]
async fn a_model_that_never_rests_does_not_keep_the_others_out() {
    let (order, loads) = served(40).await;
    let answered = |name: char| order.chars().filter(|model| *model == name).count();
    assert_eq!(['a', 'b', 'c'].map(answered), [40; 3], "everybody was answered");
    assert_eq!(loads, 9, "sixteen at a time: {order}");
    let first = |name| order.find(name).expect("it was answered");
    assert!(first('b') <= 17 && first('c') <= 34, "{order}");
}

#[test]
fn drivers_are_asked_from_wherever_they_have_to_be() {
    assert_eq!(aside(|| 1), 1, "without a runtime");
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        let runtime = builder.worker_threads(1).build().expect("a runtime");
        let asked = runtime.block_on(async {
            let mut tasks = JoinSet::new();
            tasks.spawn(async { aside(|| 2) });
            tasks.join_next().await.expect("a task")
        });
        assert_eq!(asked.expect("no panic"), 2);
    }
}
