//! The distance of two models by the type of layer: the reference with the other model's weights of one type only.
//! It shows which weights need their precision.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_eval::distance::DistanceReport;
use hob_models::gguf::{GgufFile, MixError, mix};
use hob_models::{Gguf, room_for};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::{DistanceTextArgs, MB, distance};
use crate::failure::{CliResult, Failure};
use crate::printer::{Column, Printer, rows};

/// One type of layer of all blocks, such as `ffn_down`.
#[derive(Debug, Serialize)]
pub(super) struct LayerDistance {
    layer: String,
    reference_bytes: u64,
    bytes: u64,
    distance: DistanceReport,
}

/// The types of layers that differ between the models, the largest divergence first.
///
/// # Errors
/// The files are not of one model, there is no room for a third one, or a worker fails.
pub(super) async fn by_layer_type(
    reference: &Path,
    model: &Path,
    text: &DistanceTextArgs,
    printer: &Printer,
) -> CliResult<Vec<LayerDistance>> {
    let open = |path: &Path| {
        let wrong = |error| Failure::usage(format!("{}: {error}", path.display()));
        Gguf::open(path).map(|header| (header, path.to_owned())).map_err(wrong)
    };
    let models: Arc<Models> = Arc::new([open(reference)?, open(model)?]);
    let [(base, _), (other, _)] = &*models;
    let layers = differing(base, other);
    let folder = tempfile::tempdir().map_err(|error| Failure::io("no temporary folder", &error))?;
    let room = room_for(folder.path(), base.file_bytes());
    room.map_err(Failure::internal)?;
    let to = folder.path().join("mixed.gguf");
    let mut found = Vec::new();
    for (layer, (reference_bytes, bytes)) in layers {
        printer.note(format_args!("{layer} alone"));
        write_mixed(Arc::clone(&models), layer.to_owned(), to.clone()).await?;
        let distance = distance(reference, &to, text, printer).await?;
        found.push(LayerDistance { layer: layer.to_owned(), reference_bytes, bytes, distance });
    }
    let divergence = |layer: &LayerDistance| layer.distance.divergence.value;
    found.sort_by(|one, other| divergence(other).total_cmp(&divergence(one)));
    Ok(found)
}

/// The reference and the other model, each with its file.
type Models = [(Gguf, PathBuf); 2];

/// Writes the reference with the other model's weights of one type. On a thread of its own, so that Ctrl-C ends hob also
/// while a large file is written.
async fn write_mixed(models: Arc<Models>, layer: String, to: PathBuf) -> CliResult<()> {
    let written = spawn_blocking(move || {
        let [base, other] = models.each_ref().map(|(header, path)| GgufFile { header, path });
        mix(base, other, &to, |name| layer_type(name) == layer)
    });
    Ok(written.await.map_err(Failure::internal)??)
}

/// The bytes in both models of each type of layer that they store in different formats.
fn differing<'a>(base: &'a Gguf, other: &Gguf) -> BTreeMap<&'a str, (u64, u64)> {
    let mut layers = BTreeMap::new();
    for tensor in base.tensors() {
        let same = other.tensors().iter().find(|same| same.name == tensor.name);
        if let Some(same) = same.filter(|same| same.kind != tensor.kind) {
            let bytes: &mut (u64, u64) = layers.entry(layer_type(&tensor.name)).or_default();
            bytes.0 += tensor.bytes;
            bytes.1 += same.bytes;
        }
    }
    layers
}

/// `blk.7.ffn_down.weight` is `ffn_down`, and `output.weight` is `output`.
fn layer_type(name: &str) -> &str {
    let name = name.strip_suffix(".weight").unwrap_or(name);
    let in_block = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    in_block.map_or(name, |(_, layer)| layer)
}

pub(super) fn layer_table(layers: &[LayerDistance]) -> String {
    let megabytes = |bytes: u64| bytes as f64 / MB;
    let columns: &[Column<'_, LayerDistance>] = &[
        ("only these weights", &|one| one.layer.clone()),
        ("MB", &|one| {
            format!("{:.1} → {:.1}", megabytes(one.reference_bytes), megabytes(one.bytes))
        }),
        ("KL divergence", &|one| format!("{:.5}", one.distance.divergence.value)),
        ("same token, %", &|one| format!("{:.2}", one.distance.same_top.value * 100.0)),
        ("ln PPL", &|one| format!("{:+.5}", one.distance.ln_ppl_ratio.value)),
    ];
    rows(columns, layers).trim_fmt()
}

impl From<MixError> for Failure {
    fn from(error: MixError) -> Failure {
        match error {
            MixError::Disk(error) => Failure::internal(error),
            error => Failure::usage(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_all_blocks_count_together() {
        let rows = [
            ("blk.0.ffn_down.weight", "ffn_down"),
            ("blk.17.attn_q.weight", "attn_q"),
            ("blk.3.attn_q.bias", "attn_q.bias"),
            ("token_embd.weight", "token_embd"),
            ("output.weight", "output"),
        ];
        for (name, expected) in rows {
            assert_eq!(layer_type(name), expected);
        }
    }
}
