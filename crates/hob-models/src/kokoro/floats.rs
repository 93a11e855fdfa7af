//! Replaces integer multiplications of a graph by float ones. The weights stay 8-bit:
//! the engine converts them once, when it loads the graph.

use crate::onnx::graph::node;
use crate::onnx::proto::NodeProto;
use crate::onnx::{Graph, GraphError};

/// Replaces every dynamically quantised multiplication, convolution and LSTM by the same one in
/// floats. What the integers needed (quantised inputs, rounded biases) stays behind unread;
/// [`Graph::extract`] drops it.
///
/// Dynamic quantisation rounds each activation to one of 256 steps. Float sums differ between
/// instruction sets in their last bit, so an activation near a rounding edge falls on either side
/// of it, and the twelve layers of the text encoder multiply that difference.
pub(super) fn multiply_in_floats(graph: &mut Graph) -> Result<(), GraphError> {
    let mut weights = Vec::new();
    for at in 0..graph.nodes().len() {
        match graph.nodes()[at].op_type.as_str() {
            "MatMulInteger" => product(graph, at, "MatMul", &mut weights)?,
            "ConvInteger" => product(graph, at, "Conv", &mut weights)?,
            "DynamicQuantizeLSTM" => lstm(graph, at, &mut weights)?,
            _ => {}
        }
    }
    graph.insert(0, weights);
    Ok(())
}

/// `DynamicQuantizeLinear → MatMulInteger or ConvInteger [→ Add a rounded bias] → Cast → Mul by the
/// scales`: the last of them becomes `float_op` of what the first one read.
fn product(
    graph: &mut Graph,
    at: usize,
    float_op: &str,
    weights: &mut Vec<NodeProto>,
) -> Result<(), GraphError> {
    let integer = graph.nodes()[at].clone();
    let [quantised, weight, _, zero_point] = inputs(&integer)?;
    let quantise = &graph.nodes()[graph.producer(quantised)?];
    let (input, input_scale) = (quantise.input[0].clone(), quantise.output[1].clone());

    let mut next = reader(graph, &integer.output[0])?;
    let mut bias = None;
    if graph.nodes()[next].op_type == "Add" {
        let rounded = other_input(&graph.nodes()[next], &integer.output[0])?;
        bias = Some(published_bias(graph, rounded)?);
        next = reader(graph, &graph.nodes()[next].output[0])?;
    }
    let cast = graph.nodes()[next].output[0].clone();
    let scaled_at = reader(graph, &cast)?;
    let scales = other_input(&graph.nodes()[scaled_at], &cast)?;
    let weight_scale = other_input(&graph.nodes()[graph.producer(scales)?], &input_scale)?;

    let float = dequantised(weights, [weight, weight_scale, zero_point], None);
    let output = graph.nodes()[scaled_at].output[0].clone();
    let read: Vec<&str> =
        [Some(input.as_str()), Some(&float), bias.as_deref()].into_iter().flatten().collect();
    let mut floating = node(float_op, &read, &[&output]);
    floating.attribute = integer.attribute;
    graph.nodes_mut()[scaled_at] = floating;
    Ok(())
}

/// `DynamicQuantizeLSTM` has each direction's weights with the gates last, `LSTM` with the gates
/// first.
fn lstm(graph: &mut Graph, at: usize, weights: &mut Vec<NodeProto>) -> Result<(), GraphError> {
    let quantised = graph.nodes()[at].clone();
    let [x, w, r, b, lengths, hidden, cell, _, w_scale, w_zero, r_scale, r_zero] =
        inputs(&quantised)?;
    let [w, r] = [[w, w_scale, w_zero], [r, r_scale, r_zero]].map(|weight| {
        let float = dequantised(weights, weight, Some(0));
        let gates_first = format!("{float}/gates_first");
        let transpose = node("Transpose", &[&float], &[&gates_first]);
        weights.push(transpose.with_ints("perm", &[0, 2, 1]));
        gates_first
    });
    let outputs: Vec<&str> = quantised.output.iter().map(String::as_str).collect();
    let mut floating = node("LSTM", &[x, &w, &r, b, lengths, hidden, cell], &outputs);
    floating.attribute.clone_from(&quantised.attribute);
    graph.nodes_mut()[at] = floating;
    Ok(())
}

/// The float value of a quantised weight, each channel of `axis` with its own scale.
fn dequantised(
    weights: &mut Vec<NodeProto>,
    [weight, scale, zero_point]: [&str; 3],
    axis: Option<i64>,
) -> String {
    let float = format!("{weight}/float");
    if !weights.iter().any(|node| node.output[0] == float) {
        let dequantise = node("DequantizeLinear", &[weight, scale, zero_point], &[&float]);
        weights.push(match axis {
            Some(axis) => dequantise.with_int("axis", axis),
            None => dequantise,
        });
    }
    float
}

/// A convolution's bias before it was divided by the scales and rounded.
fn published_bias(graph: &Graph, rounded: &str) -> Result<String, GraphError> {
    let mut value = rounded.to_owned();
    loop {
        let maker = &graph.nodes()[graph.producer(&value)?];
        value.clone_from(&maker.input[0]);
        if maker.op_type == "Div" {
            return Ok(value);
        }
    }
}

fn inputs<const N: usize>(node: &NodeProto) -> Result<[&str; N], GraphError> {
    let inputs: Vec<&str> = node.input.iter().map(String::as_str).collect();
    let found = inputs.len();
    inputs.try_into().map_err(|_| GraphError::Unexpected {
        what: "inputs of a quantised node",
        found,
        expected: N,
    })
}

/// The only node that reads `value`.
fn reader(graph: &Graph, value: &str) -> Result<usize, GraphError> {
    match graph.consumers(value)[..] {
        [at] => Ok(at),
        ref found => Err(GraphError::Unexpected {
            what: "readers of an integer product",
            found: found.len(),
            expected: 1,
        }),
    }
}

/// The other input of a node that reads `value`.
fn other_input<'a>(node: &'a NodeProto, value: &str) -> Result<&'a str, GraphError> {
    let [left, right] = inputs(node)?;
    Ok(if left == value { right } else { left })
}
