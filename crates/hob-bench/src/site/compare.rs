//! Two runs side by side: the latest pair of each cell, written when the page is built, and any two that a reader chooses.
//! What the script needs to compare is embedded; its rules are the aspects and ranks of `compare`, not its own.

use std::collections::BTreeMap;

use hob_core::statistics::Ratio;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::history::Cells;
use super::layout::{Place, shell};
use super::rows::Row;
use super::{Material, cells};
use crate::compare::{
    ASKED_BEFORE, Aspect, Compared, Comparison, Holds, Kept, THRESHOLD_UNPAIRED_PCT, Wish, aspects,
    compare, counts_tokens, has_direction, is_untold, runs, seed, unfit,
};
use crate::cores::on_all;
use crate::terms::{Better, Metric};
use crate::written::{figure, number};

/// Of this page only: the others need none of it.
pub(super) const SCRIPT: &str = include_str!("site/compare.js");
/// So many pairs are written out; all others can be chosen.
const PAIRS_MAX: usize = 24;
/// Digits of an embedded figure that count.
const DIGITS: i32 = 9;

pub(super) fn link(base: Option<&Row<'_>>, new: &Row<'_>, up: &str) -> String {
    let base = base.map_or_else(String::new, |base| format!("base={}&", base.record.id));
    format!("{up}compare.html#{base}new={}", new.record.id)
}

pub(super) fn page(material: &Material, rows: &[Row<'_>], cells: &Cells<'_, '_>) -> Markup {
    let pairs = cells.latest_pairs();
    let shown: Vec<Markup> = on_all(&pairs[..pairs.len().min(PAIRS_MAX)], |[base, new]| {
        written_out(material, base, new)
    });
    let body = html! {
        div.title { h1 { "Compare" } p.sub { "Whether one run was faster than another, and whether that may be said." } }
        @if rows.len() > 1 { (chooser()) }
        section #latest {
            h2 { "The latest of each, and the one before" }
            @if shown.is_empty() { p.none { "Nothing was measured twice yet, asked the same on the same machine." } }
            @for pair in &shown { (pair) }
            @if pairs.len() > PAIRS_MAX { p.none { (pairs.len() - PAIRS_MAX) " more can be chosen above, and each run's page leads to the one before." } }
        }
        script type="application/json" id="runs" { (PreEscaped(embedded(material, rows))) }
        script { (PreEscaped(SCRIPT)) }
    };
    shell(material, &Place { title: "Compare", up: "", here: "compare.html" }, &body)
}

/// For the script; nobody else can use it.
fn chooser() -> Markup {
    html! {
        form.chooser aria-label="Two runs" hidden {
            label { span { "Base" } select name="base" {} }
            label { span { "Compared with it" } select name="new" {} }
            button type="button" name="turn" { "Turn over" }
        }
        section #chosen aria-live="polite" hidden {}
    }
}

fn kept(material: &Material, row: &Row<'_>) -> Kept {
    let samples = material.samples.get(&row.record.id).cloned().unwrap_or_default();
    Kept { record: row.record.clone(), samples }
}

fn written_out(material: &Material, base: &Row<'_>, new: &Row<'_>) -> Markup {
    let sides = [base, new].map(|row| [kept(material, row)]);
    let comparison = compare(&sides[0], &sides[1], &Wish::default());
    let heading = name(new);
    html! {
        div.pair data-base=(base.record.id) data-new=(new.record.id) data-pairing=(word(&comparison.pairing)) {
            h3 { (heading) }
            p { (side(base)) " → " (side(new)) }
            p.banner { (comparison.pairing.banner()) }
            (told(&comparison))
            @if !comparison.figures.is_empty() { (table(&comparison, &heading)) }
            (undecided(&comparison))
        }
    }
}

