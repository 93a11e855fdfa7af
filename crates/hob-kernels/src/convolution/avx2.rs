//! The kernels in instructions of AVX2 and FMA. One instruction multiplies 32 bytes and adds pairs of products in 16 bits,
//! so the kernel adds four products before it widens them. With the dot-product unit of AVX-512 (VNNI), one instruction
//! multiplies 64 bytes and adds four products to each sum. Both give the same sums.

#![expect(unsafe_code, reason = "vector instructions load from pointers")]

use std::arch::x86_64::*;
use std::f32::consts::FRAC_1_PI;
use std::ops::Range;

use super::{Convolution, Convolver, Extent, LANES, PANEL, QUAD, QuadShape, Snake, TILE, Values};

/// Registers of a tile.
const REGISTERS: usize = 2;
const _: () = assert!(TILE == REGISTERS * LANES);
/// π in two parts, so that `x − k·π` stays exact for large x.
const PI_HIGH: f32 = 3.140_625;
const PI_LOW: f32 = 9.676_536e-4;
/// sin(x) / x in powers of x², by Taylor: wrong by at most 6e-8 up to π/2.
const SINE: [f32; 6] =
    [-2.505_210_8e-8, 2.755_731_9e-6, -1.984_127e-4, 8.333_334e-3, -0.166_666_67, 1.0];

impl Convolver {
    /// `None`: the processor lacks the instructions.
    #[must_use]
    pub fn detect() -> Option<Convolver> {
        let has = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        has.then(|| Convolver { has_dot_products: is_x86_feature_detected!("avx512vnni") })
    }

    /// The sum of a row.
    #[must_use]
    pub fn sum(self, row: &[f32]) -> f32 {
        // SAFETY: `detect` found the instructions.
        unsafe { added(row, |x| x) }
    }

    /// The sum of the squared distances from `mean`.
    #[must_use]
    pub fn spread(self, row: &[f32], mean: f32) -> f32 {
        // SAFETY: `detect` found the instructions.
        unsafe { added(row, |x| (x - mean) * (x - mean)) }
    }

    /// Applies `snake` to a row. What `to` has beyond the row becomes zero.
    #[must_use]
    pub fn activate(self, row: &[f32], to: &mut [f32], snake: Snake) -> Extent {
        let (to, beyond) = to.split_at_mut(row.len());
        beyond.fill(0.0);
        // SAFETY: `detect` found the instructions.
        unsafe { activated(row, to, snake) }
    }

    /// Rounds four channels to integers. They have as many positions as [`Values::prepare`] made room for.
    pub fn fill(self, shape: QuadShape, channels: [&[f32]; QUAD], integers: &mut [u8]) {
        let (lead, rest) = integers.split_at_mut(shape.lead * QUAD);
        let (positions, trail) = rest.split_at_mut(channels[0].len() * QUAD);
        lead.fill(shape.zero_point);
        trail.fill(shape.zero_point);
        // SAFETY: `detect` found the instructions.
        unsafe { rounded(channels, shape, positions) }
    }

    /// Computes one panel of a convolution at `positions`, from one multiple of [`TILE`] to another, which are among those of
    /// the values. `rows` are the panel's rows of the result, of equal length; with `true` the results are added to what they
    /// hold.
    pub fn convolve(
        self,
        (convolution, panel): (&Convolution, usize),
        values: &Values,
        positions: Range<usize>,
        (rows, adds): (&mut [f32], bool),
    ) {
        let steps = rows.len() / PANEL;
        let around = values.shape.lead + convolution.reach();
        assert!(
            rows.len().is_multiple_of(PANEL * TILE)
                && positions.start.is_multiple_of(TILE)
                && positions.end.is_multiple_of(TILE)
                && positions.end <= steps
                && values.start <= positions.start
                && positions.end + around <= values.start + values.stride
                && convolution.reach() <= values.shape.lead
                && values.integers.len() >= convolution.channels * values.stride
                && panel < convolution.panels(),
            "the panel exists, and the rows and values hold all positions and what they read"
        );
        // SAFETY: `detect` found the instructions; the sizes are asserted above.
        unsafe { self.panel_sums((convolution, panel), values, positions, (rows, adds)) };
    }

