//! Takes the residual blocks out of a stored vocoder, when an engine loads it that computes them itself.
//! They are nine tenths of all multiplications.

use crate::onnx::graph::{Dim, node, value};
use crate::onnx::proto::{DATA_FLOAT, DATA_INT8, DATA_UINT8, NodeProto, TensorProto};
use crate::onnx::{Graph, GraphError};

const GENERATOR: &str = "/decoder/decoder/generator";
/// Blocks that the source's noise passes, one for each stage; then the three parallel blocks of each stage.
const NOISE: [&str; 2] = ["noise_res.0", "noise_res.1"];
const STAGES: [[&str; 3]; 2] =
    [["resblocks.0", "resblocks.1", "resblocks.2"], ["resblocks.3", "resblocks.4", "resblocks.5"]];
/// The mean of a stage's blocks, which the rest of the graph takes as inputs.
const MEANS: [&str; 2] = ["Div_2_output_0", "Div_4_output_0"];
/// What a stage adds up: noise before its block, and the upsampled output of the stage before.
const NOISE_IN: [&str; 2] =
    ["noise_convs.0/Conv_output_0/cropped", "noise_convs.1/Conv_output_0/cropped"];
const UPSAMPLED: [&str; 2] = ["ups.0/ConvTranspose_output_0", "reflection_pad/Pad_output_0"];
/// A block has three pairs of convolutions; the first of a pair is dilated.
const STEPS: usize = 6;

/// A vocoder without its residual blocks.
#[derive(Clone, Debug)]
pub struct SplitVocoder {
    /// `features, pitch, energy, phases, style, carried_mean, carried_variance, carried_share, crop_starts, crop_ends →
    /// noise_0, noise_1, upsampled_0, styles, window_mean, window_variance`, then
    /// `stage_0, crop_starts, crop_ends → upsampled_1`, and `stage_1 → audio`. The window's statistics are those
    /// of the remaining normalisations.
    pub rest: Graph,
    /// The block of each stage's noise.
    pub noise: [ResidualBlock; 2],
    /// The blocks of each stage, which read its sum and whose mean is its output.
    pub stages: [[ResidualBlock; 3]; 2],
    /// Where the statistics of the remaining normalisations stand among all: first channel and channels.
    pub rest_statistics: Vec<(usize, usize)>,
}

/// Six steps. Each second one adds its result to the block's input.
#[derive(Clone, Debug)]
pub struct ResidualBlock {
    pub steps: [ResidualStep; STEPS],
}

/// Normalisation, activation and convolution of one step.
#[derive(Clone, Debug)]
pub struct ResidualStep {
    /// First of its channels among the carried statistics.
    pub statistics_at: usize,
    /// First of its values in `styles`: the gains of all channels minus one, then the shifts.
    pub style_at: usize,
    /// Frequency of the activation's sine, for each channel.
    pub alpha: Vec<f32>,
    /// `[output][input][tap]`.
    pub weights: Vec<u8>,
    pub zero_point: u8,
    pub scale: f32,
    pub bias: Vec<f32>,
    pub dilation: usize,
}

/// The carried statistics: the name of each normalisation and its channels, in their order.
struct Carried {
    names: Vec<String>,
    sizes: Vec<usize>,
}

