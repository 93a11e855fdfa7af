//! Reads and writes machine profiles: TOML files of schema `machine/1`, which users can share and edit.
//! With a profile, hob makes plans for a machine other than this one. Profiles of common machines are built in.

mod parts;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::{Path, PathBuf};

use hob_core::machine::{Basis, Cpu, Device, Machine, Memory};
use hob_core::nearest;
use serde::{Deserialize, Serialize};

use crate::cpu;
use crate::facts::{MachineFacts, Provenance};
use parts::{ConstantsPart, CpuPart, GpuPart, MemoryPart, bytes, constants_part, gb};

pub const SCHEMA: &str = "machine/1";
/// Maximum size of a profile file. A usual profile is a page of text.
const BYTES_MAX: u64 = 1 << 20;

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../profiles/", $name, ".toml")))),*]
    };
}

/// Built-in profiles, from public data sheets.
const BUILTIN: [(&str, &str); 12] = profiles![
    "ddr5-desktop",
    "m2-16gb",
    "m3-ultra-512gb",
    "m4-pro-48gb",
    "n100",
    "rtx-3060",
    "rtx-3090",
    "rtx-4070-laptop",
    "rtx-4090",
    "rtx-5090",
    "ryzen-5800u",
    "ryzen-ai-max-395",
];

/// A profile as it stands in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    /// The schema, `machine/1`.
    pub schema: String,
    /// The usual name of the machine.
    pub name: String,
    /// The source of its figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    pub(crate) cpu: CpuPart,
    pub(crate) memory: MemoryPart,
    #[serde(default, rename = "gpu", skip_serializing_if = "Vec::is_empty")]
    pub(crate) gpus: Vec<GpuPart>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    #[error("{path} cannot be read: {reason}", path = .path.display())]
    Unread { path: PathBuf, reason: String },
    #[error("the profile cannot be written: {0}")]
    Unwritten(String),
    #[error("{name} is not a machine profile: {reason}")]
    Unparsed { name: String, reason: String },
    #[error("{name} has schema = \"{schema}\" (expected \"{SCHEMA}\")")]
    Schema { name: String, schema: String },
    #[error("{name}: {field} is {value}, which is impossible for a machine")]
    Absurd { name: String, field: &'static str, value: f64 },
    #[error("{name}: {quant} is not a quant with known kernels{}", .near.as_ref().map(|near| format!("; the nearest is {near}")).unwrap_or_default())]
    Quant { name: String, quant: String, near: Option<String> },
    #[error("{name}: kernels_gflop_s has {quant}, and kernels_gb_s does not")]
    Half { name: String, quant: String },
    #[error("{name}: {field} must look like {example}, not like \"{text}\"")]
    Form { name: String, field: &'static str, example: &'static str, text: String },
    #[error("there is no profile \"{name}\", and no such file; there are {}", .known.join(", "))]
    Unknown { name: String, known: Vec<&'static str> },
}

pub fn names() -> Vec<&'static str> {
    BUILTIN.iter().map(|(name, _)| *name).collect()
}

/// Returns a built-in profile.
///
/// # Errors
/// There is no built-in profile of that name.
pub fn builtin(name: &str) -> Result<MachineFacts, ProfileError> {
    let text = BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    let unknown = || ProfileError::Unknown { name: name.to_owned(), known: names() };
    parsed(text.ok_or_else(unknown)?, name)?.facts(name)
}

/// Returns the static name of a quant with known kernels, or `None` for other quants.
pub fn quant(name: &str) -> Option<&'static str> {
    parts::QUANTS.into_iter().find(|known| *known == name)
}

/// Reads a profile file, or returns the built-in profile of that name.
///
/// # Errors
/// The name is neither, or the file is not a profile.
pub fn named(name: &str) -> Result<MachineFacts, ProfileError> {
    let path = Path::new(name);
    if path.is_file() {
        return read(path)?.facts(name);
    }
    builtin(name)
}

/// Reads a profile file.
///
/// # Errors
/// The file cannot be read, is too large, or is not a profile.
pub fn read(path: &Path) -> Result<MachineFile, ProfileError> {
    let unread = |error: std::io::Error| {
        let reason = error.kind().to_string();
        ProfileError::Unread { path: path.to_path_buf(), reason }
    };
    let mut text = String::new();
    let file = fs_err::File::open(path).map_err(unread)?;
    file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(unread)?;
    let name = path.display().to_string();
    if text.len() as u64 > BYTES_MAX {
        let reason = format!("it has more than {BYTES_MAX} bytes");
        return Err(ProfileError::Unparsed { name, reason });
    }
    parsed(&text, &name)
}

