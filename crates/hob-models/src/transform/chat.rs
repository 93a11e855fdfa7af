//! Stored form of a chat model: `model.gguf` as published, or its parts `model-00001-of-00003.gguf` …
//! Only hob's default model is changed. A file whose header cannot be read is never stored.

use std::path::Path;

use super::eight_bits::with_eight_bits;
use super::{RawFiles, Transform, TransformError, Transformed};
use crate::catalog::{Entry, SMOLLM2};
use crate::gguf::Gguf;
use crate::progress::Watch;

/// Increases with every change of the stored form.
const TRANSFORM_VERSION: u32 = 1;
const EIGHT_BITS_VERSION: u32 = 2;

/// Name of the file among the raw files and in the stored form.
pub(crate) const MODEL_FILE: &str = "model.gguf";

/// The transformation of a chat model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChatTransform {
    /// Q4_1 becomes Q8_0.
    has_eight_bits: bool,
}

impl ChatTransform {
    /// For a model of one file.
    pub const EIGHT_BITS: ChatTransform = ChatTransform { has_eight_bits: true };

    /// The default model is only published as Q4_1 where hob finds it. Other models stay as they are, because the user chose
    /// their quant. No other model can have the default model's name.
    pub fn of(entry: &Entry) -> ChatTransform {
        ChatTransform { has_eight_bits: entry.name == SMOLLM2 }
    }
}

impl Transform for ChatTransform {
    fn version(&self) -> u32 {
        if self.has_eight_bits { EIGHT_BITS_VERSION } else { TRANSFORM_VERSION }
    }

    fn apply(&self, raw: &RawFiles, out: &Path, watch: &mut Watch<'_>) -> Transformed {
        let files: Vec<&str> = raw.paths().collect();
        let first = files.first().copied().unwrap_or(MODEL_FILE);
        let refused = |error| TransformError::refused(first, error);
        let gguf = Gguf::open(&raw.path(first)?).map_err(refused)?;
        gguf.shape().map_err(refused)?;
        if self.has_eight_bits {
            let (from, to) = (raw.path(MODEL_FILE)?, out.join(MODEL_FILE));
            return with_eight_bits(&gguf, &from, &to, watch);
        }
        files.iter().try_for_each(|file| raw.place(file, &out.join(file)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::apply_to;
    use super::*;
    use crate::gguf::sample::SampleGguf;

    fn apply(transform: ChatTransform, file: &[u8], out: &Path) -> Transformed {
        apply_to(&transform, &[(MODEL_FILE, file)], out)
    }

    #[test]
    fn a_file_that_the_engine_would_load_is_stored_as_it_is() {
        let out = tempfile::tempdir().expect("a folder");
        let file = SampleGguf::llama().bytes();
        let stored = || std::fs::read(out.path().join(MODEL_FILE)).expect("stored");
        assert_eq!(apply(ChatTransform::default(), &file, out.path()), Ok(()));
        assert_eq!(stored(), file);
        // Its tensors are floats, so only the file type changes.
        assert_eq!(apply(ChatTransform::EIGHT_BITS, &file, out.path()), Ok(()));
        assert_eq!(stored().iter().zip(&file).filter(|(now, before)| now != before).count(), 1);
    }

    #[test]
    fn any_other_is_refused_and_nothing_is_stored() {
        let mut cut_short = SampleGguf::llama().bytes();
        cut_short.pop();
        let unknown = SampleGguf::llama().text("general.architecture", "lama").bytes();
        let cases = [
            (cut_short, "1 are missing"),
            (unknown, "the nearest are llama"),
            (vec![7; 9], "not a GGUF file"),
        ];
        for (file, expected) in cases {
            let out = tempfile::tempdir().expect("a folder");
            let refused = apply(ChatTransform::default(), &file, out.path())
                .expect_err("refused")
                .to_string();
            assert!(refused.contains(MODEL_FILE) && refused.contains(expected), "{refused}");
            assert_eq!(std::fs::read_dir(out.path()).expect("a folder").count(), 0);
        }
    }
}
