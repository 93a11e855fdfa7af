//! The probabilities are those of ONNX Runtime, with made-up weights and with the published ones.
//! Tests with the published weights need the model that `make models` installs.

use std::f64::consts::TAU;

use hob_models::onnx::proto::{AttributeProto, DATA_FLOAT, NodeProto};

use super::*;
use crate::test_home::stored;

/// The layers of the published file: name, number of values, and the number of inputs by which [`made_up`] scales the
/// values (16 for each bias).
const LAYERS: [(&str, usize, usize); 15] = [
    ("stft.forward_basis_buffer", 258 * 256, 256),
    ("encoder.0.reparam_conv.weight", 128 * 129 * 3, 387),
    ("encoder.0.reparam_conv.bias", 128, 16),
    ("encoder.1.reparam_conv.weight", 64 * 128 * 3, 384),
    ("encoder.1.reparam_conv.bias", 64, 16),
    ("encoder.2.reparam_conv.weight", 64 * 64 * 3, 192),
    ("encoder.2.reparam_conv.bias", 64, 16),
    ("encoder.3.reparam_conv.weight", 128 * 64 * 3, 192),
    ("encoder.3.reparam_conv.bias", 128, 16),
    ("decoder.rnn.weight_ih", 512 * 128, 128),
    ("decoder.rnn.weight_hh", 512 * 128, 128),
    ("decoder.rnn.bias_ih", 512, 16),
    ("decoder.rnn.bias_hh", 512, 16),
    ("decoder.decoder.2.weight", 128, 128),
    ("decoder.decoder.2.bias", 1, 16),
];

/// Weights that any program can make again: 3 sin(0.37 i² + 0.11 i + layer) / √inputs.
fn made_up(layer: usize, count: usize, inputs: usize) -> Vec<f32> {
    let value =
        |i: f64| (0.37 * i * i + 0.11 * i + layer as f64).sin() * 3.0 / (inputs as f64).sqrt();
    (0..count).map(|i| value(i as f64) as f32).collect()
}

fn constant(name: &str, values: Vec<f32>) -> NodeProto {
    let tensor = TensorProto {
        data_type: DATA_FLOAT,
        dims: vec![values.len() as i64],
        float_data: values,
        ..TensorProto::default()
    };
    let value =
        AttributeProto { name: "value".to_owned(), t: Some(tensor), ..AttributeProto::default() };
    NodeProto {
        op_type: "Constant".to_owned(),
        output: vec![format!("If_0_then_branch__Inline_0__{name}")],
        attribute: vec![value],
        ..NodeProto::default()
    }
}

/// A file as the published one, without the layers that `left_out` names.
fn file(left_out: &str) -> tempfile::NamedTempFile {
    let layers = LAYERS.iter().enumerate().filter(|(_, (name, ..))| *name != left_out);
    let node = layers
        .map(|(layer, (name, count, inputs))| constant(name, made_up(layer, *count, *inputs)))
        .collect();
    let branch = GraphProto { node, ..GraphProto::default() };
    let then = AttributeProto {
        name: "then_branch".to_owned(),
        g: Some(branch),
        ..AttributeProto::default()
    };
    // A model whose only field is an empty graph.
    let mut graph = Graph::decode(&[0x3A, 0x00]).expect("an empty graph");
    graph.push(NodeProto {
        op_type: "If".to_owned(),
        attribute: vec![then],
        ..NodeProto::default()
    });
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), graph.encode()).expect("written");
    file
}

fn probabilities(vad: &mut SileroVad, sound: &[f32]) -> Vec<f32> {
    sound.as_chunks().0.iter().map(|frame| vad.probability(frame)).collect()
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32], difference_max: f32) {
    assert_eq!(found.len(), expected.len());
    let differs = |(a, b): &(&f32, &f32)| (*a - *b).abs() > difference_max;
    let first = found.iter().zip(expected).find(differs);
    assert_eq!(first, None, "{found:?}");
}

/// Eight frames of a rising tone, each with a level of its own.
fn tone() -> Vec<f32> {
    let sample =
        |n: f64| (0.1 + 0.9 * ((n / 512.0).floor() * 1.7).sin().abs()) * (n * n * 1e-4).sin();
    (0..8 * FRAME_SAMPLES).map(|n| sample(n as f64) as f32).collect()
}

#[test]
fn the_network_computes_what_onnx_runtime_computes() {
    let mut vad = SileroVad::load(file("").path()).expect("a whole file");
    let expected =
        [0.696_568, 0.511_959, 0.678_905, 0.593_766, 0.744_331, 0.619_253, 0.592_721, 0.712_88];
    assert_close(&probabilities(&mut vad, &tone()), &expected, 1e-5);
}

#[test]
fn a_clone_and_a_reset_hear_another_recording() {
    let fresh = SileroVad::load(file("").path()).expect("a whole file");
    let mut vad = fresh.clone();
    let first = probabilities(&mut vad, &tone());
    assert_ne!(probabilities(&mut vad, &tone()), first, "the memory counts");
    vad.reset();
    assert_eq!(probabilities(&mut vad, &tone()), first);
    assert_eq!(probabilities(&mut fresh.clone(), &tone()), first);
}

