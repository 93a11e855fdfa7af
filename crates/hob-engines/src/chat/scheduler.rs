//! Whose tokens are computed next: a step takes one token of every stream that is being answered,
//! and as much of the waiting prompts as those streams can bear. Pure: it is told the time.

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
        Pacing { stretch: 2.3, young_tokens: 4, chunk_tokens_min: 2 }
    }
}

/// How much one new measurement moves what is known of costs.
const WEIGHT: f64 = 0.2;

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

/// Deals tokens to streams, and learns what they cost.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pacing: Pacing,
    batch_tokens: usize,
    /// Milliseconds of a step that only answers.
    answer_ms: Option<f64>,
    /// Milliseconds that a prompt's token adds to such a step.
    added_ms: Option<f64>,
}

impl Scheduler {
    pub fn new(pacing: Pacing, batch_tokens: usize) -> Scheduler {
        Scheduler { pacing, batch_tokens, answer_ms: None, added_ms: None }
    }

    /// How many tokens of each stream the next step computes; never more than `batch_tokens` in all.
    pub fn deal(&self, wishes: &[Wish]) -> Vec<usize> {
        let mut left = self.batch_tokens;
        let mut shares = vec![0; wishes.len()];
        for (share, wish) in shares.iter_mut().zip(wishes) {
            if wish.is_answering() && left > 0 {
                *share = 1;
                left -= 1;
            }
        }
        let mut chunk = self.chunk(wishes).min(left);
        // The oldest first: two prompts side by side would both be late.
        for (share, wish) in shares.iter_mut().zip(wishes).filter(|(_, wish)| !wish.is_answering())
        {
            *share = wish.pending.min(chunk);
            chunk -= *share;
        }
        shares
    }

    /// Tokens of prompts that fit into the next step.
    fn chunk(&self, wishes: &[Wish]) -> usize {
        let is_heard =
            wishes.iter().any(|wish| wish.is_answering() && wish.said >= self.pacing.young_tokens);
        if !is_heard {
            return self.batch_tokens;
        }
        let (Some(answer_ms), Some(added_ms)) = (self.answer_ms, self.added_ms) else {
            return self.pacing.chunk_tokens_min;
        };
        let bearable = answer_ms * (self.pacing.stretch - 1.0) / added_ms;
        (bearable.round() as usize).max(self.pacing.chunk_tokens_min)
    }

    /// A step computed `answers` tokens of answers and `prompts` of prompts in this time.
    pub fn learn(&mut self, answers: usize, prompts: usize, took: Duration) {
        let took_ms = took.as_secs_f64() * 1e3;
        match (answers, prompts) {
            (0, 0) => {}
            (_, 0) => self.answer_ms = Some(moved(self.answer_ms, took_ms)),
            (0, _) => {
                // A prompt alone is computed in bulk, the cheapest that a token can be: a first
                // guess only, until a mixed step has shown the price.
                let bulk_ms = took_ms / prompts as f64;
                self.added_ms.get_or_insert(bulk_ms);
            }
            _ => {
                if let Some(answer_ms) = self.answer_ms {
                    // A step that is quicker than answers alone still cost something.
                    let added_ms = (took_ms - answer_ms).max(answer_ms * 0.02) / prompts as f64;
                    self.added_ms = Some(moved(self.added_ms, added_ms));
                }
            }
        }
    }
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

    /// Answers cost 5 ms a step; a prompt's token adds 1 ms.
    fn scheduler() -> Scheduler {
        let pacing = Pacing { stretch: 3.0, young_tokens: 4, chunk_tokens_min: 2 };
        let mut scheduler = Scheduler::new(pacing, 512);
        scheduler.learn(1, 0, 5 * MS);
        scheduler.learn(1, 10, 15 * MS);
        scheduler
    }

    #[test]
    fn a_prompt_alone_takes_the_whole_batch() {
        assert_eq!(scheduler().deal(&[prompt(1100), prompt(1)]), [512, 0]);
        assert_eq!(scheduler().deal(&[prompt(45), prompt(45)]), [45, 45]);
    }

    #[test]
    fn a_prompt_beside_an_answer_takes_what_the_answer_bears() {
        let wishes = [answering(50), prompt(1100), answering(7), prompt(8)];
        assert_eq!(scheduler().deal(&wishes), [1, 10, 1, 0]);
    }

    #[test]
    fn an_answer_that_has_just_begun_bears_everything() {
        assert_eq!(scheduler().deal(&[answering(1), prompt(45), prompt(45)]), [1, 45, 45]);
    }

    #[test]
    fn what_nobody_knows_yet_is_tried_with_little() {
        let scheduler = Scheduler::new(Pacing::default(), 512);
        assert_eq!(scheduler.deal(&[answering(9), prompt(1100)]), [1, 2]);
    }

    #[test]
    fn forced_tokens_of_an_answer_are_computed_like_a_prompt() {
        let forced = Wish { pending: 3, said: 40 };
        assert_eq!(scheduler().deal(&[forced]), [3]);
    }

    #[test]
    fn costs_are_learnt_from_what_steps_took() {
        let mut scheduler = scheduler();
        for _ in 0..60 {
            scheduler.learn(1, 0, 10 * MS);
            scheduler.learn(1, 4, 14 * MS);
            scheduler.learn(0, 500, 50 * MS);
        }
        assert_eq!(scheduler.deal(&[answering(9), prompt(1100)]), [1, 20], "20 ms for 1 ms tokens");
    }

    proptest! {
        #[test]
        fn no_step_is_too_large_and_somebody_always_moves(
            wishes in vec((1_usize..3000, 0_u32..9), 1..9),
            took_ms in 1_u32..100,
        ) {
            let mut scheduler = scheduler();
            scheduler.learn(1, 3, MS * took_ms);
            let wishes: Vec<Wish> =
                wishes.into_iter().map(|(pending, said)| Wish { pending, said }).collect();
            let shares = scheduler.deal(&wishes);
            prop_assert!(shares.iter().sum::<usize>() <= 512);
            prop_assert!(shares.iter().any(|share| *share > 0));
            prop_assert!(shares.iter().zip(&wishes).all(|(share, wish)| *share <= wish.pending));
        }
    }
}
