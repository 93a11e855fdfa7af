//! Reads published runs, transcribed as rows of one metric. Rows that differ only in the metric become one record.
//! A figure without a field in a record is kept as a sentence, so that every published figure stays.

mod places;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Imported;
use super::values::{parse_time, quant};
use crate::record::{
    Accelerator, Host, PromptTokens, Record, RecordKind, RecordedModel, RecordedWorkload,
};

const SCHEMA: &str = "published-runs/1";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: String,
    /// YAML anchors that rows merge.
    #[serde(default, rename = "templates")]
    _templates: Vec<serde::de::IgnoredAny>,
    records: Vec<Row>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    source: String,
    date: Option<String>,
    kind: RecordKind,
    hardware: String,
    engine: Option<String>,
    model: Option<String>,
    quant: Option<String>,
    params_total_b: Option<f64>,
    params_active_b: Option<f64>,
    metric: String,
    value: Option<Value>,
    range: Option<[Option<f64>; 2]>,
    unit: Option<String>,
    #[serde(default)]
    conditions: BTreeMap<String, Value>,
    method: Option<String>,
    /// Always `soft`, because imported figures are unverified.
    #[serde(rename = "confidence")]
    _confidence: String,
    #[serde(default)]
    approx: bool,
    tier: Option<u8>,
    note: Option<String>,
}

pub(super) fn read(text: &str) -> Result<Vec<Imported>, String> {
    let options = serde_saphyr::options! { with_snippet: false };
    let file: File =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA {
        return Err(format!("its schema is {} (expected {SCHEMA})", file.schema));
    }
    let mut groups: Vec<(String, Vec<Row>)> = Vec::new();
    for row in file.records {
        let key = key(&row);
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    Ok(groups
        .iter()
        .map(|(_, rows)| Imported { record: record(rows), samples: Vec::new() })
        .collect())
}

/// The fields that rows of one run share.
fn key(row: &Row) -> String {
    let is_attempt = row.metric == "ctx_attempt";
    let differs = |name: &str| name == "statistic" || is_attempt;
    let conditions: Vec<_> = row.conditions.iter().filter(|(name, _)| !differs(name)).collect();
    format!(
        "{:?}",
        (
            (&row.source, &row.date, row.kind, &row.hardware, &row.engine),
            (&row.model, &row.quant, row.params_total_b, &row.method, conditions),
        )
    )
}

fn record(rows: &[Row]) -> Record {
    let row = &rows[0];
    let mut lossy: Vec<String> =
        row.method.iter().map(|method| format!("method: {method}")).collect();
    lossy.extend(
        row.date.iter().filter(|date| time_of(date).is_none()).map(|date| format!("date: {date}")),
    );
    let mut record = super::record(row.kind, "published", Some(row.source.clone()), lossy);
    record.time.started = row.date.as_deref().and_then(time_of);
    record.host = host(&row.hardware);
    engine(&mut record, row.engine.as_deref());
    // Several stacks of one engine are kept as its versions.
    if let Some(stack) = row.conditions.get("stack") {
        record.engine.version = Some(format!("stack {}", plain(stack)));
    }
    record.engine.params.flash_attn = row.conditions.get("flash_attn").and_then(Value::as_bool);
    record.model = described(row);
    record.workload = workload(row, &mut record.source.lossy);
    for row in rows {
        places::put(&mut record, row);
        let note = row.note.as_ref().map(|note| format!("{}: {note}", row.metric));
        record.source.lossy.extend(note.filter(|note| !record.source.lossy.contains(note)));
    }
    record
}

/// The beginning of a day. `None` for a month without a day.
fn time_of(date: &str) -> Option<jiff::Timestamp> {
    date.parse::<jiff::civil::Date>().ok().and_then(|_| parse_time(&format!("{date}T00:00:00")))
}

fn described(row: &Row) -> RecordedModel {
    let name = row.model.as_deref().unwrap_or("not named");
    RecordedModel {
        name: name.to_owned(),
        quant: row.quant.clone().or_else(|| quant(name)),
        params_b: row.params_total_b,
        active_b: row.params_active_b,
        ..RecordedModel::default()
    }
}

/// A processor if the text names one, otherwise an accelerator with the text as its name.
fn host(text: &str) -> Host {
    let mut host = Host::default();
    match text.contains("CPU") || text.contains("Ryzen") {
        true => host.cpu.model = Some(text.to_owned()),
        false => {
            host.accelerators =
                vec![Accelerator { name: text.to_owned(), count: 1, ..Accelerator::default() }]
        }
    }
    host
}

/// `Ollama 0.20.6, Vulkan`: a name, perhaps a version, perhaps what it computes with.
fn engine(record: &mut Record, text: Option<&str>) {
    let Some(text) = text else { return };
    let first = text.split(',').next().unwrap_or(text).trim();
    let version =
        first.rsplit_once(' ').filter(|(_, last)| last.starts_with(|c: char| c.is_ascii_digit()));
    let (name, version) =
        version.map_or((first, None), |(name, version)| (name, Some(version.to_owned())));
    let lower = text.to_lowercase();
    let backend = ["vulkan", "cuda", "metal", "rocm", "mlx", "cpu"]
        .into_iter()
        .find(|word| lower.contains(word));
    // What follows the comma stays in the name if it is no known backend.
    record.engine.name =
        Some(if text.contains(',') && backend.is_none() { text } else { name }.to_owned());
    record.engine.version = version;
    record.engine.backend = backend.map(str::to_owned);
}

/// The workload from its conditions. Unknown conditions are kept as text.
fn workload(row: &Row, lossy: &mut Vec<String>) -> RecordedWorkload {
    let mut workload = RecordedWorkload::default();
    let count = |value: &Value| value.as_u64().and_then(|count| u32::try_from(count).ok());
    for (name, value) in &row.conditions {
        match (name.as_str(), value) {
            ("text", Value::String(text)) => workload.shape = Some(text.clone()),
            ("concurrency" | "batch", value) => workload.concurrency = count(value),
            ("max_tokens", value) => workload.max_tokens = value.as_u64(),
            ("ctx", value) => {
                workload.shape = value.as_u64().map(|ctx| format!("ctx_{ctx}"));
                workload.prompt_tokens =
                    Some(PromptTokens { target: value.as_u64(), ..PromptTokens::default() });
            }
            // `places::put` and `record` read these; `pages` only repeats the context.
            (
                "chars" | "statistic" | "voice" | "format" | "outcome" | "pages" | "vram_used"
                | "stack" | "flash_attn",
                _,
            ) => {}
            (name, value) => lossy.push(format!("{name}: {}", plain(value))),
        }
    }
    workload
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
