//! The table of models: families that fold, columns that sort, filters that live in the address.
//! Rows by shape wait in a template, so that the script needs no second way of writing a row.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};

use super::cells::{explained, term};
use super::columns::{COLUMNS, Column, ColumnKind, Line};
use super::layout::{Place, shell};
use super::rows::{Row, over_shapes};
use super::{Material, charts_of};
use crate::terms::{Better, look_up};

/// A choice: what it is called in the address, what it says, and its values with how many runs have each.
struct Filter {
    key: &'static str,
    title: &'static str,
    any: &'static str,
    values: BTreeMap<String, usize>,
}

pub(super) fn page(material: &Material, rows: &[Row<'_>]) -> Markup {
    let rows: Vec<&Row<'_>> = rows.iter().filter(|row| !row.is_speech()).collect();
    let families = families(&rows);
    let body = html! {
        div.title { h1 { "Models" } p.sub { "How fast they run, on which machine, and whether that may be relied on." } }
        (by_workload(material, &rows))
        (meanings())
        (filters(&rows))
        @if rows.is_empty() {
            p.none { "Nothing was measured yet. " code { "hob bench llm" } " measures, and " code { "hob bench import" } " takes what others measured." }
        } @else {
            div.wide role="region" aria-label="Models" tabindex="0" {
                table.models {
                    (head())
                    @for (family, rows) in &families { (family_body(family, rows)) }
                }
            }
            p #nothing.none hidden { "No run fits these filters. " button type="button" { "Show all" } }
            template id="by-shape" { table { @for (family, rows) in &families { tbody data-family=(family) {
                @for row in rows { (line(&Line { rows: &[row] }, row.shape())) }
            } } } }
        }
    };
    shell(material, &Place { title: "Models", up: "", here: "index.html" }, &body)
}

/// The latest release first; what belongs to none comes last.
fn families<'r, 'a>(rows: &[&'r Row<'a>]) -> Vec<(&'r str, Vec<&'r Row<'a>>)> {
    let mut by_name: BTreeMap<(bool, &str), Vec<&Row<'a>>> = BTreeMap::new();
    for row in rows {
        by_name
            .entry((row.family.is_none(), row.family.unwrap_or("Others")))
            .or_default()
            .push(row);
    }
    let mut families: Vec<_> = by_name.into_iter().collect();
    families.sort_by_key(|((is_none, _), rows)| (*is_none, Reverse(released(rows))));
    families.into_iter().map(|((_, family), rows)| (family, rows)).collect()
}

/// The latest that any of its models says.
fn released<'a>(rows: &[&Row<'a>]) -> Option<&'a str> {
    rows.iter().filter_map(|row| row.released).max()
}

/// The fastest first; what has no speed comes last.
fn by_speed<'r, 'a>(rows: &[&'r Row<'a>]) -> Vec<Vec<&'r Row<'a>>> {
    let mut lines = over_shapes(rows);
    let speed = |rows: &[&Row<'_>]| {
        let worked = rows.iter().filter(|row| !row.failed());
        worked.filter_map(|row| row.speed()).map(|range| range.high).fold(0.0, f64::max)
    };
    lines.sort_by(|one, other| speed(other).total_cmp(&speed(one)));
    lines
}

/// Buttons are made of these heads by the script: without it there is nothing to press.
fn head() -> Markup {
    html! {
        thead { tr {
            @for column in &COLUMNS {
                th scope="col" data-key=(column.key) data-first=(first_way(column))
                    class=[matches!(column.kind, ColumnKind::Number(_)).then_some("number")] {
                    @match look_up(column.term) {
                        Some(term) => { span.term title=(explained(term)) { (column.title) } }
                        None => { (column.title) }
                    }
                }
            }
        } }
    }
}

/// The best first, the newest first, and words from the beginning.
fn first_way(column: &Column) -> &'static str {
    match column.kind {
        ColumnKind::Number(Better::More) => "desc",
        ColumnKind::Words if column.key == "date" => "desc",
        _ => "asc",
    }
}

