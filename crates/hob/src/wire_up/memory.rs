//! The memory of all workers (the system's and that of cards). Each worker asks here before it is loaded. This file gathers facts
//! and carries out decisions: `hob_core::budget` decides which models to unload, `hob_core::load_queue` which loads next.

mod card_readings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, join};
use hob_core::budget::{Bytes, KeptBy, Resident, RoomDecision};
use hob_core::card_losses::CardLosses;
use hob_core::fit::{Engine, Pool};
use hob_core::load_queue::{LoadQueue, StartDecision};
use hob_core::machine::{Gpu, GpuMemory, Machine};
use hob_core::{
    MemoryBroker, MemoryBudget, MemoryDecision, MemoryRequest, ModelError, ModelLifecycle,
    ModelState, ReservedMemory, Shortage, locked,
};
use hob_engines::chat::{card_api, has_card_kernels};
use hob_machine::probe;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use card_readings::{CardReadings, Reading};

/// Reads the free bytes of each pool.
pub(crate) type Available = Box<dyn Fn(Reading) -> Bytes + Send + Sync>;

/// Shared by all models of one hob.
pub(crate) struct Memory {
    max_bytes: Option<u64>,
    /// What models leave free of each card.
    margin_bytes: u64,
    available: Available,
    shared: Mutex<Shared>,
    /// Apart from the rest, because no decision needs both.
    card_losses: Mutex<CardLosses>,
}

#[derive(Default)]
struct Shared {
    models: BTreeMap<String, Member>,
    queue: LoadQueue,
    /// The models that are being loaded. Each counts as a whole, so that no two count the same free bytes.
    loading: BTreeSet<String>,
    /// Loads that have begun, and those that have ended.
    load_changes: u64,
}

/// One model, loaded or not.
struct Member {
    estimated: Bytes,
    /// Measured from its process at the last check.
    measured: Bytes,
    is_pinned: bool,
    /// Weak, because the worker owns a handle of this memory.
    lifecycle: Option<Weak<dyn ModelLifecycle>>,
}

/// The estimate before the model was ever loaded.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) estimated: Bytes,
    pub(crate) is_pinned: bool,
}

/// The share of one model in the memory.
#[derive(Clone)]
pub(crate) struct ModelMemory {
    memory: Arc<Memory>,
    name: String,
}

hob_core::debug_fields!(Memory: max_bytes);

hob_core::debug_fields!(ModelMemory: name);

impl Memory {
    /// The memory of this machine, up to the limit.
    pub(crate) fn new(max_bytes: Option<u64>) -> Arc<Memory> {
        Memory::with_margin(max_bytes, Engine::Hob.profile().margin_bytes, Box::new(left))
    }

    /// Without a margin of cards.
    #[cfg(test)]
    pub(super) fn with(max_bytes: Option<u64>, available: Available) -> Arc<Memory> {
        Memory::with_margin(max_bytes, 0, available)
    }

    fn with_margin(max_bytes: Option<u64>, margin_bytes: u64, available: Available) -> Arc<Memory> {
        let (shared, card_losses) = (Mutex::default(), Mutex::default());
        Arc::new(Memory { max_bytes, margin_bytes, available, shared, card_losses })
    }

    pub(crate) fn of_model(self: &Arc<Memory>, name: &str, need: Need) -> ModelMemory {
        let Need { estimated, is_pinned } = need;
        let member = Member { estimated, measured: Bytes::new(), is_pinned, lifecycle: None };
        self.shared().models.insert(name.to_owned(), member);
        ModelMemory { memory: Arc::clone(self), name: name.to_owned() }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // A panic cannot leave these tables half-changed in a way that matters.
        locked(&self.shared)
    }

    /// The facts for a load as it is expected. No model is refused or unloaded because of an older report of drivers, in which
    /// a model that left a moment ago still has its memory.
    fn facts(&self, name: &str) -> MemoryFacts {
        self.facts_for(name, None)
    }

    /// As [`Memory::facts`], for a load that needs `estimated` bytes if these are not what is expected.
    fn facts_for(&self, name: &str, estimated: Option<&Bytes>) -> MemoryFacts {
        let facts = self.facts_at(Reading::Recent, name, estimated);
        if facts.are_new_enough() { facts } else { self.facts_at(Reading::Fresh, name, estimated) }
    }

