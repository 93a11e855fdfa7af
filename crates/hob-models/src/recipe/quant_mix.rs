//! The type of each tensor in a quantized model: the mixtures of llama.cpp's quantizer, and formats with one type for
//! all matrices. Sizes are within 1 % of most published files, and within 4 % of all.

use hob_core::fit::Format;
use hob_core::nearest;

use super::layers::Matrix;
use crate::gguf::{Gguf, GgufError, GgufTensor, TensorType};

/// How the weights of a model are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QuantMix {
    /// GGUF types: this one for most tensors, others where llama.cpp's quantizer spends more bits.
    Ggml { name: &'static str, most: &'static str },
    /// Bits per weight of layer matrices and of the output. The embedding has 16 bits. Headers of such files get `label`.
    Bits { format: Format, name: &'static str, label: &'static str, layers: f64, output: f64 },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown quant '{name}'; known are {}", QuantMix::names().join(", "))]
pub struct UnknownQuant {
    pub name: String,
    pub near: Vec<String>,
}

const fn ggml(name: &'static str, most: &'static str) -> QuantMix {
    QuantMix::Ggml { name, most }
}

const fn bits(
    format: Format,
    name: &'static str,
    label: &'static str,
    [layers, output]: [f64; 2],
) -> QuantMix {
    QuantMix::Bits { format, name, label, layers, output }
}

/// The most bits first.
const KNOWN: [QuantMix; 30] = [
    ggml("F32", "F32"),
    ggml("F16", "F16"),
    ggml("BF16", "BF16"),
    ggml("Q8_0", "Q8_0"),
    ggml("Q6_K", "Q6_K"),
    ggml("Q5_K_M", "Q5_K"),
    ggml("Q5_K_S", "Q5_K"),
    ggml("Q5_0", "Q5_0"),
    ggml("Q4_K_M", "Q4_K"),
    ggml("Q4_K_S", "Q4_K"),
    ggml("Q4_1", "Q4_1"),
    ggml("Q4_0", "Q4_0"),
    ggml("IQ4_NL", "IQ4_NL"),
    ggml("IQ4_XS", "IQ4_XS"),
    ggml("MXFP4", "MXFP4"),
    ggml("Q3_K_M", "Q3_K"),
    ggml("Q3_K_S", "Q3_K"),
    ggml("Q2_K", "Q2_K"),
    bits(Format::Fp8, "FP8", "FP8", [8.0, 16.0]),
    bits(Format::Awq, "AWQ", "AWQ 4-bit g128", [4.16, 16.0]),
    bits(Format::Gptq, "GPTQ", "GPTQ 4-bit g128", [4.16, 16.0]),
    bits(Format::Exl3, "EXL3-8.0", "EXL3 8.0bpw", [8.0, 8.0]),
    bits(Format::Exl3, "EXL3-6.0", "EXL3 6.0bpw", [6.0, 6.0]),
    bits(Format::Exl3, "EXL3-5.0", "EXL3 5.0bpw", [5.0, 6.0]),
    bits(Format::Exl3, "EXL3-4.0", "EXL3 4.0bpw", [4.0, 6.0]),
    bits(Format::Exl3, "EXL3-3.5", "EXL3 3.5bpw", [3.5, 6.0]),
    bits(Format::Exl3, "EXL3-3.0", "EXL3 3.0bpw", [3.0, 6.0]),
    bits(Format::Exl3, "EXL3-2.5", "EXL3 2.5bpw", [2.5, 6.0]),
    bits(Format::Mlx, "MLX-4bit", "MLX 4-bit g64", [4.5, 4.5]),
    bits(Format::BitsAndBytes, "NF4", "NF4", [4.13, 16.0]),
];