    /// # Safety
    /// The processor has the instructions. Positions are whole tiles within the values, which hold [`Convolution::reach`] more
    /// at both ends and all input channels.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn panel_sums(
        self,
        (convolution, panel): (&Convolution, usize),
        values: &Values,
        positions: Range<usize>,
        (rows, adds): (&mut [f32], bool),
    ) {
        let steps = rows.len() / PANEL;
        let unit = convolution.scale * values.shape.scale;
        let scale = _mm256_set1_ps(unit);
        let outputs = panel * PANEL..(panel + 1) * PANEL;
        let (bias, weight_sums) = (&convolution.bias[outputs.clone()], &convolution.sums[outputs]);
        // All values have the zero point added to them.
        let too_much = unit * f32::from(values.shape.zero_point);
        let mut shifts = [0.0; PANEL];
        for ((shift, bias), sum) in shifts.iter_mut().zip(bias).zip(weight_sums) {
            *shift = bias - too_much * *sum as f32;
        }
        let first = values.shape.lead - convolution.reach();
        for position in positions.step_by(TILE) {
            // SAFETY: the caller's promise.
            let sums = unsafe {
                let from = values.integers.as_ptr().add((first + position - values.start) * QUAD);
                match self.has_dot_products {
                    true => dot_products(convolution, panel, from, values.stride),
                    false => pair_products(convolution, panel, from, values.stride),
                }
            };
            for ((row, sums), shift) in rows.chunks_exact_mut(steps).zip(sums).zip(shifts) {
                let (tile, _) = row[position..position + TILE].as_chunks_mut::<LANES>();
                for (to, sum) in tile.iter_mut().zip(sums) {
                    // SAFETY: a chunk has the size of one register.
                    unsafe {
                        let sum = _mm256_cvtepi32_ps(sum);
                        let mut result = _mm256_fmadd_ps(sum, scale, _mm256_set1_ps(shift));
                        if adds {
                            result = _mm256_add_ps(result, _mm256_loadu_ps(to.as_ptr()));
                        }
                        _mm256_storeu_ps(to.as_mut_ptr(), result);
                    }
                }
            }
        }
    }
}

/// Adds `of` each value. It keeps 32 sums, so that the compiler uses four registers, and adds these sums with 64 bits.
#[target_feature(enable = "avx2,fma")]
fn added(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (blocks, rest) = row.as_chunks::<{ 4 * LANES }>();
    let mut sums = [0.0_f32; 4 * LANES];
    for block in blocks {
        for (sum, value) in sums.iter_mut().zip(block) {
            *sum += of(*value);
        }
    }
    let all = sums.into_iter().chain(rest.iter().map(|value| of(*value)));
    all.map(f64::from).sum::<f64>() as f32
}

#[target_feature(enable = "avx2,fma")]
fn activated(row: &[f32], to: &mut [f32], snake: Snake) -> Extent {
    let mut extents = ([0.0; LANES], [0.0; LANES]);
    let (blocks, rest) = row.as_chunks::<LANES>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<LANES>();
    for (block, to) in blocks.iter().zip(to_blocks) {
        *to = snake_of(block, snake, &mut extents);
    }
    let mut padded = [0.0; LANES];
    padded[..rest.len()].copy_from_slice(rest);
    let mut unused = ([0.0; LANES], [0.0; LANES]);
    to_rest.copy_from_slice(&snake_of(&padded, snake, &mut unused)[..rest.len()]);
    // Not `max`, which can return −0 for 0 and −0.
    let further = |extent: f32, x: f32| if x > extent { x } else { extent };
    let of_rest = |sign: f32| to_rest.iter().map(|x| sign * x).fold(0.0, further);
    Extent {
        above: extents.0.into_iter().fold(of_rest(1.0), f32::max),
        below: extents.1.into_iter().fold(of_rest(-1.0), f32::max),
    }
}

/// `y + sin²(alpha·y) / alpha`. The square of the sine repeats after π, so the sine's sign does not matter.
#[target_feature(enable = "avx2,fma")]
fn snake_of(
    block: &[f32; LANES],
    snake: Snake,
    (above, below): &mut ([f32; LANES], [f32; LANES]),
) -> [f32; LANES] {
    let inverse = 1.0 / snake.alpha;
    let mut to = [0.0; LANES];
    for (at, x) in block.iter().enumerate() {
        let y = x.mul_add(snake.scale, snake.shift);
        let angle = y * snake.alpha;
        let turns = -(angle * FRAC_1_PI).round_ties_even();
        let angle = turns.mul_add(PI_LOW, turns.mul_add(PI_HIGH, angle));
        let square = angle * angle;
        let [first, rest @ ..] = SINE;
        let sine = rest.iter().fold(first, |sum, term| sum.mul_add(square, *term)) * angle;
        let result = (sine * sine).mul_add(inverse, y);
        to[at] = result;
        above[at] = if result > above[at] { result } else { above[at] };
        below[at] = if -result > below[at] { -result } else { below[at] };
    }
    to
}

#[target_feature(enable = "avx2,fma")]
fn rounded(channels: [&[f32]; QUAD], shape: QuadShape, integers: &mut [u8]) {
    let factor = _mm256_set1_ps(1.0 / shape.scale);
    let zero_point = _mm256_set1_epi32(i32::from(shape.zero_point));
    let (smallest, largest) = (_mm256_setzero_si256(), _mm256_set1_epi32(i32::from(shape.largest)));
    let rows = channels.map(|channel| channel.as_chunks::<LANES>().0);
    for (at, integers) in integers.as_chunks_mut::<{ QUAD * LANES }>().0.iter_mut().enumerate() {
        let mut all = smallest;
        for row in rows.iter().rev() {
            // SAFETY: a chunk has the size of one register.
            let floats = unsafe { _mm256_loadu_ps(row[at].as_ptr()) };
            let integer = _mm256_cvtps_epi32(_mm256_mul_ps(floats, factor));
            let integer = _mm256_add_epi32(integer, zero_point);
            let integer = _mm256_min_epi32(_mm256_max_epi32(integer, smallest), largest);
            all = _mm256_or_si256(_mm256_slli_epi32::<8>(all), integer);
        }
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(integers.as_mut_ptr().cast(), all) };
    }
}