    /// Reads the models first, and then the free memory: a model that is unloaded meanwhile still counts as one that may leave.
    /// Drivers may take long, so no table is locked while they are asked.
    fn facts_at(&self, reading: Reading, name: &str, estimated: Option<&Bytes>) -> MemoryFacts {
        let (needed, loading, residents, load_changes) = {
            let mut shared = self.shared();
            let is_other = |bytes: &&Bytes| !shared.is_expected(name, bytes);
            let other = estimated.filter(is_other).cloned();
            let needed = other.unwrap_or_else(|| shared.needed(name));
            let others = shared.loading.iter().filter(|other| *other != name);
            let loading = together(others.map(|other| shared.needed(other)));
            (needed, loading, shared.residents(name), shared.load_changes)
        };
        let free = (self.available)(reading);
        MemoryFacts { budget: self.budget(&free), free, needed, loading, residents, load_changes }
    }

    /// What models may take of these free bytes.
    fn budget(&self, free: &Bytes) -> MemoryBudget {
        let available = free.iter().map(|(pool, bytes)| match pool {
            Pool::Ram => (*pool, *bytes),
            Pool::Vram(_) => (*pool, bytes.saturating_sub(self.margin_bytes)),
        });
        MemoryBudget { available: available.collect(), max_bytes: self.max_bytes }
    }

    fn is_loading(&self) -> bool {
        !self.shared().loading.is_empty()
    }

    /// Loads the model `name` during the loads of `others` if all of them have room together, or else after these, if it has
    /// room then. No model is unloaded for it. Returns whether it had room.
    pub(crate) async fn load_next_to(
        &self,
        (others, loading_others): (&[&str], impl Future<Output = ()>),
        (name, loading): (&str, impl Future<Output = ()>),
    ) -> bool {
        if self.fit_together(&[others, &[name]].concat()) {
            join(loading_others, loading).await;
            return true;
        }
        loading_others.await;
        let has_room = self.facts(name).fits_next_to_loads();
        if has_room {
            loading.await;
        }
        has_room
    }

    /// Whether these models can be loaded at the same time, next to the loads that have begun: all in the system's memory.
    fn fit_together(&self, names: &[&str]) -> bool {
        let (needed, residents) = {
            let mut shared = self.shared();
            let all = names.iter().copied().chain(shared.loading.iter().map(String::as_str));
            let needed = together(all.map(|name| shared.needed(name)));
            (needed, shared.residents(""))
        };
        let budget = || self.budget(&(self.available)(Reading::Recent));
        is_in_system_memory(&needed) && budget().answer(&needed, &residents) == RoomDecision::Fits
    }
}

/// All facts for a decision.
struct MemoryFacts {
    budget: MemoryBudget,
    /// With the margin of cards.
    free: Bytes,
    needed: Bytes,
    /// What the loads of other models take.
    loading: Bytes,
    residents: Vec<Resident>,
    /// The number in [`Shared`]. Another number later means that the facts are no longer true.
    load_changes: u64,
}

impl MemoryFacts {
    fn answer(&self) -> RoomDecision {
        self.budget.answer(&self.needed, &self.residents)
    }

    /// Whether the model has room next to those that are being loaded. How much of their memory is taken already is not known.
    fn fits_next_to_loads(&self) -> bool {
        let needed = together([self.needed.clone(), self.loading.clone()]);
        self.budget.answer(&needed, &self.residents) == RoomDecision::Fits
    }

    /// Whether an older report of drivers is enough: the answer refuses or unloads no model because of a card.
    fn are_new_enough(&self) -> bool {
        is_in_system_memory(&self.needed)
            || matches!(self.answer(), RoomDecision::Fits | RoomDecision::Wait { .. })
    }

    fn shortage(&self) -> Shortage {
        self.budget.shortage(&self.needed, &self.residents)
    }

    fn is_answering(&self, name: &str) -> bool {
        self.residents.iter().any(|one| one.name == name && one.kept_by() == KeptBy::Answering)
    }

    /// # Errors
    /// There is no room, and waiting does not help.
    fn check(&self) -> Result<(), ModelError> {
        match self.answer() {
            RoomDecision::Fits | RoomDecision::Evict(_) | RoomDecision::Wait { .. } => Ok(()),
            RoomDecision::Refused(shortage) => {
                Err(ModelError::NoRoom { shortage, retry_after: None })
            }
            RoomDecision::TooLarge { needed_bytes, available_bytes } => {
                Err(ModelError::OutOfMemory { needed_bytes, available_bytes, what_fits: None })
            }
        }
    }
}

