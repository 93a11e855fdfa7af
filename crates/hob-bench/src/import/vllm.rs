//! Reads `vllm bench serve --save-result`: every request with `--save-detailed`, and averages without it.
//! Its `itls` are gaps between chunks. The time per token is computed from latencies and token counts.

use hob_core::count_text;
use serde::Deserialize;
use serde_json::Value;

use super::Imported;
use super::values::{
    UnreadFields, micros, model, parse_time, spread, spread_of_mean, unread_fields,
};
use crate::record::{
    Arrival, CountSource, Loop, PromptTokens, RawSample, Record, RecordKind, RecordedTokens,
    RecordedWorkload, Spread,
};
use crate::terms::Metric;

#[derive(Debug, Deserialize)]
pub(super) struct Results {
    date: Option<String>,
    backend: Option<String>,
    endpoint_type: Option<String>,
    model_id: String,
    request_rate: Option<Value>,
    burstiness: Option<f64>,
    max_concurrency: Option<u32>,
    duration: Option<f64>,
    completed: Option<u64>,
    failed: Option<u64>,
    total_input_tokens: Option<u64>,
    total_output_tokens: Option<u64>,
    request_throughput: Option<f64>,
    output_throughput: Option<f64>,
    mean_ttft_ms: Option<f64>,
    median_ttft_ms: Option<f64>,
    mean_tpot_ms: Option<f64>,
    median_tpot_ms: Option<f64>,
    mean_itl_ms: Option<f64>,
    median_itl_ms: Option<f64>,
    mean_e2el_ms: Option<f64>,
    median_e2el_ms: Option<f64>,
    #[serde(default)]
    ttfts: Vec<f64>,
    #[serde(default)]
    itls: Vec<Vec<f64>>,
    #[serde(default)]
    latencies: Vec<f64>,
    #[serde(default)]
    start_times: Vec<f64>,
    #[serde(default)]
    queue_times: Vec<f64>,
    #[serde(default)]
    input_lens: Vec<u64>,
    #[serde(default)]
    output_lens: Vec<u64>,
    #[serde(default)]
    errors: Vec<String>,
    /// Not imported and not listed as lost, because a record never contains answers.
    #[serde(default, rename = "generated_texts")]
    _texts: Vec<serde::de::IgnoredAny>,
    #[serde(flatten)]
    rest: UnreadFields,
}

pub(super) fn read(all: Vec<Results>) -> Result<Vec<Imported>, String> {
    all.into_iter().map(one).collect()
}

fn one(results: Results) -> Result<Imported, String> {
    if !results.itls.is_empty() && results.itls.len() != results.ttfts.len() {
        return Err(format!(
            "{} of gaps for {}",
            count_text(results.itls.len(), "list"),
            count_text(results.ttfts.len(), "request")
        ));
    }
    let mut lossy = vec!["the first token may be a chunk that only has the role".to_owned()];
    if results.ttfts.is_empty() {
        lossy.push("individual requests, because it ran without --save-detailed".to_owned());
    }
    let shape = results.gamma_shape().filter(|_| rate(&results).is_some());
    lossy.extend(shape.map(|shape| format!("arrivals: gamma-distributed, burstiness {shape}")));
    lossy.extend(unread_fields(&results.rest));
    let mut record = super::record(RecordKind::Llm, "vllm bench serve", None, lossy);
    record.time.started = results.date.as_deref().and_then(parse_time);
    record.time.ended = record.time.started.zip(results.duration).and_then(|(started, s)| {
        started.checked_add(jiff::SignedDuration::try_from_secs_f64(s).ok()?).ok()
    });
    // This is the protocol of the client. Only `vllm` also names the server.
    let backend = results.backend.as_ref().or(results.endpoint_type.as_ref());
    record.engine.name = backend.filter(|backend| *backend == "vllm").cloned();
    record.model = model(&results.model_id);
    record.workload = workload(&results);
    record.count_source = Some(CountSource::Usage);
    let samples = samples(&results);
    fill(&mut record, &results);
    Ok(Imported { record, samples })
}

impl Results {
    /// The shape of the gamma distribution between two requests. Shape 1, the default, is a Poisson process.
    fn gamma_shape(&self) -> Option<f64> {
        self.burstiness.filter(|shape| (shape - 1.0).abs() > 1e-9)
    }
}

/// Requests per second. None for `"inf"`, which sends all requests at once, up to the concurrency.
fn rate(results: &Results) -> Option<f64> {
    results.request_rate.as_ref().and_then(Value::as_f64)
}

