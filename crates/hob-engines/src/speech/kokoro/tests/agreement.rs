//! rten against ONNX Runtime on the same weights, tensor by tensor. No bound rests on one
//! processor: the noise of 8-bit multiplications is measured separately, see
//! `docs/decisions/0002-the-kokoro-front-computes-in-floats.md`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hob_core::Speed;

use super::{kokoro, stored};
use crate::speech::distance::log_mel_db;
use crate::speech::kokoro::contours::Contours;
use crate::speech::kokoro::statistics::RunningStatistics;
use crate::speech::kokoro::{Kokoro, files};
use crate::test_home::setting;

const CASES: [(&str, &str, &str); 5] = [
    ("greeting", "af_heart", "həlˈO wˈɜɹld."),
    ("yes", "am_adam", "jˈɛs, həlˈO."),
    ("fox", "bm_fable", "ðə kwˈɪk bɹˈWn fˈɑks ʤˈʌmps ˌOvəɹ ðə lˈAzi dˈɔɡ, ænd ðə nˈIt wəz kˈOld."),
    ("well", "af_bella", "ɪts ˈizi tə tˈɛl ðə dˈɛpθ əv ə wˈɛl."),
    (
        "house",
        "af_heart",
        "ɪn ðə bəɡˈɪnɪŋ ðɛɹ wəz nˈʌθɪŋ bˌʌt ə smˈɔl hˈWs ˌɑn ðə hˈɪl, ænd ɪn ðæt hˈWs lˈɪvd ən ˈOld \
         mˈæn hˌu hæd nˈɛvəɹ sˈin ðə sˈi; ˈɛvəɹi mˈɔɹnɪŋ hi wʊd lˈʊk tuwˈɔɹdz ðə wˈɛst.",
    ),
];

/// Two float engines differ by the order of additions, through all layers of the front.
const FLOATS_APART: f32 = 1e-3;

/// How much further from the floats than ONNX Runtime's int8 rten's may be, as a factor of the distance in dB.
const NOISE_RATIO: f32 = 2.0;

/// Samples also differ by the phases of silent bins, which are rounding noise in every engine and are
/// not heard. So this bound is coarse: it finds a wave that is turned or shifted.
const CORRELATION_MIN: f32 = 0.85;

/// The oracle's tensors for one case.
struct Reference {
    folder: PathBuf,
}

impl Reference {
    fn read(&self, tensor: &str) -> Vec<f32> {
        let bytes = fs::read(self.folder.join(format!("{tensor}.f32"))).expect("the oracle wrote");
        bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
    }

    fn durations(&self) -> Vec<usize> {
        self.read("durations").iter().map(|frames| *frames as usize).collect()
    }

    fn contours(&self) -> Contours {
        let [features, pitch, energy, durations] =
            ["features", "pitch", "energy", "durations"].map(|tensor| self.read(tensor));
        Contours::new(features, pitch, energy, &durations).expect("the oracle's shapes fit")
    }
}

fn ask_oracle(out: &Path) {
    let oracle = setting("HOB_ORACLE").join("bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/oracle.py");
    let mut child = Command::new(&oracle)
        .arg(script)
        .arg(published())
        .arg(stored().join(files::VOCABULARY))
        .arg(stored().join(files::VOICES))
        .arg(out)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}: run `scripts/bootstrap --test`", oracle.display()));
    let mut stdin = child.stdin.take().expect("piped");
    for (case, voice, phonemes) in CASES {
        writeln!(stdin, "{case}\t{voice}\t{phonemes}").expect("the oracle listens");
    }
    drop(stdin);
    assert!(child.wait().expect("the oracle ends").success(), "the oracle failed");
}

/// The unmodified graph, which `hob pull` keeps.
fn published() -> PathBuf {
    setting("HOB_TEST_HOME").join("downloads/kokoro/raw/model.onnx")
}

/// Root mean square of the difference, relative to the reference.
fn relative(reference: &[f32], other: &[f32]) -> f32 {
    assert_eq!(reference.len(), other.len());
    let difference: Vec<f32> = reference.iter().zip(other).map(|(a, b)| a - b).collect();
    level(&difference) / level(reference)
}

#[test]
fn rten_agrees_with_onnx_runtime_on_the_same_weights() {
    let out = tempfile::tempdir().expect("a temporary folder");
    ask_oracle(out.path());
    let mut kokoro = kokoro();
    for (case, voice, phonemes) in CASES {
        let reference = |kind| Reference { folder: out.path().join(format!("{kind}-{case}")) };
        let (int8, float) = (reference("int8"), reference("float"));
        front_agrees(&mut kokoro, (case, voice, phonemes), &float);
        vocoder_agrees(&mut kokoro, (case, voice, phonemes), &int8, &float);
    }
}

