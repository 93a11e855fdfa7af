//! Finds the beginning, the pauses and the end of a turn in the probabilities of a voice detector.
//! It counts frames and knows nothing else: neither sound nor time of day.

use std::time::Duration;

use hob_core::{Sound, VOICE_FRAME_SAMPLES, silence_below};

const FRAME_MS: u64 = VOICE_FRAME_SAMPLES as u64 * 1_000 / Sound::RATE_HZ as u64;

const ONSET: Duration = Duration::from_millis(200);
/// Speech this long interrupts the assistant. A cough is shorter.
const BARGE_IN: Duration = Duration::from_millis(300);
/// Above this probability a frame is certainly a voice. The highest probability in 23 noises was 0.72.
const SURE: f32 = 0.9;
/// Speech of [`SURE_ONSET`] with a frame above this probability begins a turn if the assistant is silent: a soft "Yes." of
/// 160 ms reached 0.87.
const LIKELY: f32 = 0.85;
/// Speech of this length begins a turn and interrupts the assistant, if its end is certain. People notice a delay of 200 ms.
const SURE_ONSET: Duration = Duration::from_millis(96);
/// The end that is certain. The first frame of a soft sound is less certain.
const SURE_END: Duration = Duration::from_millis(64);
/// After a silence this long the turn model is asked. Its answer is then there after [`PAUSE`].
const LULL: Duration = Duration::from_millis(130);
/// A silence this long may be the end of the turn.
const PAUSE: Duration = Duration::from_millis(200);
/// After a silence this long the turn model is asked again, because a long silence makes an end more likely.
const LONG_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointRules {
    pub(crate) threshold: f32,
    /// The silence that ends a turn.
    pub(crate) silence: Duration,
    /// Short speech that is likely a voice begins a turn, because it interrupts nothing.
    pub(crate) takes_short: bool,
}

/// What changed with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Speech probably began, at most [`Endpoint::onset_samples`] ago. If `is_sure`, it may interrupt.
    Onset {
        is_sure: bool,
    },
    /// Speech goes on, so it is not a cough.
    Confirmed,
    /// It was not speech.
    Faded,
    /// A silence that may become a pause.
    Lull,
    Pause,
    LongPause,
    Resume,
    End,
}

#[derive(Debug, Default)]
pub(crate) struct Endpoint {
    phase: Phase,
    speech_frames: u32,
    /// Frames in a row that are sure to be speech.
    sure_frames: u32,
    /// A frame of this speech was likely a voice.
    is_likely: bool,
    /// The first silent frame after the last speech, and the frames since then.
    silent_frames: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Quiet,
    /// Speech that is not confirmed.
    Tentative,
    Speaking,
    Paused,
}

impl Endpoint {
    pub(crate) fn hear(&mut self, probability: f32, rules: EndpointRules) -> Option<Step> {
        let is_speech = probability >= rules.threshold;
        let is_silence = probability < silence_below(rules.threshold);
        match self.phase {
            Phase::Quiet | Phase::Tentative => {
                let is_sure = probability >= SURE.max(rules.threshold);
                self.sure_frames = if is_sure { self.sure_frames + 1 } else { 0 };
                self.is_likely |= rules.takes_short && probability >= LIKELY.max(rules.threshold);
                self.before_speech(is_speech, is_silence)
            }
            Phase::Speaking | Phase::Paused => {
                self.count_silence(is_speech, is_silence);
                self.during_speech(rules.silence)
            }
        }
    }

    /// Ends the doubt about speech that has begun.
    pub(crate) fn confirm(&mut self) {
        if self.phase == Phase::Tentative {
            self.phase = Phase::Speaking;
        }
    }

    /// Samples of the speech that makes an onset.
    pub(crate) fn onset_samples() -> usize {
        frames(ONSET) as usize * VOICE_FRAME_SAMPLES
    }

    pub(crate) fn silence(&self) -> Duration {
        Duration::from_millis(FRAME_MS) * self.silent_frames
    }

