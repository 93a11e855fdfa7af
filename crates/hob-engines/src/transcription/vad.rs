//! Silero VAD v6 computes how likely 32 ms of sound are speech. The network is so small that this file computes it in plain Rust.
//! The weights come from the published ONNX file, whose graph has a branch for 16 kHz.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use hob_core::{VOICE_FRAME_SAMPLES, VoiceDetector};
use hob_kernels::dot;
use hob_models::onnx::proto::{GraphProto, TensorProto};
use hob_models::onnx::{Graph, GraphError};

/// Samples of one frame: 32 ms at 16 kHz.
pub const FRAME_SAMPLES: usize = VOICE_FRAME_SAMPLES;
/// Samples of the frame before, which the network sees too.
const CONTEXT: usize = 64;
/// Samples after the frame, which are its last samples mirrored.
const PAD: usize = 64;
const FFT: usize = 256;
const STRIDE: usize = 128;
const BANDS: usize = FFT / 2 + 1;
/// Spectra of one frame.
const STEPS: usize = (CONTEXT + FRAME_SAMPLES + PAD - FFT) / STRIDE + 1;
/// Inputs, outputs and stride of each convolution.
const CONVOLUTIONS: [(usize, usize, usize); 4] =
    [(BANDS, 128, 1), (128, 64, 2), (64, 64, 2), (64, STATE, 1)];
/// Values of the LSTM's state.
const STATE: usize = 128;
/// A larger file is not a VAD.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The network, and its state after the frames so far. Clones share the weights and copy the state.
#[derive(Clone, Debug)]
pub struct SileroVad {
    weights: Arc<Network>,
    context: [f32; CONTEXT],
    hidden: [f32; STATE],
    cell: [f32; STATE],
}

#[derive(Debug, thiserror::Error)]
pub enum VadError {
    #[error("cannot read the file of Silero VAD: {0}")]
    Io(#[from] io::Error),
    #[error("the file of Silero VAD is damaged: {0}")]
    Graph(#[from] GraphError),
    #[error(
        "the file has {bytes} bytes, and Silero VAD has at most {FILE_BYTES_MAX}: this is not Silero VAD"
    )]
    TooLarge { bytes: u64 },
    #[error("this is not Silero VAD: its '{0}' is missing or has another size")]
    Missing(String),
}

#[derive(Debug)]
struct Network {
    /// Cosines, then sines, of each band: 2 × 129 rows of 256.
    basis: Vec<f32>,
    convolutions: Vec<Convolution>,
    /// Rows of 256 inputs (128 of the sound, 128 of the memory), for 4 × 128 gates.
    gates: Vec<f32>,
    gates_bias: Vec<f32>,
    out: Vec<f32>,
    out_bias: f32,
}

/// A convolution of width 3 with one sample of padding.
#[derive(Debug)]
struct Convolution {
    /// For each output: 3 rows of inputs, one for each tap.
    weights: Vec<f32>,
    bias: Vec<f32>,
    inputs: usize,
    stride: usize,
}

impl SileroVad {
    /// Reads `silero_vad.onnx`.
    ///
    /// # Errors
    /// The file cannot be read, or is not Silero VAD v5 or v6, which have the same layers.
    pub fn load(path: &Path) -> Result<SileroVad, VadError> {
        let bytes = fs::metadata(path)?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(VadError::TooLarge { bytes });
        }
        let graph = Graph::decode(&fs::read(path)?)?;
        let branch =
            graph.nodes().iter().find_map(|node| node.attribute("then_branch")?.g.as_ref());
        let weights =
            Network::of(branch.ok_or_else(|| VadError::Missing("then_branch".to_owned()))?)?;
        Ok(SileroVad::new(weights))
    }

    fn new(weights: Network) -> SileroVad {
        SileroVad {
            weights: Arc::new(weights),
            context: [0.0; CONTEXT],
            hidden: [0.0; STATE],
            cell: [0.0; STATE],
        }
    }

    /// How likely this frame, which follows the one before, is speech: 0 to 1.
    pub fn probability(&mut self, frame: &[f32; FRAME_SAMPLES]) -> f32 {
        let mut sound = [0.0; CONTEXT + FRAME_SAMPLES + PAD];
        sound[..CONTEXT].copy_from_slice(&self.context);
        sound[CONTEXT..CONTEXT + FRAME_SAMPLES].copy_from_slice(frame);
        let end = CONTEXT + FRAME_SAMPLES;
        for at in 0..PAD {
            sound[end + at] = sound[end - 2 - at];
        }
        self.context.copy_from_slice(&frame[FRAME_SAMPLES - CONTEXT..]);
        let mut columns = self.weights.spectra(&sound);
        for convolution in &self.weights.convolutions {
            columns = convolution.apply(&columns);
        }
        let input = columns.concat();
        self.remember(&input);
        let score: f32 = self
            .hidden
            .iter()
            .zip(&self.weights.out)
            .map(|(value, weight)| value.max(0.0) * weight)
            .sum();
        sigmoid(score + self.weights.out_bias)
    }

    /// One step of the LSTM.
    fn remember(&mut self, input: &[f32]) {
        let mut both = [0.0; 2 * STATE];
        both[..STATE].copy_from_slice(&input[..STATE]);
        both[STATE..].copy_from_slice(&self.hidden);
        let network = &self.weights;
        let gate = |number: usize| {
            let row = &network.gates[number * 2 * STATE..(number + 1) * 2 * STATE];
            dot(row, &both) + network.gates_bias[number]
        };
        for at in 0..STATE {
            let [enter, keep, new, show] = [0, 1, 2, 3].map(|part| gate(part * STATE + at));
            let cell = sigmoid(keep) * self.cell[at] + sigmoid(enter) * new.tanh();
            self.cell[at] = cell;
            self.hidden[at] = sigmoid(show) * cell.tanh();
        }
    }
}

