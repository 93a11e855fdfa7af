//! LocalScore's result file: nine pairs of prompt and answer, each an average of nobody says how many.
//! The score is computed from the three averages and adds nothing.

use serde::Deserialize;

use super::words::{Rest, mean, model, not_kept, quant, time};
use super::{Imported, source};
use crate::record::{Accelerator, Host, Kind, PromptTokens, Record, Workload};
use crate::terms::Metric;

#[derive(Debug, Deserialize)]
pub(super) struct Report {
    #[serde(default)]
    runtime_info: Runtime,
    #[serde(default)]
    system_info: System,
    #[serde(default)]
    accelerator_info: Card,
    results: Vec<Test>,
    /// The score of the three averages.
    #[serde(default, rename = "results_summary")]
    _summary: serde::de::IgnoredAny,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Default, Deserialize)]
struct Runtime {
    name: Option<String>,
    version: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct System {
    cpu_name: Option<String>,
    ram_gb: Option<f64>,
    kernel_type: Option<String>,
    kernel_release: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Card {
    name: Option<String>,
    memory_gb: Option<f64>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Test {
    name: Option<String>,
    model: Option<Named>,
    model_name: Option<String>,
    model_filename: Option<String>,
    model_type: Option<String>,
    model_size: Option<u64>,
    model_n_params: Option<f64>,
    n_prompt: u64,
    n_gen: u64,
    prompt_tps: f64,
    gen_tps: f64,
    ttft_ms: f64,
    vram_used_mb: Option<f64>,
    test_time: Option<String>,
    #[serde(flatten)]
    rest: Rest,
}

/// Versions differ in how they name one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Named {
    Name(String),
    Table { name: String, quant: Option<String>, params: Option<f64>, size: Option<u64> },
}

pub(super) fn read(report: Report) -> Result<Vec<Imported>, String> {
    let test = |test: &Test| Imported { record: record(&report, test), samples: Vec::new() };
    Ok(report.results.iter().map(test).collect())
}

fn record(report: &Report, test: &Test) -> Record {
    let mut lossy = vec!["how many were averaged is not said".to_owned()];
    lossy.extend(not_kept(&report.rest));
    lossy.extend(not_kept(&test.rest));
    let runtime = &report.runtime_info;
    let mut record = Record::new(
        uuid::Uuid::nil(),
        Kind::Llm,
        source("localscore", runtime.version.clone(), lossy),
    );
    record.time.started = test.test_time.as_deref().and_then(time);
    record.engine.name = runtime.name.clone();
    record.engine.version = runtime.version.clone();
    record.host = host(report);
    describe(&mut record, test);
    record.workload = Workload {
        shape: Some(
            test.name.clone().unwrap_or_else(|| format!("pp{}+tg{}", test.n_prompt, test.n_gen)),
        ),
        prompt_tokens: Some(PromptTokens {
            target: Some(test.n_prompt),
            ..PromptTokens::default()
        }),
        max_tokens: Some(test.n_gen),
        concurrency: Some(1),
        ..Workload::default()
    };
    record.resources.vram_mb = test
        .vram_used_mb
        .filter(|mb| *mb > 0.0)
        .map(|mb| crate::record::Vram { peak: Some(mb), ..crate::record::Vram::default() });
    let figures = [
        (Metric::PrefillTokS, test.prompt_tps),
        (Metric::DecodeTokS, test.gen_tps),
        (Metric::TtftMs, test.ttft_ms),
    ];
    record.metrics.spreads.extend(figures.map(|(metric, value)| (metric, mean(value, None))));
    record
}

fn describe(record: &mut Record, test: &Test) {
    let file = test.model_filename.as_deref();
    let name = match &test.model {
        Some(Named::Name(name) | Named::Table { name, .. }) => Some(name.as_str()),
        None => test.model_name.as_deref().or(file),
    };
    record.model = model(name.unwrap_or("unnamed"));
    record.model.bytes = test.model_size;
    record.model.params_b = test.model_n_params.map(|params| params / 1e9);
    let kind = test.model_type.as_deref().and_then(quant).or_else(|| file.and_then(quant));
    record.model.quant = record.model.quant.take().or(kind);
    if let Some(Named::Table { quant, params, size, .. }) = &test.model {
        record.model.quant = record.model.quant.take().or_else(|| quant.clone());
        record.model.params_b = record.model.params_b.or_else(|| params.map(|params| params / 1e9));
        record.model.bytes = record.model.bytes.or(*size);
    }
}

fn host(report: &Report) -> Host {
    let (system, card) = (&report.system_info, &report.accelerator_info);
    let mut host = Host {
        ram_gb: system.ram_gb,
        os: system.kernel_type.clone(),
        kernel: system.kernel_release.clone(),
        ..Host::default()
    };
    host.cpu.model = system.cpu_name.clone();
    let is_cpu = card.kind.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("cpu"));
    if let Some(name) = card.name.clone().filter(|_| !is_cpu) {
        host.accelerators =
            vec![Accelerator { name, count: 1, vram_gb: card.memory_gb, ..Accelerator::default() }];
    }
    host
}
