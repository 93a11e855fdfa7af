//! Reads `model.safetensors.index.json`, which lists the files of a model's tensors.
//! Uses only the names of files; their own headers list the tensors.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::SafetensorsError;
use crate::gguf::error::printable_name;

/// Published models have fewer than 200 files.
const FILES_MAX: usize = 1_000;

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The file names, sorted. Each is a plain name in the index's folder.
///
/// # Errors
/// It is not such an index, or it names files elsewhere.
pub fn files_of_index(json: &[u8]) -> Result<Vec<String>, SafetensorsError> {
    let not_json = |detail| SafetensorsError::NotJson { detail };
    let index: Index = serde_json::from_slice(json).map_err(|error| not_json(error.to_string()))?;
    let mut files = BTreeSet::new();
    for (tensor, file) in &index.weight_map {
        let wrong = |reason| SafetensorsError::Tensor { name: printable_name(tensor), reason };
        if !is_plain(file) {
            return Err(wrong("is in a file of another folder"));
        }
        files.insert(file.clone());
        if files.len() > FILES_MAX {
            return Err(wrong("is in one file too many"));
        }
    }
    Ok(files.into_iter().collect())
}

/// Whether a name leads to no other folder, as part of a path and of a URL.
fn is_plain(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.ends_with(".safetensors") && !name.starts_with('.') && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_once() {
        let json = br#"{"metadata": {"total_size": 3}, "weight_map":
            {"a": "model-2.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"}}"#;
        let files = files_of_index(json).expect("an index");
        assert_eq!(files, ["model-1.safetensors", "model-2.safetensors"]);
    }

    #[test]
    fn files_elsewhere_are_refused() {
        let rows = [
            (r#"{"weight_map": {"a": "../x.safetensors"}}"#, "another folder"),
            (r#"{"weight_map": {"a": "x.bin"}}"#, "another folder"),
            (r#"{"weight_map": {"a": 1}}"#, "expected a string"),
            (r"{}", "missing field `weight_map`"),
            ("x", "is not valid for safetensors"),
        ];
        for (json, expected) in rows {
            let said = files_of_index(json.as_bytes()).expect_err("wrong").to_string();
            assert!(said.contains(expected), "{said}, and not {expected}");
        }
    }
}
