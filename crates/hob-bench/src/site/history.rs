//! The same cell measured again: which run came before which, and how a figure moved over time.
//! A cell is a model, a machine, an engine and a question; the engine's version may change, and is what one looks for.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::chart::{Point, Series, over_time};
use super::model::differing;
use super::rows::Row;
use crate::compare::{Holds, aspects, unfit};
use crate::record::Kind;
use crate::terms::Metric;

/// Drawn where they were measured more than once.
const DRAWN: [(Metric, &str); 4] = [
    (Metric::DecodeTokS, "Writing, over time"),
    (Metric::TtftMs, "First token, over time"),
    (Metric::TtfaMs, "First sound, over time"),
    (Metric::ThroughputTokS, "All users together, over time"),
];

/// Aspects that a reader needs where all else is the same.
const MORE: [&str; 3] = ["cache", "reasoning", "voice"];

type Key = Vec<Option<String>>;

/// All runs by their cell, the newest first.
pub(super) struct Cells<'r, 'a> {
    runs: BTreeMap<Key, Vec<&'r Row<'a>>>,
}

/// None of what has no time, or cannot be compared with anything.
fn key(row: &Row<'_>) -> Option<Key> {
    if unfit(row.record).is_some() || row.record.time.started.is_none() {
        return None;
    }
    let engine = row.record.engine.name.clone();
    let own = [
        Some(row.record.model.name.clone()),
        Some(row.quant().to_owned()),
        engine,
        Some(row.backend().to_owned()),
        Some(row.origin().name().to_owned()),
    ];
    let shared = aspects(row.record).into_iter().filter(|aspect| {
        aspect.holds == Holds::All || aspect.what == "machine" || aspect.what == "voice"
    });
    Some(own.into_iter().chain(shared.map(|aspect| aspect.value)).collect())
}

impl<'r, 'a> Cells<'r, 'a> {
    /// `rows` come with the newest first.
    pub(super) fn of(rows: impl IntoIterator<Item = &'r Row<'a>>) -> Cells<'r, 'a> {
        let mut runs: BTreeMap<Key, Vec<&'r Row<'a>>> = BTreeMap::new();
        for row in rows {
            if let Some(key) = key(row) {
                runs.entry(key).or_default().push(row);
            }
        }
        runs.retain(|_, runs| runs.len() > 1);
        Cells { runs }
    }

    /// The run of the same cell before this one.
    pub(super) fn before(&self, row: &Row<'_>) -> Option<&'r Row<'a>> {
        let runs = self.runs.get(&key(row)?)?;
        let at = runs.iter().position(|run| run.record.id == row.record.id)?;
        runs.get(at + 1).copied()
    }

    /// Of each cell the latest run and the one before it, those that ran last first.
    pub(super) fn latest_pairs(&self) -> Vec<[&'r Row<'a>; 2]> {
        let mut pairs: Vec<[&Row<'a>; 2]> =
            self.runs.values().map(|runs| [runs[1], runs[0]]).collect();
        pairs.sort_by_key(|[_, new]| (std::cmp::Reverse(new.record.time.started), new.record.id));
        pairs
    }
}

/// Charts of what was measured more than once; those cells that ran last first.
pub(super) fn charts(rows: &[&Row<'_>]) -> Markup {
    let cells = Cells::of(rows.iter().copied());
    let mut runs: Vec<&Vec<&Row<'_>>> =
        cells.runs.values().filter(|runs| runs[0].record.kind != Kind::CtxSweep).collect();
    runs.sort_by_key(|runs| std::cmp::Reverse(runs[0].record.time.started));
    let newest: Vec<&Row<'_>> = runs.iter().map(|runs| runs[0]).collect();
    let series = |metric| -> Vec<Series> {
        let of_one = |runs: &&Vec<&Row<'_>>| Series {
            name: name(runs[0], &newest),
            points: runs.iter().rev().filter_map(|row| point(row, metric)).collect(),
        };
        runs.iter().map(of_one).filter(|series| series.points.len() > 1).collect()
    };
    let drawn: Vec<(Metric, &str, Vec<Series>)> = DRAWN
        .into_iter()
        .map(|(metric, title)| (metric, title, series(metric)))
        .filter(|(_, _, series)| !series.is_empty())
        .collect();
    html! { @if !drawn.is_empty() { section {
        h2 { "Over time" }
        p.beside { "What was measured again, asked the same on the same machine. Whiskers are 95 % intervals." }
        div.charts { @for (metric, title, series) in drawn { (over_time(title, metric.term().unit, &series)) } }
    } } }
}

/// What tells it from the others; cache and thinking only where nothing else does.
fn name(row: &Row<'_>, among: &[&Row<'_>]) -> String {
    let own = differing(row, among);
    let is_taken =
        |other: &&Row<'_>| other.record.id != row.record.id && differing(other, among) == own;
    if !among.iter().any(is_taken) {
        return own;
    }
    let more = aspects(row.record).into_iter().filter(|aspect| MORE.contains(&aspect.what));
    let more = more.filter_map(|aspect| Some(format!("{} {}", aspect.what, aspect.value?)));
    [own].into_iter().chain(more).collect::<Vec<_>>().join(" · ")
}

fn point(row: &Row<'_>, metric: Metric) -> Option<Point> {
    let spread = row.record.metrics.get(metric)?;
    let x = row.record.time.started?.as_second() as f64;
    Some(Point { x, y: spread.figure()?, interval: spread.ci95 })
}
