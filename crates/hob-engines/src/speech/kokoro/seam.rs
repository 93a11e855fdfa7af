//! Joins windows without a click: each is faded into the next one over the samples that both have computed.
//! The first sample of a unit rises from silence and the last falls back to it.

use std::ops::Range;

/// 10 ms at 24 kHz, less than half a frame: both windows have it, because of their contexts.
const OVERLAP_SAMPLES: usize = 240;
/// 5 ms.
const FADE_SAMPLES: usize = 120;

/// What the last window computed of the samples that come next.
#[derive(Debug, Default)]
pub(super) struct Seam {
    overlap: Option<Vec<f32>>,
}

impl Seam {
    /// The samples to be played out of a window's `samples`.
    pub(super) fn join(
        &mut self,
        samples: &[f32],
        played: Range<usize>,
        is_last: bool,
    ) -> Vec<f32> {
        let mut joined = samples[played.clone()].to_vec();
        match self.overlap.take() {
            Some(before) => blend(&mut joined, &before),
            None => fade(joined.iter_mut()),
        }
        if is_last {
            fade(joined.iter_mut().rev());
        } else {
            let end = (played.end + OVERLAP_SAMPLES).min(samples.len());
            self.overlap = Some(samples[played.end..end].to_vec());
        }
        joined
    }
}

fn blend(joined: &mut [f32], before: &[f32]) {
    let length = before.len() as f32;
    for (at, (sample, old)) in joined.iter_mut().zip(before).enumerate() {
        let share = (at as f32 + 0.5) / length;
        *sample = share * *sample + (1.0 - share) * old;
    }
}

fn fade<'a>(samples: impl Iterator<Item = &'a mut f32>) {
    for (at, sample) in samples.take(FADE_SAMPLES).enumerate() {
        *sample *= at as f32 / FADE_SAMPLES as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_different_level_meet_without_a_jump() {
        let mut seam = Seam::default();
        let mut played = seam.join(&[0.5; 2000], 0..1000, false);
        played.extend(seam.join(&[0.3; 2000], 500..1500, true));
        let jump = played.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
        assert_eq!(played.len(), 2000);
        assert!(jump < 0.005, "a jump of {jump}");
        assert_eq!((played[0], played[1999]), (0.0, 0.0));
    }
}
