//! One memory for all models: whether another one fits, and who has to leave for it.
//! Pure: what is free, who is there and what they do is told. Nobody who answers ever has to leave.

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use crate::ModelError;

/// A model that was used or loaded so lately is still somebody's: those for whom it was loaded are
/// about to ask, and an answer's last reader asks the next question.
const SETTLED: Duration = Duration::from_millis(300);

/// A model that is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    pub name: String,
    pub bytes: u64,
    pub in_flight: usize,
    /// Since its last answer, or since it was loaded.
    pub idle_for: Duration,
    /// Stays whatever happens, because its owner says so.
    pub is_pinned: bool,
}

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In the system, with everybody where they are.
    pub available_bytes: u64,
    /// For all models together, if somebody set a limit.
    pub max_bytes: Option<u64>,
}

/// Whether there is room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Room,
    /// There is when these have left, none of whom is used.
    Evict(Vec<String>),
    /// There would be if these were not in use.
    Wait {
        until_idle: Vec<String>,
        shortage: Shortage,
    },
    /// There is none, because of those that stay whatever happens.
    Refused(Shortage),
    /// There is none even with nobody else there.
    TooLarge {
        available_bytes: u64,
    },
}

/// What a load lacks, and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub needed_bytes: u64,
    pub available_bytes: u64,
    pub held: Vec<Holder>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub name: String,
    pub bytes: u64,
    pub tie: Tie,
}

/// What keeps a model in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    Pinned,
    Answering,
    /// It was used or loaded a moment ago.
    Fresh,
    /// Nothing.
    Idle,
}

impl Resident {
    pub fn tie(&self) -> Tie {
        match self {
            Resident { is_pinned: true, .. } => Tie::Pinned,
            Resident { in_flight: 1.., .. } => Tie::Answering,
            Resident { idle_for, .. } if *idle_for < SETTLED => Tie::Fresh,
            Resident { .. } => Tie::Idle,
        }
    }
}

impl Budget {
    pub fn answer(&self, needed_bytes: u64, residents: &[Resident]) -> Answer {
        let held = sum(residents.iter());
        let fits =
            |leaving: &[&Resident]| needed_bytes <= self.free(held, sum(leaving.iter().copied()));
        let may_leave =
            |tie: &dyn Fn(Tie) -> bool| residents.iter().filter(|one| tie(one.tie())).collect();
        if fits(&[]) {
            return Answer::Room;
        }
        if let Some(leaving) = fewest(may_leave(&|tie| tie == Tie::Idle), fits) {
            return Answer::Evict(names(&leaving));
        }
        let shortage = self.shortage(needed_bytes, residents);
        if let Some(awaited) = fewest(may_leave(&|tie| tie != Tie::Pinned), fits) {
            return Answer::Wait { until_idle: names(&awaited), shortage };
        }
        let all: Vec<&Resident> = residents.iter().collect();
        if fits(&all) {
            return Answer::Refused(shortage);
        }
        Answer::TooLarge { available_bytes: self.free(held, held) }
    }

    /// What is free when `leaving` of the `held` bytes were given back.
    fn free(&self, held: u64, leaving: u64) -> u64 {
        let in_system = self.available_bytes.saturating_add(leaving);
        let in_limit = self.max_bytes.map(|max| max.saturating_add(leaving).saturating_sub(held));
        in_limit.map_or(in_system, |in_limit| in_system.min(in_limit))
    }

    /// What is lacking if nobody leaves.
    pub fn shortage(&self, needed_bytes: u64, residents: &[Resident]) -> Shortage {
        let holder =
            |one: &Resident| Holder { name: one.name.clone(), bytes: one.bytes, tie: one.tie() };
        Shortage {
            needed_bytes,
            available_bytes: self.free(sum(residents.iter()), 0),
            held: residents.iter().map(holder).collect(),
        }
    }
}

/// Those unused for longest, until there is room; then without any that turn out not to be needed,
/// the last used first. None if all of them are not enough.
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

fn sum<'a>(residents: impl Iterator<Item = &'a Resident>) -> u64 {
    residents.fold(0, |sum, one| sum.saturating_add(one.bytes))
}

impl Shortage {
    /// `retry_after` is none where waiting does not help.
    pub fn into_error(self, retry_after: Option<Duration>) -> ModelError {
        ModelError::NoRoom { shortage: self, retry_after }
    }
}

/// As the middle of a sentence. Megabytes of 10^6 bytes.
impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needed = self.needed_bytes.div_ceil(1_000_000);
        let available = self.available_bytes / 1_000_000;
        let held: Vec<String> = self.held.iter().map(ToString::to_string).collect();
        let held = held.join(", ");
        write!(f, "about {needed} MB are needed and {available} MB are free; in memory are {held}")
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes.div_ceil(1_000_000);
        let tie = match self.tie {
            Tie::Pinned => ", pinned",
            Tie::Answering => ", answering",
            Tie::Fresh | Tie::Idle => "",
        };
        write!(f, "{} ({megabytes} MB{tie})", self.name)
    }
}

#[cfg(test)]
mod tests;
