//! Replaces integer multiplications of a graph by float ones. The weights stay 8-bit on the disk, and become floats when
//! the graph is loaded; or they are stored as floats, too.

use crate::onnx::graph::node;
use crate::onnx::proto::{DATA_FLOAT, DATA_INT8, DATA_UINT8, NodeProto, TensorProto};
use crate::onnx::{Graph, GraphError};

/// Replaces every dynamically quantised multiplication, convolution and LSTM by the same one in floats. What the
/// integers needed (quantised inputs, rounded biases) stays behind unread; [`Graph::extract`] drops it.
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

/// `DynamicQuantizeLinear [→ Pad] → MatMulInteger or ConvInteger [→ Add a rounded bias] → Cast → Mul by the
/// scales`: the last of them becomes `float_op` of what the first one read.
fn product(
    graph: &mut Graph,
    at: usize,
    float_op: &str,
    weights: &mut Vec<NodeProto>,
) -> Result<(), GraphError> {
    let integer = graph.nodes()[at].clone();
    let [quantised, weight, _, zero_point] = inputs(&integer)?;
    let (quantise, pads) = quantisation(graph, quantised)?;
    let [input] = inputs::<1>(quantise)?.map(str::to_owned);
    let input_scale = output(quantise, 1)?.to_owned();

    let sums = output(&integer, 0)?;
    let mut next = reader(graph, sums)?;
    let mut bias = None;
    if graph.nodes()[next].op_type == "Add" {
        let rounded = other_input(&graph.nodes()[next], sums)?;
        bias = Some(published_bias(graph, rounded)?);
        next = reader(graph, output(&graph.nodes()[next], 0)?)?;
    }
    let cast = output(&graph.nodes()[next], 0)?.to_owned();
    let scaled_at = reader(graph, &cast)?;
    let scales = other_input(&graph.nodes()[scaled_at], &cast)?;
    let weight_scale = other_input(&graph.nodes()[graph.producer(scales)?], &input_scale)?;

    let float = dequantised(weights, [weight, weight_scale, zero_point], None);
    let scaled = output(&graph.nodes()[scaled_at], 0)?;
    let read: Vec<&str> =
        [Some(input.as_str()), Some(&float), bias.as_deref()].into_iter().flatten().collect();
    let mut floating = node(float_op, &read, &[scaled]);
    floating.attribute = integer.attribute;
    if let (Some(pads), Some(attribute)) = (pads, floating.attribute_mut("pads")) {
        attribute.ints = pads.to_vec();
    }
    graph.nodes_mut()[scaled_at] = floating;
    Ok(())
}

/// The node that quantises an input, and the padding over time between it and its reader.
fn quantisation<'a>(
    graph: &'a Graph,
    quantised: &str,
) -> Result<(&'a NodeProto, Option<[i64; 2]>), GraphError> {
    let maker = &graph.nodes()[graph.producer(quantised)?];
    if maker.op_type != "Pad" {
        return Ok((maker, None));
    }
    let [unpadded, amounts, _] = inputs(maker)?;
    let amounts = graph.ints(amounts)?;
    let &[_, _, before, _, _, after] = &amounts[..] else {
        let (what, found) = ("amounts of padding", amounts.len());
        return Err(GraphError::Unexpected { what, found, expected: 6 });
    };
    Ok((&graph.nodes()[graph.producer(unpadded)?], Some([before, after])))
}

