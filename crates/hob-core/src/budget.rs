//! Decides whether another model fits into memory (the system's and that of cards), and which models to unload for it.
//! Pure: callers pass free memory, loaded models and their activity. A model that is answering is never unloaded.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::fit::Pool;

/// Bytes in each memory pool.
pub type Bytes = BTreeMap<Pool, u64>;

/// A model that was used or loaded this recently is not evicted. The client that caused the load is about to
/// send its request, and a client that has just read an answer often sends the next one.
const SETTLED: Duration = Duration::from_millis(300);

/// A model that is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    pub name: String,
    pub bytes: Bytes,
    pub in_flight: usize,
    /// Time since its last answer, or since it was loaded.
    pub idle_for: Duration,
    /// Never unloaded, because the user pinned it.
    pub is_pinned: bool,
}

/// The memory that models may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Free bytes with all loaded models in place. A pool that is missing here counts as large enough.
    pub available: Bytes,
    /// The user's limit on system memory for all models together, if set.
    pub max_bytes: Option<u64>,
}

/// Whether there is room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomDecision {
    Fits,
    /// There is room after unloading these models, none of which is in use.
    Evict(Vec<String>),
    /// There would be room without these models, but they are in use.
    Wait {
        until_idle: Vec<String>,
        shortage: Shortage,
    },
    /// There is no room, because pinned models stay loaded.
    Refused(Shortage),
    /// There is no room even with all models unloaded.
    TooLarge {
        needed_bytes: u64,
        available_bytes: u64,
    },
}

/// What a load lacks in one memory pool, and which models use that pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub pool: Pool,
    pub needed_bytes: u64,
    pub available_bytes: u64,
    pub held: Vec<Holder>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub name: String,
    pub bytes: u64,
    pub kept_by: KeptBy,
}

/// What keeps a model in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    Pinned,
    Answering,
    /// Used or loaded a moment ago.
    RecentUse,
    /// Not in use, so it may be unloaded.
    Nothing,
}

impl Resident {
    fn bytes_of(&self, pool: Pool) -> u64 {
        self.bytes.get(&pool).copied().unwrap_or(0)
    }

    pub fn kept_by(&self) -> KeptBy {
        match self {
            Resident { is_pinned: true, .. } => KeptBy::Pinned,
            Resident { in_flight: 1.., .. } => KeptBy::Answering,
            Resident { idle_for, .. } if *idle_for < SETTLED => KeptBy::RecentUse,
            Resident { .. } => KeptBy::Nothing,
        }
    }
}

impl MemoryBudget {
    /// Whether `needed` more bytes fit, and if not, which models must be unloaded or waited for.
    pub fn answer(&self, needed: &Bytes, residents: &[Resident]) -> RoomDecision {
        let lacking_without =
            |leaving: &[&Resident]| self.first_short_pool(needed, residents, leaving);
        let fits = |leaving: &[&Resident]| lacking_without(leaving).is_none();
        let may_leave = |meant: &dyn Fn(KeptBy) -> bool| {
            residents.iter().filter(|one| meant(one.kept_by())).collect()
        };
        let Some(lacking) = lacking_without(&[]) else { return RoomDecision::Fits };
        if let Some(leaving) = fewest(may_leave(&|kept_by| kept_by == KeptBy::Nothing), fits) {
            return RoomDecision::Evict(names(&leaving));
        }
        let shortage = shortage(lacking, residents);
        if let Some(awaited) = fewest(may_leave(&|kept_by| kept_by != KeptBy::Pinned), fits) {
            return RoomDecision::Wait { until_idle: names(&awaited), shortage };
        }
        let all: Vec<&Resident> = residents.iter().collect();
        match lacking_without(&all) {
            None => RoomDecision::Refused(shortage),
            Some(Lacking { needed_bytes, available_bytes, .. }) => {
                RoomDecision::TooLarge { needed_bytes, available_bytes }
            }
        }
    }

    /// What is lacking with all models loaded. If every pool has room: the bytes of system memory.
    pub fn shortage(&self, needed: &Bytes, residents: &[Resident]) -> Shortage {
        let lacking = self.first_short_pool(needed, residents, &[]).unwrap_or_else(|| Lacking {
            pool: Pool::Ram,
            needed_bytes: needed.get(&Pool::Ram).copied().unwrap_or(0),
            available_bytes: self.free(Pool::Ram, sum(Pool::Ram, residents.iter()), 0).unwrap_or(0),
        });
        shortage(lacking, residents)
    }

    /// Free bytes of each pool without the models that may be unloaded at some time. A pool that is missing is unknown.
    pub fn without_unpinned(&self, residents: &[Resident]) -> Bytes {
        let may_leave = residents.iter().filter(|one| one.kept_by() != KeptBy::Pinned);
        self.without(residents, &may_leave.collect::<Vec<_>>())
    }

