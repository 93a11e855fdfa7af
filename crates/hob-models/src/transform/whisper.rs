//! Stored form of a transcription model: `model.bin`, a ggml file of whisper.cpp, and `silero_vad.onnx`, which finds speech.
//! A published ggml file is stored unchanged; a model in CTranslate2's format is converted to one.

use std::fs::File;
use std::path::Path;

use super::{RawFiles, Transform, TransformError, Transformed};
use crate::Sha256;
use crate::catalog::Entry;
use crate::disk::DiskError;
use crate::progress::Watch;
use crate::whisper::{
    CTRANSLATE2_MODEL, CTRANSLATE2_VOCABULARY, ConvertError, GGML, VAD, WhisperHeader, convert,
};

/// Increases with every change of the stored form.
const TRANSFORM_VERSION: u32 = 1;

/// Name of the ggml file in the stored form. Silero VAD keeps its name.
pub(crate) const WEIGHTS_FILE: &str = "model.bin";

/// The transformation of a transcription model.
#[derive(Clone, Copy, Debug, Default)]
pub struct WhisperTransform {
    /// Checksum of the published ggml file, which a conversion must have too.
    published: Option<Sha256>,
}

impl WhisperTransform {
    /// With the checksum that the entry pins for the ggml file.
    pub fn of(entry: &Entry) -> WhisperTransform {
        let sources = entry.parts.iter().flat_map(|part| &part.sources);
        let mut files = sources.flat_map(|source| &source.files);
        let published = files.find(|file| file.path == GGML).and_then(|file| file.pin.sha256);
        WhisperTransform { published }
    }

    fn converted(self, raw: &RawFiles, to: &Path, watch: &mut Watch<'_>) -> Transformed {
        let path = raw.path(CTRANSLATE2_MODEL)?;
        let model = File::open(&path).map_err(DiskError::at(&path))?;
        let vocabulary = String::from_utf8(raw.read(CTRANSLATE2_VOCABULARY)?)
            .map_err(|error| TransformError::refused(CTRANSLATE2_VOCABULARY, error))?;
        let sum = convert(model, &vocabulary, to, watch).map_err(|error| match error {
            ConvertError::Model(error) => TransformError::refused(CTRANSLATE2_MODEL, error),
            ConvertError::Disk(error) => error.into(),
            ConvertError::Cancelled(cancelled) => cancelled.into(),
        })?;
        match self.published {
            Some(published) if published != sum => {
                let detail = format!(
                    "its conversion has SHA-256 {sum} and must have that of the published file, {published}"
                );
                Err(TransformError::refused(CTRANSLATE2_MODEL, detail))
            }
            _ => Ok(()),
        }
    }
}

impl Transform for WhisperTransform {
    fn version(&self) -> u32 {
        TRANSFORM_VERSION
    }

    fn apply(&self, raw: &RawFiles, out: &Path, watch: &mut Watch<'_>) -> Transformed {
        raw.place(VAD, &out.join(VAD))?;
        let weights = out.join(WEIGHTS_FILE);
        match raw.paths().any(|path| path == GGML) {
            true => raw.place(GGML, &weights)?,
            false => self.converted(raw, &weights, watch)?,
        }
        let header = WhisperHeader::read(&weights);
        header.map(drop).map_err(|error| TransformError::refused(WEIGHTS_FILE, error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::apply_to;
    use super::*;
    use crate::whisper::tiny_model::{DIMS, VOCABULARY, ctranslate2};

    fn apply(files: &[(&str, &[u8])], out: &Path, published: Option<Sha256>) -> Transformed {
        apply_to(&WhisperTransform { published }, files, out)
    }

    #[test]
    fn both_forms_of_a_model_are_stored_as_the_same_file() {
        let model = ctranslate2(&DIMS);
        let vad = (VAD, &b"a graph"[..]);
        let published_as_ctranslate2 =
            [(CTRANSLATE2_MODEL, &model[..]), (CTRANSLATE2_VOCABULARY, VOCABULARY.as_bytes()), vad];
        let out = tempfile::tempdir().expect("a folder");
        assert_eq!(apply(&published_as_ctranslate2, out.path(), None), Ok(()));
        let ggml = std::fs::read(out.path().join(WEIGHTS_FILE)).expect("stored");
        assert_eq!(std::fs::read(out.path().join(VAD)).expect("stored"), b"a graph");

        let out = tempfile::tempdir().expect("a folder");
        assert_eq!(apply(&[(GGML, &ggml), vad], out.path(), None), Ok(()));
        assert_eq!(std::fs::read(out.path().join(WEIGHTS_FILE)).expect("stored"), ggml);

        let (right, other) = (Sha256::of(&ggml), Sha256::of(b"another file"));
        let out = tempfile::tempdir().expect("a folder");
        assert_eq!(apply(&published_as_ctranslate2, out.path(), Some(right)), Ok(()));
        let out = tempfile::tempdir().expect("a folder");
        let differs = apply(&published_as_ctranslate2, out.path(), Some(other));
        let differs = differs.expect_err("another checksum").to_string();
        assert!(
            differs.contains(&right.to_string()) && differs.contains(&other.to_string()),
            "{differs}"
        );
    }

    #[test]
    fn a_file_that_the_engine_would_not_load_is_refused() {
        let out = tempfile::tempdir().expect("a folder");
        let files = [(GGML, &b"no model at all"[..]), (VAD, b"a graph")];
        let refused = apply(&files, out.path(), None).expect_err("refused").to_string();
        assert!(refused.contains(WEIGHTS_FILE) && refused.contains("whisper.cpp"), "{refused}");
        let out = tempfile::tempdir().expect("a folder");
        let no_vad = TransformError::FileMissing { file: VAD.to_owned() };
        assert_eq!(apply(&[(GGML, b"lmgg")], out.path(), None), Err(no_vad));
    }
}
