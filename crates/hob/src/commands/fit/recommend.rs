//! `hob fit --recommend`: ranks the known models for a purpose. Models that are fast and long enough come first,
//! then capability counts, then speed. The rule is printed above the table.

use hob_core::fit::{
    Assessment, FitOptions, Model, Placement, Plan, Rate, SpeedEstimate, UNMEASURED_PROCESSOR, Use,
    alternatives, assess,
};
use hob_core::machine::{Basis, Machine};
use hob_models::QuantMix;
use hob_models::known::{KNOWN, KnownModel, UseCase};
use hob_models::recipe::GOOD_QUANTS;
use hob_wire::FitAnswer;
use serde::Serialize;

use super::assessment_text;
use crate::capability::capability;
use crate::failure::{CliResult, Failure};
use crate::printer::table;

const SHOWN_MAX: usize = 12;
/// What a purpose needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Need {
    purpose: &'static str,
    tok_s_min: f64,
    context_tokens: u32,
}

impl Need {
    /// People read up to 10 tokens per second, and speech must stay ahead of its listener. The user's own options
    /// win.
    pub(super) fn of(purpose: Option<UseCase>, options: &FitOptions) -> Need {
        let (purpose, tok_s_min, context_tokens) = match purpose {
            None => ("anything", 10.0, 8_192),
            Some(UseCase::Chat) => ("chat", 10.0, 8_192),
            Some(UseCase::Code) => ("code", 10.0, 16_384),
            Some(UseCase::Voice) => ("voice", 25.0, 4_096),
            Some(UseCase::Long) => ("long contexts", 5.0, 65_536),
        };
        Need {
            purpose,
            tok_s_min: options.tok_s_min.unwrap_or(tok_s_min),
            context_tokens: options.context_tokens.unwrap_or(context_tokens),
        }
    }

    /// A context is rarely full, so speeds are given with this many tokens in it.
    fn filled_tokens(self) -> u32 {
        (self.context_tokens / 4).max(1)
    }
}

/// One model in its best quant.
#[derive(Debug)]
pub(super) struct Ranked {
    pub(super) known: &'static KnownModel,
    pub(super) model: Model,
    pub(super) assessed: Assessment,
    /// Speed with a quarter of the context filled; `None` if unknown.
    pub(super) rate: Option<Rate>,
    need: Need,
    capability: f64,
}

impl Ranked {
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.assessed.best()
    }

    /// Whether one device computes the whole model.
    fn is_whole(&self) -> bool {
        let placement = self.plan().map(|plan| plan.placement);
        matches!(placement, Some(Placement::Vram | Placement::Unified | Placement::Ram))
    }

    fn tok_s(&self) -> f64 {
        self.rate.as_ref().map_or(0.0, |rate| rate.tok_s)
    }

    /// An unknown speed counts as fast enough.
    fn is_fast(&self) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.tok_s >= self.need.tok_s_min)
    }

    fn is_long(&self) -> bool {
        self.plan().is_some_and(|plan| plan.context_tokens >= self.need.context_tokens)
    }

    fn suits(&self) -> bool {
        self.is_fast() && self.is_long()
    }
}

/// Models that fit, and that are as fast as requested.
pub(super) fn ranked(
    machine: &Machine,
    options: &FitOptions,
    purpose: Option<UseCase>,
) -> Vec<Ranked> {
    let suits =
        |known: &&KnownModel| purpose.is_none_or(|purpose| known.good_for.contains(&purpose));
    let need = Need::of(purpose, options);
    let best = |known| best_quant(machine, options, known, (need, purpose));
    let mut ranked: Vec<Ranked> = KNOWN.iter().filter(suits).filter_map(best).collect();
    ranked.retain(|ranked| options.tok_s_min.is_none() || ranked.is_fast());
    ranked.sort_by(|one, other| {
        let by_need = other.suits().cmp(&one.suits());
        let by_capability = match one.suits() {
            true => other.capability.total_cmp(&one.capability),
            false => std::cmp::Ordering::Equal,
        };
        by_need.then(by_capability).then(other.tok_s().total_cmp(&one.tok_s()))
    });
    ranked
}

