//! Convolutions over time in 8-bit integers, for the vocoder of speech. The sums are exact, so the result does not depend on
//! the order of additions.

#[cfg(target_arch = "x86_64")]
mod avx2;

use std::ops::Range;

/// Output channels that are computed together: a panel. With 16 positions, their sums fill half of the registers.
pub const PANEL: usize = 4;
/// Positions that are computed together.
pub const TILE: usize = 16;
/// Input channels that lie next to each other.
pub const QUAD: usize = 4;
/// Floats of a register.
const LANES: usize = 8;
/// The kernel adds four products in 16 bits.
const FOUR_PRODUCTS_MAX: u16 = i16::MAX as u16;
/// Largest number of products whose sum fits into 32 bits: eight are at most `2 · FOUR_PRODUCTS_MAX`.
const PRODUCTS_MAX: usize = 1 << 18;
/// Values of fewer steps would be heard as noise.
const VALUE_MAX_MIN: u16 = 127;
/// Lower limit for the range of all values, so that silence has a finite scale.
const RANGE_MIN: f32 = 1e-20;

/// The kernels, on a processor that has their instructions.
#[derive(Clone, Copy, Debug)]
pub struct Convolver {
    /// The processor has the dot-product unit of AVX-512.
    has_dot_products: bool,
}

/// One convolution with as many outputs as inputs, in the order that the kernel reads.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// Panel by panel, and in a panel eight input channels after eight: all taps of the first four channels, then those of
    /// the other four. They lie in pairs; a pair has, for each output of the panel, the four weights of its first and of
    /// its second tap.
    weights: Vec<i8>,
    /// Largest integer that a value may have, so that four products fit into 16 bits: 255 for most weights.
    value_max: u8,
    /// The sum of each output's weights.
    sums: Vec<i32>,
    scale: f32,
    bias: Vec<f32>,
    channels: usize,
    taps: usize,
    dilation: usize,
}

/// What a channel becomes before a convolution: `y = scale·x + shift`, then `y + sin²(alpha·y) / alpha`. `alpha·y` stays below
/// about 10⁶; the sine of larger angles is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Snake {
    pub scale: f32,
    pub shift: f32,
    pub alpha: f32,
}

/// How far values reach above and below zero. Neither is negative, nor −0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extent {
    pub above: f32,
    pub below: f32,
}

/// The values of all channels as integers, with zeros at both ends. Reused from one convolution to the next.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// All positions of the first four channels, then of the next four. A position holds all four.
    integers: Vec<u8>,
    /// Positions of four channels.
    stride: usize,
    /// The first position.
    start: usize,
    shape: QuadShape,
}

/// How four channels lie in [`Values`].
#[derive(Clone, Copy, Debug, Default)]
pub struct QuadShape {
    /// Zeros before the first position.
    lead: usize,
    /// What one step of the integers is worth.
    scale: f32,
    /// The integer that stands for zero.
    zero_point: u8,
    largest: u8,
}