impl QuantMix {
    pub fn names() -> Vec<&'static str> {
        KNOWN.iter().map(|mix| mix.name()).collect()
    }

    /// Finds a quant in any case and common spelling: `EXL3 4.00bpw`, `4bpw`, `AWQ 4-bit`, `Q4`.
    ///
    /// # Errors
    /// [`UnknownQuant`] with the known names.
    pub fn named(name: &str) -> Result<QuantMix, UnknownQuant> {
        let exactly = |name: &str| {
            KNOWN.into_iter().find(|known| known.name().eq_ignore_ascii_case(name.trim()))
        };
        let found = exactly(name).or_else(|| exactly(&as_listed(name)));
        found.ok_or_else(|| UnknownQuant {
            name: name.to_owned(),
            near: nearest(name, QuantMix::names(), 3),
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            QuantMix::Ggml { name, .. } | QuantMix::Bits { name, .. } => name,
        }
    }

    /// The file format, which decides which engines can read it.
    pub fn format(&self) -> Format {
        match self {
            QuantMix::Ggml { .. } => Format::Gguf,
            QuantMix::Bits { format, .. } => *format,
        }
    }

    /// The label that headers of such files get.
    pub fn label(&self) -> &'static str {
        match self {
            QuantMix::Ggml { name, .. } => name,
            QuantMix::Bits { label, .. } => label,
        }
    }

    /// Tensors with their types and bytes.
    pub(super) fn stored(
        self,
        gguf: &Gguf,
        tensors: Vec<Matrix>,
    ) -> Result<Vec<GgufTensor>, GgufError> {
        let experts = gguf.architecture_number("expert_count")?;
        let layers = gguf.architecture_number("block_count")?;
        let is_tied = !tensors.iter().any(|tensor| tensor.name == "output.weight");
        let facts = ModelFacts { layers, experts, is_tied, heads_share: heads_share(&tensors) };
        tensors.into_iter().map(|tensor| self.one(&facts, tensor)).collect()
    }

    fn one(self, facts: &ModelFacts, matrix: Matrix) -> Result<GgufTensor, GgufError> {
        let Matrix { name, dims } = matrix;
        let row = dims.first().copied().unwrap_or(1);
        match self {
            QuantMix::Ggml { name: quant, most } => {
                let wished = facts.ggml(&name, row, quant, most);
                GgufTensor::from_parts(name, dims, wished)
            }
            QuantMix::Bits { name: quant, layers, output, .. } => {
                let bits = match name.as_str() {
                    "token_embd.weight" if !facts.is_tied => 16.0,
                    "token_embd.weight" | "output.weight" => output,
                    _ => layers,
                };
                GgufTensor::of_bits(name, dims, quant, bits)
            }
        }
    }
}

/// Facts about a model that decide a tensor's type.
struct ModelFacts {
    layers: u64,
    experts: u64,
    is_tied: bool,
    /// Query heads per key head (`n_gqa`).
    heads_share: u64,
}

/// How many times longer a layer's queries are than its keys.
fn heads_share(tensors: &[Matrix]) -> u64 {
    let rows = |part: &str| {
        let named = tensors.iter().filter(|tensor| tensor.name.ends_with(part));
        named.filter_map(|tensor| tensor.dims.get(1)).copied().max()
    };
    let keys = rows(".attn_k.weight").filter(|rows| *rows > 0);
    rows(".attn_q.weight").zip(keys).map_or(1, |(queries, keys)| queries / keys)
}

impl ModelFacts {
    fn ggml(&self, name: &str, row: u64, quant: &str, most: &'static str) -> TensorType {
        let layer = name.split('.').nth(1).and_then(|number| number.parse::<u64>().ok());
        let tensor = name.split('.').rev().nth(1).unwrap_or_default();
        let is_float = matches!(most, "F32" | "F16" | "BF16");
        let is_scored = tensor == "output" || (tensor == "token_embd" && self.is_tied);
        let wished = match tensor {
            _ if is_float => most,
            // Routers, convolutions and time steps are small and sensitive, so they stay exact.
            "ffn_gate_inp" | "ssm_conv1d" | "conv" => "F32",
            // In models that were trained in MXFP4, only the experts are stored in it.
            _ if quant == "MXFP4" && !tensor.ends_with("_exps") => "Q8_0",
            _ if is_scored || tensor == "per_layer_token_embd" => {
                if matches!(most, "Q8_0" | "MXFP4") { "Q8_0" } else { "Q6_K" }
            }
            _ => self.raised(quant, tensor, layer.unwrap_or(0)).unwrap_or(most),
        };
        let found =
            TensorType::named(wished).filter(|kind| row.is_multiple_of(kind.block_elements));
        found.or_else(|| TensorType::named(fallen_back(wished, row))).unwrap_or(TensorType::F16)
    }

