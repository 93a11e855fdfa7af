//! Takes the residual blocks out of a stored vocoder, for an engine that computes them with its own kernels.
//! They are nine tenths of the vocoder's multiplications.

use prost::bytes::Bytes;

use crate::onnx::graph::{Dim, node, value};
use crate::onnx::proto::{DATA_FLOAT, NodeProto, TensorProto};
use crate::onnx::{DetachedGraph, Graph, GraphError};

const GENERATOR: &str = "/decoder/decoder/generator";
/// The block of each stage through which the noise of the sound source goes.
const NOISE: [&str; 2] = ["noise_res.0", "noise_res.1"];
/// The three parallel blocks of each stage.
const STAGES: [[&str; 3]; 2] =
    [["resblocks.0", "resblocks.1", "resblocks.2"], ["resblocks.3", "resblocks.4", "resblocks.5"]];
/// The mean of each stage's blocks. It becomes an input of the rest of the graph.
const MEANS: [&str; 2] = ["Div_2_output_0", "Div_4_output_0"];
/// The noise of each stage before its block. The stage adds the block's output to [`UPSAMPLED`].
const NOISE_IN: [&str; 2] =
    ["noise_convs.0/Conv_output_0/cropped", "noise_convs.1/Conv_output_0/cropped"];
/// The upsampled output of the stage before.
const UPSAMPLED: [&str; 2] = ["ups.0/ConvTranspose_output_0", "reflection_pad/Pad_output_0"];
/// A block has three pairs of convolutions; the first of a pair is dilated. The crop of a window
/// assumes these dilations, too.
const DILATIONS: [usize; 6] = [1, 1, 3, 1, 5, 1];
const STEPS: usize = DILATIONS.len();

/// A vocoder without its residual blocks.
#[derive(Clone, Debug)]
pub struct SplitVocoder {
    /// `features, pitch, energy, phases, style, carried_mean, carried_variance, carried_share, crop_starts, crop_ends →
    /// noise_0, noise_1, upsampled_0, styles, window_mean, window_variance`, then
    /// `stage_0, crop_starts, crop_ends → upsampled_1`, and `stage_1 → audio`. The window's statistics are those
    /// of the remaining normalisations.
    pub rest: DetachedGraph,
    /// The block for the noise of each stage.
    pub noise: [ResidualBlock; 2],
    /// The blocks of each stage, which read its sum and whose mean is its output.
    pub stages: [[ResidualBlock; 3]; 2],
    /// Where the remaining normalisations stand among all carried statistics: first channel and number of channels.
    pub rest_statistics: Vec<(usize, usize)>,
}

/// Why a vocoder is not split.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NotSplit {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error("the convolution '{convolution}' has {what} that the kernels do not compute")]
    Convolution { convolution: String, what: &'static str },
}

/// Three pairs of steps. The result of a pair is added to its input, and the sum is the input of the next pair.
#[derive(Clone, Debug)]
pub struct ResidualBlock {
    pub steps: [ResidualStep; STEPS],
}

/// Normalisation, activation and convolution of one step.
#[derive(Clone, Debug)]
pub struct ResidualStep {
    /// Index of its first channel among the carried statistics.
    pub statistics_at: usize,
    /// Index of its first value in `styles`: the gains of all channels, each less 1, and then their shifts.
    pub style_at: usize,
    /// Frequency of the activation's sine, for each channel.
    pub alpha: Vec<f32>,
    /// `[output][input][tap]`.
    pub weights: Bytes,
    pub zero_point: u8,
    pub scale: f32,
    pub bias: Vec<f32>,
    pub dilation: usize,
}

/// The normalisations with carried statistics, in order: their names and their numbers of channels.
struct Carried {
    names: Vec<String>,
    sizes: Vec<usize>,
}

