//! The slots of a decoder and what each still knows: where a new prompt has the least to compute.
//! Pure: it says what to cut and what to copy, and its owner does it.

use std::ops::Range;

/// Copying another slot's cache moves all of its memory, which takes as long as a few tokens: some 20 ms
/// beside 4 ms each with SmolLM2 on two cores.
const COPY_TOKENS_MIN: usize = 16;

/// A slot keeps its conversation when less than this part of it would be of use to the new one.
const CONTINUES: f64 = 0.5;

/// What each slot's cache holds.
#[derive(Clone, Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    /// Counts uses, so that the one unused for longest is known.
    uses: u64,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    /// The tokens in its cache, in order.
    cached: Vec<u32>,
    is_busy: bool,
    last_use: u64,
}

/// Where a prompt goes, and what its slot has to do first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub slot: usize,
    /// The slot whose first `keep` tokens are taken over; none: its own.
    pub copy_from: Option<usize>,
    /// Tokens of the prompt that are then in the cache.
    pub keep: usize,
}

impl Slots {
    pub fn new(count: usize) -> Slots {
        Slots { slots: vec![Slot::default(); count], uses: 0 }
    }

    pub fn has_free(&self) -> bool {
        self.slots.iter().any(|slot| !slot.is_busy)
    }

    /// Takes a slot for `prompt`; none while all are busy. At least the last token is left to
    /// compute, because the answer begins with what follows it.
    pub fn take(&mut self, prompt: &[u32]) -> Option<Place> {
        let place = self.place(prompt)?;
        self.uses += 1;
        let slot = &mut self.slots[place.slot];
        slot.is_busy = true;
        slot.last_use = self.uses;
        slot.cached.clear();
        Some(place)
    }

    fn place(&self, prompt: &[u32]) -> Option<Place> {
        let shared: Vec<usize> = self.slots.iter().map(|slot| slot.shared(prompt)).collect();
        let free = || (0..self.slots.len()).filter(|&index| !self.slots[index].is_busy);
        // The lowest of equals: llama.cpp is fastest with the lowest sequences.
        let continued = free()
            .filter(|&index| self.slots[index].is_continued_by(shared[index]))
            .max_by_key(|&index| (shared[index], std::cmp::Reverse(index)));
        if let Some(slot) = continued {
            return Some(Place { slot, copy_from: None, keep: shared[slot] });
        }
        let slot = free().min_by_key(|&index| {
            let slot = &self.slots[index];
            (!slot.cached.is_empty(), slot.last_use, index)
        })?;
        let (donor, most) = longest(&shared);
        if donor != slot && most >= shared[slot] + COPY_TOKENS_MIN {
            return Some(Place { slot, copy_from: Some(donor), keep: most });
        }
        Some(Place { slot, copy_from: None, keep: shared[slot] })
    }

    /// These tokens are now in the slot's cache, after those that were.
    pub fn extend(&mut self, slot: usize, tokens: &[u32]) {
        self.slots[slot].cached.extend(tokens);
    }

    /// Lets others have the slot; its cache stays of use.
    pub fn release(&mut self, slot: usize) {
        self.slots[slot].is_busy = false;
    }

    /// What the slot has in its cache is of no use any more.
    pub fn forget(&mut self, slot: usize) {
        self.slots[slot].cached.clear();
    }

    pub fn cached_tokens(&self, slot: usize) -> usize {
        self.slots[slot].cached.len()
    }

    pub fn indices(&self) -> Range<usize> {
        0..self.slots.len()
    }
}

impl Slot {
    fn shared(&self, prompt: &[u32]) -> usize {
        let shared = self.cached.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        shared.min(prompt.len().saturating_sub(1))
    }

    /// Whether a prompt that shares so much goes on with what the slot holds, instead of taking
    /// it from a conversation that may go on as well.
    fn is_continued_by(&self, shared: usize) -> bool {
        shared > 0 && shared as f64 >= self.cached.len() as f64 * CONTINUES
    }
}

fn longest(shared: &[usize]) -> (usize, usize) {
    let longest = shared.iter().copied().enumerate();
    longest.max_by_key(|&(index, most)| (most, std::cmp::Reverse(index))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(cached: &[Range<u32>]) -> Slots {
        let mut slots = Slots::new(cached.len());
        for (index, tokens) in cached.iter().enumerate() {
            slots.extend(index, &tokens.clone().collect::<Vec<_>>());
        }
        slots
    }

    fn prompt(parts: &[Range<u32>]) -> Vec<u32> {
        parts.iter().cloned().flatten().collect()
    }

    fn one(range: Range<u32>) -> Vec<Range<u32>> {
        Vec::from_iter([range])
    }

    #[test]
    fn a_conversation_goes_on_where_it_was() {
        let mut slots = slots(&[0..10, 100..300]);
        let next_turn = prompt(&[100..300, 0..5]);
        let place = slots.take(&next_turn).expect("a slot");
        assert_eq!(place, Place { slot: 1, copy_from: None, keep: 200 });
        // While that one is busy, the same beginning is copied from it rather than computed.
        slots.extend(1, &next_turn);
        let place = slots.take(&prompt(&[100..300, 7..9])).expect("a slot");
        assert_eq!(place, Place { slot: 0, copy_from: Some(1), keep: 200 });
        assert_eq!(slots.take(&[1]), None);
    }

    #[test]
    fn the_last_token_is_always_computed() {
        let mut slots = slots(&one(0..10));
        let place = slots.take(&prompt(&one(0..10))).expect("a slot");
        assert_eq!(place, Place { slot: 0, copy_from: None, keep: 9 });
    }

    #[test]
    fn a_shared_system_prompt_leaves_the_other_conversation_in_its_slot() {
        let mut slots = slots(&[0..400, 0..0]);
        let place = slots.take(&prompt(&[0..100, 900..910])).expect("a slot");
        assert_eq!(place, Place { slot: 1, copy_from: Some(0), keep: 100 });
    }

    #[test]
    fn little_is_not_worth_a_copy_and_the_oldest_slot_is_given_away() {
        let mut slots = slots(&[0..400, 500..520]);
        slots.take(&prompt(&[0..400, 1..2]));
        slots.release(0);
        slots.extend(0, &prompt(&one(0..400)));
        let place = slots.take(&prompt(&[0..12, 900..910])).expect("a slot");
        assert_eq!(place, Place { slot: 1, copy_from: None, keep: 0 });
    }

    #[test]
    fn what_is_forgotten_is_computed_again() {
        let mut slots = slots(&one(0..10));
        slots.forget(0);
        assert_eq!(slots.cached_tokens(0), 0);
        let place = slots.take(&prompt(&one(0..10))).expect("a slot");
        assert_eq!(place, Place { slot: 0, copy_from: None, keep: 0 });
    }
}
