//! The decoder: tokens in, the logits of the next token out.
//! Keys and values of the text so far stay in a cache, so each token is computed once.

use super::TranscribeError;
use super::encoder::{linear, normed};
use super::file::Sizes;
use super::ggml::{Backends, Graph, Tensor, floats};
use super::weights::{Attention, KeyValues, Weights};

/// The tokens to compute in one call of the decoder.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) tokens: &'a [u32],
    /// Tokens that are in the cache, of all branches.
    pub(super) past: usize,
    /// `None`: each token follows the one before.
    pub(super) branches: Option<&'a Branches>,
    /// Positions of the encoder's window.
    pub(super) positions: usize,
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

/// Tokens of one step that continue different texts. The cache holds the texts as a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Branches {
    /// Tokens before each of these in its own text.
    pub(super) depth: usize,
    /// One row for each token, with a value for each token of the cache and of this step: 0 if it is seen, minus infinity
    /// if it is hidden.
    pub(super) mask: Vec<f32>,
}

struct Decoding<'a, 'b> {
    graph: &'b Graph<'a>,
    sizes: &'b Sizes,
    step: Step<'b>,
    /// The depth of each token, and the mask.
    branches: Option<(Tensor<'a>, Tensor<'a>)>,
}

/// The logits after the tokens of this step whose indexes are in `rows`, one row after the other. An error if there is
/// not enough memory, or if the request was cancelled.
pub(super) fn logits(
    weights: &Weights,
    sizes: &Sizes,
    backends: &mut Backends,
    step: Step<'_>,
    rows: &[i32],
) -> Result<Vec<f32>, TranscribeError> {
    let graph = Graph::new();
    let tokens = graph.input_ints(step.tokens.len());
    let wanted = graph.input_ints(rows.len());
    let count = step.tokens.len();
    let branches = step
        .branches
        .map(|_| (graph.input_ints(count), graph.input_floats(step.past + count, count)));
    let decoding = Decoding { graph: &graph, sizes, step, branches };
    let mut x = decoding.embedded(weights, tokens);
    for (layer, block) in weights.layers.decoder.iter().enumerate() {
        x = decoding.self_attention(x, &block.attention, weights.self_caches[layer]);
        if let Some(cross) = &block.cross {
            let (scores, value) = decoding.cross_scores(x, cross, weights.cross_caches[layer]);
            x = decoding.mixed(x, cross, scores, value);
        }
        let [up, down] = block.mlp;
        let inner = graph.gelu(linear(&graph, normed(&graph, x, block.mlp_norm), up));
        x = graph.add(x, linear(&graph, inner, down));
    }
    let x = graph.rows(normed(&graph, x, weights.layers.decoder_norm), wanted);
    let logits = graph.want(graph.mul_mat(weights.layers.token, x));
    let numbers: Vec<i32> = step.tokens.iter().map(|token| *token as i32).collect();
    backends.compute(&graph, step.cancelled, |inputs| {
        inputs.ints(tokens, &numbers);
        inputs.ints(wanted, rows);
        if let (Some((depths, mask)), Some(branches)) = (branches, step.branches) {
            inputs.ints(depths, &vec![branches.depth as i32; count]);
            inputs.floats(mask, &branches.mask);
        }
    })?;
    Ok(floats(logits))
}

/// The cross-attention scores before the softmax, for each `(layer, head)` of `heads`: one row of positions for each token.
pub(super) fn attention(
    weights: &Weights,
    sizes: &Sizes,
    backends: &mut Backends,
    step: Step<'_>,
    heads: &[(usize, usize)],
) -> Result<Vec<Vec<f32>>, TranscribeError> {
    let graph = Graph::new();
    let tokens = graph.input_ints(step.tokens.len());
    let decoding = Decoding { graph: &graph, sizes, step, branches: None };
    let mut x = decoding.embedded(weights, tokens);
    let mut found: Vec<Option<Tensor<'_>>> = vec![None; heads.len()];
    let last = heads.iter().map(|(layer, _)| *layer).max().unwrap_or(0);
    for (layer, block) in weights.layers.decoder.iter().enumerate().take(last + 1) {
        x = decoding.self_attention(x, &block.attention, weights.self_caches[layer]);
        let Some(cross) = &block.cross else { continue };
        let (scores, value) = decoding.cross_scores(x, cross, weights.cross_caches[layer]);
        for ((_, head), found) in heads.iter().zip(&mut found).filter(|((of, _), _)| *of == layer) {
            let (positions, count) = (step.positions, step.tokens.len());
            let of_head =
                graph.view(scores, (positions, count), positions, head * positions * count);
            *found = Some(graph.want(graph.cont(of_head)));
        }
        x = decoding.mixed(x, cross, scores, value);
        let [up, down] = block.mlp;
        let inner = graph.gelu(linear(&graph, normed(&graph, x, block.mlp_norm), up));
        x = graph.add(x, linear(&graph, inner, down));
    }
    let numbers: Vec<i32> = step.tokens.iter().map(|token| *token as i32).collect();
    backends.compute(&graph, step.cancelled, |inputs| inputs.ints(tokens, &numbers))?;
    Ok(found.into_iter().flatten().map(floats).collect())
}

