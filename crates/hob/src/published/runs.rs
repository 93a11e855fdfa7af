//! Published runs for which hob can compute a prediction: machine profile, model, engine, placement and context are known.
//! A run that lacks one of these is reported with what it lacks.

use hob_bench::import::{ImportFormat, PUBLISHED, import};
use hob_bench::record::{Record, RecordKind};
use hob_bench::terms::Metric;
use hob_core::fit::{
    Engine, EngineProfile, FitOptions, Layout, Model, Placement, SpeedEstimate, TimedRun,
    UNFUSED_RECURRENT_US, assess,
};
use hob_core::footprint::{KvType, KvTypes};
use hob_core::machine::Machine;
use hob_core::statistics::Sample;
use hob_models::{QuantMix, known};

use crate::failure::{CliResult, Failure};

/// Context of a run that states none, tokens.
const DEFAULT_CONTEXT_TOKENS: u32 = 1_024;

/// The first version of Ollama that runs llama.cpp's server.
const OLLAMA_WITH_LLAMA_CPP: [u32; 2] = [0, 30];

/// A model whose published size differs more is a different model.
const SIZE_DIFFERENCE_MAX: f64 = 0.25;

/// One run that can be predicted.
#[derive(Clone, Debug)]
pub(crate) struct PublishedRun {
    pub(crate) machine: Machine,
    pub(crate) label: String,
    pub(crate) group: RunGroup,
    pub(crate) context_tokens: u32,
    pub(crate) measured: MeasuredRate,
    model: Model,
    layout: Layout,
    kv: KvTypes,
    profile: EngineProfile,
}

hob_core::enum_table! {
    /// Groups of runs. `hob fit validate` predicts runs of `Decode` from each other, and all other runs of a machine from those of `Decode`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum RunGroup: name {
        /// On one device, with a short context.
        Decode = "decode",
        /// On one device, with a growing context.
        Curve = "as the context grows",
        /// On several devices, or in system memory.
        Divided = "split over several devices, or in RAM",
    }
}

/// Tokens per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MeasuredRate {
    At(f64),
    Range(Option<f64>, Option<f64>),
}

impl MeasuredRate {
    pub(crate) fn bounds(self) -> [Option<f64>; 2] {
        match self {
            MeasuredRate::At(tok_s) => [Some(tok_s), Some(tok_s)],
            MeasuredRate::Range(low, high) => [low, high],
        }
    }
}

impl PublishedRun {
    /// Whether the run has one figure and not a range.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.measured, MeasuredRate::At(_))
    }

    /// `None` without a figure.
    pub(crate) fn timed_run(&self) -> Option<TimedRun<'_>> {
        let PublishedRun { machine, model, layout, kv, profile, context_tokens, .. } = self;
        let estimate = SpeedEstimate { model, machine, layout, kv: *kv, profile };
        let [low, high] = self.measured.bounds();
        let tok_s = low.zip(high).map(|(low, high)| f64::midpoint(low, high)).or(low).or(high)?;
        Some(TimedRun { estimate, context_tokens: *context_tokens, tok_s })
    }

    /// Whether both runs have the same configuration. The engine's version is ignored.
    fn has_same_setup(&self, other: &PublishedRun) -> bool {
        let model_and_quant = |row: &PublishedRun| -> Vec<String> {
            row.label.splitn(3, ", ").take(2).map(str::to_owned).collect()
        };
        let key = |row: &PublishedRun| (row.machine.name.clone(), row.context_tokens, row.group);
        let is_alike = self.profile == other.profile && self.kv == other.kv;
        is_alike && key(self) == key(other) && model_and_quant(self) == model_and_quant(other)
    }

    /// Whether both are the same run, published twice.
    fn is_duplicate_of(&self, other: &PublishedRun) -> bool {
        let key = |row: &PublishedRun| {
            let weights = row.model.shape.weights.bytes();
            (row.machine.name.clone(), weights, row.context_tokens, row.group)
        };
        key(self) == key(other) && self.measured == other.measured
    }
}

pub(crate) fn published_records() -> CliResult<Vec<Record>> {
    let imported = import("published runs", PUBLISHED.as_bytes(), Some(ImportFormat::Published));
    let imported = imported.map_err(Failure::internal)?;
    Ok(imported.into_iter().map(|one| one.record).collect())
}

