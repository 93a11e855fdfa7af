//! `hob fit --recommend`: every model that hob knows, in every quant that this machine holds, ranked by what somebody
//! would feel: fast enough first, then how good its answers are, then how fast.

use hob_core::fit::{Assessment, Model, Placement, Plan, Use, Wish, alternatives, assess};
use hob_core::machine::{Basis, Machine};
use hob_models::Mixture;
use hob_models::known::{KNOWN, Known, Purpose};
use hob_models::recipe::GOOD_QUANTS;
use hob_wire::FitAnswer;
use serde::Serialize;

use super::shown;
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::table;

/// Nobody reads faster than that, and speech has to keep ahead of its listener.
const READING_TOK_S: f64 = 10.0;
const VOICE_TOK_S: f64 = 25.0;
const SHOWN_MAX: usize = 12;

/// One model in the quant that suits best.
#[derive(Debug)]
pub(super) struct Ranked {
    pub(super) known: Known,
    pub(super) model: Model,
    pub(super) assessed: Assessment,
    /// Fast enough for what it is wanted for; none where nobody knows how fast it is.
    pub(super) is_fast: Option<bool>,
}

impl Ranked {
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.assessed.best()
    }

    /// In one memory, beside whoever computes.
    fn is_whole(&self) -> bool {
        let placement = self.plan().map(|plan| plan.placement);
        matches!(placement, Some(Placement::Vram | Placement::Unified | Placement::Ram))
    }

    fn tok_s(&self) -> f64 {
        let rate = self.plan().and_then(|plan| plan.decode_wished.as_ref());
        rate.map_or(0.0, |rate| rate.tok_s)
    }

    /// Numbers that took part in training: the best guess at how good answers are.
    fn elements(&self) -> u64 {
        self.model.shape.weights.0.iter().map(|group| group.elements).sum()
    }
}

/// Only what fits, and is as fast as somebody wished.
pub(super) fn ranked(machine: &Machine, wish: &Wish, purpose: Option<Purpose>) -> Vec<Ranked> {
    let suits = |known: &Known| purpose.is_none_or(|purpose| known.good_for.contains(&purpose));
    let floor = wish.tok_s_min.unwrap_or(match purpose {
        Some(Purpose::Voice) => VOICE_TOK_S,
        _ => READING_TOK_S,
    });
    let mut ranked: Vec<Ranked> = KNOWN
        .into_iter()
        .filter(suits)
        .filter_map(|known| best_quant(machine, wish, known, floor))
        // What somebody says is too slow is of no use to them.
        .filter(|ranked| wish.tok_s_min.is_none() || ranked.is_fast != Some(false))
        .collect();
    // Of those that are fast enough the largest first, of the others the fastest.
    ranked.sort_by(|one, other| {
        let key = |ranked: &Ranked| match ranked.is_fast {
            Some(false) => (false, 0),
            Some(true) | None => (true, ranked.elements()),
        };
        key(other).cmp(&key(one)).then(other.tok_s().total_cmp(&one.tok_s()))
    });
    ranked
}

/// The most bits that are fast enough without dividing the model; else the most that are; else the fewest.
fn best_quant(machine: &Machine, wish: &Wish, known: Known, floor: f64) -> Option<Ranked> {
    let in_quant = |quant: &str| {
        let model = known.model(Mixture::named(quant).ok()?, known.tags.first()?.1).ok()?;
        let assessed = assess(machine, &model, wish).ok()?;
        let rate = assessed.best()?.decode_wished.as_ref();
        let is_fast = rate.map(|rate| rate.tok_s >= floor);
        Some(Ranked { known, model, is_fast, assessed })
    };
    let mut all: Vec<Ranked> = GOOD_QUANTS.into_iter().filter_map(in_quant).collect();
    let whole = all.iter().position(|ranked| ranked.is_fast != Some(false) && ranked.is_whole());
    let fast = all.iter().position(|ranked| ranked.is_fast != Some(false));
    let chosen = whole.or(fast).or(all.len().checked_sub(1))?;
    Some(all.swap_remove(chosen))
}

