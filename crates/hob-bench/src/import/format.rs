//! The formats of other programs. A format is recognised by its fields and not by the name of the file.
//! Each format has its own file in this folder.

use hob_core::enum_table;
use serde::Deserialize;
use serde_json::Value;

use super::{ImportError, Imported, aiperf, guidellm, llama_bench, llama_benchy, published, vllm};

enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ImportFormat: name {
        LlamaBench = "llama-bench",
        Vllm = "vllm",
        GuideLlm = "guidellm",
        AiPerf = "aiperf",
        LlamaBenchy = "llama-benchy",
        Published = "published",
    }
}

impl ImportFormat {
    pub(super) fn names() -> String {
        ImportFormat::ALL.map(ImportFormat::name).join(", ")
    }

    /// Reads each result as a record, or returns why it cannot.
    pub(super) fn read(self, text: &str) -> Result<Vec<Imported>, String> {
        match self {
            ImportFormat::LlamaBench => llama_bench::read(rows(text)?),
            ImportFormat::Vllm => vllm::read(rows(text)?),
            ImportFormat::GuideLlm if text.trim_start().starts_with('{') => {
                guidellm::read(whole(text)?)
            }
            ImportFormat::GuideLlm => guidellm::read(yaml(text)?),
            ImportFormat::AiPerf if is_summary(text) => aiperf::summary::read(&whole(text)?),
            ImportFormat::AiPerf => aiperf::read(rows(text)?),
            ImportFormat::LlamaBenchy => llama_benchy::read(whole(text)?),
            ImportFormat::Published => published::read(text),
        }
    }
}

/// Reads one JSON document.
fn whole<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn yaml<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// AIPerf writes each request into one file and the summary into another.
fn is_summary(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|whole| whole.get("aiperf_version").is_some())
}

/// Reads a list, one object, or an object on each line.
fn rows<T: for<'a> Deserialize<'a>>(text: &str) -> Result<Vec<T>, String> {
    if text.trim_start().starts_with('[') {
        return whole(text);
    }
    let rows = serde_json::Deserializer::from_str(text).into_iter();
    rows.collect::<Result<Vec<T>, _>>().map_err(|error| error.to_string())
}

/// # Errors
/// The text cannot be read, or its fields belong to no known format.
pub(super) fn recognise(file: &str, text: &str) -> Result<ImportFormat, ImportError> {
    if text.lines().any(|line| line.starts_with("schema: published-runs/")) {
        return Ok(ImportFormat::Published);
    }
    if text.lines().any(|line| line.starts_with("  guidellm_version:")) {
        return Ok(ImportFormat::GuideLlm);
    }
    let first: Option<Result<Value, _>> =
        serde_json::Deserializer::from_str(text).into_iter().next();
    let first = match first {
        Some(Ok(first @ (Value::Array(_) | Value::Object(_)))) => first,
        Some(Err(error)) => {
            return Err(ImportError::Unreadable {
                file: file.to_owned(),
                reason: error.to_string(),
            });
        }
        _ => return Err(ImportError::Unknown { file: file.to_owned() }),
    };
    let row = first.get(0).unwrap_or(&first);
    let known = ImportFormat::ALL.into_iter().find(|format| is_of(*format, row));
    known.ok_or_else(|| ImportError::Unknown { file: file.to_owned() })
}

/// Checks fields that no other format has.
fn is_of(format: ImportFormat, row: &Value) -> bool {
    let has = |pointer| row.pointer(pointer).is_some();
    match format {
        ImportFormat::LlamaBench => {
            has("/model_filename") && (has("/samples_ts") || has("/avg_ts"))
        }
        ImportFormat::Vllm => {
            has("/request_throughput") && has("/total_output_tokens") && !has("/aiperf_version")
        }
        ImportFormat::GuideLlm => has("/benchmarks/0/requests"),
        ImportFormat::AiPerf => has("/metadata/benchmark_phase") || has("/aiperf_version"),
        ImportFormat::LlamaBenchy => {
            has("/benchmarks/0/tg_throughput") || has("/benchmarks/0/tg_req_throughput")
        }
        ImportFormat::Published => false,
    }
}
