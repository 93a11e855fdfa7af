//! Smart Turn's graph, changed when it is stored: it computes in floats. Its weights stay 8-bit.
//! Runs no model.

use crate::onnx::graph::{Dim, value};
use crate::onnx::proto::DATA_FLOAT;
use crate::onnx::{Graph, GraphError};

/// Name of the catalog's entry.
pub const NAME: &str = "smart-turn";
/// Smart Turn's file among the raw files and in the stored form. Silero VAD keeps the name that it has in the Whisper model.
pub(crate) const TURN: &str = "smart_turn.onnx";

/// Values that the published graph rounds to 8 bits.
const ROUNDED: usize = 78;

/// `features → probability`, from the published graph.
///
/// The published graph rounds each value between two layers to one of 256 steps. Two engines that add in another order then
/// differ by whole steps, and the probability of one pause differed by 0.66. Without the rounding they agree, and the
/// result is that of the weights.
///
/// # Errors
/// The bytes are not that graph.
pub(crate) fn in_floats(published: &[u8]) -> Result<Vec<u8>, GraphError> {
    let mut graph = Graph::decode(published)?;
    let rounded = rounded_values(&graph);
    if rounded.len() != ROUNDED {
        let what = "rounded values";
        return Err(GraphError::Unexpected { what, found: rounded.len(), expected: ROUNDED });
    }
    for (rounded, exact) in rounded {
        graph.redirect(&rounded, &exact);
    }
    graph.redirect("input_features", "features");
    graph.rename("logits", "probability");
    let features = [Dim::Fixed(1), Dim::Fixed(80), Dim::Fixed(800)];
    let stored = graph.extract(
        &[value("features", DATA_FLOAT, &features)],
        &[value("probability", DATA_FLOAT, &[])],
    )?;
    Ok(stored.encode())
}

/// Each value that is rounded, as its readers call it, and what it was before.
fn rounded_values(graph: &Graph) -> Vec<(String, String)> {
    let nodes = graph.nodes();
    let back = nodes.iter().filter(|node| node.op_type == "DequantizeLinear");
    let pairs = back.filter_map(|node| {
        let rounding = &nodes[graph.producer(node.input.first()?).ok()?];
        let is_pair = rounding.op_type == "QuantizeLinear";
        is_pair.then(|| Some((node.output.first()?.clone(), rounding.input.first()?.clone())))?
    });
    pairs.collect()
}

#[cfg(test)]
pub(crate) mod sample {
    use super::ROUNDED;
    use crate::onnx::Graph;
    use crate::onnx::graph::node;

    /// A graph with as many layers as the published graph rounds, each a `Relu`.
    pub(crate) fn graph() -> Vec<u8> {
        let mut graph = Graph::decode(&[0x3A, 0x00]).expect("an empty graph");
        graph.add_floats("scale", &[], &[0.1]);
        let mut last = "input_features".to_owned();
        for layer in 0..ROUNDED {
            let names = ["q", "dq", "out"].map(|name| format!("{name}{layer}"));
            let [quantised, back, out] = &names;
            let out = if layer + 1 == ROUNDED { "logits" } else { out };
            graph.push(node("QuantizeLinear", &[&last, "scale"], &[quantised]));
            graph.push(node("DequantizeLinear", &[quantised, "scale"], &[back]));
            graph.push(node("Relu", &[back], &[out]));
            out.clone_into(&mut last);
        }
        graph.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_rounded_in_the_stored_graph() {
        let stored = in_floats(&sample::graph()).expect("the expected graph");
        let stored = Graph::decode(&stored).expect("a graph");
        assert_eq!(stored.nodes().len(), ROUNDED, "only the layers are left");
        assert!(stored.nodes().iter().all(|node| node.op_type == "Relu"));
        assert_eq!(stored.nodes()[0].input, ["features"]);
        assert_eq!(stored.nodes()[ROUNDED - 1].output, ["probability"]);
        assert_eq!(stored.weight("scale"), None);
    }

    #[test]
    fn another_graph_is_refused() {
        let refused = in_floats(&[0x3A, 0x00]).expect_err("an empty graph");
        assert_eq!(refused.to_string(), "the graph has 0 rounded values where 78 were expected");
    }
}
