//! rten against ONNX Runtime on the unmodified model, tensor by tensor.
//! The bounds come from the model's own noise, see `docs/decisions/0002-int8-is-chaotic.md`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hob_core::Speed;

use super::distance::{correlation, level, log_mel_db};
use super::{kokoro, setting, stored};
use crate::speech::kokoro::contours::Contours;
use crate::speech::kokoro::statistics::Running;
use crate::speech::kokoro::{Kokoro, files};

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

fn tokens_apart(a: &[usize], b: &[usize]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

#[test]
fn rten_agrees_with_onnx_runtime_on_the_unmodified_model() {
    let out = tempfile::tempdir().expect("a temporary folder");
    ask_oracle(out.path());
    let mut kokoro = kokoro();
    for (case, voice, phonemes) in CASES {
        let reference = |kind| Reference { folder: out.path().join(format!("{kind}-{case}")) };
        let (int8, float) = (reference("int8"), reference("float"));
        front_agrees(&mut kokoro, (case, voice, phonemes), &int8, &float);
        vocoder_agrees(&mut kokoro, (case, voice, phonemes), &int8);
    }
}

/// Up to 15 tokens nothing in the text encoder falls on a rounding edge and both engines compute
/// the same; beyond, int8 noise decides. Then neither is right: rten must be as near to the same
/// weights in floats as ONNX Runtime is, within a tenth of the tokens (one frame each).
fn front_agrees(
    kokoro: &mut Kokoro,
    (case, voice, phonemes): (&str, &str, &str),
    int8: &Reference,
    float: &Reference,
) {
    let tokens = kokoro.tokens(phonemes).expect("phonemes");
    let style = kokoro.voices.style(voice, tokens.len() - 2).expect("a voice");
    let ours = kokoro.front.run(&tokens, &style, Speed::NORMAL).expect("the front runs");
    let (theirs, truth) = (int8.durations(), float.durations());
    let ours_off = tokens_apart(ours.durations(), &truth);
    let theirs_off = tokens_apart(&theirs, &truth);
    println!(
        "{case}: {} tokens, off by a frame: ours {ours_off}, theirs {theirs_off}",
        truth.len()
    );
    assert!(ours_off <= theirs_off + truth.len() / 10, "{case}: {ours_off} tokens off");
    for (ours, truth) in ours.durations().iter().zip(&truth) {
        assert!(ours.abs_diff(*truth) <= 2, "{case}: a token of {truth} frames became {ours}");
    }
    if tokens.len() <= 15 {
        assert_eq!(ours.durations(), theirs, "{case}");
        let all = ours.whole();
        for (tensor, ours) in
            [("features", &all.features), ("pitch", &all.pitch), ("energy", &all.energy)]
        {
            let apart = relative(&int8.read(tensor), ours);
            println!("{case}: {tensor} {apart:.5}");
            assert!(apart < 0.01, "{case}: {tensor} is {apart} apart");
        }
    }
}

/// The vocoder alone, on the oracle's own contours. Where nothing is voiced the source's phases
/// are rounding noise in every engine, so samples agree closely but not exactly. A graph with wrong
/// convolution edges or wrong phases fails every one of these bounds.
fn vocoder_agrees(
    kokoro: &mut Kokoro,
    (case, voice, phonemes): (&str, &str, &str),
    int8: &Reference,
) {
    let contours = int8.contours();
    let style = kokoro.voices.style(voice, phonemes.chars().count()).expect("a voice");
    let window = contours.whole();
    assert!(phases_apart(&int8.read("phases"), &window.phases) < 0.02, "{case}: phases");
    let own = Running::empty(kokoro.vocoder.channels());
    let ours = kokoro.vocoder.run(&window, &style, &own).expect("the vocoder runs").samples;
    let theirs = int8.read("audio");
    assert_eq!(ours.len(), theirs.len(), "{case}: samples");
    let (same, distance) = (correlation(&ours, &theirs), log_mel_db(&ours, &theirs));
    let louder = level(&ours) / level(&theirs);
    println!("{case}: correlation {same:.3}, log-mel {distance:.2} dB, level {louder:.3}");
    assert!(same > 0.9, "{case}: correlation {same}");
    assert!(distance < 2.5, "{case}: {distance} dB");
    assert!((0.95..1.05).contains(&louder), "{case}: level {louder}");
}

/// The largest difference of two phases, in turns, whole turns apart being the same. ONNX Runtime
/// adds up 32-bit floats; hob does not, so they drift apart by a hundredth of a turn.
fn phases_apart(a: &[f32], b: &[f32]) -> f32 {
    let apart = |(a, b): (&f32, &f32)| {
        let turns = (f64::from(*a) - f64::from(*b)) / std::f64::consts::TAU;
        (turns - turns.round()).abs() as f32
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