/// Splits a stored vocoder.
///
/// # Errors
/// The graph is not one that [`super::transform`] made from the published model, or its weights are floats.
pub fn split_vocoder(vocoder: &Graph) -> Result<SplitVocoder, NotSplit> {
    let mut graph = vocoder.clone();
    let carried = Carried::read(&graph)?;
    let mut reader = Reader { graph: &graph, carried: &carried, styles: Vec::new(), style_at: 0 };
    let noise = [reader.block(NOISE[0], None)?, reader.block(NOISE[1], None)?];
    let stages = [reader.stage(STAGES[0])?, reader.stage(STAGES[1])?];
    let styles = reader.styles;
    let (rest_names, rest_statistics) = carried.without_blocks();
    let named = |name: &str| format!("{GENERATOR}/{name}");
    for (at, stage) in ["0", "1"].into_iter().enumerate() {
        for (from, to) in
            [(NOISE_IN[at], "noise"), (UPSAMPLED[at], "upsampled"), (MEANS[at], "stage")]
        {
            let from = named(from);
            graph.producer(&from)?;
            graph.rename(&from, &format!("{to}_{stage}"));
        }
    }
    for output in ["window_mean", "window_variance"] {
        let at = graph.producer(output)?;
        let parts = rest_names.iter().map(|name| format!("{name}/{output}"));
        graph.nodes_mut()[at].input = parts.collect();
    }
    let styles: Vec<&str> = styles.iter().map(String::as_str).collect();
    graph.push(node("Concat", &styles, &["styles"]).with_int("axis", 1));
    let free = |name: &&str| value(name, DATA_FLOAT, &[]);
    let mut inputs = graph.inputs().to_vec();
    let rows = [Dim::Fixed(1), Dim::Free("channels"), Dim::Free("steps")];
    inputs.extend(["stage_0", "stage_1"].map(|name| value(name, DATA_FLOAT, &rows)));
    let outputs = [
        "noise_0",
        "noise_1",
        "upsampled_0",
        "upsampled_1",
        "styles",
        "window_mean",
        "window_variance",
        "audio",
    ];
    let outputs: Vec<_> = outputs.iter().map(free).collect();
    let rest = graph.extract(&inputs, &outputs)?.detached();
    Ok(SplitVocoder { rest, noise, stages, rest_statistics })
}

impl Carried {
    fn read(graph: &Graph) -> Result<Carried, GraphError> {
        let missing = || GraphError::NoSuchValue("carried_mean".to_owned());
        let &at = graph.consumers("carried_mean").first().ok_or_else(missing)?;
        let names = graph.nodes()[at].output.iter();
        let names = names.map(|name| name.trim_end_matches("/carried_mean").to_owned());
        let names: Vec<String> = names.collect();
        let sizes = graph.ints("carry/sizes")?.into_iter();
        // Sizes of 32 bits, because their sums cannot overflow 64 bits.
        let sizes = sizes.map(|size| u32::try_from(size).unwrap_or(0) as usize);
        let sizes: Vec<usize> = sizes.collect();
        if sizes.len() == names.len() {
            return Ok(Carried { names, sizes });
        }
        let (found, expected) = (sizes.len(), names.len());
        Err(GraphError::Unexpected { what: "sizes of normalisations", found, expected })
    }

    /// The index of a normalisation's first channel.
    fn first_channel(&self, name: &str) -> Option<usize> {
        let at = self.names.iter().position(|known| known == name)?;
        Some(self.sizes[..at].iter().sum())
    }

    /// The names of the normalisations outside all blocks, and for each its first channel and number of channels.
    fn without_blocks(&self) -> (Vec<&str>, Vec<(usize, usize)>) {
        let is_outside = |name: &str| !name.starts_with(GENERATOR);
        let mut first = 0;
        let mut outside = (Vec::new(), Vec::new());
        for (name, size) in self.names.iter().zip(&self.sizes) {
            if is_outside(name) {
                outside.0.push(name.as_str());
                outside.1.push((first, *size));
            }
            first += size;
        }
        outside
    }
}

/// Reads blocks, and collects the names of their styles.
struct Reader<'g> {
    graph: &'g Graph,
    carried: &'g Carried,
    styles: Vec<String>,
    style_at: usize,
}

