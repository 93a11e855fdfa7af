//! The encoder: a spectrogram in, keys and values for the decoder out.
//! It computes only as many positions as the window has, not the thirty seconds of the training.

use hob_kernels::Activation;

use super::TranscribeError;
use super::file::Sizes;
use super::ggml::{Backends, Graph, Tensor, Type};
use super::weights::{Attention, Linear, Norm, Weights};

pub(super) const EPSILON: f32 = 1e-5;

/// Encodes a spectrogram (bands by frames, two frames for each position), and writes the decoder's keys and
/// values for the sound.
pub(super) fn encode(
    weights: &Weights,
    sizes: &Sizes,
    backends: &mut Backends,
    mel: &[f32],
    cancelled: &dyn Fn() -> bool,
) -> Result<(), TranscribeError> {
    let frames = mel.len() / sizes.mels;
    let positions = frames / 2;
    let state = sizes.audio_state;
    let graph = Graph::new();
    let has_card = backends.has_card();
    let encoding =
        Encoding { graph: &graph, has_card, has_kernels: !has_card && hob_kernels::is_faster() };
    let input = graph.input_floats(frames, sizes.mels);
    let [first, second] = weights.layers.conv;
    let mut x = graph.gelu(biased(&graph, graph.conv(first.weight, input, 1, 1), first.bias));
    x = graph.gelu(biased(&graph, graph.conv(second.weight, x, 2, 1), second.bias));
    let x = graph.cont(graph.transpose(graph.reshape(x, positions, state, 1)));
    let mut x =
        graph.add(x, graph.view(weights.layers.encoder_position, (state, positions), state, 0));
    for block in &weights.layers.encoder {
        x = graph.add(x, encoding.attend(x, &block.attention, sizes.audio_heads));
        let [up, down] = block.mlp;
        let inner = encoding.input(normed(&graph, x, block.mlp_norm));
        let inner = encoding.input(encoding.linear(inner, up, Activation::Gelu));
        x = graph.add(x, encoding.linear(inner, down, Activation::None));
    }
    let sound = encoding.input(normed(&graph, x, weights.layers.encoder_norm));
    for (block, cache) in weights.layers.decoder.iter().zip(&weights.cross_caches) {
        let Some(cross) = block.cross else { continue };
        let key = encoding.linear(sound, cross.key, Activation::None);
        graph.want(graph.copy(key, graph.view(cache.key, (state, positions), state, 0)));
        // Transposed, as the decoder multiplies it.
        let value = graph.transpose(encoding.linear(sound, cross.value, Activation::None));
        graph.want(graph.copy(value, graph.view(cache.value, (positions, state), positions, 0)));
    }
    backends.compute(&graph, cancelled, |inputs| inputs.floats(input, mel))
}

struct Encoding<'a, 'b> {
    graph: &'b Graph<'a>,
    has_card: bool,
    /// The processor multiplies faster with hob's kernels than with ggml's.
    has_kernels: bool,
}

/// What matrices are multiplied with. ggml computes only what is used.
#[derive(Clone, Copy)]
struct Input<'a> {
    x: Tensor<'a>,
    /// For hob's kernels.
    narrow: Option<Tensor<'a>>,
}

impl<'a> Encoding<'a, '_> {
    fn input(&self, x: Tensor<'a>) -> Input<'a> {
        Input { x, narrow: self.has_kernels.then(|| self.graph.narrow(x)) }
    }

    fn linear(
        &self,
        Input { x, narrow }: Input<'a>,
        by: Linear<Tensor<'a>>,
        activation: Activation,
    ) -> Tensor<'a> {
        let (weight, size) = (by.weight, [by.weight.dim(0), by.weight.dim(1), x.dim(1)]);
        match narrow {
            Some(rows) if weight.kind() == Type::Q8_0 && hob_kernels::fits(size) => {
                self.graph.product(weight, rows, by.bias, activation)
            }
            _ if activation == Activation::Gelu => self.graph.gelu(linear(self.graph, x, by)),
            _ => linear(self.graph, x, by),
        }
    }

    fn attend(&self, x: Tensor<'a>, attention: &Attention<Tensor<'a>>, heads: usize) -> Tensor<'a> {
        let graph = self.graph;
        let (state, positions) = (x.dim(0), x.dim(1));
        let width = state / heads;
        let x = self.input(normed(graph, x, attention.norm));
        let heads_of = |part: Linear<Tensor<'a>>| {
            let split =
                graph.reshape(self.linear(x, part, Activation::None), width, heads, positions);
            graph.permute(split, [0, 2, 1])
        };
        let query = heads_of(attention.query);
        let [key, value] = [attention.key, attention.value].map(heads_of);
        // A card has kernels for 16-bit floats alone; a CPU would convert them back.
        let half = |part| if self.has_card { graph.cast(part, Type::F16) } else { part };
        let (key, value) = (half(key), half(value));
        let mixed = graph.attention(query, key, value, 1.0 / (width as f32).sqrt());
        let mixed = graph.reshape(mixed, state, positions, 1);
        self.linear(self.input(mixed), attention.out, Activation::None)
    }
}

pub(super) fn normed<'a>(graph: &Graph<'a>, x: Tensor<'a>, norm: Norm<Tensor<'a>>) -> Tensor<'a> {
    graph.add(graph.mul(graph.norm(x, EPSILON), norm.weight), norm.bias)
}

pub(super) fn linear<'a>(
    graph: &Graph<'a>,
    x: Tensor<'a>,
    linear: Linear<Tensor<'a>>,
) -> Tensor<'a> {
    biased(graph, graph.mul_mat(linear.weight, x), linear.bias)
}

fn biased<'a>(graph: &Graph<'a>, x: Tensor<'a>, bias: Option<Tensor<'a>>) -> Tensor<'a> {
    bias.map_or(x, |bias| graph.add(x, bias))
}
