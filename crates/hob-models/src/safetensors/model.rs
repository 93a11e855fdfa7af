//! Builds a model from a configuration (layers) and tensors (weights).
//! Bytes are those of the files; the number of elements is given where the format states it.

use std::collections::BTreeMap;

use hob_core::fit::{Format, Location, Model};
use hob_core::machine::Basis;
use hob_core::weights::{Part, Quant};

use super::task::task;
use super::{Config, ConfigError, Quantization, SafetensorsTensor};
use crate::gguf::GgufError;
use crate::weights::{Stored, grouped};

/// Elements of a tile of EXL3's trellis, 16 by 16.
const TRELLIS_NUMBERS: u64 = 256;

/// Builds the model.
///
/// # Errors
/// Numbers are missing or impossible, or there are no tensors.
pub(crate) fn model(
    name: String,
    config: &Config,
    tensors: &[SafetensorsTensor],
) -> Result<Model, ConfigError> {
    if tensors.is_empty() {
        return Err(GgufError::NoWeights.into());
    }
    let quantization = config.quantization.as_ref();
    let format = quantization.map_or(Format::Plain, |stored| stored.format);
    // Some files keep a second copy of a tied embedding.
    let is_left = |part| config.is_tied && format == Format::Plain && part == Part::Output;
    let shape = config.dimensions.bare().shape_around(|layers| {
        let loaded = tensors.iter().filter(|tensor| !is_left(task(&tensor.name, layers).1));
        grouped(loaded.map(|tensor| stored(tensor, quantization)), |name| task(name, layers))
    })?;
    let quant = match quantization {
        Some(stored) => stored.label.clone(),
        None => commonest(tensors).to_owned(),
    };
    let (basis, location) = (Basis::Measured, Location::default());
    Ok(Model { name, format, quant, shape, basis, location })
}

fn stored<'t>(tensor: &'t SafetensorsTensor, quantization: Option<&Quantization>) -> Stored<'t> {
    let plain = (dtype(&tensor.dtype), tensor.numbers());
    let (quant, elements) = match quantization.and_then(|stored| packed(tensor, stored)) {
        Some((format, elements)) => (format.name(), elements),
        None => plain,
    };
    Stored {
        name: &tensor.name,
        quant: Quant(quant),
        // 0 if unknown.
        elements: elements.unwrap_or(0),
        bytes: tensor.bytes,
        rows: tensor.dims.first().copied().unwrap_or(1),
    }
}

/// Weights in a packed tensor. 0 for scales, which belong to one; `None` if the tensor is not packed.
fn packed(tensor: &SafetensorsTensor, stored: &Quantization) -> Option<(Format, Option<u64>)> {
    let word = tensor.name.rsplit('.').next().unwrap_or_default();
    let by_bits = || {
        let bits = stored.bits.filter(|bits| *bits > 0.0)?;
        Some((tensor.bytes as f64 * 8.0 / bits) as u64)
    };
    let elements = match (word, &*tensor.dtype) {
        ("trellis", _) => {
            let squares = tensor.dims.iter().take(2);
            squares.copied().try_fold(TRELLIS_NUMBERS, u64::checked_mul)
        }
        ("qweight" | "q_weight" | "weight_packed", _) => by_bits(),
        ("weight", "I32" | "U32" | "U8") => by_bits(),
        (_, "U8") if word.ends_with("_blocks") => by_bits(),
        _ if is_for_unpacking(word) => Some(0),
        (_, "F8_E4M3" | "F8_E5M2") => tensor.numbers(),
        _ => return None,
    };
    Some((stored.format, elements))
}

/// Whether a tensor is only needed to unpack another one, such as scales.
fn is_for_unpacking(word: &str) -> bool {
    const WORDS: [&str; 11] =
        ["qzeros", "scales", "biases", "g_idx", "suh", "svh", "su", "sv", "mcg", "mul1", "absmax"];
    const PARTS: [&str; 6] = ["_scale", "quant_map", "quant_state", "zero_point", "q_", "_shape"];
    WORDS.contains(&word) || PARTS.iter().any(|part| word.contains(part))
}

fn dtype(name: &str) -> &'static str {
    const KNOWN: [&str; 13] = [
        "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "I64", "I32", "I16", "I8", "U32", "U8",
        "BOOL",
    ];
    KNOWN.into_iter().find(|known| *known == name).unwrap_or("unknown")
}

/// The type with the most bytes.
fn commonest(tensors: &[SafetensorsTensor]) -> &'static str {
    let mut bytes = BTreeMap::<&str, u64>::new();
    for tensor in tensors {
        let sum = bytes.entry(dtype(&tensor.dtype)).or_default();
        *sum = sum.saturating_add(tensor.bytes);
    }
    bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map_or("unknown", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed_as(
        format: Format,
        bits: Option<f64>,
        name: &str,
        dtype: &str,
        dims: &[u64],
    ) -> Option<u64> {
        let stored = Quantization { format, label: String::new(), bits };
        let width = if dtype == "U8" {
            1
        } else if dtype.ends_with("16") {
            2
        } else {
            4
        };
        let bytes = width * dims.iter().product::<u64>();
        let tensor =
            SafetensorsTensor { name: name.into(), dtype: dtype.into(), dims: dims.into(), bytes };
        packed(&tensor, &stored).and_then(|(_, elements)| elements)
    }

    #[test]
    fn numbers_in_packed_tensors() {
        let rows = [
            (Format::Awq, Some(4.0), "q.qweight", "I32", &[64, 16][..], Some(64 * 128)),
            (Format::Awq, Some(4.0), "q.scales", "F16", &[1, 128], Some(0)),
            (Format::Exl3, Some(4.0), "q.trellis", "I16", &[4, 8, 64], Some(64 * 128)),
            (Format::Exl3, Some(4.0), "q.suh", "F16", &[64], Some(0)),
            (Format::Mlx, Some(4.0), "q.weight", "U32", &[128, 8], Some(64 * 128)),
            (Format::Mlx, Some(4.0), "norm.weight", "BF16", &[64], None),
            (Format::BitsAndBytes, Some(4.0), "q.weight", "U8", &[4_096, 1], Some(64 * 128)),
            (Format::Mxfp4, Some(4.0), "down_proj_blocks", "U8", &[64, 64], Some(64 * 128)),
            (Format::Gptq, None, "q.qweight", "I32", &[8, 128], None),
        ];
        for (format, bits, name, dtype, dims, expected) in rows {
            assert_eq!(packed_as(format, bits, name, dtype, dims), expected, "{format} {name}");
        }
    }
}
