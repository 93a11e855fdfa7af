//! Which charts are drawn of which rows: speeds by shape, curves over the context, production beside the bench.
//! How they are drawn is in `chart`.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Material;
use super::cells;
use super::chart::{Bar, Look, Point, Series, bars, curves};
use super::rows::Row;
use crate::record::{Cache, Kind};
use crate::terms::{Better, Metric, Term};
use crate::written::figure;

/// So many bars still are a picture.
const BARS_MAX: usize = 24;

fn look(row: &Row<'_>) -> Look {
    if row.is_hard() { Look::Hard } else { Look::Soft }
}

/// The first of these that a row has, with its term.
fn headline(row: &Row<'_>) -> Option<(f64, &'static Term, Option<[f64; 2]>)> {
    // How fast a prompt is read is no speed of writing: in one chart they would be taken for the same.
    let metrics = [Metric::DecodeTokS, Metric::GenTokS, Metric::ThroughputTokS];
    metrics.into_iter().find_map(|metric| {
        let spread = row.record.metrics.get(metric)?;
        Some((spread.figure()?, metric.term(), spread.ci95))
    })
}

/// Speeds, the fastest first; `label` says what tells the bars apart.
pub(super) fn speeds(rows: &[&Row<'_>], label: impl Fn(&Row<'_>) -> Markup) -> Markup {
    let mut found: Vec<(f64, Bar)> = rows
        .iter()
        .filter(|row| !row.failed())
        .filter_map(|row| {
            let (value, term, interval) =
                headline(row).filter(|(_, term, _)| term.better == Better::More)?;
            Some((
                value,
                Bar {
                    label: label(row),
                    value,
                    shown: figure(value, term),
                    interval,
                    look: look(row),
                },
            ))
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let left_out = found.len().saturating_sub(BARS_MAX);
    let shown: Vec<Bar> = found.into_iter().take(BARS_MAX).map(|(_, bar)| bar).collect();
    html! {
        (bars(&shown))
        @if left_out > 0 { p.none { (left_out) " slower ones are in the table." } }
    }
}

/// The machine and model with the most shapes, one user: how far apart they are.
pub(super) fn shapes_of_one(_: &Material, rows: &[&Row<'_>]) -> Markup {
    let mut by_model: BTreeMap<(&str, &str, &str), BTreeMap<&str, &Row<'_>>> = BTreeMap::new();
    let alone = rows
        .iter()
        .filter(|row| row.record.kind == Kind::Llm && row.users() == Some(1) && !row.failed());
    for row in alone.filter(|row| row.speed().is_some() && !row.shape().is_empty()) {
        let key = (row.model_slug.as_str(), row.rig_slug.as_str(), row.quant());
        by_model.entry(key).or_default().entry(row.shape()).or_insert(row);
    }
    let Some(most) =
        by_model.into_values().max_by_key(BTreeMap::len).filter(|shapes| shapes.len() > 1)
    else {
        return html! {};
    };
    let rows: Vec<&Row<'_>> = most.into_values().collect();
    html! {
        p.beside { "As measured: " (rows[0].record.model.name) " on " (rows[0].hardware) ", one user." }
        (speeds(&rows, |row| html! { (row.shape()) }))
    }
}

/// Speed over the context, cold and cached apart, one line for each stack.
pub(super) fn over_context(rows: &[&Row<'_>]) -> Markup {
    let decode = context_series(rows, Metric::DecodeTokS);
    let prefill = context_series(rows, Metric::PrefillTokS);
    if decode.is_empty() && prefill.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Over the context" }
            div.charts {
                (curves("Writing, by tokens in the context", "tok/s", &decode))
                (curves("Reading the prompt, by its tokens", "tok/s", &prefill))
            }
        }
    }
}

fn context_series(rows: &[&Row<'_>], metric: Metric) -> Vec<Series> {
    let mut series: BTreeMap<[String; 4], BTreeMap<u64, Point>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.record.kind == Kind::CtxSweep && !row.failed()) {
        let tokens =
            row.record.workload.prompt_tokens.and_then(|tokens| tokens.target.or(tokens.p50));
        let spread = row.record.metrics.get(metric);
        let (Some(tokens), Some(spread)) = (tokens, spread) else { continue };
        let Some(y) = spread.figure() else { continue };
        // The newest comes first and stays.
        let points = series.entry(stack(row)).or_default();
        points.entry(tokens).or_insert(Point { x: tokens as f64, y, interval: spread.ci95 });
    }
    series.retain(|_, points| points.len() > 1);
    let stacks: Vec<[String; 4]> = series.keys().cloned().collect();
    let named = |(stack, points): ([String; 4], BTreeMap<u64, Point>)| Series {
        name: differing(&stack, &stacks),
        points: points.into_values().collect(),
    };
    series.into_iter().map(named).collect()
}

/// What is the same of all lines tells none of them apart.
fn differing(stack: &[String; 4], among: &[[String; 4]]) -> String {
    let differs = |at: &usize| among.iter().any(|other| other[*at] != stack[*at]);
    let whole = among.len() < 2;
    let parts = (0..stack.len()).filter(|at| whole || differs(at)).map(|at| stack[at].as_str());
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn stack(row: &Row<'_>) -> [String; 4] {
    let cache = match row.record.workload.cache {
        Some(Cache::Cold) => "cold",
        Some(Cache::Cached) => "cached",
        Some(Cache::Mixed) => "mixed",
        None => "",
    };
    [row.quant().to_owned(), row.engine(), row.hardware.clone(), cache.to_owned()]
}

/// What the bench says, and what real requests waited.
pub(super) fn production(rows: &[&Row<'_>]) -> Markup {
    let Some((row, gap)) = rows.iter().find_map(|row| Some((row, row.gap?))) else {
        return html! {};
    };
    let term = gap.metric.term();
    let bar = |label: &str, value: f64, look| Bar {
        label: html! { (label) },
        value,
        shown: figure(value, term),
        interval: None,
        look,
    };
    let mut shown = vec![
        bar("bench, warm, in the middle", gap.warm_ms, look(row)),
        bar("production, in the middle", gap.served.first_p50_ms, Look::Other),
    ];
    shown.extend(gap.served.first_p95_ms.map(|p95| bar("production, 95 of 100", p95, Look::Other)));
    html! {
        section {
            h2 { "Warm and in production" }
            p { "Until the " (cells::term(term.name, term.title)) ": real requests waited " strong { (crate::written::number(gap.ratio())) "×" }
                " as long as the bench says (" (cells::term("gap", "production gap")) ", " (gap.served.requests) " requests of the last 30 days)." }
            (bars(&shown))
        }
    }
}