    fn before_speech(&mut self, is_speech: bool, is_silence: bool) -> Option<Step> {
        if is_silence {
            let was_tentative = self.phase == Phase::Tentative;
            *self = Endpoint::default();
            return was_tentative.then_some(Step::Faded);
        }
        self.speech_frames += u32::from(is_speech || self.speech_frames > 0);
        let is_short = self.speech_frames < frames(SURE_ONSET);
        let is_sure = self.sure_frames >= frames(SURE_END) && !is_short;
        let has_begun = self.is_likely && !is_short || self.speech_frames >= frames(ONSET);
        if self.phase == Phase::Quiet && (is_sure || has_begun) {
            self.phase = Phase::Tentative;
            return Some(Step::Onset { is_sure });
        }
        let is_long = self.speech_frames >= frames(BARGE_IN);
        if self.phase == Phase::Tentative && (is_sure || is_long) {
            self.phase = Phase::Speaking;
            return Some(Step::Confirmed);
        }
        None
    }

    fn count_silence(&mut self, is_speech: bool, is_silence: bool) {
        if is_speech {
            self.silent_frames = 0;
        } else if is_silence || self.silent_frames > 0 {
            self.silent_frames += 1;
        }
    }

    fn during_speech(&mut self, silence: Duration) -> Option<Step> {
        if self.silent_frames >= frames(silence) {
            return Some(Step::End);
        }
        if self.phase == Phase::Speaking && self.silent_frames >= frames(PAUSE) {
            self.phase = Phase::Paused;
            return Some(Step::Pause);
        }
        if self.phase == Phase::Speaking && self.silent_frames == frames(LULL) {
            return Some(Step::Lull);
        }
        if self.phase == Phase::Paused && self.silent_frames == frames(LONG_PAUSE) {
            return Some(Step::LongPause);
        }
        if self.phase == Phase::Paused && self.silent_frames == 0 {
            self.phase = Phase::Speaking;
            return Some(Step::Resume);
        }
        None
    }
}

/// The nearest number of frames, at least one.
fn frames(time: Duration) -> u32 {
    let frames = (time.as_millis() + u128::from(FRAME_MS) / 2) / u128::from(FRAME_MS);
    u32::try_from(frames).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_word_begins_a_turn_but_does_not_interrupt() {
        let rules = |takes_short| EndpointRules {
            threshold: 0.5,
            silence: Duration::from_millis(256),
            takes_short,
        };
        let steps_of = |heard: &[f32], rules| {
            let mut endpoint = Endpoint::default();
            let silence = [0.1; 10];
            let heard = heard.iter().chain(&silence);
            heard.filter_map(|probability| endpoint.hear(*probability, rules)).collect::<Vec<_>>()
        };
        let steps = |heard: &[f32]| steps_of(heard, rules(true));
        let begun = Step::Onset { is_sure: false };
        // "Yes." and "Thanks." of Kokoro's voices, a noise, and a click.
        assert_eq!(steps(&[0.87, 0.83, 0.81, 0.82, 0.85, 0.39]), [begun, Step::Faded]);
        assert_eq!(steps(&[0.84, 0.86, 0.75, 0.57, 0.23]), [begun, Step::Faded]);
        assert_eq!(steps_of(&[0.84, 0.86, 0.75, 0.57, 0.23], rules(false)), []);
        assert_eq!(steps(&[0.72, 0.72, 0.72, 0.6, 0.55]), []);
        assert_eq!(steps(&[0.9, 0.6]), []);
        let sure = Step::Onset { is_sure: true };
        assert_eq!(steps(&[0.6, 0.95, 0.95])[0], sure);
    }

    #[test]
    fn a_turn_ends_although_its_threshold_leaves_little_room_for_silence() {
        let silence = Duration::from_millis(256);
        let rules = EndpointRules { threshold: 0.1, silence, takes_short: true };
        let mut endpoint = Endpoint::default();
        let heard = [0.5; 10].into_iter().chain([0.0; 8]);
        let steps: Vec<Step> =
            heard.filter_map(|probability| endpoint.hear(probability, rules)).collect();
        let begins = [Step::Onset { is_sure: false }, Step::Confirmed];
        assert_eq!(steps, [&begins[..], &[Step::Lull, Step::Pause, Step::End]].concat());
    }
}