impl Reader<'_> {
    /// Reads the blocks of a stage. Their first normalisations share one set of statistics, because they have the same
    /// input.
    fn stage(&mut self, names: [&str; 3]) -> Result<[ResidualBlock; 3], NotSplit> {
        let shared =
            names.iter().find_map(|name| self.carried.first_channel(&normalisation(name, 0)));
        let [first, second, third] = names;
        Ok([self.block(first, shared)?, self.block(second, shared)?, self.block(third, shared)?])
    }

    fn block(&mut self, name: &str, shared: Option<usize>) -> Result<ResidualBlock, NotSplit> {
        let mut steps = Vec::with_capacity(STEPS);
        for at in 0..STEPS {
            steps.push(self.step(name, at, shared.filter(|_| at == 0))?);
        }
        let found = steps.len();
        let steps = steps.try_into().map_err(|_| GraphError::Unexpected {
            what: "steps of a block",
            found,
            expected: STEPS,
        })?;
        Ok(ResidualBlock { steps })
    }

    fn step(
        &mut self,
        block: &str,
        at: usize,
        shared: Option<usize>,
    ) -> Result<ResidualStep, NotSplit> {
        let unknown = |name: &str| GraphError::NoSuchValue(name.to_owned());
        let [half, number] = [at % 2 + 1, at / 2];
        let weights = format!("{GENERATOR}/{block}/Mul_{}_output_0_quantized", 2 + 3 * at);
        let of_weights = self.graph.consumers(&weights);
        let convolution: &NodeProto = match of_weights[..] {
            [at] => &self.graph.nodes()[at],
            _ => return Err(unknown(&weights).into()),
        };
        let bytes = |name: &str| -> Result<Bytes, GraphError> {
            let bytes = self.graph.weight(name).and_then(TensorProto::unsigned);
            bytes.ok_or_else(|| unknown(name))
        };
        let zero_point = convolution.input.get(3).ok_or_else(|| unknown(&weights))?;
        let scale = format!("{GENERATOR}/{block}/Mul_{}_output_0_scale", 2 + 3 * at);
        let part = format!("decoder.decoder.generator.{block}");
        let style = format!("{GENERATOR}/{block}/adain{half}.{number}/fc/Gemm_output_0");
        self.graph.producer(&style)?;
        let bias = self.graph.floats(&format!("{part}.convs{half}.{number}.bias"))?;
        let dilation = DILATIONS[at];
        check_convolution(self.graph, convolution, bias.len(), dilation)?;
        let normalisation = normalisation(block, at);
        let statistics_at = shared.or_else(|| self.carried.first_channel(&normalisation));
        let style_at = self.style_at;
        self.style_at += 2 * bias.len();
        self.styles.push(style);
        Ok(ResidualStep {
            statistics_at: statistics_at.ok_or_else(|| unknown(&normalisation))?,
            style_at,
            alpha: self.graph.floats(&format!("{part}.alpha{half}.{number}"))?,
            weights: bytes(&weights)?,
            zero_point: only(&bytes(zero_point)?).ok_or_else(|| unknown(zero_point))?,
            scale: only(&self.graph.floats(&scale)?).ok_or_else(|| unknown(&scale))?,
            bias,
            dilation,
        })
    }
}

/// The name of a step's normalisation.
fn normalisation(block: &str, step: usize) -> String {
    format!("{GENERATOR}/{block}/adain{}.{}/ReduceMean_output_0", step % 2 + 1, step / 2)
}

/// Checks that a convolution goes over time, joins every input channel with every output channel, and keeps the length.
fn check_convolution(
    graph: &Graph,
    convolution: &NodeProto,
    channels: usize,
    dilation: usize,
) -> Result<(), NotSplit> {
    let is = |fits: bool, what: &'static str| {
        let convolution = convolution.output.first().cloned().unwrap_or_default();
        fits.then_some(()).ok_or(NotSplit::Convolution { convolution, what })
    };
    let ints = |name: &str| convolution.attribute(name).map(|attribute| &attribute.ints[..]);
    is(convolution.op_type == "ConvInteger", "an operator")?;
    let [padded, weights, ..] = &convolution.input[..] else { return is(false, "inputs") };
    let shape = graph.weight(weights).map(|weight| &weight.dims[..]);
    let Some(&[outputs, inputs, taps]) = shape else { return is(false, "weights") };
    is([outputs, inputs] == [channels as i64; 2], "numbers of channels")?;
    let group = convolution.attribute("group").map_or(Some(1), |group| group.i);
    is(group == Some(1), "groups")?;
    is(ints("strides").is_none_or(|strides| strides == [1]), "strides")?;
    is(ints("dilations").unwrap_or(&[1]) == [dilation as i64], "dilations")?;
    // An even number of taps, padded equally on both sides, would change the length.
    let is_odd = taps % 2 == 1;
    is(is_odd && ints("kernel_shape").is_none_or(|shape| shape == [taps]), "a kernel")?;
    // `pad_before_integer_convolutions` moved its pads into a node of their own.
    let pad = graph.producer(padded).ok().map(|at| &graph.nodes()[at]);
    let pad = pad.filter(|pad| pad.op_type == "Pad" && pad.attribute.is_empty());
    let amounts = pad.and_then(|pad| graph.ints(pad.input.get(1)?).ok());
    let reach = taps / 2 * dilation as i64;
    let auto = convolution.attribute("auto_pad").and_then(|auto| auto.s.as_deref());
    let is_plain = auto.is_none_or(|auto| auto == b"NOTSET")
        && ints("pads").is_none_or(|pads| pads.iter().all(|pad| *pad == 0));
    is(is_plain && amounts == Some(vec![0, 0, reach, 0, 0, reach]), "pads")
}