    /// Where llama.cpp's quantizer spends more bits (`llama_tensor_get_type`, without an importance matrix).
    fn raised(&self, quant: &str, tensor: &str, layer: u64) -> Option<&'static str> {
        let is_down = tensor.starts_with("ffn_down");
        let eighth = self.layers / 8;
        let of_eight = self.experts == 8 && quant != "Q8_0" && quant != "Q6_K";
        Some(match (quant, tensor) {
            (_, "attn_k" | "attn_v") if of_eight => "Q8_0",
            ("Q5_K_M" | "Q5_K_S" | "Q5_0" | "Q4_0" | "Q4_1", "attn_output") if of_eight => {
                return None;
            }
            (_, "attn_output") if of_eight => "Q5_K",
            ("Q4_K_M" | "Q5_K_M", _)
                if (is_down || tensor == "attn_v") && self.is_hurt_most(layer) =>
            {
                "Q6_K"
            }
            ("Q5_K_M", "attn_qkv") => "Q6_K",
            ("Q4_K_M", "attn_qkv") => "Q5_K",
            ("Q4_K_S", "attn_v") if layer < 4 => "Q5_K",
            ("IQ4_XS" | "IQ4_NL", "attn_v") if self.heads_share >= 4 => "Q5_K",
            // The largest Llama: eight queries share a key, so its values are small and sensitive.
            ("Q3_K_M" | "Q3_K_S" | "Q4_K_M" | "Q4_K_S", "attn_v") if self.layers == 80 => "Q5_K",
            ("Q4_K_S" | "IQ4_XS" | "IQ4_NL", _) if is_down && layer < eighth => "Q5_K",
            ("Q3_K_M", "attn_v") => {
                if layer < 2 {
                    "Q5_K"
                } else {
                    "Q4_K"
                }
            }
            ("Q3_K_M", _) if is_down => {
                if layer < self.layers / 16 {
                    "Q5_K"
                } else {
                    "Q4_K"
                }
            }
            ("Q3_K_M", "attn_output" | "attn_qkv") => "Q4_K",
            ("Q2_K", "attn_v") if self.heads_share >= 4 => "Q4_K",
            ("Q2_K", "attn_v" | "attn_output") => "Q3_K",
            ("Q2_K", _) if is_down => "Q3_K",
            _ => return None,
        })
    }

    /// `use_more_bits` of llama.cpp's quantizer: the first and last eighth of the layers, and every third one
    /// between.
    fn is_hurt_most(&self, layer: u64) -> bool {
        let eighth = self.layers / 8;
        layer < eighth || layer >= 7 * self.layers / 8 || (layer - eighth) % 3 == 2
    }
}

/// The spelling of [`KNOWN`].
fn as_listed(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    let words: Vec<&str> =
        name.split([' ', '-', '_', '@']).filter(|word| !word.is_empty()).collect();
    let bits =
        words.iter().find_map(|word| word.strip_suffix("bpw").unwrap_or(word).parse::<f64>().ok());
    match words.first() {
        Some(&("q4" | "int4")) if words.len() == 1 => "Q4_K_M".to_owned(),
        Some(&"q5") if words.len() == 1 => "Q5_K_M".to_owned(),
        Some(&"q6") if words.len() == 1 => "Q6_K".to_owned(),
        Some(&("q8" | "int8")) if words.len() == 1 => "Q8_0".to_owned(),
        Some(&"fp16") => "F16".to_owned(),
        Some(&"exl3") => format!("EXL3-{:.1}", bits.unwrap_or(4.0)),
        Some(&"mlx") => "MLX-4bit".to_owned(),
        Some(word @ &("awq" | "gptq" | "fp8" | "nf4" | "mxfp4")) => (*word).to_owned(),
        Some(word) if word.ends_with("bpw") && bits.is_some() => {
            format!("EXL3-{:.1}", bits.unwrap_or(4.0))
        }
        _ => name,
    }
}

/// Rows that are not multiples of 256 do not fit large blocks, and some do not fit small ones.
fn fallen_back(wished: &'static str, row: u64) -> &'static str {
    if !row.is_multiple_of(32) {
        return "F16";
    }
    match wished {
        "Q2_K" | "Q3_K" | "IQ4_XS" => "IQ4_NL",
        "Q4_K" => "Q5_0",
        "Q5_K" => "Q5_1",
        "Q6_K" => "Q8_0",
        _ => "F16",
    }
}
