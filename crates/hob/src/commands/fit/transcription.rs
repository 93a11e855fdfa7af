//! `hob fit` for transcription models: their memory on this machine, from the header or the published dimensions.
//! Their speed is not predicted.

use std::path::Path;

use hob_models::{WhisperError, WhisperHeader, WhisperMemory};
use serde::Serialize;

use crate::failure::{CliResult, Failure};
use crate::model_store::{ModelStore, WORKER_BYTES, transcription_bytes};

const MB: u64 = 1_000_000;

/// The memory that a transcription model needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TranscriptionFit {
    model: String,
    /// Weights, after 16-bit matrices were quantised to Q8_0.
    weights_bytes: u64,
    /// Caches and compute buffers of one transcription.
    stream_bytes: u64,
    /// Transcriptions at the same time.
    parallel: u32,
    needed_bytes: u64,
    available_bytes: u64,
    pub(super) fits: bool,
}

impl TranscriptionFit {
    pub(super) fn of(
        model: &str,
        memory: WhisperMemory,
        parallel: u32,
        available_bytes: u64,
    ) -> TranscriptionFit {
        let WhisperMemory { weights_bytes, stream_bytes } = memory;
        let needed_bytes = transcription_bytes(memory, parallel);
        let (model, fits) = (model.to_owned(), needed_bytes <= available_bytes);
        TranscriptionFit {
            model,
            weights_bytes,
            stream_bytes,
            parallel,
            needed_bytes,
            available_bytes,
            fits,
        }
    }

    pub(super) fn verdict_text(&self) -> String {
        let megabytes = |bytes: u64| bytes.div_ceil(MB);
        let verdict = if self.fits { "fits" } else { "does not fit" };
        format!(
            "{} {verdict}: it needs {} MB, and {} MB are free\n\
             weights {} MB, with 16-bit matrices in Q8_0; each transcription {} MB, {} at the same time; \
             worker {} MB",
            self.model,
            megabytes(self.needed_bytes),
            self.available_bytes / MB,
            megabytes(self.weights_bytes),
            megabytes(self.stream_bytes),
            self.parallel,
            megabytes(WORKER_BYTES),
        )
    }
}

/// The memory of a transcription model: a file, a stored model, or one of the catalog. `None` for other models.
///
/// # Errors
/// A ggml file that hob cannot use.
pub(super) fn memory(asked: &str, store: &ModelStore) -> CliResult<Option<WhisperMemory>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_transcriptions_need_more_memory() {
        let memory = WhisperMemory { weights_bytes: 82 * MB, stream_bytes: 172 * MB };
        let one = TranscriptionFit::of("whisper-base", memory, 1, 300 * MB);
        assert!(one.fits);
        assert_eq!(
            one.verdict_text(),
            "whisper-base fits: it needs 284 MB, and 300 MB are free\nweights 82 MB, with 16-bit \
             matrices in Q8_0; each transcription 172 MB, 1 at the same time; worker 30 MB"
        );
        let two = TranscriptionFit::of("whisper-base", memory, 2, 300 * MB);
        assert!(
            two.verdict_text().starts_with("whisper-base does not fit: it needs 456 MB"),
            "{two:?}"
        );
    }
}
