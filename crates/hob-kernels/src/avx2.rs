//! Multiplication of matrices in 16-bit integers: rows become integers with a scale, weights become panels of 16
//! channels, and one instruction of AVX2 multiplies and adds pairs of both. With the dot-product unit of AVX-512 (VNNI), one
//! instruction does so for twice as many, and adds them to the sums. Both give the same sums.

#![expect(unsafe_code, reason = "vector instructions load from pointers")]

use std::arch::x86_64::*;

use super::{
    Activation, BLOCK_BYTES, BLOCK_VALUES, CHANNELS, POSITIONS, Product, SCALE_VALUES, VALUE_MAX,
    WEIGHT_MAX,
};

/// Positions that a dot-product unit computes together. It takes several steps for an addition, so fewer sums would wait for each
/// other.
const DOT_POSITIONS: usize = 3 * POSITIONS;
/// Lower limit for the largest value of a row, so that the scale of a row of zeros has a finite inverse.
const LARGEST_MIN: f32 = 1e-20;

/// Rounds a row to integers of up to `VALUE_MAX`, followed by their scale. The number of values is a multiple of 32.
///
/// # Safety
/// The processor has these instructions: [`is_faster`](super::is_faster).
#[target_feature(enable = "avx2,fma")]
pub fn narrow(values: &[f32], narrow: &mut [i16]) {
    let scale = largest(values).max(LARGEST_MIN) / VALUE_MAX;
    let factor = _mm256_set1_ps(1.0 / scale);
    let (narrowed, rest) = narrow.split_at_mut(values.len());
    for (values, narrowed) in values.chunks_exact(16).zip(narrowed.chunks_exact_mut(16)) {
        // SAFETY: both chunks have 16 values, of 4 and of 2 bytes.
        unsafe {
            let at = values.as_ptr();
            let round = |values| _mm256_cvtps_epi32(_mm256_mul_ps(values, factor));
            let (low, high) = (round(_mm256_loadu_ps(at)), round(_mm256_loadu_ps(at.add(8))));
            // The instruction packs each half of a register by itself.
            let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
            _mm256_storeu_si256(narrowed.as_mut_ptr().cast(), packed);
        }
    }
    let bits = scale.to_bits();
    rest.copy_from_slice(&[bits as i16, (bits >> 16) as i16]);
}

/// The largest absolute value.
fn largest(values: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    for values in values.chunks_exact(lanes.len()) {
        for (lane, value) in lanes.iter_mut().zip(values) {
            *lane = if value.abs() > *lane { value.abs() } else { *lane };
        }
    }
    lanes.into_iter().fold(0.0, f32::max)
}

/// Computes one panel of [`CHANNELS`] channels for all positions, and hands over the results of each position.
///
/// # Safety
/// The processor has these instructions: [`is_faster`](super::is_faster).
#[target_feature(enable = "avx2,fma,f16c")]
pub fn multiply(
    product: &Product<'_>,
    panel: usize,
    store: &mut dyn FnMut(usize, &[f32; CHANNELS]),
) {
    let width = product.width;
    let (weights, scales) = unpacked(product, panel);
    let bias = product.bias.map(|bias| &bias[panel * CHANNELS..][..CHANNELS]);
    let stride = width + SCALE_VALUES;
    let mut rows = product.rows;
    let mut position = 0;
    let mut finish = |rows: &[i16], sums: &[[i32; CHANNELS]]| {
        for (row, sums) in rows.chunks_exact(stride).zip(sums) {
            let bits = u32::from(row[width] as u16) | u32::from(row[width + 1] as u16) << 16;
            let scale = f32::from_bits(bits);
            let mut values = [0.0; CHANNELS];
            for (channel, value) in values.iter_mut().enumerate() {
                let sum = sums[channel] as f32 * (scales[channel] * scale);
                *value = sum + bias.map_or(0.0, |bias| bias[channel]);
            }
            if product.activation == Activation::Gelu {
                values.iter_mut().for_each(|value| *value = gelu(*value));
            }
            store(position, &values);
            position += 1;
        }
    };
    if is_x86_feature_detected!("avx512vnni") {
        while let Some((tile, rest)) = rows.split_at_checked(DOT_POSITIONS * stride) {
            // SAFETY: the processor has the instructions.
            finish(tile, &unsafe { dot_products(&weights, tile, stride) });
            rows = rest;
        }
    }
    for tile in rows.chunks_exact(POSITIONS * stride) {
        finish(tile, &tile_sums(&weights, tile, stride));
    }
}

