//! Chooses where a model is loaded: at its first place, or else at the next one that has room. Cards are avoided for a while
//! after they refused the model or were lost. A place that the settings name is kept; errors then say what would fit.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::budget::{Bytes, RoomDecision};
use hob_core::card_losses::CARDS_REST;
use hob_core::fit::Pool;
use hob_core::{MemoryBroker, MemoryDecision, MemoryRequest, ModelError, locked};
use hob_engines::supervisor::{PlacedWorker, Placer, WorkerCommand};
use hob_engines::worker::protocol::DeviceShortage;

use super::memory::ModelMemory;

/// How long a card's refusal counts. Other programs may have freed its memory since.
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(600);
/// The worker computes nothing on cards.
pub(super) const NO_CARDS: &str = "--no-cards";
const MB: u64 = 1_000_000;

/// Bytes on graphics cards, by their number.
pub(super) type CardBytes = BTreeMap<usize, u64>;

/// The places where one model may be loaded.
pub(super) trait Places: fmt::Debug + Send + Sync + 'static {
    /// The place that is tried first.
    fn first(&self) -> ChosenPlace;

    /// Whether the settings name the first place, so that there is no other.
    fn is_fixed(&self) -> bool;

    /// The next place, given the bytes of each pool that the model could get. `None`: only the first one is left.
    fn next(&self, avoided: &AvoidedCards, room: &Bytes) -> Option<ChosenPlace>;

    /// The first place, or else one with all layers on cards, given the free bytes of each pool. `None`: neither fits, or there
    /// is no choice of cards.
    fn among_cards(&self, _free: &Bytes) -> Option<ChosenPlace> {
        None
    }

    /// Settings with which the model fits, for people.
    fn what_fits(&self, refused: Option<&CardRefusals>, room: &Bytes) -> Option<String>;

    /// The number of the card that a driver names. `None` if it may be one of several.
    fn card_named(&self, device: &str) -> Option<usize>;

    /// What helps after a card had no memory left during an answer.
    fn device_full(&self) -> &'static str;
}

/// The place of the next load, or of the loaded model.
#[derive(Clone, Debug)]
pub(super) struct ChosenPlace {
    /// Predicted bytes of each pool.
    pub(super) needed: Bytes,
    /// What the model itself takes there on each card.
    pub(super) on_cards: CardBytes,
    /// Also true if hob sees no card and the engine may see one.
    pub(super) may_use_cards: bool,
    /// Flags of the worker.
    pub(super) flags: Vec<String>,
    /// Why it is not the first place, and where it is.
    pub(super) note: Option<String>,
}

/// Why cards are avoided.
#[derive(Clone, Debug)]
pub(super) struct AvoidedCards {
    /// Whether the cards are avoided for a while, because they were lost.
    pub(super) is_resting: bool,
    pub(super) refused: Option<CardRefusals>,
}

/// What cards did not give, although their drivers said that it was free.
#[derive(Clone, Debug)]
pub(super) struct CardRefusals {
    pub(super) at: Instant,
    pub(super) times: u32,
    /// The last refusal, with its numbers.
    pub(super) said: String,
    /// Maximum bytes on each card from now on.
    pub(super) limits: CardBytes,
}

/// A model's broker of memory and chooser of places.
#[derive(Debug)]
pub(super) struct CardPlacer<P>(pub(super) Arc<Placing<P>>);

#[derive(Debug)]
pub(super) struct Placing<P> {
    places: P,
    /// Without the flags of a place.
    command: WorkerCommand,
    memory: ModelMemory,
    pub(super) state: Mutex<PlacingState>,
}

#[derive(Debug)]
pub(super) struct PlacingState {
    pub(super) chosen: ChosenPlace,
    pub(super) refused: Option<CardRefusals>,
    /// When the last worker was started.
    started: Instant,
}

