//! Decides how many guessed tokens a pass checks. Each one makes the pass longer, and saves a pass if it is right.
//! The costs are measured while answers are computed, so drafts are used only where they pay.

mod pass_times;

use super::DraftPolicy;
use pass_times::{Fit, PassCosts, PassTimes, Shape};

/// Maximum guessed tokens of one stream in a pass.
pub const DRAFT_TOKENS_MAX: usize = 16;

/// Drafts must promise at least this many times the speed of a pass without them. Less is within the error of the
/// estimates.
const GAIN_MIN: f64 = 1.08;

/// A pass takes at most this many times as long for drafts in which a stream has no part.
const STRETCH_OF_OTHERS: f64 = 1.5;

/// Between passes that seem equally fast, the one without a token that is left over is taken: it may be faster.
const REST_PREFERENCE: f64 = 0.99;

/// After this many passes with drafts comes one without, so that its cost stays known.
const PLAIN_EVERY: u32 = 24;

/// Weights of a new time of a pass without drafts in its running average. A shorter time is surer than a longer one, which
/// another program may have caused. If such a pass seemed slower than it is, drafts would seem to pay.
const FASTER_WEIGHT: f64 = 0.3;
const SLOWER_WEIGHT: f64 = 0.1;
const SLOWER_MAX: f64 = 1.5;

/// How much of the past measurements stays after a pass with drafts, and after one without.
const FADE: f64 = 0.95;
const PLAIN_FADE: f64 = 0.998;

/// A pass that took many times longer than expected was disturbed.
const DISTURBED: f64 = 2.0;

/// A draft that a stream offers for the next pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DraftOffer {
    /// Tokens that the pass computes in any case, at least one.
    pub(crate) pending: usize,
    /// Guessed tokens that follow them.
    pub(crate) tokens: usize,
    /// The estimated probability that a token is right if those before it are.
    pub(crate) chance: f64,
    /// The first of the guessed tokens have a probability of their own, because a grammar prescribes their text.
    pub(crate) form: FormOffer,
}

/// Guessed tokens in the text that a grammar prescribes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FormOffer {
    pub(crate) tokens: usize,
    /// The estimated probability of each, if those before it are right.
    pub(crate) chance: f64,
}

impl DraftOffer {
    /// How many of the first `tokens` are probably right.
    fn expected(self, tokens: usize) -> f64 {
        let (mut chance, mut sum) = (1.0, 0.0);
        for at in 0..tokens {
            chance *= self.chance_of(at);
            sum += chance;
        }
        sum
    }

    fn chance_of(self, at: usize) -> f64 {
        if at < self.form.tokens { self.form.chance } else { self.chance }
    }
}

/// What passes cost, by the number of tokens of each stream.
#[derive(Clone, Debug, Default)]
pub(super) struct DraftCosts {
    /// Milliseconds of a pass with one token of each of `index + 1` streams.
    plain_ms: Vec<Option<f64>>,
    measured: Fit,
    times: PassTimes,
    passes_since_plain: u32,
}

impl DraftCosts {
    /// Records the time of a pass, with the tokens of each stream. `token_ms` is a guess.
    pub(super) fn learn(&mut self, tokens: &[usize], took_ms: f64, token_ms: Option<f64>) {
        let streams = tokens.len();
        if streams == 0 {
            return;
        }
        if tokens.iter().all(|&count| count == 1) {
            self.passes_since_plain = 0;
            self.measured.fade(PLAIN_FADE);
            self.times.fade(PLAIN_FADE);
            if self.plain_ms.len() < streams {
                self.plain_ms.resize(streams, None);
            }
            let known = &mut self.plain_ms[streams - 1];
            *known = Some(known.map_or(took_ms, |known| plain_after(known, took_ms)));
            return;
        }
        self.passes_since_plain += 1;
        let Some(plain_ms) = self.plain_ms(streams) else { return };
        let costs = self.costs(streams, plain_ms, token_ms);
        let expected_ms = self.pass_ms(tokens, plain_ms, costs);
        let took_ms = took_ms.min(expected_ms * DISTURBED);
        self.measured.fade(FADE);
        self.measured.add(Shape::of(tokens), took_ms);
        if let &[count] = tokens {
            self.times.fade(FADE);
            self.times.add(count, took_ms);
        }
    }

