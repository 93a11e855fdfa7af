//! The tables of a profile in user units, and their conversion into types of `hob-core`.
//! Rejects impossible values, because a wrong unit would make every prediction wrong.

use std::collections::BTreeMap;

use hob_core::machine::{
    Basis, Constants, Device, Fact, Gpu, GpuApi, GpuMemory, Kernel, Link, Machine, Vendor,
};
use hob_core::nearest;
use serde::{Deserialize, Serialize};

use super::ProfileError;
use crate::facts::Stamp;

const GB: f64 = 1e9;
/// Maximum of a size in GB and of a bandwidth in GB/s: a petabyte.
const GB_MAX: f64 = 1e6;
/// Quants whose kernels are timed. `hob-models` describes them.
pub(crate) const QUANTS: [&str; 23] = [
    "F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
    "Q6_K", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS", "IQ4_NL",
    "MXFP4",
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CpuPart {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) cores: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<u32>,
    #[serde(default)]
    pub(crate) features: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) constants: Option<ConstantsPart>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryPart {
    pub(crate) memory_gb: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available_gb: Option<f64>,
    #[serde(skip_serializing_if = "BandwidthPart::is_unknown", default)]
    pub(crate) bandwidth: BandwidthPart,
}

/// A table such as `bandwidth = { gb_s = 50.0 }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BandwidthPart {
    #[serde(skip_serializing_if = "Option::is_none")]
    gb_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    basis: Option<Basis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GpuPart {
    pub(crate) name: String,
    vendor: Vendor,
    api: GpuApi,
    /// Memory of the card itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_gb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_gb: Option<f64>,
    /// Maximum share of the system's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    unified_gb: Option<f64>,
    /// Whether `memory_gb` is what the firmware reserves of the system's memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_in_processor: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver: Option<String>,
    /// Compute capability such as `8.9`.
    #[serde(skip_serializing_if = "Option::is_none")]
    compute_capability: Option<String>,
    /// Link such as `PCIe 4.0 x8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_gb_s: Option<f64>,
    #[serde(skip_serializing_if = "BandwidthPart::is_unknown", default)]
    bandwidth: BandwidthPart,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) constants: Option<ConstantsPart>,
}

/// See [`Constants`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConstantsPart {
    basis: Basis,
    /// Engine version of the calibration; `date` is its date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    bandwidth_efficiency: f64,
    kv_bandwidth_efficiency: f64,
    layer_us: f64,
    #[serde(default)]
    recurrent_us: f64,
    #[serde(default)]
    experts_us: f64,
    #[serde(default)]
    token_us: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefill_gflop_s: Option<f64>,
    /// Kernel speed of one core for a single token, by quant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    kernels_gb_s: BTreeMap<String, f64>,
    /// Kernel speed of one core for prompts, for some or all of the quants in `kernels_gb_s`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    kernels_gflop_s: BTreeMap<String, f64>,
    #[serde(default = "undisturbed", skip_serializing_if = "is_undisturbed")]
    steadiness: f64,
}

fn undisturbed() -> f64 {
    1.0
}

fn is_undisturbed(steadiness: &f64) -> bool {
    *steadiness >= undisturbed()
}

pub(crate) fn gb(bytes: u64) -> f64 {
    bytes as f64 / GB
}

/// Converts GB to bytes.
///
/// # Errors
/// The value is impossible for any machine.
pub(super) fn bytes(gb: f64, field: &'static str, name: &str) -> Result<u64, ProfileError> {
    Ok(figure(gb, field, name)? as u64)
}

/// Converts GB to bytes, or GB/s to bytes per second.
fn figure(gb: f64, field: &'static str, name: &str) -> Result<f64, ProfileError> {
    let absurd = ProfileError::Absurd { name: name.to_owned(), field, value: gb };
    let is_sane = gb > 0.0 && gb <= GB_MAX;
    is_sane.then(|| (gb * GB).round()).ok_or(absurd)
}

pub(super) fn bandwidth_part(device: &Device) -> BandwidthPart {
    let fact = device.bandwidth.as_ref();
    BandwidthPart {
        gb_s: fact.map(|fact| fact.value / GB),
        basis: fact.map(|fact| fact.basis),
        source: fact.map(|fact| fact.source.clone()),
    }
}

