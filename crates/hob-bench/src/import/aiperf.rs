//! Reads AIPerf's `profile_export.jsonl`: one request on each line, each figure with its unit.
//! Its time to the first token includes the connection. Requests before the profiling phase are warm-up and left out.

pub(super) mod summary;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Imported;
use super::values::{micros, model, spread};
use crate::record::{CountSource, RawSample, Record, RecordKind, RecordedTokens, RecordedWorkload};
use crate::terms::Metric;

#[derive(Debug, Deserialize)]
pub(super) struct Line {
    metadata: Metadata,
    #[serde(default)]
    metrics: BTreeMap<String, Figure>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    benchmark_phase: String,
    credit_issued_ns: Option<i128>,
    request_start_ns: Option<i128>,
    request_end_ns: Option<i128>,
    model: Option<String>,
    #[serde(default)]
    was_cancelled: bool,
}

#[derive(Debug, Deserialize)]
struct Figure {
    value: Value,
    #[serde(default)]
    unit: String,
}

/// The figures that are read. All others are listed as lost.
const READ: [(&str, Metric); 11] = [
    ("time_to_first_token", Metric::TtftMs),
    ("time_to_first_output_token", Metric::TtfatMs),
    ("request_latency", Metric::E2eMs),
    ("inter_token_latency", Metric::TpotMs),
    ("inter_chunk_latency", Metric::IcgMs),
    ("usage_prompt_tokens", Metric::PromptTokens),
    ("usage_completion_tokens", Metric::CompletionTokens),
    ("usage_reasoning_tokens", Metric::ReasoningTokens),
    ("usage_prompt_cache_read_tokens", Metric::CachedTokens),
    ("reasoning_token_count", Metric::ReasoningTokens),
    ("output_token_count", Metric::ContentTokens),
];

pub(super) fn read(lines: Vec<Line>) -> Result<Vec<Imported>, String> {
    let all = lines.len();
    let lines: Vec<Line> =
        lines.into_iter().filter(|line| line.metadata.benchmark_phase == "profiling").collect();
    if lines.is_empty() && all > 0 {
        return Err(format!("its {all} requests have no phase `profiling`"));
    }
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let mut lossy = vec!["the time to the first token includes the connection".to_owned()];
    lossy.extend(unread(&lines));
    let mut record = super::record(RecordKind::Llm, "aiperf", None, lossy);
    let name = lines.iter().find_map(|line| line.metadata.model.as_deref());
    record.model = model(name.unwrap_or("unnamed"));
    let starts = || lines.iter().filter_map(|line| line.metadata.request_start_ns);
    record.time.started = starts().min().and_then(|ns| jiff::Timestamp::from_nanosecond(ns).ok());
    let ends = lines.iter().filter_map(|line| line.metadata.request_end_ns);
    record.time.ended = ends.max().and_then(|ns| jiff::Timestamp::from_nanosecond(ns).ok());
    record.workload = RecordedWorkload {
        requests: Some(lines.len() as u64),
        warmup: Some((all - lines.len()) as u64),
        ..RecordedWorkload::default()
    };
    let is_counted = lines.iter().any(|line| line.metrics.contains_key("usage_completion_tokens"));
    record.count_source =
        Some(if is_counted { CountSource::Usage } else { CountSource::Tokenizer });
    fill(&mut record, &lines);
    let first =
        lines.iter().filter_map(|line| line.metadata.credit_issued_ns).min().unwrap_or_default();
    let samples = lines.iter().map(|line| sample(line, first)).collect();
    Ok(vec![Imported { record, samples }])
}

fn failed(line: &Line) -> bool {
    line.metadata.was_cancelled || line.error.as_ref().is_some_and(|error| !error.is_null())
}

fn unread(lines: &[Line]) -> Option<String> {
    let names: std::collections::BTreeSet<&str> =
        lines.iter().flat_map(|line| line.metrics.keys()).map(String::as_str).collect();
    let lost: Vec<&str> =
        names.into_iter().filter(|name| READ.iter().all(|(read, _)| read != name)).collect();
    (!lost.is_empty()).then(|| format!("figures: {}", lost.join(", ")))
}

/// Times in milliseconds, and other values unchanged.
fn values(line: &Line, name: &str) -> Vec<f64> {
    let Some(figure) = line.metrics.get(name) else { return Vec::new() };
    let scale = scale(&figure.unit);
    let list =
        figure.value.as_array().map_or_else(|| std::slice::from_ref(&figure.value), Vec::as_slice);
    list.iter().filter_map(Value::as_f64).map(|value| value * scale).collect()
}

/// The factor from a unit of time to milliseconds, or 1.
fn scale(unit: &str) -> f64 {
    match unit {
        "ns" => 1e-6,
        "us" => 1e-3,
        "s" | "sec" => 1e3,
        _ => 1.0,
    }
}

fn fill(record: &mut Record, lines: &[Line]) {
    let ok = || lines.iter().filter(|line| !failed(line));
    for (name, metric) in READ {
        if let Some(figures) = spread(ok().flat_map(|line| values(line, name))) {
            record.metrics.spreads.entry(metric).or_insert(figures);
        }
    }
    let rates = ok().flat_map(|line| values(line, "inter_token_latency")).filter(|ms| *ms > 0.0);
    let late = ok().filter_map(|line| {
        Some((line.metadata.request_start_ns? - line.metadata.credit_issued_ns?) as f64 / 1e6)
    });
    record.metrics.extend([
        (Metric::DecodeTokS, spread(rates.map(|ms| 1e3 / ms))),
        (Metric::DispatchMs, spread(late)),
    ]);
    record.metrics.errors = Some(lines.iter().filter(|line| failed(line)).count() as u64);
}

fn sample(line: &Line, first: i128) -> RawSample {
    let one = |name: &str| values(line, name).first().and_then(|ms| micros(ms / 1e3));
    let count = |name: &str| values(line, name).first().map(|count| *count as u64);
    let since = |from: Option<i128>, to: Option<i128>| micros((to? - from?) as f64 / 1e9);
    let metadata = &line.metadata;
    RawSample {
        t_sched_us: since(Some(first), metadata.credit_issued_ns),
        dispatch_us: since(metadata.credit_issued_ns, metadata.request_start_ns),
        ttft_us: one("time_to_first_token"),
        ttfat_us: one("time_to_first_output_token"),
        e2e_us: one("request_latency"),
        gaps_us: values(line, "inter_chunk_latency")
            .iter()
            .filter_map(|ms| micros(ms / 1e3))
            .collect(),
        tokens: RecordedTokens {
            prompt: count("usage_prompt_tokens"),
            cached: count("usage_prompt_cache_read_tokens"),
            reasoning: count("usage_reasoning_tokens"),
            content: count("output_token_count"),
        },
        error: failed(line).then(|| "failed".to_owned()),
        ..RawSample::default()
    }
}
