//! The residual blocks of the vocoder, with hob's own kernels: nine tenths of all multiplications.
//! All threads compute each step. Which rows a thread computes changes no result.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use hob_kernels::convolution::{Convolution, Convolver, Extent, PANEL, QUAD, Snake, TILE, Values};
use hob_models::kokoro::{self, SplitVocoder};
use rayon::prelude::*;

use super::statistics::RunningStatistics;

/// As the published graph adds it to each variance.
const EPSILON: f32 = 1e-5;
/// Positions that are computed before the next ones. Their integers then stay in the second cache.
const BLOCK: usize = 64 * TILE;
/// Rows that one thread takes at a time.
const ROWS_MIN: usize = 8;

/// One row for each channel, as long as whole tiles.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    values: Vec<f32>,
    channels: usize,
    /// Values of a row that count.
    steps: usize,
    /// Values of a row.
    stride: usize,
}

impl Rows {
    fn new(channels: usize, steps: usize) -> Rows {
        let stride = steps.next_multiple_of(TILE);
        let values = vec![0.0; channels * stride];
        Rows { values, channels, steps, stride }
    }

    /// `values` holds the rows one after the other.
    pub(super) fn from_values(values: &[f32], channels: usize) -> Rows {
        let mut rows = Rows::new(channels, values.len() / channels);
        let steps = rows.steps;
        for (row, values) in rows.rows_mut().zip(values.chunks(steps)) {
            row.copy_from_slice(values);
        }
        rows
    }

    /// The rows one after the other.
    pub(super) fn to_values(&self) -> Vec<f32> {
        self.rows().flatten().copied().collect()
    }

    /// These rows from `start` on, plus `values`, which hold the same rows one after the other.
    pub(super) fn cropped_plus(&self, start: usize, values: &[f32]) -> Rows {
        let mut sum = Rows::from_values(values, self.channels);
        for (sum, row) in sum.rows_mut().zip(self.rows()) {
            sum.iter_mut().zip(&row[start..]).for_each(|(sum, value)| *sum += value);
        }
        sum
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks(self.stride).map(|row| &row[..self.steps])
    }

    fn rows_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        let steps = self.steps;
        self.values.chunks_mut(self.stride).map(move |row| &mut row[..steps])
    }
}

/// What each block of a run reads, and the statistics that it finds.
pub(super) struct BlockRun<'a> {
    /// Gains minus one and shifts, by [`hob_models::kokoro::ResidualStep::style_at`].
    pub(super) styles: &'a [f32],
    pub(super) carried: &'a RunningStatistics,
    pub(super) share: f32,
    /// One value for each channel of all normalisations.
    pub(super) mean: Vec<f32>,
    pub(super) spread: Vec<f32>,
    values: Values,
}

impl<'a> BlockRun<'a> {
    pub(super) fn new(
        styles: &'a [f32],
        carried: &'a RunningStatistics,
        share: f32,
        channels: usize,
    ) -> BlockRun<'a> {
        let (mean, spread) = (vec![0.0; channels], vec![0.0; channels]);
        BlockRun { styles, carried, share, mean, spread, values: Values::default() }
    }
}

/// All residual blocks.
pub(super) struct Blocks {
    kernels: Convolver,
    noise: [Block; 2],
    stages: [[Block; 3]; 2],
}

struct Block {
    steps: Vec<Step>,
}

struct Step {
    statistics_at: usize,
    style_at: usize,
    alpha: Vec<f32>,
    convolution: Convolution,
}

hob_core::debug_fields!(Blocks: kernels);

