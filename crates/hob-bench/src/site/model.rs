//! One model: everything that was measured of it, and where it can live.
//! Tables name every run; charts show what a table hides.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::layout::{Place, shell};
use super::rows::Row;
use super::run_facts::{attempts, samples_of};
use super::{Material, cells, charts_of, history};
use crate::record::Kind;
use crate::terms::Metric;
use crate::written::{figure, number};

/// So many runs' raw values are drawn on the page of their model; each run has a page of its own.
const SAMPLED_MAX: usize = 4;
/// So many columns of figures still fit beside each other.
const FIGURES_MAX: usize = 8;

/// In the order in which a reader asks for them.
const FIGURES: [Metric; 19] = [
    Metric::DecodeTokS,
    Metric::GenTokS,
    Metric::TtftMs,
    Metric::TtfatMs,
    Metric::PrefillTokS,
    Metric::ThroughputTokS,
    Metric::ContentTokS,
    Metric::ReasoningTokS,
    Metric::TtfaMs,
    Metric::WallMs,
    Metric::Rtf,
    Metric::RealTimeX,
    Metric::CharsS,
    Metric::E2eMs,
    Metric::TpotMs,
    Metric::PromptTtftTokS,
    Metric::ColdFirstMs,
    Metric::SwapMs,
    Metric::Wer,
];