fn workload(results: &Results) -> RecordedWorkload {
    let rate = rate(results);
    let arrival = rate.and(results.gamma_shape().is_none().then_some(Arrival::Poisson));
    let requests =
        results.completed.zip(Some(results.failed.unwrap_or(0))).map(|(ok, bad)| ok + bad);
    let lens = spread(results.input_lens.iter().map(|n| *n as f64));
    let whole = |value: Option<f64>| value.map(|value| value as u64);
    let each =
        results.total_input_tokens.zip(results.completed).and_then(|(all, n)| all.checked_div(n));
    let prompt_tokens = match lens {
        Some(lens) => PromptTokens {
            target: None,
            min: whole(lens.min),
            p50: whole(lens.p50),
            max: whole(lens.max),
        },
        None => PromptTokens { p50: each, ..PromptTokens::default() },
    };
    RecordedWorkload {
        shape: shape(results),
        prompt_tokens: Some(prompt_tokens),
        r#loop: Some(if rate.is_some() { Loop::Open } else { Loop::Closed }),
        concurrency: results.max_concurrency,
        rate,
        arrival,
        requests,
        ..RecordedWorkload::default()
    }
}

/// The average lengths of prompt and answer. Results without details have no other description of their shape.
fn shape(results: &Results) -> Option<String> {
    let n = results.completed.filter(|n| *n > 0)?;
    Some(format!("{}/{}", results.total_input_tokens? / n, results.total_output_tokens? / n))
}

/// The requests as samples. vLLM writes seconds, and samples have microseconds.
fn samples(results: &Results) -> Vec<RawSample> {
    let first = results.start_times.iter().copied().reduce(f64::min);
    let sample = |(at, ttft): (usize, &f64)| {
        let gaps = results.itls.get(at).map(Vec::as_slice).unwrap_or_default();
        let started =
            results.start_times.get(at).copied().zip(first).map(|(start, first)| start - first);
        let error = results.errors.get(at).filter(|error| !error.is_empty());
        RawSample {
            t_sched_us: started.and_then(micros),
            ttft_us: micros(*ttft),
            e2e_us: micros(latency(results, at, *ttft)),
            gaps_us: gaps.iter().copied().filter_map(micros).collect(),
            tokens: RecordedTokens {
                prompt: results.input_lens.get(at).copied(),
                content: results.output_lens.get(at).copied(),
                ..RecordedTokens::default()
            },
            error: error.map(|_| "failed".to_owned()),
            ..RawSample::default()
        }
    };
    results.ttfts.iter().enumerate().map(sample).collect()
}

fn latency(results: &Results, at: usize, ttft: f64) -> f64 {
    let gaps = results.itls.get(at).map_or(0.0, |gaps| gaps.iter().sum());
    results.latencies.get(at).copied().unwrap_or(ttft + gaps)
}

fn fill(record: &mut Record, results: &Results) {
    let ok: Vec<usize> = (0..results.ttfts.len())
        .filter(|at| results.errors.get(*at).is_none_or(String::is_empty))
        .collect();
    let ms = |values: Vec<f64>| spread(values.into_iter().map(|seconds| seconds * 1e3));
    let tpot = |at: &usize| {
        let tokens = results.output_lens.get(*at).filter(|tokens| **tokens > 1)?;
        let span = latency(results, *at, results.ttfts[*at]) - results.ttfts[*at];
        Some(span * 1e3 / (*tokens - 1) as f64)
    };
    let tpots: Vec<f64> = ok.iter().filter_map(tpot).collect();
    let requests = results.completed;
    let rows = [
        (
            Metric::TtftMs,
            ms(ok.iter().map(|at| results.ttfts[*at]).collect()),
            results.median_ttft_ms,
            results.mean_ttft_ms,
        ),
        (
            Metric::E2eMs,
            ms(ok.iter().map(|at| latency(results, *at, results.ttfts[*at])).collect()),
            results.median_e2el_ms,
            results.mean_e2el_ms,
        ),
        (
            Metric::TpotMs,
            spread(tpots.iter().copied()),
            results.median_tpot_ms,
            results.mean_tpot_ms,
        ),
        (
            Metric::DecodeTokS,
            spread(tpots.iter().map(|ms| 1e3 / ms)),
            results.median_tpot_ms.map(|ms| 1e3 / ms),
            None,
        ),
        (
            Metric::IcgMs,
            ms(ok
                .iter()
                .flat_map(|at| results.itls.get(*at).cloned().unwrap_or_default())
                .collect()),
            results.median_itl_ms,
            results.mean_itl_ms,
        ),
        (Metric::QueueMs, ms(results.queue_times.clone()), None, None),
        (Metric::ThroughputTokS, None, None, results.output_throughput),
        (Metric::RequestsS, None, None, results.request_throughput),
    ];
    for (metric, detailed, median, average) in rows {
        // vLLM writes 0 for what it did not see, such as a time per token where each answer has one token.
        let [median, average] =
            [median, average].map(|figure| figure.filter(|it| *it > 0.0 && it.is_finite()));
        let summary = (median.is_some() || average.is_some()).then(|| Spread {
            p50: median,
            ..average.map_or(Spread { n: requests, ..Spread::default() }, |value| {
                spread_of_mean(value, requests)
            })
        });
        if let Some(figures) = detailed.or(summary) {
            record.metrics.spreads.insert(metric, figures);
        }
    }
    record.metrics.errors = results.failed.or_else(|| {
        (!results.errors.is_empty())
            .then(|| results.errors.iter().filter(|error| !error.is_empty()).count() as u64)
    });
}