/// Both compute in floats, so what is left is the order of additions: every duration is the same,
/// and so is the melody, on every instruction set.
fn front_agrees(
    kokoro: &mut Kokoro,
    (case, voice, phonemes): (&str, &str, &str),
    float: &Reference,
) {
    let tokens = kokoro.tokens(phonemes).expect("phonemes");
    let style = kokoro.voices.style(voice, tokens.len() - 2).expect("a voice");
    let ours = kokoro.front.run(&tokens, &style, Speed::NORMAL).expect("the front runs");
    assert_eq!(ours.durations(), float.durations(), "{case}: durations");
    let all = ours.whole();
    for (tensor, ours) in
        [("features", &all.features), ("pitch", &all.pitch), ("energy", &all.energy)]
    {
        let apart = relative(&float.read(tensor), ours);
        println!("{case}: {} tokens, {tensor} {apart:.1e} apart", tokens.len());
        assert!(apart < FLOATS_APART, "{case}: {tensor} is {apart} apart");
    }
}

/// The vocoder alone, on the oracle's own contours. Its 8-bit multiplications round differently on
/// each instruction set and in each engine, so no bound on the distance of two of them holds
/// everywhere. What holds: rten's is about as near to the same weights in floats as ONNX Runtime's.
/// A graph with wrong convolution edges or wrong phases is further away.
fn vocoder_agrees(
    kokoro: &mut Kokoro,
    (case, voice, phonemes): (&str, &str, &str),
    int8: &Reference,
    float: &Reference,
) {
    let contours = float.contours();
    let style = kokoro.voices.style(voice, phonemes.chars().count()).expect("a voice");
    let window = contours.whole();
    assert!(phases_apart(&float.read("phases"), &window.phases) < 0.02, "{case}: phases");
    let own = RunningStatistics::empty(kokoro.vocoder.channels());
    let ours = kokoro.vocoder.run(&window, &style, &own).expect("the vocoder runs").samples;
    let (theirs, truth) = (int8.read("audio"), float.read("audio"));
    assert_eq!([ours.len(), theirs.len()], [truth.len(); 2], "{case}: samples");
    let distances = [&ours, &theirs].map(|samples| log_mel_db(samples, &truth));
    let same = [&ours, &theirs].map(|samples| correlation(samples, &truth));
    let louder = [&ours, &theirs].map(|samples| level(samples) / level(&truth));
    println!(
        "{case}: from floats, ours and theirs: log-mel {distances:.2?} dB, correlation \
         {same:.3?}, level {louder:.3?}; from each other {:.2} dB, {:.3}",
        log_mel_db(&ours, &theirs),
        correlation(&ours, &theirs),
    );
    let [distance, distance_max] = [distances[0], distances[1] * NOISE_RATIO];
    assert!(distance < distance_max, "{case}: {distance} dB, bound {distance_max}");
    assert!(same[0] > CORRELATION_MIN, "{case}: correlation {}", same[0]);
    assert!((0.95..1.05).contains(&(louder[0] / louder[1])), "{case}: level {louder:?}");
}

/// The largest difference of two phases, in cycles. Phases that are whole cycles apart count as equal.
/// ONNX Runtime adds up 32-bit floats and hob does not, so they drift apart by a hundredth of a cycle.
fn phases_apart(a: &[f32], b: &[f32]) -> f32 {
    let apart = |(a, b): (&f32, &f32)| {
        let cycles = (f64::from(*a) - f64::from(*b)) / std::f64::consts::TAU;
        (cycles - cycles.round()).abs() as f32
    };
    a.iter().zip(b).map(apart).fold(0.0, f32::max)
}

#[test]
fn the_models_vocabulary_is_the_readers_alphabet() {
    let mut known: Vec<char> = kokoro().vocabulary().collect();
    let mut alphabet: Vec<char> = hob_speech::ALPHABET.chars().collect();
    known.sort_unstable();
    alphabet.sort_unstable();
    assert_eq!(known, alphabet);
}

/// The cosine between two sounds as vectors of samples.
fn correlation(a: &[f32], b: &[f32]) -> f32 {
    let dot = |x: &[f32], y: &[f32]| -> f64 {
        x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) as f32
}

fn level(samples: &[f32]) -> f32 {
    (samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32).sqrt()
}