    /// How many tokens of each draft the next pass checks: those that give most tokens for its time.
    pub(super) fn deal(
        &self,
        offers: &[DraftOffer],
        policy: DraftPolicy,
        (tokens_max, token_ms): (usize, Option<f64>),
    ) -> Vec<usize> {
        let nothing = vec![0; offers.len()];
        let mut order: Vec<usize> =
            (0..offers.len()).filter(|&index| offers[index].tokens > 0).collect();
        order.sort_by(|&a, &b| offers[b].chance_of(0).total_cmp(&offers[a].chance_of(0)));
        match policy {
            DraftPolicy::Off => return nothing,
            DraftPolicy::Always(most) => {
                let drafts = shares(offers, &order, most);
                let is_small = tokens_of(offers, &drafts).iter().sum::<usize>() <= tokens_max;
                return if is_small { drafts } else { nothing };
            }
            DraftPolicy::Auto => {}
        }
        let Some(plain_ms) = self.plain_to_beat(offers.len()) else { return nothing };
        let costs = self.costs(offers.len(), plain_ms, token_ms);
        let without_ms = self.pass_ms(&tokens_of(offers, &nothing), plain_ms, costs);
        let mut best = (offers.len() as f64 / without_ms * GAIN_MIN, nothing);
        for included in 1..=order.len() {
            for length in 1..=DRAFT_TOKENS_MAX {
                let drafts = shares(offers, &order[..included], length);
                let tokens = tokens_of(offers, &drafts);
                if tokens.iter().sum::<usize>() > tokens_max {
                    break;
                }
                let took_ms = self.pass_ms(&tokens, plain_ms, costs);
                let delays_others = included < offers.len();
                if delays_others && took_ms > without_ms * STRETCH_OF_OTHERS {
                    // One more token may leave none over, and take less time.
                    continue;
                }
                let right = offers.iter().zip(&drafts).map(|(offer, &draft)| offer.expected(draft));
                let mut speed = (offers.len() as f64 + right.sum::<f64>()) / took_ms;
                if Shape::of(&tokens).has_rest() {
                    speed *= REST_PREFERENCE;
                }
                if speed > best.0 {
                    best = (speed, drafts);
                }
            }
        }
        best.1
    }

    /// The length of a guess for the only stream that gives most tokens for its time, if each token of it takes `guess_ms`.
    pub(super) fn wished(&self, offer: DraftOffer, guess_ms: f64, token_ms: Option<f64>) -> usize {
        let Some(plain_ms) = self.plain_to_beat(1) else { return 0 };
        let costs = self.costs(1, plain_ms, token_ms);
        let mut best = (GAIN_MIN / self.pass_ms(&[offer.pending], plain_ms, costs), 0);
        for length in 1..=offer.tokens.min(DRAFT_TOKENS_MAX) {
            let pass_ms = self.pass_ms(&[offer.pending + length], plain_ms, costs);
            let speed = (1.0 + offer.expected(length)) / (pass_ms + guess_ms * length as f64);
            if speed > best.0 {
                best = (speed, length);
            }
        }
        best.1
    }

    /// The time of a pass without drafts. `None` if it is unknown, or if such a pass is due.
    fn plain_to_beat(&self, streams: usize) -> Option<f64> {
        self.plain_ms(streams).filter(|_| self.passes_since_plain < PLAIN_EVERY)
    }

    fn plain_ms(&self, streams: usize) -> Option<f64> {
        *self.plain_ms.get(streams.checked_sub(1)?)?
    }

    /// The costs of a pass that fit the measured times best.
    fn costs(&self, streams: usize, plain_ms: f64, token_ms: Option<f64>) -> PassCosts {
        let mut fit = self.measured;
        fit.add(Shape::of(&vec![1; streams]), plain_ms);
        fit.solve(token_ms.unwrap_or(plain_ms / 2.0))
    }