/// The weights of a panel with one scale for each channel: pairs of values, and of each pair all channels.
#[target_feature(enable = "avx2,fma,f16c")]
fn unpacked(product: &Product<'_>, panel: usize) -> (Vec<i16>, [f32; CHANNELS]) {
    let width = product.width;
    let row_bytes = width / BLOCK_VALUES * BLOCK_BYTES;
    let mut weights = vec![0; width * CHANNELS];
    let mut scales = [0.0; CHANNELS];
    let rows = product.weights[panel * CHANNELS * row_bytes..].chunks_exact(row_bytes);
    for (channel, row) in rows.take(CHANNELS).enumerate() {
        let (blocks, _) = row.as_chunks::<BLOCK_BYTES>();
        let largest = blocks.iter().fold(0.0_f32, |largest, block| largest.max(scale(block).abs()));
        scales[channel] = largest.max(LARGEST_MIN) * 127.0 / WEIGHT_MAX;
        for (number, block) in blocks.iter().enumerate() {
            let rounded = rescaled(block, scale(block) / scales[channel]);
            let pairs = &mut weights[number * BLOCK_VALUES * CHANNELS..];
            for (pair, place) in rounded.chunks_exact(2).zip(pairs.chunks_exact_mut(2 * CHANNELS)) {
                place[2 * channel..2 * channel + 2].copy_from_slice(pair);
            }
        }
    }
    (weights, scales)
}

/// The values of a block times `factor`, which is at most 4.
#[target_feature(enable = "avx2,fma,f16c")]
fn rescaled(block: &[u8; BLOCK_BYTES], factor: f32) -> [i16; BLOCK_VALUES] {
    // Products are shifted by 15 bits, of which the value has 2 and the factor 13.
    let factor = _mm256_set1_epi16((factor * 8192.0) as i16);
    let mut rescaled = [0; BLOCK_VALUES];
    for (values, rescaled) in block[2..].chunks_exact(16).zip(rescaled.chunks_exact_mut(16)) {
        // SAFETY: both chunks have 16 values, of 1 and of 2 bytes.
        unsafe {
            let values = _mm256_cvtepi8_epi16(_mm_loadu_si128(values.as_ptr().cast()));
            let products = _mm256_mulhrs_epi16(_mm256_slli_epi16::<2>(values), factor);
            _mm256_storeu_si256(rescaled.as_mut_ptr().cast(), products);
        }
    }
    rescaled
}

#[target_feature(enable = "avx2,f16c")]
fn scale(block: &[u8; BLOCK_BYTES]) -> f32 {
    let bits = i32::from(u16::from_le_bytes([block[0], block[1]]));
    _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)))
}

/// The sums of each position and channel. `rows` holds [`POSITIONS`] rows of `stride` values.
#[target_feature(enable = "avx2")]
fn tile_sums(weights: &[i16], rows: &[i16], stride: usize) -> [[i32; CHANNELS]; POSITIONS] {
    let pairs = weights.len() / (2 * CHANNELS);
    assert!(rows.len() >= POSITIONS * stride && stride >= 2 * pairs, "the size of the rows");
    let mut sums = [[_mm256_setzero_si256(); 2]; POSITIONS];
    for pair in 0..pairs {
        // SAFETY: `weights` holds `pairs` times 32 values of 2 bytes, which are two registers of 32 bytes.
        let both = unsafe {
            let at = weights.as_ptr().add(pair * 2 * CHANNELS).cast::<__m256i>();
            [_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))]
        };
        for (position, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the pair is within the row, and the row within `rows` (asserted above).
            let two = unsafe {
                rows.as_ptr().add(position * stride + 2 * pair).cast::<i32>().read_unaligned()
            };
            let two = _mm256_set1_epi32(two);
            for (sum, weights) in sums.iter_mut().zip(both) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(two, weights));
            }
        }
    }
    sums.map(|[low, high]| {
        let mut values = [0; CHANNELS];
        // SAFETY: `values` has room for two registers of eight integers.
        unsafe {
            let at = values.as_mut_ptr().cast::<__m256i>();
            _mm256_storeu_si256(at, low);
            _mm256_storeu_si256(at.add(1), high);
        }
        values
    })
}

/// The sums of each position and channel, with a dot-product unit. `rows` holds [`DOT_POSITIONS`] rows of `stride` values.
#[target_feature(enable = "avx512f,avx512vnni")]
fn dot_products(weights: &[i16], rows: &[i16], stride: usize) -> [[i32; CHANNELS]; DOT_POSITIONS] {
    let pairs = weights.len() / (2 * CHANNELS);
    assert!(rows.len() >= DOT_POSITIONS * stride && stride >= 2 * pairs, "the size of the rows");
    let mut sums = [_mm512_setzero_si512(); DOT_POSITIONS];
    for pair in 0..pairs {
        // SAFETY: `weights` holds `pairs` times 32 values of 2 bytes, which are a register of 64 bytes.
        let weights =
            unsafe { _mm512_loadu_si512(weights.as_ptr().add(pair * 2 * CHANNELS).cast()) };
        for (position, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the pair is within the row, and the row within `rows` (asserted above).
            let two = unsafe {
                rows.as_ptr().add(position * stride + 2 * pair).cast::<i32>().read_unaligned()
            };
            *sum = _mm512_dpwssd_epi32(*sum, _mm512_set1_epi32(two), weights);
        }
    }
    sums.map(|sum| {
        let mut values = [0; CHANNELS];
        // SAFETY: `values` has room for one register of sixteen integers.
        unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), sum) };
        values
    })
}

