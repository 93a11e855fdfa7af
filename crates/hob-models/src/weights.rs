//! Groups tensors into weights with one purpose, which is recognised by name as the formats' loaders do.
//! Reads no files.

use std::collections::BTreeMap;

use hob_core::weights::{Part, Quant, WeightGroup, Weights};

/// One tensor of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'t> {
    pub(crate) name: &'t str,
    pub(crate) quant: Quant,
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
    /// Number of rows, which are never divided.
    pub(crate) rows: u64,
}

/// Rows that kernels process together.
const ROWS_TOGETHER: u64 = 8;

/// Joins tensors of one layer with one purpose and one type.
pub(crate) fn grouped<'t>(
    tensors: impl Iterator<Item = Stored<'t>>,
    task: impl Fn(&str) -> (Option<u32>, Part),
) -> Weights {
    let mut groups = BTreeMap::new();
    for tensor in tensors {
        let (layer, part) = task(tensor.name);
        let Stored { quant, elements, bytes, rows, .. } = tensor;
        let group =
            groups.entry((layer, part, quant)).or_insert(WeightGroup::empty(layer, part, quant));
        group.elements = group.elements.saturating_add(elements);
        group.bytes = group.bytes.saturating_add(bytes);
        group.rows = group.rows.saturating_add(rows);
        if rows.is_multiple_of(ROWS_TOGETHER) {
            group.in_eights_bytes = group.in_eights_bytes.saturating_add(bytes);
        }
    }
    Weights(groups.into_values().collect())
}

/// Purpose of a GGUF tensor. `layers` decode; later layers only predict further tokens.
pub(crate) fn gguf_task(name: &str, layers: u32) -> (Option<u32>, Part) {
    let numbered = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    if let Some((number, rest)) = numbered
        && let Ok(layer) = number.parse::<u32>()
    {
        let part = match rest {
            _ if layer >= layers || rest.starts_with("nextn.") => Part::Predictor,
            _ if rest.contains("_exps") => Part::Experts,
            _ => Part::Dense,
        };
        return ((part != Part::Predictor).then_some(layer), part);
    }
    let part = match name.split('.').next().unwrap_or_default() {
        "token_embd" => Part::TokenEmbedding,
        "per_layer_token_embd" => Part::LayerEmbedding,
        "output" => Part::Output,
        "v" | "a" | "mm" => Part::Tower,
        _ => Part::Dense,
    };
    (None, part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tensor_does() {
        let rows = [
            ("token_embd.weight", (None, Part::TokenEmbedding)),
            ("per_layer_token_embd.weight", (None, Part::LayerEmbedding)),
            ("output.weight", (None, Part::Output)),
            ("output_norm.weight", (None, Part::Dense)),
            ("blk.0.attn_q.weight", (Some(0), Part::Dense)),
            ("blk.3.ffn_gate_up_exps.weight", (Some(3), Part::Experts)),
            ("blk.3.ffn_gate_shexp.weight", (Some(3), Part::Dense)),
            ("blk.4.attn_q.weight", (None, Part::Predictor)),
            ("blk.3.nextn.eh_proj.weight", (None, Part::Predictor)),
            ("v.blk.7.attn_q.weight", (None, Part::Tower)),
            ("mm.0.weight", (None, Part::Tower)),
            ("blk.x.attn_q.weight", (None, Part::Dense)),
            ("rope_freqs.weight", (None, Part::Dense)),
        ];
        for (name, expected) in rows {
            assert_eq!(gguf_task(name, 4), expected, "{name}");
        }
    }

    #[test]
    fn alike_tensors_are_one_group() {
        let stored =
            |name, rows| Stored { name, quant: Quant("F16"), elements: 64, bytes: 128, rows };
        let tensors = [
            stored("blk.0.attn_q.weight", 8),
            stored("blk.0.attn_k.weight", 4),
            stored("blk.1.attn_q.weight", 8),
        ];
        let weights = grouped(tensors.into_iter(), |name| gguf_task(name, 2));
        let groups: Vec<_> =
            weights.0.iter().map(|g| (g.layer, g.elements, g.bytes, g.in_eights_bytes)).collect();
        assert_eq!(groups, [(Some(0), 128, 256, 128), (Some(1), 64, 128, 128)]);
        assert_eq!((weights.bytes(), weights.is_tied()), (384, true));
    }
}
