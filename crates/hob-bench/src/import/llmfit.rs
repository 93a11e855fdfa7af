//! llmfit's submissions, version 1: averages of a model on a machine.
//! The memory it tells is that of all cards together, so without their count it says nothing of one.

use jiff::Timestamp;
use serde::Deserialize;

use super::words::{Rest, mean, model, not_kept};
use super::{Imported, source};
use crate::record::{Accelerator, Host, Kind, Record, Spread};
use crate::terms::Metric;

/// What this reads.
const VERSION: u32 = 1;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Submission {
    schema_version: u32,
    submitted_at_unix: Option<i64>,
    tool: Option<Tool>,
    hardware: Hardware,
    results: Vec<Outcome>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Deserialize)]
struct Tool {
    version: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hardware {
    hardware_name: Option<String>,
    vram_gb: Option<f64>,
    gpu_count: Option<u32>,
    #[serde(default)]
    unified_memory: bool,
    cpu: Option<String>,
    cpu_cores: Option<u32>,
    ram_gb: Option<f64>,
    os: Option<String>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    model: String,
    provider: Option<String>,
    num_runs: Option<u32>,
    avg_tps: f64,
    min_tps: Option<f64>,
    max_tps: Option<f64>,
    avg_ttft_ms: Option<f64>,
    avg_total_ms: Option<f64>,
    avg_output_tokens: Option<f64>,
    #[serde(flatten)]
    rest: Rest,
}

pub(super) fn read(submission: Submission) -> Result<Vec<Imported>, String> {
    if submission.schema_version != VERSION {
        return Err(format!("its version is {}, and {VERSION} is read", submission.schema_version));
    }
    let one =
        |outcome: &Outcome| Imported { record: record(&submission, outcome), samples: Vec::new() };
    Ok(submission.results.iter().map(one).collect())
}

fn record(submission: &Submission, outcome: &Outcome) -> Record {
    let hardware = &submission.hardware;
    let mut lossy = vec!["what was asked is not said".to_owned()];
    if hardware.gpu_count.is_none() && hardware.vram_gb.is_some() {
        lossy.push("vramGb: without gpuCount it may be that of several cards".to_owned());
    }
    lossy
        .extend([&submission.rest, &hardware.rest, &outcome.rest].into_iter().filter_map(not_kept));
    let version = submission.tool.as_ref().and_then(|tool| tool.version.clone());
    let mut record = Record::new(uuid::Uuid::nil(), Kind::Llm, source("llmfit", version, lossy));
    record.time.started = submission.submitted_at_unix.and_then(|s| Timestamp::from_second(s).ok());
    record.host = host(hardware);
    record.engine.name = outcome.provider.clone();
    record.model = model(&outcome.model);
    record.workload.concurrency = Some(1);
    record.confidence.runs = outcome.num_runs;
    let n = outcome.num_runs.map(u64::from);
    let speed = Spread { min: outcome.min_tps, max: outcome.max_tps, ..mean(outcome.avg_tps, n) };
    record.metrics.spreads.insert(Metric::GenTokS, speed);
    let others = [
        (Metric::TtftMs, outcome.avg_ttft_ms),
        (Metric::E2eMs, outcome.avg_total_ms),
        (Metric::CompletionTokens, outcome.avg_output_tokens),
    ];
    let others = others.into_iter().filter_map(|(metric, value)| Some((metric, mean(value?, n))));
    record.metrics.spreads.extend(others);
    record
}

fn host(hardware: &Hardware) -> Host {
    let mut host = Host { ram_gb: hardware.ram_gb, os: hardware.os.clone(), ..Host::default() };
    host.cpu.model = hardware.cpu.clone();
    host.cpu.cores = hardware.cpu_cores;
    let count = hardware.gpu_count;
    if let Some(name) = hardware.hardware_name.clone() {
        let each = count.filter(|count| *count > 0 && !hardware.unified_memory);
        let vram_gb = hardware.vram_gb.zip(each).map(|(all, count)| all / f64::from(count));
        host.accelerators = vec![Accelerator {
            name,
            count: count.unwrap_or(1),
            vram_gb,
            ..Accelerator::default()
        }];
    }
    host
}