pub(super) fn constants_part(device: &Device, stamp: Option<&Stamp>) -> Option<ConstantsPart> {
    let constants = device.constants.as_ref()?;
    let kernels = constants.kernels.iter();
    let computed = kernels.clone().filter_map(|kernel| Some((kernel, kernel.flop_s?)));
    Some(ConstantsPart {
        basis: constants.basis,
        engine_version: stamp.map(|stamp| stamp.engine_version.clone()),
        date: stamp.map(|stamp| stamp.date.clone()),
        bandwidth_efficiency: constants.bandwidth_efficiency,
        kv_bandwidth_efficiency: constants.kv_bandwidth_efficiency,
        layer_us: constants.layer_us,
        recurrent_us: constants.recurrent_us,
        experts_us: constants.experts_us,
        token_us: constants.token_us,
        prefill_gflop_s: constants.prefill_flops.map(|flops| flops / GB),
        kernels_gb_s: kernels.map(|of| (of.quant.to_owned(), of.bytes_s / GB)).collect(),
        kernels_gflop_s: computed.map(|(of, flop_s)| (of.quant.to_owned(), flop_s / GB)).collect(),
        steadiness: constants.steadiness,
    })
}

impl BandwidthPart {
    fn is_unknown(&self) -> bool {
        self.gb_s.is_none()
    }

    pub(super) fn fact(&self, source: &str, name: &str) -> Result<Option<Fact<f64>>, ProfileError> {
        let Some(gb_s) = self.gb_s else { return Ok(None) };
        Ok(Some(Fact {
            value: figure(gb_s, "bandwidth.gb_s", name)?,
            basis: self.basis.unwrap_or(Basis::Stated),
            source: self.source.clone().unwrap_or_else(|| source.to_owned()),
        }))
    }
}

/// Upper bound of `kv_bandwidth_efficiency`: 64 cores that compute attention with a slow memory.
const KV_EFFICIENCY_MAX: f64 = 20.0;

impl ConstantsPart {
    /// Returns `None` if the profile does not state the engine version.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let engine_version = self.engine_version.clone()?;
        Some(Stamp { engine_version, date: self.date.clone().unwrap_or_default() })
    }

    pub(super) fn constants(&self, name: &str) -> Result<Constants, ProfileError> {
        let absurd = |field, value| ProfileError::Absurd { name: name.to_owned(), field, value };
        let shares = [
            ("bandwidth_efficiency", self.bandwidth_efficiency, 2.0),
            ("kv_bandwidth_efficiency", self.kv_bandwidth_efficiency, KV_EFFICIENCY_MAX),
            ("steadiness", self.steadiness, 1.0),
        ];
        for (field, share, most) in shares {
            if !(share > 0.0 && share <= most) {
                return Err(absurd(field, share));
            }
        }
        let times = [
            ("layer_us", self.layer_us),
            ("recurrent_us", self.recurrent_us),
            ("experts_us", self.experts_us),
            ("token_us", self.token_us),
        ];
        for (field, us) in times {
            if !(0.0..1e6).contains(&us) {
                return Err(absurd(field, us));
            }
        }
        let unknown = |quant: &String| ProfileError::Quant {
            name: name.to_owned(),
            quant: quant.clone(),
            near: nearest(quant, QUANTS, 1).into_iter().next(),
        };
        let kernels = self.kernels_gb_s.iter().map(|(quant, gb_s)| {
            let known = QUANTS.into_iter().find(|known| known == quant);
            let flop_s = self.kernels_gflop_s.get(quant);
            let flop_s = flop_s.map(|of| figure(*of, "kernels_gflop_s", name)).transpose()?;
            let bytes_s = figure(*gb_s, "kernels_gb_s", name)?;
            Ok(Kernel { quant: known.ok_or_else(|| unknown(quant))?, bytes_s, flop_s })
        });
        let mut computed = self.kernels_gflop_s.keys();
        if let Some(quant) = computed.find(|quant| !self.kernels_gb_s.contains_key(*quant)) {
            return Err(ProfileError::Half { name: name.to_owned(), quant: quant.clone() });
        }
        let flops = self.prefill_gflop_s;
        Ok(Constants {
            basis: self.basis,
            bandwidth_efficiency: self.bandwidth_efficiency,
            kv_bandwidth_efficiency: self.kv_bandwidth_efficiency,
            layer_us: self.layer_us,
            recurrent_us: self.recurrent_us,
            experts_us: self.experts_us,
            token_us: self.token_us,
            prefill_flops: flops.map(|of| figure(of, "prefill_gflop_s", name)).transpose()?,
            kernels: kernels.collect::<Result<_, ProfileError>>()?,
            steadiness: self.steadiness,
        })
    }
}