/// The quant with the most bits that meets the need without dividing the model; else with the most bits that meets it;
/// else with the fewest. A model that was trained in a quant is offered in that one.
fn best_quant(
    machine: &Machine,
    options: &FitOptions,
    known: &'static KnownModel,
    (need, purpose): (Need, Option<UseCase>),
) -> Option<Ranked> {
    let options = FitOptions { context_tokens: Some(need.context_tokens), ..options.clone() };
    let in_quant = |quant: &str| {
        let model = known.model(QuantMix::named(quant).ok()?, known.tags.first()?.1).ok()?;
        let assessed = assess(machine, &model, &options).ok()?;
        let rate = with_a_quarter(machine, &model, assessed.best()?, need);
        let capability = capability(known, &model, purpose);
        Some(Ranked { known, model, assessed, rate, need, capability })
    };
    let native = known.native_quant.as_deref();
    let quants = native.map_or(GOOD_QUANTS.to_vec(), |native| vec![native]);
    let mut all: Vec<Ranked> = quants.into_iter().filter_map(in_quant).collect();
    let whole = all.iter().position(|ranked| ranked.suits() && ranked.is_whole());
    let suits = all.iter().position(Ranked::suits);
    let chosen = whole.or(suits).or(all.len().checked_sub(1))?;
    Some(all.swap_remove(chosen))
}

fn with_a_quarter(machine: &Machine, model: &Model, plan: &Plan, need: Need) -> Option<Rate> {
    let profile = plan.engine.profile();
    let estimate =
        SpeedEstimate { model, machine, layout: &plan.layout, kv: plan.kv, profile: &profile };
    estimate.decode(need.filled_tokens().min(plan.context_tokens))
}

/// The rule behind the table.
pub(super) fn rule(need: Need) -> String {
    let Need { purpose, tok_s_min, context_tokens } = need;
    format!(
        "For {purpose}: first what has room for {context_tokens} tokens and makes at least {tok_s_min} tokens a second \
         with a quarter of them in the cache; of these the most capable, which is √(all × active parameters), doubled for \
         each year of release since 2023. The others follow by speed."
    )
}

pub(super) fn recommendation_table(ranked: &[Ranked], need: Need) -> String {
    if ranked.is_empty() {
        return "no known model fits and is fast enough".to_owned();
    }
    let speed = format!("tok/s at {}", need.filled_tokens());
    let mut rows =
        table(["model", "quant", "cache", "where", "GB", &speed, "rests on", "longest", "why"]);
    for ranked in ranked.iter().take(SHOWN_MAX) {
        let Some(plan) = ranked.plan() else { continue };
        let needed = plan.uses.iter().map(Use::kept_bytes).sum();
        rows.add_row([
            ranked.known.tags.first().map_or("", |(tag, _)| tag.as_str()).to_owned(),
            ranked.model.quant.clone(),
            assessment_text::pair(plan.kv),
            plan.place.clone(),
            assessment_text::gigabytes(needed),
            ranked.rate.as_ref().map_or("?".to_owned(), assessment_text::rate),
            ranked.rate.as_ref().map_or("?", |rate| rate.basis.name()).to_owned(),
            assessment_text::longest(plan.longest),
            why(ranked),
        ]);
    }
    format!("{}\n\n{}", rule(need), rows.trim_fmt())
}

/// The ranking as JSON: the answer of `hob fit --json` for each model, with its name and rank.
pub(super) fn json(
    ranked: &[Ranked],
    machine: &Machine,
    options: &FitOptions,
    sourced: impl Fn(FitAnswer) -> FitAnswer,
) -> CliResult<String> {
    #[derive(Serialize)]
    struct Recommended {
        name: &'static str,
        why: String,
        need: Need,
        suits: bool,
        capability: f64,
        /// With a quarter of the context filled.
        tok_s: Option<f64>,
        answer: FitAnswer,
    }
    let recommended = ranked.iter().filter_map(|ranked| {
        let Ranked { known, model, assessed, need, capability, .. } = ranked;
        let (name, context_tokens) = known.tags.first()?;
        let options = FitOptions { context_tokens: Some(need.context_tokens), ..options.clone() };
        let variants = known.variants(QuantMix::named(&model.quant).ok()?, *context_tokens);
        let alternatives = alternatives(machine, model, &variants, &options, assessed);
        let assessed = Assessment { alternatives, ..assessed.clone() };
        let answer = sourced(FitAnswer::of(machine, model, &assessed, &options));
        let (need, capability) = (*need, *capability);
        let (suits, tok_s) = (ranked.suits(), ranked.rate.as_ref().map(|rate| rate.tok_s));
        Some(Recommended { name, why: why(ranked), need, suits, capability, tok_s, answer })
    });
    serde_json::to_string(&recommended.collect::<Vec<_>>()).map_err(Failure::internal)
}