/// As JSON writes it.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// What two runs of one cell have in common.
fn name(row: &Row<'_>) -> String {
    let users = row.users().map_or_else(String::new, |users| match users {
        1 => "1 user".to_owned(),
        users => format!("{users} users"),
    });
    let parts = [
        row.record.model.name.as_str(),
        row.quant(),
        row.record.kind.name(),
        row.shape(),
        &users,
        &row.hardware,
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn side(row: &Row<'_>) -> Markup {
    html! {
        (cells::run_link(row, "")) " " (row.engine())
        @if let Some(day) = row.day() { ", " (day) }
    }
}

fn told(comparison: &Comparison) -> Markup {
    html! { @if !comparison.refusals.is_empty() || !comparison.marks.is_empty() { ul.told {
        @for refusal in &comparison.refusals { li.bad { "Refused: " (refusal) "." } }
        @for mark in &comparison.marks { li { (mark) "." } }
    } } }
}

fn table(comparison: &Comparison, heading: &str) -> Markup {
    html! { div.wide role="region" aria-label={ "Figures of " (heading) } tabindex="0" { table.compared {
        thead { tr {
            th scope="col" { "figure" } th.number scope="col" { "base" } th.number scope="col" { "new" }
            th.number scope="col" { "change" } th.number scope="col" { "95 % interval" }
            th.number scope="col" { "matters from" } th scope="col" { "finding" }
        } }
        tbody { @for figure in &comparison.figures { (line(figure)) } }
    } } }
}

fn line(compared: &Compared) -> Markup {
    let term = compared.metric.term();
    let median = |value: Option<f64>| value.map_or_else(String::new, |value| figure(value, term));
    let change = compared.change_pct.map_or_else(String::new, percent);
    let interval = compared
        .change_ci95_pct
        .map_or_else(String::new, |[low, high]| format!("{} to {}", percent(low), percent(high)));
    html! { tr {
        th scope="row" { (cells::term(term.name, term.title)) }
        td.number { (median(compared.base)) } td.number { (median(compared.new)) }
        td.number { (change) } td.number { (interval) }
        td.number { (number(compared.threshold_pct)) " %" }
        td class=(word(&compared.verdict)) { (compared.finding) }
    } }
}

fn percent(value: f64) -> String {
    format!("{value:+.1} %")
}

fn undecided(comparison: &Comparison) -> Markup {
    let reasons = comparison
        .figures
        .iter()
        .filter_map(|figure| Some((figure.metric.term().title, figure.reason.as_ref()?)));
    let mut by_reason: BTreeMap<&String, Vec<&str>> = BTreeMap::new();
    for (title, reason) in reasons {
        by_reason.entry(reason).or_default().push(title);
    }
    html! { @for (reason, titles) in by_reason { p.beside.reason { (titles.join(", ")) ": " (reason) "." } } }
}

/// What the script compares by.
#[derive(Serialize)]
struct Embedded<'a> {
    runs: Vec<Run>,
    aspects: Vec<(&'static str, Holds)>,
    /// In the order in which they are shown.
    figures: Vec<Figure>,
    /// By "n,m": which of the sorted differences begins the interval.
    ranks: BTreeMap<String, usize>,
    runs_min: usize,
    threshold_pct: f64,
    banner: &'a str,
    asked_before: &'a str,
}

#[derive(Serialize)]
struct Figure {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    is_less_better: bool,
    counts_tokens: bool,
}

#[derive(Serialize)]
struct Run {
    id: String,
    name: String,
    /// Engine and day.
    place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfit: Option<String>,
    /// As text: a script's numbers have no 64 bits.
    seed: Option<String>,
    is_untold: bool,
    aspects: Vec<Option<String>>,
    figures: BTreeMap<&'static str, Values>,
}

#[derive(Serialize)]
struct Values {
    #[serde(skip_serializing_if = "Option::is_none")]
    ci95: Option<[f64; 2]>,
    median: f64,
    /// By run, where the samples say it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<f64>,
}

/// Without a `<`, which could end the element that it stands in.
fn embedded(material: &Material, rows: &[Row<'_>]) -> String {
    let runs = on_all(rows, |row| run(material, row));
    let sizes: std::collections::BTreeSet<usize> =
        runs.iter().flat_map(|run| run.figures.values().map(|values| values.runs.len())).collect();
    let ranks = sizes.iter().flat_map(|n| sizes.iter().map(move |m| (*n, *m)));
    let ranks = ranks.filter_map(|(n, m)| Some((format!("{n},{m}"), Ratio::rank_from_end(n, m)?)));
    let aspects_of = |row: &Row<'_>| -> Vec<(&'static str, Holds)> {
        aspects(row.record).into_iter().map(|aspect| (aspect.what, aspect.holds)).collect()
    };
    let embedded = Embedded {
        aspects: rows.first().map_or_else(Vec::new, aspects_of),
        figures: directed().map(described).collect(),
        ranks: ranks.collect(),
        runs_min: hob_core::statistics::RUNS_MIN,
        threshold_pct: THRESHOLD_UNPAIRED_PCT,
        banner: crate::compare::Pairing::Unpaired.banner(),
        asked_before: ASKED_BEFORE,
        runs,
    };
    // Numbers and text: nothing that JSON cannot say.
    serde_json::to_string(&embedded).unwrap_or_default().replace('<', "\\u003c")
}

fn directed() -> impl Iterator<Item = Metric> {
    Metric::ALL.iter().copied().filter(|metric| has_direction(*metric))
}

fn described(metric: Metric) -> Figure {
    let term = metric.term();
    Figure {
        name: term.name,
        title: term.title,
        unit: term.unit,
        is_less_better: term.better == Better::Less,
        counts_tokens: counts_tokens(metric),
    }
}

fn run(material: &Material, row: &Row<'_>) -> Run {
    let record = row.record;
    let samples = material.samples.get(&record.id).map_or(&[][..], Vec::as_slice);
    let values = |metric: Metric| {
        let spread = record.metrics.get(metric)?;
        let by_run = runs(record, samples, metric).unwrap_or_default();
        let values = Values {
            median: rounded(spread.figure()?),
            ci95: spread.ci95.filter(|_| spread.p50.is_some()).map(|ends| ends.map(rounded)),
            runs: by_run.into_values().map(rounded).collect(),
        };
        Some((metric.name(), values))
    };
    let day = row.day().unwrap_or_default();
    let place = [row.engine(), day].into_iter().filter(|part| !part.is_empty());
    Run {
        id: record.id.to_string(),
        name: name(row),
        place: place.collect::<Vec<_>>().join(", "),
        unfit: unfit(record),
        seed: seed(record).map(|seed| seed.to_string()),
        is_untold: is_untold(record),
        aspects: aspects(record).into_iter().map(|aspect: Aspect| aspect.value).collect(),
        figures: directed().filter_map(values).collect(),
    }
}

/// A page of a thousand runs need not carry sixteen digits of each figure.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
