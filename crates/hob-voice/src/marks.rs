//! The times of one turn, on the clock of its driver.
//! The parts add up to the whole exactly, because each begins where the one before ends.

use std::time::Instant;

use crate::interface::TurnStages;

/// Loudness from which a listener hears something: -40 dB.
const AUDIBLE_RMS: f32 = 0.01;
/// Frames of 10 ms that must be loud in a row.
const AUDIBLE_FRAMES: u64 = 5;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnMarks {
    /// The end of the last voiced sample.
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
        let frame_samples = (sample_rate_hz / 100).max(1) as usize;
        for sample in samples {
            self.frame.push(*sample);
            if self.frame.len() < frame_samples {
                continue;
            }
            let energy: f32 = self.frame.drain(..).map(|sample| sample * sample).sum();
            let is_loud = (energy / frame_samples as f32).sqrt() > AUDIBLE_RMS;
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
}
