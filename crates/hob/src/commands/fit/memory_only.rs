//! `hob fit` for models of which only the memory is predicted: transcription models, and stored speech models.
//! A transcription model's memory follows from its header or its published dimensions, a speech model's from its weights.

use std::path::Path;

use hob_models::catalog::Purpose;
use hob_models::quantized_speech::speech_memory_bytes;
use hob_models::{WhisperError, WhisperHeader, WhisperMemory};
use serde::Serialize;

use crate::failure::{CliResult, Failure};
use crate::model_store::{ModelStore, WORKER_BYTES, transcription_bytes};

const MB: u64 = 1_000_000;

/// The memory that a model needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct MemoryFit {
    model: String,
    #[serde(flatten)]
    transcription: Option<TranscriptionParts>,
    needed_bytes: u64,
    available_bytes: u64,
    pub(super) fits: bool,
}

/// What the memory of a transcription model consists of, apart from its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TranscriptionParts {
    /// Weights, after 16-bit matrices were quantised to Q8_0.
    weights_bytes: u64,
    /// Caches and compute buffers of one transcription.
    stream_bytes: u64,
    /// Transcriptions at the same time.
    parallel: u32,
}

/// The memory of a model by any of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownMemory {
    Transcription(WhisperMemory),
    Speech { needed_bytes: u64 },
}

impl KnownMemory {
    /// `None` for chat models and unknown ones.
    ///
    /// # Errors
    /// A file of the model cannot be used, the model is not stored, or it is one whose memory hob does not predict.
    pub(super) fn of(asked: &str, store: &ModelStore) -> CliResult<Option<KnownMemory>> {
        if let Some(memory) = transcription(asked, store)? {
            return Ok(Some(KnownMemory::Transcription(memory)));
        }
        let needed_bytes = speech(asked, store)?;
        Ok(needed_bytes.map(|needed_bytes| KnownMemory::Speech { needed_bytes }))
    }
}

impl MemoryFit {
    pub(super) fn of(
        model: &str,
        memory: KnownMemory,
        parallel: u32,
        available_bytes: u64,
    ) -> MemoryFit {
        let (transcription, needed_bytes) = match memory {
            KnownMemory::Transcription(memory) => {
                let WhisperMemory { weights_bytes, stream_bytes } = memory;
                let parts = TranscriptionParts { weights_bytes, stream_bytes, parallel };
                (Some(parts), transcription_bytes(memory, parallel))
            }
            KnownMemory::Speech { needed_bytes } => (None, needed_bytes),
        };
        let (model, fits) = (model.to_owned(), needed_bytes <= available_bytes);
        MemoryFit { model, transcription, needed_bytes, available_bytes, fits }
    }

    pub(super) fn verdict_text(&self) -> String {
        let verdict = if self.fits { "fits" } else { "does not fit" };
        let (needed, free) = (self.needed_bytes.div_ceil(MB), self.available_bytes / MB);
        let text =
            format!("{} {verdict}: it needs {needed} MB, and {free} MB are free", self.model);
        let Some(TranscriptionParts { weights_bytes, stream_bytes, parallel }) = self.transcription
        else {
            return text;
        };
        let [weights, stream, worker] =
            [weights_bytes, stream_bytes, WORKER_BYTES].map(|bytes| bytes.div_ceil(MB));
        format!(
            "{text}\nweights {weights} MB, with 16-bit matrices in Q8_0; each transcription {stream} MB, \
             {parallel} at the same time; worker {worker} MB"
        )
    }
}

/// The memory of a transcription model: a file, a stored model, or one of the catalog.
fn transcription(asked: &str, store: &ModelStore) -> CliResult<Option<WhisperMemory>> {
    let path = Path::new(asked);
    if path.is_file() {
        return match WhisperHeader::read(path) {
            Ok(header) => Ok(Some(header.memory())),
            Err(WhisperError::NotGgml) => Ok(None),
            Err(error) => Err(Failure::usage(format!("{asked}: {error}"))),
        };
    }
    let stored = store.whisper_files(asked).ok();
    let header = stored.and_then(|files| WhisperHeader::read(&files.weights).ok());
    Ok(header.map(|header| header.memory()).or_else(|| store.whisper_memory(asked)))
}

/// The memory of a stored speech model.
fn speech(asked: &str, store: &ModelStore) -> CliResult<Option<u64>> {
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
        let failure = KnownMemory::of("kokoro", &store).expect_err("it is not stored");
        assert_eq!(failure.exit, Exit::ModelMissing);
        assert!(failure.sentence.contains("`hob pull kokoro` fetches it"), "{failure}");
        let failure = KnownMemory::of("smart-turn", &store).expect_err("no memory is predicted");
        assert!(failure.sentence.ends_with("smart-turn is of the kind turn-taking"), "{failure}");
        assert_eq!(KnownMemory::of("smollm2", &store), Ok(None));
        assert_eq!(KnownMemory::of("qwen3:8b", &store), Ok(None));
    }

    #[test]
    fn a_speech_model_fits_if_its_memory_is_free() {
        let memory = KnownMemory::Speech { needed_bytes: 397 * MB };
        let fit = MemoryFit::of("kokoro", memory, 1, 397 * MB);
        assert_eq!(fit.verdict_text(), "kokoro fits: it needs 397 MB, and 397 MB are free");
        let tight = MemoryFit::of("kokoro", memory, 1, 397 * MB - 1);
        assert!(tight.verdict_text().starts_with("kokoro does not fit: "), "{tight:?}");
    }

    #[test]
    fn more_transcriptions_need_more_memory() {
        let memory = WhisperMemory { weights_bytes: 82 * MB, stream_bytes: 172 * MB };
        let memory = KnownMemory::Transcription(memory);
        let one = MemoryFit::of("whisper-base", memory, 1, 300 * MB);
        assert!(one.fits);
        assert_eq!(
            one.verdict_text(),
            "whisper-base fits: it needs 284 MB, and 300 MB are free\nweights 82 MB, with 16-bit \
             matrices in Q8_0; each transcription 172 MB, 1 at the same time; worker 30 MB"
        );
        let two = MemoryFit::of("whisper-base", memory, 2, 300 * MB);
        assert!(
            two.verdict_text().starts_with("whisper-base does not fit: it needs 456 MB"),
            "{two:?}"
        );
    }
}
