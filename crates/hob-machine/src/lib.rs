//! Describes a machine: probed from the system, measured, read from a profile, or given by the user.
//! The types and the arithmetic are in `hob-core`. This crate fills the types and names the source of each fact.
//!
//! Tested on real machines: Linux on x86, and cards of NVIDIA. The parsers for the drivers of AMD and Intel, for Apple's
//! `sysctl` and for ARM's `/proc/cpuinfo` follow the documentation. Their tests use stored texts.

mod apple;
pub mod bandwidth;
mod cards;
mod cgroup;
mod cpu;
mod drm;
mod energy;
mod facts;
mod files;
mod memory;
pub mod noise;
mod nvidia;
mod pools;
mod power;
mod probe;
pub mod profile;
mod store;

pub use cpu::CpuInfo;
pub use energy::EnergyMeter;
pub use facts::{FactRow, MachineFacts, Provenance, Stamp};
pub use memory::{Ram, Vram};
pub use pools::{PoolOverride, PoolParseError, UnknownPool, apply};
pub use power::{on_battery, power_caps_w, throttle_count};
pub use probe::{Identity, cpu_info, identity, probe, quota_cpus, ram, vram};
pub use store::{MachineStore, MachineStoreError};