pub(super) fn page(material: &Material, rows: &[&Row<'_>]) -> Markup {
    let row = rows[0];
    let latest = latest(rows);
    let body = html! {
            div.title {
                h1 { (row.record.model.name) }
                p.sub { (about(rows)) }
            }
            (charts_of::production(rows))
            @if !latest.is_empty() { section {
                h2 { "Speed" }
    (charts_of::speeds(&latest, |row| html! { (differing(row, &latest)) }))
            } }
            (charts_of::over_context(rows))
            (history::charts(rows))
            (ceilings(rows))
            section { h2 { "Every run" } (table(rows, Subject::Machine)) }
            (samples(material, rows))
        };
    shell(material, &Place { title: &row.record.model.name, up: "../", here: "" }, &body)
}

/// Family, size and packings, as far as any run says.
fn about(rows: &[&Row<'_>]) -> String {
    let model = |pick: fn(&Row<'_>) -> Option<String>| rows.iter().find_map(|row| pick(row));
    let quants: BTreeSet<&str> =
        rows.iter().map(|row| row.quant()).filter(|quant| !quant.is_empty()).collect();
    let parts = [
        model(|row| row.family.map(str::to_owned)),
        model(|row| row.released.map(|day| format!("released {day}"))),
        model(|row| row.record.model.params_b.map(|n| format!("{} B parameters", number(n)))),
        model(|row| row.record.model.active_b.map(|n| format!("{} B active", number(n)))),
        (!quants.is_empty()).then(|| quants.into_iter().collect::<Vec<_>>().join(", ")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// What tells two runs of one model apart.
fn parts(row: &Row<'_>) -> [String; 5] {
    let users = row
        .users()
        .filter(|users| *users > 1)
        .map_or_else(String::new, |users| format!("{users} users"));
    [row.shape().to_owned(), row.quant().to_owned(), row.hardware.clone(), row.engine(), users]
}

fn place(row: &Row<'_>) -> String {
    parts(row).into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// Of these, only what is not the same of all.
pub(super) fn differing(row: &Row<'_>, among: &[&Row<'_>]) -> String {
    let own = parts(row);
    let differs = |at: &usize| among.iter().any(|other| parts(other)[*at] != own[*at]);
    let shown: Vec<&str> = (0..own.len()).filter(differs).map(|at| own[at].as_str()).collect();
    let shown: Vec<&str> = shown.into_iter().filter(|part| !part.is_empty()).collect();
    if shown.is_empty() { place(row) } else { shown.join(" · ") }
}

/// The newest of each place; what is drawn over the context is not drawn twice.
fn latest<'r, 'a>(rows: &[&'r Row<'a>]) -> Vec<&'r Row<'a>> {
    let mut seen = BTreeSet::new();
    let speeds = rows.iter().filter(|row| row.record.kind != Kind::CtxSweep && !row.failed());
    speeds
        .filter(|row| row.speed().is_some())
        .filter(|row| seen.insert(parts(row)))
        .copied()
        .collect()
}

/// What a table of runs is not about, and therefore names in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Machine,
    Model,
}

/// Runs with those figures that any of them has.
pub(super) fn table(rows: &[&Row<'_>], subject: Subject) -> Markup {
    let has = |metric: &Metric| rows.iter().any(|row| row.range(*metric).is_some());
    let figures: Vec<Metric> = FIGURES.into_iter().filter(has).take(FIGURES_MAX).collect();
    let mut sorted = rows.to_vec();
    sorted.sort_by_key(|row| {
        (
            row.record.model.name.as_str(),
            row.hardware.as_str(),
            row.quant(),
            row.record.kind,
            row.users(),
        )
    });
    html! {
        div.wide role="region" aria-label="Runs" tabindex="0" {
            table.runs.sortable {
                thead { tr {
                    th scope="col" { "run" }
                    @if subject == Subject::Model { th scope="col" { "model" } }
                    @else { th scope="col" { "hardware" } }
                    th scope="col" { "kind" } th scope="col" { "shape" } th scope="col" { "quant" } th scope="col" { "engine" }
                    th.number scope="col" data-first="asc" { span.term title="Users at once" { "conc." } }
                    @for metric in &figures {
                        th.number scope="col" data-first=(way(*metric)) { span.term title=(cells::explained(metric.term())) { (metric.term().title) } }
                    }
                    th scope="col" { "badge" } th scope="col" data-first="desc" { "date" }
                } }
                tbody { @for row in sorted { (line(row, &figures, subject)) } }
            }
        }
    }
}

fn way(metric: Metric) -> &'static str {
    if metric.term().better == crate::terms::Better::More { "desc" } else { "asc" }
}

fn line(row: &Row<'_>, figures: &[Metric], subject: Subject) -> Markup {
    let badge = if row.failed() {
        "failed"
    } else if row.is_hard() {
        "hard"
    } else {
        "soft"
    };
    html! {
        tr class=(badge) {
            td { (cells::run_link(row, "../")) }
            @if subject == Subject::Model { td { (cells::model_link(row, "../")) } }
            @else { td { (cells::rig_link(row, "../")) } }
            td { (row.record.kind.name()) } td { (row.shape()) @if !row.prompt().is_empty() { " " span.beside { (row.prompt()) } } } td { (row.quant()) } td { (row.engine()) }
            td.number data-s=[row.users()] { @if let Some(users) = row.users() { (users) } }
            @for metric in figures {
                @let range = row.range(*metric);
                td.number data-s=[range.map(|range| range.low)] { @if let Some(range) = range {
                    (cells::range(range, metric.term().unit)) (interval(row, *metric))
                } }
            }
            td { (cells::badge(row, badge)) }
            td { @if let Some(day) = row.day() { (day) } }
        }
    }
}

/// Half its width, behind the figure.
fn interval(row: &Row<'_>, metric: Metric) -> Markup {
    let ci95 = row.record.metrics.get(metric).and_then(|spread| spread.ci95);
    html! { @if let Some([low, high]) = ci95 {
        " " span.interval title={ "95 % interval: " (figure(low, metric.term())) " to " (figure(high, metric.term())) } { "±" (number((high - low) / 2.0)) }
    } }
}

fn ceilings(rows: &[&Row<'_>]) -> Markup {
    let found: Vec<_> = rows.iter().filter(|row| row.record.kind == Kind::MaxContext).collect();
    html! { @if !found.is_empty() { section {
        h2 { (cells::term("max_context", "Longest context")) }
        @for row in found { (attempts(row)) }
    } } }
}

fn samples(material: &Material, rows: &[&Row<'_>]) -> Markup {
    let sampled: Vec<_> = rows
        .iter()
        .filter(|row| material.samples.contains_key(&row.record.id))
        .take(SAMPLED_MAX)
        .collect();
    html! { @if !sampled.is_empty() { section {
        h2 { "Raw samples" }
        @for row in sampled { h3 { (place(row)) " " (cells::run_link(row, "../")) } (samples_of(material, row)) }
    } } }
}
