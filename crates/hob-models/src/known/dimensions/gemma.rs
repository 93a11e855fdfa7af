//! Dimensions of Google's Gemma models, by generation.
//! Parameter counts are checked against those that llama.cpp prints for the published files.

use super::{Dense, with_experts};
use crate::recipe::Dimensions;

const V2_2B: Dense = Dense {
    architecture: "gemma2",
    layers: 26,
    embedding: 2_304,
    feed_forward: 9_216,
    heads: 8,
    kv_heads: 4,
    head: 256,
    vocabulary: 256_000,
};

const V3_4B: Dense = Dense {
    architecture: "gemma3",
    layers: 34,
    embedding: 2_560,
    feed_forward: 10_240,
    heads: 8,
    kv_heads: 4,
    head: 256,
    vocabulary: 262_208,
};

const V4_E4B: Dense = Dense {
    architecture: "gemma4",
    layers: 42,
    embedding: 2_560,
    feed_forward: 10_240,
    heads: 8,
    kv_heads: 2,
    // Head size of full layers; sliding layers have half of it.
    head: 512,
    vocabulary: 262_144,
};

fn windowed(of: &Dense, window_tokens: u64) -> Dimensions {
    of.dimensions().with("attention.sliding_window", window_tokens).tied()
}

/// The last layer of each `period` has full attention; the others have a window.
fn v4(of: &Dense, period: u64, window_tokens: u64) -> Dimensions {
    let slides: Vec<u64> =
        (1..=of.layers).map(|layer| u64::from(!layer.is_multiple_of(period))).collect();
    windowed(of, window_tokens)
        .with_each("attention.sliding_window_pattern", &slides)
        .with("attention.key_length_swa", 256)
        .with("attention.value_length_swa", 256)
}

/// KV heads of sliding layers, and of every sixth layer, which has full attention.
fn kv_heads(layers: u64, sliding: u64, full: u64) -> Vec<u64> {
    (1..=layers).map(|layer| if layer.is_multiple_of(6) { full } else { sliding }).collect()
}

pub(in crate::known) fn v2_2b() -> Dimensions {
    windowed(&V2_2B, 4_096)
}

pub(in crate::known) fn v2_9b() -> Dimensions {
    let of = Dense {
        layers: 42,
        embedding: 3_584,
        feed_forward: 14_336,
        heads: 16,
        kv_heads: 8,
        ..V2_2B
    };
    windowed(&of, 4_096)
}

pub(in crate::known) fn v2_27b() -> Dimensions {
    let of = Dense {
        layers: 46,
        embedding: 4_608,
        feed_forward: 36_864,
        heads: 32,
        kv_heads: 16,
        head: 128,
        ..V2_2B
    };
    windowed(&of, 4_096)
}

pub(in crate::known) fn v3_270m() -> Dimensions {
    let of = Dense {
        layers: 18,
        embedding: 640,
        feed_forward: 2_048,
        heads: 4,
        kv_heads: 1,
        vocabulary: 262_144,
        ..V3_4B
    };
    windowed(&of, 512)
}

pub(in crate::known) fn v3_1b() -> Dimensions {
    let of = Dense {
        layers: 26,
        embedding: 1_152,
        feed_forward: 6_912,
        heads: 4,
        kv_heads: 1,
        vocabulary: 262_144,
        ..V3_4B
    };
    windowed(&of, 512)
}

pub(in crate::known) fn v3_4b() -> Dimensions {
    windowed(&V3_4B, 1_024)
}

pub(in crate::known) fn v3_12b() -> Dimensions {
    let of = Dense {
        layers: 48,
        embedding: 3_840,
        feed_forward: 15_360,
        heads: 16,
        kv_heads: 8,
        ..V3_4B
    };
    windowed(&of, 1_024)
}

pub(in crate::known) fn v3_27b() -> Dimensions {
    let of = Dense {
        layers: 62,
        embedding: 5_376,
        feed_forward: 21_504,
        heads: 32,
        kv_heads: 16,
        head: 128,
        ..V3_4B
    };
    windowed(&of, 1_024)
}

/// Layers that use the keys of earlier layers have a feed-forward of twice the width.
pub(in crate::known) fn v4_e2b() -> Dimensions {
    const OWN_KEYS: u64 = 15;
    let of = Dense { layers: 35, embedding: 1_536, feed_forward: 6_144, kv_heads: 1, ..V4_E4B };
    let wide = |layer| if layer < OWN_KEYS { of.feed_forward } else { 2 * of.feed_forward };
    let widths: Vec<u64> = (0..of.layers).map(wide).collect();
    v4(&of, 5, 512)
        .with_each("feed_forward_length", &widths)
        .with("attention.shared_kv_layers", of.layers - OWN_KEYS)
        .with("embedding_length_per_layer_input", 256)
}

pub(in crate::known) fn v4_e4b() -> Dimensions {
    v4(&V4_E4B, 6, 512)
        .with("attention.shared_kv_layers", 18)
        .with("embedding_length_per_layer_input", 256)
}

pub(in crate::known) fn v4_26b() -> Dimensions {
    let of = Dense { layers: 30, embedding: 2_816, feed_forward: 2_112, heads: 16, ..V4_E4B };
    with_experts(v4(&of, 6, 1_024), 128, 8, 704)
        .with_each("attention.head_count_kv", &kv_heads(of.layers, 8, 2))
}

pub(in crate::known) fn v4_31b() -> Dimensions {
    let of = Dense { layers: 60, embedding: 5_376, feed_forward: 21_504, heads: 32, ..V4_E4B };
    v4(&of, 6, 1_024).with_each("attention.head_count_kv", &kv_heads(of.layers, 16, 4))
}
