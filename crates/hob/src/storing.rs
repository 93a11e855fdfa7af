//! The steps that run once when a model is stored: `hob-models` converts its files, and the engine measures each voice.
//! This file is in the binary, because `hob-models` runs no engine.

use std::fs;
use std::path::Path;

use hob_core::Voice;
use hob_engines::speech::kokoro::{Kokoro, KokoroOptions, files, voice_list};
use hob_models::catalog::{Entry, Purpose};
use hob_models::{
    ChatTransform, KokoroTransform, PullStep, RawFiles, Transform, TransformError,
    TurnTakingTransform, Watch, WhisperTransform,
};

/// The steps for a model of the catalog, or one that was found elsewhere.
pub(crate) fn transform_for(entry: &Entry, threads: usize) -> Box<dyn Transform> {
    match entry.purpose {
        Purpose::Speech => Box::new(StoreKokoro { threads }),
        Purpose::Chat => Box::new(ChatTransform),
        Purpose::Transcription => Box::new(WhisperTransform::of(entry)),
        Purpose::TurnTaking => Box::new(TurnTakingTransform),
    }
}

/// Stores Kokoro's converted form, and the initial statistics of each voice.
#[derive(Clone, Copy, Debug)]
struct StoreKokoro {
    threads: usize,
}

impl Transform for StoreKokoro {
    fn version(&self) -> u32 {
        KokoroTransform.version()
    }

    fn apply(
        &self,
        raw: &RawFiles,
        out: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<(), TransformError> {
        KokoroTransform.apply(raw, out, watch)?;
        self.calibrate(out, watch)
    }
}

impl StoreKokoro {
    /// Takes a second or two for each supported voice. A new language comes with a
    /// new version of the conversion, which measures its voices too.
    fn calibrate(self, out: &Path, watch: &mut Watch<'_>) -> Result<(), TransformError> {
        let options = KokoroOptions { threads: self.threads };
        let mut kokoro = Kokoro::load(out, options).map_err(refused(files::VOCODER))?;
        let mut voices = voice_list(out).map_err(refused(files::VOICES))?;
        voices.retain(|voice| voice.language.is_spoken());
        let folder = out.join(files::STATISTICS);
        fs::create_dir(&folder).map_err(refused(files::STATISTICS))?;
        watch.begin(PullStep::Transforming, Some(voices.len() as u64));
        for Voice { id, .. } in &voices {
            watch.check()?;
            let statistics = kokoro.calibrate(id).map_err(refused(id))?;
            let file = folder.join(format!("{id}.bin"));
            fs::write(file, statistics).map_err(refused(files::STATISTICS))?;
            watch.item_done(1);
        }
        Ok(())
    }
}

fn refused<E: ToString>(file: &str) -> impl Fn(E) -> TransformError {
    move |error| TransformError::Refused { file: file.to_owned(), detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use hob_models::Catalog;

    use super::*;

    #[test]
    fn each_purpose_is_stored_in_its_own_form() {
        let catalog = Catalog::builtin();
        let version = |name| transform_for(catalog.find(name).expect(name), 1).version();
        assert_eq!(version("kokoro"), KokoroTransform.version());
        assert_eq!(version("smollm2"), ChatTransform.version());
        assert_eq!(version("smart-turn"), TurnTakingTransform.version());
        assert_eq!(version("whisper-base"), WhisperTransform::default().version());
    }
}
