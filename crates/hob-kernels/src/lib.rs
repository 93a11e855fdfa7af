//! The inner loops of hob's own arithmetic, for Kokoro's vocoder, Whisper's encoder and Silero VAD. They are a small crate,
//! so debug builds can optimise them fully. Debug builds optimise the large `hob-engines` little, which saves time.

#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "only the kernels for x86-64 read these constants and fields")
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
pub mod convolution;

#[cfg(target_arch = "x86_64")]
pub use avx2::{multiply, narrow};

/// Channels that are computed together: two registers of eight.
pub const CHANNELS: usize = 16;
/// Positions that are computed together. With more, the sums do not fit into the registers.
const POSITIONS: usize = 4;
/// Values at the end of a row of [`narrow`], which hold its scale.
pub const SCALE_VALUES: usize = 2;
/// Largest integers for weights and for values of rows. Their product times `WIDTH_MAX` fits into 32 bits.
const WEIGHT_MAX: f32 = 400.0;
const VALUE_MAX: f32 = 1023.0;
/// Values of the longest row whose sums cannot overflow.
const WIDTH_MAX: usize = 5120;

/// A block of Q8_0: a 16-bit scale and 32 values.
const BLOCK_VALUES: usize = 32;
const BLOCK_BYTES: usize = 34;

/// The function that is applied to each sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    None,
    Gelu,
}

/// A matrix in Q8_0, and what it is multiplied with. On a processor with AVX2 alone, [`multiply`] takes half the time of
/// ggml's 8-bit kernels. With a dot-product unit (VNNI), the same instructions still saved 10 to 15 % of a short utterance, and
/// those of that unit take about half the time again. [`multiply`] also rounds less than ggml.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// The blocks of one channel after the other.
    pub weights: &'a [u8],
    /// Values of a row. A multiple of 32.
    pub width: usize,
    /// One row of [`narrow`] for each position.
    pub rows: &'a [i16],
    pub bias: Option<&'a [f32]>,
    pub activation: Activation,
}

/// Whether these kernels are faster than ggml's on this processor.
#[cfg(target_arch = "x86_64")]
pub fn is_faster() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}

#[cfg(not(target_arch = "x86_64"))]
pub fn is_faster() -> bool {
    false
}

/// Whether [`multiply`] can multiply a matrix of this width and number of channels with so many positions.
pub fn fits([width, channels, positions]: [usize; 3]) -> bool {
    width <= WIDTH_MAX
        && width.is_multiple_of(BLOCK_VALUES)
        && channels.is_multiple_of(CHANNELS)
        && positions.is_multiple_of(POSITIONS)
}

#[cfg(not(target_arch = "x86_64"))]
#[expect(clippy::missing_safety_doc, unsafe_code, reason = "never called, see `is_faster`")]
pub unsafe fn narrow(_: &[f32], _: &mut [i16]) {}

#[cfg(not(target_arch = "x86_64"))]
#[expect(clippy::missing_safety_doc, unsafe_code, reason = "never called, see `is_faster`")]
pub unsafe fn multiply(_: &Product<'_>, _: usize, _: &mut dyn FnMut(usize, &[f32; CHANNELS])) {}

/// The sum of the products of two slices of equal length. It keeps sixteen sums, so that the compiler can use
/// vector instructions.
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}
