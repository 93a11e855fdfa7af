//! Decides which tokens are computed next. A step takes one token of each running answer, and then as many
//! tokens of waiting prompts as the answers tolerate. Pure: its caller passes the time.
//!
//! Answers and prompts are separate passes. llama.cpp splits a batch until all its sequences have equally
//! many tokens, so a mixed batch would need as many passes, and its answers would come last.

mod drafts;

use std::time::Duration;

pub use drafts::DRAFT_TOKENS_MAX;
use drafts::DraftCosts;
pub(crate) use drafts::{DraftOffer, FormOffer};

/// How many guessed tokens of an answer are checked in one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DraftPolicy {
    /// The number that makes answers fastest, by measured costs.
    #[default]
    Auto,
    Off,
    /// All that are guessed, up to this number, whatever they cost. For tests.
    Always(usize),
}

/// Limits of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLimits {
    /// A step with prompts takes at most this many times as long as a step without, so that a long prompt
    /// does not stall running answers.
    pub stretch: f64,
    /// Answers with fewer tokens than this do not limit prompts. They have just begun, and requests that
    /// arrived at the same moment start with them.
    pub young_tokens: u32,
    /// A prompt moves by at least this much in each step.
    pub chunk_tokens_min: usize,
    pub drafts: DraftPolicy,
}

impl Default for StepLimits {
    fn default() -> StepLimits {
        // A worst gap of 3 times the median is wanted, and a step's cost is known to about a fifth.
        StepLimits { stretch: 2.5, young_tokens: 4, chunk_tokens_min: 2, drafts: DraftPolicy::Auto }
    }
}

/// Weight of a new measurement in the running average of a cost.
const WEIGHT: f64 = 0.2;

/// An answer with at most this many tokens to compute is not a prompt. Grammars force a few tokens at a time.
const ANSWER_TOKENS_MAX: usize = 8;

/// From this many tokens on, the fixed cost of a pass is negligible.
const BULK_TOKENS: usize = 32;

/// What a stream needs in the next step. Streams are ordered by their start, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Tokens that are known and not computed. While the stream is being answered: 1, and those that a grammar forces.
    pub pending: usize,
    /// Tokens of the answer so far.
    pub said: u32,
}

impl Demand {
    fn is_answering(self) -> bool {
        self.pending <= ANSWER_TOKENS_MAX && self.said > 0
    }
}

/// The streams of a step, as indices into the demands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPlan {
    /// All tokens of each, and those that are drafted.
    pub answers: Vec<usize>,
    /// With the number of tokens of each, at least one.
    pub prompts: Vec<(usize, usize)>,
}

/// Deals tokens to streams, and learns what they cost.
#[derive(Clone, Debug)]
pub struct TokenScheduler {
    step_limits: StepLimits,
    batch_tokens: usize,
    /// Milliseconds of a pass over answers.
    answer_ms: Option<f64>,
    /// Milliseconds for each token of a long pass over prompts.
    bulk_ms: Option<f64>,
    /// Fixed cost of a short pass over prompts, in milliseconds.
    overhead_ms: Option<f64>,
    draft_costs: DraftCosts,
}

impl TokenScheduler {
    pub fn new(step_limits: StepLimits, batch_tokens: usize) -> TokenScheduler {
        TokenScheduler {
            step_limits,
            batch_tokens,
            answer_ms: None,
            bulk_ms: None,
            overhead_ms: None,
            draft_costs: DraftCosts::default(),
        }
    }

    pub(crate) fn can_draft(&self) -> bool {
        self.step_limits.drafts != DraftPolicy::Off
    }

    /// How many tokens of each answer's draft the next pass over answers checks.
    pub(crate) fn deal_drafts(&self, offers: &[DraftOffer]) -> Vec<usize> {
        let limits = (self.batch_tokens, self.bulk_ms);
        self.draft_costs.deal(offers, self.step_limits.drafts, limits)
    }

    /// How many tokens a small model should guess for the only answer. It takes `guess_ms` for each. The offer says how many
    /// are possible.
    pub(crate) fn wished_draft(&self, offer: DraftOffer, guess_ms: f64) -> usize {
        match self.step_limits.drafts {
            DraftPolicy::Off => 0,
            DraftPolicy::Always(most) => offer.tokens.min(most),
            DraftPolicy::Auto => self.draft_costs.wished(offer, guess_ms, self.bulk_ms),
        }
    }

    /// What the next step computes; never more than `batch_tokens` in a pass.
    pub fn deal(&self, demands: &[Demand]) -> StepPlan {
        let mut step = StepPlan::default();
        let mut chunk = self.chunk(demands);
        let mut room = self.batch_tokens;
        for (index, demand) in demands.iter().enumerate() {
            if demand.is_answering() {
                // The others have their turn in a later step.
                if demand.pending <= room {
                    room -= demand.pending;
                    step.answers.push(index);
                }
                continue;
            }
            // The oldest first: two prompts at the same time would both be late.
            let share = demand.pending.min(chunk);
            chunk -= share;
            if share > 0 {
                step.prompts.push((index, share));
            }
        }
        step
    }

    /// Tokens of prompts that fit into the next step.
    fn chunk(&self, demands: &[Demand]) -> usize {
        let is_heard = demands
            .iter()
            .any(|demand| demand.is_answering() && demand.said >= self.step_limits.young_tokens);
        if !is_heard {
            return self.batch_tokens;
        }
        let (Some(answer_ms), Some(bulk_ms)) = (self.answer_ms, self.bulk_ms) else {
            return self.step_limits.chunk_tokens_min;
        };
        // A pass of one token costs the same for a prompt and for an answer.
        let overhead_ms = self.overhead_ms.unwrap_or((answer_ms - bulk_ms).max(0.0));
        let bearable = (answer_ms * (self.step_limits.stretch - 1.0) - overhead_ms) / bulk_ms;
        (bearable as usize).clamp(self.step_limits.chunk_tokens_min, self.batch_tokens)
    }

