//! The encoder: a spectrogram in, keys and values for the decoder out.
//! It computes only as many positions as the window has, not the thirty seconds of the training.

use super::file::Sizes;
use super::ggml::{Backends, Graph, Tensor, Type};
use super::weights::{Attention, Linear, Norm, Weights};

pub(super) const EPSILON: f32 = 1e-5;

/// Encodes a spectrogram (bands by frames, two frames for each position), and writes the decoder's keys and
/// values for the sound. Returns false if there is not enough memory.
pub(super) fn encode(
    weights: &Weights,
    sizes: &Sizes,
    backends: &mut Backends,
    mel: &[f32],
) -> bool {
    let frames = mel.len() / sizes.mels;
    let positions = frames / 2;
    let state = sizes.audio_state;
    let graph = Graph::new();
    let input = graph.input_floats(frames, sizes.mels);
    let [first, second] = weights.conv;
    let mut x = graph.gelu(biased(&graph, graph.conv(first.weight, input, 1, 1), first.bias));
    x = graph.gelu(biased(&graph, graph.conv(second.weight, x, 2, 1), second.bias));
    let x = graph.cont(graph.transpose(graph.reshape(x, positions, state, 1)));
    let mut x = graph.add(x, graph.view(weights.encoder_position, (state, positions), state, 0));
    for block in &weights.encoder {
        x = graph.add(x, attend(&graph, x, &block.attention, sizes.audio_heads));
        let [up, down] = block.mlp;
        let inner = graph.gelu(linear(&graph, normed(&graph, x, block.mlp_norm), up));
        x = graph.add(x, linear(&graph, inner, down));
    }
    let sound = normed(&graph, x, weights.encoder_norm);
    for (block, cache) in weights.decoder.iter().zip(&weights.cross) {
        let Some(cross) = block.cross else { continue };
        let key = graph.mul_mat(cross.key.weight, sound);
        graph.want(graph.copy(key, graph.view(cache.key, (state, positions), state, 0)));
        // Transposed, as the decoder multiplies it.
        let value = graph.transpose(linear(&graph, sound, cross.value));
        graph.want(graph.copy(value, graph.view(cache.value, (positions, state), positions, 0)));
    }
    backends.compute(&graph, |inputs| inputs.floats(input, mel))
}

fn attend<'a>(
    graph: &Graph<'a>,
    x: Tensor<'a>,
    attention: &Attention<'a>,
    heads: usize,
) -> Tensor<'a> {
    let (state, positions) = (x.dim(0), x.dim(1));
    let width = state / heads;
    let x = normed(graph, x, attention.norm);
    let split = |part: Tensor<'a>| graph.reshape(part, width, heads, positions);
    let query = graph.permute(split(linear(graph, x, attention.query)), [0, 2, 1]);
    let key =
        graph.cast(graph.permute(split(linear(graph, x, attention.key)), [0, 2, 1]), Type::F16);
    let value =
        graph.cast(graph.permute(split(linear(graph, x, attention.value)), [1, 2, 0]), Type::F16);
    let scores = graph.scaled_softmax(graph.mul_mat(key, query), 1.0 / (width as f32).sqrt());
    let mixed = graph.permute(graph.mul_mat(value, scores), [0, 2, 1]);
    linear(graph, graph.reshape(graph.cont(mixed), state, positions, 1), attention.out)
}

pub(super) fn normed<'a>(graph: &Graph<'a>, x: Tensor<'a>, norm: Norm<'a>) -> Tensor<'a> {
    graph.add(graph.mul(graph.norm(x, EPSILON), norm.weight), norm.bias)
}

pub(super) fn linear<'a>(graph: &Graph<'a>, x: Tensor<'a>, linear: Linear<'a>) -> Tensor<'a> {
    biased(graph, graph.mul_mat(linear.weight, x), linear.bias)
}

fn biased<'a>(graph: &Graph<'a>, x: Tensor<'a>, bias: Option<Tensor<'a>>) -> Tensor<'a> {
    bias.map_or(x, |bias| graph.add(x, bias))
}