/// The part of this machine that models may use: without cards for which this build has no kernels, and with the memory
/// limit. A card's interface is the one through which this build computes there.
pub(super) fn usable(mut machine: Machine, max_bytes: Option<u64>) -> Machine {
    let used = used_cards(&machine.gpus);
    let used =
        used.map(|(_, gpu)| Gpu { api: card_api(gpu.vendor).unwrap_or(gpu.api), ..gpu.clone() });
    machine.gpus = used.collect();
    machine.memory.limit_models(max_bytes);
    machine
}

/// The cards on which this build computes, with their numbers. Engines ignore integrated graphics if there is a separate
/// card.
pub(crate) fn used_cards(gpus: &[Gpu]) -> impl Iterator<Item = (usize, &Gpu)> {
    used_among(gpus, |gpu| card_api(gpu.vendor).is_some())
}

fn used_among(
    gpus: &[Gpu],
    has_kernels: impl Fn(&Gpu) -> bool,
) -> impl Iterator<Item = (usize, &Gpu)> {
    let has_own = gpus.iter().any(|gpu| has_kernels(gpu) && is_own(gpu));
    let is_used = move |gpu: &Gpu| has_kernels(gpu) && (is_own(gpu) || !has_own);
    gpus.iter().enumerate().filter(move |(_, gpu)| is_used(gpu))
}

fn is_own(gpu: &Gpu) -> bool {
    !gpu.is_integrated()
}

/// The free bytes now.
fn left(reading: Reading) -> Bytes {
    let ram = hob_machine::ram().map(|ram| (Pool::Ram, ram.available_bytes));
    ram.into_iter().chain(on_cards(reading)).collect()
}

/// Free bytes of cards, with the margin. Drivers are asked only if a model could use their cards, and not at every
/// check, because a waiting request checks again in a moment.
fn on_cards(reading: Reading) -> Bytes {
    static READINGS: CardReadings = CardReadings::new();
    if !has_card_kernels() {
        return Bytes::new();
    }
    let ask = || of_cards(&usable(probe().machine, None));
    // Another caller may be asking the driver, and this one then waits for it.
    READINGS.usable(reading).unwrap_or_else(|| aside(|| READINGS.read(reading, ask)))
}

fn is_in_system_memory(needed: &Bytes) -> bool {
    needed.keys().all(|pool| *pool == Pool::Ram)
}

fn together(models: impl IntoIterator<Item = Bytes>) -> Bytes {
    models.into_iter().flatten().fold(Bytes::new(), |mut sums, (pool, bytes)| {
        let sum = sums.entry(pool).or_insert(0);
        *sum = sum.saturating_add(bytes);
        sums
    })
}

/// Runs a slow call to a driver while another thread takes over this thread's tasks.
pub(super) fn aside<T>(ask: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(ask),
        _ => ask(),
    }
}

fn of_cards(machine: &Machine) -> Bytes {
    let own = |(number, gpu): (usize, &Gpu)| match gpu.memory {
        GpuMemory::Own { free_bytes, .. } => Some((Pool::Vram(number), free_bytes)),
        GpuMemory::Unified { .. } => None,
    };
    machine.gpus.iter().enumerate().filter_map(own).collect()
}

impl Shared {
    /// The loaded models except `name`, which is about to be loaded. Their measured sizes are remembered for
    /// their next load.
    fn residents(&mut self, name: &str) -> Vec<Resident> {
        let others = self.models.iter_mut().filter(|(other, _)| *other != name);
        others.filter_map(|(other, member)| member.resident(other)).collect()
    }

    fn is_expected(&self, name: &str, estimated: &Bytes) -> bool {
        self.models.get(name).is_some_and(|member| member.estimated == *estimated)
    }

    fn needed(&self, name: &str) -> Bytes {
        self.models.get(name).map_or_else(Bytes::new, Member::bytes)
    }

    /// Whether the model may be loaded during the loads that have begun. A load on a card is alone, because drivers report what
    /// all processes take.
    fn may_begin(&self, name: &str) -> bool {
        let is_on_card = |model: &str| !is_in_system_memory(&self.needed(model));
        let hinders = |other: &String| other == name || is_on_card(other) || is_on_card(name);
        !self.loading.iter().any(hinders)
    }

    fn lifecycle(&self, name: &str) -> Option<Arc<dyn ModelLifecycle>> {
        self.models.get(name)?.lifecycle.as_ref()?.upgrade()
    }
}

impl Member {
    fn bytes(&self) -> Bytes {
        let all = self.estimated.iter().chain(&self.measured);
        all.map(|(pool, bytes)| (*pool, *bytes)).collect()
    }