impl<P: Places> CardPlacer<P> {
    pub(super) fn new(places: P, command: WorkerCommand, memory: ModelMemory) -> CardPlacer<P> {
        let chosen = places.first();
        let state = Mutex::new(PlacingState { chosen, refused: None, started: Instant::now() });
        CardPlacer(Arc::new(Placing { places, command, memory, state }))
    }

    /// The flags of the next load, its pools and its note.
    #[cfg(test)]
    pub(super) fn next_load(&self) -> (Vec<String>, Vec<Pool>, String) {
        assert_eq!(self.check_room(), Ok(()));
        let queued = self.queue();
        let placed = self.place();
        drop(queued);
        let flags = placed.command.args.iter();
        let flags = flags.map(|flag| flag.to_string_lossy().into_owned()).collect();
        let pools = placed.predicted.keys().copied().collect();
        (flags, pools, placed.note.unwrap_or_default())
    }
}

impl<P: Places> Placing<P> {
    /// Chooses the place of the next load, and reserves for it from now on. Nothing changes during a load of this model, and
    /// during that of another one, what is free says little.
    fn choose(&self) {
        if self.places.is_fixed() || self.memory.is_loading() {
            return;
        }
        let chosen = self.best_place();
        // A load may have begun while drivers were asked.
        if !self.memory.is_loading() {
            self.set_chosen(chosen);
        }
    }

    fn choose_now(&self) {
        if !self.places.is_fixed() {
            self.set_chosen(self.best_place());
        }
    }

    /// The first place if it has room, or else the next one. With several cards, it is the place that has room after the fewest
    /// models left, the longest unused first. The state is not locked while drivers are asked.
    fn best_place(&self) -> ChosenPlace {
        let refused = {
            let mut state = locked(&self.state);
            state.forget_old_refusals();
            state.refused.clone()
        };
        let first = self.places.first();
        let is_resting = first.may_use_cards && !self.memory.may_use_cards();
        let avoided = AvoidedCards { is_resting, refused };
        if avoided.reason().is_none() {
            let answer = self.memory.answer_for(&first.needed);
            if answer == RoomDecision::Fits {
                return first;
            }
            let mut rooms = self.memory.room_without_unused().into_iter();
            if let Some(place) = rooms.find_map(|free| self.places.among_cards(&free)) {
                return place;
            }
            if matches!(answer, RoomDecision::Evict(_) | RoomDecision::Wait { .. }) {
                return first;
            }
        }
        self.places.next(&avoided, &self.memory.room()).unwrap_or(first)
    }

    fn set_chosen(&self, chosen: ChosenPlace) {
        self.memory.expect(&chosen.needed);
        locked(&self.state).chosen = chosen;
    }

    fn chosen(&self) -> ChosenPlace {
        locked(&self.state).chosen.clone()
    }

    fn with_what_fits(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::OutOfMemory { needed_bytes, available_bytes, what_fits: None } => {
                let what_fits = self.places.what_fits(None, &self.memory.room());
                ModelError::OutOfMemory { needed_bytes, available_bytes, what_fits }
            }
            other => other,
        }
    }
}

impl PlacingState {
    fn forget_old_refusals(&mut self) {
        if self.refused.as_ref().is_some_and(|refused| refused.at.elapsed() >= REFUSED_FOR) {
            self.refused = None;
        }
    }
}

impl AvoidedCards {
    /// `None`: they are not avoided.
    pub(super) fn reason(&self) -> Option<String> {
        match &self.refused {
            _ if self.is_resting => {
                let minutes = CARDS_REST.as_secs() / 60;
                Some(format!(
                    "graphics cards were lost twice, so they are left alone for {minutes} min"
                ))
            }
            refused => refused.as_ref().map(|refused| refused.said.clone()),
        }
    }
}

