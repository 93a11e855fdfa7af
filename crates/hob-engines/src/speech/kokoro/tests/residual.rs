//! hob's own kernels against the stored graph on rten, on the same weights.

use hob_core::Speed;
use hob_kernels::convolution::Convolver;
use hob_models::kokoro::split_vocoder;
use hob_models::onnx::Graph;

use super::{kokoro, stored};
use crate::speech::distance::log_mel_db;
use crate::speech::kokoro::files;
use crate::speech::kokoro::graphs::Vocoder;
use crate::speech::kokoro::statistics::{RunningStatistics, VoiceStatistics};

/// Both round values to 8 bits, but not with the same range. So they differ about as much as the graph differs from floats.
const APART_MAX_DB: f32 = 3.0;

#[test]
fn residual_blocks_compute_what_the_graph_computes() {
    let Some(kernels) = Convolver::detect() else {
        println!("this processor computes the whole graph with rten");
        return;
    };
    let load = |kernels| Vocoder::load_with(&stored(), 1, kernels).expect("the vocoder loads");
    let (graph, split) = (load(None), load(Some(kernels)));
    assert!(split.has_kernels() && !graph.has_kernels());
    let kokoro = kokoro();
    let tokens = kokoro.tokens("həlˈO wˈɜɹld.").expect("phonemes");
    let style = kokoro.voices.style("af_heart", tokens.len() - 2).expect("a voice");
    let contours = kokoro.front.run(&tokens, &style, Speed::NORMAL).expect("the front runs");
    let voice = VoiceStatistics::of("af_heart", graph.channels()).expect("a voice").running(0.0);
    let own = RunningStatistics::empty(graph.channels());
    let whole = contours.whole();
    let part = contours.cut(4..whole.frames - 4, 12..whole.frames - 12);
    for (name, window, carried) in [("whole", &whole, &own), ("window", &part, &voice)] {
        let run = |vocoder: &Vocoder| vocoder.run(window, &style, carried).expect("it runs");
        let (theirs, ours) = (run(&graph), run(&split));
        assert_eq!(ours.kept_from, theirs.kept_from, "{name}");
        assert_eq!(ours.samples.len(), theirs.samples.len(), "{name}");
        let apart = log_mel_db(&ours.samples, &theirs.samples);
        let means = distance(&theirs.mean, &ours.mean);
        let variances = distance(&theirs.variance, &ours.variance);
        println!("{name}: {apart:.2} dB apart, means {means:.1e}, variances {variances:.1e}");
        assert!(apart < APART_MAX_DB, "{name}: {apart} dB");
        // In a part, each step computes and measures only what the next one reads.
        if window.played.len() == window.frames {
            assert!(means < 0.05 && variances < 0.05, "{name}: {means}, {variances}");
        }
    }
}

fn vocoder() -> Graph {
    let bytes = std::fs::read(stored().join(files::VOCODER)).expect("a vocoder");
    Graph::from_bytes(bytes).expect("a graph")
}

/// Also on processors for which there are no kernels.
#[test]
fn the_stored_vocoder_is_one_that_the_kernels_compute() {
    assert_eq!(split_vocoder(&vocoder()).err(), None);
}

#[test]
fn a_vocoder_with_another_dilation_runs_on_the_graph_alone() {
    let Some(kernels) = Convolver::detect() else {
        println!("this processor computes the whole graph with rten");
        return;
    };
    let mut graph = vocoder();
    let weights = "/decoder/decoder/generator/resblocks.0/Mul_2_output_0_quantized";
    let [at] = graph.consumers(weights)[..] else { panic!("one convolution reads {weights}") };
    let dilations = graph.nodes_mut()[at].attribute_mut("dilations").expect("a dilation");
    dilations.ints = vec![2];
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(files::VOCODER), graph.encode()).expect("written");
    let vocoder = Vocoder::load_with(folder.path(), 1, Some(kernels)).expect("it loads");
    assert!(!vocoder.has_kernels());
    assert_eq!(vocoder.block_styles(&[0.0; 256]), Ok(Vec::new()), "the graph computes them");
}

/// Root mean square of the difference, relative to the first.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>();
    let apart = square(&mut a.iter().zip(b).map(|(a, b)| a - b));
    (apart / square(&mut a.iter().copied())).sqrt()
}
