//! A small model that guesses the next tokens of an answer. It has a cache of its own for each slot, which follows the
//! slot's tokens.

use std::time::{Duration, Instant};

use crate::chat::decoder::{BatchToken, DecodeFailed, Decoder};
use crate::chat::scheduler::{milliseconds, moved};

/// Tokens of a prompt that the small model reads between two steps of the answer.
const PROMPT_TOKENS: usize = 64;

/// A token that the small model finds less likely than this ends its guess.
const CHANCE_MIN: f32 = 0.5;

pub(super) struct DraftModel<D> {
    decoder: D,
    /// The tokens in the cache of each slot.
    cached: Vec<Vec<u32>>,
    /// Number of tokens that the large model has. The small one may have more.
    vocabulary: usize,
    token_ms: Option<f64>,
}

impl<D: Decoder> DraftModel<D> {
    pub(super) fn new(decoder: D, vocabulary: usize) -> DraftModel<D> {
        let cached = vec![Vec::new(); decoder.parallel()];
        DraftModel { decoder, cached, vocabulary, token_ms: None }
    }

    /// Milliseconds for each guessed token; 0 if unknown.
    pub(super) fn token_ms(&self) -> f64 {
        self.token_ms.unwrap_or(0.0)
    }

    /// At most `count` tokens that follow the slot's `tokens`. Empty while it reads them.
    ///
    /// # Errors
    /// The model does not compute.
    pub(super) fn guess(
        &mut self,
        slot: usize,
        tokens: &[u32],
        count: usize,
    ) -> Result<Vec<u32>, DecodeFailed> {
        let mut next = self.unread(slot, tokens);
        let piece = PROMPT_TOKENS.min(self.decoder.batch_tokens());
        if next.len() > piece {
            next.truncate(piece);
            self.compute(slot, &next)?;
            return Ok(Vec::new());
        }
        let mut guessed = Vec::new();
        let room = self.decoder.context_tokens() as usize;
        while guessed.len() < count && self.cached[slot].len() + next.len() <= room {
            let took = self.compute(slot, &next)?;
            if next.len() == 1 {
                self.token_ms = Some(moved(self.token_ms, milliseconds(took)));
            }
            let logits = self.decoder.logits(next.len() - 1);
            let Some(token) = likely(&logits[..self.vocabulary.min(logits.len())]) else { break };
            guessed.push(token);
            next = vec![token];
        }
        Ok(guessed)
    }

    /// The tokens that are not in the slot's cache. What does not belong there is removed.
    fn unread(&mut self, slot: usize, tokens: &[u32]) -> Vec<u32> {
        let cached = &mut self.cached[slot];
        let shared = cached.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        // The last token is computed again, because its logits give the first guess.
        let shared = shared.min(tokens.len().saturating_sub(1));
        if shared < cached.len() {
            let kept = self.decoder.truncate(slot, shared);
            cached.truncate(kept);
        }
        tokens[cached.len()..].to_vec()
    }

    fn compute(&mut self, slot: usize, tokens: &[u32]) -> Result<Duration, DecodeFailed> {
        let first = self.cached[slot].len();
        let token = |(at, &id): (usize, &u32)| BatchToken {
            id,
            position: (first + at) as u32,
            slot,
            wants_logits: at + 1 == tokens.len(),
        };
        let batch: Vec<BatchToken> = tokens.iter().enumerate().map(token).collect();
        let started = Instant::now();
        self.decoder.decode(&batch)?;
        self.cached[slot].extend(tokens);
        Ok(started.elapsed())
    }
}

/// The likeliest token, if it is likely enough.
fn likely(logits: &[f32]) -> Option<u32> {
    let (token, highest) = (0_u32..).zip(logits).max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let sum: f32 = logits.iter().map(|logit| (logit - highest).exp()).sum();
    (sum * CHANCE_MIN <= 1.0).then_some(token)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::chat::worker::tests::Counter;

    /// After `n` comes `n + 1`, up to 9. After 9, all tokens are alike.
    fn model() -> DraftModel<Counter> {
        let logits_after = |token: u32| {
            let mut logits = vec![0.0_f32; 12];
            if token < 9 {
                logits[token as usize + 1] = 20.0;
            }
            logits
        };
        DraftModel::new(Counter { context_tokens: 200, logits_after, ..Counter::new(1) }, 12)
    }

    #[test]
    fn it_guesses_what_it_finds_likely() {
        let mut model = model();
        assert_eq!(model.guess(0, &[1, 2, 3], 4), Ok(vec![4, 5, 6, 7]));
        assert_eq!(model.guess(0, &[1, 2, 3, 4, 5, 6, 7], 9), Ok(vec![8, 9]));
        assert_eq!(model.guess(0, &[9], 9), Ok(Vec::new()));
    }

    #[test]
    fn its_cache_follows_the_answer() {
        let mut model = model();
        model.guess(0, &[1, 2, 3], 3).expect("a guess");
        model.decoder.steps.lock().expect("no panic").clear();
        // Only the first guess was right.
        assert_eq!(model.guess(0, &[1, 2, 3, 4, 7], 1), Ok(vec![8]));
        assert_eq!(*model.decoder.steps.lock().expect("no panic"), [BTreeMap::from([(0, 1)])]);
        assert_eq!(model.decoder.slots, [[1, 2, 3, 4, 7]]);
    }

    #[test]
    fn a_long_prompt_is_read_in_pieces_and_a_full_context_has_no_guess() {
        let mut model = model();
        let prompt = vec![3; PROMPT_TOKENS * 2 + 5];
        assert_eq!(model.guess(0, &prompt, 2), Ok(Vec::new()));
        assert_eq!(model.guess(0, &prompt, 2), Ok(Vec::new()));
        assert_eq!(model.guess(0, &prompt, 2), Ok(vec![4, 5]));
        let mut full = model.decoder.slots[0].clone();
        full.resize(198, 3);
        assert_eq!(model.guess(0, &full, 9), Ok(vec![4, 5, 6]));
    }
}