impl Blocks {
    /// `None`: one of them has a shape that the kernels do not compute, or other channels than its stage, or reads statistics
    /// that do not exist. `channels` are those of all normalisations.
    pub(super) fn new(kernels: Convolver, split: &SplitVocoder, channels: usize) -> Option<Blocks> {
        let block = |block: &kokoro::ResidualBlock| {
            let steps = block.steps.par_iter().map(|step| Step::new(step, channels));
            Some(Block { steps: steps.collect::<Option<_>>()? })
        };
        let stage =
            |[a, b, c]: &[kokoro::ResidualBlock; 3]| Some([block(a)?, block(b)?, block(c)?]);
        let [first, second] = &split.noise;
        let noise = [block(first)?, block(second)?];
        let [first, second] = &split.stages;
        let blocks = Blocks { kernels, noise, stages: [stage(first)?, stage(second)?] };
        let has_statistics = split.rest_statistics.iter().all(|(at, size)| at + size <= channels);
        let agree = [0, 1].into_iter().all(|stage| {
            let channels = blocks.channels(stage);
            blocks.steps(stage).all(|step| step.alpha.len() == channels)
        });
        (has_statistics && agree).then_some(blocks)
    }

    fn steps(&self, stage: usize) -> impl Iterator<Item = &Step> {
        let blocks = self.stages[stage].iter().chain([&self.noise[stage]]);
        blocks.flat_map(|block| &block.steps)
    }

    /// Values that [`BlockRun::styles`] must have.
    pub(super) fn style_values(&self) -> usize {
        let steps = [0, 1].into_iter().flat_map(|stage| self.steps(stage));
        steps.map(|step| 2 * step.alpha.len()).sum()
    }

    /// Channels of a stage.
    pub(super) fn channels(&self, stage: usize) -> usize {
        self.noise[stage].steps[0].alpha.len()
    }

    /// The noise of a stage after its block. Only the steps of `kept` have a meaning.
    pub(super) fn noise(
        &self,
        stage: usize,
        mut noise: Rows,
        kept: &Range<usize>,
        run: &mut BlockRun<'_>,
    ) -> Rows {
        self.noise[stage].run(self.kernels, &mut noise, kept, run);
        noise
    }

    /// The mean of a stage's blocks. Only the steps of `kept` have a meaning.
    pub(super) fn stage(
        &self,
        stage: usize,
        input: &Rows,
        kept: &Range<usize>,
        run: &mut BlockRun<'_>,
    ) -> Rows {
        let mut mean = Rows::new(input.channels, input.steps);
        let blocks = &self.stages[stage];
        for block in blocks {
            let mut output = input.clone();
            block.run(self.kernels, &mut output, kept, run);
            let rows =
                mean.values.par_chunks_mut(mean.stride).zip(output.values.par_chunks(mean.stride));
            rows.with_min_len(ROWS_MIN).for_each(|(mean, row)| {
                for (mean, value) in mean.iter_mut().zip(row) {
                    *mean += value / blocks.len() as f32;
                }
            });
        }
        mean
    }
}

impl Step {
    fn new(step: &kokoro::ResidualStep, channels: usize) -> Option<Step> {
        let weights = (step.zero_point, step.scale);
        let convolution = Convolution::new(&step.weights, weights, &step.bias, step.dilation)?;
        let alpha = step.alpha.clone();
        let fits = alpha.len() == convolution.channels()
            && step.statistics_at + convolution.channels() <= channels;
        let (statistics_at, style_at) = (step.statistics_at, step.style_at);
        fits.then_some(Step { statistics_at, style_at, alpha, convolution })
    }
}

impl Block {
    /// Each pair of steps adds its result to `rows`. Each step computes only what the steps after it read.
    fn run(
        &self,
        kernels: Convolver,
        rows: &mut Rows,
        kept: &Range<usize>,
        run: &mut BlockRun<'_>,
    ) {
        let mut between = Rows::new(rows.channels, rows.steps);
        let mut activated = between.clone();
        let mut reach: usize = self.steps.iter().map(|step| step.convolution.reach()).sum();
        for [first, second] in self.steps.as_chunks::<2>().0 {
            let wide = widened(kept, reach, rows.steps);
            reach -= first.convolution.reach();
            let middle = widened(kept, reach, rows.steps);
            reach -= second.convolution.reach();
            let narrow = widened(kept, reach, rows.steps);
            let extent = first.activate(kernels, (rows, &mut activated), &wide, run);
            first.fill(kernels, (&activated, &wide), extent, &mut run.values);
            first.convolve(kernels, &run.values, (&mut between, &middle), false);
            let extent = second.activate(kernels, (&between, &mut activated), &middle, run);
            second.fill(kernels, (&activated, &middle), extent, &mut run.values);
            second.convolve(kernels, &run.values, (rows, &narrow), true);
        }
    }
}