    /// Free bytes of each pool now, and after each model that is not in use has left, too: the longest unused first.
    pub fn without_unused(&self, residents: &[Resident]) -> Vec<Bytes> {
        let is_unused = |one: &&Resident| one.kept_by() == KeptBy::Nothing;
        let mut leaving: Vec<&Resident> = residents.iter().filter(is_unused).collect();
        leaving.sort_by_key(|one| Reverse(one.idle_for));
        (0..=leaving.len()).map(|count| self.without(residents, &leaving[..count])).collect()
    }

    fn without(&self, residents: &[Resident], leaving: &[&Resident]) -> Bytes {
        let free = |pool| {
            let held = sum(pool, residents.iter());
            Some((pool, self.free(pool, held, sum(pool, leaving.iter().copied()))?))
        };
        self.available.keys().copied().filter_map(free).collect()
    }

    /// The first pool that has no room, even after unloading `leaving`.
    fn first_short_pool(
        &self,
        needed: &Bytes,
        residents: &[Resident],
        leaving: &[&Resident],
    ) -> Option<Lacking> {
        needed.iter().find_map(|(pool, needed_bytes)| {
            let (pool, needed_bytes) = (*pool, *needed_bytes);
            let held = sum(pool, residents.iter());
            let available_bytes = self.free(pool, held, sum(pool, leaving.iter().copied()))?;
            let is_lacking = needed_bytes > available_bytes;
            is_lacking.then_some(Lacking { pool, needed_bytes, available_bytes })
        })
    }

    /// Free bytes of a pool after models that hold `leaving` of the `held` bytes were unloaded. `None` if unknown.
    fn free(&self, pool: Pool, held: u64, leaving: u64) -> Option<u64> {
        let there_is = self.available.get(&pool).map(|bytes| bytes.saturating_add(leaving));
        let limit = self.max_bytes.filter(|_| pool == Pool::Ram);
        let in_limit = limit.map(|max| max.saturating_add(leaving).saturating_sub(held));
        there_is.into_iter().chain(in_limit).min()
    }
}

/// A pool with too little memory.
struct Lacking {
    pool: Pool,
    needed_bytes: u64,
    available_bytes: u64,
}

/// The shortage with all models loaded.
fn shortage(lacking: Lacking, residents: &[Resident]) -> Shortage {
    let Lacking { pool, needed_bytes, available_bytes } = lacking;
    let holder = |one: &Resident| {
        let bytes = one.bytes_of(pool);
        (bytes > 0).then(|| Holder { name: one.name.clone(), bytes, kept_by: one.kept_by() })
    };
    Shortage {
        pool,
        needed_bytes,
        available_bytes,
        held: residents.iter().filter_map(holder).collect(),
    }
}

/// Selects models that were unused for longest until there is room. Then keeps those that turn out not to be
/// needed, most recently used first. `None` if unloading all is not enough.
fn fewest(
    mut candidates: Vec<&Resident>,
    fits: impl Fn(&[&Resident]) -> bool,
) -> Option<Vec<&Resident>> {
    candidates.sort_by_key(|one| (one.in_flight > 0, Reverse(one.idle_for)));
    let enough = (1..=candidates.len()).find(|count| fits(&candidates[..*count]))?;
    candidates.truncate(enough);
    for index in (0..candidates.len()).rev() {
        let one = candidates.remove(index);
        if !fits(&candidates) {
            candidates.insert(index, one);
        }
    }
    Some(candidates)
}

fn names(residents: &[&Resident]) -> Vec<String> {
    residents.iter().map(|one| one.name.clone()).collect()
}

fn sum<'a>(pool: Pool, residents: impl Iterator<Item = &'a Resident>) -> u64 {
    residents.fold(0, |sum, one| sum.saturating_add(one.bytes_of(pool)))
}

/// Written for the middle of a sentence. Megabytes of 10^6 bytes.
impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needed = self.needed_bytes.div_ceil(1_000_000);
        let available = self.available_bytes / 1_000_000;
        let held: Vec<String> = self.held.iter().map(ToString::to_string).collect();
        let held = match held.is_empty() {
            true => String::new(),
            false => format!("; in memory are {}", held.join(", ")),
        };
        let place = match self.pool {
            Pool::Ram => String::new(),
            card @ Pool::Vram(_) => format!(" on {card}"),
        };
        write!(f, "about {needed} MB are needed and {available} MB are free{place}{held}")
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes.div_ceil(1_000_000);
        let reason = match self.kept_by {
            KeptBy::Pinned => ", pinned",
            KeptBy::Answering => ", answering",
            KeptBy::RecentUse | KeptBy::Nothing => "",
        };
        write!(f, "{} ({megabytes} MB{reason})", self.name)
    }
}

#[cfg(test)]
mod tests;
