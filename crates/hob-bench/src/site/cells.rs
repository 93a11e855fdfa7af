//! Small pieces that every page shows: figures, badges, links, words that explain themselves.
//! Whatever a record says is escaped by the templates; nothing here writes markup of its own.

use maud::{Markup, html};

use super::production::Gap;
use super::rows::{Origin, Range, Row};
use crate::record::Doubt;
use crate::terms::look_up;
use crate::written::{figure, number};

/// From here on milliseconds are written as seconds.
const MS_MAX: f64 = 10_000.0;

/// A word with a dotted line under it, and what it means.
pub(super) fn term(name: &str, shown: &str) -> Markup {
    match look_up(name) {
        Some(term) => html! { span.term tabindex="0" title=(explained(term)) { (shown) } },
        None => html! { (shown) },
    }
}

/// Meaning and formula, as one text.
pub(super) fn explained(term: &crate::terms::Term) -> String {
    match term.formula {
        "" => term.meaning.to_owned(),
        formula => format!("{} {formula}", term.meaning),
    }
}

/// One figure, or from the least to the greatest.
pub(super) fn range(range: Range, unit: &str) -> Markup {
    let is_long = unit == "ms" && range.high.abs() >= MS_MAX;
    let (scale, unit) = if is_long { (1e-3, "s") } else { (1.0, unit) };
    let (low, high) = (number(range.low * scale), number(range.high * scale));
    html! {
        @if low == high { (low) } @else { (low) "–" (high) }
        @if !unit.is_empty() && unit != "tok/s" { " " span.unit { (unit) } }
    }
}

/// How often production waits as long as the bench.
pub(super) fn gap(gap: &Gap<'_>) -> Markup {
    let term = gap.metric.term();
    let p95 = gap
        .served
        .first_p95_ms
        .map_or_else(String::new, |p95| format!(", p95 {}", figure(p95, term)));
    let said = format!(
        "{} requests waited {} in the middle{p95}; the bench says {}",
        gap.served.requests,
        figure(gap.served.first_p50_ms, term),
        figure(gap.warm_ms, term)
    );
    html! { span.gap title=(said) tabindex="0" { (number(gap.ratio())) "×" } }
}

/// Hard, soft or failed, with the reasons; where it comes from, if that is not here.
pub(super) fn badge(row: &Row<'_>, name: &str) -> Markup {
    let reasons = reasons(row);
    html! {
        @match name {
            "failed" => { span.badge.failed tabindex="0" title=(row.record.invalid_reasons.join("; ")) { "failed" } }
            "hard" => { span.badge.hard { "hard" } }
            _ => { span.badge.soft tabindex="0" title=(reasons) { "soft" } }
        }
        @if row.origin() != Origin::Native { " " span.origin { (row.origin().name()) } }
    }
}

/// Why it is soft, as one text.
pub(super) fn reasons(row: &Row<'_>) -> String {
    row.doubts().into_iter().map(Doubt::meaning).collect::<Vec<_>>().join("; ")
}

/// `up` leads from the page to the root of the site.
pub(super) fn model_link(row: &Row<'_>, up: &str) -> Markup {
    html! { a href={ (up) "model/" (row.model_slug) ".html" } { (row.record.model.name) } }
}

pub(super) fn rig_link(row: &Row<'_>, up: &str) -> Markup {
    html! { a href={ (up) "rig/" (row.rig_slug) ".html" } { (row.hardware) } }
}

pub(super) fn run_link(row: &Row<'_>, up: &str) -> Markup {
    html! { a.run href={ (up) (row.run_path()) } { (row.record.short_id()) } }
}
