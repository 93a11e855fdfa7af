//! `hob fit` for stored speech models: their memory on this machine, from the weights as the engine has them.
//! Their speed is not predicted.

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
/// A file of the model cannot be read.
pub(super) fn memory(asked: &str, store: &ModelStore) -> CliResult<Option<u64>> {
    let Some(stored) = store.stored_speech(asked) else { return Ok(None) };
    speech_memory_bytes(&stored.folder).map(Some).map_err(Failure::model_missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speech_model_fits_if_its_memory_is_free() {
        let fit = SpeechFit::of("kokoro", 397 * MB, 397 * MB);
        assert_eq!(fit.verdict_text(), "kokoro fits: it needs 397 MB, and 397 MB are free");
        let tight = SpeechFit::of("kokoro", 397 * MB, 397 * MB - 1);
        assert!(tight.verdict_text().starts_with("kokoro does not fit: "), "{tight:?}");
    }
}
