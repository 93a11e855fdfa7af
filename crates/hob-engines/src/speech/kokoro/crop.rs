//! How much each stage of the vocoder computes around the frames that are played.
//! The last stage costs most and reads the fewest frames around them, so the context of a short window costs little.

use std::ops::Range;

/// Steps per frame of the decoder, of the generator's first stage and of its second.
const DECODER_STEPS: usize = 2;
const FIRST_STEPS: usize = 20;
const SECOND_STEPS: usize = 120;
/// Samples of one step of the first stage.
const SAMPLES_PER_STEP: usize = 30;

/// Steps of the first stage that one sample depends on, to either side: kernels of 11 dilated by 1,
/// 3 and 5 with one of 11 behind each, the last convolution and the inverse Fourier transform are 65
/// steps of the second stage, and its upsampling reaches one step further.
const SECOND_SEES: usize = 12;
/// A seam is blended over 8 steps beyond the window.
const BLENDED: usize = 8;
/// Steps of the decoder that one step of the first stage depends on: the same kernels, upsampled.
const FIRST_SEES: usize = 7;
/// Steps that the source's residual blocks see, with kernels of 7 and of 11.
const FIRST_NOISE_SEES: usize = 36;
const SECOND_NOISE_SEES: usize = 60;
/// Steps of the second stage's output that one sample depends on: the last convolution, the inverse Fourier transform, and the
/// mirrored step.
const SAMPLE_SEES: usize = 6;
const SAMPLES_PER_SECOND_STEP: usize = SAMPLES_PER_STEP * FIRST_STEPS / SECOND_STEPS;

/// Where the vocoder's cropped values start and end, in steps. The order is that of the vocoder's inputs: the source and the
/// noise for the first stage, the decoder's output, the source and the noise for the second stage, the first stage's output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Crop {
    pub(super) starts: [i32; 6],
    pub(super) ends: [i32; 6],
    /// Samples that come out before the first played one.
    pub(super) samples_before: usize,
    /// Steps of the second stage's output that what is played depends on.
    second_kept: Range<usize>,
}

impl Crop {
    /// For the frames `played` out of a window of `frames`.
    pub(super) fn around(played: &Range<usize>, frames: usize) -> Crop {
        let first_played = scale(played, FIRST_STEPS);
        let first = widen(&first_played, SECOND_SEES, SECOND_SEES + BLENDED, frames * FIRST_STEPS);
        let ratio = FIRST_STEPS / DECODER_STEPS;
        let read = first.start / ratio..first.end.div_ceil(ratio);
        let decoded = widen(&read, FIRST_SEES, FIRST_SEES, frames * DECODER_STEPS);
        let first_computed = scale(&decoded, ratio);
        let first_source =
            widen(&first_computed, FIRST_NOISE_SEES, FIRST_NOISE_SEES, frames * FIRST_STEPS);
        // The second stage has one step more: it begins with a mirrored one.
        let second = scale(&first, SECOND_STEPS / FIRST_STEPS);
        let second = second.start..second.end + 1;
        let steps = frames * SECOND_STEPS + 1;
        let second_source = widen(&second, SECOND_NOISE_SEES, SECOND_NOISE_SEES, steps);
        let crops = [
            within(&first_computed, &first_source),
            decoded,
            within(&second, &second_source),
            within(&first, &first_computed),
        ];
        let [first_noise, decoded, second_noise, first_kept] = crops;
        let samples_before = (first_played.start - first.start) * SAMPLES_PER_STEP;
        let kept = samples_before / SAMPLES_PER_SECOND_STEP;
        let kept = kept..kept + played.len() * SECOND_STEPS + BLENDED * SECOND_STEPS / FIRST_STEPS;
        let crops = [first_source, first_noise, decoded, second_source, second_noise, first_kept];
        Crop {
            starts: crops.each_ref().map(|crop| crop.start as i32),
            ends: crops.each_ref().map(|crop| crop.end as i32),
            samples_before,
            second_kept: widen(&kept, SAMPLE_SEES, SAMPLE_SEES, second.len()),
        }
    }

    /// The steps of a stage's noise that are kept behind its residual block.
    pub(super) fn kept_noise(&self, stage: usize) -> Range<usize> {
        self.kept([1, 4][stage])
    }

    /// The steps of a stage's output that the rest reads.
    pub(super) fn kept_output(&self, stage: usize) -> Range<usize> {
        if stage == 0 { self.kept(5) } else { self.second_kept.clone() }
    }

    fn kept(&self, place: usize) -> Range<usize> {
        self.starts[place] as usize..self.ends[place] as usize
    }
}

fn scale(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start * by..range.end * by
}

fn widen(range: &Range<usize>, before: usize, after: usize, steps: usize) -> Range<usize> {
    range.start.saturating_sub(before)..(range.end + after).min(steps)
}

/// `inner` as it lies in what remains of `outer`.
fn within(inner: &Range<usize>, outer: &Range<usize>) -> Range<usize> {
    inner.start - outer.start..inner.end - outer.start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_played_whole_is_computed_whole() {
        let whole = Crop::around(&(0..7), 7);
        assert_eq!(whole.starts, [0; 6]);
        assert_eq!(whole.ends, [140, 140, 14, 841, 841, 140]);
        assert_eq!(whole.samples_before, 0);
        assert_eq!([0, 1].map(|stage| whole.kept_noise(stage)), [0..140, 0..841]);
        assert_eq!([0, 1].map(|stage| whole.kept_output(stage)), [0..140, 0..841]);
    }

    #[test]
    fn the_stages_fit_each_other() {
        let crop = Crop::around(&(15..25), 40);
        let length = |at: usize| crop.ends[at] - crop.starts[at];
        let [first_source, first_noise, decoded, second_source, second_noise, first_kept] =
            std::array::from_fn(length);
        assert_eq!(first_noise, 10 * decoded, "noise is added to the upsampled decoder");
        assert_eq!(second_noise, 6 * first_kept + 1, "and to the upsampled first stage");
        assert_eq!(first_kept, 200 + 12 + 20);
        assert!(first_source > first_noise && second_source > second_noise);
        assert_eq!(crop.samples_before, 12 * 30);
        let steps = crop.kept_noise(1).len();
        assert_eq!(crop.kept_noise(0).len() as i32, first_noise);
        assert_eq!(crop.kept_output(0).len() as i32, first_kept);
        // Five samples for each step; a seam takes 240 samples beyond what is played.
        let read = 12 * 6..12 * 6 + 10 * 120 + 240 / 5;
        assert_eq!(crop.kept_output(1), read.start - 6..read.end + 6);
        assert!(crop.kept_output(1).end < steps);
    }
}
