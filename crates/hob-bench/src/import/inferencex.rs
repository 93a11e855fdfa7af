//! InferenceX's aggregates: one row per model, hardware, shape and concurrency, in seconds.
//! `tput_per_gpu` adds the prompt and is left out; the inverse of a time per token is a speed, and its deviation is nothing.

use serde::Deserialize;

use super::words::{Rest, model, not_kept};
use super::{Imported, source};
use crate::record::{Accelerator, Kind, PromptTokens, Record, Spread, Workload};
use crate::terms::Metric;

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    model: Option<String>,
    /// Its family, which stands alone in some.
    infmax_model_prefix: Option<String>,
    hw: Option<String>,
    framework: Option<String>,
    precision: Option<String>,
    image: Option<String>,
    isl: u64,
    osl: u64,
    conc: u32,
    tp: Option<u32>,
    pp: Option<u32>,
    pcp_size: Option<u32>,
    output_tput_per_gpu: Option<f64>,
    #[serde(flatten)]
    rest: Rest,
}

/// Of each, `mean_`, `median_`, `p95_` and `p99_` are looked for.
const TIMES: [(&str, Metric); 4] = [
    ("ttft", Metric::TtftMs),
    ("tpot", Metric::TpotMs),
    ("itl", Metric::IcgMs),
    ("e2el", Metric::E2eMs),
];

pub(super) fn read(rows: Vec<Row>) -> Result<Vec<Imported>, String> {
    Ok(rows.into_iter().map(|row| Imported { record: record(row), samples: Vec::new() }).collect())
}

fn record(mut row: Row) -> Record {
    let mut times = Vec::new();
    for (name, metric) in TIMES {
        times.extend(take_times(&mut row.rest, name).map(|figures| (metric, figures)));
    }
    let cards = [row.tp, row.pp, row.pcp_size].into_iter().flatten().product::<u32>();
    let lossy = vec!["how many requests is not said".to_owned()];
    let lossy = lossy.into_iter().chain(not_kept(&row.rest)).collect();
    let mut record = Record::new(uuid::Uuid::nil(), Kind::Llm, source("inferencex", None, lossy));
    record.model = model(row.model.or(row.infmax_model_prefix).as_deref().unwrap_or("unnamed"));
    record.model.quant = row.precision.map(|precision| precision.to_uppercase());
    record.engine.name = row.framework;
    record.engine.version = row.image;
    record.host.accelerators = row
        .hw
        .map(|name| Accelerator {
            name: name.to_uppercase(),
            count: cards,
            ..Accelerator::default()
        })
        .into_iter()
        .collect();
    record.workload = Workload {
        shape: Some(format!("{}/{}", row.isl, row.osl)),
        prompt_tokens: Some(PromptTokens { target: Some(row.isl), ..PromptTokens::default() }),
        max_tokens: Some(row.osl),
        concurrency: Some(row.conc),
        ..Workload::default()
    };
    let tpot = times
        .iter()
        .find(|(metric, _)| *metric == Metric::TpotMs)
        .map(|(_, figures)| figures.clone());
    record.metrics.spreads.extend(times);
    // Of the inverse, the 95th percentile is a 5th, and so no column of ours.
    if let Some(p50) = tpot.and_then(|tpot| tpot.p50).filter(|ms| *ms > 0.0) {
        record
            .metrics
            .spreads
            .insert(Metric::DecodeTokS, Spread { p50: Some(1e3 / p50), ..Spread::default() });
    }
    if let Some(each) = row.output_tput_per_gpu {
        let all = Spread { mean: Some(each * f64::from(cards)), ..Spread::default() };
        record.metrics.spreads.insert(Metric::ThroughputTokS, all);
    }
    record
}

/// In seconds there, in milliseconds here.
fn take_times(rest: &mut Rest, name: &str) -> Option<Spread> {
    let mut take = |statistic: &str| {
        let value = rest.remove(&format!("{statistic}_{name}"))?;
        value.as_f64().map(|seconds| seconds * 1e3)
    };
    let (p50, mean) = (take("median"), take("mean"));
    let (p95, p99) = (take("p95"), take("p99"));
    let figures = Spread { p50, mean, p95, p99, ..Spread::default() };
    figures.numbers().next().map(|_| figures.clone())
}
