//! Buffers of one step. The engine reuses them between operations, so the size is that of the largest moment:
//! the logits, a feed-forward, or attention.

use super::{ContextPlan, product};
use crate::ModelShape;
use crate::shape::LayerShape;

const F32_BYTES: u64 = 4;
const F16_BYTES: u64 = 2;
/// Token ids, positions and cell numbers of a step.
const INPUT_BYTES: u64 = 64 << 10;
/// Vectors of embedding length that exist together with the logits, and with a feed-forward.
/// Counted in allocations of llama.cpp b11434 for SmolLM2-135M and Gemma-3-270M.
const ROWS_BESIDE_LOGITS: u64 = 6;
const ROWS_BESIDE_FEED_FORWARD: u64 = 5;
/// Gate, up, and their product.
const FEED_FORWARD_ROWS: u64 = 3;

pub(super) fn bytes(shape: &ModelShape, plan: &ContextPlan) -> u64 {
    let tokens = u64::from(plan.step_tokens.min(plan.cells()));
    let largest =
        logits(shape, plan, tokens).max(feed_forward(shape, tokens)).max(attention(shape, tokens));
    largest.saturating_add(masks(shape, plan, tokens)).saturating_add(INPUT_BYTES)
}

fn rows(count: u64, length: u32, tokens: u64) -> u64 {
    product(&[count, length.into(), tokens, F32_BYTES])
}

fn logits(shape: &ModelShape, plan: &ContextPlan, tokens: u64) -> u64 {
    let outputs = tokens.min(plan.outputs_max.max(plan.sequences).into());
    let rows_kept = rows(ROWS_BESIDE_LOGITS, shape.embedding_length, tokens);
    rows(1, shape.vocab_size, outputs).saturating_add(rows_kept)
}

fn feed_forward(shape: &ModelShape, tokens: u64) -> u64 {
    // Each used expert has its own row before the rows are summed.
    let rows_kept = ROWS_BESIDE_FEED_FORWARD + u64::from(shape.experts_used);
    let wide = rows(FEED_FORWARD_ROWS, shape.feed_forward_length, tokens);
    wide.saturating_add(rows(rows_kept, shape.embedding_length, tokens))
}

/// Queries and results of flash attention.
fn attention(shape: &ModelShape, tokens: u64) -> u64 {
    let of_layer = |layer: &LayerShape| {
        let Some(kv) = layer.kv else { return 0 };
        rows(layer.heads.into(), kv.key_length.saturating_add(kv.value_length), tokens)
    };
    let widest = shape.layers.iter().map(of_layer).max().unwrap_or(0);
    widest.saturating_add(rows(ROWS_BESIDE_LOGITS, shape.embedding_length, tokens))
}

/// Attention masks: one for all full layers, one for all sliding-window layers.
fn masks(shape: &ModelShape, plan: &ContextPlan, tokens: u64) -> u64 {
    let mask = |windowed: bool| {
        let layers = shape.layers.iter().filter(|layer| layer.kv.is_some());
        let mut alike = layers.filter(|layer| layer.window_tokens.is_some() == windowed);
        alike.next().map_or(0, |layer| product(&[cells(plan, layer).into(), tokens, F16_BYTES]))
    };
    mask(false).saturating_add(mask(true))
}

fn cells(plan: &ContextPlan, layer: &LayerShape) -> u32 {
    layer.window_tokens.map_or(plan.cells(), |tokens| plan.window_cells(tokens))
}
