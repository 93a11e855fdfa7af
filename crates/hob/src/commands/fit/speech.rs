//! `hob fit` for stored speech models: their memory on this machine, from the weights as the engine has them.
//! Their speed is not predicted.

use std::path::Path;

use hob_models::catalog::Purpose;
use hob_models::quantized_speech::speech_memory_bytes;
use serde::Serialize;

use crate::failure::{CliResult, Failure};
use crate::model_store::ModelStore;

const MB: u64 = 1_000_000;

/// The memory that a speech model needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct SpeechFit {
    model: String,
    needed_bytes: u64,
    available_bytes: u64,
    pub(super) fits: bool,
}

impl SpeechFit {
    pub(super) fn of(model: &str, needed_bytes: u64, available_bytes: u64) -> SpeechFit {
        let (model, fits) = (model.to_owned(), needed_bytes <= available_bytes);
        SpeechFit { model, needed_bytes, available_bytes, fits }
    }

    pub(super) fn verdict_text(&self) -> String {
        let verdict = if self.fits { "fits" } else { "does not fit" };
        let (needed, free) = (self.needed_bytes.div_ceil(MB), self.available_bytes / MB);
        format!("{} {verdict}: it needs {needed} MB, and {free} MB are free", self.model)
    }
}

/// The memory of a stored speech model, by any of its names. `None` for other models.
///
/// # Errors
/// A file of the model cannot be read, the model is not stored, or it is one whose memory hob does not predict.
pub(super) fn memory(asked: &str, store: &ModelStore) -> CliResult<Option<u64>> {
    if let Some(stored) = store.stored_speech(asked) {
        return speech_memory_bytes(&stored.folder).map(Some).map_err(Failure::model_missing);
    }
    match store.catalog_purpose(asked).filter(|_| !Path::new(asked).exists()) {
        Some(Purpose::Speech) => store.speech_named(asked).map(|_| None),
        Some(purpose @ (Purpose::TurnTaking | Purpose::Dictionary)) => {
            Err(Failure::usage(format!(
                "hob predicts the memory of chat, speech and transcription models; {asked} is of the kind {purpose}"
            )))
        }
        Some(Purpose::Chat | Purpose::Transcription) | None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn a_model_that_is_not_stored_is_not_said_to_be_unknown() {
        let home = tempfile::tempdir().expect("a folder");
        let store = ModelStore::in_home(home.path());
        let failure = memory("kokoro", &store).expect_err("it is not stored");
        assert_eq!(failure.exit, Exit::ModelMissing);
        assert!(failure.sentence.contains("`hob pull kokoro` fetches it"), "{failure}");
        let failure = memory("smart-turn", &store).expect_err("no memory is predicted");
        assert!(failure.sentence.ends_with("smart-turn is of the kind turn-taking"), "{failure}");
        assert_eq!(memory("smollm2", &store), Ok(None));
        assert_eq!(memory("qwen3:8b", &store), Ok(None));
    }

    #[test]
    fn a_speech_model_fits_if_its_memory_is_free() {
        let fit = SpeechFit::of("kokoro", 397 * MB, 397 * MB);
        assert_eq!(fit.verdict_text(), "kokoro fits: it needs 397 MB, and 397 MB are free");
        let tight = SpeechFit::of("kokoro", 397 * MB, 397 * MB - 1);
        assert!(tight.verdict_text().starts_with("kokoro does not fit: "), "{tight:?}");
    }
}
