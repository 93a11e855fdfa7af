//! Which frames are played, in which windows, and which frames are computed around them.
//! Pure arithmetic over durations and pitch; no samples pass here.

use std::ops::Range;

/// A sound begins up to this long before its token does, so this much of the lead-in is kept.
const LEAD_IN_FRAMES: usize = 3;
/// Sound continues for this long into the silence of the final punctuation.
const TAIL_FRAMES: usize = 4;
/// Frames that are computed on each side of a window and discarded, because the convolutions depend on them.
const CONTEXT_FRAMES: usize = 12;
/// Fewer before the first window, where the context is only silence.
const FIRST_CONTEXT_FRAMES: usize = 4;
/// A window smaller than this is not worth its context.
const WINDOW_FRAMES_MIN: usize = 8;
/// Below this pitch (Hz) a half frame is unvoiced.
const VOICED_HZ: f32 = 10.0;

/// Divides a unit's frames into windows.
#[derive(Debug)]
pub(super) struct WindowPlan {
    frames: usize,
    /// The frames that are still to be played.
    left: Range<usize>,
    played_from: usize,
}

/// One window: the frames that are played within the frames that are computed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedWindow {
    pub(super) played: Range<usize>,
    pub(super) computed: Range<usize>,
}

impl WindowPlan {
    /// `durations` in frames, one per phoneme and one for each boundary token. The lead-in before
    /// the first phoneme and the silence of a final stop are not played.
    pub(super) fn new(durations: &[usize], phonemes: &str) -> WindowPlan {
        let frames: usize = durations.iter().sum();
        let first = durations.first().map_or(0, |lead_in| lead_in.saturating_sub(LEAD_IN_FRAMES));
        let stops = phonemes.chars().rev().take_while(|symbol| !symbol.is_alphabetic()).count();
        let silent: usize = durations.iter().rev().take(stops + 1).sum();
        let last = frames - silent.saturating_sub(TAIL_FRAMES);
        let left = if first < last { first..last } else { 0..frames };
        WindowPlan { frames, played_from: left.start, left }
    }

    pub(super) fn frames_left(&self) -> usize {
        self.left.len()
    }

    /// The frames that are still to be played.
    pub(super) fn frames(&self) -> &Range<usize> {
        &self.left
    }

    /// The first frame that is played.
    #[cfg(test)]
    pub(super) fn played_from(&self) -> usize {
        self.played_from
    }

    /// The share of the unit's frames that are not played. Before the first window.
    pub(super) fn silent_share(&self) -> f32 {
        1.0 - self.left.len() as f32 / self.frames.max(1) as f32
    }

    /// The next window, about `target_frames` frames long. It takes the whole rest if the remainder would be too short.
    pub(super) fn next(&mut self, target_frames: usize, pitch: &[f32]) -> Option<PlannedWindow> {
        if self.left.is_empty() {
            return None;
        }
        let target_frames = target_frames.max(WINDOW_FRAMES_MIN);
        let played = if self.left.len() < target_frames + target_frames / 2 + WINDOW_FRAMES_MIN {
            self.left.clone()
        } else {
            self.left.start..cut_near(self.left.start, target_frames, pitch)
        };
        let before =
            if played.start == self.played_from { FIRST_CONTEXT_FRAMES } else { CONTEXT_FRAMES };
        self.left.start = played.end;
        let computed =
            played.start.saturating_sub(before)..(played.end + CONTEXT_FRAMES).min(self.frames);
        Some(PlannedWindow { played, computed })
    }
}

/// The unvoiced frame nearest to the wished cut, at most a quarter of the length away. It is the
/// wished cut itself if all frames in between are voiced.
fn cut_near(start: usize, target_frames: usize, pitch: &[f32]) -> usize {
    let is_unvoiced = |frame: usize| {
        let around = 2 * frame - 1..=2 * frame;
        pitch.get(around).is_some_and(|halves| halves.iter().all(|hz| *hz < VOICED_HZ))
    };
    let wished_cut = start + target_frames;
    (0..=target_frames / 4)
        .flat_map(|away| [wished_cut - away, wished_cut + away])
        .find(|frame| is_unvoiced(*frame))
        .unwrap_or(wished_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(mut plan: WindowPlan, target_frames: usize, pitch: &[f32]) -> Vec<PlannedWindow> {
        std::iter::from_fn(|| plan.next(target_frames, pitch)).collect()
    }

    #[test]
    fn lead_in_and_final_silence_are_not_played() {
        let plan = WindowPlan::new(&[13, 20, 20, 9, 1], "ab.");
        assert_eq!(plan.left, 10..57, "63 frames, 10 of them silent at the end, 4 kept");
    }

    #[test]
    fn windows_cover_every_frame_once_and_have_context_on_both_sides() {
        let found = windows(WindowPlan::new(&[13, 100, 1], "a"), 20, &[200.0; 400]);
        assert_eq!(found[0], PlannedWindow { played: 10..30, computed: 6..42 });
        assert_eq!(found[1], PlannedWindow { played: 30..50, computed: 18..62 });
        let played: Vec<usize> = found.iter().flat_map(|window| window.played.clone()).collect();
        assert_eq!(played, (10..114).collect::<Vec<_>>());
        assert_eq!(found.last().map(|last| last.computed.end), Some(114));
    }

    #[test]
    fn cuts_prefer_the_nearest_unvoiced_frame() {
        let mut pitch = vec![200.0; 400];
        pitch[2 * 32 - 1] = 0.0;
        pitch[2 * 32] = 0.0;
        let found = windows(WindowPlan::new(&[13, 100, 1], "a"), 20, &pitch);
        assert_eq!(found[0].played, 10..32);
    }

    #[test]
    fn a_unit_without_phonemes_is_kept_whole() {
        assert_eq!(WindowPlan::new(&[1, 1, 1], "?").left, 0..3);
    }
}
