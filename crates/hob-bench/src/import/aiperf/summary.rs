//! Reads AIPerf's `profile_export_aiperf.json`: the spreads over all requests, and the settings of the run.
//! The file of individual requests (`profile_export.jsonl`) may not name the model, and has no number of users: both come from here.

use serde::Deserialize;
use serde_json::Value;

use super::super::Imported;
use super::super::values::{P95_VALUES_MIN, P99_VALUES_MIN, UnreadFields, model, parse_time};
use super::{READ, scale};
use crate::record::{CountSource, Loop, Record, RecordKind, RecordedWorkload, Spread};
use crate::terms::Metric;

#[derive(Debug, Deserialize)]
pub(in super::super) struct Summary {
    aiperf_version: Option<String>,
    #[serde(default)]
    input_config: Value,
    start_time: Option<String>,
    end_time: Option<String>,
    #[serde(default)]
    error_summary: Vec<Failures>,
    #[serde(flatten)]
    rest: UnreadFields,
}

#[derive(Debug, Deserialize)]
struct Failures {
    #[serde(default)]
    count: u64,
}

#[derive(Debug, Deserialize)]
struct Figure {
    #[serde(default)]
    unit: String,
    count: Option<u64>,
    avg: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
}

/// Figures of the whole run, in addition to those of individual requests.
const READ_OF_RUN: [(&str, Metric); 4] = [
    ("output_token_throughput_per_user", Metric::DecodeTokS),
    ("output_token_throughput", Metric::ThroughputTokS),
    ("request_throughput", Metric::RequestsS),
    ("credit_to_start_latency", Metric::DispatchMs),
];

pub(in super::super) fn read(summary: &Summary) -> Result<Vec<Imported>, String> {
    let mut lossy = vec![
        "individual requests, which are in profile_export.jsonl".to_owned(),
        "the time to the first token includes the connection".to_owned(),
    ];
    lossy.extend(unread_figures(&summary.rest));
    let mut record =
        super::super::record(RecordKind::Llm, "aiperf", summary.aiperf_version.clone(), lossy);
    record.time.started = summary.start_time.as_deref().and_then(parse_time);
    record.time.ended = summary.end_time.as_deref().and_then(parse_time);
    let requests = figure(&summary.rest, "request_count").and_then(|figure| figure.avg);
    record.workload =
        RecordedWorkload { requests: requests.map(|n| n as u64), ..RecordedWorkload::default() };
    let is_counted = summary.rest.contains_key("usage_completion_tokens");
    record.count_source =
        Some(if is_counted { CountSource::Usage } else { CountSource::Tokenizer });
    for (name, metric) in READ.into_iter().chain(READ_OF_RUN) {
        if let Some(figure) = figure(&summary.rest, name) {
            record.metrics.spreads.entry(metric).or_insert_with(|| figure.spread());
        }
    }
    record.metrics.errors = Some(summary.error_summary.iter().map(|failed| failed.count).sum());
    if record.metrics.spreads.is_empty() {
        return Err("it has no known figure".to_owned());
    }
    summary.complete(&mut record);
    Ok(vec![Imported { record, samples: Vec::new() }])
}

impl Summary {
    /// Adds the model and the load, which are the settings of the run.
    pub(in super::super) fn complete(&self, record: &mut Record) {
        let text = |pointer| self.input_config.pointer(pointer).and_then(Value::as_str);
        if let Some(name) = text("/models/items/0/name") {
            record.model = model(name);
        }
        let phases = self.input_config.get("phases").and_then(Value::as_array);
        let profile = phases.into_iter().flatten().find(|phase| phase["kind"] == "profiling");
        let Some(profile) = profile else { return };
        let users = profile["concurrency"].as_u64().and_then(|users| u32::try_from(users).ok());
        let rate = profile["rate"].as_f64().or(profile["request_rate"].as_f64());
        record.workload.concurrency = users;
        record.workload.rate = rate;
        record.workload.r#loop = Some(if rate.is_some() { Loop::Open } else { Loop::Closed });
    }
}

impl Figure {
    fn spread(&self) -> Spread {
        let scaled = |value: Option<f64>| value.map(|value| value * scale(&self.unit));
        let of_enough = |value: Option<f64>, needs: usize| {
            scaled(value).filter(|_| self.count.is_some_and(|n| n >= needs as u64))
        };
        Spread {
            n: self.count,
            min: scaled(self.min),
            p50: scaled(self.p50),
            p95: of_enough(self.p95, P95_VALUES_MIN),
            p99: of_enough(self.p99, P99_VALUES_MIN),
            max: scaled(self.max),
            mean: scaled(self.avg),
            ..Spread::default()
        }
    }
}

fn figure(rest: &UnreadFields, name: &str) -> Option<Figure> {
    serde_json::from_value(rest.get(name)?.clone()).ok()
}

fn unread_figures(rest: &UnreadFields) -> Option<String> {
    let is_read = |name: &str| {
        name == "request_count" || READ.iter().chain(&READ_OF_RUN).any(|(read, _)| *read == name)
    };
    let names: Vec<&str> = rest.keys().map(String::as_str).filter(|name| !is_read(name)).collect();
    (!names.is_empty()).then(|| format!("figures: {}", names.join(", ")))
}
