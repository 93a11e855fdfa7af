//! How tensors are stored: `quantization_config` of a `config.json`, or MLX's `quantization`.
//! The format decides which engines can read it; the label names bits and groups.

use hob_core::fit::Format;
use serde_json::{Map, Value};

use super::config_error::ConfigError;
use super::json_number::number;
use crate::gguf::error::printable_name;

/// How quantized tensors are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    pub format: Format,
    /// Name for people: `AWQ 4-bit g128`, `EXL3 4.0bpw`.
    pub label: String,
    /// Bits per weight, if all weights have the same.
    pub bits: Option<f64>,
}

const METHODS: &str =
    "awq, gptq, exl2, exl3, fp8, compressed-tensors, mxfp4, modelopt, bitsandbytes and MLX's";

/// `None` for tensors of plain numbers.
pub(super) fn of(config: &Map<String, Value>) -> Result<Option<Quantization>, ConfigError> {
    let object = |key: &str| config.get(key).and_then(Value::as_object);
    if let Some(mlx) = object("quantization") {
        return Ok(Some(grouped(Format::Mlx, "MLX", mlx)));
    }
    let said = object("quantization_config").or_else(|| object("compression_config"));
    said.map(stored).transpose()
}

fn stored(said: &Map<String, Value>) -> Result<Quantization, ConfigError> {
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    let named = |format, label: &str, bits| Quantization { format, label: label.to_owned(), bits };
    Ok(match text("quant_method") {
        "awq" => grouped(Format::Awq, "AWQ", said),
        "gptq" => grouped(Format::Gptq, "GPTQ", said),
        "auto-round" if text("packing_format").contains("awq") => grouped(Format::Awq, "AWQ", said),
        "auto-round" => grouped(Format::Gptq, "GPTQ", said),
        "exl2" => mean(Format::Exl2, "EXL2", said),
        "exl3" => mean(Format::Exl3, "EXL3", said),
        "fp8" | "fbgemm_fp8" => named(Format::Fp8, "FP8", Some(8.0)),
        "compressed-tensors" => compressed(said),
        "mxfp4" => named(Format::Mxfp4, "MXFP4", Some(4.0)),
        "modelopt" if text("quant_algo").contains("FP8") => named(Format::Fp8, "FP8", Some(8.0)),
        "modelopt" => named(Format::Nvfp4, "NVFP4", Some(4.0)),
        "bitsandbytes" => bits_and_bytes(said),
        // MLX repeats its own key here, without naming a method.
        "" if number(said, &["bits"]).is_some() => grouped(Format::Mlx, "MLX", said),
        method => {
            let (method, known) = (printable_name(method), METHODS);
            return Err(ConfigError::UnknownQuantization { method, known });
        }
    })
}

fn grouped(format: Format, name: &str, said: &Map<String, Value>) -> Quantization {
    let bits = number(said, &["bits", "w_bit"]);
    let group = number(said, &["group_size", "q_group_size"]);
    let mut label = name.to_owned();
    if let Some(bits) = bits {
        label.push_str(&format!(" {bits}-bit"));
    }
    if let Some(group) = group {
        label.push_str(&format!(" g{group}"));
    }
    Quantization { format, label, bits: bits.map(|bits| bits as f64) }
}

/// Mean bits per weight, which need not be whole.
fn mean(format: Format, name: &str, said: &Map<String, Value>) -> Quantization {
    let bits = said.get("bits").and_then(Value::as_f64).filter(|bits| (0.5..=32.0).contains(bits));
    let label = bits.map_or_else(|| name.to_owned(), |bits| format!("{name} {bits:.1}bpw"));
    Quantization { format, label, bits }
}

