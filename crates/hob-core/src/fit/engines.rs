//! Which engine reads which format on which device, and how each engine uses memory.
//! Device rules follow the engines' documentation; memory follows their allocations.

use crate::enum_table;
use crate::footprint::{KvType, KvTypes, Windows};
use crate::machine::{Gpu, Vendor};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Time of a scheduler in Python for each token, µs.
const PYTHON_US: f64 = 600.0;
/// Extra time of a recurrent layer, µs, in an engine that computes its state in several kernels and not in one.
///
/// The mean of three machines on which Ollama's own engine (0.24) was compared with llama.cpp's (Ollama 0.30): 28 on an
/// RTX 5090, 37 on a second machine, 231 on a GB10. The cost of a layer of experts, which the same comparisons show with a
/// model that has no recurrent layers, is subtracted. Source: <https://github.com/ollama/ollama/pull/16031>.
pub const UNFUSED_RECURRENT_US: f64 = 100.0;

enum_table! {
    /// How weights are stored, as far as it decides which engine can read them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Format: name {
        Gguf = "GGUF",
        /// Safetensors in 16 bits, as trained.
        Plain = "safetensors",
        Awq = "AWQ",
        Gptq = "GPTQ",
        Exl2 = "EXL2",
        Exl3 = "EXL3",
        Fp8 = "FP8",
        CompressedTensors = "compressed-tensors",
        Mxfp4 = "MXFP4",
        Nvfp4 = "NVFP4",
        BitsAndBytes = "bitsandbytes",
        Mlx = "MLX",
    }
}

enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Engine: name {
        Hob = "hob",
        LlamaCpp = "llama.cpp",
        Ollama = "Ollama",
        /// With ExLlamaV2 or V3.
        TabbyApi = "tabbyAPI",
        Vllm = "vLLM",
        MlxLm = "mlx-lm",
        Transformers = "transformers",
    }
}

/// The devices on which an engine runs a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// Runs on CPUs and on any card.
    Nothing,
    Vendors(&'static [Vendor]),
    /// An NVIDIA card of at least this compute capability.
    Nvidia(u32, u32),
    /// An NVIDIA card of at least this compute capability, or a card of one of these vendors.
    NvidiaOr(u32, u32, &'static [Vendor]),
}

/// How an engine uses memory and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineProfile {
    /// Memory on a card besides what is counted: context, kernels, handles.
    pub runtime_bytes: u64,
    /// Memory that it leaves free on a card.
    pub margin_bytes: u64,
    pub staging: Staging,
    pub host_reads: HostReads,
    pub windows: Windows,
    pub cache: CacheTypes,
    /// Tokens of a prompt that it reads in one step.
    pub step_tokens: u32,
    pub scratch: Scratch,
    /// Which parts of a model may be in different memories.
    pub splits: Splits,
    pub tower: TowerUse,
    /// Time that the engine itself needs for each token, µs.
    pub token_us: f64,
    /// Extra time of each recurrent layer on a card, µs; 0 where one kernel computes it.
    pub recurrent_us: f64,
}

/// Where a quantized KV cache is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staging {
    /// In the kernel that reads it.
    InPlace,
    /// Into a copy in 16 bits, one layer after the other.
    InF16,
}

/// Whether keys and values may have different types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheTypes {
    Alike,
    Apart,
}

/// How weights in system memory take part in the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReads {
    /// The CPU computes with them.
    InPlace,
    /// The card reads them over its link.
    OverLink,
}

/// Buffers of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scratch {
    /// See [`crate::footprint`].
    Ggml,
    /// Gate, up and their product for one chunk, in 16 bits.
    FeedForwardInF16,
}

/// Whether a vision or audio tower is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TowerUse {
    Loaded,
    /// Only if the user asks for it.
    LeftOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splits {
    Never,
    Experts,
    Anywhere,
}

/// A format and an engine, or an engine and a machine, that do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("{engine} does not read {format}; {} would", joined_names(.instead))]
    Format { engine: Engine, format: Format, instead: Vec<Engine> },
    #[error("{engine} runs {format} on {needs}, and this machine has {has}")]
    Device { engine: Engine, format: Format, needs: String, has: String },
    #[error(
        "{engine} keeps keys and values in one type: both must be {keys} or both {values}; llama.cpp takes two types"
    )]
    Cache { engine: Engine, keys: KvType, values: KvType },
}

impl Format {
    /// Engines that read this format. The first one is the default.
    pub fn engines(self) -> Vec<Engine> {
        Engine::ALL.into_iter().filter(|engine| engine.needs(self).is_some()).collect()
    }
}

