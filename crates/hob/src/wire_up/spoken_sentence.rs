//! A sentence as a worker has spoken it, and what that cost.
//! Lines of the worker hold both, so they are apart from the worker itself.

use hob_engines::speech::distance::SpokenSound;
use hob_engines::speech::kokoro::SAMPLES_PER_FRAME;
use serde::{Deserialize, Serialize};

const MS_PER_FRAME: f64 = 25.0;

/// A sentence in the units in which a model speaks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpokenSentence {
    pub(crate) units: Vec<SpokenSound>,
    /// After each unit.
    pub(super) pauses_ms: Vec<u32>,
}

impl SpokenSentence {
    #[cfg(test)]
    pub(crate) fn of_one(unit: SpokenSound) -> SpokenSentence {
        SpokenSentence { units: vec![unit], pauses_ms: vec![0] }
    }

    /// The sound as a listener hears it.
    pub(crate) fn audible_samples(&self) -> Vec<f32> {
        let mut samples = Vec::new();
        for (at, (unit, pause_ms)) in self.units.iter().zip(&self.pauses_ms).enumerate() {
            samples.extend(&unit.heard);
            if at + 1 < self.units.len() {
                let frames = f64::from(*pause_ms) / MS_PER_FRAME;
                samples.extend(vec![0.0; (frames * SAMPLES_PER_FRAME as f64) as usize]);
            }
        }
        samples
    }
}

/// What speaking took, in a process that did nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpeechCost {
    pub(crate) load_ms: f64,
    /// Median over the sentences, from the phonemes to the first samples.
    pub(crate) first_sound_ms: f64,
    /// `None` on systems that do not report it.
    pub(crate) memory_bytes: Option<u64>,
}
