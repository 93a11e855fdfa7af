//! Runs the two stored graphs. The front turns tokens into contours; the vocoder turns a window of
//! contours into samples.

use std::path::Path;

use hob_core::Speed;
use hob_kernels::convolution::Convolver;
use hob_models::kokoro::{FRONT, VOCODER, front_to_run, split_vocoder};
use hob_models::onnx::Graph;
use hob_models::quantized_speech::whole;
use rten_tensor::NdTensorView;

use super::KokoroLoadError;
use super::contours::{Contours, FEATURES, HARMONICS, Window};
use super::crop::Crop;
use super::residual::{BlockRun, Blocks, Rows};
use super::statistics::RunningStatistics;
use crate::onnx_graph::{Cores, GraphFailure, NodeId, OnnxGraph, ValueOrView};
use crate::speech::synthesiser::SynthesisError;

/// `tokens, style, speed → features, pitch, energy, durations`.
pub(super) struct Front {
    graph: OnnxGraph,
    inputs: [NodeId; 3],
    outputs: [NodeId; 4],
}

hob_core::debug_fields!(Front: graph);

impl Front {
    pub(super) fn load(folder: &Path, threads: usize) -> Result<Front, KokoroLoadError> {
        let path = &folder.join(FRONT);
        let damaged = |failure| KokoroLoadError::damaged(path, failure);
        let stored = read(folder, FRONT)?;
        let floats = front_to_run(stored).map_err(|error| KokoroLoadError::damaged(path, error))?;
        let graph = OnnxGraph::from_detached(floats, threads).map_err(damaged)?;
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
    channels: usize,
    parts: Parts,
}

/// What computes the residual blocks.
enum Parts {
    /// The graph, as everything else.
    Whole { outputs: [NodeId; 3] },
    /// Kernels of ours, between three runs of the rest of the graph.
    Split(Box<Split>),
}

struct Split {
    blocks: Blocks,
    /// First channels and numbers of channels of the normalisations that the graph computes.
    rest_statistics: Vec<(usize, usize)>,
    styles: NodeId,
    /// `noise_0, noise_1, upsampled_0, window_mean, window_variance`.
    begin: [NodeId; 5],
    /// `stage_0` and `upsampled_1`.
    middle: [NodeId; 2],
    /// `stage_1` and `audio`.
    end: [NodeId; 2],
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
        Vocoder::load_with(folder, threads, Convolver::detect())
    }

    /// Without kernels, or for a vocoder of another shape, the graph computes everything.
    pub(super) fn load_with(
        folder: &Path,
        threads: usize,
        kernels: Option<Convolver>,
    ) -> Result<Vocoder, KokoroLoadError> {
        let path = &folder.join(VOCODER);
        let damaged = |failure| KokoroLoadError::damaged(path, failure);
        let stored = Graph::from_bytes(read(folder, VOCODER)?)
            .map_err(|error| KokoroLoadError::damaged(path, error))?;
        let split = kernels.map(|kernels| Vocoder::split((&stored, path), threads, kernels));
        if let Some(vocoder) = split.transpose()?.flatten() {
            return Ok(vocoder);
        }
        let graph = OnnxGraph::from_detached(stored.detached(), threads).map_err(damaged)?;
        let graph = graph.with_halves(threads);
        let outputs = graph.nodes(["audio", "window_mean", "window_variance"]).map_err(damaged)?;
        let (inputs, channels) = Vocoder::inputs(&graph, path)?;
        Ok(Vocoder { graph, inputs, channels, parts: Parts::Whole { outputs } })
    }

