//! Reads llama-benchy: llama-bench's table over HTTP, with the values of each run.
//! It counts one chunk as one token. Its figures of a batch are not figures of one request.

use serde::Deserialize;

use super::Imported;
use super::values::{UnreadFields, model, parse_time, spread, unread_fields};
use crate::record::{Cache, CountSource, Loop, PromptTokens, Record, RecordKind, RecordedWorkload};
use crate::terms::Metric;

#[derive(Debug, Deserialize)]
pub(super) struct Report {
    version: Option<String>,
    timestamp: Option<String>,
    model: Option<String>,
    prefix_caching_enabled: Option<bool>,
    benchmarks: Vec<Run>,
    #[serde(flatten)]
    rest: UnreadFields,
}

#[derive(Debug, Deserialize)]
struct Run {
    concurrency: Option<u32>,
    #[serde(default)]
    context_size: u64,
    #[serde(default)]
    prompt_size: u64,
    response_size: Option<u64>,
    #[serde(default)]
    is_context_prefill_phase: bool,
    pp_req_throughput: Option<Values>,
    pp_throughput: Option<Values>,
    tg_req_throughput: Option<Values>,
    tg_throughput: Option<Values>,
    ttfr: Option<Values>,
    e2e_ttft: Option<Values>,
    #[serde(flatten)]
    rest: UnreadFields,
}

#[derive(Clone, Debug, Deserialize)]
struct Values {
    #[serde(default)]
    values: Vec<f64>,
}

pub(super) fn read(report: Report) -> Result<Vec<Imported>, String> {
    let run = |run: &Run| Imported { record: record(&report, run), samples: Vec::new() };
    Ok(report.benchmarks.iter().map(run).collect())
}

fn record(report: &Report, run: &Run) -> Record {
    let mut lossy = vec!["token counts: one chunk counts as one token".to_owned()];
    if run.is_context_prefill_phase {
        lossy.push("this run filled the context for the next one".to_owned());
    }
    lossy.extend(unread_fields(&report.rest));
    lossy.extend(unread_fields(&run.rest));
    let kind = if run.context_size > 0 { RecordKind::CtxSweep } else { RecordKind::Llm };
    let mut record = super::record(kind, "llama-benchy", report.version.clone(), lossy);
    record.time.started = report.timestamp.as_deref().and_then(parse_time);
    record.model = model(report.model.as_deref().unwrap_or("unnamed"));
    record.count_source = Some(CountSource::Chunks);
    record.workload = workload(report, run);
    let users = f64::from(run.concurrency.unwrap_or(1));
    // Older versions have figures of the batch only. For one user they are the same.
    let single = |each: &Option<Values>, all: &Option<Values>| {
        each.clone().or_else(|| all.clone().filter(|_| users <= 1.0))
    };
    let rows = [
        (
            Metric::PrefillTokS,
            single(&run.pp_req_throughput, &run.pp_throughput),
            "client_estimate",
        ),
        (Metric::DecodeTokS, single(&run.tg_req_throughput, &run.tg_throughput), ""),
        (Metric::ThroughputTokS, run.tg_throughput.clone(), ""),
        (Metric::TtfbMs, run.ttfr.clone(), "first response"),
        (Metric::TtftMs, run.e2e_ttft.clone(), ""),
    ];
    for (metric, values, method) in rows {
        if let Some(mut figures) = values.and_then(|values| spread(values.values)) {
            figures.method = (!method.is_empty()).then(|| method.to_owned());
            record.metrics.spreads.insert(metric, figures);
        }
    }
    let runs = record.metrics.get(Metric::ThroughputTokS).and_then(|figures| figures.n);
    record.confidence.runs = runs.and_then(|runs| u32::try_from(runs).ok());
    record
}

fn workload(report: &Report, run: &Run) -> RecordedWorkload {
    let tokens = run.response_size.unwrap_or_default();
    let shape = match run.context_size {
        0 => format!("{}/{tokens}", run.prompt_size),
        depth => format!("ctx_{depth}"),
    };
    let prompt = run.context_size + run.prompt_size;
    let cache = match report.prefix_caching_enabled {
        Some(false) => Some(Cache::Cold),
        Some(true) => Some(Cache::Mixed),
        None => None,
    };
    RecordedWorkload {
        shape: Some(shape),
        prompt_tokens: Some(PromptTokens { target: Some(prompt), ..PromptTokens::default() }),
        max_tokens: run.response_size,
        r#loop: Some(Loop::Closed),
        concurrency: run.concurrency,
        cache,
        cache_verified: Some(false),
        ..RecordedWorkload::default()
    }
}