impl VoiceDetector for SileroVad {
    /// A shorter frame ends in silence.
    fn probability(&mut self, frame: &[f32]) -> f32 {
        let mut whole = [0.0; FRAME_SAMPLES];
        whole.iter_mut().zip(frame).for_each(|(to, from)| *to = *from);
        SileroVad::probability(self, &whole)
    }

    fn reset(&mut self) {
        self.context = [0.0; CONTEXT];
        self.hidden = [0.0; STATE];
        self.cell = [0.0; STATE];
    }
}

impl Network {
    fn of(branch: &GraphProto) -> Result<Network, VadError> {
        let floats = |name: &str, count: usize| {
            let ends = |output: &String| output.ends_with(name);
            let node = branch.node.iter().find(|node| node.output.iter().any(ends));
            let tensor = node.and_then(|node| node.attribute("value")?.t.as_ref());
            let values = tensor.and_then(TensorProto::floats);
            values
                .filter(|values| values.len() == count)
                .ok_or_else(|| VadError::Missing(name.to_owned()))
        };
        let convolution = |(layer, (inputs, outputs, stride)): (usize, (usize, usize, usize))| {
            let named = |part| format!("encoder.{layer}.reparam_conv.{part}");
            let given = floats(&named("weight"), outputs * inputs * 3)?;
            // From taps inside inputs to inputs inside taps.
            let weights = given
                .chunks(3 * inputs)
                .flat_map(|row| (0..3).flat_map(move |tap| row[tap..].iter().step_by(3)))
                .copied()
                .collect();
            let bias = floats(&named("bias"), outputs)?;
            Ok::<_, VadError>(Convolution { weights, bias, inputs, stride })
        };
        let (input, hidden) = (
            floats("decoder.rnn.weight_ih", 4 * STATE * STATE)?,
            floats("decoder.rnn.weight_hh", 4 * STATE * STATE)?,
        );
        let rows = input.chunks(STATE).zip(hidden.chunks(STATE));
        let biases = floats("decoder.rnn.bias_ih", 4 * STATE)?
            .into_iter()
            .zip(floats("decoder.rnn.bias_hh", 4 * STATE)?);
        Ok(Network {
            basis: floats("stft.forward_basis_buffer", 2 * BANDS * FFT)?,
            convolutions: CONVOLUTIONS
                .into_iter()
                .enumerate()
                .map(convolution)
                .collect::<Result<_, _>>()?,
            gates: rows.flat_map(|(input, hidden)| [input, hidden].concat()).collect(),
            gates_bias: biases.map(|(input, hidden)| input + hidden).collect(),
            out: floats("decoder.decoder.2.weight", STATE)?,
            out_bias: floats("decoder.decoder.2.bias", 1)?[0],
        })
    }

    /// The loudness of each band, at four times.
    fn spectra(&self, sound: &[f32]) -> Vec<Vec<f32>> {
        let (cosines, sines) = self.basis.split_at(BANDS * FFT);
        (0..STEPS)
            .map(|step| {
                let part = &sound[step * STRIDE..step * STRIDE + FFT];
                let bands = cosines.chunks(FFT).zip(sines.chunks(FFT));
                bands.map(|(cosine, sine)| dot(cosine, part).hypot(dot(sine, part))).collect()
            })
            .collect()
    }
}

impl Convolution {
    /// Columns in, columns out, without negative values.
    fn apply(&self, columns: &[Vec<f32>]) -> Vec<Vec<f32>> {
        (0..columns.len().div_ceil(self.stride))
            .map(|at| {
                let taps = [0, 1, 2].map(|tap| (at * self.stride + tap).checked_sub(1));
                let taps = taps.map(|place| place.and_then(|place| columns.get(place)));
                let outputs = self.weights.chunks(3 * self.inputs).zip(&self.bias);
                outputs
                    .map(|(weights, bias)| {
                        let rows = weights.chunks(self.inputs).zip(taps);
                        let products = rows.map(|(row, tap)| tap.map_or(0.0, |tap| dot(row, tap)));
                        (products.sum::<f32>() + bias).max(0.0)
                    })
                    .collect()
            })
            .collect()
    }
}

fn sigmoid(value: f32) -> f32 {
    1.0 / (1.0 + (-value).exp())
}

#[cfg(test)]
mod tests;
