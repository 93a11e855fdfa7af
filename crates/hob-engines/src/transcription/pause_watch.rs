//! Listens to live sound that arrives while the engine computes, so that a pass that a pause makes useless ends at once.
//! It hears with a copy of the recording's voice detector, because the recording reads the sound only after the pass.

use hob_core::VoiceDetector;

use super::parts::{PAUSE_MAX, SPEECH_MIN};
use super::vad::FRAME_SAMPLES;

/// Silence after which the speaker may have finished: 64 ms. The part is heard once more, and if no speech follows, this
/// is its text. A longer silence ends the part. It is shorter than the pause after which a conversation asks for the text,
/// by the time of a pass. A shorter one is often inside of a word, where sound stops before a "t" or a "k".
pub(super) const PAUSE_FRAMES: u64 = 2;

/// Finds the pause that follows the speech of an unfinished part.
#[derive(Debug)]
pub(super) struct PauseWatch<V> {
    vad: V,
    /// Samples that do not fill a frame yet.
    rest: Vec<f32>,
    is_speech: bool,
    /// Speech was heard, so a pause after it is new.
    has_speech: bool,
    silent_frames: u64,
    has_found: bool,
    /// Orders of the worker's queue that were heard.
    pub(super) orders_heard: usize,
}

impl<V: VoiceDetector> PauseWatch<V> {
    /// `vad` has heard all sound but `rest`. With `is_speech` the sound so far ends in speech, otherwise in a pause that
    /// is known.
    pub(super) fn new(vad: V, rest: Vec<f32>, is_speech: bool) -> PauseWatch<V> {
        PauseWatch {
            vad,
            rest,
            is_speech,
            has_speech: is_speech,
            silent_frames: 0,
            has_found: false,
            orders_heard: 0,
        }
    }

    /// Hears the sound that follows. After a pause it need not listen any more.
    pub(super) fn hear(&mut self, samples: &[f32]) {
        if self.has_found {
            return;
        }
        self.rest.extend_from_slice(samples);
        let (frames, _) = self.rest.as_chunks::<FRAME_SAMPLES>();
        let used = frames.len() * FRAME_SAMPLES;
        for frame in frames {
            let probability = self.vad.probability(frame);
            self.is_speech =
                probability >= SPEECH_MIN || self.is_speech && probability >= PAUSE_MAX;
            self.has_speech |= self.is_speech;
            self.silent_frames = if self.is_speech { 0 } else { self.silent_frames + 1 };
            self.has_found |= self.has_speech && self.silent_frames >= PAUSE_FRAMES;
        }
        self.rest.drain(..used);
    }

    /// Whether there was such a pause. Later speech does not change this.
    pub(super) fn has_found(&self) -> bool {
        self.has_found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first sample is the probability.
    #[derive(Debug)]
    struct First;

    impl VoiceDetector for First {
        fn probability(&mut self, frame: &[f32]) -> f32 {
            frame[0]
        }

        fn reset(&mut self) {}
    }

    /// Whether frames with these probabilities contain a new pause.
    fn found(is_speech: bool, probabilities: &[f32]) -> bool {
        let mut watch = PauseWatch::new(First, Vec::new(), is_speech);
        for probability in probabilities {
            watch.hear(&[*probability; FRAME_SAMPLES]);
        }
        watch.has_found()
    }

    #[test]
    fn a_pause_follows_speech() {
        let pause = vec![0.1; PAUSE_FRAMES as usize];
        let after = |before: &[f32]| [before, &pause[..]].concat();
        for (is_speech, probabilities, expected) in [
            (true, vec![], false),
            (true, pause[1..].to_vec(), false),
            (true, pause.clone(), true),
            // What was found stays found.
            (true, after(&[0.9]).into_iter().chain([0.9, 0.9]).collect(), true),
            // Between the thresholds, a frame continues what was before.
            (true, after(&[0.4]), true),
            (true, vec![0.4; 9], false),
            // A pause that is known becomes no second one, until there is speech.
            (false, vec![0.1; 9], false),
            (false, vec![0.4; 9], false),
            (false, after(&[0.1, 0.6]), true),
        ] {
            assert_eq!(found(is_speech, &probabilities), expected, "{is_speech} {probabilities:?}");
        }
    }

    #[test]
    fn where_the_sound_is_cut_does_not_matter() {
        let sound = vec![0.0; PAUSE_FRAMES as usize * FRAME_SAMPLES];
        for length in [1, 160, FRAME_SAMPLES, 1000] {
            let (before, arriving) = sound.split_at(100);
            let mut watch = PauseWatch::new(First, before.to_vec(), true);
            let (last, first) = arriving.split_last().expect("samples");
            first.chunks(length).for_each(|piece| watch.hear(piece));
            assert!(!watch.has_found(), "{length}");
            watch.hear(&[*last]);
            assert!(watch.has_found(), "{length}");
        }
    }
}
