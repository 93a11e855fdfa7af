//! The files that the script reads: `records.js` with all runs, and one file per run with its text and samples.
//! They are scripts and not JSON, because a browser fetches no JSON from disk.

use serde::Serialize;
use serde_json::Value;

use super::evals::{EvalSet, ItemData, evals, items};
use super::rules::{Rules, rules};
use super::runs::Run;
use super::{Material, Queued};
use crate::record::{Doubt, RawSample, Record, to_yaml};
use crate::terms::{MetricDefinition, SYMBOLS, definitions};

/// Samples of one run that the page draws. The samples file has all of them.
const SAMPLES_MAX: usize = 2_000;

#[derive(Serialize)]
struct Records<'a> {
    /// The day, such as `2026-11-21`.
    built: Option<String>,
    skipped: &'a [String],
    folder: Option<&'static str>,
    runs: &'a [Run<'a>],
    rules: Rules,
    queued: &'a [Queued],
    evals: Vec<EvalSet>,
    terms: Vec<&'static MetricDefinition>,
    symbols: Vec<(&'static str, &'static str)>,
    doubts: Vec<(Doubt, &'static str)>,
}

pub(super) fn records_js(material: &Material, runs: &[Run<'_>]) -> String {
    let records = Records {
        built: material.built.map(|time| time.to_string().chars().take(10).collect()),
        skipped: &material.skipped,
        folder: material.folder,
        runs,
        rules: rules(material, runs),
        queued: &material.queued,
        evals: evals(material),
        terms: definitions().collect(),
        symbols: SYMBOLS.to_vec(),
        doubts: Doubt::ALL.map(|doubt| (doubt, doubt.meaning())).to_vec(),
    };
    format!("const benchmarks = {};\n", parsed_by_script(&records))
}

#[derive(Serialize)]
struct RunDetails<'a> {
    id: uuid::Uuid,
    /// The record as it is kept.
    yaml: String,
    /// Null where the samples are not here.
    samples: Option<Vec<SampleData<'a>>>,
    samples_left_out: usize,
    /// Null where the answers are not here.
    items: Option<Vec<ItemData<'a>>>,
    items_left_out: usize,
}

#[derive(Serialize)]
struct SampleData<'a> {
    run: u32,
    ttft_ms: Option<f64>,
    ttfat_ms: Option<f64>,
    ttfa_ms: Option<f64>,
    e2e_ms: Option<f64>,
    worst_gap_ms: Option<f64>,
    reasoning: Option<u64>,
    content: Option<u64>,
    ended: Option<&'a str>,
}

impl SampleData<'_> {
    fn of(sample: &RawSample) -> SampleData<'_> {
        let ms = |us: Option<u64>| us.map(|us| us as f64 / 1e3);
        SampleData {
            run: sample.run,
            ttft_ms: ms(sample.ttft_us),
            ttfat_ms: ms(sample.ttfat_us),
            ttfa_ms: ms(sample.ttfa_us),
            e2e_ms: ms(sample.e2e_us),
            worst_gap_ms: ms(sample.gaps_us.iter().copied().max()),
            reasoning: sample.tokens.reasoning,
            content: sample.tokens.content,
            ended: sample.error.as_deref().or(sample.finish.as_deref()),
        }
    }
}

pub(super) fn run_js(material: &Material, record: &Record) -> String {
    let samples = material.samples.get(&record.id);
    let (items, items_left_out) = items(material, record);
    let details = RunDetails {
        items,
        items_left_out,
        id: record.id,
        yaml: to_yaml(record).unwrap_or_default(),
        samples_left_out: samples.map_or(0, |all| all.len().saturating_sub(SAMPLES_MAX)),
        samples: samples.map(|all| all.iter().take(SAMPLES_MAX).map(SampleData::of).collect()),
    };
    format!("showDetails({});\n", parsed_by_script(&details))
}

/// An expression that gives the value. `JSON.parse` is faster than a literal and gives `__proto__` no meaning.
fn parsed_by_script(value: &impl Serialize) -> String {
    // Serialising can fail only for maps whose keys are not text, and there are none.
    let mut value = serde_json::to_value(value).unwrap_or_default();
    strip_unknown(&mut value);
    let json = value.to_string();
    let text = json
        .replace('\\', r"\\")
        .replace('\'', r"\'")
        .replace('\u{2028}', r"\u2028")
        .replace('\u{2029}', r"\u2029");
    format!("JSON.parse('{text}')")
}

/// Drops nulls from objects: half of a record is unknown, and the script reads an absent field as unknown.
fn strip_unknown(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip_unknown);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_unknown),
        _ => {}
    }
}