impl CardRefusals {
    /// A quarter less than was wanted of the `full` card, and no more than was free there. If it is not known, it may be one
    /// of several cards, and each gets a quarter less.
    fn after(
        earlier: Option<&CardRefusals>,
        chosen: &ChosenPlace,
        shortage: Option<&DeviceShortage>,
        full: Option<usize>,
    ) -> CardRefusals {
        let mut wanted = chosen.on_cards.clone();
        if let Some(full) = full.filter(|full| wanted.contains_key(full)) {
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
fn refusal(shortage: Option<&DeviceShortage>) -> String {
    let Some(DeviceShortage { device, needed_bytes, free_bytes }) = shortage else {
        return "a graphics card had no memory left".to_owned();
    };
    let (needed, free) = (needed_bytes.div_ceil(MB), free_bytes / MB);
    format!("{device} had no room for {needed} MB of the model, with {free} MB free before it")
}

/// What a pool lacks, with both numbers.
pub(super) fn lack_text(pool: Pool, needed_bytes: u64, free_bytes: u64) -> String {
    let (needed, free) = (needed_bytes.div_ceil(MB), free_bytes / MB);
    format!("the model needs about {needed} MB of {pool}, and {free} MB are free there")
}

impl<P: Places> MemoryBroker for CardPlacer<P> {
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

impl<P: Places> Placer for CardPlacer<P> {
    fn place(&self) -> PlacedWorker {
        let ChosenPlace { needed, may_use_cards, flags, note, .. } = {
            let mut state = locked(&self.0.state);
            state.started = Instant::now();
            state.chosen.clone()
        };
        if let Some(note) = &note {
            tracing::warn!(model = self.0.memory.name(), "{note}");
        }
        if may_use_cards {
            self.0.memory.begin_card_trial();
        }
        let command = flags.into_iter().fold(self.0.command.clone(), WorkerCommand::arg);
        PlacedWorker { command, predicted: needed, note }
    }

    fn move_from(&self, shortage: Option<&DeviceShortage>) -> Result<(), String> {
        let placing = &self.0;
        let full = shortage.and_then(|one| placing.places.card_named(&one.device));
        let (before, refused) = {
            let mut state = locked(&placing.state);
            state.forget_old_refusals();
            let earlier = state.refused.as_ref();
            let refused = CardRefusals::after(earlier, &state.chosen, shortage, full);
            state.refused = Some(refused.clone());
            (state.chosen.flags.clone(), refused)
        };
        placing.choose_now();
        let chosen = placing.chosen();
        // Without a note it is the first place, which is chosen again if the model fits nowhere else.
        if chosen.note.is_some() && chosen.flags != before {
            return Ok(());
        }
        let room = placing.memory.room();
        Err(placing.places.what_fits(Some(&refused), &room).unwrap_or_default())
    }

    fn device_full(&self) -> String {
        self.0.places.device_full().to_owned()
    }

    fn device_lost(&self) -> String {
        let started = locked(&self.0.state).started;
        let is_resting = self.0.memory.record_card_loss(started);
        let next = match (self.0.places.is_fixed(), is_resting) {
            (true, _) => "hob loads the model there again, as hob.toml says".to_owned(),
            (false, false) => "hob loads the model on the card once more".to_owned(),
            (false, true) => {
                let minutes = CARDS_REST.as_secs() / 60;
                format!("for {minutes} min, hob loads models on the processor")
            }
        };
        format!("send the request again: {next}")
    }
}

/// A model that waits for memory, and takes another place if this one has no room.
struct PlacedRequest<P> {
    placing: Arc<Placing<P>>,
    waiting: Box<dyn MemoryRequest>,
}

impl<P: Places> MemoryRequest for PlacedRequest<P> {
    fn try_reserve(&mut self) -> BoxFuture<'_, MemoryDecision> {
        async move {
            // Another model that was being loaded may now be one that can leave.
            self.placing.choose();
            let refusal = match self.waiting.try_reserve().await {
                MemoryDecision::Never(refusal) => refusal,
                decision => return decision,
            };
            let before = self.placing.chosen().flags;
            self.placing.choose();
            match self.placing.chosen().flags == before {
                true => MemoryDecision::Never(self.placing.with_what_fits(refusal)),
                false => MemoryDecision::Soon,
            }
        }
        .boxed()
    }
}
