//! Rewrites the published graph into operators that `rten` computes as ONNX Runtime does.
//! Each rewrite is mathematically exact; `hob-engines` compares the results tensor by tensor.

use std::f64::consts::PI;

use crate::onnx::graph::node;
use crate::onnx::{Graph, GraphError};

/// Keeps a phase of exactly 0/0 from becoming NaN; inaudible.
const TINY: f32 = 1e-12;

/// `FusedMatMul` with a transposed left side becomes `Transpose` and `MatMul`.
pub(super) fn replace_fused_matmul(graph: &mut Graph) -> Result<(), GraphError> {
    let at = only(graph, "FusedMatMul")?;
    let fused = graph.nodes()[at].clone();
    let transposed = format!("{}/transposed", fused.input[0]);
    graph.replace(
        at,
        [
            node("Transpose", &[&fused.input[0]], &[&transposed]).with_ints("perm", &[0, 2, 1]),
            node("MatMul", &[&transposed, &fused.input[1]], &[&fused.output[0]]),
        ],
    );
    Ok(())
}

/// `ConvInteger` must pad with the input's zero point; `rten` pads with byte 0, which is the
/// most negative input. So the quantised input is padded by a node of its own.
pub(super) fn pad_before_integer_convolutions(graph: &mut Graph) -> Result<(), GraphError> {
    let mut at = 0;
    while at < graph.nodes().len() {
        let Some(pads) = take_pads(graph, at) else {
            at += 1;
            continue;
        };
        let [quantised, zero_point] = [0, 2].map(|i| graph.nodes()[at].input[i].clone());
        let padded = format!("{quantised}/padded_{}_{}", pads[0], pads[1]);
        graph.nodes_mut()[at].input[0].clone_from(&padded);
        if graph.producer(&padded).is_err() {
            let amounts = format!("{padded}/amounts");
            graph.add_ints(&amounts, &[6], &[0, 0, pads[0], 0, 0, pads[1]]);
            graph.insert(at, [node("Pad", &[&quantised, &amounts, &zero_point], &[&padded])]);
        }
        at += 1;
    }
    Ok(())
}

/// The padding of an integer convolution over time, which is removed from it.
fn take_pads(graph: &mut Graph, at: usize) -> Option<[i64; 2]> {
    let node = &mut graph.nodes_mut()[at];
    if node.op_type != "ConvInteger" {
        return None;
    }
    let pads = node.attribute_mut("pads").filter(|pads| pads.ints.iter().any(|pad| *pad != 0))?;
    let taken = [pads.ints[0], pads.ints[1]];
    pads.ints.fill(0);
    Some(taken)
}

/// The source's `STFT` becomes a convolution with the windowed Fourier basis, and the phase's
/// divisor is kept from being exactly zero.
///
/// The imaginary parts of the first and last bin are zero in theory. Their sign decides between +π and −π wherever the
/// real part is negative, so they get a tiny positive value: +π is what the model was trained with.
pub(super) fn replace_stft(graph: &mut Graph) -> Result<(), GraphError> {
    const STFT: &str = "/decoder/decoder/generator/STFT_output_0";
    const REAL: &str = "/decoder/decoder/generator/Gather_4_output_0";
    const IMAGINARY: &str = "/decoder/decoder/generator/Gather_5_output_0";
    const DIVISION: &str = "/decoder/decoder/generator/Div_output_0";

    let at = graph.producer(STFT)?;
    let stft = graph.nodes()[at].clone();
    let window = graph.floats(&stft.input[2])?;
    let bins = window.len() / 2 + 1;
    let (basis, bias) = windowed_basis(&window);
    let channels = 2 * bins as i64;
    graph.add_floats("stft/basis", &[channels, 1, window.len() as i64], &basis);
    graph.add_floats("stft/bias", &[channels], &bias);
    graph.add_ints("stft/channel_axis", &[1], &[1]);
    graph.add_ints("stft/halves", &[2], &[bins as i64; 2]);
    graph.add_floats("stft/tiny", &[], &[TINY]);

    let hop = hop_length(graph, &stft.input[1])?;
    let signal = stft.input[0].as_str();
    let replacement = [
        node("Unsqueeze", &[signal, "stft/channel_axis"], &["stft/signal"]),
        node("Conv", &["stft/signal", "stft/basis", "stft/bias"], &["stft/spectrum"])
            .with_ints("strides", &[hop])
            .with_ints("kernel_shape", &[window.len() as i64])
            .with_ints("pads", &[0, 0]),
        node("Split", &["stft/spectrum", "stft/halves"], &["stft/real", "stft/imaginary"])
            .with_int("axis", 1),
        node("Add", &["stft/real", "stft/tiny"], &["stft/divisor"]),
    ];
    graph.replace(at, replacement);
    graph.redirect(REAL, "stft/real");
    graph.redirect(IMAGINARY, "stft/imaginary");
    let division = graph.producer(DIVISION)?;
    "stft/divisor".clone_into(&mut graph.nodes_mut()[division].input[1]);
    Ok(())
}

fn hop_length(graph: &Graph, name: &str) -> Result<i64, GraphError> {
    let length = graph.ints(name)?.first().copied();
    length.ok_or_else(|| GraphError::NoSuchValue(name.to_owned()))
}

/// Rows of `window × cos` for each bin, then of `window × −sin`, and their biases.
fn windowed_basis(window: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let length = window.len();
    let bins = length / 2 + 1;
    let row = |bin: usize, wave: fn(f64) -> f64| {
        let angle = move |n: usize| 2.0 * PI * ((bin * n) % length) as f64 / length as f64;
        window.iter().enumerate().map(move |(n, w)| (f64::from(*w) * wave(angle(n))) as f32)
    };
    let mut basis: Vec<f32> = (0..bins).flat_map(|bin| row(bin, f64::cos)).collect();
    // The sines of the first and last bin are zero; computed ones would be rounding noise.
    let silent = |bin: usize| bin == 0 || 2 * bin == length;
    for bin in 0..bins {
        let sines = row(bin, |angle| -angle.sin());
        basis.extend(sines.map(|value| if silent(bin) { 0.0 } else { value }));
    }
    let mut bias = vec![0.0; 2 * bins];
    bias[bins] = TINY;
    bias[2 * bins - 1] = -TINY;
    (basis, bias)
}

fn only(graph: &Graph, op_type: &'static str) -> Result<usize, GraphError> {
    let found: Vec<usize> =
        (0..graph.nodes().len()).filter(|&at| graph.nodes()[at].op_type == op_type).collect();
    match found[..] {
        [at] => Ok(at),
        _ => Err(GraphError::Unexpected { what: op_type, found: found.len(), expected: 1 }),
    }
}
