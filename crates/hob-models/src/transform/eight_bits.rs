//! Rewrites the Q4_1 matrices of a GGUF file as Q8_0. ggml has no matrix kernel for Q4_1 on CPUs, so with Q8_0 a prompt is read
//! several times faster. The two formats are those of llama.cpp's `ggml-common.h`.

use std::path::Path;

use half::f16;

use super::Transformed;
use crate::gguf::{Gguf, GgufFile, GgufTensor, TensorType, rewrite};
use crate::progress::{PullStep, Watch};

const Q4_1: u32 = 3;
const BLOCK_WEIGHTS: usize = 32;
/// Bytes of a block: the scale, the least value, and two weights in a byte.
const Q4_1_BLOCK_BYTES: usize = 20;
/// Bytes of a block: the scale, and one weight in a byte.
const Q8_0_BLOCK_BYTES: usize = 34;
const FILE_TYPE_KEY: &str = "general.file_type";
/// `general.file_type` of a file that is mostly Q8_0.
const MOSTLY_Q8_0: u32 = 7;
const U32_VALUE: u32 = 4;

/// Writes the file `from`, whose header is `gguf`, to `to`, with Q8_0 instead of Q4_1. Each weight changes by at most 1/254 of the largest one of its
/// block, plus the rounding of the block's scale to 16 bits. Other tensors and all keys but the file type stay as they are.
///
/// # Errors
/// A disk error, or the step was cancelled.
pub(super) fn with_eight_bits(
    gguf: &Gguf,
    from: &Path,
    to: &Path,
    watch: &mut Watch<'_>,
) -> Transformed {
    watch.begin(
        PullStep::Transforming,
        Some(gguf.tensors().iter().map(|tensor| tensor.bytes).sum()),
    );
    let kind = |tensor: &GgufTensor| match tensor.kind.id {
        Q4_1 => TensorType::Q8_0,
        _ => tensor.kind,
    };
    rewrite(GgufFile { header: gguf, path: from }, to, set_file_type, kind, |tensor, data| {
        watch.check()?;
        watch.item_done(tensor.bytes);
        Ok(match tensor.kind.id {
            Q4_1 => data.chunks_exact(Q4_1_BLOCK_BYTES).flat_map(eight_bits).collect(),
            _ => data,
        })
    })
}

/// Changes the file type, if the header has one.
fn set_file_type(header: &mut [u8]) {
    let mut key = (FILE_TYPE_KEY.len() as u64).to_le_bytes().to_vec();
    key.extend(FILE_TYPE_KEY.as_bytes());
    key.extend(U32_VALUE.to_le_bytes());
    let found = header.windows(key.len()).position(|bytes| bytes == key);
    let value = found.and_then(|at| header.get_mut(at + key.len()..)?.get_mut(..4));
    if let Some(value) = value {
        value.copy_from_slice(&MOSTLY_Q8_0.to_le_bytes());
    }
}

