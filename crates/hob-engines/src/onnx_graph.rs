//! An ONNX graph on `rten`, with the threads that compute it.
//! Inputs and outputs are found by name when the graph is loaded.

use std::path::Path;
use std::sync::Arc;

use hob_models::onnx::DetachedGraph;
use rten::{Model, ModelOptions, RunOptions, ThreadPool, Value};
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

pub(crate) use rten::{NodeId, ValueOrView};

/// The engine's own words about a graph that does not load or does not run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct GraphFailure(String);

/// The threads of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    All,
    /// The first or the second half of them, so that two runs do not wait for each other.
    FirstHalf,
    SecondHalf,
}

/// A graph with the threads it runs on.
pub(crate) struct OnnxGraph {
    model: Model,
    all: RunOptions,
    /// Empty if there is only one thread.
    halves: Vec<RunOptions>,
}

hob_core::debug_fields!(OnnxGraph: halves.len());

impl OnnxGraph {
    pub(crate) fn load(path: &Path, threads: usize) -> Result<OnnxGraph, GraphFailure> {
        OnnxGraph::with_threads(Model::load_file(path), threads)
    }

    /// Uses the weights where they lie.
    pub(crate) fn from_detached(
        graph: DetachedGraph,
        threads: usize,
    ) -> Result<OnnxGraph, GraphFailure> {
        let mut options = ModelOptions::with_all_ops();
        for (name, weights) in graph.weights {
            options.external_data(&name, weights);
        }
        OnnxGraph::with_threads(options.load(graph.model), threads)
    }

    fn with_threads(
        model: Result<Model, impl std::fmt::Display>,
        threads: usize,
    ) -> Result<OnnxGraph, GraphFailure> {
        let model = model.map_err(GraphFailure::from_error)?;
        Ok(OnnxGraph { model, all: on_threads(threads), halves: Vec::new() })
    }

    /// Lets two runs share the threads that it was loaded with.
    pub(crate) fn with_halves(mut self, threads: usize) -> OnnxGraph {
        let half = threads / 2;
        self.halves = if half > 0 { vec![on_threads(half), on_threads(half)] } else { Vec::new() };
        self
    }

    /// Whether two runs can share the threads.
    pub(crate) fn has_halves(&self) -> bool {
        !self.halves.is_empty()
    }

    pub(crate) fn nodes<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[NodeId; N], GraphFailure> {
        let nodes = names.iter().map(|name| self.model.node_id(name));
        let nodes: Vec<NodeId> =
            nodes.collect::<Result<_, _>>().map_err(GraphFailure::from_error)?;
        Ok(std::array::from_fn(|at| nodes[at]))
    }

    /// The dimensions of a node's value; `None` where the graph leaves one open.
    pub(crate) fn shape(&self, node: NodeId) -> Vec<Option<usize>> {
        let shape = self.model.node_info(node).and_then(|node| node.shape()).unwrap_or_default();
        let fixed = |dimension: &rten::Dimension| match dimension {
            rten::Dimension::Fixed(size) => Some(*size),
            rten::Dimension::Symbolic(_) => None,
        };
        shape.iter().map(fixed).collect()
    }

    pub(crate) fn run<const N: usize>(
        &self,
        inputs: Vec<(NodeId, ValueOrView<'_>)>,
        outputs: &[NodeId; N],
    ) -> Result<[Vec<f32>; N], GraphFailure> {
        self.run_on(Cores::All, inputs, outputs)
    }

    pub(crate) fn run_on<const N: usize>(
        &self,
        cores: Cores,
        inputs: Vec<(NodeId, ValueOrView<'_>)>,
        outputs: &[NodeId; N],
    ) -> Result<[Vec<f32>; N], GraphFailure> {
        let options = Some(self.options(cores).clone());
        let values = self.model.run(inputs, outputs, options).map_err(GraphFailure::from_error)?;
        let floats = |value: Value| Tensor::<f32>::try_from(value).map(|tensor| tensor.to_vec());
        let values: Vec<Vec<f32>> = values
            .into_iter()
            .map(floats)
            .collect::<Result<_, _>>()
            .map_err(GraphFailure::from_error)?;
        let differ = "the graph returned a different number of outputs than expected";
        values.try_into().map_err(|_| GraphFailure(differ.to_owned()))
    }

    /// Runs something else on the threads of a run.
    pub(crate) fn in_threads<R: Send>(&self, cores: Cores, op: impl FnOnce() -> R + Send) -> R {
        match &self.options(cores).thread_pool {
            Some(pool) => pool.run(op),
            None => op(),
        }
    }

    /// Without halves, all threads.
    fn options(&self, cores: Cores) -> &RunOptions {
        let half = match cores {
            Cores::All => None,
            Cores::FirstHalf => self.halves.first(),
            Cores::SecondHalf => self.halves.last(),
        };
        half.unwrap_or(&self.all)
    }
}

fn on_threads(count: usize) -> RunOptions {
    RunOptions::default().with_thread_pool(Some(Arc::new(ThreadPool::with_num_threads(count))))
}

impl GraphFailure {
    fn from_error(error: impl std::fmt::Display) -> GraphFailure {
        GraphFailure(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use hob_models::onnx::Graph;
    use hob_models::onnx::graph::{Dim, node, value};
    use hob_models::onnx::proto::DATA_FLOAT;
    use rten_tensor::NdTensorView;

    use super::*;

    #[test]
    fn weights_apart_from_the_model_are_used() {
        // A version and an empty graph.
        let mut graph = Graph::decode(&[0x08, 0x08, 0x3A, 0x00]).expect("a graph");
        let weights: Vec<f32> = (0..2000).map(|at| at as f32).collect();
        graph.add_input(value("x", DATA_FLOAT, &[Dim::Fixed(2000)]));
        graph.add_output(value("y", DATA_FLOAT, &[Dim::Fixed(2000)]));
        graph.add_floats("w", &[2000], &weights);
        graph.push(node("Add", &["x", "w"], &["y"]));
        let detached = graph.detached();
        assert_eq!(detached.weights.len(), 1);
        let graph = OnnxGraph::from_detached(detached, 1).expect("it loads");
        let [x, y] = graph.nodes(["x", "y"]).expect("nodes");
        let values = [0.5_f32; 2000];
        let inputs = vec![(x, NdTensorView::from_data([2000], &values[..]).into())];
        let [sums] = graph.run(inputs, &[y]).expect("it runs");
        let expected: Vec<f32> = weights.iter().map(|weight| weight + 0.5).collect();
        assert_eq!(sums, expected);
    }
}