/// Also returns what cannot be predicted, and why.
pub(crate) fn predictable_runs(records: &[Record]) -> (Vec<PublishedRun>, Vec<String>) {
    let (mut rows, mut left_out): (Vec<PublishedRun>, Vec<String>) = (Vec::new(), Vec::new());
    let speeds = records.iter().filter_map(|record| Some((record, measured_rate(record)?)));
    for (record, measured) in speeds {
        match predictable_run(record, measured) {
            Ok(row) if rows.iter().any(|known| known.is_duplicate_of(&row)) => (),
            Ok(row) => rows.push(row),
            Err(why) => {
                let why = format!("{}: {why}", label(record));
                if !left_out.contains(&why) {
                    left_out.push(why);
                }
            }
        }
    }
    (merge_equal(rows), left_out)
}

/// Merges the runs of each configuration into one row with their median.
fn merge_equal(rows: Vec<PublishedRun>) -> Vec<PublishedRun> {
    let mut figures: Vec<(PublishedRun, Vec<f64>)> = Vec::new();
    for row in rows {
        let MeasuredRate::At(tok_s) = row.measured else {
            figures.push((row, Vec::new()));
            continue;
        };
        match figures
            .iter_mut()
            .find(|(known, rates)| !rates.is_empty() && known.has_same_setup(&row))
        {
            Some((_, rates)) => rates.push(tok_s),
            None => figures.push((row, vec![tok_s])),
        }
    }
    let with_median = |(row, rates): (PublishedRun, Vec<f64>)| {
        let median = Sample::new(rates).median().map(MeasuredRate::At);
        PublishedRun { measured: median.unwrap_or(row.measured), ..row }
    };
    figures.into_iter().map(with_median).collect()
}

/// Whether this version of Ollama still had its own engine, which computed recurrent layers in several kernels. Since 0.30 it runs llama.cpp.
fn is_before_llama_cpp(record: &Record) -> bool {
    let version = record.engine.version.as_deref().unwrap_or("0");
    let numbers =
        version.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u32>().ok());
    numbers.take(2).lt(OLLAMA_WITH_LLAMA_CPP)
}

/// `None` for a run without a decode speed.
fn measured_rate(record: &Record) -> Option<MeasuredRate> {
    if !matches!(record.kind, RecordKind::Llm | RecordKind::CtxSweep) {
        return None;
    }
    let metrics = &record.metrics;
    let spread = metrics.get(Metric::DecodeTokS).or_else(|| metrics.get(Metric::GenTokS))?;
    match (spread.p50.or(spread.mean), spread.min, spread.max) {
        (Some(tok_s), _, _) => Some(MeasuredRate::At(tok_s)),
        (None, None, None) => None,
        (None, low, high) => Some(MeasuredRate::Range(low, high)),
    }
}

fn predictable_run(record: &Record, measured: MeasuredRate) -> Result<PublishedRun, String> {
    if record.engine.params.flash_attn == Some(false) {
        return Err("it ran without flash attention, which hob cannot predict".to_owned());
    }
    let machine = machine(record)?;
    let engine = record.engine.name.as_deref().and_then(engine);
    let model = model(record, engine)?;
    let engine = engine.or_else(|| model.format.engines().first().copied());
    let engine = engine.ok_or("hob knows no engine that runs it")?;
    let target = record.workload.prompt_tokens.as_ref().and_then(|tokens| tokens.target);
    let context_tokens =
        target.and_then(|tokens| tokens.try_into().ok()).unwrap_or(DEFAULT_CONTEXT_TOKENS);
    let kv = kv(engine);
    let options = FitOptions {
        context_tokens: Some(context_tokens),
        kv: Some(kv),
        sequences: 1,
        engine: Some(engine),
        tok_s_min: None,
    };
    let assessed = assess(&machine, &model, &options).map_err(|error| error.to_string())?;
    let wanted = placement(record);
    let is_on_card = !record.host.accelerators.is_empty() || record.engine.backend.is_some();
    let plan = assessed.plans.iter().find(|plan| match wanted {
        Some(wanted) => wanted(plan.placement),
        None => plan.fits() && (plan.placement != Placement::Ram || !is_on_card),
    });
    let plan = plan.ok_or("hob predicts that it does not fit into the memory in which it ran")?;
    let group = match plan.placement {
        Placement::Vram | Placement::Unified if record.kind == RecordKind::CtxSweep => {
            RunGroup::Curve
        }
        Placement::Vram | Placement::Unified => RunGroup::Decode,
        _ => RunGroup::Divided,
    };
    let layout = plan.layout.clone();
    let recurrent_us = match engine {
        Engine::Ollama if is_before_llama_cpp(record) => UNFUSED_RECURRENT_US,
        _ => engine.profile().recurrent_us,
    };
    let profile = EngineProfile { recurrent_us, ..engine.profile() };
    let label = label(record);
    Ok(PublishedRun { machine, label, group, context_tokens, measured, model, layout, kv, profile })
}

