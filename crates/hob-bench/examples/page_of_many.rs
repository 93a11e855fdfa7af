//! A folder of many records, and how long a page of them takes: `page_of_many COUNT FOLDER [TIMES]`.
#![expect(clippy::print_stderr, reason = "a program that says what it took")]

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use hob_bench::record::{
    Accelerator, Cache, CountSource, Doubt, Harness, Label, PromptTokens, RawSample, Record,
    RecordKind, RecordSource, RecordStore, RecordedTokens, Spread,
};
use hob_bench::site::{self, Material, PublishedRuns};
use hob_bench::terms::Metric;
use hob_core::statistics::Sample;
use jiff::Timestamp;
use uuid::Builder;

const MODELS: [(&str, &str, f64); 8] = [
    ("qwen3:8b", "Qwen3", 8.0),
    ("qwen3:30b-a3b", "Qwen3", 30.0),
    ("llama3.1:8b", "Llama 3.1", 8.0),
    ("gemma3:12b", "Gemma 3", 12.0),
    ("smollm2-135m-instruct", "SmolLM2", 0.135),
    ("mixtral:8x7b", "Mixtral", 46.7),
    ("gpt-oss:20b", "gpt-oss", 20.0),
    ("phi4:14b", "Phi-4", 14.0),
];
const MACHINES: [(&str, &str); 5] = [
    ("NVIDIA RTX 4070 8 GB", "cuda"),
    ("AMD Radeon Vega 8", "vulkan"),
    ("Apple M3 Ultra", "metal"),
    ("Intel Core Ultra 7 165H", "cpu"),
    ("NVIDIA H200", "cuda"),
];
const QUANTS: [&str; 3] = ["Q4_K_M", "Q8_0", "F16"];
const SHAPES: [(&str, u64, u64); 4] = [
    ("short_short", 64, 128),
    ("long_short", 8192, 128),
    ("short_long", 64, 1024),
    ("agentic", 2048, 512),
];

/// A folder that exists is not filled again: raise the number when the generated records change.
const RECORDS: &str = "records-2";

/// So often one cell is measured again, and from the fifth day on it is slower.
const DAYS: u64 = 6;
const SLOWER_FROM: u64 = 4;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().context("how many?")?.parse()?;
    let folder = arguments.next().context("which folder?")?;
    let times: u32 = arguments.next().map_or(Ok(1), |times| times.parse())?;
    let (records, out) = (Path::new(&folder).join(RECORDS), Path::new(&folder).join("site"));
    if !records.is_dir() {
        fill(&records, count)?;
    }
    let store = RecordStore::new(&records);
    for _ in 0..times {
        let started = Instant::now();
        let material = Material::gather(&store, PublishedRuns::Shown)?;
        let gathered = started.elapsed();
        let files = site::build(&material);
        let built = started.elapsed();
        site::write(&out, &files)?;
        let (runs, bytes) =
            (material.records.len(), files.iter().map(|file| file.bytes.len()).sum::<usize>());
        eprintln!(
            "{runs} runs: gathered after {gathered:?}, built after {built:?}, written after {:?}: {} files, {bytes} bytes",
            started.elapsed(),
            files.len()
        );
    }
    Ok(())
}

/// Under another name until all are there: the next run would take a folder for whole that this one left half filled.
fn fill(records: &Path, count: u64) -> Result<()> {
    let draft = records.with_extension("part");
    if draft.is_dir() {
        fs_err::remove_dir_all(&draft)?;
    }
    let store = RecordStore::new(&draft);
    for at in 0..count {
        store.put(&record(at), &if at % 50 == 0 { samples(at) } else { Vec::new() })?;
    }
    for day in 0..DAYS {
        let (record, samples) = again(day);
        store.put(&record, &samples)?;
    }
    fs_err::rename(&draft, records)?;
    Ok(())
}

/// Spread about, the same each time.
fn noise(at: u64, salt: u64) -> f64 {
    let mut mixed = (at * 1_000 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) >> 40) as f64 / (1u64 << 24) as f64
}