fn why(ranked: &Ranked) -> String {
    let Ranked { need, capability, rate, assessed, .. } = ranked;
    let mut lacks = Vec::new();
    if !ranked.is_fast() {
        lacks.push(format!("slower than {}", need.tok_s_min));
    }
    if !ranked.is_long() {
        lacks.push(format!("less than {} tokens", need.context_tokens));
    }
    if rate.is_none() {
        lacks.push("speed not known".to_owned());
    }
    if rate.as_ref().is_some_and(|rate| rate.basis == Basis::Assumed) {
        lacks.push("speed is a guess".to_owned());
    }
    if assessed.warnings.iter().any(|warning| warning.code == UNMEASURED_PROCESSOR) {
        lacks.push("speed is a guess from other CPUs".to_owned());
    }
    let said = if lacks.is_empty() { "suits".to_owned() } else { lacks.join(", ") };
    format!("{said}; capability {capability:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(machine: &str, purpose: Option<UseCase>) -> Vec<Ranked> {
        let known = hob_machine::profile::builtin(machine).expect("it is part of hob");
        let mut machine = known.machine;
        crate::published::apply(&mut machine);
        ranked(&machine, &FitOptions::default(), purpose)
    }

    fn place(ranked: &[Ranked], tag: &str) -> usize {
        let is_it = |one: &Ranked| one.known.tags[0].0 == tag;
        ranked.iter().position(is_it).unwrap_or_else(|| panic!("{tag} is not there"))
    }

    #[test]
    fn suitable_models_come_first_ordered_by_capability() {
        for machine in ["rtx-4070-laptop", "ryzen-5800u", "n100"] {
            let found = on(machine, Some(UseCase::Chat));
            let suits: Vec<bool> = found.iter().map(Ranked::suits).collect();
            assert!(suits.iter().rev().is_sorted(), "{machine}: {suits:?}");
            let count = suits.iter().filter(|suits| **suits).count();
            assert!(count > 0, "{machine}");
            let (good, others) = found.split_at(count);
            assert!(good.iter().rev().map(|one| one.capability).is_sorted(), "{machine}");
            assert!(others.iter().rev().map(Ranked::tok_s).is_sorted(), "{machine}");
        }
    }

    #[test]
    fn a_model_measured_as_fast_on_a_machine_is_recommended_there() {
        let chat = on("ryzen-5800u", Some(UseCase::Chat));
        let moe = &chat[place(&chat, "qwen3:30b-a3b")];
        assert!(moe.suits(), "{}", why(moe));
        let code = on("ryzen-5800u", Some(UseCase::Code));
        let coder = place(&code, "qwen3-coder:30b-a3b");
        assert!(
            coder < place(&code, "qwen2.5-coder:1.5b"),
            "{}",
            recommendation_table(&code, code[0].need)
        );
        assert!(code[0].capability > 10.0 && code[0].suits(), "{}", why(&code[0]));
    }

    #[test]
    fn a_speed_by_other_processors_is_doubted() {
        let code = on("ryzen-5800u", Some(UseCase::Code));
        let doubted = why(&code[place(&code, "qwen3.5:35b-a3b")]);
        assert!(doubted.contains("a guess from other CPUs"), "{doubted}");
        assert!(!why(&code[0]).contains("guess"), "{}", why(&code[0]));
    }

    #[test]
    fn a_long_context_is_had_with_a_quantized_cache_before_it_is_not_had() {
        let long = on("rtx-4070-laptop", Some(UseCase::Long));
        let first = long[0].plan().expect("a plan");
        assert!(long[0].suits() && first.context_tokens >= 65_536, "{first:?}");
        let is_quantized = |one: &Ranked| {
            one.suits() && one.plan().is_some_and(|plan| plan.kv != hob_core::KvTypes::default())
        };
        assert!(long.iter().any(is_quantized), "{}", recommendation_table(&long, long[0].need));
    }

    #[test]
    fn a_model_is_offered_in_the_quant_that_it_was_trained_in() {
        let found = on("m4-pro-48gb", Some(UseCase::Chat));
        assert_eq!(found[place(&found, "gpt-oss:20b")].model.quant, "MXFP4");
        assert_ne!(found[0].known.tags[0].0, "mixtral:8x7b");
        assert!(place(&found, "qwen3.6:35b-a3b") < place(&found, "mixtral:8x7b"));
        let text = recommendation_table(&found, found[0].need);
        assert!(text.contains("8192 tokens") && text.contains("each year"), "{text}");
    }
}
