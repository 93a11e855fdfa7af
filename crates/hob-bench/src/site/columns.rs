//! The columns of the table of models: each one's name, its term, and what stands in it.
//! The head, the cells and the phone's labels are made from this one list.

use maud::{Markup, html};

use super::cells;
use super::rows::{Range, Row};
use crate::terms::{Better, Metric};

/// One run, or several that differ in their shape.
pub(super) struct Line<'l, 'r, 'a> {
    pub(super) rows: &'l [&'r Row<'a>],
}

pub(super) struct Column {
    /// In the address.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    /// In the table of terms; empty where the title says it all.
    pub(super) term: &'static str,
    pub(super) kind: ColumnKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Words,
    Number(Better),
}

const fn words(key: &'static str, title: &'static str, term: &'static str) -> Column {
    Column { key, title, term, kind: ColumnKind::Words }
}

const fn number(
    key: &'static str,
    title: &'static str,
    term: &'static str,
    better: Better,
) -> Column {
    Column { key, title, term, kind: ColumnKind::Number(better) }
}

pub(super) const COLUMNS: [Column; 13] = [
    words("model", "variant", ""),
    words("kind", "kind", ""),
    words("quant", "quant", "quant"),
    words("hw", "hardware", ""),
    words("backend", "backend", "backend"),
    number("conc", "conc.", "concurrency", Better::Less),
    number("gen", "gen tok/s", "decode_tok_s", Better::More),
    number("ttft", "ttft", "ttft_ms", Better::Less),
    number("ttfat", "ttfat", "ttfat_ms", Better::Less),
    number("mem", "memory", "memory", Better::Less),
    words("badge", "badge", "soft"),
    number("gap", "production gap", "gap", Better::Less),
    words("date", "date", ""),
];

/// The value that a column sorts by, and what a reader sees.
pub(super) struct Cell {
    pub(super) sort: Option<String>,
    pub(super) shown: Markup,
}

impl Line<'_, '_, '_> {
    fn first(&self) -> &Row<'_> {
        self.rows[0]
    }

    fn range(&self, pick: impl Fn(&Row<'_>) -> Option<Range>) -> Option<Range> {
        Range::over(self.rows.iter().filter(|row| !row.failed()).filter_map(|row| pick(row)))
    }

    pub(super) fn is_hard(&self) -> bool {
        self.rows.iter().all(|row| row.is_hard())
    }

    /// In the order of `COLUMNS`.
    pub(super) fn cells(&self) -> [Cell; 13] {
        let row = self.first();
        let text = |text: &str| Cell {
            sort: (!text.is_empty()).then(|| text.to_lowercase()),
            shown: html! { (text) },
        };
        let gap = self.rows.iter().find_map(|row| row.gap);
        let day = self.rows.iter().filter_map(|row| row.day()).max();
        [
            Cell {
                sort: Some(row.record.model.name.to_lowercase()),
                shown: cells::model_link(row, ""),
            },
            Cell {
                sort: Some(row.record.kind.name().to_owned()),
                shown: html! {
                    (row.record.kind.name())
                    @if !row.prompt().is_empty() { " " span.beside { (row.prompt()) } }
                },
            },
            text(row.quant()),
            Cell { sort: Some(row.hardware.to_lowercase()), shown: cells::rig_link(row, "") },
            Cell {
                sort: (!row.backend().is_empty()).then(|| row.backend().to_lowercase()),
                shown: html! { (row.backend()) " " span.beside { (engine_beside(row)) } },
            },
            Cell {
                sort: row.users().map(|users| users.to_string()),
                shown: html! { @if let Some(users) = row.users() { (users) } },
            },
            self.figure(Metric::DecodeTokS, |row| row.speed()),
            self.figure(Metric::TtftMs, |row| row.range(Metric::TtftMs)),
            self.figure(Metric::TtfatMs, |row| row.range(Metric::TtfatMs)),
            memory(self.range(|row| row.memory_gb().map(|gb| Range { low: gb, high: gb }))),
            Cell { sort: Some(self.badge_name().to_owned()), shown: self.badge() },
            Cell {
                sort: gap.map(|gap| gap.ratio().to_string()),
                shown: html! { @if let Some(gap) = gap { (cells::gap(&gap)) } },
            },
            Cell { sort: day.clone(), shown: html! { @if let Some(day) = day { (day) } } },
        ]
    }

    fn figure(&self, metric: Metric, pick: impl Fn(&Row<'_>) -> Option<Range>) -> Cell {
        let range = self.range(pick);
        let better = metric.term().better;
        let sort = range.map(|range| if better == Better::More { range.high } else { range.low });
        Cell {
            sort: sort.map(|value| value.to_string()),
            shown: html! { @if let Some(range) = range { (cells::range(range, metric.term().unit)) } },
        }
    }

    /// In the filter and in the order of the column.
    pub(super) fn badge_name(&self) -> &'static str {
        match (self.rows.iter().all(|row| row.failed()), self.is_hard()) {
            (true, _) => "failed",
            (false, true) => "hard",
            (false, false) => "soft",
        }
    }

    fn badge(&self) -> Markup {
        cells::badge(self.first(), self.badge_name())
    }
}

/// The engine and its version, without what the backend says already.
fn engine_beside(row: &Row<'_>) -> String {
    let engine = row.engine();
    match engine.strip_prefix(row.backend()) {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => rest.trim().to_owned(),
        _ => engine,
    }
}

fn memory(range: Option<Range>) -> Cell {
    Cell {
        sort: range.map(|range| range.low.to_string()),
        shown: html! { @if let Some(range) = range { (cells::range(range, "GB")) } },
    }
}
