//! Runs the two stored graphs. The front turns tokens into contours; the vocoder turns a window of
//! contours into samples.

use std::path::Path;

use hob_core::Speed;
use hob_models::kokoro::{FRONT, VOCODER};
use hob_models::quantized_speech::whole;
use rten_tensor::NdTensorView;

use super::KokoroLoadError;
use super::contours::{Contours, FEATURES, HARMONICS, Window};
use super::crop::Crop;
use super::statistics::RunningStatistics;
use crate::onnx_graph::{Cores, GraphFailure, NodeId, OnnxGraph};
use crate::speech::synthesiser::SynthesisError;

/// `tokens, style, speed → features, pitch, energy, durations`.
pub(super) struct Front {
    graph: OnnxGraph,
    inputs: [NodeId; 3],
    outputs: [NodeId; 4],
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Front")
    }
}

impl Front {
    pub(super) fn load(folder: &Path, threads: usize) -> Result<Front, KokoroLoadError> {
        let path = &folder.join(FRONT);
        let damaged = |failure| KokoroLoadError::damaged(path, failure);
        let graph = load(folder, FRONT, threads)?;
        let inputs = graph.nodes(["tokens", "style", "speed"]).map_err(damaged)?;
        let outputs = graph.nodes(["features", "pitch", "energy", "durations"]).map_err(damaged)?;
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
    graph: OnnxGraph,
    inputs: [NodeId; 10],
    outputs: [NodeId; 3],
    channels: usize,
}

hob_core::debug_fields!(Vocoder: channels);

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
    pub(super) fn load(folder: &Path, threads: usize) -> Result<Vocoder, KokoroLoadError> {
        let path = &folder.join(VOCODER);
        let damaged = |failure| KokoroLoadError::damaged(path, failure);
        let graph = load(folder, VOCODER, threads)?.with_halves(threads);
        let inputs = graph.nodes([
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
        ]);
        let inputs = inputs.map_err(damaged)?;
        let outputs = graph.nodes(["audio", "window_mean", "window_variance"]).map_err(damaged)?;
        let &[_, Some(channels), _] = &graph.shape(inputs[5])[..] else {
            return Err(KokoroLoadError::damaged(
                path,
                "it does not say how many channels it normalises",
            ));
        };
        Ok(Vocoder { graph, inputs, outputs, channels })
    }

    /// Channels of all normalisations together.
    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// Whether two windows can be computed at the same time.
    pub(super) fn can_pair(&self) -> bool {
        self.graph.has_halves()
    }

    pub(super) fn run(
        &self,
        window: &Window,
        style: &[f32],
        carried: &RunningStatistics,
    ) -> Result<Rendered, SynthesisError> {
        self.run_on(Cores::All, window, style, carried)
    }

    pub(super) fn run_on(
        &self,
        cores: Cores,
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
        let [samples, mean, spread] = self.graph.run_on(cores, inputs, &self.outputs)?;
        let variance = carried.own_variance(&mean, &spread, share[0]);
        Ok(Rendered { samples, kept_from: crop.samples_before, mean, variance })
    }
}

/// Loads a graph of a stored model. Packed weights are unpacked, which takes a moment longer.
fn load(folder: &Path, name: &str, threads: usize) -> Result<OnnxGraph, KokoroLoadError> {
    let path = folder.join(name);
    let damaged = |reason: &dyn ToString| KokoroLoadError::damaged(&path, reason.to_string());
    if path.is_file() {
        return OnnxGraph::load(&path, threads).map_err(|failure| damaged(&failure));
    }
    let bytes = whole(folder, name).map_err(|error| damaged(&error))?;
    OnnxGraph::from_bytes(bytes, threads).map_err(|failure| damaged(&failure))
}

impl From<GraphFailure> for SynthesisError {
    fn from(failure: GraphFailure) -> SynthesisError {
        SynthesisError::Graph(failure.to_string())
    }
}