/// Splits a stored vocoder.
///
/// # Errors
/// The graph is not one that [`super::transform`] made, or its weights are floats.
pub fn split_vocoder(vocoder: &[u8]) -> Result<SplitVocoder, GraphError> {
    let mut graph = Graph::decode(vocoder)?;
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
    let rest = graph.extract(&inputs, &outputs)?;
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
        // Sums of 32-bit sizes do not overflow.
        let sizes = sizes.map(|size| u32::try_from(size).unwrap_or(0) as usize);
        let sizes: Vec<usize> = sizes.collect();
        if sizes.len() == names.len() {
            return Ok(Carried { names, sizes });
        }
        let (found, expected) = (sizes.len(), names.len());
        Err(GraphError::Unexpected { what: "sizes of normalisations", found, expected })
    }

    /// The first channel of a normalisation.
    fn place(&self, name: &str) -> Option<usize> {
        let at = self.names.iter().position(|known| known == name)?;
        Some(self.sizes[..at].iter().sum())
    }

    /// The names of the normalisations outside all blocks, and their places and sizes.
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
    /// The first normalisation of all three has the statistics of one of them, because they have one input.
    fn stage(&mut self, names: [&str; 3]) -> Result<[ResidualBlock; 3], GraphError> {
        let shared = names.iter().find_map(|name| self.carried.place(&mean(name, 0)));
        let [first, second, third] = names;
        Ok([self.block(first, shared)?, self.block(second, shared)?, self.block(third, shared)?])
    }

    fn block(&mut self, name: &str, shared: Option<usize>) -> Result<ResidualBlock, GraphError> {
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
    ) -> Result<ResidualStep, GraphError> {
        let unknown = |name: &str| GraphError::NoSuchValue(name.to_owned());
        let [half, number] = [at % 2 + 1, at / 2];
        let weights = format!("{GENERATOR}/{block}/Mul_{}_output_0_quantized", 2 + 3 * at);
        let of_weights = self.graph.consumers(&weights);
        let convolution: &NodeProto = match of_weights[..] {
            [at] => &self.graph.nodes()[at],
            _ => return Err(unknown(&weights)),
        };
        let bytes = |name: &str| -> Result<Vec<u8>, GraphError> {
            let bytes = self.graph.weight(name).and_then(unsigned);
            bytes.ok_or_else(|| unknown(name))
        };
        let zero_point = convolution.input.get(3).ok_or_else(|| unknown(&weights))?;
        let scale = format!("{GENERATOR}/{block}/Mul_{}_output_0_scale", 2 + 3 * at);
        let dilation = convolution.attribute("dilations").and_then(|all| all.ints.first().copied());
        let part = format!("decoder.decoder.generator.{block}");
        let style = format!("{GENERATOR}/{block}/adain{half}.{number}/fc/Gemm_output_0");
        self.graph.producer(&style)?;
        let bias = self.graph.floats(&format!("{part}.convs{half}.{number}.bias"))?;
        let mean = mean(block, at);
        let statistics_at = shared.or_else(|| self.carried.place(&mean));
        let style_at = self.style_at;
        self.style_at += 2 * bias.len();
        self.styles.push(style);
        Ok(ResidualStep {
            statistics_at: statistics_at.ok_or_else(|| unknown(&mean))?,
            style_at,
            alpha: self.graph.floats(&format!("{part}.alpha{half}.{number}"))?,
            weights: bytes(&weights)?,
            zero_point: only(&bytes(zero_point)?).ok_or_else(|| unknown(zero_point))?,
            scale: only(&self.graph.floats(&scale)?).ok_or_else(|| unknown(&scale))?,
            bias,
            // No kernel computes a dilation of 0.
            dilation: dilation.map_or(1, |dilation| usize::try_from(dilation).unwrap_or(0)),
        })
    }
}

/// The name of a step's normalisation.
fn mean(block: &str, step: usize) -> String {
    format!("{GENERATOR}/{block}/adain{}.{}/ReduceMean_output_0", step % 2 + 1, step / 2)
}

/// Signed integers become unsigned ones that are 128 larger, as their zero point does.
fn unsigned(tensor: &TensorProto) -> Option<Vec<u8>> {
    if tensor.data_type == DATA_UINT8 && !tensor.raw_data.is_empty() {
        return Some(tensor.raw_data.clone());
    }
    let shift = if tensor.data_type == DATA_INT8 { 128 } else { 0 };
    Some(tensor.bytes()?.into_iter().map(|value| (value as u8).wrapping_add(shift)).collect())
}

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
    use crate::onnx::proto::{GraphProto, ModelProto};

    #[test]
    fn signed_and_unsigned_weights_differ_from_their_zero_points_alike() {
        let tensor = |data_type, raw_data: &[u8]| TensorProto {
            data_type,
            raw_data: raw_data.to_vec(),
            ..TensorProto::default()
        };
        assert_eq!(unsigned(&tensor(DATA_UINT8, &[0, 63, 255])), Some(vec![0, 63, 255]));
        assert_eq!(unsigned(&tensor(DATA_INT8, &[0x80, 0xff, 127])), Some(vec![0, 127, 255]));
        assert_eq!(unsigned(&tensor(DATA_FLOAT, &[0; 4])), None);
        let int32_data = vec![-128, 0, 127, i32::MAX];
        let in_words = TensorProto { int32_data, ..tensor(DATA_INT8, &[]) };
        assert_eq!(unsigned(&in_words), Some(vec![0, 128, 255, 127]));
    }

    #[test]
    fn another_graph_is_not_split() {
        let error = |node: Vec<NodeProto>| {
            let graph = Some(GraphProto { node, ..GraphProto::default() });
            let model = ModelProto { graph, ..ModelProto::default() };
            let mut graph = Graph::decode(&model.encode_to_vec()).expect("a graph");
            graph.add_ints("carry/sizes", &[1], &[8]);
            split_vocoder(&graph.encode()).expect_err("not a vocoder")
        };
        let unknown = |name: &str| GraphError::NoSuchValue(name.to_owned());
        assert_eq!(error(Vec::new()), unknown("carried_mean"));
        let carried = |parts: &[&str]| vec![node("Split", &["carried_mean"], parts)];
        let weights = format!("{GENERATOR}/noise_res.0/Mul_2_output_0_quantized");
        assert_eq!(error(carried(&["a/carried_mean"])), unknown(&weights));
        let (what, found, expected) = ("sizes of normalisations", 1, 2);
        let unequal = GraphError::Unexpected { what, found, expected };
        assert_eq!(error(carried(&["a/carried_mean", "b/carried_mean"])), unequal);
    }
}
