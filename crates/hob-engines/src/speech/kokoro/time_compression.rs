//! Makes finished sound shorter at the same pitch (WSOLA: Verhelst and Roelands, 1993).
//! For speaking rates that the model itself does not reach: its durations are whole frames, at least
//! one for each phoneme.

/// Samples from one piece to the next in what comes out: 12.5 ms at 24 kHz.
const STEP: usize = 300;
/// How far a piece may be taken from its nominal place, to continue the wave of the one before: a
/// whole period of a low voice.
const SEARCH: usize = 240;
/// The end is faded over 2.5 ms, wherever in the wave it falls.
const FADE: usize = 60;

/// Shortens `samples_in` samples, which come window by window, to `samples_out`.
#[derive(Debug)]
pub(super) struct TimeCompression {
    factor: f64,
    samples_out: usize,
    given: usize,
    /// What came and may still be read, from sample `forgotten` on.
    input: Vec<f32>,
    forgotten: usize,
    /// The samples that followed the last piece in the input.
    goes_on: Vec<f32>,
}

impl TimeCompression {
    pub(super) fn new(samples_in: usize, samples_out: usize) -> TimeCompression {
        TimeCompression {
            factor: samples_in as f64 / samples_out.max(1) as f64,
            samples_out,
            given: 0,
            input: Vec::new(),
            forgotten: 0,
            goes_on: Vec::new(),
        }
    }

    pub(super) fn factor(&self) -> f64 {
        self.factor
    }

    /// Samples that are still to come out.
    pub(super) fn left(&self) -> usize {
        self.samples_out - self.given
    }

    /// The shortened sound that no later window changes. After the last window, all the rest.
    pub(super) fn push(&mut self, samples: &[f32], is_last: bool) -> Vec<f32> {
        self.input.extend(samples);
        if is_last {
            self.input.resize(self.input.len() + STEP * 2 + SEARCH * 2, 0.0);
        }
        let mut out = Vec::new();
        while self.given + out.len() < self.samples_out {
            let nominal = ((self.given + out.len()) as f64 * self.factor) as usize;
            let enough = nominal + SEARCH + 2 * STEP <= self.forgotten + self.input.len();
            if !enough && !is_last {
                break;
            }
            self.piece(nominal, &mut out);
        }
        out.truncate(self.left());
        self.given += out.len();
        if is_last {
            fade(&mut out);
        }
        out
    }

    fn piece(&mut self, nominal: usize, out: &mut Vec<f32>) {
        let start = self.best_start(nominal);
        let piece = &self.input[start..start + STEP];
        if self.goes_on.is_empty() {
            out.extend(piece);
        } else {
            out.extend(self.goes_on.iter().zip(piece).enumerate().map(|(at, (old, new))| {
                let share =
                    0.5 - 0.5 * (std::f32::consts::PI * (at as f32 + 0.5) / STEP as f32).cos();
                old + share * (new - old)
            }));
        }
        self.goes_on = self.input[start + STEP..start + 2 * STEP].to_vec();
        self.forget(nominal);
    }

    /// The place in `input`, near the nominal one, whose sound continues the last piece best.
    fn best_start(&self, nominal: usize) -> usize {
        let last = self.input.len() - 2 * STEP;
        let nominal = (nominal - self.forgotten).min(last);
        if self.goes_on.is_empty() {
            return nominal;
        }
        let likeness = |start: usize| {
            let piece = &self.input[start..start + STEP];
            let product: f32 = piece.iter().zip(&self.goes_on).map(|(a, b)| a * b).sum();
            let energy: f32 = piece.iter().map(|sample| sample * sample).sum();
            product / (energy + f32::EPSILON).sqrt()
        };
        (nominal.saturating_sub(SEARCH)..=(nominal + SEARCH).min(last))
            .map(|start| (start, likeness(start)))
            .fold(
                (nominal, likeness(nominal)),
                |best, found| if found.1 > best.1 { found } else { best },
            )
            .0
    }

    fn forget(&mut self, nominal: usize) {
        let unread = (nominal.saturating_sub(SEARCH)).saturating_sub(self.forgotten);
        self.input.drain(..unread);
        self.forgotten += unread;
    }
}

fn fade(samples: &mut [f32]) {
    for (at, sample) in samples.iter_mut().rev().take(FADE).enumerate() {
        *sample *= at as f32 / FADE as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f32, samples: usize) -> Vec<f32> {
        (0..samples).map(|at| (std::f32::consts::TAU * hz * at as f32 / 24_000.0).sin()).collect()
    }

    fn compressed(sound: &[f32], samples_out: usize, window: usize) -> Vec<f32> {
        let mut compression = TimeCompression::new(sound.len(), samples_out);
        let windows = sound.chunks(window);
        let count = windows.len();
        windows.enumerate().flat_map(|(at, part)| compression.push(part, at + 1 == count)).collect()
    }

    #[test]
    fn a_tone_is_shorter_and_neither_higher_nor_rougher() {
        for hz in [80.0, 120.0, 220.0] {
            let sound = tone(hz, 48_000);
            for factor in [1.1, 1.5, 2.0, 2.7] {
                let samples_out = (48_000.0 / factor) as usize;
                let out = compressed(&sound, samples_out, 6_000);
                assert_eq!(out.len(), samples_out);
                let rising = out.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
                let heard_hz = rising as f32 * 24_000.0 / samples_out as f32;
                assert!((heard_hz / hz - 1.0).abs() < 0.05, "{hz} Hz at {factor} is {heard_hz} Hz");
                let step = out.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
                let own = std::f32::consts::TAU * hz / 24_000.0;
                assert!(step < 2.0 * own, "{hz} Hz at {factor}: a step of {step}");
            }
        }
    }

    #[test]
    fn where_windows_are_cut_is_not_heard() {
        let sound: Vec<f32> =
            tone(130.0, 30_000).iter().zip(tone(347.0, 30_000)).map(|(a, b)| a + b / 3.0).collect();
        let whole = compressed(&sound, 13_000, 30_000);
        for window in [700, 4_800, 9_999] {
            assert!(compressed(&sound, 13_000, window) == whole, "windows of {window}");
        }
    }

    #[test]
    fn sound_that_is_shorter_than_a_piece_still_comes_out() {
        assert_eq!(compressed(&[0.5; 100], 40, 100).len(), 40);
    }
}
