//! Each record with what the page needs and the record does not say: family, hardware, origin, age, production.
//! The newest record comes first.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rayon::prelude::*;
use serde::Serialize;
use uuid::Uuid;

use super::Material;
use super::cells::Cells;
use super::comparison::ComparedBy;
use super::production::Gap;
use crate::families;
use crate::record::{Doubt, Label, Record, RecordedClientCheck, SourceType, slug};
use crate::speech::Text;

const SLUG_CHARS_MAX: usize = 64;
const MB_PER_GB: f64 = 1e3;

/// One run, as the page's script reads it.
#[derive(Debug, Serialize)]
pub(super) struct Run<'a> {
    pub(super) record: &'a Record,
    pub(super) short_id: String,
    family: Option<&'a str>,
    released: Option<&'a str>,
    /// Names the model's page.
    model_slug: String,
    hardware: String,
    /// Names the machine's page.
    machine_slug: String,
    origin: Origin,
    label: RunLabel,
    /// Why the run is unverified. Age is a reason that the record itself cannot know.
    doubts: Vec<Doubt>,
    memory_gb: Option<f64>,
    production: Option<Gap<'a>>,
    /// Whether the text is one of the three that give a speech engine its tier.
    is_of_tiers: bool,
    has_samples: bool,
    has_items: bool,
    /// As text: a script's numbers have only 53 bits.
    seed: Option<String>,
    selftest: Option<String>,
    /// What the scaling of a run with several users means, in words.
    scaling: Option<&'static str>,
    /// The number of the cell, where it was measured more than once.
    cell: Option<usize>,
    /// The run of the same cell before this one.
    before: Option<Uuid>,
    pub(super) compared_by: ComparedBy,
}

/// Who measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Hob,
    Imported,
    Published,
}

/// Whether a figure can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum RunLabel {
    Verified,
    Unverified,
    Failed,
}

pub(super) fn runs(material: &Material) -> Vec<Run<'_>> {
    let mut records: Vec<&Record> = material.records.iter().collect();
    records.sort_by_key(|record| std::cmp::Reverse((record.time.started, record.id)));
    let cells = Cells::from_records(&records);
    records.par_iter().map(|record| run(record, material, &cells)).collect()
}

fn run<'a>(record: &'a Record, material: &'a Material, cells: &Cells<'_>) -> Run<'a> {
    let hardware = record.hardware();
    let known_family = families::family_of_model(&record.model.name);
    let is_stale = is_stale(record, material.built);
    let mut doubts = record.confidence.reasons.clone();
    if is_stale && !doubts.contains(&Doubt::Stale) {
        doubts.push(Doubt::Stale);
    }
    let label = match record.confidence.label {
        _ if !record.is_valid() => RunLabel::Failed,
        Label::Verified if !is_stale => RunLabel::Verified,
        _ => RunLabel::Unverified,
    };
    let (cell, before) = cells.place(record).unzip();
    let harness = record.harness.as_ref();
    let selftest = harness.and_then(|harness| harness.selftest.as_ref());
    Run {
        record,
        short_id: record.short_id(),
        // Ollama calls a family `qwen2` or `llama`, and a model must not be in two families.
        family: known_family.map(|family| family.name).or(record.model.family.as_deref()),
        released: record
            .model
            .released
            .as_deref()
            .or(known_family.and_then(|family| family.released)),
        model_slug: slug(&record.model.name, SLUG_CHARS_MAX),
        machine_slug: slug(&hardware, SLUG_CHARS_MAX),
        hardware,
        origin: origin(record),
        label,
        doubts,
        memory_gb: record.resources.memory_mb().map(|mb| mb / MB_PER_GB),
        production: material.production.gap(record),
        is_of_tiers: is_of_tiers(record),
        has_samples: material.samples.contains_key(&record.id),
        has_items: material.answers.contains_key(&record.id),
        seed: harness.map(|harness| harness.seed.to_string()),
        selftest: selftest.map(RecordedClientCheck::summary),
        scaling: record
            .slowdown
            .as_ref()
            .and_then(|slowdown| slowdown.scaling)
            .map(crate::experiment::scaling_verdict),
        cell,
        before: before.flatten(),
        compared_by: ComparedBy::from_record(record, material.samples.get(&record.id)),
    }
}

fn origin(record: &Record) -> Origin {
    match (record.source.r#type, record.source.tool.as_str()) {
        (SourceType::Native, _) => Origin::Hob,
        (SourceType::Import, "published") => Origin::Published,
        (SourceType::Import, _) => Origin::Imported,
    }
}

fn is_stale(record: &Record, built: Option<Timestamp>) -> bool {
    let today = built.map(|time| time.to_zoned(TimeZone::UTC).date());
    record.confidence.expires.zip(today).is_some_and(|(expires, today)| expires <= today)
}

/// Published runs name only the length of their text. Own runs name the text.
fn is_of_tiers(record: &Record) -> bool {
    let text = record.workload.shape.as_deref().and_then(Text::by_name);
    let is_alone = record.workload.concurrency.is_none_or(|users| users == 1);
    record.source.r#type == SourceType::Import || is_alone && text.is_some_and(Text::is_of_tiers)
}