/// The value of a list that has only one.
fn only<T: Copy>(values: &[T]) -> Option<T> {
    match values {
        [only] => Some(*only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::onnx::proto::{DATA_UINT8, GraphProto, ModelProto};

    fn decoded(graph: GraphProto) -> Graph {
        let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
        Graph::decode(&model.encode_to_vec()).expect("a graph")
    }

    #[test]
    fn another_graph_is_not_split() {
        let error = |node: Vec<NodeProto>| {
            let mut graph = decoded(GraphProto { node, ..GraphProto::default() });
            graph.add_ints("carry/sizes", &[1], &[8]);
            split_vocoder(&graph).expect_err("not a vocoder")
        };
        let unknown = |name: &str| NotSplit::Graph(GraphError::NoSuchValue(name.to_owned()));
        assert_eq!(error(Vec::new()), unknown("carried_mean"));
        let carried = |parts: &[&str]| vec![node("Split", &["carried_mean"], parts)];
        let weights = format!("{GENERATOR}/noise_res.0/Mul_2_output_0_quantized");
        assert_eq!(error(carried(&["a/carried_mean"])), unknown(&weights));
        let (what, found, expected) = ("sizes of normalisations", 1, 2);
        let unequal = NotSplit::Graph(GraphError::Unexpected { what, found, expected });
        assert_eq!(error(carried(&["a/carried_mean", "b/carried_mean"])), unequal);
    }

    const CHANNELS: i64 = 2;

    /// A convolution of 5 taps and a dilation of 3, as it is stored.
    fn convolution() -> NodeProto {
        node("ConvInteger", &["padded", "w", "x_zero", "w_zero"], &["sums"])
            .with_int("group", 1)
            .with_ints("strides", &[1])
            .with_ints("dilations", &[3])
            .with_ints("kernel_shape", &[5])
            .with_ints("pads", &[0, 0])
    }

    /// What is wrong with `convolution` after padding by `amounts`, with weights of this shape.
    fn refused(convolution: &NodeProto, amounts: [i64; 2], shape: &[i64]) -> Option<&'static str> {
        let pad = node("Pad", &["x", "amounts", "x_zero"], &["padded"]);
        let mut graph =
            decoded(GraphProto { node: vec![pad, convolution.clone()], ..GraphProto::default() });
        graph.add_ints("amounts", &[6], &[0, 0, amounts[0], 0, 0, amounts[1]]);
        let weights = vec![0; shape.iter().product::<i64>() as usize];
        graph.add_weight("w", shape, DATA_UINT8, weights);
        match check_convolution(&graph, convolution, CHANNELS as usize, 3) {
            Ok(()) => None,
            Err(NotSplit::Convolution { convolution, what }) => {
                assert_eq!(convolution, "sums");
                Some(what)
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_convolution_that_the_kernels_do_not_compute_is_refused() {
        let shape = [CHANNELS, CHANNELS, 5];
        assert_eq!(refused(&convolution(), [6, 6], &shape), None);
        let other = |name: &str, ints: &[i64]| {
            let mut other = convolution();
            other.attribute_mut(name).expect("an attribute").ints = ints.to_vec();
            refused(&other, [6, 6], &shape)
        };
        assert_eq!(other("strides", &[2]), Some("strides"));
        for dilations in [&[1][..], &[5], &[3, 1], &[]] {
            assert_eq!(other("dilations", dilations), Some("dilations"), "{dilations:?}");
        }
        assert_eq!(other("kernel_shape", &[3]), Some("a kernel"));
        let mut even = convolution();
        even.attribute_mut("kernel_shape").expect("an attribute").ints = vec![4];
        assert_eq!(refused(&even, [6, 6], &[CHANNELS, CHANNELS, 4]), Some("a kernel"));
        assert_eq!(other("pads", &[6, 6]), Some("pads"), "it would pad with 0");
        for amounts in [[5, 6], [6, 7], [0, 0]] {
            assert_eq!(refused(&convolution(), amounts, &shape), Some("pads"), "{amounts:?}");
        }
        let mut grouped = convolution();
        grouped.attribute_mut("group").expect("an attribute").i = Some(2);
        assert_eq!(refused(&grouped, [6, 6], &shape), Some("groups"));
        let narrow = [CHANNELS, 1, 5];
        assert_eq!(refused(&convolution(), [6, 6], &narrow), Some("numbers of channels"));
        assert_eq!(refused(&convolution(), [6, 6], &[CHANNELS, 5]), Some("weights"));
        let unpadded = NodeProto { input: ["x", "w"].map(str::to_owned).to_vec(), ..convolution() };
        assert_eq!(refused(&unpadded, [6, 6], &shape), Some("pads"));
        let float = NodeProto { op_type: "Conv".to_owned(), ..convolution() };
        assert_eq!(refused(&float, [6, 6], &shape), Some("an operator"));
    }
}