fn parsed(text: &str, name: &str) -> Result<MachineFile, ProfileError> {
    let wrong = |error: &toml::de::Error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let reason = format!("{place}{}", with_nearest(error.message()));
        ProfileError::Unparsed { name: name.to_owned(), reason }
    };
    let file: MachineFile = toml::from_str(text).map_err(|error| wrong(&error))?;
    if file.schema == SCHEMA {
        return Ok(file);
    }
    Err(ProfileError::Schema { name: name.to_owned(), schema: file.schema })
}

/// For an unknown key, replaces the list of known keys by the most similar one.
fn with_nearest(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next().filter(|_| message.starts_with("unknown field")) else {
        return message.trim().to_owned();
    };
    match nearest(unknown, quoted, 1).first() {
        Some(near) => format!("there is no \"{unknown}\"; the nearest is \"{near}\""),
        None => format!("there is no \"{unknown}\""),
    }
}

impl MachineFile {
    /// Makes a profile from a probed machine.
    pub fn of(known: &MachineFacts) -> MachineFile {
        let machine = &known.machine;
        MachineFile {
            schema: SCHEMA.to_owned(),
            name: machine.name.clone(),
            source: Some(known.cpu.source.clone()),
            os: machine.os.clone(),
            cpu: CpuPart {
                name: machine.cpu.name.clone(),
                cores: machine.cpu.cores,
                threads: Some(machine.cpu.threads),
                features: machine.cpu.features.clone(),
                constants: constants_part(&machine.cpu.device, known.cpu_stamp.as_ref()),
            },
            memory: MemoryPart {
                memory_gb: gb(machine.memory.total_bytes),
                available_gb: Some(gb(machine.memory.available_bytes)),
                bandwidth: parts::bandwidth_part(&machine.cpu.device),
            },
            gpus: GpuPart::of_all(machine, &known.gpu_stamps),
        }
    }

    /// # Errors
    /// The profile cannot be written as TOML, which would be a bug in hob.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        toml::to_string(self).map_err(|error| ProfileError::Unwritten(error.to_string()))
    }

    /// Returns the machine, with the source that the profile states. `name` is the name of the profile.
    ///
    /// # Errors
    /// A value is impossible.
    pub fn facts(&self, name: &str) -> Result<MachineFacts, ProfileError> {
        let source = match &self.source {
            Some(source) => format!("profile {name}: {source}"),
            None => format!("profile {name}"),
        };
        let provenance = Provenance::new(Basis::Stated, source);
        let machine = self.machine(name, &provenance)?;
        let stamp = |part: &Option<ConstantsPart>| part.as_ref().and_then(ConstantsPart::stamp);
        let cpu_stamp = stamp(&self.cpu.constants);
        let gpu_stamps = self.gpus.iter().map(|gpu| stamp(&gpu.constants)).collect();
        let mut known =
            MachineFacts { cpu_stamp, gpu_stamps, ..MachineFacts::all_from(machine, &provenance) };
        known.share_bandwidth();
        Ok(known)
    }

    fn machine(&self, name: &str, provenance: &Provenance) -> Result<Machine, ProfileError> {
        let total_bytes = bytes(self.memory.memory_gb, "memory_gb", name)?;
        let available = self.memory.available_gb.map(|free| bytes(free, "available_gb", name));
        let constants = self.cpu.constants.as_ref().map(|part| part.constants(name));
        let gpus = self.gpus.iter().map(|part| part.gpu(&provenance.source, name));
        Ok(Machine {
            name: self.name.clone(),
            os: self.os.clone(),
            cpu: Cpu {
                name: self.cpu.name.clone(),
                cores: self.cpu.cores,
                threads: self.cpu.threads.unwrap_or(self.cpu.cores).max(self.cpu.cores),
                features: self.cpu.features.clone(),
                repack: cpu::repack(&self.cpu.features),
                device: Device {
                    bandwidth: self.memory.bandwidth.fact(&provenance.source, name)?,
                    constants: constants.transpose()?,
                },
            },
            memory: Memory {
                total_bytes,
                available_bytes: available.transpose()?.unwrap_or(total_bytes).min(total_bytes),
            },
            gpus: gpus.collect::<Result<_, _>>()?,
        })
    }
}