impl Convolution {
    /// `weights` is `[output][input][tap]`; a weight is worth `(weight − zero_point) · scale`. `None`: the kernel cannot compute
    /// it. It needs a number of channels that 8 divides, an odd number of taps, a dilation from 1 to [`TILE`], at most 2¹⁸
    /// weights for each output, and weights of about 7 bits.
    #[must_use]
    pub fn new(
        weights: &[u8],
        (zero_point, scale): (u8, f32),
        bias: &[f32],
        dilation: usize,
    ) -> Option<Convolution> {
        let channels = bias.len();
        let taps = weights.len() / channels.checked_mul(channels)?.max(1);
        let fits = channels.is_multiple_of(2 * QUAD)
            && taps % 2 == 1
            && weights.len() == channels * channels * taps
            && channels * taps <= PRODUCTS_MAX
            // The kernel's pointer to the tap behind the last one then stays within the values.
            && (1..=TILE).contains(&dilation);
        if !fits {
            return None;
        }
        let mut ordered = Vec::with_capacity(weights.len());
        let mut sums = vec![0; channels];
        let mut four_weights_max = 0;
        for panel in (0..channels).step_by(PANEL) {
            for first in (0..channels).step_by(2 * QUAD) {
                for pair in 0..taps {
                    for output in panel..panel + PANEL {
                        let mut lanes = [0; QUAD / 2];
                        for item in [2 * pair, 2 * pair + 1] {
                            let is_second = item >= taps;
                            let quad = first + usize::from(is_second) * QUAD;
                            let tap = item - usize::from(is_second) * taps;
                            for input in quad..quad + QUAD {
                                let weight = weights[(output * channels + input) * taps + tap];
                                let weight = i16::from(weight) - i16::from(zero_point);
                                ordered.push(i8::try_from(weight).ok()?);
                                sums[output] += i32::from(weight);
                                lanes[(input - quad) / 2] += weight.unsigned_abs();
                            }
                        }
                        four_weights_max = lanes.into_iter().fold(four_weights_max, u16::max);
                    }
                }
            }
        }
        let value_max = (FOUR_PRODUCTS_MAX / four_weights_max.max(1)).min(255);
        let value_max = u8::try_from(value_max).ok().filter(|_| value_max >= VALUE_MAX_MIN)?;
        let bias = bias.to_vec();
        Some(Convolution {
            weights: ordered,
            value_max,
            sums,
            scale,
            bias,
            channels,
            taps,
            dilation,
        })
    }

    /// Panels of output channels.
    #[must_use]
    pub fn panels(&self) -> usize {
        self.bias.len() / PANEL
    }

    /// Input and output channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Positions that a result reads to either side.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.taps / 2 * self.dilation
    }
}

impl Values {
    /// Makes room for the values of `positions`, from one multiple of [`TILE`] to another. All values of all channels are
    /// within `extent`.
    pub fn prepare(&mut self, convolution: &Convolution, positions: &Range<usize>, extent: Extent) {
        let tiles = [positions.start, positions.end].iter().all(|end| end.is_multiple_of(TILE));
        assert!(tiles, "whole tiles");
        let lead = convolution.reach().next_multiple_of(LANES);
        let largest = convolution.value_max;
        let scale = (extent.above + extent.below).max(RANGE_MIN) / f32::from(largest);
        let zero_point = (extent.below / scale).round() as u8;
        self.shape = QuadShape { lead, scale, zero_point, largest };
        self.start = positions.start;
        self.stride = lead + positions.len() + convolution.reach();
        self.integers.resize(convolution.channels * self.stride, 0);
    }