fn widened(range: &Range<usize>, by: usize, steps: usize) -> Range<usize> {
    range.start.saturating_sub(by)..(range.end + by).min(steps)
}

/// From one multiple of a tile to another.
fn tiles(range: &Range<usize>) -> Range<usize> {
    range.start / TILE * TILE..range.end.next_multiple_of(TILE)
}

impl Step {
    /// Normalises some steps of `from` by carried and their own statistics, gives them their style, and activates them.
    /// Returns how far the result reaches.
    fn activate(
        &self,
        kernels: Convolver,
        (from, to): (&Rows, &mut Rows),
        steps: &Range<usize>,
        run: &mut BlockRun<'_>,
    ) -> Extent {
        let (above, below) = (AtomicU32::new(0), AtomicU32::new(0));
        let (channels, stride) = (to.channels, to.stride);
        let places = self.statistics_at..self.statistics_at + channels;
        let (gains, shifts) = run.styles[self.style_at..][..2 * channels].split_at(channels);
        let [carried_mean, carried_variance] =
            [run.carried.mean(), run.carried.variance()].map(|all| &all[places.clone()]);
        let share = run.share;
        let tiles = tiles(steps);
        let own = run.mean[places.clone()].par_iter_mut().zip(run.spread[places].par_iter_mut());
        let rows = to.values.par_chunks_mut(stride).zip(from.values.par_chunks(stride)).zip(own);
        rows.enumerate().with_min_len(ROWS_MIN).for_each(
            |(at, ((to, from), (own_mean, spread)))| {
                let row = &from[steps.clone()];
                *own_mean = kernels.sum(row) / row.len() as f32;
                let mean = share * carried_mean[at] + (1.0 - share) * *own_mean;
                *spread = kernels.spread(row, mean) / row.len() as f32;
                let shift = carried_mean[at] - mean;
                let variance =
                    share * (carried_variance[at] + shift * shift) + (1.0 - share) * *spread;
                let scale = (1.0 + gains[at]) / (variance + EPSILON).sqrt();
                let snake =
                    Snake { scale, shift: shifts[at] - mean * scale, alpha: self.alpha[at] };
                to[tiles.start..steps.start].fill(0.0);
                let found = kernels.activate(row, &mut to[steps.start..tiles.end], snake);
                // Floats that are not negative have the order of their bits.
                above.fetch_max(found.above.to_bits(), Ordering::Relaxed);
                below.fetch_max(found.below.to_bits(), Ordering::Relaxed);
            },
        );
        let [above, below] = [above, below].map(|bits| f32::from_bits(bits.into_inner()));
        Extent { above, below }
    }

    fn fill(
        &self,
        kernels: Convolver,
        (rows, steps): (&Rows, &Range<usize>),
        extent: Extent,
        values: &mut Values,
    ) {
        let (stride, tiles) = (rows.stride, tiles(steps));
        values.prepare(&self.convolution, &tiles, extent);
        let (shape, quads) = values.quads_mut();
        let quads: Vec<(&mut [u8], &[f32])> =
            quads.zip(rows.values.chunks(QUAD * stride)).collect();
        quads.into_par_iter().with_min_len(ROWS_MIN / QUAD).for_each(|(integers, channels)| {
            let channel = |at: usize| &channels[at * stride..][tiles.clone()];
            kernels.fill(shape, std::array::from_fn(channel), integers);
        });
    }

