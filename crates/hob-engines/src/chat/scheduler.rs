//! Whose tokens are computed next: a step takes one token of every stream that is being answered, and
//! then as much of the waiting prompts as those streams can bear. Pure: it is told the time.
//!
//! The two are passes of their own. llama.cpp cuts a batch until all its sequences have equally many
//! tokens, so one with both would be computed in as many passes, and its answers would come last.

use std::time::Duration;

/// How steps are made up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// A step with prompts in it takes at most this many times what one without takes, so that a
    /// long prompt is no silence in somebody's answer.
    pub stretch: f64,
    /// Answers with fewer tokens than this stretch nothing: they have only just begun, and whoever
    /// came at the same moment is let in with them.
    pub young_tokens: u32,
    /// A prompt moves by at least this much in each step.
    pub chunk_tokens_min: usize,
}

impl Default for Pacing {
    fn default() -> Pacing {
        // A worst gap of 3 times the median is wanted, and a step's cost is known to about a fifth.
        Pacing { stretch: 2.5, young_tokens: 4, chunk_tokens_min: 2 }
    }
}

/// How much one new measurement moves what is known of costs.
const WEIGHT: f64 = 0.2;

/// In a pass of so many tokens what it takes beside them no longer counts.
const BULK_TOKENS: usize = 32;

/// A stream's wish, in the order of their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Tokens that are known and not computed: 1 while it is being answered.
    pub pending: usize,
    /// Tokens that it has said.
    pub said: u32,
}

impl Wish {
    fn is_answering(self) -> bool {
        self.pending == 1 && self.said > 0
    }
}

/// The streams of a step, by their place among the wishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// One token of each.
    pub answers: Vec<usize>,
    /// So many tokens of each, at least one.
    pub prompts: Vec<(usize, usize)>,
}

/// Deals tokens to streams, and learns what they cost.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pacing: Pacing,
    batch_tokens: usize,
    /// Milliseconds of a pass over answers.
    answer_ms: Option<f64>,
    /// Milliseconds for each token of a long pass over prompts.
    bulk_ms: Option<f64>,
    /// Milliseconds that a short one takes beside that.
    overhead_ms: Option<f64>,
}

impl Scheduler {
    pub fn new(pacing: Pacing, batch_tokens: usize) -> Scheduler {
        Scheduler { pacing, batch_tokens, answer_ms: None, bulk_ms: None, overhead_ms: None }
    }

    /// What the next step computes; never more than `batch_tokens` in a pass.
    pub fn deal(&self, wishes: &[Wish]) -> Step {
        let mut step = Step::default();
        let mut chunk = self.chunk(wishes);
        for (index, wish) in wishes.iter().enumerate() {
            if wish.is_answering() {
                step.answers.push(index);
                continue;
            }
            // The oldest first: two prompts side by side would both be late.
            let share = wish.pending.min(chunk);
            chunk -= share;
            if share > 0 {
                step.prompts.push((index, share));
            }
        }
        step.answers.truncate(self.batch_tokens);
        step
    }

    /// Tokens of prompts that fit into the next step.
    fn chunk(&self, wishes: &[Wish]) -> usize {
        let is_heard =
            wishes.iter().any(|wish| wish.is_answering() && wish.said >= self.pacing.young_tokens);
        if !is_heard {
            return self.batch_tokens;
        }
        let (Some(answer_ms), Some(bulk_ms)) = (self.answer_ms, self.bulk_ms) else {
            return self.pacing.chunk_tokens_min;
        };
        // A pass of one token is no dearer for a prompt than for an answer.
        let overhead_ms = self.overhead_ms.unwrap_or((answer_ms - bulk_ms).max(0.0));
        let bearable = (answer_ms * (self.pacing.stretch - 1.0) - overhead_ms) / bulk_ms;
        (bearable as usize).clamp(self.pacing.chunk_tokens_min, self.batch_tokens)
    }