/// One block. In Q4_1 a weight is `scale * number + least`, and the first half of the weights is in the low bits.
fn eight_bits(block: &[u8]) -> [u8; Q8_0_BLOCK_BYTES] {
    let float = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    let (scale, least) = (float(0), float(2));
    let packed = &block[4..];
    let mut weights = [0.0; BLOCK_WEIGHTS];
    for (index, byte) in packed.iter().enumerate() {
        weights[index] = f32::from(byte & 15).mul_add(scale, least);
        weights[index + BLOCK_WEIGHTS / 2] = f32::from(byte >> 4).mul_add(scale, least);
    }
    let largest = weights.iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
    let scale = largest / 127.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let mut stored = [0; Q8_0_BLOCK_BYTES];
    stored[..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
    for (byte, weight) in stored[2..].iter_mut().zip(weights) {
        *byte = ((weight * inverse).round() as i8) as u8;
    }
    stored
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::gguf::sample::SampleGguf;

    fn rewritten(file: &[u8]) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from.gguf"), folder.path().join("to.gguf"));
        std::fs::write(&from, file).expect("a file");
        let cancel = AtomicBool::new(false);
        let gguf = Gguf::open(&from).expect("a header");
        with_eight_bits(&gguf, &from, &to, &mut Watch::new(&mut |_| {}, &cancel))
            .expect("rewritten");
        std::fs::read(to).expect("written")
    }

    fn data<'a>(file: &'a [u8], name: &str) -> (TensorType, &'a [u8]) {
        let gguf = Gguf::read(std::io::Cursor::new(file)).expect("a header");
        let tensor = gguf.tensors().iter().find(|tensor| tensor.name == name).expect("a tensor");
        let start = gguf.header_bytes().next_multiple_of(32) + tensor.offset;
        (tensor.kind, &file[start as usize..(start + tensor.bytes) as usize])
    }

    /// A file with a Q4_1 matrix of 64 × 3 between two others, all with random data.
    fn sample(random: &mut fastrand::Rng) -> Vec<u8> {
        let mut file = SampleGguf::empty()
            .text("general.architecture", "llama")
            .u32(FILE_TYPE_KEY, Q4_1)
            .u32("after", 3)
            .raw_tensor("norm", &[5], 0, (0, 20))
            .raw_tensor("matrix", &[64, 3], Q4_1, (32, 120))
            .raw_tensor("last", &[32], 8, (160, 34))
            .bytes();
        let data_start = file.len() - 194;
        for block in file[data_start..].iter_mut() {
            *block = random.u8(..);
        }
        for block in file[data_start + 32..data_start + 152].chunks_exact_mut(Q4_1_BLOCK_BYTES) {
            for float in block[..4].chunks_exact_mut(2) {
                let bytes = f16::from_f32(random.f32() - 0.5).to_le_bytes();
                float.copy_from_slice(&bytes);
            }
        }
        file
    }

    #[test]
    fn only_the_matrices_and_the_file_type_change() {
        let mut random = fastrand::Rng::with_seed(1);
        let before = sample(&mut random);
        let after = rewritten(&before);
        for name in ["norm", "last"] {
            assert_eq!(data(&before, name), data(&after, name), "{name}");
        }
        let gguf = Gguf::read(std::io::Cursor::new(&after)).expect("a header");
        assert_eq!(gguf.number(FILE_TYPE_KEY), Some(MOSTLY_Q8_0.into()));
        assert_eq!(
            (gguf.number("after"), gguf.text("general.architecture")),
            (Some(3), Some("llama"))
        );
        assert_eq!(gguf.file_bytes(), after.len() as u64);
    }

    #[test]
    fn each_weight_stays_where_it_was_and_nearly_what_it_was() {
        let mut random = fastrand::Rng::with_seed(2);
        let before = sample(&mut random);
        let after = rewritten(&before);
        let ((_, four), (kind, eight)) = (data(&before, "matrix"), data(&after, "matrix"));
        assert_eq!((kind, eight.len()), (TensorType::Q8_0, 6 * Q8_0_BLOCK_BYTES));
        let float = |bytes: &[u8]| f16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
        for (four, eight) in four.chunks(Q4_1_BLOCK_BYTES).zip(eight.chunks(Q8_0_BLOCK_BYTES)) {
            let (scale, least) = (float(four), float(&four[2..]));
            let number = |index: usize| match index < 16 {
                true => four[4 + index] & 15,
                false => four[4 + index - 16] >> 4,
            };
            let expected: Vec<f32> =
                (0..BLOCK_WEIGHTS).map(|index| f32::from(number(index)) * scale + least).collect();
            let largest =
                expected.iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
            for (expected, byte) in expected.iter().zip(&eight[2..]) {
                let weight = f32::from(*byte as i8) * float(eight);
                assert!((weight - expected).abs() <= largest / 200.0, "{weight} for {expected}");
            }
        }
    }

    #[test]
    fn zeros_stay_zeros() {
        assert_eq!(eight_bits(&[0; Q4_1_BLOCK_BYTES]), [0; Q8_0_BLOCK_BYTES]);
    }
}
