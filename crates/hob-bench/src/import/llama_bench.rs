//! Reads llama-bench's JSON and JSON lines: repeated runs of one prompt or answer length, inside the engine.
//! It measures neither the first token nor sampling and tokenising, so its speeds are upper bounds.

use serde::Deserialize;

use super::Imported;
use super::values::{UnreadFields, model, parse_time, spread, unread_fields};
use crate::record::{
    Accelerator, CountSource, Host, Params, PromptTokens, Record, RecordKind, RecordedEngine,
    RecordedModel, RecordedWorkload,
};
use crate::terms::Metric;

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    build_commit: Option<String>,
    build_number: Option<i64>,
    cpu_info: Option<String>,
    gpu_info: Option<String>,
    backends: Option<String>,
    model_filename: String,
    model_type: Option<String>,
    model_size: Option<u64>,
    model_n_params: Option<f64>,
    n_batch: Option<u32>,
    n_ubatch: Option<u32>,
    n_threads: Option<u32>,
    type_k: Option<String>,
    type_v: Option<String>,
    n_gpu_layers: Option<i64>,
    flash_attn: Option<Flag>,
    use_mmap: Option<Flag>,
    n_prompt: u64,
    n_gen: u64,
    #[serde(default)]
    n_depth: u64,
    test_time: Option<String>,
    #[serde(default)]
    samples_ts: Vec<f64>,
    avg_ts: Option<f64>,
    #[serde(flatten)]
    rest: UnreadFields,
}

/// A setting that some versions write as a boolean and others as a number.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Number(i64),
}

impl Flag {
    /// -1 means that the engine decided.
    fn is_set(self) -> Option<bool> {
        match self {
            Flag::Bool(set) => Some(set),
            Flag::Number(number) => (number >= 0).then_some(number != 0),
        }
    }
}

pub(super) fn read(rows: Vec<Row>) -> Result<Vec<Imported>, String> {
    rows.into_iter()
        .map(|row| record(row).map(|record| Imported { record, samples: Vec::new() }))
        .collect()
}

fn record(row: Row) -> Result<Record, String> {
    let metric = match (row.n_prompt, row.n_gen) {
        (0, 0) => return Err("a row has neither prompt nor answer tokens".to_owned()),
        (_, 0) => Metric::PrefillTokS,
        (0, _) => Metric::DecodeTokS,
        // The row has one speed for prompt and answer together: neither prefill nor decode.
        (_, _) => Metric::GenTokS,
    };
    let mut lossy =
        vec!["first token, sampling and tokenising: it measures inside the engine".to_owned()];
    if metric == Metric::GenTokS {
        lossy.push("prompt and answer share one figure".to_owned());
    }
    lossy.extend(unread_fields(&row.rest));
    let version = row.build_number.map(|number| format!("b{number}"));
    let mut record = super::record(kind(&row), "llama-bench", version.clone(), lossy);
    record.time.started = row.test_time.as_deref().and_then(parse_time);
    record.host = host(&row);
    record.model = described(&row);
    record.workload = workload(&row);
    record.count_source = Some(CountSource::Engine);
    record.confidence.runs = u32::try_from(row.samples_ts.len()).ok().filter(|runs| *runs > 0);
    let figures = spread(row.samples_ts.iter().copied());
    let figures =
        figures.or_else(|| row.avg_ts.map(|mean| super::values::spread_of_mean(mean, None)));
    let mut figures = figures.ok_or("a row has neither samples_ts nor avg_ts")?;
    figures.method = Some("engine".to_owned());
    record.metrics.spreads.insert(metric, figures);
    record.engine = engine(row, version);
    Ok(record)
}

fn kind(row: &Row) -> RecordKind {
    if row.n_depth > 0 { RecordKind::CtxSweep } else { RecordKind::Llm }
}

fn described(row: &Row) -> RecordedModel {
    let mut model = model(&row.model_filename);
    // For example `qwen3 8B Q4_K - Medium`. Only the quant is used: the file name is more exact for the rest.
    let quant = row.model_type.as_deref().and_then(super::values::quant);
    model.quant = model.quant.or(quant);
    model.bytes = row.model_size;
    // A row with 0 parameters does not know their number.
    let params = row.model_n_params.filter(|params| *params > 0.0);
    model.params_b = params.map(|params| params / 1e9);
    model.bpw = row.model_size.zip(params).map(|(bytes, params)| bytes as f64 * 8.0 / params);
    model
}

fn host(row: &Row) -> Host {
    let mut host = Host::default();
    host.cpu.model = row.cpu_info.clone().filter(|cpu| !cpu.is_empty());
    host.accelerators = row
        .gpu_info
        .iter()
        .flat_map(|gpus| gpus.split(','))
        .map(str::trim)
        .filter(|gpu| !gpu.is_empty())
        .map(|gpu| Accelerator { name: gpu.to_owned(), count: 1, ..Accelerator::default() })
        .collect();
    host
}

fn workload(row: &Row) -> RecordedWorkload {
    let work = match (row.n_prompt, row.n_gen) {
        (prompt, 0) => format!("pp{prompt}"),
        (0, answer) => format!("tg{answer}"),
        (prompt, answer) => format!("pp{prompt}+tg{answer}"),
    };
    // These are llama-bench's names. Prefill and decode at one depth are two tests.
    let shape = match row.n_depth {
        0 => work,
        depth => format!("{work} @ d{depth}"),
    };
    let prompt = if row.n_depth > 0 { row.n_depth } else { row.n_prompt };
    RecordedWorkload {
        shape: Some(shape),
        prompt_tokens: Some(PromptTokens { target: Some(prompt), ..PromptTokens::default() }),
        max_tokens: Some(row.n_gen),
        concurrency: Some(1),
        ..RecordedWorkload::default()
    }
}

fn engine(row: Row, version: Option<String>) -> RecordedEngine {
    let version = match (version, row.build_commit) {
        (Some(version), Some(commit)) => Some(format!("{version} ({commit})")),
        (version, commit) => version.or(commit),
    };
    RecordedEngine {
        name: Some("llama.cpp".to_owned()),
        version,
        backend: row.backends.map(|backends| backends.to_lowercase()),
        params: Params {
            // -1 means: as many as fit.
            ngl: row.n_gpu_layers.filter(|layers| *layers >= 0),
            threads: row.n_threads,
            batch: row.n_batch,
            ubatch: row.n_ubatch,
            flash_attn: row.flash_attn.and_then(Flag::is_set),
            kv_k: row.type_k,
            kv_v: row.type_v,
            mmap: row.use_mmap.and_then(Flag::is_set),
            ..Params::default()
        },
        ..RecordedEngine::default()
    }
}