    fn resident(&mut self, name: &str) -> Option<Resident> {
        let lifecycle = self.lifecycle.as_ref()?.upgrade()?;
        if lifecycle.state() != ModelState::Ready {
            return None;
        }
        let memory_use = lifecycle.memory_use();
        self.measured.extend(memory_use.resident_bytes.map(|bytes| (Pool::Ram, bytes)));
        // A card's memory is only known for all processes together, so the estimate is used there.
        Some(Resident {
            name: name.to_owned(),
            bytes: self.bytes(),
            in_flight: memory_use.in_flight,
            idle_for: lifecycle.idle_for().unwrap_or(Duration::ZERO),
            is_pinned: self.is_pinned,
        })
    }
}

impl ModelMemory {
    /// Connects the worker whose memory this is.
    pub(crate) fn taken_by(&self, lifecycle: &Arc<dyn ModelLifecycle>) {
        if let Some(member) = self.memory.shared().models.get_mut(&self.name) {
            member.lifecycle = Some(Arc::downgrade(lifecycle));
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sets the estimate for the next load. What was measured at another place does not count any more.
    pub(super) fn expect(&self, estimated: &Bytes) {
        if let Some(member) = self.memory.shared().models.get_mut(&self.name)
            && member.estimated != *estimated
        {
            member.estimated.clone_from(estimated);
            member.measured.clear();
        }
    }

    /// Whether there is room at a place that is not chosen yet.
    pub(super) fn answer_for(&self, estimated: &Bytes) -> RoomDecision {
        self.memory.facts_for(&self.name, Some(estimated)).answer()
    }

    /// See [`MemoryBudget::without_unused`].
    pub(super) fn room_without_unused(&self) -> Vec<Bytes> {
        let facts = self.memory.facts(&self.name);
        facts.budget.without_unused(&facts.residents)
    }

    /// Bytes of each pool that are free, or could become free.
    pub(super) fn room(&self) -> Bytes {
        let facts = self.memory.facts(&self.name);
        facts.budget.without_unpinned(&facts.residents)
    }

    /// Whether a model is being loaded, this one or another. Its memory then belongs to no model that could leave.
    pub(super) fn is_loading(&self) -> bool {
        self.memory.is_loading()
    }

    /// Notes that a worker lost its graphics card, and when that worker was started. Returns whether models avoid cards from
    /// now on.
    pub(super) fn record_card_loss(&self, started: Instant) -> bool {
        locked(&self.memory.card_losses).record(Instant::now(), started)
    }

    /// Whether the model may be loaded on graphics cards. After several losses they rest, and then one model tries them first.
    pub(super) fn may_use_cards(&self) -> bool {
        locked(&self.memory.card_losses).allows(Instant::now(), &self.name)
    }

    /// Notes that the model is being loaded on cards. After a rest, it is the one that tries them.
    pub(super) fn begin_card_trial(&self) {
        locked(&self.memory.card_losses).begin_trial(Instant::now(), &self.name);
    }

    /// Checks once, and reserves the memory if there is room.
    fn look_round(&self) -> LoadCheck {
        if !self.memory.shared().may_begin(&self.name) {
            return LoadCheck::Found(MemoryDecision::Soon);
        }
        let facts = self.memory.facts(&self.name);
        let mut shared = self.memory.shared();
        let is_outdated = shared.load_changes != facts.load_changes;
        // What is lacking now may be free after the loads that have begun, so no model is unloaded meanwhile.
        let is_crowded = !shared.loading.is_empty() && !facts.fits_next_to_loads();
        // A load may have begun while drivers were asked.
        if is_outdated || is_crowded || !shared.may_begin(&self.name) {
            return LoadCheck::Found(MemoryDecision::Soon);
        }
        let later = || LoadCheck::Found(MemoryDecision::Later(facts.shortage()));
        match facts.answer() {
            RoomDecision::Fits if shared.queue.may_use_free(&self.name, Instant::now()) => {
                LoadCheck::Reserved(self.reserve(&mut shared))
            }
            RoomDecision::Fits => later(),
            RoomDecision::Evict(names) => {
                shared.queue.needs(&self.name, names.clone());
                if !shared.queue.may_take(&self.name) {
                    return later();
                }
                let leaving = names.iter().filter_map(|name| shared.lifecycle(name)).collect();
                tracing::info!(model = self.name, leaving = names.join(", "), "making room");
                LoadCheck::Evict { reservation: self.reserve(&mut shared), leaving }
            }
            RoomDecision::Wait { until_idle, .. } => {
                let is_answered = until_idle.iter().any(|name| facts.is_answering(name));
                shared.queue.needs(&self.name, until_idle);
                // A model that was used a moment ago can be unloaded a moment later.
                if is_answered { later() } else { LoadCheck::Found(MemoryDecision::Soon) }
            }
            RoomDecision::Refused(_) | RoomDecision::TooLarge { .. } => match facts.check() {
                Err(refusal) => LoadCheck::Found(MemoryDecision::Never(refusal)),
                Ok(()) => LoadCheck::Found(MemoryDecision::Soon),
            },
        }
    }

    /// Checks whether enough memory is free, now that other loads count this one and other models were unloaded. Drivers are
    /// asked while no table is locked.
    fn look_again(&self, mut reservation: Filling) -> MemoryDecision {
        let facts = self.memory.facts_at(reservation.before_load, &self.name, None);
        if !facts.fits_next_to_loads() {
            return MemoryDecision::Soon;
        }
        reservation.before = facts.free;
        MemoryDecision::Granted(Box::new(reservation))
    }

    fn reserve(&self, shared: &mut Shared) -> Filling {
        shared.loading.insert(self.name.clone());
        shared.load_changes += 1;
        let is_on_card = !is_in_system_memory(&shared.needed(&self.name));
        let before_load = if is_on_card { Reading::Now } else { Reading::Recent };
        let (memory, name) = (Arc::clone(&self.memory), self.name.clone());
        Filling { memory, name, before_load, before: Bytes::new() }
    }

    async fn ask_once(&self) -> MemoryDecision {
        let (reservation, leaving) = match self.look_round() {
            LoadCheck::Found(asked) => return asked,
            LoadCheck::Reserved(reservation) => return self.look_again(reservation),
            LoadCheck::Evict { reservation, leaving } => (reservation, leaving),
        };
        for lifecycle in leaving {
            // A request arrived meanwhile, so the model stays loaded.
            if !lifecycle.unload_if_idle().await {
                return MemoryDecision::Soon;
            }
        }
        self.look_again(reservation)
    }
}

impl MemoryBroker for ModelMemory {
    fn check_room(&self) -> Result<(), ModelError> {
        // What is free during a load says nothing about the time after it.
        if self.memory.is_loading() {
            return Ok(());
        }
        self.memory.facts(&self.name).check()
    }

    fn queue(&self) -> Box<dyn MemoryRequest> {
        self.memory.shared().queue.wait(&self.name, Instant::now());
        Box::new(Waiting(self.clone()))
    }

    fn admit_request(&self) -> bool {
        let turn = self.memory.shared().queue.begin(&self.name, Instant::now());
        match turn {
            StartDecision::Allowed => true,
            StartDecision::Wait { next } => {
                tracing::debug!(model = self.name, next, "it has had its turn");
                false
            }
        }
    }
}

/// A model in the queue, until it is dropped.
struct Waiting(ModelMemory);

impl MemoryRequest for Waiting {
    fn try_reserve(&mut self) -> BoxFuture<'_, MemoryDecision> {
        self.0.ask_once().boxed()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.memory.shared().queue.leave(&self.0.name);
    }
}

/// The result of one check.
enum LoadCheck {
    Found(MemoryDecision),
    Reserved(Filling),
    Evict { reservation: Filling, leaving: Vec<Arc<dyn ModelLifecycle>> },
}

/// The load of a model. Other loads count its memory while this exists.
struct Filling {
    memory: Arc<Memory>,
    name: String,
    /// How old `before` may be: a model without a place on cards does not wait for their drivers.
    before_load: Reading,
    /// Free bytes before the load.
    before: Bytes,
}

impl ReservedMemory for Filling {
    fn taken(&self) -> Bytes {
        // A model without a place on cards took nothing of them, and their drivers need not be asked.
        let after = match self.before_load {
            Reading::Now => (self.memory.available)(Reading::Now),
            Reading::Fresh | Reading::Recent => self.before.clone(),
        };
        let on_card = |(pool, before): (&Pool, &u64)| {
            let taken_bytes = before.saturating_sub(*after.get(pool)?);
            // The system reports the memory of a process, but not a process's memory on a card.
            (*pool != Pool::Ram).then_some((*pool, taken_bytes))
        };
        self.before.iter().filter_map(on_card).collect()
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        let mut shared = self.memory.shared();
        shared.loading.remove(&self.name);
        shared.load_changes += 1;
    }
}

#[cfg(test)]
mod tests;
