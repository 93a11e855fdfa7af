//! Estimates how capable a known model is, from its size and age, and suggests one that fits a card.
//! Both `hob fit` and the page of a running hob use it.

use hob_core::fit::{Assessment, FitOptions, Model, Placement, Plan, Warning, assess, few_bits};
use hob_core::machine::Machine;
use hob_models::QuantMix;
use hob_models::known::{KNOWN, KnownModel, UseCase};

/// From this year on, a model is as good as one of twice its size that is a year older (a rough rule).
const FIRST_YEAR: f64 = 2023.0;
/// Factor for models that are tuned for code, when code is the purpose.
const TUNED_FOR_CODE: f64 = 1.5;

/// Names, in the warning about a divided model, the most capable one that fits the card whole. For a model that does not
/// fit at all, names the quant of its `variants` that fits, and the most capable model that fits.
pub(crate) fn suggest_smaller_model(
    machine: &Machine,
    variants: &[Model],
    options: &FitOptions,
    assessed: &mut Assessment,
) {
    if assessed.best().is_none() {
        let next = next_step(machine, options, assessed);
        let used = assessed.alternatives.first().map(|one| one.quant.as_str());
        let used = variants.iter().find(|other| Some(other.quant.as_str()) == used);
        let poor = used.and_then(few_bits);
        assessed.warnings.extend([Some(next), poor].into_iter().flatten());
        return;
    }
    let is_split = |warning: &&mut Warning| warning.code == "split";
    let Some(split) = assessed.warnings.iter_mut().find(is_split) else { return };
    if let Some(name) = whole_on_a_card(machine, options) {
        split.action = format!("{name} lies on the card alone, and is faster");
    }
}

/// Estimates how good the answers of a model are, in billions of dense parameters of 2023: a mixture of experts counts as the
/// geometric mean of all its parameters and of those that a token passes through.
pub(crate) fn capability(known: &KnownModel, model: &Model, purpose: Option<UseCase>) -> f64 {
    let groups = || model.shape.weights.0.iter();
    let all: f64 = groups().map(|group| group.elements as f64).sum();
    let share = model.shape.experts_share();
    let read = |group| model.shape.weights.read_share(group, share);
    let active: f64 = groups().map(|group| group.elements as f64 * read(group)).sum();
    let year = f64::from(known.released / 100) + f64::from(known.released % 100) / 12.0;
    let is_tuned = purpose == Some(UseCase::Code) && known.name.contains("Coder");
    let tuned = if is_tuned { TUNED_FOR_CODE } else { 1.0 };
    (all * active).sqrt() / 1e9 * 2_f64.powf(year - FIRST_YEAR) * tuned
}

fn next_step(machine: &Machine, options: &FitOptions, assessed: &Assessment) -> Warning {
    let quant = assessed.alternatives.first().map(|one| format!("use {}, which fits", one.quant));
    let known = most_capable(machine, options, Plan::fits)
        .map(|name| format!("use {name}, the most capable known model that fits"));
    let steps: Vec<String> = quant.into_iter().chain(known).collect();
    let action = match steps.is_empty() {
        true => "use a machine with more memory: no known model fits here".to_owned(),
        false => steps.join("; or "),
    };
    Warning { code: "does_not_fit", text: "the model does not fit as requested".to_owned(), action }
}

/// Finds the most capable model that fits on a card as a whole.
fn whole_on_a_card(machine: &Machine, options: &FitOptions) -> Option<&'static str> {
    most_capable(machine, options, |plan| plan.fits() && plan.placement == Placement::Vram)
}

/// Finds the most capable known model that has such a plan.
fn most_capable(
    machine: &Machine,
    options: &FitOptions,
    suits: impl Fn(&Plan) -> bool,
) -> Option<&'static str> {
    let fits = |known: &KnownModel| {
        let mix = QuantMix::named(known.default_quant()).ok()?;
        let model = known.model(mix, known.tags.first()?.1).ok()?;
        // An engine for another format says nothing about the size of this model.
        let engine = options.engine.filter(|engine| model.format.engines().contains(engine));
        let options = FitOptions { engine, ..options.clone() };
        let assessed = assess(machine, &model, &options).ok()?;
        assessed.plans.iter().any(&suits).then(|| capability(known, &model, None))
    };
    let fitting =
        KNOWN.iter().filter_map(|known| Some((known.tags.first()?.0.as_str(), fits(known)?)));
    fitting.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(tag, _)| tag)
}

#[cfg(test)]
mod tests {
    use hob_core::fit::Engine;

    use super::*;

    #[test]
    fn an_engine_that_reads_no_gguf_does_not_make_all_known_models_too_large() {
        let known = hob_machine::profile::builtin("rtx-4070-laptop").expect("it is part of hob");
        let options = FitOptions { engine: Some(Engine::Vllm), ..FitOptions::default() };
        let usual = most_capable(&known.machine, &FitOptions::default(), Plan::fits);
        assert!(usual.is_some());
        assert_eq!(most_capable(&known.machine, &options, Plan::fits), usual);
    }

    #[test]
    fn a_model_that_fits_the_card_is_named() {
        let known = hob_machine::profile::builtin("rtx-4070-laptop").expect("it is part of hob");
        let named = whole_on_a_card(&known.machine, &FitOptions::default()).expect("a model");
        assert!(["qwen3.5:9b", "qwen3:8b", "gemma4:e4b"].contains(&named), "{named}");
    }
}