    /// `None`: the kernels do not compute the residual blocks of this graph.
    fn split(
        (stored, path): (&Graph, &Path),
        threads: usize,
        kernels: Convolver,
    ) -> Result<Option<Vocoder>, KokoroLoadError> {
        let damaged = |failure| KokoroLoadError::damaged(path, failure);
        let mut split = match split_vocoder(stored) {
            Ok(split) => split,
            Err(error) => {
                tracing::debug!(%error, "the vocoder has no residual blocks for hob's own kernels");
                return Ok(None);
            }
        };
        let rest = std::mem::take(&mut split.rest);
        let graph = OnnxGraph::from_detached(rest, threads).map_err(damaged)?;
        let graph = graph.with_halves(threads);
        let (inputs, channels) = Vocoder::inputs(&graph, path)?;
        let blocks = graph.in_threads(Cores::All, || Blocks::new(kernels, &split, channels));
        let Some(blocks) = blocks else {
            tracing::debug!("hob's own kernels do not compute the vocoder's sizes or weights");
            return Ok(None);
        };
        let begin = ["noise_0", "noise_1", "upsampled_0", "window_mean", "window_variance"];
        let [styles] = graph.nodes(["styles"]).map_err(damaged)?;
        let split = Split {
            blocks,
            styles,
            begin: graph.nodes(begin).map_err(damaged)?,
            middle: graph.nodes(["stage_0", "upsampled_1"]).map_err(damaged)?,
            end: graph.nodes(["stage_1", "audio"]).map_err(damaged)?,
            rest_statistics: split.rest_statistics,
        };
        Ok(Some(Vocoder { graph, inputs, channels, parts: Parts::Split(Box::new(split)) }))
    }

    /// The inputs, and the channels of all normalisations together.
    fn inputs(graph: &OnnxGraph, path: &Path) -> Result<([NodeId; 10], usize), KokoroLoadError> {
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
        let inputs = inputs.map_err(|failure| KokoroLoadError::damaged(path, failure))?;
        let &[_, Some(channels), _] = &graph.shape(inputs[5])[..] else {
            return Err(KokoroLoadError::damaged(
                path,
                "it does not say how many channels it normalises",
            ));
        };
        Ok((inputs, channels))
    }

    /// Channels of all normalisations together.
    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    #[cfg(test)]
    pub(super) fn has_kernels(&self) -> bool {
        matches!(self.parts, Parts::Split(_))
    }

    /// Whether two windows can be computed at the same time.
    pub(super) fn can_pair(&self) -> bool {
        self.graph.has_halves()
    }

    /// Gains and shifts of the residual blocks that kernels of ours compute, from the style of an utterance. All its windows
    /// have the same.
    pub(super) fn block_styles(&self, style: &[f32]) -> Result<Vec<f32>, SynthesisError> {
        let Parts::Split(split) = &self.parts else { return Ok(Vec::new()) };
        let style = NdTensorView::from_data([1, style.len()], style);
        let inputs = vec![(self.inputs[4], style.into())];
        let [styles] = self.graph.run(inputs, &[split.styles])?;
        check_sizes(styles.len() == split.blocks.style_values())?;
        Ok(styles)
    }

    pub(super) fn run(
        &self,
        window: &Window,
        style: &[f32],
        carried: &RunningStatistics,
    ) -> Result<Rendered, SynthesisError> {
        let block_styles = self.block_styles(style)?;
        self.run_on(Cores::All, window, (style, &block_styles), carried)
    }

    pub(super) fn run_on(
        &self,
        cores: Cores,
        window: &Window,
        (style, block_styles): (&[f32], &[f32]),
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
        let [samples, mean, spread] = match &self.parts {
            Parts::Whole { outputs } => self.graph.run_on(cores, inputs, outputs)?,
            Parts::Split(split) => {
                let run = SplitRun { vocoder: self, split, cores, crop: &crop };
                let blocks = BlockRun::new(block_styles, carried, share[0], self.channels);
                run.run(inputs, blocks)?
            }
        };
        let variance = carried.own_variance(&mean, &spread, share[0]);
        Ok(Rendered { samples, kept_from: crop.samples_before, mean, variance })
    }
}

/// One window on the rest of the graph and on kernels of ours.
struct SplitRun<'a> {
    vocoder: &'a Vocoder,
    split: &'a Split,
    cores: Cores,
    crop: &'a Crop,
}