#[test]
fn a_file_that_is_no_vad_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("vad.onnx");
    assert!(matches!(SileroVad::load(&path), Err(VadError::Io(_))));
    fs::write(&path, b"no graph at all").expect("written");
    assert!(matches!(SileroVad::load(&path), Err(VadError::Graph(_))));
    fs::write(&path, [0x3A, 0x00]).expect("written");
    let branchless = SileroVad::load(&path).expect_err("no branch");
    assert!(matches!(branchless, VadError::Missing(name) if name == "then_branch"));
    for (name, ..) in LAYERS {
        let error = SileroVad::load(file(name).path()).expect_err("a layer is missing");
        let says = format!("this is not Silero VAD: its '{name}' is missing or has another size");
        assert_eq!(error.to_string(), says);
    }
    fs::File::create(&path).and_then(|file| file.set_len(1 << 30)).expect("a large file");
    let error = SileroVad::load(&path).expect_err("a large file");
    assert_eq!(
        error.to_string(),
        "the file has 1073741824 bytes, and Silero VAD has at most 67108864: this is not Silero VAD"
    );
}

#[test]
fn a_convolution_pads_with_zeros_and_drops_negative_values() {
    // One input and one output: the sum of the column before, twice this one, and minus the next.
    let plain =
        Convolution { weights: vec![1.0, 2.0, -1.0], bias: vec![0.5], inputs: 1, stride: 1 };
    let columns: Vec<Vec<f32>> = [1.0, 2.0, 9.0].iter().map(|value| vec![*value]).collect();
    assert_eq!(plain.apply(&columns), [[0.5], [0.0], [20.5]]);
    let strided = Convolution { stride: 2, ..plain };
    assert_eq!(strided.apply(&columns), [[0.5], [20.5]]);
}

#[test]
fn a_dot_product_uses_every_value() {
    let values: Vec<f32> = (0..35).map(|value| value as f32).collect();
    assert_eq!(dot(&values, &[1.0; 35]), 595.0);
}

/// The stored model of the test home.
fn published() -> SileroVad {
    SileroVad::load(&stored("whisper-base").join("silero_vad.onnx"))
        .expect("the published file loads")
}

/// Like a voice: harmonics of a gliding pitch under two formants, in syllables.
fn voice(frames: usize) -> Vec<f32> {
    let mut phase = 0.0;
    let formant = |hz: f64, at: f64, width: f64| (-((hz - at) / width).powi(2)).exp();
    let sample = |n: usize| {
        let t = n as f64 / 16_000.0;
        let pitch_hz = 130.0 + 30.0 * (TAU * 0.7 * t).sin();
        phase += TAU * pitch_hz / 16_000.0;
        let audible = (1..40).map(f64::from).filter(|k| k * pitch_hz < 6_400.0);
        let harmonics = audible.map(|k| {
            let hz = k * pitch_hz;
            (formant(hz, 500.0, 250.0) + 0.4 * formant(hz, 1_700.0, 400.0) + 0.01)
                * (k * phase).sin()
        });
        (0.15 * (TAU * 2.5 * t).sin().max(0.0).sqrt() * harmonics.sum::<f64>()) as f32
    };
    (0..frames * FRAME_SAMPLES).map(sample).collect()
}

#[test]
fn the_published_network_hears_what_onnx_runtime_hears() {
    let expected = [
        0.6159, 0.7614, 0.6432, 0.4794, 0.2749, 0.2925, 0.2078, 0.0549, 0.0267, 0.0106, 0.0072,
        0.0067, 0.0419, 0.0391, 0.025, 0.0125, 0.0077, 0.0043, 0.0108, 0.0017, 0.0013, 0.0019,
        0.0022, 0.002, 0.0019, 0.295, 0.3505, 0.324, 0.3592, 0.3381, 0.1549, 0.0164, 0.0022, 0.002,
        0.0014, 0.0012, 0.0013, 0.0074, 0.0065, 0.0052,
    ];
    assert_close(&probabilities(&mut published(), &voice(40)), &expected, 2e-4);
}

/// If such sound counted as speech, it would be transcribed, and Whisper would invent words.
#[test]
fn noise_is_no_speech() {
    let mut seed = 1_u32;
    let mut noise = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(seed) / f64::from(u32::MAX) * 2.0 - 1.0
    };
    let hiss: Vec<f32> = (0..160_000).map(|_| (0.1 * noise()) as f32).collect();
    let clicks: Vec<f32> = (0..160_000)
        .map(|n| (0.5 * noise() * (-f64::from(n % 2_000) / 60.0).exp()) as f32)
        .collect();
    let hum: Vec<f32> =
        (0..160_000).map(|n| (0.3 * (TAU * 50.0 * f64::from(n) / 16_000.0).sin()) as f32).collect();
    for (name, sound) in
        [("hiss", hiss), ("clicks", clicks), ("hum", hum), ("silence", vec![0.0; 160_000])]
    {
        let likeliest = probabilities(&mut published(), &sound).into_iter().fold(0.0, f32::max);
        assert!(likeliest < 0.35, "{name}: {likeliest}");
    }
}
