//! The purpose of a tensor in a Hugging Face model, by its name.
//! Names differ between families, but the words in them hardly do.

use hob_core::weights::Part;

/// Layer and purpose of a tensor. `layers` is the number of decoding layers.
pub(super) fn task(name: &str, layers: u32) -> (Option<u32>, Part) {
    let words: Vec<&str> = name.split('.').collect();
    if words.iter().any(|word| is_tower(word)) {
        return (None, Part::Tower);
    }
    if words.iter().any(|word| matches!(*word, "mtp" | "mtp_layers" | "nextn")) {
        return (None, Part::Predictor);
    }
    match layer(&words) {
        Some(number) if number >= layers => (None, Part::Predictor),
        Some(number) if words.iter().any(|word| matches!(*word, "experts" | "switch_mlp")) => {
            (Some(number), Part::Experts)
        }
        Some(number) => (Some(number), Part::Dense),
        None => (None, outer(&words)),
    }
}

/// Vision and audio towers, and their connection to the model.
fn is_tower(word: &str) -> bool {
    let begins = ["vision", "visual", "audio", "img_", "image_", "multi_modal", "multimodal"];
    let others =
        ["embed_vision", "embed_audio", "mm_projector", "mlp1", "patch_merger", "connector"];
    begins.iter().any(|begin| word.starts_with(begin)) || others.contains(&word)
}

fn layer(words: &[&str]) -> Option<u32> {
    let is_list = |word: &str| matches!(word, "layers" | "h" | "blocks" | "block");
    let pairs = words.windows(2).filter(|pair| is_list(pair[0]));
    pairs.filter_map(|pair| pair[1].parse().ok()).next()
}

fn outer(words: &[&str]) -> Part {
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    if has(&["embed_tokens_per_layer"]) {
        Part::LayerEmbedding
    } else if has(&["embed_tokens", "wte", "word_embeddings", "tok_embeddings", "embeddings"]) {
        Part::TokenEmbedding
    } else if has(&["lm_head", "output", "embed_out"]) {
        Part::Output
    } else {
        Part::Dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tensor_does() {
        let rows = [
            ("model.embed_tokens.weight", (None, Part::TokenEmbedding)),
            ("model.language_model.embed_tokens.weight", (None, Part::TokenEmbedding)),
            ("model.language_model.embed_tokens_per_layer.weight", (None, Part::LayerEmbedding)),
            ("lm_head.weight", (None, Part::Output)),
            ("language_model.lm_head.qweight", (None, Part::Output)),
            ("model.norm.weight", (None, Part::Dense)),
            ("model.layers.3.self_attn.q_proj.trellis", (Some(3), Part::Dense)),
            ("model.layers.3.mlp.experts.7.up_proj.weight", (Some(3), Part::Experts)),
            ("model.layers.3.mlp.experts.gate_up_proj_blocks", (Some(3), Part::Experts)),
            ("model.layers.3.block_sparse_moe.experts.0.w1.weight", (Some(3), Part::Experts)),
            ("model.layers.3.mlp.shared_experts.up_proj.weight", (Some(3), Part::Dense)),
            ("model.layers.3.mlp.switch_mlp.up_proj.weight", (Some(3), Part::Experts)),
            ("model.layers.4.mlp.experts.7.up_proj.weight", (None, Part::Predictor)),
            ("mtp.layers.0.mlp.experts.7.up_proj.weight", (None, Part::Predictor)),
            ("model.visual.blocks.0.attn.qkv.weight", (None, Part::Tower)),
            ("vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight", (None, Part::Tower)),
            ("multi_modal_projector.linear_1.weight", (None, Part::Tower)),
            ("audio_tower.layers.1.fc1.weight", (None, Part::Tower)),
            ("transformer.h.2.attn.c_attn.weight", (Some(2), Part::Dense)),
            ("model.layers.x.weight", (None, Part::Dense)),
        ];
        for (name, expected) in rows {
            assert_eq!(task(name, 4), expected, "{name}");
        }
    }
}
