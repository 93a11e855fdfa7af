//! Splits Kokoro's published graph in two when hob stores it. The front then computes in floats. The vocoder carries
//! statistics from window to window, and computes no more than a window needs. When a worker loads the vocoder,
//! `residual.rs` takes out the blocks that the engine computes itself.

mod carry;
mod crop;
mod floats;
mod residual;
mod rewrite;

pub use residual::{NotSplit, ResidualBlock, ResidualStep, SplitVocoder, split_vocoder};

use crate::onnx::graph::{Dim, value};
use crate::onnx::proto::{DATA_FLOAT, DATA_INT64, ValueInfoProto};
use crate::onnx::{DetachedGraph, Graph, GraphError};

/// Increases with every change of the stored form, so that a newer hob stores the model again.
pub const TRANSFORM_VERSION: u32 = 4;

/// The files of the stored graphs. Those of a quantized model end in [`PACKED`].
pub const FRONT: &str = "front.onnx";
pub const VOCODER: &str = "vocoder.onnx";
pub(crate) const PACKED: &str = ".packed";

/// The file of a graph with packed weights.
pub(crate) fn packed_name(graph: &str) -> String {
    format!("{}{PACKED}", graph.trim_end_matches(".onnx"))
}

/// Where the graph is split: the text's features, stretched to one column per frame.
const FEATURES: &str = "/encoder/MatMul_1_output_0";
/// Pitch in Hz, two values per frame.
const PITCH: &str = "/encoder/Reshape_output_0";
/// Loudness, two values per frame.
const ENERGY: &str = "/encoder/Reshape_1_output_0";
/// Frames per token, whole numbers stored as floats.
const DURATIONS: &str = "/encoder/Clip_output_0";
/// Phases of the nine harmonics, two values per frame, continuous from the first frame.
const PHASES: &str = "/decoder/decoder/generator/m_source/l_sin_gen/Mul_4_output_0";

/// The stored form of the published graph.
#[derive(Debug)]
pub struct Parts {
    /// `tokens, style, speed → features, pitch, energy, durations`, in floats.
    pub front: Vec<u8>,
    /// `features, pitch, energy, phases, style, carried_mean, carried_variance, carried_share,
    /// crop_starts, crop_ends → audio, window_mean, window_variance`.
    pub vocoder: Vec<u8>,
}

/// Splits and rewrites the published int8 graph.
///
/// # Errors
/// The bytes are not that graph.
pub fn transform(published: &[u8]) -> Result<Parts, GraphError> {
    let mut graph = Graph::decode(published)?;
    rewrite::replace_fused_matmul(&mut graph)?;
    for (published, ours) in [
        (FEATURES, "features"),
        (PITCH, "pitch"),
        (ENERGY, "energy"),
        (DURATIONS, "durations"),
        (PHASES, "phases"),
    ] {
        graph.producer(published)?;
        graph.rename(published, ours);
    }
    let mut front = graph.extract(&front_inputs(), &front_outputs())?;
    floats::multiply_in_floats(&mut front)?;
    let front = front.pruned()?;
    rewrite::pad_before_integer_convolutions(&mut graph)?;
    rewrite::replace_stft(&mut graph)?;
    let mut vocoder = graph.extract(&vocoder_inputs(), &[value("audio", DATA_FLOAT, &[])])?;
    carry::carry_statistics(&mut vocoder)?;
    crop::crop_stages(&mut vocoder)?;
    Ok(Parts { front: front.encode(), vocoder: vocoder.encode() })
}

/// A stored graph that computes in floats and has all its weights in floats. The floats have the values
/// that the integers stood for, and are no more exact.
///
/// # Errors
/// The bytes are not a stored graph.
pub fn in_floats(stored: &[u8]) -> Result<Vec<u8>, GraphError> {
    let mut graph = Graph::decode(stored)?;
    floats::multiply_in_floats(&mut graph)?;
    floats::store_floats(&mut graph)?;
    Ok(graph.pruned()?.encode())
}

/// A stored front as the engine loads it: with all weights in floats and in the order in which it reads them. From the
/// stored form, the engine would make these weights itself, and keep both forms in memory.
///
/// # Errors
/// The bytes are not a stored graph.
pub fn front_to_run(stored: Vec<u8>) -> Result<DetachedGraph, GraphError> {
    let mut graph = Graph::from_bytes(stored)?;
    floats::transpose_weights(&mut graph);
    floats::store_floats(&mut graph)?;
    // The old graph must be gone, or `detached` copies the floats.
    graph = graph.pruned()?;
    Ok(graph.detached())
}

fn front_inputs() -> Vec<ValueInfoProto> {
    vec![
        value("tokens", DATA_INT64, &[Dim::Fixed(1), Dim::Free("tokens")]),
        style(),
        value("speed", DATA_FLOAT, &[Dim::Fixed(1)]),
    ]
}

fn front_outputs() -> Vec<ValueInfoProto> {
    ["features", "pitch", "energy", "durations"].map(|name| value(name, DATA_FLOAT, &[])).to_vec()
}

fn vocoder_inputs() -> Vec<ValueInfoProto> {
    let halves = Dim::Free("half_frames");
    vec![
        value("features", DATA_FLOAT, &[Dim::Fixed(1), Dim::Fixed(512), Dim::Free("frames")]),
        value("pitch", DATA_FLOAT, &[Dim::Fixed(1), halves]),
        value("energy", DATA_FLOAT, &[Dim::Fixed(1), halves]),
        value("phases", DATA_FLOAT, &[Dim::Fixed(1), Dim::Fixed(9), halves]),
        style(),
    ]
}

fn style() -> ValueInfoProto {
    value("style", DATA_FLOAT, &[Dim::Fixed(1), Dim::Fixed(256)])
}
