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
    /// An NVIDIA card of at least this compute capability, or a card of one of these vendors.
    Card(Option<(u32, u32)>, &'static [Vendor]),
}

/// How an engine uses memory and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineProfile {
    /// Memory on a card besides what is counted: context, kernels, handles.
    pub runtime_bytes: u64,
    /// Memory that it leaves free on a card.
    pub margin_bytes: u64,
    /// Whether it unpacks a quantized KV cache into a copy in 16 bits, one layer after the other. Otherwise the kernel that
    /// reads the cache unpacks it.
    pub copies_cache: bool,
    /// Whether the card reads weights in system memory over its link. Otherwise the CPU computes with them.
    pub reads_over_link: bool,
    pub windows: Windows,
    /// Whether keys and values must have the same type.
    pub has_one_cache_type: bool,
    /// Tokens of a prompt that it reads in one step.
    pub step_tokens: u32,
    pub scratch: Scratch,
    /// Which parts of a model may be in different memories.
    pub splits: Splits,
    /// Whether it loads a vision or audio tower even if the user does not ask for it.
    pub loads_tower: bool,
    /// Time that the engine itself needs for each token, µs.
    pub token_us: f64,
    /// Extra time of each recurrent layer on a card, µs; 0 where one kernel computes it.
    pub recurrent_us: f64,
}

/// Buffers of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scratch {
    /// See [`crate::footprint`].
    Ggml,
    /// Gate, up and their product for one chunk, in 16 bits.
    FeedForwardInF16,
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
        use Vendor::{Amd, Apple, Intel};
        let nvidia = |major, minor, others| Needs::Card(Some((major, minor)), others);
        Some(match (self, format) {
            (Engine::Hob | Engine::LlamaCpp | Engine::Ollama, Format::Gguf) => Needs::Nothing,
            (Engine::Vllm, Format::Plain) => nvidia(7, 0, &[Amd, Intel]),
            (Engine::Vllm, Format::Awq) => nvidia(7, 5, &[Intel]),
            (Engine::Vllm, Format::Gptq) => nvidia(7, 0, &[Amd, Intel]),
            (Engine::Vllm, Format::Fp8) => nvidia(7, 5, &[Amd]),
            (Engine::Vllm, Format::CompressedTensors) => nvidia(7, 5, &[Amd]),
            (Engine::Vllm, Format::Mxfp4) => nvidia(8, 0, &[Amd]),
            (Engine::Vllm, Format::Nvfp4) => nvidia(8, 0, &[]),
            (Engine::Vllm | Engine::Transformers, Format::BitsAndBytes) => nvidia(7, 0, &[]),
            (Engine::TabbyApi, Format::Gptq) => nvidia(7, 5, &[]),
            (Engine::TabbyApi, Format::Exl2) => nvidia(7, 5, &[Amd]),
            (Engine::TabbyApi, Format::Exl3) => nvidia(7, 5, &[]),
            (Engine::MlxLm, Format::Mlx) => Needs::Card(None, &[Apple]),
            (Engine::Transformers, Format::Plain) => Needs::Nothing,
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
        let Needs::Card(nvidia, others) = needs else { return Ok(()) };
        // A card of unknown capability counts as recent.
        let is_recent = |gpu: &Gpu, least| gpu.compute_capability.is_none_or(|has| has >= least);
        let suits = |gpu: &Gpu| match gpu.vendor {
            Vendor::Nvidia => nvidia.is_some_and(|least| is_recent(gpu, least)),
            vendor => others.contains(&vendor),
        };
        if gpu.is_some_and(suits) {
            return Ok(());
        }
        let nvidia = nvidia
            .map(|(major, minor)| format!("NVIDIA cards from compute capability {major}.{minor}"));
        let others = (!others.is_empty()).then(|| cards_of(others));
        let needs = nvidia.into_iter().chain(others).collect::<Vec<_>>().join(", and ");
        let has = gpu.map_or("no card".to_owned(), |gpu| gpu.name.clone());
        Err(Mismatch::Device { engine: self, format, needs, has })
    }

    /// Checks whether the engine takes these types for keys and values.
    ///
    /// # Errors
    /// The types differ, and the engine has one type for both.
    pub fn takes(self, KvTypes { keys, values }: KvTypes) -> Result<(), Mismatch> {
        if self.profile().has_one_cache_type && keys != values {
            return Err(Mismatch::Cache { engine: self, keys, values });
        }
        Ok(())
    }

    pub fn profile(self) -> EngineProfile {
        // llama.cpp leaves 1 GiB of a device free; Ollama reserves 457 MiB for itself.
        let ggml = EngineProfile {
            runtime_bytes: 400 * MIB,
            margin_bytes: GIB,
            copies_cache: false,
            reads_over_link: false,
            windows: Windows::Rolling,
            has_one_cache_type: false,
            step_tokens: 512,
            scratch: Scratch::Ggml,
            splits: Splits::Anywhere,
            loads_tower: true,
            token_us: 0.0,
            recurrent_us: 0.0,
        };
        match self {
            // hob's chat takes text only, so it loads no tower.
            Engine::Hob => EngineProfile {
                windows: Windows::Whole,
                has_one_cache_type: true,
                loads_tower: false,
                ..ggml
            },
            Engine::LlamaCpp => ggml,
            Engine::Ollama => EngineProfile {
                runtime_bytes: 457 * MIB,
                margin_bytes: 512 * MIB,
                has_one_cache_type: true,
                ..ggml
            },
            // Versions without a fused kernel unpack a layer of the cache into 16 bits before they read it.
            Engine::TabbyApi => EngineProfile {
                runtime_bytes: 342 * MIB,
                margin_bytes: 0,
                copies_cache: true,
                reads_over_link: true,
                windows: Windows::Rolling,
                has_one_cache_type: false,
                step_tokens: 2048,
                scratch: Scratch::FeedForwardInF16,
                splits: Splits::Never,
                loads_tower: false,
                token_us: PYTHON_US,
                // ExLlamaV3 starts Triton's kernels from Python, one after the other.
                recurrent_us: UNFUSED_RECURRENT_US,
            },
            Engine::Vllm => EngineProfile {
                runtime_bytes: 500 * MIB,
                margin_bytes: GIB,
                reads_over_link: true,
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
