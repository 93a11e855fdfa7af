//! What a machine is: asked of the system, measured, read from a profile, or told.
//! The nouns and the arithmetic on them are `hob-core`'s; this room only fills them, and says how it knows.
//!
//! Of what is read here, only Linux' files on x86 were seen live. What NVIDIA's, AMD's and Intel's drivers, Apple's
//! `sysctl` and `/proc/cpuinfo` of ARM say is parsed after their documentation, over texts in the tests.

mod apple;
pub mod bandwidth;
mod cards;
mod cgroup;
mod cpu;
mod drm;
mod files;
mod kept;
mod known;
mod memory;
pub mod noise;
mod nvidia;
mod pools;
mod power;
mod probe;
pub mod profile;

pub use cpu::{CpuInfo, cpu_info};
pub use kept::{Kept, KeptError};
pub use known::{Known, Learnt, Row, Stamp};
pub use memory::{Ram, Vram, ram, vram};
pub use pools::{PoolWish, UnknownPool, UnreadPool, apply};
pub use power::{on_battery, power_caps_w, throttle_count};
pub use probe::{Identity, identity, probe, quota_cpus};