/// x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which is x · σ(2 · √(2/π) · (x + 0.044715 x³)).
#[inline]
fn gelu(x: f32) -> f32 {
    let doubled = x * (1.595_769 + 0.071_354_82 * x * x);
    x / (1.0 + exp(-doubled))
}

/// e^x with an error of 1e-6 of it, in operations that the compiler turns into vector instructions.
#[inline]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 87.0);
    let whole = (x * std::f32::consts::LOG2_E).round_ties_even();
    let part = x - whole * std::f32::consts::LN_2;
    let mut power = 1.0 / 720.0;
    for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = power * part + coefficient;
    }
    power * f32::from_bits(((whole as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from -1 to 1.
    fn noise(seed: u64, count: usize) -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..count).map(|_| random.f32() * 2.0 - 1.0).collect()
    }

    /// Half precision of 2^-9 times 1 to 1.9, which is exact.
    fn half(tenths: u32) -> (u16, f32) {
        let fraction = tenths * 102;
        ((6 << 10 | fraction) as u16, (1.0 + fraction as f32 / 1024.0) / 512.0)
    }

    #[test]
    fn products_are_those_of_floats() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        let (width, channels, positions) = (64, 32, 32);
        let (mut weights, mut exact) = (Vec::new(), Vec::new());
        for (number, values) in noise(1, width * channels).chunks(BLOCK_VALUES).enumerate() {
            let (bits, scale) = half(number as u32 % 10);
            weights.extend(bits.to_le_bytes());
            weights.extend(values.iter().map(|value| (value * 127.0) as i8 as u8));
            exact.extend(values.iter().map(|value| f32::from((value * 127.0) as i8) * scale));
        }
        let (x, bias) = (noise(2, width * positions), noise(3, channels));
        let mut rows = vec![0; (width + SCALE_VALUES) * positions];
        for (x, row) in x.chunks(width).zip(rows.chunks_mut(width + SCALE_VALUES)) {
            // SAFETY: the processor has AVX2 (checked above), and all that have it have FMA.
            unsafe { narrow(x, row) };
        }
        for activation in [Activation::None, Activation::Gelu] {
            let product =
                Product { weights: &weights, width, rows: &rows, bias: Some(&bias), activation };
            for panel in 0..channels / CHANNELS {
                let mut check = |position: usize, values: &[f32; CHANNELS]| {
                    for (channel, value) in values.iter().enumerate() {
                        let channel = panel * CHANNELS + channel;
                        let row = x[position * width..].iter().zip(&exact[channel * width..]);
                        let sum: f32 = row.take(width).map(|(x, weight)| x * weight).sum();
                        let sum = sum + bias[channel];
                        let tanh = (0.797_884_6 * (sum + 0.044_715 * sum.powi(3))).tanh();
                        let gelu = 0.5 * sum * (1.0 + tanh);
                        let expected = if activation == Activation::Gelu { gelu } else { sum };
                        assert!((value - expected).abs() < 0.01, "{value} for {expected}");
                    }
                };
                // SAFETY: as above.
                unsafe { multiply(&product, panel, &mut check) };
            }
        }
    }

    #[test]
    fn a_dot_product_unit_gives_the_same_sums() {
        if !is_x86_feature_detected!("avx512vnni") {
            return;
        }
        let mut random = fastrand::Rng::with_seed(4);
        let mut integers = |count: usize, largest: i16| -> Vec<i16> {
            (0..count).map(|_| random.i16(-largest..=largest)).collect()
        };
        for width in [32, 96, 512] {
            let stride = width + SCALE_VALUES;
            let weights = integers(width * CHANNELS, WEIGHT_MAX as i16);
            let rows = integers(DOT_POSITIONS * stride, VALUE_MAX as i16);
            // SAFETY: the processor has AVX-512 with VNNI (checked above).
            let dots = unsafe { dot_products(&weights, &rows, stride) };
            for (rows, dots) in rows.chunks(POSITIONS * stride).zip(dots.chunks(POSITIONS)) {
                // SAFETY: a processor with AVX-512 has AVX2.
                assert_eq!(dots, unsafe { tile_sums(&weights, rows, stride) }, "{width}");
            }
        }
    }

    #[test]
    fn a_row_of_zeros_stays_zero() {
        let mut row = [1; 34];
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            unsafe { narrow(&[0.0; 32], &mut row) };
            assert_eq!(row[..32], [0; 32]);
        }
    }
}
