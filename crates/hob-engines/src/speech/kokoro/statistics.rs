//! The statistics that the vocoder's normalisations carry from window to window.
//! A prior per voice stands in for the sentence until enough of it has been seen.

/// How many frames of its own the prior weighs as much as. Found by log-mel distance to whole
/// synthesis on held-out sentences of three voices: 150 and 300 were alike, 100 and 10,000 worse.
const PRIOR_FRAMES: f32 = 300.0;

/// What a voice says to find its prior: three lengths, because silence at both ends and the style
/// row depend on the length. The sentences are chosen for many different phonemes.
pub(super) const CALIBRATION: [&str; 3] = [
    "həlˈO, jˈɛs.",
    "hˈɛlp ðə wˈʊmən ɡɛt bˈæk tə hɜɹ fˈit.",
    "ðə sˈɔlt bɹˈiz kˈAm əkɹˌɔs fɹʌm ðə sˈi, ænd wˈIl ðə smˈOki fˈIɹz lˈækt flˈAm, ðə ʤˈus mˌAd pˈʌnʧ.",
];

/// Mean and variance per channel, and how many frames they stand for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Running {
    mean: Vec<f32>,
    variance: Vec<f32>,
    frames: f32,
}

impl Running {
    /// Knows nothing: a window is then normalised by itself.
    pub(super) fn empty(channels: usize) -> Running {
        Running { mean: vec![0.0; channels], variance: vec![0.0; channels], frames: 0.0 }
    }

    pub(super) fn mean(&self) -> &[f32] {
        &self.mean
    }

    pub(super) fn variance(&self) -> &[f32] {
        &self.variance
    }

    /// What weight these have against a window of `frames` frames, 0 to 1.
    pub(super) fn share(&self, frames: usize) -> f32 {
        self.frames / (self.frames + frames as f32)
    }

    /// The variance about a window's own mean, from its `spread` about the mean that was used.
    pub(super) fn own_variance(&self, mean: &[f32], spread: &[f32], share: f32) -> Vec<f32> {
        let own = |((carried, mean), spread): ((&f32, &f32), &f32)| {
            let shift = share * (carried - mean);
            (spread - shift * shift).max(0.0)
        };
        self.mean.iter().zip(mean).zip(spread).map(own).collect()
    }

    /// Takes `frames` more frames with these statistics in: Chan, Golub and LeVeque (1979).
    pub(super) fn add(&mut self, mean: &[f32], variance: &[f32], frames: usize) {
        self.frames += frames as f32;
        let weight = frames as f32 / self.frames;
        for (at, (new_mean, new_variance)) in mean.iter().zip(variance).enumerate() {
            let apart = new_mean - self.mean[at];
            self.variance[at] +=
                weight * (new_variance - self.variance[at] + (1.0 - weight) * apart * apart);
            self.mean[at] += weight * apart;
        }
    }
}

/// A voice's statistics at a few lengths of text, shortest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Prior {
    points: Vec<Point>,
}

#[derive(Clone, Debug, PartialEq)]
struct Point {
    tokens: u32,
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl Prior {
    pub(super) fn push(&mut self, tokens: usize, mean: &[f32], variance: &[f32]) {
        let (mean, variance) = (mean.to_vec(), variance.to_vec());
        self.points.push(Point { tokens: tokens as u32, mean, variance });
    }

    /// What an utterance of so many tokens starts from: the two nearest lengths as one population.
    pub(super) fn running(&self, tokens: usize) -> Running {
        let tokens = tokens as f32;
        let above = self.points.partition_point(|point| (point.tokens as f32) < tokens);
        let upper = &self.points[above.min(self.points.len() - 1)];
        let lower = &self.points[above.saturating_sub(1)];
        let gap = (upper.tokens - lower.tokens) as f32;
        let share = if gap > 0.0 { (tokens - lower.tokens as f32) / gap } else { 0.0 };
        let mut running =
            Running { mean: lower.mean.clone(), variance: lower.variance.clone(), frames: 1.0 };
        running.frames = 1.0 - share;
        running.mix(upper, share);
        running.frames = PRIOR_FRAMES;
        running
    }

    /// Little-endian: the number of points; for each its tokens, means and variances.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.points.len() as u32).to_le_bytes().to_vec();
        for point in &self.points {
            bytes.extend(point.tokens.to_le_bytes());
            let values = point.mean.iter().chain(&point.variance);
            bytes.extend(values.flat_map(|value| value.to_le_bytes()));
        }
        bytes
    }

    /// None: the bytes are not a prior for so many channels.
    pub(super) fn from_bytes(bytes: &[u8], channels: usize) -> Option<Prior> {
        let (words, []) = bytes.as_chunks::<4>() else { return None };
        let (count, rest) = words.split_first()?;
        let count = u32::from_le_bytes(*count) as usize;
        if count == 0 || rest.len() != count.checked_mul(1 + 2 * channels)? {
            return None;
        }
        let floats = |words: &[[u8; 4]]| words.iter().map(|w| f32::from_le_bytes(*w)).collect();
        let point = |words: &[[u8; 4]]| Point {
            tokens: u32::from_le_bytes(words[0]),
            mean: floats(&words[1..=channels]),
            variance: floats(&words[1 + channels..]),
        };
        Some(Prior { points: rest.chunks_exact(1 + 2 * channels).map(point).collect() })
    }
}

impl Running {
    fn mix(&mut self, point: &Point, share: f32) {
        for at in 0..self.mean.len() {
            let apart = point.mean[at] - self.mean[at];
            self.variance[at] +=
                share * (point.variance[at] - self.variance[at] + (1.0 - share) * apart * apart);
            self.mean[at] += share * apart;
        }
    }
}