    fn convolve(
        &self,
        kernels: Convolver,
        values: &Values,
        (rows, steps): (&mut Rows, &Range<usize>),
        adds: bool,
    ) {
        let (stride, tiles) = (rows.stride, tiles(steps));
        for start in tiles.clone().step_by(BLOCK) {
            let positions = start..(start + BLOCK).min(tiles.end);
            let panels = rows.values.par_chunks_mut(PANEL * stride).enumerate();
            panels.for_each(|(panel, rows)| {
                let convolution = (&self.convolution, panel);
                kernels.convolve(convolution, values, positions.clone(), (rows, adds));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNELS: usize = 16;
    const TAPS: usize = 11;
    const DILATIONS: [usize; 6] = [1, 1, 3, 1, 5, 1];

    fn step(at: usize, channels: usize) -> Option<Step> {
        let mut random = fastrand::Rng::with_seed(at as u64);
        let weights = (0..CHANNELS * CHANNELS * TAPS).map(|_| random.u8(32..=96));
        let step = kokoro::ResidualStep {
            statistics_at: at * CHANNELS,
            style_at: 2 * at * CHANNELS,
            alpha: vec![1.5; CHANNELS],
            weights: weights.collect(),
            zero_point: 64,
            scale: 0.002,
            bias: vec![0.1; CHANNELS],
            dilation: DILATIONS[at],
        };
        Step::new(&step, channels)
    }

    /// Runs a block of random weights on random values, with carried statistics alone.
    fn run(kernels: Convolver, steps: usize, kept: &Range<usize>) -> Rows {
        let channels = DILATIONS.len() * CHANNELS;
        let all = (0..DILATIONS.len()).map(|at| step(at, channels).expect("a step that fits"));
        let block = Block { steps: all.collect() };
        let mut random = fastrand::Rng::with_seed(7);
        let values: Vec<f32> = (0..CHANNELS * steps).map(|_| random.f32() * 2.0 - 1.0).collect();
        let mut rows = Rows::from_values(&values, CHANNELS);
        let styles = vec![0.0; 2 * channels];
        let mut carried = RunningStatistics::empty(channels);
        carried.add(&vec![0.0; channels], &vec![1.0; channels], 1);
        block.run(kernels, &mut rows, kept, &mut BlockRun::new(&styles, &carried, 1.0, channels));
        rows
    }

    #[test]
    fn kept_steps_do_not_depend_on_what_is_left_out() {
        let Some(kernels) = Convolver::detect() else { return };
        let steps = 333;
        let whole = run(kernels, steps, &(0..steps));
        for kept in [0..1, 0..40, 97..98, 100..140, 128..144, 300..steps, steps - 1..steps] {
            let part = run(kernels, steps, &kept);
            for (whole, part) in whole.rows().zip(part.rows()) {
                for at in kept.clone() {
                    // The range of the integers differs, which changes up to 0.02. One step too little
                    // changes 0.15.
                    let apart = (whole[at] - part[at]).abs();
                    assert!(apart < 0.03, "{kept:?} {at}: {} for {}", part[at], whole[at]);
                }
            }
        }
    }

    #[test]
    fn a_window_can_be_shorter_than_a_tile() {
        let Some(kernels) = Convolver::detect() else { return };
        for steps in [1, 2, TILE - 1, TILE, TILE + 1] {
            let values = run(kernels, steps, &(0..steps)).to_values();
            assert_eq!(values.len(), CHANNELS * steps);
            assert!(values.iter().all(|value| value.is_finite()), "{steps}: {values:?}");
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let Some(kernels) = Convolver::detect() else { return };
        let bits = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let rows = pool.expect("threads").install(|| run(kernels, 2500, &(300..2400)));
            rows.to_values().into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        };
        let alone = bits(1);
        assert!([1, 2, 3].into_iter().all(|threads| bits(threads) == alone));
    }

    #[test]
    fn a_step_reads_only_statistics_that_exist() {
        assert!(step(2, 3 * CHANNELS).is_some());
        assert!(step(2, 3 * CHANNELS - 1).is_none());
    }
}
