//! Records as rows: what a reader tells them apart by, and the figures in columns.
//! Rows of several shapes become one with a range, as long as no shape is chosen.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Material;
use super::production::Gap;
use crate::families;
use crate::record::{CPU_BACKEND, Cache, Doubt, Kind, Label, Record, SourceType, Spread, slug};
use crate::terms::Metric;

const SLUG_CHARS_MAX: usize = 64;
const MB_PER_GB: f64 = 1e3;

/// One run.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) record: &'a Record,
    pub(super) family: Option<&'a str>,
    pub(super) released: Option<&'a str>,
    pub(super) model_slug: String,
    pub(super) hardware: String,
    pub(super) rig_slug: String,
    pub(super) gap: Option<Gap<'a>>,
    /// Hard once, and too old on the day when the page is built.
    is_stale: bool,
}

/// From the least to the greatest; both the same of one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    fn of(spread: &Spread) -> Option<Range> {
        let one = spread.figure().map(|value| Range { low: value, high: value });
        one.or_else(|| {
            Some(Range { low: spread.min.or(spread.max)?, high: spread.max.or(spread.min)? })
        })
    }

    pub(super) fn over(ranges: impl IntoIterator<Item = Range>) -> Option<Range> {
        ranges
            .into_iter()
            .reduce(|all, one| Range { low: all.low.min(one.low), high: all.high.max(one.high) })
    }
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    Native,
    Imported,
    Published,
}

impl Origin {
    pub(super) fn name(self) -> &'static str {
        match self {
            Origin::Native => "hob",
            Origin::Imported => "imported",
            Origin::Published => "published",
        }
    }
}

/// The newest first, so that the first of its kind is the one that holds.
pub(super) fn rows(material: &Material) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> =
        material.records.iter().map(|record| row(record, material)).collect();
    rows.sort_by(|one, other| {
        let key = |row: &Row<'_>| (row.record.time.started, row.record.id);
        key(other).cmp(&key(one))
    });
    rows
}

fn row<'a>(record: &'a Record, material: &'a Material) -> Row<'a> {
    let hardware = hardware(record);
    // Who measured need not know where a model comes from; its name often says it.
    let known = families::of(&record.model.name);
    Row {
        record,
        family: record.model.family.as_deref().or(known.map(|family| family.name)),
        released: record.model.released.as_deref().or(known.and_then(|family| family.released)),
        model_slug: slug(&record.model.name, SLUG_CHARS_MAX),
        rig_slug: slug(&hardware, SLUG_CHARS_MAX),
        hardware,
        gap: material.production.gap(record),
        is_stale: is_stale(record, material.built),
    }
}

fn is_stale(record: &Record, built: Option<Timestamp>) -> bool {
    let today = built.map(|time| time.to_zoned(TimeZone::UTC).date());
    record.confidence.expires.zip(today).is_some_and(|(expires, today)| expires <= today)
}

/// The card, or the processor where there is none, or where it is said that the engine computes there.
pub fn hardware(record: &Record) -> String {
    let is_on_cpu = record.engine.backend.as_deref() == Some(CPU_BACKEND);
    let cards: Vec<String> = record
        .host
        .accelerators
        .iter()
        .filter(|_| !is_on_cpu)
        .map(|card| match card.count {
            0 | 1 => card.name.clone(),
            count => format!("{count} × {}", card.name),
        })
        .collect();
    match (cards.is_empty(), &record.host.cpu.model) {
        (false, _) => cards.join(" + "),
        (true, Some(cpu)) => cpu.clone(),
        (true, None) => "not said".to_owned(),
    }
}