    /// The integers of each four channels, for [`Convolver::fill`].
    pub fn quads_mut(&mut self) -> (QuadShape, std::slice::ChunksExactMut<'_, u8>) {
        (self.shape, self.integers.chunks_exact_mut(self.stride * QUAD))
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Convolver {
    /// There are no kernels for this processor.
    #[must_use]
    pub fn detect() -> Option<Convolver> {
        None
    }

    #[must_use]
    pub fn sum(self, _: &[f32]) -> f32 {
        unreachable!("never detected")
    }

    #[must_use]
    pub fn spread(self, _: &[f32], _: f32) -> f32 {
        unreachable!("never detected")
    }

    #[must_use]
    pub fn activate(self, _: &[f32], _: &mut [f32], _: Snake) -> Extent {
        unreachable!("never detected")
    }

    pub fn fill(self, _: QuadShape, _: [&[f32]; QUAD], _: &mut [u8]) {}

    pub fn convolve(
        self,
        _: (&Convolution, usize),
        _: &Values,
        _: Range<usize>,
        _: (&mut [f32], bool),
    ) {
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from -1 to 1.
    fn noise(random: &mut fastrand::Rng, count: usize) -> Vec<f32> {
        (0..count).map(|_| random.f32() * 2.0 - 1.0).collect()
    }

    /// Rows of `steps` values, padded to whole tiles.
    fn padded(rows: &[f32], steps: usize) -> Vec<f32> {
        let stride = steps.next_multiple_of(TILE);
        let mut to = vec![0.0; rows.len() / steps * stride];
        for (row, to) in rows.chunks(steps).zip(to.chunks_mut(stride)) {
            to[..steps].copy_from_slice(row);
        }
        to
    }

    /// The kernels of each kind that this processor has.
    fn each_kind() -> impl Iterator<Item = Convolver> {
        let best = Convolver::detect();
        let kinds = best.map(|best| match best.has_dot_products {
            true => vec![best, Convolver { has_dot_products: false }],
            false => vec![best],
        });
        kinds.into_iter().flatten()
    }

    #[test]
    fn results_are_those_of_floats() {
        let results: Vec<Vec<u32>> = each_kind().map(check_results).collect();
        assert!(
            results.windows(2).all(|kinds| kinds[0] == kinds[1]),
            "each kind has the same bits"
        );
    }

    /// Returns the bits of all results.
    fn check_results(kernels: Convolver) -> Vec<u32> {
        let mut bits = Vec::new();
        let mut random = fastrand::Rng::with_seed(1);
        for (channels, taps, dilation, steps) in
            [(16, 3, 1, 50), (24, 7, 3, 16), (8, 11, 5, 33), (8, 1, 1, 5), (16, 5, 2, 48)]
        {
            let weights = (0..channels * channels * taps).map(|_| random.u8(40..105));
            let weights: Vec<u8> = weights.collect();
            let (zero_point, scale) = (72, 0.01);
            let bias = noise(&mut random, channels);
            let x = noise(&mut random, channels * steps);
            let convolution = Convolution::new(&weights, (zero_point, scale), &bias, dilation);
            let convolution = convolution.expect("a shape that fits");
            // Steps of 1/128, so that rounding is not what differs.
            let x: Vec<f32> = x.iter().map(|x| (x * 127.0).round() / 128.0).collect();
            let (rows, stride) = (padded(&x, steps), steps.next_multiple_of(TILE));
            let extent = Extent { above: 127.0 / 128.0, below: 1.0 };
            let mut values = Values::default();
            values.prepare(&convolution, &(0..stride), extent);
            let (shape, quads) = values.quads_mut();
            for (quad, channels) in quads.zip(rows.chunks(QUAD * stride)) {
                let channel = |at: usize| &channels[at * stride..][..stride];
                kernels.fill(shape, std::array::from_fn(channel), quad);
            }
            for adds in [false, true] {
                let mut result = vec![1.0; convolution.panels() * PANEL * stride];
                for (panel, rows) in result.chunks_mut(PANEL * stride).enumerate() {
                    for start in (0..stride).step_by(TILE) {
                        let positions = start..start + TILE;
                        let to = (&mut *rows, adds);
                        kernels.convolve((&convolution, panel), &values, positions, to);
                    }
                }
                bits.extend(result.iter().map(|value| value.to_bits()));
                for (output, row) in result.chunks(stride).take(channels).enumerate() {
                    for (step, value) in row[..steps].iter().enumerate() {
                        let mut exact = f64::from(bias[output]) + f64::from(u8::from(adds));
                        for input in 0..channels {
                            for tap in 0..taps {
                                let at = (step + tap * dilation).checked_sub(taps / 2 * dilation);
                                let Some(at) = at.filter(|at| *at < steps) else { continue };
                                let weight = weights[(output * channels + input) * taps + tap];
                                let weight = (f64::from(weight) - f64::from(zero_point)) * 0.01;
                                exact += weight * f64::from(x[input * steps + at]);
                            }
                        }
                        let apart = (f64::from(*value) - exact).abs();
                        assert!(apart < 1e-4, "{channels} {taps} {step}: {value} for {exact}");
                    }
                }
            }
        }
        bits
    }

    #[test]
    fn a_row_is_activated_and_summed_as_in_floats() {
        let Some(kernels) = Convolver::detect() else { return };
        let mut random = fastrand::Rng::with_seed(2);
        let row: Vec<f32> = noise(&mut random, 83).iter().map(|x| x * 30.0).collect();
        let mut to = vec![7.0; 96];
        let snake = Snake { scale: 1.3, shift: -0.2, alpha: 2.5 };
        let extent = kernels.activate(&row, &mut to, snake);
        let [mut above, mut below] = [0.0_f64; 2];
        for (x, value) in row.iter().zip(&to) {
            let y = f64::from(*x) * 1.3 - 0.2;
            let exact = y + (2.5 * y).sin().powi(2) / 2.5;
            (above, below) = (above.max(exact), below.max(-exact));
            assert!((f64::from(*value) - exact).abs() < 2e-5, "{value} for {exact}");
        }
        assert!((f64::from(extent.above) - above).abs() < 2e-5, "{extent:?}");
        assert!((f64::from(extent.below) - below).abs() < 2e-5, "{extent:?}");
        assert_eq!(to[83..], [0.0; 13]);
        for zero in [0.0, -0.0] {
            let identity = Snake { scale: 1.0, shift: zero, alpha: 1.0 };
            let Extent { above, below } = kernels.activate(&[zero; 3], &mut to, identity);
            assert_eq!([above.to_bits(), below.to_bits()], [0; 2], "{zero}");
        }
        let exact: f64 = row.iter().map(|x| f64::from(*x)).sum();
        assert!((f64::from(kernels.sum(&row)) - exact).abs() < 1e-3);
        let exact: f64 = row.iter().map(|x| (f64::from(*x) - 0.5).powi(2)).sum();
        assert!((f64::from(kernels.spread(&row, 0.5)) / exact - 1.0).abs() < 1e-5);
    }

    #[test]
    fn shapes_that_the_kernel_cannot_compute_are_refused() {
        let weights = vec![0; 8 * 8 * 3];
        let new = |weights: &[u8], zero_point: u8, channels: usize| {
            Convolution::new(weights, (zero_point, 1.0), &vec![0.0; channels], 1)
        };
        assert!(new(&weights, 0, 8).is_some());
        assert!(new(&weights, 0, 4).is_none(), "four channels");
        assert!(new(&weights[..128], 0, 8).is_none(), "two taps");
        assert!(new(&weights[..100], 0, 8).is_none(), "cut off");
        assert!(new(&[], 0, 0).is_none(), "no channel");
        assert!(new(&vec![0; 8 * 8 * 32_769], 0, 8).is_none(), "sums of more than 32 bits");
        let dilated = |dilation| Convolution::new(&weights, (0, 1.0), &[0.0; 8], dilation);
        let is_made = [0, 1, TILE, TILE + 1, usize::MAX].map(|by| dilated(by).is_some());
        assert_eq!(is_made, [false, true, true, false, false]);
        let limit = |weight: u8| new(&[weight; 8 * 8 * 3], 0, 8).map(|made| made.value_max);
        assert_eq!([32, 33, 64, 65].map(limit), [Some(255), Some(248), Some(127), None]);
    }

    #[test]
    fn nothing_is_read_beyond_the_values() {
        let Some(kernels) = Convolver::detect() else { return };
        let convolution = |taps: usize| {
            let weights = vec![1; 8 * 8 * taps];
            Convolution::new(&weights, (0, 1.0), &[0.0; 8], 1).expect("a shape that fits")
        };
        let (narrow, wide) = (convolution(3), convolution(21));
        let mut values = Values::default();
        values.prepare(&narrow, &(TILE..3 * TILE), Extent::default());
        let is_computed = |panel: (&Convolution, usize), positions: Range<usize>| {
            let mut rows = vec![0.0; PANEL * 4 * TILE];
            let to = (&mut rows[..], false);
            let compute = || kernels.convolve(panel, &values, positions, to);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(compute)).is_ok()
        };
        assert!(is_computed((&narrow, 1), TILE..3 * TILE));
        assert!(!is_computed((&narrow, 2), TILE..3 * TILE), "a panel that does not exist");
        assert!(!is_computed((&wide, 0), TILE..3 * TILE), "more zeros at the ends");
        for positions in [0..TILE, TILE..4 * TILE, TILE..3 * TILE - 1] {
            assert!(!is_computed((&narrow, 0), positions.clone()), "{positions:?}");
        }
    }
}
