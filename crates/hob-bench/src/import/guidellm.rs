//! Reads GuideLLM's report of version 2: every request with the times of its first and last token.
//! It does not read `time_per_output_token_ms`, because that includes the wait for the first token.

use serde::Deserialize;
use serde_json::Value;

use super::Imported;
use super::values::{UnreadFields, micros, model, spread, timestamp_of_unix_s, unread_fields};
use crate::record::{
    CountSource, Loop, RawSample, Record, RecordKind, RecordedTokens, RecordedWorkload,
};
use crate::terms::Metric;

#[derive(Debug, Deserialize)]
pub(super) struct Report {
    metadata: Option<Metadata>,
    #[serde(default)]
    args: Value,
    benchmarks: Vec<Benchmark>,
    #[serde(flatten)]
    rest: UnreadFields,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    guidellm_version: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Benchmark {
    #[serde(default)]
    config: Value,
    start_time: Option<f64>,
    end_time: Option<f64>,
    requests: Requests,
    #[serde(flatten)]
    rest: UnreadFields,
}

#[derive(Debug, Deserialize)]
struct Requests {
    #[serde(default)]
    successful: Vec<Request>,
    #[serde(default)]
    errored: Vec<Value>,
    #[serde(default)]
    incomplete: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Request {
    info: Info,
    inter_token_latency_ms: Option<f64>,
    prompt_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Info {
    timings: Timings,
}

/// Times in seconds since 1970.
#[derive(Debug, Deserialize)]
struct Timings {
    targeted_start: Option<f64>,
    request_start: Option<f64>,
    first_token_iteration: Option<f64>,
    first_output_token_iteration: Option<f64>,
    last_token_iteration: Option<f64>,
}

pub(super) fn read(report: Report) -> Result<Vec<Imported>, String> {
    let version = report.metadata.as_ref().and_then(|metadata| metadata.guidellm_version.clone());
    let name = text(&report.args, "/model").or_else(|| text(&report.args, "/backend_kwargs/model"));
    let imported = |benchmark: &Benchmark| {
        let mut lossy = vec![
            "time_per_output_token_ms, which includes the wait for the first token".to_owned(),
        ];
        lossy.extend(unread_fields(&report.rest));
        lossy.extend(unread_fields(&benchmark.rest));
        let mut record = super::record(RecordKind::Llm, "guidellm", version.clone(), lossy);
        let model_name = text(&benchmark.config, "/backend/model").or_else(|| name.clone());
        record.model = model(model_name.as_deref().unwrap_or("unnamed"));
        record.time.started = benchmark.start_time.and_then(timestamp_of_unix_s);
        record.time.ended = benchmark.end_time.and_then(timestamp_of_unix_s);
        record.workload = workload(benchmark);
        record.count_source = Some(CountSource::Usage);
        set_metrics(&mut record, &benchmark.requests);
        Imported { record, samples: samples(&benchmark.requests.successful) }
    };
    Ok(report.benchmarks.iter().map(imported).collect())
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

fn workload(benchmark: &Benchmark) -> RecordedWorkload {
    let config = &benchmark.config;
    let strategy_field = |name: &str| config.pointer(&format!("/strategy/{name}"));
    let kind = strategy_field("type_").and_then(Value::as_str).unwrap_or_default();
    let streams = strategy_field("streams")
        .and_then(Value::as_u64)
        .and_then(|streams| u32::try_from(streams).ok());
    let rate = strategy_field("rate").and_then(Value::as_f64);
    let requests = &benchmark.requests;
    let n = requests.successful.len() + requests.errored.len() + requests.incomplete.len();
    RecordedWorkload {
        concurrency: if kind == "synchronous" { Some(1) } else { streams },
        r#loop: Some(if rate.is_some() { Loop::Open } else { Loop::Closed }),
        rate,
        requests: Some(n as u64),
        shape: shape(&requests.successful),
        ..RecordedWorkload::default()
    }
}

fn shape(requests: &[Request]) -> Option<String> {
    let median = |pick: fn(&Request) -> Option<u64>| {
        spread(requests.iter().filter_map(pick).map(|n| n as f64))?.p50
    };
    Some(format!("{}/{}", median(|one| one.prompt_tokens)?, median(|one| one.output_tokens)?))
}

fn set_metrics(record: &mut Record, requests: &Requests) {
    let ok = &requests.successful;
    let ms = |from: fn(&Timings) -> Option<f64>, to: fn(&Timings) -> Option<f64>| {
        let each = ok.iter().map(|one| &one.info.timings);
        spread(each.filter_map(|timings| Some((to(timings)? - from(timings)?) * 1e3)))
    };
    let tpots: Vec<f64> =
        ok.iter().filter_map(|one| one.inter_token_latency_ms).filter(|ms| *ms > 0.0).collect();
    let rows = [
        (Metric::DispatchMs, ms(|t| t.targeted_start, |t| t.request_start)),
        (Metric::TtftMs, ms(|t| t.request_start, |t| t.first_token_iteration)),
        (Metric::TtfatMs, ms(|t| t.request_start, |t| t.first_output_token_iteration)),
        (Metric::SilenceMs, ms(|t| t.first_token_iteration, |t| t.first_output_token_iteration)),
        (Metric::E2eMs, ms(|t| t.request_start, |t| t.last_token_iteration)),
        (Metric::TpotMs, spread(tpots.iter().copied())),
        (Metric::DecodeTokS, spread(tpots.iter().map(|ms| 1e3 / ms))),
        (
            Metric::CompletionTokens,
            spread(ok.iter().filter_map(|one| one.output_tokens).map(|n| n as f64)),
        ),
    ];
    record.metrics.extend(rows);
    record.metrics.errors = Some((requests.errored.len() + requests.incomplete.len()) as u64);
}

fn samples(requests: &[Request]) -> Vec<RawSample> {
    let starts = requests
        .iter()
        .filter_map(|one| one.info.timings.targeted_start.or(one.info.timings.request_start));
    let first = starts.reduce(f64::min).unwrap_or_default();
    let sample = |one: &Request| {
        let timings = &one.info.timings;
        let since = |to: Option<f64>| micros(to? - timings.request_start?);
        RawSample {
            t_sched_us: timings.targeted_start.and_then(|at| micros(at - first)),
            dispatch_us: timings
                .request_start
                .zip(timings.targeted_start)
                .and_then(|(sent, due)| micros(sent - due)),
            ttft_us: since(timings.first_token_iteration),
            ttfat_us: since(timings.first_output_token_iteration),
            e2e_us: since(timings.last_token_iteration),
            tokens: RecordedTokens {
                prompt: one.prompt_tokens,
                content: one.output_tokens,
                ..RecordedTokens::default()
            },
            ..RawSample::default()
        }
    };
    requests.iter().map(sample).collect()
}
