//! Which type each tensor gets when a model is quantized: the mixtures that llama.cpp's quantizer makes, and formats
//! that store all matrices alike. Sizes come within 1 % of published files, of some within 4 %.

use hob_core::fit::Format;
use hob_core::nearest;

use super::layers::Matrix;
use crate::gguf::{Gguf, GgufError, Tensor, TensorType};

/// How a model's numbers are to be stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mixture {
    /// Two types of GGUF: of most, and of those that errors hurt most.
    Ggml { name: &'static str, most: &'static str, best: &'static str },
    /// All matrices of layers at so many bits a weight, the output at so many, the embedding in 16.
    Bits { name: &'static str, layers: f64, output: f64 },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no quant '{name}'; known are {}", Mixture::names().join(", "))]
pub struct UnknownMixture {
    pub name: String,
    pub near: Vec<String>,
}

const fn ggml(name: &'static str, most: &'static str, best: &'static str) -> Mixture {
    Mixture::Ggml { name, most, best }
}

const fn bits(name: &'static str, layers: f64, output: f64) -> Mixture {
    Mixture::Bits { name, layers, output }
}

/// The most bits first.
const KNOWN: [Mixture; 24] = [
    ggml("F32", "F32", "F32"),
    ggml("F16", "F16", "F16"),
    ggml("BF16", "BF16", "BF16"),
    ggml("Q8_0", "Q8_0", "Q8_0"),
    ggml("Q6_K", "Q6_K", "Q6_K"),
    ggml("Q5_K_M", "Q5_K", "Q6_K"),
    ggml("Q5_K_S", "Q5_K", "Q5_K"),
    ggml("Q5_0", "Q5_0", "Q5_0"),
    ggml("Q4_K_M", "Q4_K", "Q6_K"),
    ggml("Q4_K_S", "Q4_K", "Q4_K"),
    ggml("Q4_1", "Q4_1", "Q4_1"),
    ggml("Q4_0", "Q4_0", "Q4_0"),
    ggml("IQ4_NL", "IQ4_NL", "IQ4_NL"),
    ggml("IQ4_XS", "IQ4_XS", "IQ4_XS"),
    ggml("MXFP4", "MXFP4", "MXFP4"),
    ggml("Q3_K_M", "Q3_K", "Q4_K"),
    ggml("Q2_K", "Q2_K", "Q3_K"),
    bits("FP8", 8.0, 16.0),
    bits("AWQ", 4.16, 16.0),
    bits("GPTQ", 4.16, 16.0),
    bits("EXL3-4.0", 4.0, 6.0),
    bits("EXL3-3.0", 3.0, 6.0),
    bits("MLX-4bit", 4.5, 4.5),
    bits("NF4", 4.13, 16.0),
];

impl Mixture {
    pub fn names() -> Vec<&'static str> {
        KNOWN.iter().map(|mixture| mixture.name()).collect()
    }

    /// Whatever the case.
    ///
    /// # Errors
    /// [`UnknownMixture`] with those that there are.
    pub fn named(name: &str) -> Result<Mixture, UnknownMixture> {
        let found = KNOWN.into_iter().find(|known| known.name().eq_ignore_ascii_case(name.trim()));
        found.ok_or_else(|| UnknownMixture {
            name: name.to_owned(),
            near: nearest(name, Mixture::names(), 3),
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Mixture::Ggml { name, .. } | Mixture::Bits { name, .. } => name,
        }
    }

    /// Who can read what is stored like that.
    pub fn format(&self) -> Format {
        match self {
            Mixture::Ggml { .. } => Format::Gguf,
            Mixture::Bits { name, .. } => match *name {
                "FP8" => Format::Fp8,
                "AWQ" => Format::Awq,
                "GPTQ" => Format::Gptq,
                "MLX-4bit" => Format::Mlx,
                "NF4" => Format::BitsAndBytes,
                _ => Format::Exl3,
            },
        }
    }

    /// As the headers of such files are told.
    pub fn label(&self) -> &'static str {
        match self.name() {
            "AWQ" => "AWQ 4-bit g128",
            "GPTQ" => "GPTQ 4-bit g128",
            "EXL3-4.0" => "EXL3 4.0bpw",
            "EXL3-3.0" => "EXL3 3.0bpw",
            "MLX-4bit" => "MLX 4-bit g64",
            name => name,
        }
    }

    /// With their types and bytes.
    pub(super) fn stored(
        self,
        gguf: &Gguf,
        tensors: Vec<Matrix>,
    ) -> Result<Vec<Tensor>, GgufError> {
        let experts = gguf.architecture_number("expert_count")?;
        let layers = gguf.architecture_number("block_count")?;
        let is_tied = !tensors.iter().any(|tensor| tensor.name == "output.weight");
        let place = Place { layers, experts, is_tied };
        tensors.into_iter().map(|tensor| self.one(&place, tensor)).collect()
    }

    fn one(self, place: &Place, matrix: Matrix) -> Result<Tensor, GgufError> {
        let Matrix { name, dims } = matrix;
        let row = dims.first().copied().unwrap_or(1);
        match self {
            Mixture::Ggml { most, best, .. } => {
                let wished = place.ggml(&name, row, most, best);
                Tensor::made(name, dims, wished)
            }
            Mixture::Bits { name: quant, layers, output } => {
                let bits = match name.as_str() {
                    "token_embd.weight" if !place.is_tied => 16.0,
                    "token_embd.weight" | "output.weight" => output,
                    _ => layers,
                };
                Tensor::of_bits(name, dims, quant, bits)
            }
        }
    }
}

/// What of a model decides which type a tensor gets.
struct Place {
    layers: u64,
    experts: u64,
    is_tied: bool,
}

impl Place {
    fn ggml(&self, name: &str, row: u64, most: &'static str, best: &'static str) -> TensorType {
        let layer = name.split('.').nth(1).and_then(|number| number.parse::<u64>().ok());
        let tensor = name.split('.').rev().nth(1).unwrap_or_default();
        let is_float = matches!(most, "F32" | "F16" | "BF16");
        let wished = match tensor {
            // Small, and they decide: routers, convolutions and time steps stay exact.
            "ffn_gate_inp" | "ssm_conv1d" | "conv" if !is_float => "F32",
            _ if most == best || is_float => most,
            "output" => "Q6_K",
            "token_embd" if self.is_tied => "Q6_K",
            "attn_k" | "attn_v" if self.experts == 8 => "Q8_0",
            "attn_output" if self.experts == 8 => raised(most),
            "attn_v" | "ffn_down" | "ffn_down_exps" | "ffn_down_shexp"
                if layer.is_some_and(|layer| self.is_hurt_most(layer)) =>
            {
                best
            }
            "attn_qkv" => raised(most),
            _ => most,
        };
        let found =
            TensorType::named(wished).filter(|kind| row.is_multiple_of(kind.block_elements));
        found.or_else(|| TensorType::named(fallen_back(wished, row))).unwrap_or(TensorType::F16)
    }

    /// `use_more_bits` of llama.cpp's quantizer: the first and last eighths, and every third between them.
    fn is_hurt_most(&self, layer: u64) -> bool {
        let eighth = self.layers / 8;
        layer < eighth || layer >= 7 * self.layers / 8 || (layer - eighth) % 3 == 2
    }
}

fn raised(most: &'static str) -> &'static str {
    match most {
        "Q4_K" => "Q5_K",
        "Q5_K" => "Q6_K",
        "Q3_K" => "Q4_K",
        "Q2_K" => "Q3_K",
        other => other,
    }
}

/// Rows that are no multiple of 256 do not go into the large blocks, and some not into small ones.
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