fn family_body(family: &str, rows: &[&Row<'_>]) -> Markup {
    let released = released(rows);
    html! {
        tbody data-family=(family) {
            tr.family { th colspan=(COLUMNS.len()) scope="rowgroup" {
                span.name { (family) }
                @if let Some(released) = released { " " span.released { "released " (released) } }
                " " span.count { (rows.len()) @if rows.len() == 1 { " run" } @else { " runs" } }
            } }
            @for rows in by_speed(rows) { (line(&Line { rows: &rows }, "")) }
        }
    }
}

/// Filters read the cells; only what has no column is said of the row.
fn line(line: &Line<'_, '_, '_>, shape: &str) -> Markup {
    let cells = line.cells();
    let origin = line.rows[0].origin().name();
    let shapes = line.rows.len();
    html! {
        tr class=(if line.is_hard() { "hard" } else { line.badge_name() }) data-source=(origin)
            data-shape=[(!shape.is_empty()).then_some(shape)] {
            @for (cell, column) in cells.into_iter().zip(&COLUMNS) {
                td data-s=[cell.sort] class=[matches!(column.kind, ColumnKind::Number(_)).then_some("number")] {
                    (cell.shown)
                    @if column.key == "model" && shapes > 1 { " " span.shapes { (shapes) " shapes" } }
                }
            }
        }
    }
}

/// A phone shows no heads, and a finger finds no tooltip: the same definitions as text.
fn meanings() -> Markup {
    html! {
        details.explain {
            summary { "What the columns mean" }
            dl { @for column in &COLUMNS { @if let Some(term) = look_up(column.term) {
                dt { (column.title) } dd { (explained(term)) }
            } } }
        }
    }
}

fn filters(rows: &[&Row<'_>]) -> Markup {
    html! {
        form.filters aria-label="Filters" hidden {
            label { span { "Search" } input type="search" name="q" placeholder="model, machine"; }
            @for filter in choices(rows) {
                label { span { (filter.title) } select name=(filter.key) {
                    option value="" { (filter.any) }
                    @for (value, count) in &filter.values { option value=(value.to_lowercase()) { (value) " (" (count) ")" } }
                } }
            }
            label.sorting { span { "Sort by" } select name="sort" {
                option value="" { "family, then speed" }
                @for column in &COLUMNS { option value=(column.key) { (column.title) } }
            } }
            button type="button" name="fold" aria-pressed="false" { "Fold all" }
            button type="reset" { "Clear" }
            output aria-live="polite" {}
        }
    }
}

fn choices(rows: &[&Row<'_>]) -> Vec<Filter> {
    let count = |key, title, any, value: fn(&Row<'_>) -> String| {
        let mut values = BTreeMap::new();
        for value in rows.iter().map(|row| value(row)).filter(|value| !value.is_empty()) {
            *values.entry(value).or_default() += 1;
        }
        Filter { key, title, any, values }
    };
    vec![
        count("hw", "Hardware", "any", |row| row.hardware.clone()),
        count("quant", "Quant", "any", |row| row.quant().to_owned()),
        count("backend", "Backend", "any", |row| row.backend().to_owned()),
        count("shape", "Shape", "range over all", |row| row.shape().to_owned()),
        count("conc", "Users", "any", |row| {
            row.users().map_or_else(String::new, |users| users.to_string())
        }),
        count("kind", "Kind", "any", |row| row.record.kind.name().to_owned()),
        count("badge", "Hard or soft", "any", |row| Line { rows: &[row] }.badge_name().to_owned()),
        count("source", "Source", "any", |row| row.origin().name().to_owned()),
    ]
}

/// Why one model has several speeds: said, and shown by the model with the most shapes.
fn by_workload(material: &Material, rows: &[&Row<'_>]) -> Markup {
    html! {
        details.explain {
            summary { "Why one model has several speeds" }
            p {
                "Tokens per second depend on what is asked. Every token that is written reads all active weights from memory, and the " (term("cached", "cache")) " of everything before it: so speed falls as the context grows, and a machine's memory bandwidth, not its "
                "arithmetic, is the limit. A long prompt is read many tokens at once: " (term("prefill_tok_s", "prefill")) " is arithmetic, and what it costs stands in the "
                (term("ttft_ms", "first token")) ". A model that thinks writes before it answers: what a reader waits for is the " (term("ttfat_ms", "first answer token"))
                ". And several users at once share the machine: each gets slower, and together they are served faster only where answers are computed in one step."
            }
            p { "So a figure without its " (term("shape", "shape")) " and its number of users says little. Where no shape is chosen, the table shows a " (term("range", "range")) " over all that were measured." }
            (charts_of::shapes_of_one(material, rows))
        }
    }
}
