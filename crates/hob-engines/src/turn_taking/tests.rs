//! Tests on the real weights: are the probabilities those of ONNX Runtime, and are turns ended at the right place?
//! They need the models and the oracle that `make test` installs, and say so if these are missing.

mod agreement;
mod clips;
mod held_out;
mod sessions;
mod speaker;
mod turn_ends;

use std::sync::LazyLock;

use super::{SmartTurn, SmartTurnError};
use crate::test_home::stored;

static SMART_TURN: LazyLock<SmartTurn> = LazyLock::new(|| {
    // One thread, because another test computes at the same time.
    SmartTurn::load(&stored("smart-turn").join("smart_turn.onnx"), 1)
        .expect("the stored model loads")
});

#[test]
fn a_file_that_is_not_smart_turn_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("smart_turn.onnx");
    std::fs::write(&path, b"no graph at all").expect("written");
    let silero = stored("smart-turn").join("silero_vad.onnx");
    for file in [path, silero, folder.path().join("absent")] {
        let error = SmartTurn::load(&file, 1).expect_err("no Smart Turn");
        assert!(matches!(&error, SmartTurnError::Damaged { path, .. } if *path == file));
        assert!(error.to_string().ends_with("pull the model again with `hob pull smart-turn`"));
    }
}

#[test]
fn only_the_last_8_seconds_count() {
    let tone = |n: u32| (f64::from(n) * 0.05).sin() as f32 * 0.2;
    let end: Vec<f32> = (0..128_000).map(tone).collect();
    let longer = [vec![0.9; 50_000], end.clone()].concat();
    let judged = |sound: &[f32]| SMART_TURN.probability(sound).expect("judged");
    assert_eq!(judged(&longer).to_bits(), judged(&end).to_bits());
    let silence = judged(&[0.0; 1000]);
    assert!((0.0..=1.0).contains(&silence), "{silence}");
}
