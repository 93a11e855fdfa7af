//! Translates per-layer lists and patterns of a `config.json` to GGUF keys: windows, states, compressed attention.
//! A layer of unknown kind counts as one with full attention, which needs the most memory.

use serde_json::{Map, Value};

use super::{ConfigError, number};
use crate::recipe::Dimensions;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Full,
    Window,
    State,
    /// No attention, so nothing is stored.
    None,
}

pub(super) fn add(
    dimensions: Dimensions,
    text: &Map<String, Value>,
) -> Result<Dimensions, ConfigError> {
    let kinds = kinds(text);
    let dimensions = windows(dimensions, text, kinds.as_deref());
    let dimensions = states(dimensions, text, kinds.as_deref());
    let dimensions = wide_attention(dimensions, text, kinds.as_deref());
    compressed(dimensions, text)
}

/// Kinds by layer, if the configuration lists them.
fn kinds(text: &Map<String, Value>) -> Option<Vec<Kind>> {
    let layers = number(text, &["num_hidden_layers"])?;
    if let Some(pattern) = text.get("hybrid_override_pattern").and_then(Value::as_str) {
        return Some(pattern.chars().map(of_letter).collect());
    }
    if let Some(Value::Array(types)) = text.get("layer_types") {
        return Some(types.iter().map(|kind| of_word(kind.as_str().unwrap_or_default())).collect());
    }
    let attends = text.get("full_attn_idxs")?.as_array()?;
    let kind = |layer: u64| match attends.iter().any(|index| index.as_u64() == Some(layer)) {
        true => Kind::Full,
        false => Kind::State,
    };
    // Longer lists are rejected later.
    Some((0..layers.min(1_024)).map(kind).collect())
}

fn of_letter(letter: char) -> Kind {
    match letter {
        'M' => Kind::State,
        '-' | 'E' => Kind::None,
        _ => Kind::Full,
    }
}

fn of_word(word: &str) -> Kind {
    match word {
        "sliding_attention" | "chunked_attention" => Kind::Window,
        "linear_attention" | "conv" | "mamba" => Kind::State,
        _ => Kind::Full,
    }
}

fn flags(kinds: &[Kind], wanted: Kind) -> Option<Vec<u64>> {
    kinds.contains(&wanted).then(|| kinds.iter().map(|kind| (*kind == wanted).into()).collect())
}

fn windows(
    dimensions: Dimensions,
    text: &Map<String, Value>,
    kinds: Option<&[Kind]>,
) -> Dimensions {
    let is_off = text.get("use_sliding_window").and_then(Value::as_bool) == Some(false);
    let tokens = number(text, &["sliding_window", "attention_chunk_size"]);
    // If the listed layers have no window, the window length has no meaning.
    let is_unused = kinds.is_some_and(|kinds| !kinds.contains(&Kind::Window));
    let Some(tokens) = tokens.filter(|_| !is_off && !is_unused) else { return dimensions };
    let dimensions = dimensions.with("attention.sliding_window", tokens);
    match kinds.and_then(|kinds| flags(kinds, Kind::Window)) {
        Some(slides) => dimensions.with_each("attention.sliding_window_pattern", &slides),
        None => dimensions,
    }
}

fn states(
    mut dimensions: Dimensions,
    text: &Map<String, Value>,
    kinds: Option<&[Kind]>,
) -> Dimensions {
    let heads = number(text, &["linear_num_value_heads", "mamba_n_heads", "mamba_num_heads"]);
    let head = number(text, &["linear_value_head_dim", "mamba_d_head", "mamba_head_dim"]);
    let same: [(&str, &[&str]); 3] = [
        ("ssm.conv_kernel", &["linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel"]),
        ("ssm.state_size", &["linear_key_head_dim", "mamba_d_state", "ssm_state_size"]),
        ("ssm.group_count", &["linear_num_key_heads", "mamba_n_groups", "n_groups"]),
    ];
    if let (Some(heads), Some(head)) = (heads, head) {
        dimensions = dimensions
            .with("ssm.time_step_rank", heads)
            .with("ssm.inner_size", heads.saturating_mul(head));
        for (key, names) in same {
            if let Some(value) = number(text, names) {
                dimensions = dimensions.with(key, value);
            }
        }
    }
    match kinds.and_then(|kinds| flags(kinds, Kind::State)) {
        Some(recurrent) => dimensions.with_each("attention.recurrent_layers", &recurrent),
        None => dimensions,
    }
}

/// Full layers may have heads of other lengths and numbers.
fn wide_attention(
    mut dimensions: Dimensions,
    text: &Map<String, Value>,
    kinds: Option<&[Kind]>,
) -> Dimensions {
    if let (Some(wide), Some(usual)) =
        (number(text, &["global_head_dim"]), number(text, &["head_dim"]))
    {
        dimensions = dimensions
            .with("attention.key_length", wide)
            .with("attention.value_length", wide)
            .with("attention.key_length_swa", usual)
            .with("attention.value_length_swa", usual);
    }
    let heads = number(text, &["num_key_value_heads", "num_attention_heads"]);
    let global = number(text, &["num_global_key_value_heads"]);
    let (Some(heads), Some(kinds)) = (heads, kinds) else { return dimensions };
    let is_alike = global.is_none() && !kinds.contains(&Kind::None);
    let of = |kind: &Kind| match kind {
        Kind::None => 0,
        Kind::Full => global.unwrap_or(heads),
        Kind::Window | Kind::State => heads,
    };
    if is_alike {
        return dimensions;
    }
    let each: Vec<u64> = kinds.iter().map(of).collect();
    dimensions.with_each("attention.head_count_kv", &each)
}

/// Multi-head latent attention: keys and values are computed from one stored row per token.
fn compressed(
    dimensions: Dimensions,
    text: &Map<String, Value>,
) -> Result<Dimensions, ConfigError> {
    let Some(rank) = number(text, &["kv_lora_rank"]) else { return Ok(dimensions) };
    let needed = |key: &'static str| number(text, &[key]).ok_or(ConfigError::Missing { key });
    let rope = needed("qk_rope_head_dim")?;
    let key = needed("qk_nope_head_dim")?.saturating_add(rope);
    let dimensions = dimensions
        .with("attention.kv_lora_rank", rank)
        .with("rope.dimension_count", rope)
        .with("attention.head_count_kv", 1)
        .with("attention.key_length", rank.saturating_add(rope))
        .with("attention.value_length", rank)
        .with("attention.key_length_mla", key)
        .with("attention.value_length_mla", needed("v_head_dim")?);
    Ok(match number(text, &["q_lora_rank"]) {
        Some(rank) => dimensions.with("attention.q_lora_rank", rank),
        None => dimensions,
    })
}
