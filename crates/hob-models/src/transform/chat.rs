//! Stored form of a chat model: `model.gguf` as published, or its parts `model-00001-of-00003.gguf` …
//! Nothing is changed, but a file whose header cannot be read is never stored.

use std::path::Path;

use super::{RawFiles, Transform, TransformError};
use crate::gguf::Gguf;
use crate::progress::{PullStep, Watch};

/// Increases with every change of the stored form.
const TRANSFORM_VERSION: u32 = 1;

/// Name of the file among the raw files and in the stored form.
pub const MODEL_FILE: &str = "model.gguf";

/// The transformation of a chat model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChatTransform;

impl Transform for ChatTransform {
    fn version(&self) -> u32 {
        TRANSFORM_VERSION
    }

    fn apply(
        &self,
        raw: &RawFiles,
        out: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<(), TransformError> {
        watch.begin(PullStep::Transforming, None);
        let files: Vec<&str> = raw.paths().collect();
        let first = files.first().copied().unwrap_or(MODEL_FILE);
        let refused = |error| TransformError::refused(first, error);
        Gguf::open(&raw.path(first)?).and_then(|gguf| gguf.shape()).map_err(refused)?;
        files.iter().try_for_each(|file| raw.place(file, &out.join(file)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::gguf::sample::SampleGguf;

    fn apply(file: &[u8], out: &Path) -> Result<(), TransformError> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(MODEL_FILE), file).expect("a file");
        let raw = RawFiles::new(folder.path().to_path_buf(), vec![MODEL_FILE.to_owned()]);
        let cancel = AtomicBool::new(false);
        ChatTransform.apply(&raw, out, &mut Watch::new(&mut |_| {}, &cancel))
    }

    #[test]
    fn a_file_that_the_engine_would_load_is_stored_as_it_is() {
        let out = tempfile::tempdir().expect("a folder");
        let file = SampleGguf::llama().bytes();
        assert_eq!(apply(&file, out.path()), Ok(()));
        assert_eq!(std::fs::read(out.path().join(MODEL_FILE)).expect("stored"), file);
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
            let refused = apply(&file, out.path()).expect_err("refused").to_string();
            assert!(refused.contains(MODEL_FILE) && refused.contains(expected), "{refused}");
            assert_eq!(std::fs::read_dir(out.path()).expect("a folder").count(), 0);
        }
    }
}