    /// Expected milliseconds of a pass.
    fn pass_ms(&self, tokens: &[usize], plain_ms: f64, costs: PassCosts) -> f64 {
        if tokens.iter().all(|&count| count == 1) {
            return plain_ms;
        }
        let fitted_ms = costs.milliseconds(Shape::of(tokens));
        let pass_ms = match *tokens {
            [count] => self.times.corrected(count, fitted_ms),
            _ => fitted_ms,
        };
        pass_ms.max(plain_ms)
    }
}

fn plain_after(known_ms: f64, took_ms: f64) -> f64 {
    let weight = if took_ms < known_ms { FASTER_WEIGHT } else { SLOWER_WEIGHT };
    known_ms + weight * (took_ms.min(known_ms * SLOWER_MAX) - known_ms)
}

/// The tokens of each draft if those in `included` have at most `length`.
fn shares(offers: &[DraftOffer], included: &[usize], length: usize) -> Vec<usize> {
    let mut drafts = vec![0; offers.len()];
    for &index in included {
        drafts[index] = offers[index].tokens.min(length);
    }
    drafts
}

/// The tokens of each stream in a pass with these drafts.
fn tokens_of(offers: &[DraftOffer], drafts: &[usize]) -> Vec<usize> {
    offers.iter().zip(drafts).map(|(offer, draft)| offer.pending + draft).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: (usize, Option<f64>) = (512, Some(1.0));

    fn offer(tokens: usize, chance: f64) -> DraftOffer {
        DraftOffer { pending: 1, tokens, chance, form: FormOffer::default() }
    }

    /// A pass costs 9 ms, and each token of it `token_ms`.
    fn costs(token_ms: f64) -> DraftCosts {
        let mut costs = DraftCosts::default();
        for _ in 0..40 {
            for tokens in [&[1][..], &[4], &[9], &[1, 1], &[1, 6]] {
                costs.learn(tokens, linear_ms(tokens, token_ms), Some(token_ms));
            }
        }
        costs
    }

    fn linear_ms(tokens: &[usize], token_ms: f64) -> f64 {
        let mut passes = tokens.to_vec();
        passes.dedup();
        9.0 * passes.len() as f64 + token_ms * tokens.iter().sum::<usize>() as f64
    }

    fn dealt(costs: &DraftCosts, offers: &[DraftOffer]) -> Vec<usize> {
        costs.deal(offers, DraftPolicy::Auto, ROOM)
    }

    #[test]
    fn what_is_probably_right_is_checked_and_the_longer_the_likelier() {
        let costs = costs(1.0);
        assert_eq!(dealt(&costs, &[offer(16, 0.98)]), [16]);
        let likely = dealt(&costs, &[offer(16, 0.7)])[0];
        assert!((2..8).contains(&likely), "{likely}");
        assert_eq!(dealt(&costs, &[offer(3, 0.95)]), [3], "no more than there are");
        assert_eq!(dealt(&costs, &[offer(16, 0.1)]), [0]);
        assert_eq!(dealt(&costs, &[offer(0, 0.0)]), [0]);
    }

    #[test]
    fn where_tokens_cost_as_much_as_passes_nothing_is_drafted() {
        let mut costs = DraftCosts::default();
        for _ in 0..40 {
            costs.learn(&[1], 10.0, Some(10.0));
            costs.learn(&[5], 50.0, Some(10.0));
        }
        assert_eq!(dealt(&costs, &[offer(16, 0.95)]), [0]);
    }

    #[test]
    fn without_a_measured_pass_nothing_is_drafted() {
        assert_eq!(dealt(&DraftCosts::default(), &[offer(16, 1.0)]), [0]);
        let mut costs = DraftCosts::default();
        costs.learn(&[1], 10.0, None);
        assert!(dealt(&costs, &[offer(16, 1.0)])[0] > 0, "a token costs probably half a pass");
        assert_eq!(dealt(&costs, &[offer(16, 1.0), offer(16, 1.0)]), [0, 0], "of two streams");
    }

    #[test]
    fn streams_that_draft_equally_much_share_a_pass_and_others_are_not_delayed() {
        let costs = costs(1.0);
        assert_eq!(dealt(&costs, &[offer(9, 0.95), offer(9, 0.95)]), [9, 9]);
        // Tokens of one stream alone need a second pass over all weights.
        assert_eq!(dealt(&costs, &[offer(9, 0.95), offer(0, 0.0)]), [0, 0]);
    }

    #[test]
    fn tokens_that_are_forced_cost_their_time_with_and_without_a_draft() {
        let costs = costs(1.0);
        let forced = DraftOffer { pending: 4, ..offer(3, 0.9) };
        assert_eq!(dealt(&costs, &[forced]), [3]);
        assert_eq!(dealt(&costs, &[DraftOffer { chance: 0.05, ..forced }]), [0]);
    }

    #[test]
    fn no_token_is_left_over_where_that_costs_a_pass() {
        let mut costs = DraftCosts::default();
        for tokens in [1, 2, 3, 4, 6, 9, 16, 17].repeat(30) {
            let left_over_ms = if tokens > 1 && tokens % 2 == 1 { 9.0 } else { 0.0 };
            costs.learn(&[tokens], linear_ms(&[tokens], 1.0) + left_over_ms, Some(1.0));
        }
        assert_eq!(dealt(&costs, &[offer(16, 0.98)]), [15]);
        assert_eq!(dealt(&costs, &[offer(2, 0.95)]), [1]);
        // Three tokens are forced. A fourth makes the pass shorter, even if it is probably wrong.
        assert_eq!(dealt(&costs, &[DraftOffer { pending: 3, ..offer(4, 0.05) }]), [1]);
    }

    #[test]
    fn tokens_of_a_form_are_checked_whatever_follows_them() {
        let form = FormOffer { tokens: 5, chance: 0.95 };
        assert_eq!(dealt(&costs(1.0), &[DraftOffer { form, ..offer(16, 0.05) }]), [5]);
    }

    #[test]
    fn a_small_model_guesses_only_where_its_own_time_pays() {
        let costs = costs(1.0);
        assert!(costs.wished(offer(16, 0.8), 0.5, Some(1.0)) >= 3);
        assert_eq!(costs.wished(offer(16, 0.8), 12.0, Some(1.0)), 0);
        assert_eq!(costs.wished(offer(2, 0.95), 0.5, Some(1.0)), 2);
        assert_eq!(DraftCosts::default().wished(offer(16, 0.9), 0.1, None), 0);
    }

    #[test]
    fn a_pass_has_no_more_tokens_than_a_batch() {
        let costs = costs(1.0);
        let few = costs.deal(&[offer(16, 0.99)], DraftPolicy::Auto, (5, Some(1.0)));
        assert_eq!(few, [4]);
        let many = costs.deal(&[offer(16, 0.99)], DraftPolicy::Always(9), (5, Some(1.0)));
        assert_eq!(many, [0]);
    }

    #[test]
    fn a_pass_without_drafts_comes_now_and_then() {
        let mut costs = costs(1.0);
        let offers = [offer(16, 0.98)];
        costs.learn(&[1], 10.0, None);
        let mut drafted = 0;
        while dealt(&costs, &offers) == [16] {
            costs.learn(&[17], 26.0, None);
            drafted += 1;
        }
        assert_eq!(drafted, PLAIN_EVERY);
        costs.learn(&[1], 10.0, None);
        assert_eq!(dealt(&costs, &offers), [16]);
    }

    #[test]
    fn a_disturbed_pass_without_drafts_does_not_make_drafts_pay() {
        let mut costs = DraftCosts::default();
        for _ in 0..40 {
            costs.learn(&[1], 7.0, Some(1.0));
            costs.learn(&[4], 28.0, Some(1.0));
        }
        costs.learn(&[1], 300.0, Some(1.0));
        assert_eq!(dealt(&costs, &[offer(16, 0.7)]), [0]);
    }

    #[test]
    fn one_disturbed_pass_does_not_end_drafting_for_ever() {
        let mut costs = costs(1.0);
        costs.learn(&[9], 4_000.0, Some(1.0));
        for _ in 0..1_000 {
            costs.learn(&[1], 10.0, Some(1.0));
        }
        assert!(dealt(&costs, &[offer(9, 0.95)])[0] > 0);
    }
}