fn compressed(said: &Map<String, Value>) -> Quantization {
    let groups = said.get("config_groups").and_then(Value::as_object);
    let first = groups.and_then(|groups| groups.values().next());
    let weights = first.and_then(|group| group.get("weights")).and_then(Value::as_object);
    let empty = Map::new();
    let weights = weights.unwrap_or(&empty);
    let bits = number(weights, &["num_bits"]);
    let kind = weights.get("type").and_then(Value::as_str).filter(|kind| *kind == "float");
    let kind = if kind.is_some() { "float" } else { "int" };
    let label = match (bits, number(weights, &["group_size"])) {
        (Some(bits), Some(group)) => format!("compressed-tensors {kind}{bits} g{group}"),
        (Some(bits), None) => format!("compressed-tensors {kind}{bits}"),
        (None, _) => "compressed-tensors".to_owned(),
    };
    Quantization { format: Format::CompressedTensors, label, bits: bits.map(|bits| bits as f64) }
}

fn bits_and_bytes(said: &Map<String, Value>) -> Quantization {
    let flag = |key: &str| said.get(key).and_then(Value::as_bool).unwrap_or(false);
    let kind = said.get("bnb_4bit_quant_type").and_then(Value::as_str).unwrap_or("fp4");
    let (label, bits) = match (flag("load_in_8bit") || flag("_load_in_8bit"), kind) {
        (true, _) => ("bitsandbytes int8", 8.0),
        (false, "nf4") => ("bitsandbytes NF4", 4.0),
        (false, _) => ("bitsandbytes FP4", 4.0),
    };
    Quantization { format: Format::BitsAndBytes, label: label.to_owned(), bits: Some(bits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Option<Quantization>, ConfigError> {
        of(&serde_json::from_str(json).expect("JSON"))
    }

    #[test]
    fn every_method_has_its_format_and_name() {
        let rows = [
            (
                r#"{"quant_method": "awq", "bits": 4, "group_size": 128}"#,
                Format::Awq,
                "AWQ 4-bit g128",
            ),
            (
                r#"{"quant_method": "gptq", "bits": 8, "group_size": -1}"#,
                Format::Gptq,
                "GPTQ 8-bit",
            ),
            (r#"{"quant_method": "exl2", "bits": 4.65}"#, Format::Exl2, "EXL2 4.7bpw"),
            (r#"{"quant_method": "exl3", "bits": 4, "head_bits": 6}"#, Format::Exl3, "EXL3 4.0bpw"),
            (r#"{"quant_method": "exl3", "bits": 1e300}"#, Format::Exl3, "EXL3"),
            (r#"{"quant_method": "fp8", "weight_block_size": [128, 128]}"#, Format::Fp8, "FP8"),
            (
                r#"{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
                    {"num_bits": 4, "type": "int", "group_size": 32}}}}"#,
                Format::CompressedTensors,
                "compressed-tensors int4 g32",
            ),
            (r#"{"quant_method": "mxfp4"}"#, Format::Mxfp4, "MXFP4"),
            (r#"{"quant_method": "modelopt", "quant_algo": "NVFP4"}"#, Format::Nvfp4, "NVFP4"),
            (r#"{"quant_method": "modelopt", "quant_algo": "FP8"}"#, Format::Fp8, "FP8"),
            (
                r#"{"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}"#,
                Format::BitsAndBytes,
                "bitsandbytes NF4",
            ),
            (
                r#"{"quant_method": "bitsandbytes", "load_in_8bit": true}"#,
                Format::BitsAndBytes,
                "bitsandbytes int8",
            ),
            (r#"{"bits": 4, "group_size": 64}"#, Format::Mlx, "MLX 4-bit g64"),
            (r#"{"quant_method": "auto-round", "bits": 4}"#, Format::Gptq, "GPTQ 4-bit"),
        ];
        for (json, format, label) in rows {
            let read = read(&format!(r#"{{"quantization_config": {json}}}"#));
            let found = read.expect("known").expect("quantized");
            assert_eq!((found.format, &*found.label), (format, label), "{json}");
        }
        let mlx = read(r#"{"quantization": {"bits": 6, "group_size": 64}}"#).expect("known");
        assert_eq!(mlx.expect("quantized").label, "MLX 6-bit g64");
        assert_eq!(read("{}"), Ok(None));
    }

    #[test]
    fn an_unknown_method_is_named() {
        let error = read(r#"{"quantization_config": {"quant_method": "quip"}}"#).expect_err("none");
        assert!(error.to_string().contains("'quip'"), "{error}");
    }
}
