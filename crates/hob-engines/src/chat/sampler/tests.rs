//! Compares the sampled probabilities with probabilities computed by hand.

use hob_core::chat::Sampling;
use proptest::prelude::*;

use super::select::{Candidate, largest};
use super::{
    Chosen, History, Logprobs, Mask, Sampler, SamplerDefaults, SamplerError, probability_of,
};

const DRAWS: u64 = 20_000;

/// Nothing is cut and nothing is scaled.
fn plain() -> Sampling {
    Sampling {
        temperature: Some(1.0),
        top_p: Some(1.0),
        top_k: Some(0),
        min_p: Some(0.0),
        ..Sampling::default()
    }
}

fn sampler(sampling: &Sampling) -> Sampler {
    Sampler::new(sampling, &SamplerDefaults::default(), 1)
}

fn logits(probabilities: &[f32]) -> Vec<f32> {
    probabilities.iter().map(|probability| probability.ln()).collect()
}

/// Allows exactly `tokens` of a vocabulary of `size`.
fn allowing(size: usize, tokens: &[u32]) -> Mask {
    let mut mask = Mask::alloc(size);
    for &token in tokens.iter().filter(|&&token| (token as usize) < size) {
        mask.allow_token(token);
    }
    mask
}

/// The shares of tokens over many seeds are those expected, within five standard deviations.
fn check(sampling: &Sampling, given: &[f32], said: &History, expected: &[f64]) {
    let mut counts = vec![0u32; given.len()];
    for seed in 0..DRAWS {
        let sampling = Sampling { seed: Some(seed), ..sampling.clone() };
        let chosen = sampler(&sampling).choose(&logits(given), None, said).unwrap();
        counts[chosen.token as usize] += 1;
    }
    for (count, expected) in counts.iter().zip(expected) {
        let share = f64::from(*count) / DRAWS as f64;
        let deviation = (expected * (1.0 - expected) / DRAWS as f64).sqrt();
        assert!((share - expected).abs() <= 5.0 * deviation, "{counts:?}, expected {expected}");
    }
}

#[test]
fn the_probability_of_several_tokens_is_their_share_of_all() {
    // Some engines give no token a logit near zero.
    for distance in [0.0, 900.0, -900.0] {
        let given = logits(&[0.5, 0.3, 0.0, 0.2]).into_iter().map(|logit| logit + distance);
        let given: Vec<f32> = given.collect();
        let probability = probability_of(&[1, 2, 3, 9], &given).unwrap();
        assert!((probability - 0.5).abs() < 1e-3, "{probability} at {distance}");
    }
    let unknown = probability_of(&[0], &[0.0, f32::NAN]);
    assert_eq!(unknown, Err(SamplerError::NotANumber { token: 1 }));
}

#[test]
fn tokens_come_as_often_as_they_are_likely() {
    let given = [0.5, 0.3, 0.15, 0.05];
    let nothing = History::default();
    check(&plain(), &given, &nothing, &[0.5, 0.3, 0.15, 0.05]);
    let top_k = Sampling { top_k: Some(2), ..plain() };
    check(&top_k, &given, &nothing, &[0.625, 0.375, 0.0, 0.0]);
    let top_p = Sampling { top_p: Some(0.6), ..plain() };
    check(&top_p, &given, &nothing, &[0.625, 0.375, 0.0, 0.0]);
    let min_p = Sampling { min_p: Some(0.2), ..plain() };
    check(&min_p, &given, &nothing, &[10.0 / 19.0, 6.0 / 19.0, 3.0 / 19.0, 0.0]);
    let sharp = Sampling { temperature: Some(0.5), ..plain() };
    let squares = [0.25, 0.09, 0.0225, 0.0025].map(|square| square / 0.365);
    check(&sharp, &given, &nothing, &squares);
}