/// The sums of one tile, of each output of a panel.
type TileSums = [[__m256i; REGISTERS]; PANEL];

/// # Safety
/// As for [`add_taps`].
#[target_feature(enable = "avx2,fma")]
unsafe fn pair_products(
    convolution: &Convolution,
    panel: usize,
    from: *const u8,
    stride: usize,
) -> TileSums {
    let mut sums = [[_mm256_setzero_si256(); REGISTERS]; PANEL];
    // SAFETY: the caller's promise.
    unsafe { add_taps(&mut sums, (convolution, panel), from, stride) };
    sums
}

/// # Safety
/// As for [`add_taps`], and the processor has a dot-product unit.
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn dot_products(
    convolution: &Convolution,
    panel: usize,
    from: *const u8,
    stride: usize,
) -> TileSums {
    let mut sums = [[_mm512_setzero_si512(); 2]; PANEL];
    // SAFETY: the caller's promise.
    unsafe { add_taps(&mut sums, (convolution, panel), from, stride) };
    sums.map(|[of_a, of_b]| {
        let sum = _mm512_add_epi32(of_a, of_b);
        [_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum)]
    })
}

/// The sums of a tile while it is computed.
trait Sums {
    /// Adds the products of two taps.
    ///
    /// # Safety
    /// The processor has the instructions. `weights` points to both taps' weights of each output, and `from` to the values of a
    /// tile for each tap.
    unsafe fn add_two(&mut self, weights: *const i32, from: [*const u8; 2]);
}

/// Adds the products of all taps to the sums of one tile.
///
/// # Safety
/// The processor has the instructions. `from` is the first position that the tile reads in the first four channels, and all others
/// are `stride` positions apart.
// Within the caller, the compiler may use the caller's instructions.
#[inline(always)]
unsafe fn add_taps(
    sums: &mut impl Sums,
    (convolution, panel): (&Convolution, usize),
    from: *const u8,
    stride: usize,
) {
    let taps = convolution.taps;
    let step = convolution.dilation * QUAD;
    let size = PANEL * convolution.channels * taps;
    let weights = &convolution.weights[panel * size..][..size];
    for (both, weights) in weights.chunks_exact(2 * taps * PANEL * QUAD).enumerate() {
        let mut weights = weights.as_ptr().cast::<i32>();
        // SAFETY: the caller's promise; a chunk holds four weights of each output for each tap of both quads.
        unsafe {
            let first = from.add(2 * both * stride * QUAD);
            let second = first.add(stride * QUAD);
            let mut at = first;
            for _ in 0..taps / 2 {
                sums.add_two(weights, [at, at.add(step)]);
                weights = weights.add(2 * PANEL);
                at = at.add(2 * step);
            }
            sums.add_two(weights, [at, second]);
            weights = weights.add(2 * PANEL);
            let mut at = second.add(step);
            for _ in 0..taps / 2 {
                sums.add_two(weights, [at, at.add(step)]);
                weights = weights.add(2 * PANEL);
                at = at.add(2 * step);
            }
        }
    }
}

impl Sums for TileSums {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn add_two(&mut self, weights: *const i32, [a, b]: [*const u8; 2]) {
        let ones = _mm256_set1_epi16(1);
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b) = (a.cast::<__m256i>(), b.cast::<__m256i>());
            let a = [_mm256_loadu_si256(a), _mm256_loadu_si256(a.add(1))];
            let b = [_mm256_loadu_si256(b), _mm256_loadu_si256(b.add(1))];
            for (output, sums) in self.iter_mut().enumerate() {
                let of_a = _mm256_set1_epi32(weights.add(2 * output).read_unaligned());
                let of_b = _mm256_set1_epi32(weights.add(2 * output + 1).read_unaligned());
                for (sum, (a, b)) in sums.iter_mut().zip(a.into_iter().zip(b)) {
                    // Four products fit into 16 bits: `Convolution::new` limits the values.
                    let twos = _mm256_maddubs_epi16(a, of_a);
                    let fours = _mm256_add_epi16(twos, _mm256_maddubs_epi16(b, of_b));
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(fours, ones));
                }
            }
        }
    }
}

/// Each output has a sum for the first and one for the second of two taps. The unit takes several steps for an addition, so
/// fewer sums would wait for each other.
impl Sums for [[__m512i; 2]; PANEL] {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn add_two(&mut self, weights: *const i32, from: [*const u8; 2]) {
        // SAFETY: the caller's promise.
        unsafe {
            let values = from.map(|from| _mm512_loadu_si512(from.cast()));
            for (output, sums) in self.iter_mut().enumerate() {
                for (tap, (sum, values)) in sums.iter_mut().zip(values).enumerate() {
                    let weights = weights.add(2 * output + tap).read_unaligned();
                    *sum = _mm512_dpbusd_epi32(*sum, values, _mm512_set1_epi32(weights));
                }
            }
        }
    }
}
