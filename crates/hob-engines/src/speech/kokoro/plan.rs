//! Which frames are heard, in which windows, and what is computed around them.
//! Pure arithmetic over durations and pitch; no samples pass here.

use std::ops::Range;

use hob_core::WordTiming;
use hob_speech::SpokenWord;

use super::FRAMES_PER_SECOND;

/// A sound begins up to this long before its token does, so this much of the lead-in is kept.
const LEAD_IN_FRAMES: usize = 3;
/// A sound rings on into the final stop for this long.
const TAIL_FRAMES: usize = 4;
/// Frames computed on both sides of a window and not heard: what the vocoder's convolutions see.
const CONTEXT_FRAMES: usize = 12;
/// Before the first sound there is only silence to see.
const FIRST_CONTEXT_FRAMES: usize = 4;
/// A window smaller than this is not worth its context.
const WINDOW_FRAMES_MIN: usize = 8;
/// Below this pitch (Hz) a half frame is unvoiced.
const VOICED_HZ: f32 = 10.0;

/// The way through a unit's frames.
#[derive(Debug)]
pub(super) struct Plan {
    frames: usize,
    /// What is still to be heard.
    left: Range<usize>,
    heard_from: usize,
}

/// One window: the frames that are heard within the frames that are computed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) heard: Range<usize>,
    pub(super) computed: Range<usize>,
}

impl Plan {
    /// `durations` in frames, one per phoneme and one for each boundary token. The lead-in before
    /// the first phoneme and the silence of a final stop are not heard.
    pub(super) fn new(durations: &[usize], phonemes: &str) -> Plan {
        let frames: usize = durations.iter().sum();
        let first = durations.first().map_or(0, |lead_in| lead_in.saturating_sub(LEAD_IN_FRAMES));
        let stops = phonemes.chars().rev().take_while(|symbol| !symbol.is_alphabetic()).count();
        let silent: usize = durations.iter().rev().take(stops + 1).sum();
        let last = frames - silent.saturating_sub(TAIL_FRAMES);
        let left = if first < last { first..last } else { 0..frames };
        Plan { frames, heard_from: left.start, left }
    }

    pub(super) fn frames_left(&self) -> usize {
        self.left.len()
    }

    /// The first frame that is heard.
    #[cfg(test)]
    pub(super) fn heard_from(&self) -> usize {
        self.heard_from
    }

    /// The next window of about `wished` frames: all that is left when little would remain.
    pub(super) fn next(&mut self, wished: usize, pitch: &[f32]) -> Option<Context> {
        if self.left.is_empty() {
            return None;
        }
        let wished = wished.max(WINDOW_FRAMES_MIN);
        let heard = if self.left.len() < wished + wished / 2 + WINDOW_FRAMES_MIN {
            self.left.clone()
        } else {
            self.left.start..cut_near(self.left.start, wished, pitch)
        };
        let before =
            if heard.start == self.heard_from { FIRST_CONTEXT_FRAMES } else { CONTEXT_FRAMES };
        self.left.start = heard.end;
        let computed =
            heard.start.saturating_sub(before)..(heard.end + CONTEXT_FRAMES).min(self.frames);
        Some(Context { heard, computed })
    }

    /// When the words are heard, in seconds from the first heard frame.
    pub(super) fn words(&self, words: &[SpokenWord], durations: &[usize]) -> Vec<WordTiming> {
        let mut starts = Vec::with_capacity(durations.len() + 1);
        starts.push(0);
        starts.extend(durations.iter().scan(0, |sum: &mut usize, frames| {
            *sum += frames;
            Some(*sum)
        }));
        let second = |token: usize| {
            let frame = starts[token.min(durations.len())].clamp(self.left.start, self.left.end);
            (frame - self.left.start) as f32 / FRAMES_PER_SECOND
        };
        // Token 0 is the boundary, so phoneme n is token n + 1.
        let timing = |word: &SpokenWord| WordTiming {
            span: word.span.clone(),
            start_s: second(word.phonemes.start + 1),
            end_s: second(word.phonemes.end + 1),
        };
        words.iter().map(timing).collect()
    }
}

/// A frame within a quarter of the wish where nothing is voiced, the nearest to it; the wish itself
/// where everything is.
fn cut_near(start: usize, wished: usize, pitch: &[f32]) -> usize {
    let is_unvoiced = |frame: usize| {
        let around = 2 * frame - 1..=2 * frame;
        pitch.get(around).is_some_and(|halves| halves.iter().all(|hz| *hz < VOICED_HZ))
    };
    let target = start + wished;
    (0..=wished / 4)
        .flat_map(|away| [target - away, target + away])
        .find(|frame| is_unvoiced(*frame))
        .unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(mut plan: Plan, wished: usize, pitch: &[f32]) -> Vec<Context> {
        std::iter::from_fn(|| plan.next(wished, pitch)).collect()
    }

    #[test]
    fn lead_in_and_final_silence_are_not_heard() {
        let plan = Plan::new(&[13, 20, 20, 9, 1], "ab.");
        assert_eq!(plan.left, 10..57, "63 frames, 10 of them silent at the end, 4 kept");
    }

    #[test]
    fn windows_cover_every_frame_once_and_see_both_sides() {
        let found = windows(Plan::new(&[13, 100, 1], "a"), 20, &[200.0; 400]);
        assert_eq!(found[0], Context { heard: 10..30, computed: 6..42 });
        assert_eq!(found[1], Context { heard: 30..50, computed: 18..62 });
        let heard: Vec<usize> = found.iter().flat_map(|window| window.heard.clone()).collect();
        assert_eq!(heard, (10..114).collect::<Vec<_>>());
        assert_eq!(found.last().map(|last| last.computed.end), Some(114));
    }

    #[test]
    fn cuts_prefer_the_nearest_unvoiced_frame() {
        let mut pitch = vec![200.0; 400];
        pitch[2 * 32 - 1] = 0.0;
        pitch[2 * 32] = 0.0;
        let found = windows(Plan::new(&[13, 100, 1], "a"), 20, &pitch);
        assert_eq!(found[0].heard, 10..32);
    }

    #[test]
    fn a_unit_of_silence_alone_is_heard_whole() {
        assert_eq!(Plan::new(&[1, 1, 1], "?").left, 0..3);
    }

    #[test]
    fn words_are_timed_from_the_first_heard_frame() {
        let words = [SpokenWord { span: 3..7, phonemes: 1..2 }];
        let durations = [13, 8, 12, 4, 1];
        let found = Plan::new(&durations, "abc").words(&words, &durations);
        assert_eq!(found, [WordTiming { span: 3..7, start_s: 11.0 / 40.0, end_s: 23.0 / 40.0 }]);
    }
}