#[test]
fn the_cuts_follow_each_other_as_in_llama_cpp() {
    // Top-p counts among what top-k has left: two thirds are enough for 0.6.
    let both = Sampling { top_k: Some(2), top_p: Some(0.6), ..plain() };
    check(&both, &[0.4, 0.2, 0.2, 0.2], &History::default(), &[1.0, 0.0, 0.0, 0.0]);
    // Temperature comes after top-p, so that heat alone lets no new token in.
    let hot = Sampling { temperature: Some(2.0), top_p: Some(0.5), ..plain() };
    check(&hot, &[0.6, 0.2, 0.1, 0.1], &History::default(), &[1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn the_defaults_are_those_of_llama_cpp() {
    // At 0.8 the three likeliest of [0.6, 0.25, 0.12, 0.03] pass top-p 0.95; all pass min-p.
    let weights = [0.6f64, 0.25, 0.12].map(|probability| probability.powf(1.25));
    let sum: f64 = weights.iter().sum();
    let expected = [weights[0] / sum, weights[1] / sum, weights[2] / sum, 0.0];
    check(&Sampling::default(), &[0.6, 0.25, 0.12, 0.03], &History::default(), &expected);
}

#[test]
fn top_p_keeps_the_likeliest_whatever_it_is() {
    for top_p in [0.0, 1e-6, 0.5] {
        let sampling = Sampling { top_p: Some(top_p), ..plain() };
        check(&sampling, &[0.2, 0.7, 0.1], &History::default(), &[0.0, 1.0, 0.0]);
    }
    let all = Sampling { top_p: Some(1.0), ..plain() };
    check(&all, &[0.2, 0.7, 0.1], &History::default(), &[0.2, 0.7, 0.1]);
}

#[test]
fn top_p_looks_as_far_as_it_must() {
    // 3,000 tokens, each a little less likely than the one before: nine tenths of 3,000 are kept.
    let given: Vec<f32> = (0..3_000).rev().map(|at| at as f32 * 1e-6).collect();
    let mut sampler = sampler(&Sampling { top_p: Some(0.9), ..plain() });
    largest(&given, None, usize::MAX, &mut sampler.candidates).unwrap();
    sampler.cut_top_p(given[0]);
    let weights: Vec<f64> = given.iter().map(|&g| f64::from((g - given[0]).exp())).collect();
    let wanted = weights.iter().sum::<f64>() * f64::from(0.9f32);
    let mut sum = 0.0;
    let expected = weights.iter().take_while(|&&weight| {
        let short = sum < wanted;
        sum += weight;
        short
    });
    let kept: Vec<u32> = sampler.candidates.iter().map(|candidate| candidate.token).collect();
    assert_eq!(kept, (0..expected.count() as u32).collect::<Vec<_>>());
}

#[test]
fn penalties_count_what_was_said() {
    let mut said = History::after_prompt(&[0]);
    said.push(1);
    said.push(1);
    // In the prompt or the answer, once: logits are below zero, so a penalty of 2 squares.
    let repeat = Sampling { repeat_penalty: Some(2.0), ..plain() };
    let squared = [0.25, 0.09, 0.2].map(|weight| weight / 0.54);
    check(&repeat, &[0.5, 0.3, 0.2], &said, &squared);
    // In the answer only, once for being there and once for each time.
    let presence = Sampling { presence_penalty: Some(2f32.ln()), ..plain() };
    check(&presence, &[0.5, 0.3, 0.2], &said, &[0.5 / 0.85, 0.15 / 0.85, 0.2 / 0.85]);
    let frequency = Sampling { frequency_penalty: Some(2f32.ln()), ..plain() };
    check(&frequency, &[0.5, 0.3, 0.2], &said, &[0.5 / 0.775, 0.075 / 0.775, 0.2 / 0.775]);
}

#[test]
fn a_repeat_penalty_forgets() {
    let mut said = History::after_prompt(&[0; 100]);
    for _ in 0..64 {
        said.push(1);
    }
    let greedy = Sampling { temperature: Some(0.0), repeat_penalty: Some(2.0), ..plain() };
    let chosen = sampler(&greedy).choose(&[3.0, 4.0, 2.5], None, &said).unwrap();
    assert_eq!(chosen, Chosen { token: 0, logprobs: None });
}

#[test]
fn biases_add_to_logits() {
    let doubled = Sampling { logit_bias: vec![(2, 2f32.ln()), (99, 5.0)], ..plain() };
    check(&doubled, &[0.5, 0.3, 0.2], &History::default(), &[0.5 / 1.2, 0.3 / 1.2, 0.4 / 1.2]);
    let banned = Sampling { logit_bias: vec![(0, -100.0)], ..plain() };
    check(&banned, &[0.5, 0.3, 0.2], &History::default(), &[0.0, 0.6, 0.4]);
}

#[test]
fn an_avoided_token_is_chosen_only_where_nothing_else_is_allowed() {
    let mut avoiding = sampler(&Sampling { temperature: Some(0.0), ..plain() });
    avoiding.avoid([0, 1].into_iter());
    let mut choose = |mask: Option<&Mask>| {
        avoiding.choose(&[9.0, 8.0, -30.0], mask, &History::default()).unwrap().token
    };
    assert_eq!(choose(None), 2);
    assert_eq!(choose(Some(&allowing(3, &[0]))), 0);
}

#[test]
fn without_temperature_the_likeliest_is_taken() {
    let greedy = Sampling { temperature: Some(0.0), ..Sampling::default() };
    let choose = |logits: &[f32], mask: Option<&Mask>| {
        sampler(&greedy).choose(logits, mask, &History::default()).unwrap().token
    };
    assert_eq!(choose(&[1.0, 3.0, 2.0, 3.0], None), 1);
    assert_eq!(choose(&[1.0, 3.0, 2.0], Some(&allowing(3, &[0, 2]))), 2);
}

#[test]
fn broken_logits_are_an_error() {
    for temperature in [0.0, 1.0] {
        let sampling = Sampling { temperature: Some(temperature), ..plain() };
        let choose = |logits: &[f32], mask: Option<&Mask>| {
            sampler(&sampling).choose(logits, mask, &History::default()).map(|chosen| chosen.token)
        };
        let broken = Err(SamplerError::NotANumber { token: 1 });
        assert_eq!(choose(&[0.0, f32::NAN, 9.0], None), broken);
        assert_eq!(choose(&[0.0, f32::INFINITY, 9.0], None), broken);
        assert_eq!(choose(&[f32::NEG_INFINITY, 1.0], None), Ok(1));
        assert_eq!(choose(&[f32::NEG_INFINITY; 3], None), Err(SamplerError::NothingAllowed));
        assert_eq!(choose(&[], None), Err(SamplerError::NothingAllowed));
        assert_eq!(choose(&[1.0; 3], Some(&allowing(3, &[]))), Err(SamplerError::NothingAllowed));
    }
}

#[test]
fn logprobs_are_of_the_distribution_as_it_was() {
    let sampling = Sampling { logit_bias: vec![(2, 50.0)], ..plain() };
    let given = logits(&[0.5, 0.3, 0.2]);
    let mut reporting = sampler(&sampling).with_logprobs(Some(2));
    let chosen = reporting.choose(&given, None, &History::default()).unwrap();
    assert_eq!(chosen.token, 2);
    let Logprobs { logprob, top } = chosen.logprobs.unwrap();
    assert!((logprob.exp() - 0.2).abs() < 1e-5);
    assert_eq!(top.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [0, 1]);
    assert!((top[0].1.exp() - 0.5).abs() < 1e-5);
    let mut asked_for_none = sampler(&sampling).with_logprobs(Some(0));
    let chosen = asked_for_none.choose(&given, None, &History::default()).unwrap();
    assert_eq!(chosen.logprobs.map(|logprobs| logprobs.top), Some(Vec::new()));
}

#[test]
fn the_same_seed_gives_the_same_tokens() {
    let said = |seed: Option<u64>, fallback: u64| -> Vec<u32> {
        let sampling = Sampling { seed, ..plain() };
        let mut sampler = Sampler::new(&sampling, &SamplerDefaults::default(), fallback);
        let uniform = [0.0; 1_000];
        (0..20)
            .map(|_| sampler.choose(&uniform, None, &History::default()).unwrap().token)
            .collect()
    };
    assert_eq!(said(Some(7), 1), said(Some(7), 2));
    assert_eq!(said(None, 7), said(Some(7), 0));
    assert_ne!(said(Some(7), 0), said(Some(8), 0));
    // In every version of hob, and on every machine.
    let mut sampler = sampler(&Sampling { seed: Some(7), ..plain() });
    let drawn = [(); 3].map(|()| sampler.fraction());
    assert_eq!(drawn, [0.05536043647833311, 0.17211585444811772, 0.7175761283586594]);
}

proptest! {
    #[test]
    fn the_largest_are_those_that_sorting_finds(
        logits in prop::collection::vec((-4i8..4).prop_map(f32::from), 0..700),
        allowed in prop::collection::vec(any::<bool>(), 700),
        count in 1usize..90,
    ) {
        let tokens: Vec<u32> = (0..700).filter(|&token| allowed[token as usize]).collect();
        let mask = allowing(logits.len(), &tokens);
        let mut sorted: Vec<Candidate> = (0u32..)
            .zip(&logits)
            .map(|(token, &logit)| Candidate { token, logit })
            .filter(|candidate| allowed[candidate.token as usize])
            .collect();
        sorted.sort_by(|a, b| b.logit.total_cmp(&a.logit).then(a.token.cmp(&b.token)));
        sorted.truncate(count);
        let mut found = Vec::new();
        largest(&logits, Some(&mask), count, &mut found).unwrap();
        prop_assert_eq!(found, sorted);
    }

    #[test]
    fn nothing_is_chosen_that_the_mask_forbids(
        logits in prop::collection::vec(-9f32..9.0, 40..200),
        allowed in prop::collection::btree_set(0u32..40, 1..40),
        seed: u64,
    ) {
        let allowed: Vec<u32> = allowed.into_iter().collect();
        let mask = allowing(logits.len(), &allowed);
        let sampling = Sampling { seed: Some(seed), ..Sampling::default() };
        let chosen = sampler(&sampling).choose(&logits, Some(&mask), &History::default()).unwrap();
        prop_assert!(allowed.contains(&chosen.token));
    }
}
