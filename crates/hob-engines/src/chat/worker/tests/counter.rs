//! A decoder that only counts. It checks that every token is computed once, in its place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::{CONTEXT_TOKENS, END, VOCABULARY};
use crate::chat::decoder::{BatchToken, DecodeFailed, Decoder};
use crate::chat::scheduler::DraftPolicy;

/// What the decoder was given, step by step: how many tokens of which slot.
pub(crate) type Steps = Arc<Mutex<Vec<BTreeMap<usize, usize>>>>;

/// A decoder of a language in which each token depends on the one before.
pub(crate) struct Counter {
    pub(crate) context_tokens: u32,
    /// The logits after a token.
    pub(crate) logits_after: fn(u32) -> Vec<f32>,
    pub(crate) slots: Vec<Vec<u32>>,
    pub(crate) logits: Vec<Vec<f32>>,
    pub(crate) steps: Steps,
    /// A batch with this token fails.
    pub(crate) poison: Option<u32>,
    pub(crate) drafts: DraftPolicy,
    pub(crate) has_small_model: bool,
    /// The chat template in the model's file.
    pub(crate) template: Option<&'static str>,
    /// A cache that is cut is lost.
    pub(crate) is_lost_by_cuts: bool,
    pub(crate) can_truncate: bool,
    pub(crate) is_broken: bool,
}

impl Counter {
    pub(crate) fn new(parallel: usize) -> Counter {
        Counter {
            context_tokens: CONTEXT_TOKENS,
            logits_after: next_letter,
            slots: vec![Vec::new(); parallel],
            logits: Vec::new(),
            steps: Steps::default(),
            poison: None,
            drafts: DraftPolicy::Off,
            has_small_model: false,
            template: None,
            is_lost_by_cuts: false,
            can_truncate: true,
            is_broken: false,
        }
    }
}

pub(super) fn next_letter(letter: u32) -> Vec<f32> {
    let next = if letter >= u32::from(b'z') { END } else { letter + 1 };
    let mut logits = vec![-10.0; VOCABULARY];
    logits[next as usize] = 10.0;
    logits
}

impl Decoder for Counter {
    fn parallel(&self) -> usize {
        self.slots.len()
    }

    fn context_tokens(&self) -> u32 {
        self.context_tokens
    }

    fn batch_tokens(&self) -> usize {
        512
    }

    fn decode(&mut self, tokens: &[BatchToken]) -> Result<(), DecodeFailed> {
        assert!(tokens.is_sorted_by_key(|token| (token.slot, token.position)), "out of order");
        if tokens.iter().any(|token| Some(token.id) == self.poison) {
            return Err(DecodeFailed("poisoned".to_owned()));
        }
        let mut step = BTreeMap::new();
        self.logits.clear();
        for token in tokens {
            let cached = &mut self.slots[token.slot];
            assert_eq!(cached.len(), token.position as usize, "slot {}", token.slot);
            cached.push(token.id);
            *step.entry(token.slot).or_default() += 1;
            self.logits.push((self.logits_after)(token.id));
        }
        self.steps.lock().expect("no panic").push(step);
        Ok(())
    }

    fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn logits(&self, index: usize) -> &[f32] {
        &self.logits[index]
    }

    fn truncate(&mut self, slot: usize, tokens: usize) -> usize {
        let cached = &mut self.slots[slot];
        assert!(tokens <= cached.len());
        let is_lost = self.is_lost_by_cuts && tokens < cached.len();
        cached.truncate(if is_lost { 0 } else { tokens });
        cached.len()
    }

    fn can_truncate(&self) -> bool {
        self.can_truncate
    }

    fn copy(&mut self, from: usize, to: usize, tokens: usize) -> usize {
        self.slots[to] = self.slots[from][..tokens].to_vec();
        tokens
    }
}