    /// A pass over answers took this long.
    pub fn learn_answers(&mut self, took: Duration) {
        self.answer_ms = Some(moved(self.answer_ms, milliseconds(took)));
    }

    /// A pass over so many tokens of prompts took this long.
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

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn moved(known: Option<f64>, measured: f64) -> f64 {
    known.map_or(measured, |known| known + WEIGHT * (measured - known))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn answering(said: u32) -> Wish {
        Wish { pending: 1, said }
    }

    fn prompt(pending: usize) -> Wish {
        Wish { pending, said: 0 }
    }

    fn step(answers: &[usize], prompts: &[(usize, usize)]) -> Step {
        Step { answers: answers.to_vec(), prompts: prompts.to_vec() }
    }

    /// Answers cost 5 ms; prompts 1 ms a token, and 2 ms a pass.
    fn scheduler() -> Scheduler {
        let pacing = Pacing { stretch: 3.0, young_tokens: 4, chunk_tokens_min: 2 };
        let mut scheduler = Scheduler::new(pacing, 512);
        scheduler.learn_answers(5 * MS);
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
    fn a_prompt_beside_an_answer_takes_what_the_answer_bears() {
        let wishes = [answering(50), prompt(1100), answering(7), prompt(8)];
        assert_eq!(scheduler().deal(&wishes), step(&[0, 2], &[(1, 8)]));
        let wishes = [answering(50), prompt(5), answering(7), prompt(8)];
        assert_eq!(scheduler().deal(&wishes), step(&[0, 2], &[(1, 5), (3, 3)]));
    }

    #[test]
    fn an_answer_that_has_just_begun_bears_everything() {
        let wishes = [answering(1), prompt(45), prompt(45)];
        assert_eq!(scheduler().deal(&wishes), step(&[0], &[(1, 45), (2, 45)]));
    }

    #[test]
    fn what_nobody_knows_yet_is_tried_with_little() {
        let mut scheduler = Scheduler::new(Pacing::default(), 512);
        let wishes = [answering(9), prompt(1100)];
        assert_eq!(scheduler.deal(&wishes), step(&[0], &[(1, 2)]));
        scheduler.learn_answers(10 * MS);
        scheduler.learn_prompts(2, 8 * MS);
        assert_eq!(scheduler.deal(&wishes), step(&[0], &[(1, 3)]), "13 ms for tokens of 4 ms");
    }

    #[test]
    fn forced_tokens_of_an_answer_are_computed_like_a_prompt() {
        let forced = Wish { pending: 3, said: 40 };
        assert_eq!(scheduler().deal(&[forced]), step(&[], &[(0, 3)]));
    }

    #[test]
    fn costs_are_learnt_from_what_passes_took() {
        let mut scheduler = scheduler();
        for _ in 0..60 {
            scheduler.learn_answers(10 * MS);
            scheduler.learn_prompts(4, 12 * MS);
            scheduler.learn_prompts(500, 1000 * MS);
        }
        let wishes = [answering(9), prompt(1100)];
        assert_eq!(
            scheduler.deal(&wishes),
            step(&[0], &[(1, 7)]),
            "16 ms, less 4 for the pass, for tokens of 2 ms: nearly 8"
        );
    }

    proptest! {
        #[test]
        fn no_pass_is_too_large_and_somebody_always_moves(
            wishes in vec((1_usize..3000, 0_u32..9), 1..9),
            took_ms in 1_u32..100,
        ) {
            let mut scheduler = scheduler();
            scheduler.learn_prompts(3, MS * took_ms);
            let wishes: Vec<Wish> =
                wishes.into_iter().map(|(pending, said)| Wish { pending, said }).collect();
            let Step { answers, prompts } = scheduler.deal(&wishes);
            prop_assert!(prompts.iter().map(|(_, share)| share).sum::<usize>() <= 512);
            prop_assert!(!answers.is_empty() || !prompts.is_empty());
            prop_assert!(prompts.iter().all(|(index, share)| *share <= wishes[*index].pending));
        }
    }
}
