//! Stored form of the models of turn taking: `smart_turn.onnx`, which computes in floats, and `silero_vad.onnx` as published.
//! A file that is not such a graph is never stored.

use std::path::Path;

use super::{RawFiles, Transform, TransformError, Transformed, write};
use crate::progress::Watch;
use crate::turn_taking::{TURN, in_floats};
use crate::whisper::VAD;

/// Increases with every change of the stored form.
const TRANSFORM_VERSION: u32 = 1;

/// The transformation that `hob pull smart-turn` applies.
#[derive(Clone, Copy, Debug, Default)]
pub struct TurnTakingTransform;

impl Transform for TurnTakingTransform {
    fn version(&self) -> u32 {
        TRANSFORM_VERSION
    }

    fn apply(&self, raw: &RawFiles, out: &Path, _: &mut Watch<'_>) -> Transformed {
        let turn = in_floats(&raw.read(TURN)?);
        write(&out.join(TURN), &turn.map_err(|error| TransformError::refused(TURN, error))?)?;
        raw.place(VAD, &out.join(VAD))
    }
}

#[cfg(test)]
mod tests {
    use super::super::apply_to;
    use super::*;
    use crate::turn_taking::sample::graph;

    #[test]
    fn smart_turn_is_changed_and_the_vad_is_not() {
        let out = tempfile::tempdir().expect("a folder");
        assert_eq!(
            apply_to(&TurnTakingTransform, &[(TURN, &graph()), (VAD, b"a graph")], out.path()),
            Ok(())
        );
        let stored = |file| std::fs::read(out.path().join(file)).expect("stored");
        assert_eq!(Ok(stored(TURN)), in_floats(&graph()));
        assert_eq!(stored(VAD), b"a graph");
    }

    #[test]
    fn a_file_that_is_missing_or_no_graph_is_refused() {
        let out = tempfile::tempdir().expect("a folder");
        let missing = TransformError::FileMissing { file: VAD.to_owned() };
        assert_eq!(apply_to(&TurnTakingTransform, &[(TURN, &graph())], out.path()), Err(missing));
        let out = tempfile::tempdir().expect("a folder");
        let refused =
            apply_to(&TurnTakingTransform, &[(TURN, b"no graph"), (VAD, b"a graph")], out.path());
        assert!(matches!(refused, Err(TransformError::Refused { file, .. }) if file == TURN));
    }
}