/// `DynamicQuantizeLSTM` has each direction's weights with the gates last, `LSTM` with the gates first.
fn lstm(graph: &mut Graph, at: usize, weights: &mut Vec<NodeProto>) -> Result<(), GraphError> {
    let quantised = graph.nodes()[at].clone();
    // `node` takes its name from its first output.
    output(&quantised, 0)?;
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

/// Stores quantised weights as floats, so that the engine has nothing to convert. The numbers are those that it would
/// compute.
pub(super) fn store_floats(graph: &mut Graph) -> Result<(), GraphError> {
    let mut at = 0;
    while at < graph.nodes().len() {
        let is_folded = graph.nodes()[at].op_type == "DequantizeLinear" && fold(graph, at)?;
        if !is_folded {
            at += 1;
        }
    }
    Ok(())
}

/// Removes a `DequantizeLinear` of a weight, or of rows that a `Gather` took from one. Returns whether it did.
fn fold(graph: &mut Graph, at: usize) -> Result<bool, GraphError> {
    let dequantise = graph.nodes()[at].clone();
    let [stored, scale, zero_point] = inputs(&dequantise)?;
    let gather = graph.producer(stored).ok();
    let name = match gather.map(|maker| &graph.nodes()[maker]) {
        None => stored,
        Some(gather) if gather.op_type == "Gather" => inputs::<2>(gather)?[0],
        Some(_) => return Ok(false),
    };
    let Some(weight) = graph.weight(name) else { return Ok(false) };
    let scales = graph.floats(scale)?;
    if gather.is_some() && (scales.len() != 1 || graph.consumers(stored).len() != 1) {
        return Ok(false);
    }
    let axis = dequantise.attribute("axis").and_then(|axis| axis.i).unwrap_or(1);
    let zeros = graph.weight(zero_point).and_then(TensorProto::unsigned).unwrap_or_default();
    let values = restored(weight, &scales, &zeros, axis);
    let (what, found) = ("scales of a quantised weight", scales.len());
    let values = values.ok_or(GraphError::Unexpected { what, found, expected: 1 })?;
    let (dims, output) = (weight.dims.clone(), output(&dequantise, 0)?);
    match gather {
        None => graph.add_weight(output, &dims, DATA_FLOAT, values),
        Some(maker) => {
            let float = format!("{name}/float");
            graph.add_weight(&float, &dims, DATA_FLOAT, values);
            let gather = &mut graph.nodes_mut()[maker];
            gather.input[0] = float;
            output.clone_into(&mut gather.output[0]);
        }
    }
    graph.replace(at, std::iter::empty());
    Ok(true)
}

/// The float values of a weight as little-endian bytes, with one scale for all or one for each channel of `axis`. `None`
/// where the numbers of elements, scales and zero points do not fit.
fn restored(weight: &TensorProto, scales: &[f32], zeros: &[u8], axis: i64) -> Option<Vec<u8>> {
    let values = weight.unsigned()?;
    let mut stride = values.len().max(1);
    if scales.len() != 1 {
        let behind = weight.dims.get(usize::try_from(axis).ok()?..)?;
        let (channels, behind) = behind.split_first()?;
        let product = behind.iter().try_fold(1_i64, |product, size| product.checked_mul(*size))?;
        stride = usize::try_from(product).ok()?.max(1);
        (usize::try_from(*channels) == Ok(scales.len())).then_some(())?;
    }
    let block = stride.checked_mul(scales.len())?;
    let is_complete = values.len().checked_rem(block) == Some(0) && zeros.len() == scales.len();
    is_complete.then_some(())?;
    let float = |value: &u8, zero: &u8, scale: &f32| {
        ((i32::from(*value) - i32::from(*zero)) as f32 * scale).to_le_bytes()
    };
    let mut floats = vec![0_u8; size_of::<f32>() * values.len()];
    let blocks = floats.as_chunks_mut::<4>().0.chunks_mut(block).zip(values.chunks(block));
    for (floats, values) in blocks {
        let channels = scales.iter().zip(zeros);
        if stride == 1 {
            // Chunks of one element would take several times as long.
            for ((to, value), (scale, zero)) in floats.iter_mut().zip(values).zip(channels) {
                *to = float(value, zero, scale);
            }
            continue;
        }
        let rows = floats.chunks_mut(stride).zip(values.chunks(stride)).zip(channels);
        for ((floats, values), (scale, zero)) in rows {
            for (to, value) in floats.iter_mut().zip(values) {
                *to = float(value, zero, scale);
            }
        }
    }
    Some(floats)
}

/// Exchanges the last two dimensions of weights that a `Transpose` reads, as those of LSTMs, and removes it. The engine
/// would keep them in both orders.
pub(super) fn transpose_weights(graph: &mut Graph) {
    for at in (0..graph.nodes().len()).rev() {
        if graph.nodes()[at].op_type == "Transpose" {
            transpose_weight(graph, at);
        }
    }
}

/// Returns `None` and changes nothing if the node reads no weight that is stored as bytes, or exchanges other dimensions.
/// A `DequantizeLinear` with one scale for each matrix may be between weight and node.
fn transpose_weight(graph: &mut Graph, at: usize) -> Option<()> {
    let transpose = graph.nodes()[at].clone();
    let order = transpose.attribute("perm").map(|order| &order.ints[..]);
    let ([input], [output]) = (&transpose.input[..], &transpose.output[..]) else { return None };
    let maker = graph.producer(input).ok();
    let name = match maker.map(|maker| &graph.nodes()[maker]) {
        None => input,
        Some(maker) => {
            let axis = maker.attribute("axis").and_then(|axis| axis.i);
            let is_per_matrix = maker.op_type == "DequantizeLinear" && axis == Some(0);
            maker.input.first().filter(|_| is_per_matrix && graph.consumers(input) == [at])?
        }
    };
    let weight = graph.weight(name).filter(|weight| !weight.raw_data.is_empty())?;
    (order == Some(&[0, 2, 1][..])).then_some(())?;
    let &[matrices, rows, columns] = &weight.dims[..] else { return None };
    let sizes = (usize::try_from(rows).ok()?, usize::try_from(columns).ok()?);
    let values = match weight.data_type {
        DATA_INT8 | DATA_UINT8 => transposed::<1>(&weight.raw_data, sizes)?,
        DATA_FLOAT => transposed::<4>(&weight.raw_data, sizes)?,
        _ => return None,
    };
    let (turned, data_type) = (format!("{name}/transposed"), weight.data_type);
    graph.add_weight(&turned, &[matrices, columns, rows], data_type, values);
    match maker {
        None => graph.redirect(output, &turned),
        Some(maker) => {
            let maker = &mut graph.nodes_mut()[maker];
            maker.input[0] = turned;
            maker.output = transpose.output;
        }
    }
    graph.replace(at, std::iter::empty());
    Some(())
}

/// Transposes matrices whose elements have `N` bytes. `None`: the last matrix is not complete.
fn transposed<const N: usize>(matrices: &[u8], (rows, columns): (usize, usize)) -> Option<Vec<u8>> {
    let (from, rest) = matrices.as_chunks::<N>();
    let size = rows.checked_mul(columns)?;
    (rest.is_empty() && from.len().checked_rem(size) == Some(0)).then_some(())?;
    let mut transposed = vec![0; matrices.len()];
    let to = transposed.as_chunks_mut::<N>().0.chunks_mut(size);
    for (to, from) in to.zip(from.chunks(size)) {
        for (row, values) in from.chunks(columns).enumerate() {
            let places = to[row..].iter_mut().step_by(rows);
            places.zip(values).for_each(|(to, value)| *to = *value);
        }
    }
    Some(transposed)
}

/// A convolution's bias before it was divided by the scales and rounded.
fn published_bias(graph: &Graph, rounded: &str) -> Result<String, GraphError> {
    let mut value = rounded;
    // No chain is longer than the graph, and a cycle has no end.
    for _ in graph.nodes() {
        let maker = &graph.nodes()[graph.producer(value)?];
        let Some(input) = maker.input.first() else { break };
        if maker.op_type == "Div" {
            return Ok(input.clone());
        }
        value = input;
    }
    let what = "divisions before a rounded bias";
    Err(GraphError::Unexpected { what, found: 0, expected: 1 })
}

fn output(node: &NodeProto, at: usize) -> Result<&str, GraphError> {
    let (what, found) = ("outputs of a quantised node", node.output.len());
    let output = node.output.get(at).map(String::as_str);
    output.ok_or(GraphError::Unexpected { what, found, expected: at + 1 })
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

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::kokoro::in_floats;
    use crate::onnx::graph::value;
    use crate::onnx::proto::{
        DATA_FLOAT, DATA_INT8, DATA_INT64, DATA_UINT8, GraphProto, ModelProto,
    };

    fn tensor(name: &str, dims: &[i64], data_type: i32, raw_data: Vec<u8>) -> TensorProto {
        let (name, dims, raw_data) = (name.to_owned(), dims.to_vec(), raw_data.into());
        TensorProto { name, dims, data_type, raw_data, ..TensorProto::default() }
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// A padded convolution of `x`, and rows of a table.
    fn quantised() -> Vec<u8> {
        let amounts = [0_i64, 0, 2, 0, 0, 1].iter().flat_map(|amount| amount.to_le_bytes());
        let scalar = |name: &str, data_type: i32, value: i32| TensorProto {
            int32_data: vec![value],
            ..tensor(name, &[], data_type, Vec::new())
        };
        let initializer = vec![
            tensor("amounts", &[6], DATA_INT64, amounts.collect()),
            tensor("w", &[1, 2, 3], DATA_UINT8, vec![128, 129, 130, 127, 0, 255]),
            tensor("w_scale", &[], DATA_FLOAT, floats(&[0.5])),
            scalar("w_zero", DATA_UINT8, 128),
            tensor("table", &[2, 2], DATA_INT8, vec![1, 255, 3, 0]),
            tensor("t_scale", &[], DATA_FLOAT, floats(&[2.0])),
            scalar("t_zero", DATA_INT8, 1),
        ];
        let node_list = vec![
            node("DynamicQuantizeLinear", &["x"], &["q", "s", "z"]),
            node("Pad", &["q", "amounts", "z"], &["padded"]),
            node("ConvInteger", &["padded", "w", "z", "w_zero"], &["sums"])
                .with_ints("pads", &[0, 0])
                .with_ints("strides", &[3]),
            node("Mul", &["s", "w_scale"], &["scales"]),
            node("Cast", &["sums"], &["cast"]),
            node("Mul", &["cast", "scales"], &["y"]),
            node("Gather", &["table", "ids"], &["rows"]),
            node("DequantizeLinear", &["rows", "t_scale", "t_zero"], &["embedded"]),
        ];
        let graph = GraphProto {
            node: node_list,
            initializer,
            input: vec![value("x", DATA_FLOAT, &[]), value("ids", DATA_INT64, &[])],
            output: ["y", "embedded"].map(|name| value(name, DATA_FLOAT, &[])).to_vec(),
            ..GraphProto::default()
        };
        ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec()
    }

    #[test]
    fn a_quantised_graph_becomes_the_same_in_floats() {
        let bytes = in_floats(&quantised()).expect("a graph");
        let graph = Graph::decode(&bytes).expect("a graph");
        let [convolution, gather] = graph.nodes() else { panic!("two nodes: {:?}", graph.nodes()) };
        assert_eq!((convolution.op_type.as_str(), gather.op_type.as_str()), ("Conv", "Gather"));
        assert_eq!(convolution.input, ["x", "w/float"]);
        let ints = |name: &str| convolution.attribute(name).map(|one| one.ints.clone());
        assert_eq!((ints("pads"), ints("strides")), (Some(vec![2, 1]), Some(vec![3])));
        assert_eq!(graph.floats("w/float"), Ok(vec![0.0, 0.5, 1.0, -0.5, -64.0, 63.5]));
        assert_eq!(gather.input, ["table/float", "ids"]);
        assert_eq!(gather.output, ["embedded"]);
        assert_eq!(graph.floats("table/float"), Ok(vec![0.0, -4.0, 4.0, -2.0]));
        let unread = ["w", "w_zero", "table", "amounts"];
        assert!(
            unread.iter().all(|name| graph.weight(name).is_none()),
            "nothing quantised is left"
        );
        assert_eq!(in_floats(&bytes).expect("a graph"), bytes, "floats stay as they are");
    }

    #[test]
    fn a_malformed_graph_is_refused() {
        type Damage<'a> = &'a dyn Fn(&mut Vec<NodeProto>);
        let biased = |nodes: &mut Vec<NodeProto>, bias: Vec<NodeProto>| {
            nodes[4].input = vec!["biased".to_owned()];
            nodes.push(node("Add", &["sums", "rounded"], &["biased"]));
            nodes.extend(bias);
        };
        let damages: [(&str, Damage<'_>); 10] = [
            ("nothing is quantised", &|nodes| nodes[0].input.clear()),
            ("no scale", &|nodes| nodes[0].output.truncate(1)),
            ("no product", &|nodes| nodes[2].output.clear()),
            ("no states", &|nodes| {
                nodes[2] = node("DynamicQuantizeLSTM", &["x"; 12], &["sums"]);
                nodes[2].output.clear();
            }),
            ("no floats", &|nodes| nodes[4].output.clear()),
            ("no result", &|nodes| nodes[5].output.clear()),
            ("no table", &|nodes| nodes[6].input.clear()),
            ("no rows", &|nodes| nodes[7].output.clear()),
            ("a bias from nothing", &|nodes| {
                biased(nodes, vec![node("Constant", &[], &["rounded"])]);
            }),
            ("a cycle", &|nodes| {
                let cycle = [("Round", "rounded", "cast_back"), ("Cast", "cast_back", "rounded")];
                biased(nodes, cycle.map(|(op, from, to)| node(op, &[from], &[to])).to_vec());
            }),
        ];
        for (damage, damaged) in damages {
            let mut model = ModelProto::decode(&quantised()[..]).expect("a model");
            damaged(&mut model.graph.as_mut().expect("a graph").node);
            let refused = in_floats(&model.encode_to_vec());
            assert!(matches!(refused, Err(GraphError::Unexpected { .. })), "{damage}: {refused:?}");
        }
    }

    #[test]
    fn each_channel_has_its_own_scale() {
        let weight = |dims: &[i64]| tensor("w", dims, DATA_INT8, vec![1, 2, 3, 4]);
        let rows = [
            (vec![2, 2], vec![1.0, 10.0], 1, Some(vec![1.0, 20.0, 3.0, 40.0])),
            (vec![2, 1, 2], vec![1.0, 10.0], 0, Some(vec![1.0, 2.0, 30.0, 40.0])),
            (vec![2, 2], vec![3.0], 1, Some(vec![3.0, 6.0, 9.0, 12.0])),
            (vec![2, 2], vec![1.0, 2.0, 3.0], 1, None),
            (vec![4], vec![1.0, 2.0], 1, None),
            (vec![2, 2], vec![], 1, None),
            (vec![2, 2], vec![1.0, 10.0], -1, None),
            (vec![2, i64::MAX, 2], vec![1.0, 10.0], 0, None),
            (vec![3, i64::MAX], vec![1.0, 2.0, 3.0], 0, None),
        ];
        for (dims, scales, axis, expected) in rows {
            // Signed zeros without their sign.
            let zeros = vec![128; scales.len()];
            let expected: Option<Vec<f32>> = expected;
            assert_eq!(
                restored(&weight(&dims), &scales, &zeros, axis),
                expected.map(|values| floats(&values)),
                "{dims:?} {axis}"
            );
        }
        assert_eq!(restored(&weight(&[2, 2]), &[1.0], &[], 1), None, "no zero point");
    }

    /// A weight of two matrices with a scale each, as an LSTM reads it, and float ones: as bytes, and as numbers.
    fn with_transposed_weights() -> Vec<u8> {
        let initializer = vec![
            tensor("w", &[2, 1, 3], DATA_INT8, vec![1, 2, 3, 4, 5, 255]),
            tensor("scales", &[2], DATA_FLOAT, floats(&[1.0, 10.0])),
            tensor("zeros", &[2], DATA_INT8, vec![0, 1]),
            tensor("v", &[1, 2, 2], DATA_FLOAT, floats(&[1.0, 2.0, 3.0, 4.0])),
            TensorProto {
                float_data: vec![5.0, 6.0],
                ..tensor("u", &[1, 1, 2], DATA_FLOAT, Vec::new())
            },
        ];
        let exchange =
            |from: &str, to: &str| node("Transpose", &[from], &[to]).with_ints("perm", &[0, 2, 1]);
        let node_list = vec![
            node("DequantizeLinear", &["w", "scales", "zeros"], &["w/float"]).with_int("axis", 0),
            exchange("w/float", "w/gates_first"),
            exchange("v", "v/gates_first"),
            exchange("x", "x/exchanged"),
            exchange("u", "u/exchanged"),
            node("LSTM", &["x/exchanged", "w/gates_first", "v/gates_first", "u/exchanged"], &["y"]),
        ];
        let graph = GraphProto {
            node: node_list,
            initializer,
            input: vec![value("x", DATA_FLOAT, &[])],
            output: vec![value("y", DATA_FLOAT, &[])],
            ..GraphProto::default()
        };
        ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec()
    }

    #[test]
    fn weights_are_stored_in_the_order_in_which_they_are_read() {
        let mut graph = Graph::decode(&with_transposed_weights()).expect("a graph");
        transpose_weights(&mut graph);
        store_floats(&mut graph).expect("floats");
        let graph = graph.pruned().expect("a graph");
        let ops: Vec<&str> = graph.nodes().iter().map(|node| node.op_type.as_str()).collect();
        assert_eq!(ops, ["Transpose", "Transpose", "LSTM"], "the input, and a weight in numbers");
        let [x, w, v, u] = &graph.nodes()[2].input[..] else { panic!("four inputs") };
        assert_eq!([x, u], ["x/exchanged", "u/exchanged"]);
        assert_eq!(graph.floats("u"), Ok(vec![5.0, 6.0]));
        assert_eq!(graph.floats(w), Ok(vec![1.0, 2.0, 3.0, 30.0, 40.0, -20.0]));
        assert_eq!(graph.weight(w).map(|weight| &weight.dims[..]), Some(&[2, 3, 1][..]));
        assert_eq!(graph.floats(v), Ok(vec![1.0, 3.0, 2.0, 4.0]));
    }
}