fn label(record: &Record) -> String {
    let quant = record.model.quant.as_deref().unwrap_or("unknown quant");
    let engine = [record.engine.name.as_deref(), record.engine.version.as_deref()];
    let engine: Vec<&str> = engine.into_iter().flatten().collect();
    format!("{}, {quant}, {}", record.model.name, engine.join(" "))
        .trim_end_matches(", ")
        .to_owned()
}

/// The machine profile whose chip names all appear in the publication.
pub(crate) fn machine(record: &Record) -> Result<Machine, String> {
    let card = record.host.accelerators.first().map(|card| card.name.as_str());
    let hardware = record.host.cpu.model.as_deref().or(card).unwrap_or_default();
    let published_names = hardware.to_lowercase();
    let known = hob_machine::profile::names().into_iter();
    let named = known.filter_map(|name| Some((digits_named(name, &published_names)?, name)));
    let name = named.max_by_key(|(digits, _)| *digits).map(|(_, name)| name);
    let name = name.ok_or_else(|| format!("no profile of '{hardware}'"))?;
    let known = hob_machine::profile::builtin(name).map_err(|error| error.to_string())?;
    Ok(known.machine)
}

/// Number of digits in a profile's chip names, if the publication names all of them: `4070` beats `ddr5`.
fn digits_named(profile: &str, published_names: &str) -> Option<usize> {
    let digits = |word: &str| word.chars().filter(char::is_ascii_digit).count();
    let chips: Vec<&str> = profile.split('-').filter(|word| digits(word) > 0).collect();
    let all = !chips.is_empty() && chips.iter().all(|chip| published_names.contains(chip));
    all.then(|| chips.into_iter().map(digits).sum())
}

pub(crate) fn engine(name: &str) -> Option<Engine> {
    let first = name.split(',').next().unwrap_or(name);
    Engine::by_name(first.trim())
}

/// If the publication names no quant, hob assumes the engine's usual one.
pub(crate) fn model(record: &Record, engine: Option<Engine>) -> Result<Model, String> {
    let (known, context) = known::find(&record.model.name).map_err(|error| error.to_string())?;
    let published_quant = record.model.quant.as_deref().unwrap_or(match engine {
        Some(Engine::Vllm) => "FP8",
        _ => "Q4_K_M",
    });
    let mix = QuantMix::named(published_quant).map_err(|error| error.to_string())?;
    let model = known.model(mix, context).map_err(|error| error.to_string())?;
    let known_params_b =
        model.shape.weights.0.iter().map(|group| group.elements as f64).sum::<f64>() / 1e9;
    match record.model.params_b {
        Some(published_b) if (known_params_b / published_b - 1.0).abs() > SIZE_DIFFERENCE_MAX => {
            Err(format!(
                "published with {published_b} billion parameters, but the model known by this name has {known_params_b:.1} billion"
            ))
        }
        _ => Ok(model),
    }
}

/// KV types of the publications: quantized for tabbyAPI, f16 for others.
fn kv(engine: Engine) -> KvTypes {
    match engine {
        Engine::TabbyApi => KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 },
        _ => KvTypes::default(),
    }
}

/// The published placement, if there is one.
fn placement(record: &Record) -> Option<fn(Placement) -> bool> {
    let published_place =
        record.source.lossy.iter().find_map(|note| note.strip_prefix("placement: "))?;
    match published_place {
        "VRAM" => Some(|placement| placement == Placement::Vram),
        "GPU/CPU split" => Some(|placement| matches!(placement, Placement::Split { .. })),
        "experts in RAM" => {
            Some(|placement| matches!(placement, Placement::ExpertsOffloaded { .. }))
        }
        place if place.starts_with("CPU") => Some(|placement| placement == Placement::Ram),
        _ => None,
    }
}
