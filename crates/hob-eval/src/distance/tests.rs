//! Tests of the distances: small vocabularies by hand, extremes and properties.
//! Expected values come from the definitions, computed on paper.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn report(tokens: &[(&[f32], &[f32], u32)]) -> DistanceReport {
    let mut distances = Distances::default();
    for (reference, quant, token) in tokens {
        distances.push(reference, quant, *token);
    }
    distances.finish().expect("tokens were scored")
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found}, expected {expected}");
}

#[test]
fn two_tokens_by_hand() {
    let ln = |p: f32| p.ln();
    // Reference 3/4 and 1/4, quant 1/2 and 1/2.
    let found = report(&[(&[ln(0.75), ln(0.25)], &[0.0, 0.0], 0)]);
    close(found.reference_ln_ppl.value, (4.0_f64 / 3.0).ln());
    close(found.reference_ppl.value, 4.0 / 3.0);
    close(found.quant_ppl.value, 2.0);
    close(found.ln_ppl_ratio.value, 1.5_f64.ln());
    close(found.divergence.value, 0.75 * 1.5_f64.ln() + 0.25 * 0.5_f64.ln());
    close(found.probability_difference.value, -0.25);
    close(found.probability_difference_rms.value, 0.25);
    assert_eq!((found.same_top.value, found.same_top.error), (1.0, None));
}

#[test]
fn errors_follow_from_the_variance_over_n_less_one() {
    // Twelve tokens: the quant's probability is 1/4 six times and 3/4 six times; the reference has 1/2.
    let (low, high) = ([0.0, 3.0_f32.ln()], [3.0_f32.ln(), 0.0]);
    let half = [0.0, 0.0];
    let tokens: Vec<(&[f32], &[f32], u32)> =
        (0..12).map(|at| (&half[..], if at % 2 == 0 { &low[..] } else { &high[..] }, 0)).collect();
    let found = report(&tokens);
    let spread = 3.0_f64.ln() / 2.0;
    close(found.quant_ln_ppl.error.expect("enough"), spread / 11.0_f64.sqrt());
    close(found.reference_ln_ppl.error.expect("enough"), 0.0);
    close(found.ln_ppl_ratio.error.expect("enough"), spread / 11.0_f64.sqrt());
    close(found.probability_difference.value, 0.0);
    close(found.probability_difference.error.expect("enough"), 0.25 / 11.0_f64.sqrt());
    close(found.probability_difference_rms.value, 0.25);
    // With equal logits the first token counts as the top.
    close(found.same_top.value, 0.5);
    close(found.same_top.error.expect("enough"), 0.5 / 11.0_f64.sqrt());
}

#[test]
fn errors_of_two_models_that_move_together_cancel() {
    let rows: Vec<[f32; 2]> = (0..40).map(|at| [at as f32 / 10.0, 0.0]).collect();
    let moved: Vec<[f32; 2]> = rows.iter().map(|row| [row[0] + 0.01, 0.0]).collect();
    let tokens: Vec<(&[f32], &[f32], u32)> =
        rows.iter().zip(&moved).map(|(a, b)| (&a[..], &b[..], 0)).collect();
    let found = report(&tokens);
    let (ratio, alone) = (found.ln_ppl_ratio.error, found.quant_ln_ppl.error);
    assert!(ratio.expect("enough") < alone.expect("enough") / 20.0, "{ratio:?} and {alone:?}");
}

#[test]
fn extreme_logits_stay_numbers() {
    let found = report(&[(&[1e4, -1e4, 0.0], &[-1e4, 1e4, 0.0], 0)]);
    close(found.reference_ln_ppl.value, 0.0);
    close(found.quant_ln_ppl.value, 2e4);
    close(found.divergence.value, 2e4);
    assert_eq!(found.same_top.value, 0.0);
    let masked = report(&[(&[0.0, f32::NEG_INFINITY], &[0.0, f32::NEG_INFINITY], 0)]);
    close(masked.divergence.value, 0.0);
}

#[test]
fn peaked_against_uniform_is_the_logarithm_of_the_vocabulary() {
    let mut peaked = [0.0; 1000];
    peaked[3] = 1e4;
    let found = report(&[(&peaked, &[0.0; 1000], 3)]);
    close(found.divergence.value, 1000.0_f64.ln());
}

#[test]
fn percentiles_lie_between_ranks() {
    let sorted: Vec<f32> = (0..=100).map(|at| at as f32).collect();
    for (part, expected) in [(0.0, 0.0), (0.5, 50.0), (0.9, 90.0), (0.999, 99.9), (1.0, 100.0)] {
        close(percentile(&sorted, part), expected);
    }
    assert_eq!(percentile(&[1.0, 2.0], 0.5), 1.5);
}

#[test]
fn what_cannot_be_scored_is_counted() {
    let mut distances = Distances::default();
    let bad: [(&[f32], &[f32], u32); 6] = [
        (&[], &[], 0),
        (&[0.0, 1.0], &[0.0], 0),
        (&[0.0, 1.0], &[0.0, 1.0], 2),
        (&[0.0, f32::NAN], &[0.0, 1.0], 0),
        (&[0.0, f32::INFINITY], &[0.0, 1.0], 0),
        (&[f32::NEG_INFINITY; 2], &[0.0, 1.0], 0),
    ];
    for (reference, quant, token) in bad {
        distances.push(reference, quant, token);
    }
    assert_eq!(distances.clone().finish(), None);
    distances.push(&[0.0, 1.0], &[0.0, 1.0], 1);
    let report = distances.finish().expect("one token");
    assert_eq!((report.tokens, report.skipped), (1, 6));
}

proptest! {
    #[test]
    fn divergence_is_not_negative(rows in vec((-30.0_f32..30.0, -30.0_f32..30.0), 1..50)) {
        let (reference, quant): (Vec<f32>, Vec<f32>) = rows.into_iter().unzip();
        prop_assert!(report(&[(&reference, &quant, 0)]).divergence.value >= -1e-6);
        let same = report(&[(&reference, &reference, 0)]);
        prop_assert_eq!(same.divergence.value, 0.0);
        prop_assert_eq!(same.ln_ppl_ratio.value, 0.0);
        prop_assert_eq!((same.same_top.value, same.probability_difference_rms.value), (1.0, 0.0));
    }

    #[test]
    fn a_constant_on_all_logits_changes_nothing(rows in vec((-9.0_f32..9.0, -9.0_f32..9.0), 1..50)) {
        let (reference, quant): (Vec<f32>, Vec<f32>) = rows.into_iter().unzip();
        let moved: Vec<f32> = quant.iter().map(|logit| logit + 64.0).collect();
        let (a, b) = (report(&[(&reference, &quant, 0)]), report(&[(&reference, &moved, 0)]));
        prop_assert!((a.divergence.value - b.divergence.value).abs() < 1e-3);
    }
}
