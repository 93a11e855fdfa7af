//! The machine with what is known of it, and the model with what its header states.
//! Sizes are in bytes; an unknown bandwidth is null.

use hob_core::fit::Model;
use hob_core::machine::{Device, Gpu, GpuMemory, Link, Machine};
use schemars::JsonSchema;
use serde::Serialize;

/// The machine and what is known of it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub(super) struct FitMachineDetails {
    name: String,
    os: Option<String>,
    cpu: FitCpu,
    memory: FitRam,
    gpus: Vec<FitGpu>,
}

/// The processor.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitCpu {
    name: Option<String>,
    cores: Option<u32>,
    threads: Option<u32>,
    features: Vec<String>,
    bandwidth: Option<FitBandwidth>,
}

/// System memory, in bytes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitRam {
    total: u64,
    available: u64,
}

/// A graphics card.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitGpu {
    name: String,
    vendor: &'static str,
    api: &'static str,
    /// Shares system memory.
    unified: bool,
    /// Null for shared memory.
    total: Option<u64>,
    /// For shared memory: as much as the card may use.
    free: u64,
    driver: Option<String>,
    link: Option<FitLink>,
    bandwidth: Option<FitBandwidth>,
}

/// Speed of a memory, and its source.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitBandwidth {
    bytes_s: f64,
    basis: &'static str,
    source: String,
}

/// The connection of a card.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitLink {
    name: String,
    bytes_s: f64,
    basis: &'static str,
}

/// The model and what its header states.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub(super) struct FitModelDetails {
    name: String,
    format: &'static str,
    quant: String,
    architecture: String,
    layers: usize,
    /// 0 for dense models.
    experts: u32,
    experts_used: u32,
    /// Bytes of all weights.
    bytes: u64,
    trained_context: u32,
    basis: &'static str,
}

impl FitMachineDetails {
    pub(super) fn of(machine: &Machine) -> FitMachineDetails {
        let Machine { name, os, cpu, memory, gpus } = machine;
        let counted = |count: u32| (count > 0).then_some(count);
        FitMachineDetails {
            name: name.clone(),
            os: os.clone(),
            cpu: FitCpu {
                name: cpu.name.clone(),
                cores: counted(cpu.cores),
                threads: counted(cpu.threads),
                features: cpu.features.clone(),
                bandwidth: bandwidth(&cpu.device),
            },
            memory: FitRam { total: memory.total_bytes, available: memory.available_bytes },
            gpus: gpus.iter().map(gpu).collect(),
        }
    }
}

fn gpu(gpu: &Gpu) -> FitGpu {
    let (unified, total, free) = match gpu.memory {
        GpuMemory::Own { total_bytes, free_bytes } => (false, Some(total_bytes), free_bytes),
        GpuMemory::Unified { limit_bytes } => (true, None, limit_bytes),
    };
    FitGpu {
        name: gpu.name.clone(),
        vendor: gpu.vendor.name(),
        api: gpu.api.name(),
        unified,
        total,
        free,
        driver: gpu.driver.clone(),
        link: gpu.link.as_ref().map(link),
        bandwidth: bandwidth(&gpu.device),
    }
}

fn link(Link { name, bytes_s, basis }: &Link) -> FitLink {
    FitLink { name: name.clone(), bytes_s: *bytes_s, basis: basis.name() }
}

fn bandwidth(device: &Device) -> Option<FitBandwidth> {
    let fact = device.bandwidth.as_ref()?;
    let (bytes_s, basis, source) = (fact.value, fact.basis.name(), fact.source.clone());
    Some(FitBandwidth { bytes_s, basis, source })
}

impl FitModelDetails {
    pub(super) fn of(model: &Model) -> FitModelDetails {
        let shape = &model.shape;
        FitModelDetails {
            name: model.name.clone(),
            format: model.format.name(),
            quant: model.quant.clone(),
            architecture: shape.architecture.clone(),
            layers: shape.layers.len(),
            experts: shape.experts,
            experts_used: shape.experts_used,
            bytes: shape.weights.bytes(),
            trained_context: shape.trained_context_tokens,
            basis: model.basis.name(),
        }
    }
}