    /// Records the time of a pass over answers, with the tokens of each.
    pub fn learn_answers(&mut self, tokens: &[usize], took: Duration) {
        let took_ms = milliseconds(took);
        self.draft_costs.learn(tokens, took_ms, self.bulk_ms);
        if tokens.iter().all(|&count| count == 1) {
            self.answer_ms = Some(moved(self.answer_ms, took_ms));
        }
    }

    /// Records the time of a pass over this many tokens of prompts.
    pub fn learn_prompts(&mut self, tokens: usize, took: Duration) {
        let took_ms = milliseconds(took);
        let each_ms = took_ms / tokens.max(1) as f64;
        if tokens >= BULK_TOKENS {
            self.bulk_ms = Some(moved(self.bulk_ms, each_ms));
            return;
        }
        let bulk_ms = *self.bulk_ms.get_or_insert(each_ms);
        let overhead_ms = (took_ms - bulk_ms * tokens as f64).max(0.0);
        self.overhead_ms = Some(moved(self.overhead_ms, overhead_ms));
    }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The running average of a cost after a new measurement.
pub(crate) fn moved(known: Option<f64>, measured: f64) -> f64 {
    known.map_or(measured, |known| known + WEIGHT * (measured - known))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn answering(said: u32) -> Demand {
        Demand { pending: 1, said }
    }

    fn prompt(pending: usize) -> Demand {
        Demand { pending, said: 0 }
    }

    fn step(answers: &[usize], prompts: &[(usize, usize)]) -> StepPlan {
        StepPlan { answers: answers.to_vec(), prompts: prompts.to_vec() }
    }

    /// Answers cost 5 ms; prompts 1 ms a token, and 2 ms a pass.
    fn scheduler() -> TokenScheduler {
        let step_limits = StepLimits { stretch: 3.0, ..StepLimits::default() };
        let mut scheduler = TokenScheduler::new(step_limits, 512);
        scheduler.learn_answers(&[1], 5 * MS);
        scheduler.learn_prompts(500, 500 * MS);
        scheduler.learn_prompts(8, 10 * MS);
        scheduler
    }

    #[test]
    fn a_prompt_alone_takes_the_whole_batch() {
        assert_eq!(scheduler().deal(&[prompt(1100), prompt(1)]), step(&[], &[(0, 512)]));
        assert_eq!(scheduler().deal(&[prompt(45), prompt(45)]), step(&[], &[(0, 45), (1, 45)]));
    }

    #[test]
    fn a_prompt_next_to_an_answer_takes_what_the_answer_tolerates() {
        let demands = [answering(50), prompt(1100), answering(7), prompt(8)];
        assert_eq!(scheduler().deal(&demands), step(&[0, 2], &[(1, 8)]));
        let demands = [answering(50), prompt(5), answering(7), prompt(8)];
        assert_eq!(scheduler().deal(&demands), step(&[0, 2], &[(1, 5), (3, 3)]));
    }

    #[test]
    fn an_answer_that_has_just_started_limits_no_prompt() {
        let demands = [answering(1), prompt(45), prompt(45)];
        assert_eq!(scheduler().deal(&demands), step(&[0], &[(1, 45), (2, 45)]));
    }

    #[test]
    fn unknown_costs_are_measured_with_few_tokens() {
        let mut scheduler = TokenScheduler::new(StepLimits::default(), 512);
        let demands = [answering(9), prompt(1100)];
        assert_eq!(scheduler.deal(&demands), step(&[0], &[(1, 2)]));
        scheduler.learn_answers(&[1], 10 * MS);
        scheduler.learn_prompts(2, 8 * MS);
        assert_eq!(scheduler.deal(&demands), step(&[0], &[(1, 3)]), "13 ms for tokens of 4 ms");
    }

    #[test]
    fn forced_tokens_of_an_answer_are_computed_like_a_prompt() {
        let forced = |pending| Demand { pending, said: 40 };
        assert_eq!(scheduler().deal(&[forced(30)]), step(&[], &[(0, 30)]));
        assert_eq!(
            scheduler().deal(&[forced(3), answering(5)]),
            step(&[0, 1], &[]),
            "but for a few"
        );
    }

    #[test]
    fn costs_are_learned_from_the_times_of_passes() {
        let mut scheduler = scheduler();
        for _ in 0..60 {
            scheduler.learn_answers(&[1], 10 * MS);
            scheduler.learn_prompts(4, 12 * MS);
            scheduler.learn_prompts(500, 1000 * MS);
        }
        let demands = [answering(9), prompt(1100)];
        assert_eq!(
            scheduler.deal(&demands),
            step(&[0], &[(1, 7)]),
            "16 ms, less 4 for the pass, for tokens of 2 ms: nearly 8"
        );
    }

    proptest! {
        #[test]
        fn no_pass_is_too_large_and_at_least_one_stream_makes_progress(
            demands in vec((1_usize..3000, 0_u32..9), 1..9),
            took_ms in 1_u32..100,
        ) {
            let mut scheduler = scheduler();
            scheduler.learn_prompts(3, MS * took_ms);
            let demands: Vec<Demand> =
                demands.into_iter().map(|(pending, said)| Demand { pending, said }).collect();
            let StepPlan { answers, prompts } = scheduler.deal(&demands);
            prop_assert!(prompts.iter().map(|(_, share)| share).sum::<usize>() <= 512);
            prop_assert!(!answers.is_empty() || !prompts.is_empty());
            prop_assert!(prompts.iter().all(|(index, share)| *share <= demands[*index].pending));
        }
    }
}