impl Row<'_> {
    pub(super) fn run_path(&self) -> String {
        // All of the id: its end alone is 32 bits, and two of a thousand may well share those.
        format!("run/{}.html", self.record.id)
    }

    pub(super) fn origin(&self) -> Origin {
        let source = &self.record.source;
        match (source.r#type, source.tool.as_str()) {
            (SourceType::Native, _) => Origin::Native,
            (SourceType::Import, "published") => Origin::Published,
            (SourceType::Import, _) => Origin::Imported,
        }
    }

    pub(super) fn quant(&self) -> &str {
        self.record.model.quant.as_deref().unwrap_or_default()
    }

    pub(super) fn backend(&self) -> &str {
        let engine = &self.record.engine;
        engine.backend.as_deref().or(engine.name.as_deref()).unwrap_or_default()
    }

    pub(super) fn engine(&self) -> String {
        let engine = &self.record.engine;
        let parts = [engine.name.as_deref(), engine.version.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    pub(super) fn shape(&self) -> &str {
        self.record.workload.shape.as_deref().unwrap_or_default()
    }

    /// What tells two runs of one shape apart: the same prompt takes seconds to read, or is known already.
    pub(super) fn prompt(&self) -> &'static str {
        match (self.record.workload.cache, self.record.kind) {
            (Some(Cache::Cached), _) => "known prompt",
            (Some(Cache::Cold), Kind::CtxSweep) => "new prompt",
            _ => "",
        }
    }

    pub(super) fn users(&self) -> Option<u32> {
        self.record.workload.concurrency
    }

    pub(super) fn is_hard(&self) -> bool {
        self.record.confidence.label == Label::Verified && !self.is_stale
    }

    /// Why it is soft; age is a reason that no record knows of itself.
    pub(super) fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = self.record.confidence.reasons.clone();
        if self.is_stale && !doubts.contains(&Doubt::Stale) {
            doubts.push(Doubt::Stale);
        }
        doubts
    }

    pub(super) fn failed(&self) -> bool {
        !self.record.is_valid()
    }

    pub(super) fn is_speech(&self) -> bool {
        matches!(self.record.kind, Kind::Tts | Kind::Stream | Kind::Voice | Kind::Stt)
    }

    pub(super) fn day(&self) -> Option<String> {
        self.record.time.started.map(|time| time.to_string().chars().take(10).collect())
    }

    pub(super) fn range(&self, metric: Metric) -> Option<Range> {
        self.record.metrics.get(metric).and_then(Range::of)
    }

    /// Measured, or else as published: the two are told apart by their badge.
    pub(super) fn speed(&self) -> Option<Range> {
        self.range(Metric::DecodeTokS).or_else(|| self.range(Metric::GenTokS))
    }

    /// Of the card where there is one, else of the machine.
    pub(super) fn memory_gb(&self) -> Option<f64> {
        self.record.resources.memory_mb().map(|mb| mb / MB_PER_GB)
    }

    /// What rows with a range over shapes have in common.
    fn key(&self) -> GroupKey<'_> {
        GroupKey {
            model: &self.record.model.name,
            kind: self.record.kind,
            quant: self.quant(),
            hardware: &self.hardware,
            backend: self.backend(),
            engine: self.record.engine.name.as_deref().unwrap_or_default(),
            stack: self.record.engine.version.as_deref().unwrap_or_default(),
            users: self.users(),
            prompt: self.prompt(),
            origin: self.origin(),
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey<'a> {
    model: &'a str,
    kind: Kind,
    quant: &'a str,
    hardware: &'a str,
    backend: &'a str,
    engine: &'a str,
    stack: &'a str,
    users: Option<u32>,
    prompt: &'a str,
    origin: Origin,
}

/// Rows that differ in their shape only. Of each shape the newest that worked and has a speed counts, or else the newest
/// that worked, or else the newest: a later run that says something else of a model leaves its speed known.
pub(super) fn over_shapes<'r, 'a>(rows: &[&'r Row<'a>]) -> Vec<Vec<&'r Row<'a>>> {
    let mut groups: BTreeMap<GroupKey<'_>, BTreeMap<&str, &'r Row<'a>>> = BTreeMap::new();
    for row in rows {
        let shapes = groups.entry(row.key()).or_default();
        let known = shapes.entry(row.shape()).or_insert(row);
        let worth = |row: &Row<'_>| (!row.failed(), !row.failed() && row.speed().is_some());
        if worth(row) > worth(known) {
            *known = row;
        }
    }
    groups.into_values().map(|shapes| shapes.into_values().collect()).collect()
}