impl<'a> Decoding<'a, '_> {
    fn embedded(&self, weights: &Weights, tokens: Tensor<'a>) -> Tensor<'a> {
        if let Some((depths, _)) = self.branches {
            let places = self.graph.rows(weights.layers.decoder_position, depths);
            return self.graph.add(self.graph.rows(weights.layers.token, tokens), places);
        }
        let (state, count) = (self.sizes.text_state, self.step.tokens.len());
        let place = self.graph.view(
            weights.layers.decoder_position,
            (state, count),
            state,
            self.step.past * state,
        );
        self.graph.add(self.graph.rows(weights.layers.token, tokens), place)
    }

    fn width(&self) -> usize {
        self.sizes.text_state / self.sizes.text_heads
    }

    /// `x` in heads, for a multiplication head by head.
    fn heads(&self, x: Tensor<'a>) -> Tensor<'a> {
        let split =
            self.graph.reshape(x, self.width(), self.sizes.text_heads, self.step.tokens.len());
        self.graph.permute(split, [0, 2, 1])
    }

    fn self_attention(
        &self,
        x: Tensor<'a>,
        attention: &Attention<Tensor<'a>>,
        cache: KeyValues<'a>,
    ) -> Tensor<'a> {
        let Decoding { graph, sizes, step, branches } = self;
        let (state, count, past) = (sizes.text_state, step.tokens.len(), step.past);
        let cached_max = sizes.text_cached_max();
        let all = past + count;
        let inner = normed(graph, x, attention.norm);
        let query = self.heads(linear(graph, inner, attention.query));
        let key = graph.mul_mat(attention.key.weight, inner);
        graph.first(graph.copy(key, graph.view(cache.key, (state, count), state, past * state)));
        let value = graph.transpose(linear(graph, inner, attention.value));
        let room = graph.view(cache.value, (count, state), cached_max, past);
        graph.first(graph.copy(value, room));
        let (width, heads) = (self.width(), sizes.text_heads);
        let key = graph.view3(cache.key, (width, all, heads), (state, width), 0);
        let value =
            graph.view3(cache.value, (all, width, heads), (cached_max, cached_max * width), 0);
        let scores = graph.scale(graph.mul_mat(key, query), 1.0 / (width as f32).sqrt());
        let scores = match branches {
            Some((_, mask)) => graph.add(scores, *mask),
            None if count > 1 => graph.mask_future(scores, past),
            None => scores,
        };
        self.mixed(x, attention, scores, value)
    }

    /// The scores of each head before the softmax, and the values of the sound.
    fn cross_scores(
        &self,
        x: Tensor<'a>,
        attention: &Attention<Tensor<'a>>,
        cache: KeyValues<'a>,
    ) -> (Tensor<'a>, Tensor<'a>) {
        let Decoding { graph, sizes, step, .. } = self;
        let (state, width, positions) = (sizes.text_state, self.width(), step.positions);
        let query = self.heads(linear(graph, normed(graph, x, attention.norm), attention.query));
        let key = graph.view3(cache.key, (width, positions, sizes.text_heads), (state, width), 0);
        let value = graph.view3(
            cache.value,
            (positions, width, sizes.text_heads),
            (positions, positions * width),
            0,
        );
        (graph.scale(graph.mul_mat(key, query), 1.0 / (width as f32).sqrt()), value)
    }

    /// `x` with the values that the scores choose.
    fn mixed(
        &self,
        x: Tensor<'a>,
        attention: &Attention<Tensor<'a>>,
        scores: Tensor<'a>,
        value: Tensor<'a>,
    ) -> Tensor<'a> {
        let Decoding { graph, sizes, step, .. } = self;
        let mixed = graph.permute(graph.mul_mat(value, graph.softmax(scores)), [0, 2, 1]);
        let mixed = graph.reshape(graph.cont(mixed), sizes.text_state, step.tokens.len(), 1);
        graph.add(x, linear(graph, mixed, attention.out))
    }
}
