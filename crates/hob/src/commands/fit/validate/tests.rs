//! Upper bounds for the prediction error on published runs.

use hob_core::fit::{FitOptions, assess};
use hob_models::QuantMix;
use hob_models::known;

use super::*;

fn summary<'r>(report: &'r Report, machine: &str, part: &str) -> &'r Summary {
    let is_this = |one: &&Summary| one.machine.contains(machine) && one.part == part;
    report.summaries.iter().find(is_this).expect("rows of that machine")
}

#[test]
fn published_speeds_are_predicted_from_each_other() {
    let report = report().expect("it is part of the program");
    for (machine, rows_min) in [("5800U", 8), ("4070", 6)] {
        let found = summary(&report, machine, "decode");
        assert!(found.rows >= rows_min, "{found:?}");
    }
    let decode: Vec<&Prediction> =
        report.lines.iter().filter(|line| line.part == "decode").collect();
    let errors = decode.iter().filter_map(|line| line.error_pct.map(f64::abs));
    let mean_pct = Sample::new(errors).mean().expect("rows");
    assert!(mean_pct <= 7.0, "each from the others: {mean_pct}");
    let one: Vec<f64> = report.summaries.iter().filter_map(|summary| summary.one_row_pct).collect();
    let one = Sample::new(one).mean().expect("two machines");
    assert!(one <= 10.0, "from one row: {one}");
    for machine in ["5800U", "4070"] {
        let left_out = summary(&report, machine, "decode").left_out_pct;
        assert!(left_out.is_some_and(|pct| pct <= 7.0), "{machine}: {left_out:?}");
    }
}

#[test]
fn decode_slows_with_context_as_published() {
    let report = report().expect("it is part of the program");
    let curve: Vec<&Prediction> =
        report.lines.iter().filter(|line| line.part == "as the context grows").collect();
    assert!(curve.len() >= 5, "{curve:?}");
    for line in curve {
        assert!(line.error_pct.is_some_and(|pct| pct.abs() <= 5.0), "{line:?}");
    }
}

#[test]
fn split_models_and_longest_contexts_are_predicted() {
    let report = report().expect("it is part of the program");
    let divided: Vec<&Prediction> = report
        .lines
        .iter()
        .filter(|line| line.part == "split over several devices, or in RAM")
        .collect();
    assert!(divided.len() >= 2, "{divided:?}");
    for line in divided {
        assert!(line.error_pct.is_some_and(|pct| pct.abs() <= 20.0), "{line:?}");
    }
    assert!(
        report
            .ceilings
            .iter()
            .any(|ceiling| ceiling.pages_off.is_some_and(|pages| pages.abs() <= 1)),
        "{:?}",
        report.ceilings
    );
}

/// No prior was fitted to these devices.
#[test]
fn held_back_devices_are_predicted_by_the_priors_of_their_class() {
    let classes = classes::classes().expect("they are part of the program");
    let held = classes.iter().find(|class| class.name.contains("held back")).expect("some");
    assert!(held.devices >= 14 && held.rows >= 75, "{held:?}");
    assert!(held.median_pct <= 10.0, "{held:?}");
    assert!(held.within_pct >= 95.0, "{held:?}");
}

/// Prompts of 512 tokens, from the sources of the priors.
#[test]
fn published_prefill_speeds_are_in_the_predicted_range() {
    let rows = [
        ("ryzen-ai-max-395", "llama2:7b", "Q4_0", 1_338.0),
        ("rtx-4090", "llama3.1:8b", "Q4_K_M", 7_139.0),
        ("rtx-3090", "llama3.1:8b", "Q4_K_M", 4_030.0),
    ];
    for (machine, name, quant, published) in rows {
        let machine = hob_machine::profile::builtin(machine).expect("it is part of hob").machine;
        let (known, context_tokens) = known::find(name).expect("known");
        let mix = QuantMix::named(quant).expect("a quant");
        let model = known.model(mix, context_tokens).expect("a model");
        let options = FitOptions { context_tokens: Some(512), ..FitOptions::default() };
        let assessed = assess(&machine, &model, &options).expect("an answer");
        let read = assessed.best().and_then(|plan| plan.prefill.as_ref()).expect("a speed");
        assert!((read.low..=read.high).contains(&published), "{name}: {published} and {read:?}");
    }
}
