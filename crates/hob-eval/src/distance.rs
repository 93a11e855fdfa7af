//! The distance between a quant and its reference: perplexity, divergence and agreement over the tokens of a text.
//! The definitions are those of `llama-perplexity --kl-divergence` in llama.cpp (`tools/perplexity/perplexity.cpp`).

use serde::{Deserialize, Serialize};

/// With so few tokens, llama.cpp reports no standard error.
const TOKENS_WITHOUT_ERROR: usize = 10;

/// Collects scored tokens. llama.cpp scores the second half of each context; the caller chooses the tokens.
/// For the percentiles it keeps 4 bytes per token. It keeps no logits.
#[derive(Clone, Debug, Default)]
pub struct Distances {
    reference: Moments,
    quant: Moments,
    product: f64,
    divergence: Moments,
    divergences: Vec<f32>,
    difference: Moments,
    squared_difference: Moments,
    same_top: usize,
    skipped: usize,
}

/// A figure with its standard error. There is no error with 10 tokens or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deviation {
    pub value: f64,
    pub error: Option<f64>,
}

/// What [`Distances`] found. Logarithms are natural. Probabilities and shares are 0 to 1, not percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistanceReport {
    pub tokens: usize,
    /// Tokens left out: the vectors differ in length, a logit is not a number, or the token is not in the vocabulary.
    pub skipped: usize,
    /// Mean negative log-likelihood of the reference model: ln PPL(base).
    pub reference_ln_ppl: Deviation,
    pub quant_ln_ppl: Deviation,
    pub reference_ppl: Deviation,
    pub quant_ppl: Deviation,
    /// ln(PPL(Q)/PPL(base)). The error takes into account that both models read the same tokens.
    pub ln_ppl_ratio: Deviation,
    /// KLD(reference ‖ quant).
    pub divergence: Deviation,
    pub divergence_min: f64,
    pub divergence_median: f64,
    pub divergence_p90: f64,
    pub divergence_p99: f64,
    pub divergence_p99_9: f64,
    pub divergence_max: f64,
    /// Probability of the text's token under the quant, less that under the reference.
    pub probability_difference: Deviation,
    pub probability_difference_rms: Deviation,
    /// Share of tokens for which both models find the same token the most likely.
    pub same_top: Deviation,
}

impl Distances {
    /// Adds one scored token: both models' logits over the vocabulary, and the token that the text has there.
    pub fn push(&mut self, reference_logits: &[f32], logits: &[f32], token: u32) {
        let models = (Normalised::of(reference_logits), Normalised::of(logits));
        let (Some(reference), Some(quant)) = models else {
            self.skipped += 1;
            return;
        };
        let token = token as usize;
        if reference_logits.len() != logits.len() || token >= logits.len() {
            self.skipped += 1;
            return;
        }
        let (nll_reference, nll) = (-reference.log_at(token), -quant.log_at(token));
        self.reference.add(nll_reference);
        self.quant.add(nll);
        self.product += nll * nll_reference;
        let divergence = reference.divergence_from(&quant);
        self.divergence.add(divergence);
        self.divergences.push(divergence as f32);
        let difference = (-nll).exp() - (-nll_reference).exp();
        self.difference.add(difference);
        self.squared_difference.add(difference * difference);
        self.same_top += usize::from(reference.top == quant.top);
    }

    /// `None` when no token was scored.
    pub fn finish(mut self) -> Option<DistanceReport> {
        let tokens = self.divergences.len();
        if tokens == 0 {
            return None;
        }
        self.divergences.sort_by(f32::total_cmp);
        let percentile = |part| percentile(&self.divergences, part);
        let (reference, quant) = (self.reference.mean(), self.quant.mean());
        let mean_square = self.squared_difference.mean();
        let rms = mean_square.value.sqrt();
        let rms_error = if rms > 0.0 { 0.5 / rms } else { 0.0 };
        let same = self.same_top as f64 / tokens as f64;
        let same_error = (same * (1.0 - same) / (tokens.max(2) - 1) as f64).sqrt();
        Some(DistanceReport {
            tokens,
            skipped: self.skipped,
            reference_ln_ppl: reference,
            quant_ln_ppl: quant,
            reference_ppl: reference.exp(),
            quant_ppl: quant.exp(),
            ln_ppl_ratio: self.ln_ppl_ratio(),
            divergence: self.divergence.mean(),
            divergence_min: percentile(0.0),
            divergence_median: percentile(0.5),
            divergence_p90: percentile(0.9),
            divergence_p99: percentile(0.99),
            divergence_p99_9: percentile(0.999),
            divergence_max: percentile(1.0),
            probability_difference: self.difference.mean(),
            probability_difference_rms: Deviation {
                value: rms,
                error: mean_square.error.map(|error| rms_error * error),
            },
            same_top: Deviation {
                value: same,
                error: (tokens > TOKENS_WITHOUT_ERROR).then_some(same_error),
            },
        })
    }

    fn ln_ppl_ratio(&self) -> Deviation {
        let (reference, quant) = (self.reference.mean(), self.quant.mean());
        let n = self.reference.count as f64;
        let covariance = (self.product / n - reference.value * quant.value) / (n - 1.0).max(1.0);
        let error = reference.error.zip(quant.error).map(|(a, b)| {
            // Rounding can bring the variance of two equal models below 0.
            (a * a + b * b - 2.0 * covariance).max(0.0).sqrt()
        });
        Deviation { value: quant.value - reference.value, error }
    }
}

impl Deviation {
    /// The exponential, with the error to first order.
    fn exp(self) -> Deviation {
        let value = self.value.exp();
        Deviation { value, error: self.error.map(|error| value * error) }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> Deviation {
        let n = self.count as f64;
        let value = self.sum / n;
        let variance = (self.squares / n - value * value).max(0.0);
        let error = (self.count > TOKENS_WITHOUT_ERROR).then(|| (variance / (n - 1.0)).sqrt());
        Deviation { value, error }
    }
}

/// Logits with the logarithm of their normaliser.
struct Normalised<'a> {
    logits: &'a [f32],
    top: usize,
    log_sum: f64,
}

impl Normalised<'_> {
    /// `None` without logits, and with one that is not a number or infinite. Minus infinity is a masked token.
    fn of(logits: &[f32]) -> Option<Normalised<'_>> {
        let mut top = 0;
        for (at, logit) in logits.iter().enumerate() {
            if logit.is_nan() {
                return None;
            }
            if *logit > logits[top] {
                top = at;
            }
        }
        let max = f64::from(*logits.get(top).filter(|max| max.is_finite())?);
        let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - max).exp()).sum();
        Some(Normalised { logits, top, log_sum: max + sum.ln() })
    }

    fn log_at(&self, token: usize) -> f64 {
        f64::from(self.logits[token]) - self.log_sum
    }

    fn divergence_from(&self, quant: &Normalised<'_>) -> f64 {
        let terms = (0..self.logits.len()).map(|token| {
            let log = self.log_at(token);
            let p = log.exp();
            // A probability of 0 adds nothing, also where the quant gives 0.
            if p > 0.0 { p * (log - quant.log_at(token)) } else { 0.0 }
        });
        terms.sum()
    }
}

/// Interpolates linearly between two ranks, as llama.cpp does.
fn percentile(sorted: &[f32], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    if low == high {
        return f64::from(low);
    }
    f64::from(low) + (f64::from(high) - f64::from(low)) * at.fract()
}

#[cfg(test)]
mod tests;