impl Engine {
    pub fn by_name(name: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|engine| engine.name().eq_ignore_ascii_case(name))
    }

    /// `None` if the engine does not read the format.
    fn needs(self, format: Format) -> Option<Needs> {
        use Needs::{Nothing, Nvidia, NvidiaOr, Vendors};
        use Vendor::{Amd, Apple, Intel};
        Some(match (self, format) {
            (Engine::Hob | Engine::LlamaCpp | Engine::Ollama, Format::Gguf) => Nothing,
            (Engine::Vllm, Format::Plain) => NvidiaOr(7, 0, &[Amd, Intel]),
            (Engine::Vllm, Format::Awq) => NvidiaOr(7, 5, &[Intel]),
            (Engine::Vllm, Format::Gptq) => NvidiaOr(7, 0, &[Amd, Intel]),
            (Engine::Vllm, Format::Fp8) => NvidiaOr(7, 5, &[Amd]),
            (Engine::Vllm, Format::CompressedTensors) => NvidiaOr(7, 5, &[Amd]),
            (Engine::Vllm, Format::Mxfp4) => NvidiaOr(8, 0, &[Amd]),
            (Engine::Vllm, Format::Nvfp4) => Nvidia(8, 0),
            (Engine::Vllm | Engine::Transformers, Format::BitsAndBytes) => Nvidia(7, 0),
            (Engine::TabbyApi, Format::Gptq) => Nvidia(7, 5),
            (Engine::TabbyApi, Format::Exl2) => NvidiaOr(7, 5, &[Amd]),
            (Engine::TabbyApi, Format::Exl3) => Nvidia(7, 5),
            (Engine::MlxLm, Format::Mlx) => Vendors(&[Apple]),
            (Engine::Transformers, Format::Plain) => Nothing,
            _ => return None,
        })
    }

    /// Checks whether the engine runs this format on a card, or on the CPU if `gpu` is `None`.
    ///
    /// # Errors
    /// The engine does not read the format, or not on this device.
    pub fn runs(self, format: Format, gpu: Option<&Gpu>) -> Result<(), Mismatch> {
        let Some(needs) = self.needs(format) else {
            return Err(Mismatch::Format { engine: self, format, instead: format.engines() });
        };
        let is_new_nvidia = |gpu: &Gpu, major, minor| {
            // A card of unknown capability counts as recent.
            gpu.vendor == Vendor::Nvidia
                && gpu.compute_capability.is_none_or(|has| has >= (major, minor))
        };
        let (suits, needed) = match (needs, gpu) {
            (Needs::Nothing, _) => (true, String::new()),
            (Needs::Vendors(vendors), gpu) => {
                (gpu.is_some_and(|gpu| vendors.contains(&gpu.vendor)), cards_of(vendors))
            }
            (Needs::Nvidia(major, minor), gpu) => {
                let suits = gpu.is_some_and(|gpu| is_new_nvidia(gpu, major, minor));
                (suits, format!("NVIDIA cards from compute capability {major}.{minor}"))
            }
            (Needs::NvidiaOr(major, minor, vendors), gpu) => {
                let suits = gpu.is_some_and(|gpu| {
                    is_new_nvidia(gpu, major, minor) || vendors.contains(&gpu.vendor)
                });
                let nvidia = format!("NVIDIA cards from compute capability {major}.{minor}");
                (suits, format!("{nvidia}, and {}", cards_of(vendors)))
            }
        };
        if suits {
            return Ok(());
        }
        let has = gpu.map_or("no card".to_owned(), |gpu| gpu.name.clone());
        Err(Mismatch::Device { engine: self, format, needs: needed, has })
    }

    /// Checks whether the engine takes these types for keys and values.
    ///
    /// # Errors
    /// The types differ, and the engine has one type for both.
    pub fn takes(self, KvTypes { keys, values }: KvTypes) -> Result<(), Mismatch> {
        match self.profile().cache {
            CacheTypes::Alike if keys != values => {
                Err(Mismatch::Cache { engine: self, keys, values })
            }
            CacheTypes::Alike | CacheTypes::Apart => Ok(()),
        }
    }

    pub fn profile(self) -> EngineProfile {
        // llama.cpp leaves 1 GiB of a device free; Ollama reserves 457 MiB for itself.
        let ggml = EngineProfile {
            runtime_bytes: 400 * MIB,
            margin_bytes: GIB,
            staging: Staging::InPlace,
            host_reads: HostReads::InPlace,
            windows: Windows::Rolling,
            cache: CacheTypes::Apart,
            step_tokens: 512,
            scratch: Scratch::Ggml,
            splits: Splits::Anywhere,
            tower: TowerUse::Loaded,
            token_us: 0.0,
            recurrent_us: 0.0,
        };
        match self {
            // hob's chat takes text only, so it loads no tower.
            Engine::Hob => EngineProfile {
                windows: Windows::Whole,
                cache: CacheTypes::Alike,
                tower: TowerUse::LeftOut,
                ..ggml
            },
            Engine::LlamaCpp => ggml,
            Engine::Ollama => EngineProfile {
                runtime_bytes: 457 * MIB,
                margin_bytes: 512 * MIB,
                cache: CacheTypes::Alike,
                ..ggml
            },
            // Versions without a fused kernel unpack a layer of the cache into 16 bits before they read it.
            Engine::TabbyApi => EngineProfile {
                runtime_bytes: 342 * MIB,
                margin_bytes: 0,
                staging: Staging::InF16,
                host_reads: HostReads::OverLink,
                windows: Windows::Rolling,
                cache: CacheTypes::Apart,
                step_tokens: 2048,
                scratch: Scratch::FeedForwardInF16,
                splits: Splits::Never,
                tower: TowerUse::LeftOut,
                token_us: PYTHON_US,
                // ExLlamaV3 starts Triton's kernels from Python, one after the other.
                recurrent_us: UNFUSED_RECURRENT_US,
            },
            Engine::Vllm => EngineProfile {
                runtime_bytes: 500 * MIB,
                margin_bytes: GIB,
                host_reads: HostReads::OverLink,
                step_tokens: 2048,
                scratch: Scratch::FeedForwardInF16,
                splits: Splits::Experts,
                token_us: PYTHON_US,
                ..ggml
            },
            Engine::MlxLm | Engine::Transformers => {
                let scratch = Scratch::FeedForwardInF16;
                EngineProfile { scratch, splits: Splits::Never, token_us: PYTHON_US, ..ggml }
            }
        }
    }
}

fn cards_of(vendors: &[Vendor]) -> String {
    let names: Vec<&str> = vendors.iter().map(|vendor| vendor.name()).collect();
    format!("cards of {}", names.join(" and "))
}

fn joined_names(engines: &[Engine]) -> String {
    let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
    names.join(", ")
}
