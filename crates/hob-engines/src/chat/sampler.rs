//! Chooses the next token: biases, penalties, cuts of the distribution, and a random choice.
//! The order is that of llama.cpp, so that the same settings have the same effect.

mod history;
mod select;
#[cfg(test)]
mod tests;

use hob_core::chat::Sampling;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::constraint::Mask;

pub use history::History;
use select::{Candidate, SORTED_MIN, best, largest, sort_front};

/// Maximum alternatives that are reported for a token.
const TOP_MAX: u8 = 20;

/// Below any logit of a model. Finite, so that a grammar that allows only the end can still end.
const BIAS_AVOIDED: f32 = -1e9;

/// Defaults for values that a request does not set: those of the model's file, or else llama.cpp's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerDefaults {
    pub temperature: f32,
    pub top_k: u32,
    pub top_p: f32,
    pub min_p: f32,
    pub repeat_penalty: f32,
}

impl Default for SamplerDefaults {
    fn default() -> SamplerDefaults {
        SamplerDefaults {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplerError {
    /// The logits are not numbers: the weights or a kernel are damaged.
    #[error("the model gave no number for token {token}")]
    NotANumber { token: u32 },
    #[error("no token may come next")]
    NothingAllowed,
}

/// The next token.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub token: u32,
    /// `None` unless the request asked for them.
    pub logprobs: Option<Logprobs>,
}

/// Log probabilities of the model itself, before biases, penalties, masks and cuts.
#[derive(Clone, Debug, PartialEq)]
pub struct Logprobs {
    pub logprob: f32,
    /// The likeliest tokens, likeliest first.
    pub top: Vec<(u32, f32)>,
}

/// The sampler of one answer. It reuses its buffers.
#[derive(Clone, Debug)]
pub struct Sampler {
    temperature: f32,
    top_k: usize,
    top_p: f32,
    min_p: f32,
    repeat_penalty: f32,
    presence_penalty: f32,
    frequency_penalty: f32,
    logit_bias: Vec<(u32, f32)>,
    /// Alternatives to report for each token. `None` also reports no log probabilities.
    top_wanted: Option<usize>,
    random: Xoshiro256PlusPlus,
    adjusted: Vec<f32>,
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// Uses `fallback_seed` if the request has no seed.
    pub fn new(sampling: &Sampling, defaults: &SamplerDefaults, fallback_seed: u64) -> Sampler {
        let top_k = sampling.top_k.unwrap_or(defaults.top_k);
        Sampler {
            temperature: sampling.temperature.unwrap_or(defaults.temperature),
            // Zero means all.
            top_k: if top_k == 0 { usize::MAX } else { top_k as usize },
            top_p: sampling.top_p.unwrap_or(defaults.top_p),
            min_p: sampling.min_p.unwrap_or(defaults.min_p),
            repeat_penalty: sampling.repeat_penalty.unwrap_or(defaults.repeat_penalty),
            presence_penalty: sampling.presence_penalty.unwrap_or(0.0),
            frequency_penalty: sampling.frequency_penalty.unwrap_or(0.0),
            logit_bias: sampling.logit_bias.clone(),
            top_wanted: None,
            random: Xoshiro256PlusPlus::seed_from_u64(sampling.seed.unwrap_or(fallback_seed)),
            adjusted: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// Also reports log probabilities, with `top` alternatives. `None` reports nothing.
    pub fn with_logprobs(self, top: Option<u8>) -> Sampler {
        Sampler { top_wanted: top.map(|top| usize::from(top.min(TOP_MAX))), ..self }
    }

    pub fn has_logprobs(&self) -> bool {
        self.top_wanted.is_some()
    }

    /// Uses up the random number of a token that is known without a choice. So the tokens after it are the same as if it had
    /// been chosen.
    pub fn skip_draw(&mut self) {
        if !self.is_greedy() {
            self.fraction();
        }
    }

    /// A random number from 0 to below 1. Not for secrets.
    fn fraction(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn is_greedy(&self) -> bool {
        self.temperature <= 0.0 || self.top_k == 1
    }

    /// Chooses these tokens only if a mask allows no others.
    pub fn avoid(&mut self, tokens: impl Iterator<Item = u32>) {
        self.logit_bias.extend(tokens.map(|token| (token, BIAS_AVOIDED)));
    }

    /// Chooses from `logits`, among the tokens of `mask`.
    pub fn choose(
        &mut self,
        logits: &[f32],
        mask: Option<&Mask>,
        said: &History,
    ) -> Result<Chosen, SamplerError> {
        let mut adjusted = std::mem::take(&mut self.adjusted);
        let changed = self.adjust(logits, said, &mut adjusted);
        let token = self.draw(if changed { &adjusted } else { logits }, mask);
        self.adjusted = adjusted;
        let token = token?;
        let logprobs = self.top_wanted.map(|top| self.logprobs(logits, token, top)).transpose()?;
        Ok(Chosen { token, logprobs })
    }

    /// The log probability of `token`, even if the sampler did not choose it. It has alternatives only if the request asks
    /// for them.
    ///
    /// # Errors
    /// The logits are not numbers.
    pub fn score(&mut self, logits: &[f32], token: u32) -> Result<Logprobs, SamplerError> {
        self.logprobs(logits, token, self.top_wanted.unwrap_or(0))
    }

    /// Writes biased and penalised logits to `adjusted`. Returns false if nothing changes them.
    fn adjust(&self, logits: &[f32], said: &History, adjusted: &mut Vec<f32>) -> bool {
        let counts = self.presence_penalty != 0.0 || self.frequency_penalty != 0.0;
        let repeats = self.repeat_penalty != 1.0;
        if self.logit_bias.is_empty() && !counts && !repeats {
            return false;
        }
        adjusted.clear();
        adjusted.extend_from_slice(logits);
        for &(token, bias) in &self.logit_bias {
            change(adjusted, token, |logit| logit + bias);
        }
        if repeats {
            let penalty = self.repeat_penalty;
            said.for_each_recent(|token| {
                change(adjusted, token, |logit| {
                    if logit > 0.0 { logit / penalty } else { logit * penalty }
                });
            });
        }
        if counts {
            for (token, times) in said.counts() {
                let penalty = self.presence_penalty + times as f32 * self.frequency_penalty;
                change(adjusted, token, |logit| logit - penalty);
            }
        }
        true
    }

    fn draw(&mut self, logits: &[f32], mask: Option<&Mask>) -> Result<u32, SamplerError> {
        if self.is_greedy() {
            return best(logits, mask)?.map(|best| best.token).ok_or(SamplerError::NothingAllowed);
        }
        largest(logits, mask, self.top_k, &mut self.candidates)?;
        let first = *self.candidates.first().ok_or(SamplerError::NothingAllowed)?;
        self.cut_top_p(first.logit);
        self.cut_min_p(first.logit);
        Ok(self.draw_one(first))
    }

    /// Keeps the likeliest tokens that together have a probability of `top_p`. Sorts no more candidates than it needs.
    fn cut_top_p(&mut self, highest: f32) {
        if self.top_p >= 1.0 {
            return;
        }
        let weight = |candidate: &Candidate| f64::from((candidate.logit - highest).exp());
        let wanted = f64::from(self.top_p) * self.candidates.iter().map(weight).sum::<f64>();
        let mut sum = 0.0;
        let mut sorted = SORTED_MIN;
        for at in 0..self.candidates.len() {
            if at == sorted {
                // Seven times as many more, so that eight times as many are sorted.
                sort_front(&mut self.candidates[at..], sorted * 7);
                sorted *= 8;
            }
            sum += weight(&self.candidates[at]);
            if sum >= wanted {
                self.candidates.truncate(at + 1);
                return;
            }
        }
    }

    /// Drops tokens that are less likely than `min_p` times the likeliest one.
    fn cut_min_p(&mut self, highest: f32) {
        if self.min_p > 0.0 {
            let least = highest + self.min_p.min(1.0).ln();
            self.candidates.retain(|candidate| candidate.logit >= least);
        }
    }

    /// Chooses randomly among the remaining tokens.
    fn draw_one(&mut self, first: Candidate) -> u32 {
        let scale = 1.0 / f64::from(self.temperature);
        let weight =
            |candidate: &Candidate| (f64::from(candidate.logit - first.logit) * scale).exp();
        let total: f64 = self.candidates.iter().map(weight).sum();
        let mut left = self.fraction() * total;
        for candidate in &self.candidates {
            left -= weight(candidate);
            if left < 0.0 {
                return candidate.token;
            }
        }
        // Rounding may leave a small rest, which belongs to the likeliest token.
        first.token
    }

    fn logprobs(
        &mut self,
        logits: &[f32],
        token: u32,
        top: usize,
    ) -> Result<Logprobs, SamplerError> {
        largest(logits, None, top.max(1), &mut self.candidates)?;
        let highest = self.candidates.first().ok_or(SamplerError::NothingAllowed)?.logit;
        let sum: f64 = logits.iter().map(|logit| f64::from((logit - highest).exp())).sum();
        let norm = highest + sum.ln() as f32;
        let named = self.candidates.iter().take(top);
        Ok(Logprobs {
            logprob: logits[token as usize] - norm,
            top: named.map(|named| (named.token, named.logit - norm)).collect(),
        })
    }
}

/// How likely the next token is one of these, by the model itself.
///
/// # Errors
/// The logits are not numbers.
pub fn probability_of(tokens: &[u32], logits: &[f32]) -> Result<f32, SamplerError> {
    let highest = best(logits, None)?.ok_or(SamplerError::NothingAllowed)?.logit;
    let weight = |logit: &f32| f64::from((logit - highest).exp());
    let wanted = tokens.iter().filter_map(|&token| logits.get(token as usize));
    let wanted: f64 = wanted.map(weight).sum();
    Ok((wanted / logits.iter().map(weight).sum::<f64>()) as f32)
}

/// Ignores tokens that the vocabulary does not have.
fn change(logits: &mut [f32], token: u32, change: impl Fn(f32) -> f32) {
    if let Some(logit) = logits.get_mut(token as usize) {
        *logit = change(*logit);
    }
}