impl GpuPart {
    pub(super) fn of_all(machine: &Machine, stamps: &[Option<Stamp>]) -> Vec<GpuPart> {
        let stamps = stamps.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        machine.gpus.iter().zip(stamps).map(|(gpu, stamp)| GpuPart::of(gpu, stamp)).collect()
    }

    fn of(gpu: &Gpu, stamp: Option<&Stamp>) -> GpuPart {
        let (memory_gb, free_gb, unified_gb) = match gpu.memory {
            GpuMemory::Own { total_bytes, free_bytes } => {
                (Some(gb(total_bytes)), Some(gb(free_bytes)), None)
            }
            GpuMemory::Unified { limit_bytes } => (None, None, Some(gb(limit_bytes))),
        };
        let capability = gpu.compute_capability;
        GpuPart {
            name: gpu.name.clone(),
            vendor: gpu.vendor,
            api: gpu.api,
            memory_gb,
            free_gb,
            unified_gb,
            is_in_processor: gpu.is_in_processor,
            driver: gpu.driver.clone(),
            compute_capability: capability.map(|(major, minor)| format!("{major}.{minor}")),
            link: gpu.link.as_ref().map(|link| link.name.clone()),
            link_gb_s: gpu.link.as_ref().map(|link| link.bytes_s / GB),
            bandwidth: bandwidth_part(&gpu.device),
            constants: constants_part(&gpu.device, stamp),
        }
    }

    pub(super) fn gpu(&self, source: &str, name: &str) -> Result<Gpu, ProfileError> {
        let constants = self.constants.as_ref().map(|part| part.constants(name));
        Ok(Gpu {
            name: self.name.clone(),
            vendor: self.vendor,
            api: self.api,
            memory: self.memory(name)?,
            is_in_processor: self.is_in_processor,
            driver: self.driver.clone(),
            uuid: None,
            engine_name: None,
            compute_capability: self.capability(name)?,
            link: self.link(name)?,
            device: Device {
                bandwidth: self.bandwidth.fact(source, name)?,
                constants: constants.transpose()?,
            },
        })
    }

    fn memory(&self, name: &str) -> Result<GpuMemory, ProfileError> {
        if let (Some(unified_gb), None) = (self.unified_gb, self.memory_gb) {
            return Ok(GpuMemory::Unified { limit_bytes: bytes(unified_gb, "unified_gb", name)? });
        }
        // Exactly one of both must be present, because it decides the kind of the memory.
        let own = self.memory_gb.filter(|_| self.unified_gb.is_none()).ok_or_else(|| {
            self.malformed("memory_gb", "memory_gb = 24.0, or else unified_gb = 24.0", name)
        })?;
        let total_bytes = bytes(own, "memory_gb", name)?;
        let free = self.free_gb.map(|free| bytes(free, "free_gb", name)).transpose()?;
        Ok(GpuMemory::Own { total_bytes, free_bytes: free.unwrap_or(total_bytes).min(total_bytes) })
    }

    fn capability(&self, name: &str) -> Result<Option<(u32, u32)>, ProfileError> {
        let Some(text) = &self.compute_capability else { return Ok(None) };
        let pair = text.split_once('.');
        let pair = pair.and_then(|(one, two)| one.parse().ok().zip(two.parse().ok()));
        let malformed = || self.malformed("compute_capability", "\"8.9\"", name);
        pair.ok_or_else(malformed).map(Some)
    }

    fn link(&self, name: &str) -> Result<Option<Link>, ProfileError> {
        let Some(text) = &self.link else { return Ok(None) };
        let malformed = || self.malformed("link", "\"PCIe 4.0 x8\", or with its link_gb_s", name);
        let by_name = || {
            let (generation, lanes) = text.strip_prefix("PCIe ")?.split_once(" x")?;
            let generation = generation.strip_suffix(".0").unwrap_or(generation);
            crate::nvidia::link(generation.parse().ok(), lanes.parse().ok())
        };
        let link = match self.link_gb_s {
            None => by_name().ok_or_else(malformed)?,
            Some(gb_s) => Link {
                name: text.clone(),
                bytes_s: figure(gb_s, "link_gb_s", name)?,
                basis: Basis::Prior,
            },
        };
        Ok(Some(Link { name: text.clone(), ..link }))
    }

    fn malformed(&self, field: &'static str, example: &'static str, name: &str) -> ProfileError {
        let text = match field {
            "compute_capability" => self.compute_capability.clone(),
            "link" => self.link.clone(),
            _ => Some(format!("{:?}, {:?}", self.memory_gb, self.unified_gb)),
        };
        let text = text.unwrap_or_default();
        ProfileError::Form { name: name.to_owned(), field, example, text }
    }
}