fn record(at: u64) -> Record {
    let pick = |salt: u64, of: usize| (noise(at, salt) * of as f64) as usize;
    let (name, family, params) = MODELS[pick(1, MODELS.len())];
    let (machine, backend) = MACHINES[pick(2, MACHINES.len())];
    let (shape, prompt, tokens) = SHAPES[pick(3, SHAPES.len())];
    let started = 1_780_000_000 + (at * 3600) as i64;
    let id = Builder::from_unix_timestamp_millis(started as u64 * 1000, &[(at % 251) as u8; 10])
        .into_uuid();
    let version = Some("0.1.0".to_owned());
    let source = RecordSource { tool: "hob".to_owned(), version, ..RecordSource::default() };
    let mut record = Record::new(id, RecordKind::Llm, source);
    record.time.started = Timestamp::from_second(started).ok();
    record.harness = Some(Harness {
        argv: ["hob", "bench", "llm", "--model", name, "--shape", shape]
            .map(str::to_owned)
            .to_vec(),
        ..Harness::default()
    });
    record.model.name = name.to_owned();
    record.model.family = Some(family.to_owned());
    record.model.params_b = Some(params);
    record.model.quant = Some(QUANTS[pick(4, QUANTS.len())].to_owned());
    record.engine.name = Some("llama.cpp".to_owned());
    record.engine.backend = Some(backend.to_owned());
    match backend {
        "cpu" => record.host.cpu.model = Some(machine.to_owned()),
        _ => {
            record.host.accelerators =
                vec![Accelerator { name: machine.to_owned(), count: 1, ..Accelerator::default() }]
        }
    }
    record.workload.shape = Some(shape.to_owned());
    record.workload.prompt_tokens =
        Some(PromptTokens { target: Some(prompt), ..PromptTokens::default() });
    record.workload.max_tokens = Some(tokens);
    record.workload.concurrency = Some(if noise(at, 5) < 0.5 { 1 } else { 4 });
    record.workload.cache = Some(Cache::Cold);
    match noise(at, 6) < 0.4 {
        true => record.confidence.label = Label::Verified,
        false => record.confidence.reasons = vec![Doubt::OneStart, Doubt::WideCi],
    }
    let speed = 300.0 / (1.0 + params) * (0.5 + noise(at, 7));
    let ttft = prompt as f64 * (0.05 + noise(at, 8));
    for (metric, value) in [
        (Metric::DecodeTokS, speed),
        (Metric::TtftMs, ttft),
        (Metric::TtfatMs, ttft * 1.1),
        (Metric::PrefillTokS, speed * 20.0),
    ] {
        let around = [value * 0.97, value * 1.03];
        record.metrics.spreads.insert(
            metric,
            Spread {
                n: Some(48),
                min: Some(value * 0.9),
                p50: Some(value),
                max: Some(value * 1.2),
                mean: Some(value * 1.01),
                ci95: Some(around),
                ..Spread::default()
            },
        );
    }
    if at % 10 == 3 {
        let creator = ["unsloth", "bartowski"][pick(9, 2)];
        record.labels.insert("creator".to_owned(), creator.to_owned());
        record.labels.insert("power_cap_w".to_owned(), "180".to_owned());
    }
    record.resources.rss_peak_mb = Some(params * 700.0);
    record
}

fn samples(at: u64) -> Vec<RawSample> {
    let sample = |n: u64| RawSample {
        run: (n / 8) as u32,
        ttft_us: Some(80_000 + (noise(at, n) * 20_000.0) as u64),
        e2e_us: Some(900_000 + (noise(at, n + 99) * 90_000.0) as u64),
        ..RawSample::default()
    };
    (0..48).map(sample).collect()
}

/// One cell on one day, with samples that give its figures.
fn again(day: u64) -> (Record, Vec<RawSample>) {
    let mut again = record(1);
    let started = 1_790_000_000 + (day * 86_400) as i64;
    again.id = Builder::from_unix_timestamp_millis(started as u64 * 1000, &[9; 10]).into_uuid();
    again.time.started = Timestamp::from_second(started).ok();
    again.model.name = "qwen3:8b".to_owned();
    again.host.id_hash = Some("9f3d1c7be0".to_owned());
    again.count_source = Some(CountSource::Usage);
    let slower = if day < SLOWER_FROM { 1.0 } else { 1.08 };
    let samples: Vec<RawSample> = (0..10)
        .map(|run| {
            let gap_us = (20_000.0 * slower * (0.99 + 0.02 * noise(day, u64::from(run)))) as u64;
            let ttft_us = 80_000 + (noise(day, u64::from(run) + 50) * 2_000.0) as u64;
            RawSample {
                run,
                ttft_us: Some(ttft_us),
                e2e_us: Some(ttft_us + 63 * gap_us),
                gaps_us: vec![gap_us; 63],
                tokens: RecordedTokens {
                    reasoning: Some(0),
                    content: Some(64),
                    ..RecordedTokens::default()
                },
                ..RawSample::default()
            }
        })
        .collect();
    let of = |pick: fn(&RawSample) -> f64| {
        let runs = Sample::new(samples.iter().map(pick));
        Spread { p50: runs.median(), ci95: runs.median_interval(), ..Spread::default() }
    };
    again.metrics.spreads = [
        (Metric::TtftMs, of(|sample| sample.ttft_us.unwrap_or_default() as f64 / 1e3)),
        (Metric::TpotMs, of(|sample| sample.gaps_us[0] as f64 / 1e3)),
        (Metric::DecodeTokS, of(|sample| 1e6 / sample.gaps_us[0] as f64)),
        // Nothing in the samples says it.
        (Metric::PrefillTokS, of(|_| 640.0)),
    ]
    .into();
    (again, samples)
}
