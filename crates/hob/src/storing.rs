//! What happens to a model once, when it is stored: its files are transformed by `hob-models`, and
//! then the engine measures what it needs of each voice. Here, because no other room knows both.

use std::fs;
use std::path::Path;

use hob_core::Voice;
use hob_engines::speech::kokoro::{Kokoro, KokoroOptions, files, voice_list};
use hob_models::{KokoroTransform, RawFiles, Task, Transform, TransformError, Watch};

/// Kokoro's stored form, and the statistics that each voice's utterances start from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreKokoro {
    pub(crate) threads: usize,
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
    /// A second or two of work for each voice that hob can read aloud; a new language comes with a
    /// new version of the transformation, which measures its voices too.
    fn calibrate(self, out: &Path, watch: &mut Watch<'_>) -> Result<(), TransformError> {
        let options = KokoroOptions { threads: self.threads };
        let mut kokoro = Kokoro::load(out, options).map_err(refused(files::VOCODER))?;
        let mut voices = voice_list(out).map_err(refused(files::VOICES))?;
        voices.retain(|voice| voice.language.is_spoken());
        let folder = out.join(files::STATISTICS);
        fs::create_dir(&folder).map_err(refused(files::STATISTICS))?;
        watch.begin(Task::Transforming, Some(voices.len() as u64));
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
