//! The answer in a sentence or two: placement, context, speed, and the longest context.
//! If the model does not fit: which pool lacks how much, and which context would fit.

use hob_core::fit::{
    Assessment, ContextLimit, Longest, Model, Placement, Plan, Rate, UNMEASURED_PROCESSOR, Use,
};
use hob_core::machine::Machine;
use hob_core::{KvTypes, grouped_digits};

use super::plan::pool_name;
use super::rate::shortly;

pub(super) fn of(machine: &Machine, model: &Model, assessment: &Assessment) -> String {
    let named = named(model);
    match (assessment.best(), assessment.plans.first()) {
        (Some(plan), _) => format!("{named} {}", fitting(plan, &doubt(assessment))),
        (None, Some(plan)) => format!("{named} does not fit{}.", shortage_text(machine, plan)),
        (None, None) => format!("{named} has no plan."),
    }
}

/// A file's name often ends with its quant.
fn named(Model { name, quant, .. }: &Model) -> String {
    let is_said = name.to_ascii_lowercase().contains(&quant.to_ascii_lowercase());
    if is_said { name.clone() } else { format!("{name} {quant}") }
}

/// A speed that rests on other processors is doubted next to its figure.
fn doubt(assessment: &Assessment) -> String {
    let is_doubted = assessment.warnings.iter().any(|warning| warning.code == UNMEASURED_PROCESSOR);
    let shared =
        assessment.plans.iter().find(|plan| plan.fits() && plan.placement == Placement::Unified);
    let rate = shared.and_then(|plan| plan.decode_requested.as_ref());
    match rate.filter(|_| is_doubted) {
        Some(rate) => {
            format!(", a guess from other CPUs ({} on the integrated GPU)", figure(rate.tok_s))
        }
        None => String::new(),
    }
}

fn fitting(plan: &Plan, doubt: &str) -> String {
    let Plan { placement, place, context_tokens, kv, .. } = plan;
    let KvTypes { keys, values } = kv;
    let kv = if keys == values { keys.to_string() } else { format!("{keys}/{values}") };
    let placed = match placement {
        Placement::Vram | Placement::Unified | Placement::Ram => format!("fits in {place}"),
        Placement::ExpertsOffloaded { .. } | Placement::Split { .. } => format!("fits: {place}"),
    };
    let speed = plan.decode_requested.as_ref().map_or("at an unknown speed".to_owned(), pace);
    let context = thousands(*context_tokens);
    format!(
        "{placed} with a context of {context} tokens (KV cache in {kv}), {speed}{doubt}.{}",
        longer(plan)
    )
}

fn pace(rate: &Rate) -> String {
    let [at, low, high] = [rate.tok_s, rate.low, rate.high].map(figure);
    format!("at about {at} tokens/s ({low} to {high})")
}

fn longer(plan: &Plan) -> String {
    let Longest { context_tokens, limit } = plan.longest;
    let Some(tokens) = context_tokens.filter(|tokens| *tokens > plan.context_tokens) else {
        return String::new();
    };
    let why = match limit {
        ContextLimit::Trained => "its trained length",
        ContextLimit::Memory(_) => "as much as the memory holds",
    };
    format!(" The longest context that fits is {} tokens, {why}.", thousands(tokens))
}

fn shortage_text(machine: &Machine, plan: &Plan) -> String {
    let Some(used) = plan.shortage() else { return String::new() };
    let Use { pool, free_bytes, margin_bytes, .. } = *used;
    let [needed, margin, free] = [used.kept_bytes(), margin_bytes, free_bytes].map(gigabytes);
    let name = pool_name(machine, pool);
    let margin = if margin_bytes > 0 { format!(" and {margin} of margin") } else { String::new() };
    let context = thousands(plan.context_tokens);
    let shorter = plan.longest.context_tokens.map_or_else(
        || "; no context is short enough".to_owned(),
        |tokens| format!("; {} tokens would fit", thousands(tokens)),
    );
    format!(
        " with {context} tokens of context: it needs {needed}{margin} of {name}, where {free} are free{shorter}"
    )
}

/// Keeps as many digits as are meaningful.
fn figure(tok_s: f64) -> String {
    // Rounded in the same way as the figures.
    let tok_s = shortly(tok_s);
    match tok_s {
        10.0.. => format!("{}", tok_s.round()),
        1.0.. => format!("{tok_s:.1}"),
        _ => format!("{tok_s:.2}"),
    }
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

fn thousands(count: u32) -> String {
    grouped_digits(&count.to_string())
}
