//! The times of one turn, on the clock of its driver.
//! The parts add up to the whole exactly, because each begins where the one before ends.

use std::time::Instant;

use crate::interface::TurnStages;

/// Loudness from which a listener hears something: -40 dB.
const AUDIBLE_RMS: f32 = 0.01;
/// Frames of 10 ms that must be loud in a row.
const AUDIBLE_FRAMES: u64 = 5;
/// Sound before the first word that is quieter than this can be left out: -50 dB. The soft beginning of a word is louder.
const FAINT_RMS: f32 = 0.003;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnMarks {
    /// The end of the last frame before the silence.
    pub(crate) speech_end: Instant,
    pub(crate) turn_end: Instant,
    pub(crate) transcript: Option<Instant>,
    pub(crate) first_text: Option<Instant>,
    pub(crate) first_clause: Option<Instant>,
}

impl TurnMarks {
    pub(crate) fn new(speech_end: Instant, turn_end: Instant) -> TurnMarks {
        let (transcript, first_text, first_clause) = (None, None, None);
        TurnMarks { speech_end, turn_end, transcript, first_text, first_clause }
    }

    /// A mark that is missing, or earlier than the one before it, makes a part of no length.
    pub(crate) fn stages(&self, audible: Instant) -> TurnStages {
        let mut last = self.speech_end;
        let mut part = |mark: Option<Instant>| {
            let end = mark.map_or(last, |mark| mark.max(last));
            end.duration_since(std::mem::replace(&mut last, end))
        };
        TurnStages {
            endpoint: part(Some(self.turn_end)),
            transcript: part(self.transcript),
            first_text: part(self.first_text),
            first_clause: part(self.first_clause),
            first_sound: part(Some(audible)),
        }
    }
}

/// How many of the first `samples_max` samples can be left out because they are too faint, in whole frames of 10 ms.
pub(crate) fn faint_beginning(samples: &[f32], samples_max: usize, sample_rate_hz: u32) -> usize {
    let frame_samples = frame_samples(sample_rate_hz);
    let frames = samples[..samples.len().min(samples_max)].chunks_exact(frame_samples);
    frames.take_while(|frame| rms(frame) < FAINT_RMS).count() * frame_samples
}

fn frame_samples(sample_rate_hz: u32) -> usize {
    (sample_rate_hz / 100).max(1) as usize
}

fn rms(samples: &[f32]) -> f32 {
    let energy: f32 = samples.iter().map(|sample| sample * sample).sum();
    (energy / samples.len() as f32).sqrt()
}

/// Finds the first audible sample of an answer.
#[derive(Debug, Default)]
pub(crate) struct Audible {
    frame: Vec<f32>,
    frames: u64,
    loud: u64,
}

impl Audible {
    /// The position of the first audible sample, once.
    pub(crate) fn hear(&mut self, samples: &[f32], sample_rate_hz: u32) -> Option<u64> {
        let frame_samples = frame_samples(sample_rate_hz);
        for sample in samples {
            self.frame.push(*sample);
            if self.frame.len() < frame_samples {
                continue;
            }
            let is_loud = rms(&self.frame) > AUDIBLE_RMS;
            self.frame.clear();
            self.loud = if is_loud { self.loud + 1 } else { 0 };
            self.frames += 1;
            if self.loud == AUDIBLE_FRAMES {
                return Some((self.frames - AUDIBLE_FRAMES) * frame_samples as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_parts_of_a_turn_add_up_to_the_whole() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut marks = TurnMarks::new(at(0), at(250));
        marks.transcript = Some(at(210));
        marks.first_text = Some(at(300));
        let stages = marks.stages(at(500));
        let parts = [
            stages.endpoint,
            stages.transcript,
            stages.first_text,
            stages.first_clause,
            stages.first_sound,
        ];
        assert_eq!(parts.map(|part| part.as_millis()), [250, 0, 50, 0, 200]);
        assert_eq!(parts.iter().sum::<Duration>(), Duration::from_millis(500));
    }

    #[test]
    fn a_click_is_not_audible_and_sound_is_found_where_it_begins() {
        let mut sound = vec![0.0; 2_400];
        sound[100] = 0.9;
        sound.extend(vec![0.1; 2_400]);
        for size in [1, 7, 240, 4_800] {
            let mut audible = Audible::default();
            let found = sound.chunks(size).find_map(|piece| audible.hear(piece, 24_000));
            assert_eq!(found, Some(2_400), "pieces of {size}");
        }
    }

    #[test]
    fn a_faint_beginning_ends_before_the_first_frame_that_is_loud_enough() {
        let sound = |level: f32| [vec![0.001; 720], vec![level; 2_400]].concat();
        for (sound, samples_max, expected) in [
            (sound(0.5), 9_999, 720),
            (sound(0.004), 9_999, 720),
            (sound(0.002), 9_999, 3_120),
            (sound(0.5), 500, 480),
            (sound(0.5), 0, 0),
            (vec![0.0; 239], 9_999, 0),
        ] {
            assert_eq!(faint_beginning(&sound, samples_max, 24_000), expected, "{samples_max}");
        }
    }
}
