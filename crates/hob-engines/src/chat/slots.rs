//! The slots of a decoder and the tokens in their caches. Chooses the slot where a new prompt has the least
//! to compute. Pure: it returns what to cut and copy, and its caller does it.

/// Copying another slot's cache moves all of its memory. It takes as long as a few tokens: about 20 ms, where
/// a token takes 4 ms (SmolLM2 on two cores).
const COPY_TOKENS_MIN: usize = 16;

/// A slot keeps its conversation if the new prompt shares less than this part of it.
const CONTINUES: f64 = 0.5;

/// What each slot's cache holds.
#[derive(Clone, Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    /// Counts uses, to find the slot that was unused for the longest time.
    uses: u64,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    /// The tokens in its cache, in order.
    cached: Vec<u32>,
    is_busy: bool,
    last_use: u64,
}

/// The slot for a prompt, and how to prepare its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotAssignment {
    pub slot: usize,
    /// The slot whose first `keep` tokens are copied. `None`: the slot keeps its own.
    pub copy_from: Option<usize>,
    /// Tokens of the prompt that are in the cache afterwards.
    pub keep: usize,
}

impl Slots {
    pub fn new(count: usize) -> Slots {
        Slots { slots: vec![Slot::default(); count], uses: 0 }
    }

    pub fn has_free(&self) -> bool {
        self.slots.iter().any(|slot| !slot.is_busy)
    }

    /// Takes a slot for `prompt`, or returns `None` while all are busy. At least the last token of the
    /// prompt remains to be computed, because its logits give the first token of the answer.
    pub fn take(&mut self, prompt: &[u32]) -> Option<SlotAssignment> {
        let assignment = self.assignment(prompt)?;
        self.uses += 1;
        let slot = &mut self.slots[assignment.slot];
        slot.is_busy = true;
        slot.last_use = self.uses;
        slot.cached.clear();
        Some(assignment)
    }

    fn assignment(&self, prompt: &[u32]) -> Option<SlotAssignment> {
        let shared: Vec<usize> = self.slots.iter().map(|slot| slot.shared(prompt)).collect();
        let free = || (0..self.slots.len()).filter(|&index| !self.slots[index].is_busy);
        // The lowest of several equal slots: llama.cpp is fastest with the lowest sequences.
        let continued = free()
            .filter(|&index| self.slots[index].is_continued_by(shared[index]))
            .max_by_key(|&index| (shared[index], std::cmp::Reverse(index)));
        if let Some(slot) = continued {
            return Some(SlotAssignment { slot, copy_from: None, keep: shared[slot] });
        }
        let slot = free().min_by_key(|&index| {
            let slot = &self.slots[index];
            (!slot.cached.is_empty(), slot.last_use, index)
        })?;
        let (donor, most) = longest(&shared);
        if donor != slot && most >= shared[slot] + COPY_TOKENS_MIN {
            return Some(SlotAssignment { slot, copy_from: Some(donor), keep: most });
        }
        Some(SlotAssignment { slot, copy_from: None, keep: shared[slot] })
    }

    /// Adds tokens that were computed to the end of the slot's cache.
    pub fn extend(&mut self, slot: usize, tokens: &[u32]) {
        self.slots[slot].cached.extend(tokens);
    }

    /// Frees the slot. Its cache may still serve a later prompt.
    pub fn release(&mut self, slot: usize) {
        self.slots[slot].is_busy = false;
    }

    /// Discards the slot's cache.
    pub fn forget(&mut self, slot: usize) {
        self.slots[slot].cached.clear();
    }

    pub fn cached_tokens(&self, slot: usize) -> usize {
        self.slots[slot].cached.len()
    }
}

impl Slot {
    fn shared(&self, prompt: &[u32]) -> usize {
        let shared = self.cached.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        shared.min(prompt.len().saturating_sub(1))
    }

    /// Whether a prompt that shares this many tokens continues the slot's conversation. Otherwise another request may still
    /// continue that conversation, and the slot keeps it.
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
    use std::ops::Range;

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
    fn a_conversation_continues_in_its_slot() {
        let mut slots = slots(&[0..10, 100..300]);
        let next_turn = prompt(&[100..300, 0..5]);
        let assignment = slots.take(&next_turn).expect("a slot");
        assert_eq!(assignment, SlotAssignment { slot: 1, copy_from: None, keep: 200 });
        // While that slot is busy, the same beginning is copied from it instead of computed.
        slots.extend(1, &next_turn);
        let assignment = slots.take(&prompt(&[100..300, 7..9])).expect("a slot");
        assert_eq!(assignment, SlotAssignment { slot: 0, copy_from: Some(1), keep: 200 });
        assert_eq!(slots.take(&[1]), None);
    }

    #[test]
    fn the_last_token_is_always_computed() {
        let mut slots = slots(&one(0..10));
        let assignment = slots.take(&prompt(&one(0..10))).expect("a slot");
        assert_eq!(assignment, SlotAssignment { slot: 0, copy_from: None, keep: 9 });
    }

    #[test]
    fn a_shared_system_prompt_leaves_the_other_conversation_in_its_slot() {
        let mut slots = slots(&[0..400, 0..0]);
        let assignment = slots.take(&prompt(&[0..100, 900..910])).expect("a slot");
        assert_eq!(assignment, SlotAssignment { slot: 1, copy_from: Some(0), keep: 100 });
    }

    #[test]
    fn a_short_beginning_is_not_copied_and_the_oldest_slot_is_reused() {
        let mut slots = slots(&[0..400, 500..520]);
        slots.take(&prompt(&[0..400, 1..2]));
        slots.release(0);
        slots.extend(0, &prompt(&one(0..400)));
        let assignment = slots.take(&prompt(&[0..12, 900..910])).expect("a slot");
        assert_eq!(assignment, SlotAssignment { slot: 1, copy_from: None, keep: 0 });
    }

    #[test]
    fn a_discarded_cache_is_computed_again() {
        let mut slots = slots(&one(0..10));
        slots.forget(0);
        assert_eq!(slots.cached_tokens(0), 0);
        let assignment = slots.take(&prompt(&one(0..10))).expect("a slot");
        assert_eq!(assignment, SlotAssignment { slot: 0, copy_from: None, keep: 0 });
    }
}