impl SplitRun<'_> {
    /// Samples, and the mean and spread of each normalisation.
    fn run(
        &self,
        inputs: Vec<(NodeId, ValueOrView<'_>)>,
        mut run: BlockRun<'_>,
    ) -> Result<[Vec<f32>; 3], SynthesisError> {
        let Split { blocks, rest_statistics, begin, middle, end, .. } = self.split;
        let graph = &self.vocoder.graph;
        let [noise_0, noise_1, upsampled, rest_mean, rest_spread] =
            graph.run_on(self.cores, inputs, begin)?;
        let measured: usize = rest_statistics.iter().map(|(_, channels)| channels).sum();
        check_sizes(rest_mean.len() == measured && rest_spread.len() == measured)?;
        let first = self.stage(0, (&noise_0, &upsampled), &mut run)?;
        let [upsampled] = self.rest(*middle, (blocks.channels(0), &first))?;
        let second = self.stage(1, (&noise_1, &upsampled), &mut run)?;
        let [samples] = self.rest(*end, (blocks.channels(1), &second))?;
        let BlockRun { mut mean, mut spread, .. } = run;
        let mut at = 0;
        for &(first, channels) in rest_statistics {
            mean[first..first + channels].copy_from_slice(&rest_mean[at..at + channels]);
            spread[first..first + channels].copy_from_slice(&rest_spread[at..at + channels]);
            at += channels;
        }
        Ok([samples, mean, spread])
    }

    /// The output of a stage, from its noise and the upsampled output of the stage before.
    fn stage(
        &self,
        stage: usize,
        (noise, upsampled): (&[f32], &[f32]),
        run: &mut BlockRun<'_>,
    ) -> Result<Vec<f32>, SynthesisError> {
        let blocks = &self.split.blocks;
        let (channels, kept) = (blocks.channels(stage), self.crop.kept_noise(stage));
        let has_noise = noise.len() >= channels * kept.end;
        check_sizes(has_noise && upsampled.len() == channels * kept.len())?;
        Ok(self.vocoder.graph.in_threads(self.cores, || {
            let noise = Rows::from_values(noise, channels);
            let noise = blocks.noise(stage, noise, &kept, run);
            let input = noise.cropped_plus(kept.start, upsampled);
            blocks.stage(stage, &input, &self.crop.kept_output(stage), run).to_values()
        }))
    }

    /// Runs the rest of the graph from the output of a stage.
    fn rest(
        &self,
        [from, to]: [NodeId; 2],
        (channels, values): (usize, &[f32]),
    ) -> Result<[Vec<f32>; 1], GraphFailure> {
        let shape = [1, channels, values.len() / channels];
        let [starts, ends] = [&self.crop.starts, &self.crop.ends];
        let [starts_in, ends_in] = [self.vocoder.inputs[8], self.vocoder.inputs[9]];
        let inputs = vec![
            (from, NdTensorView::from_data(shape, values).into()),
            (starts_in, NdTensorView::from_data([starts.len()], &starts[..]).into()),
            (ends_in, NdTensorView::from_data([ends.len()], &ends[..]).into()),
        ];
        self.vocoder.graph.run_on(self.cores, inputs, &[to])
    }
}

/// Sizes of outputs are known only after a run, and those of a damaged vocoder may not fit its blocks.
fn check_sizes(fit: bool) -> Result<(), SynthesisError> {
    let differ = || SynthesisError::Graph("its outputs do not fit its residual blocks".to_owned());
    fit.then_some(()).ok_or_else(differ)
}

/// Reads a graph of a stored model. Packed weights are unpacked, which takes a moment longer.
fn read(folder: &Path, name: &str) -> Result<Vec<u8>, KokoroLoadError> {
    whole(folder, name).map_err(|error| KokoroLoadError::damaged(&folder.join(name), error))
}

impl From<GraphFailure> for SynthesisError {
    fn from(failure: GraphFailure) -> SynthesisError {
        SynthesisError::Graph(failure.to_string())
    }
}
