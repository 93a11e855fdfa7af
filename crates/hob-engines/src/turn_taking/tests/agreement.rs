//! Compares Smart Turn on `rten` with ONNX Runtime on the published weights, with features that numpy computed.
//! Kokoro speaks the sentences. The test cuts them at different places, with pauses and without.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::SMART_TURN;
use super::speaker::{Cut, Recording, record};
use crate::test_home::setting;

/// Texts with their voices. Another test speaks the first two as well, so they are computed once.
const TEXTS: [(&str, &str); 3] = [
    ("af_heart", "I would like to book a table for |two people tomorrow evening."),
    ("bf_emma", "Can you tell me, uhm, |how far it is to the station?"),
    ("am_michael", "Yes."),
];

/// Maximum samples that Smart Turn reads: 8 s.
const COUNTED: usize = 128_000;
/// Maximum difference of a feature: hob's Fourier transform computes in 32 bits and numpy's in 64.
const FEATURES_APART: f32 = 5e-3;
/// Maximum difference of a probability: both compute in floats. The published model computes in rounded values, and differed
/// by 0.66 from the same model in floats.
const PROBABILITIES_APART: f32 = 0.005;

/// The probabilities of ONNX Runtime for each file of samples: in floats, and in the published model's rounded values.
fn oracle(files: &[PathBuf]) -> Vec<[f32; 2]> {
    let program = setting("HOB_ORACLE").join("bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/smart_turn.py");
    let mut child = Command::new(&program)
        .arg(script)
        .arg(setting("HOB_TEST_HOME").join("downloads/smart-turn/raw/smart_turn.onnx"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}: run `scripts/bootstrap --test`", program.display()));
    let mut stdin = child.stdin.take().expect("piped");
    files
        .iter()
        .for_each(|file| writeln!(stdin, "{}", file.display()).expect("the oracle listens"));
    drop(stdin);
    let output = child.wait_with_output().expect("the oracle ends");
    assert!(output.status.success(), "the oracle failed");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let numbers = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse().expect("a number"));
        [numbers.next().expect("floats"), numbers.next().expect("8 bits")]
    };
    text.lines().map(numbers).collect()
}

#[test]
fn rten_judges_as_onnx_runtime_does() {
    let mut sounds = vec![vec![0.0; 16_000], vec![0.1; 500]];
    let spoken = TEXTS.map(|(voice, text)| {
        let Recording { mut samples, speech_end_s } = record(text, voice, 0.6, Cut::InNextWord);
        samples.truncate(((speech_end_s + 0.2) * 16_000.0) as usize);
        samples
    });
    // Longer than 8 s, without more work for the voice.
    let long = spoken.concat();
    assert!(long.len() > COUNTED, "{} samples", long.len());
    for whole in spoken.iter().chain([&long]) {
        let end = whole.len();
        sounds.extend([end, end * 2 / 3, end / 2].map(|end| whole[..end].to_vec()));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let write = |(number, sound): (usize, &Vec<f32>)| {
        let path = folder.path().join(format!("{number}.f32"));
        let bytes: Vec<u8> = sound.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        fs::write(&path, bytes).expect("written");
        path
    };
    let files: Vec<PathBuf> = sounds.iter().enumerate().map(write).collect();
    let expected = oracle(&files);
    assert_eq!(expected.len(), sounds.len());
    for ((sound, file), expected) in sounds.iter().zip(&files).zip(expected) {
        let [expected, rounded] = expected;
        let features = fs::read(file.with_extension("features")).expect("the oracle wrote");
        let features = features.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word));
        let ours = SMART_TURN.features(sound);
        assert_eq!(ours.len(), features.len());
        let apart = ours.iter().zip(features).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let found = SMART_TURN.probability(sound).expect("judged");
        println!(
            "{} samples: {found:.4}, ONNX Runtime {expected:.4}, rounded {rounded:.4}; \
             features {apart:.1e} apart",
            sound.len()
        );
        assert!(apart < FEATURES_APART, "{}: features {apart} apart", file.display());
        assert!((found - expected).abs() <= PROBABILITIES_APART, "{found} and {expected}");
    }
}
