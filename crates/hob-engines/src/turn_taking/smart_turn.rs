//! Smart Turn v3 on `rten`: the encoder of Whisper tiny over 8 s of sound, and a classifier.
//! The sound is prepared as in the model's training, with the feature extractor of Hugging Face's Whisper.

use std::path::{Path, PathBuf};

use hob_models::mel_filters;
use rten_tensor::NdTensorView;

use crate::onnx_graph::{GraphFailure, NodeId, OnnxGraph};
use crate::transcription::whisper::mel::{FRAME, HOP, Mel};

/// Samples that the model hears: 8 s at 16 kHz.
const SAMPLES: usize = 128_000;
const FRAMES: usize = SAMPLES / HOP;
const BANDS: usize = 80;
/// Keeps the division by the deviation of silence finite.
const VARIANCE_MIN: f32 = 1e-7;

/// The loaded model.
#[derive(Debug)]
pub struct SmartTurn {
    graph: OnnxGraph,
    input: NodeId,
    output: NodeId,
    mel: Mel,
}

#[derive(Debug, thiserror::Error)]
pub enum SmartTurnError {
    #[error("{path} is damaged: {reason}; pull the model again with `hob pull smart-turn`")]
    Damaged { path: PathBuf, reason: String },
    #[error("the graph of Smart Turn failed: {0}")]
    Graph(String),
}

impl SmartTurn {
    /// Reads `smart_turn.onnx`, to compute with `threads` threads, and runs it once as a check.
    ///
    /// # Errors
    /// The file cannot be read, or is not Smart Turn.
    pub fn load(path: &Path, threads: usize) -> Result<SmartTurn, SmartTurnError> {
        let damaged = |failure: &dyn std::fmt::Display| SmartTurnError::Damaged {
            path: path.to_owned(),
            reason: failure.to_string(),
        };
        let graph = OnnxGraph::load(path, threads).map_err(|failure| damaged(&failure))?;
        let nodes = graph.nodes(["features", "probability"]);
        let [input, output] = nodes.map_err(|failure| damaged(&failure))?;
        let mel = Mel::new(mel_filters(BANDS as u32), BANDS);
        let model = SmartTurn { graph, input, output, mel };
        model.probability(&[]).map_err(|failure| damaged(&failure))?;
        Ok(model)
    }

    /// How likely the turn is complete, from 0 to 1. `samples` are its sound at 16 kHz; only the last 8 s count.
    ///
    /// # Errors
    /// The graph failed.
    pub fn probability(&self, samples: &[f32]) -> Result<f32, SmartTurnError> {
        let features = self.features(samples);
        let input = NdTensorView::from_data([1, BANDS, FRAMES], &features[..]).into();
        let [probability] = self.graph.run(vec![(self.input, input)], &[self.output])?;
        match probability[..] {
            [probability] if probability.is_finite() => Ok(probability),
            _ => Err(SmartTurnError::Graph(format!("it returned {probability:?}"))),
        }
    }

    /// The spectrogram, band by band.
    pub(super) fn features(&self, samples: &[f32]) -> Vec<f32> {
        self.mel.spectrogram(&reflected(normalised(last_8_s(samples))), FRAMES)
    }
}

/// Exactly 8 s: the end of a longer sound, or silence before a shorter one.
fn last_8_s(samples: &[f32]) -> Vec<f32> {
    let kept = &samples[samples.len().saturating_sub(SAMPLES)..];
    let mut sound = vec![0.0; SAMPLES];
    sound[SAMPLES - kept.len()..].copy_from_slice(kept);
    sound
}

/// With mean 0 and variance 1, the silence before the sound included.
fn normalised(mut sound: Vec<f32>) -> Vec<f32> {
    let average = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / SAMPLES as f64;
    let mean = average(&mut sound.iter().map(|sample| f64::from(*sample)));
    let variance = average(&mut sound.iter().map(|sample| (f64::from(*sample) - mean).powi(2)));
    let deviation = (variance as f32 + VARIANCE_MIN).sqrt();
    sound.iter_mut().for_each(|sample| *sample = (*sample - mean as f32) / deviation);
    sound
}

/// Followed by its reflection, which the last frame reaches into.
fn reflected(mut sound: Vec<f32>) -> Vec<f32> {
    let end: Vec<f32> = sound.iter().rev().skip(1).take(FRAME / 2).copied().collect();
    sound.extend(end);
    sound
}

impl From<GraphFailure> for SmartTurnError {
    fn from(failure: GraphFailure) -> SmartTurnError {
        SmartTurnError::Graph(failure.to_string())
    }
}