pub(super) fn shown(ranked: &[Ranked]) -> String {
    if ranked.is_empty() {
        return "none of the models that hob knows fits, or is as fast as that".to_owned();
    }
    let mut rows = table(["model", "quant", "where", "GB", "tok/s", "longest context", "why"]);
    for ranked in ranked.iter().take(SHOWN_MAX) {
        let Some(plan) = ranked.plan() else { continue };
        let needed = plan.uses.iter().map(Use::kept_bytes).sum();
        rows.add_row([
            ranked.known.tags.first().map_or("", |(tag, _)| tag).to_owned(),
            ranked.model.quant.clone(),
            plan.placement.to_string(),
            shown::gigabytes(needed),
            plan.decode_wished.as_ref().map_or("?".to_owned(), shown::rate),
            shown::longest(plan.longest),
            why(ranked),
        ]);
    }
    rows.trim_fmt()
}

/// The best first: what `hob fit --json` says of each, beside what it is called and why it stands there.
pub(super) fn json(ranked: &[Ranked], machine: &Machine, wish: &Wish) -> Outcome<String> {
    #[derive(Serialize)]
    struct Recommended {
        name: &'static str,
        why: String,
        answer: FitAnswer,
    }
    let recommended = ranked.iter().filter_map(|ranked| {
        let Ranked { known, model, assessed, .. } = ranked;
        let (name, context_tokens) = known.tags.first()?;
        let variants = known.variants(Mixture::named(&model.quant).ok()?, *context_tokens);
        let alternatives = alternatives(machine, model, &variants, wish, assessed);
        let assessed = Assessment { alternatives, ..assessed.clone() };
        let answer = FitAnswer::of(machine, model, &assessed, wish);
        Some(Recommended { name, why: why(ranked), answer })
    });
    serde_json::to_string(&recommended.collect::<Vec<_>>())
        .map_err(|error| Failure::new(Exit::Internal, error))
}

fn why(ranked: &Ranked) -> String {
    let billions = ranked.elements() as f64 / 1e9;
    let fast = match ranked.is_fast {
        Some(true) => "fast enough",
        Some(false) => "slower than one reads",
        None => "speed not known",
    };
    let basis = ranked.plan().and_then(|plan| plan.decode_wished.as_ref()).map(|rate| rate.basis);
    let sure = if basis == Some(Basis::Assumed) { ", a guess" } else { "" };
    format!("{billions:.1} B, {fast}{sure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(machine: &str, purpose: Option<Purpose>) -> Vec<Ranked> {
        let known = hob_machine::profile::builtin(machine).expect("it is part of hob");
        ranked(&known.machine, &Wish::default(), purpose)
    }

    #[test]
    fn what_is_fast_enough_comes_first_and_the_largest_of_it() {
        for machine in ["rtx-4070-laptop", "rtx-4090", "ryzen-5800u", "n100"] {
            let found = on(machine, None);
            let fast: Vec<bool> = found.iter().map(|one| one.is_fast == Some(true)).collect();
            assert!(fast.iter().rev().is_sorted(), "{machine}: {fast:?}");
            let count = fast.iter().filter(|fast| **fast).count();
            assert!(count > 0, "{machine}");
            let (quick, slow) = found.split_at(count);
            assert!(quick.iter().rev().is_sorted_by_key(Ranked::elements), "{machine}");
            assert!(slow.iter().rev().map(Ranked::tok_s).is_sorted(), "{machine}");
        }
    }

    #[test]
    fn a_quant_that_lies_in_one_memory_is_chosen_before_more_bits_that_do_not() {
        let found = on("rtx-4090", Some(Purpose::Code));
        let of = |tag: &str| found.iter().find(|one| one.known.tags[0].0 == tag).expect("it fits");
        let moe = of("qwen3-coder:30b-a3b");
        assert_eq!((moe.model.quant.as_str(), moe.is_whole()), ("Q5_K_M", true));
        let small = of("qwen2.5-coder:7b");
        assert_eq!((small.model.quant.as_str(), small.is_whole()), ("Q8_0", true));
    }
}
