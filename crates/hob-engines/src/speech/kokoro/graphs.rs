//! Runs the two stored graphs. The front turns tokens into contours; the vocoder turns a window of
//! contours into samples.
//! The only file whose code uses `rten`.

use std::path::Path;
use std::sync::Arc;

use hob_core::Speed;
use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensorView, Tensor};

use super::LoadError;
use super::contours::{Contours, FEATURES, HARMONICS, Window};
use super::crop::Crop;
use super::statistics::RunningStatistics;
use crate::speech::synthesiser::SynthesisError;

/// A graph with the threads it runs on.
struct Graph {
    model: Model,
    options: RunOptions,
}

impl Graph {
    fn load(path: &Path, threads: usize) -> Result<Graph, LoadError> {
        let model = Model::load_file(path).map_err(|error| LoadError::Damaged {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        let pool = Arc::new(ThreadPool::with_num_threads(threads));
        Ok(Graph { model, options: RunOptions::default().with_thread_pool(Some(pool)) })
    }

    fn node(&self, path: &Path, name: &str) -> Result<NodeId, LoadError> {
        self.model.node_id(name).map_err(|error| LoadError::Damaged {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    }

    fn nodes<const N: usize>(
        &self,
        path: &Path,
        names: [&str; N],
    ) -> Result<[NodeId; N], LoadError> {
        let nodes: Vec<NodeId> =
            names.iter().map(|name| self.node(path, name)).collect::<Result<_, _>>()?;
        Ok(std::array::from_fn(|at| nodes[at]))
    }

    fn run<const N: usize>(
        &self,
        inputs: Vec<(NodeId, ValueOrView<'_>)>,
        outputs: &[NodeId; N],
    ) -> Result<[Vec<f32>; N], SynthesisError> {
        let failed = |error: &dyn std::fmt::Display| SynthesisError::Graph(error.to_string());
        let values = self
            .model
            .run(inputs, outputs, Some(self.options.clone()))
            .map_err(|error| failed(&error))?;
        let values: Vec<Vec<f32>> = values
            .into_iter()
            .map(|value: Value| Tensor::<f32>::try_from(value).map(|tensor| tensor.to_vec()))
            .collect::<Result<_, _>>()
            .map_err(|error| failed(&error))?;
        values
            .try_into()
            .map_err(|_| failed(&"the graph returned a different number of outputs than expected"))
    }
}

/// `tokens, style, speed → features, pitch, energy, durations`.
pub(super) struct Front {
    graph: Graph,
    inputs: [NodeId; 3],
    outputs: [NodeId; 4],
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Front")
    }
}

impl Front {
    pub(super) fn load(path: &Path, threads: usize) -> Result<Front, LoadError> {
        let graph = Graph::load(path, threads)?;
        let inputs = graph.nodes(path, ["tokens", "style", "speed"])?;
        let outputs = graph.nodes(path, ["features", "pitch", "energy", "durations"])?;
        Ok(Front { graph, inputs, outputs })
    }

    pub(super) fn run(
        &self,
        tokens: &[i32],
        style: &[f32],
        speed: Speed,
    ) -> Result<Contours, SynthesisError> {
        let speed = [speed.rate()];
        let [tokens_in, style_in, speed_in] = self.inputs;
        let inputs = vec![
            (tokens_in, NdTensorView::from_data([1, tokens.len()], tokens).into()),
            (style_in, NdTensorView::from_data([1, style.len()], style).into()),
            (speed_in, NdTensorView::from_data([1], &speed[..]).into()),
        ];
        let [features, pitch, energy, durations] = self.graph.run(inputs, &self.outputs)?;
        Contours::new(features, pitch, energy, &durations)
    }
}

/// `features, pitch, energy, phases, style, carried statistics, crops → audio, window statistics`.
pub(super) struct Vocoder {
    graph: Graph,
    inputs: [NodeId; 10],
    outputs: [NodeId; 3],
    channels: usize,
}

impl std::fmt::Debug for Vocoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocoder").field("channels", &self.channels).finish_non_exhaustive()
    }
}

/// The output of one window.
pub(super) struct Rendered {
    pub(super) samples: Vec<f32>,
    /// Index of the first sample that is kept.
    pub(super) kept_from: usize,
    /// Per channel, of this window alone.
    pub(super) mean: Vec<f32>,
    /// Per channel, about this window's own mean.
    pub(super) variance: Vec<f32>,
}

impl Vocoder {
    pub(super) fn load(path: &Path, threads: usize) -> Result<Vocoder, LoadError> {
        let graph = Graph::load(path, threads)?;
        let inputs = graph.nodes(
            path,
            [
                "features",
                "pitch",
                "energy",
                "phases",
                "style",
                "carried_mean",
                "carried_variance",
                "carried_share",
                "crop_starts",
                "crop_ends",
            ],
        )?;
        let outputs = graph.nodes(path, ["audio", "window_mean", "window_variance"])?;
        let shape = graph.model.node_info(inputs[5]).and_then(|node| node.shape());
        let channels = match shape.as_deref() {
            Some([_, rten::Dimension::Fixed(channels), _]) => *channels,
            _ => {
                return Err(LoadError::Damaged {
                    path: path.to_owned(),
                    reason: "it does not say how many channels it normalises".to_owned(),
                });
            }
        };
        Ok(Vocoder { graph, inputs, outputs, channels })
    }

    /// Channels of all normalisations together.
    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    pub(super) fn run(
        &self,
        window: &Window,
        style: &[f32],
        carried: &RunningStatistics,
    ) -> Result<Rendered, SynthesisError> {
        let frames = window.frames;
        let share = [carried.share(window.played.len())];
        let crop = Crop::around(&window.played, frames);
        let channels = [1, self.channels, 1];
        let ids = self.inputs;
        let inputs = vec![
            (ids[0], NdTensorView::from_data([1, FEATURES, frames], &window.features[..]).into()),
            (ids[1], NdTensorView::from_data([1, 2 * frames], &window.pitch[..]).into()),
            (ids[2], NdTensorView::from_data([1, 2 * frames], &window.energy[..]).into()),
            (
                ids[3],
                NdTensorView::from_data([1, HARMONICS, 2 * frames], &window.phases[..]).into(),
            ),
            (ids[4], NdTensorView::from_data([1, style.len()], style).into()),
            (ids[5], NdTensorView::from_data(channels, carried.mean()).into()),
            (ids[6], NdTensorView::from_data(channels, carried.variance()).into()),
            (ids[7], NdTensorView::from_data([], &share[..]).into()),
            (ids[8], NdTensorView::from_data([crop.starts.len()], &crop.starts[..]).into()),
            (ids[9], NdTensorView::from_data([crop.ends.len()], &crop.ends[..]).into()),
        ];
        let [samples, mean, spread] = self.graph.run(inputs, &self.outputs)?;
        let variance = carried.own_variance(&mean, &spread, share[0]);
        Ok(Rendered { samples, kept_from: crop.samples_before, mean, variance })
    }
}
