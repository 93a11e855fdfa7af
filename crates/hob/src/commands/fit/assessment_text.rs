//! The text below a verdict: memory, speed by context, alternatives, and warnings.
//! An unknown figure is a question mark, never zero.

use hob_core::fit::{
    Alternative, Assessment, ComputeSite, ContextLimit, FitOptions, Longest, Model, Plan, Pool,
    Rate, Use, flags,
};
use hob_core::footprint::KvTypes;
use hob_core::machine::Machine;

use crate::printer::{Column, rows, table};

const GB: f64 = 1e9;

pub(super) fn assessment(
    machine: &Machine,
    model: &Model,
    options: &FitOptions,
    assessed: &Assessment,
) -> String {
    let Some(plan) = assessed.plans.first() else { return String::new() };
    let mut parts = vec![memory(plan), speed(plan), longest_by_pair(assessed)];
    if assessed.plans.len() > 1 {
        parts.push(placements(assessed));
    }
    if !assessed.alternatives.is_empty() {
        parts.push(alternatives(assessed));
    }
    if plan.fits() {
        let rates = flags(machine, model, plan, options.sequences).into_iter();
        parts.extend(rates.map(|flags| format!("{}:\n{}", flags.engine, indented(&flags.text))));
    }
    let warned = assessed.warnings.iter();
    parts.extend(warned.map(|warning| format!("! {}\n  → {}", warning.text, warning.action)));
    parts.join("\n\n")
}

fn shortage_text(used: &Use) -> String {
    format!("no: {} lacks {} GB", used.pool, gigabytes(used.lacking_bytes()))
}

fn memory(plan: &Plan) -> String {
    let mut rows = table(["memory", "of", "GB", "rests on"]);
    let terms = plan.memory_by_name();
    for used in &plan.uses {
        for term in terms.iter().filter(|term| term.pool == used.pool) {
            rows.add_row([
                used.pool.to_string(),
                term.name.to_owned(),
                gigabytes(term.bytes),
                term.basis.name().to_owned(),
            ]);
        }
    }
    let sums = plan.uses.iter().map(|used| {
        let reclaimable = match used.reclaimable_bytes {
            0 => String::new(),
            bytes => format!(", of which {} can be taken back", gigabytes(bytes)),
        };
        format!(
            "{}: {} GB needed{reclaimable}, {} of {} free now are left alone: {}",
            used.pool,
            gigabytes(used.needed_bytes),
            gigabytes(used.margin_bytes),
            gigabytes(used.free_bytes),
            if used.fits() { "fits" } else { "does not fit" }
        )
    });
    let sums: Vec<String> = sums.collect();
    format!("{}\n{}", rows.trim_fmt(), sums.join("\n"))
}

fn speed(plan: &Plan) -> String {
    let columns: &[Column<'_, Rate>] = &[
        ("context", &|rate| rate.context_tokens.to_string()),
        ("tok/s", &|rate| figure(rate.tok_s)),
        ("from", &|rate| figure(rate.low)),
        ("to", &|rate| figure(rate.high)),
        ("rests on", &|rate| rate.basis.name().to_owned()),
        ("most of the time", &largest),
    ];
    let read = plan.prefill.as_ref().map_or("reading a prompt: not known".to_owned(), |prefill| {
        let seconds = f64::from(prefill.context_tokens) / prefill.tok_s;
        let has_card = plan.layout.sites().iter().any(|site| *site != ComputeSite::Cpu);
        let caveat = if has_card { ", not validated" } else { "" };
        format!(
            "a prompt of {} tokens is read at {} tokens a second: {} until the first word ({}{caveat})",
            prefill.context_tokens,
            figure(prefill.tok_s),
            duration(seconds),
            prefill.basis.name()
        )
    });
    match &rates_shown(plan)[..] {
        [] => format!("tokens a second: not known\n{read}"),
        rates => format!("{}\n{read}", rows(columns, rates.iter().copied()).trim_fmt()),
    }
}

/// Speeds at the usual contexts and at the requested one, by context.
fn rates_shown(plan: &Plan) -> Vec<&Rate> {
    let mut rates: Vec<&Rate> = plan.decode.iter().chain(&plan.decode_requested).collect();
    rates.sort_by_key(|rate| rate.context_tokens);
    rates.dedup_by_key(|rate| rate.context_tokens);
    rates
}

/// The largest part of a token's time.
fn largest(rate: &Rate) -> String {
    let all: f64 = rate.terms.iter().map(|(_, us)| us).sum();
    let most = rate.terms.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
    most.map_or(String::new(), |(name, us)| format!("{name} {:.0} %", us / all * 100.0))
}

fn longest_by_pair(assessed: &Assessment) -> String {
    let placed = assessed.plans.first().map(|plan| plan.place.as_str());
    let heading = format!("longest context, {}", placed.unwrap_or_default());
    let mut rows = table(["KV types", &heading]);
    for (kv, longest) in &assessed.longest {
        rows.add_row([pair(*kv), self::longest(*longest)]);
    }
    rows.trim_fmt()
}

fn placements(assessed: &Assessment) -> String {
    let columns: &[Column<'_, Plan>] = &[
        ("where", &|plan| plan.place.clone()),
        ("KV types", &|plan| pair(plan.kv)),
        ("tok/s", &requested_rate),
        ("longest context", &|plan| longest(plan.longest)),
        ("fits", &|plan| plan.shortage().map_or("yes".to_owned(), shortage_text)),
    ];
    rows(columns, &assessed.plans).trim_fmt()
}

fn alternatives(assessed: &Assessment) -> String {
    let columns: &[Column<'_, Alternative>] = &[
        ("instead", &|one| one.toward.name().to_owned()),
        ("quant", &|one| one.quant.clone()),
        ("KV types", &|one| pair(one.plan.kv)),
        ("where", &|one| one.plan.place.clone()),
        ("tok/s", &|one| requested_rate(&one.plan)),
        ("longest context", &|one| longest(one.plan.longest)),
    ];
    rows(columns, &assessed.alternatives).trim_fmt()
}

fn requested_rate(plan: &Plan) -> String {
    plan.decode_requested.as_ref().map_or("?".to_owned(), rate)
}

pub(super) fn pair(kv: KvTypes) -> String {
    if kv.keys == kv.values { kv.keys.to_string() } else { format!("{}/{}", kv.keys, kv.values) }
}

pub(super) fn rate(rate: &Rate) -> String {
    format!("{} ({} to {})", figure(rate.tok_s), figure(rate.low), figure(rate.high))
}

pub(super) fn longest(longest: Longest) -> String {
    let limit = match longest.limit {
        ContextLimit::Trained => "as it was trained".to_owned(),
        ContextLimit::Memory(Pool::Ram) => "then RAM is full".to_owned(),
        ContextLimit::Memory(pool) => format!("then {pool} is full"),
    };
    longest.context_tokens.map_or("none".to_owned(), |tokens| format!("{tokens}, {limit}"))
}

pub(super) fn gigabytes(bytes: u64) -> String {
    let gb = bytes as f64 / GB;
    if gb < 0.1 { format!("{gb:.3}") } else { format!("{gb:.2}") }
}

fn figure(number: f64) -> String {
    match number {
        ..10.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        ..10.0 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
